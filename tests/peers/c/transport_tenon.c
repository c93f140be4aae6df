/*
 * The transports of transport.h, by the run time of Tenon: for programs whose stubs are made with --fast.
 */
#include "transport.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tenon/tirpc.h>

void
fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	exit(1);
}

static SVCXPRT *
serve_on(const char *transport)
{
	char address[200];

	if (strcmp(transport, "tcp") == 0)
		return tenon_svc_listen("tcp://127.0.0.1:0");
	if (strcmp(transport, "udp") == 0)
		return tenon_svc_listen("udp://127.0.0.1:0");
	REQUIRE(strncmp(transport, "unix=", 5) == 0);
	unlink(transport + 5);
	snprintf(address, sizeof address, "unix://%s", transport + 5);
	return tenon_svc_listen(address);
}

/* Says where it listens, in the form of transport.h. */
static void
print_address(const char *address)
{
	char kind[5] = "", host[100] = "";
	int port;

	if (strncmp(address, "unix://", 7) == 0) {
		printf("unix %s\n", address + 7);
		return;
	}
	REQUIRE(sscanf(address, "%3[a-z]://%99[^:]:%d", kind, host, &port) == 3);
	printf("%s %s %d\n", kind, host, port);
}

void
serve(int argc, char **argv, register_program *enlist)
{
	const char *address;
	tenon_error error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < argc; i++) {
		SVCXPRT *transport = serve_on(argv[i]);
		REQUIRE(transport != NULL);
		enlist(transport);
	}
	if (!tenon_server_start(tenon_svc_server(), &error)) {
		tenon_error_print(&error, "start");
		exit(1);
	}
	for (size_t i = 0; (address = tenon_server_address(tenon_svc_server(), i)) != NULL; i++)
		print_address(address);
	puts("ready");
	fflush(stdout);
	svc_run();
}

int
is_datagram(char **argv)
{
	return strcmp(argv[1], "udp") == 0;
}

CLIENT *
connect_to(int argc, char **argv, rpcprog_t program, rpcvers_t version)
{
	char address[200];

	if (argc == 3 && strcmp(argv[1], "unix") == 0)
		snprintf(address, sizeof address, "unix://%s", argv[2]);
	else if (argc == 4)
		snprintf(address, sizeof address, "%s://%s:%s", argv[1], argv[2], argv[3]);
	else
		fail("the arguments", 0, "are none of tcp|udp HOST PORT, unix PATH");
	CLIENT *client = clnt_create(address, program, version, argv[1]);
	REQUIRE(client != NULL && tenon_clnt_is_one(client));
	return client;
}
