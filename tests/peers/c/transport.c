/*
 * Transports for peers that stand on libtirpc; see transport.h.
 */
#include "transport.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	exit(1);
}

static int
open_socket(int family, int type)
{
	int fd = socket(family, type, 0);
	REQUIRE(fd >= 0);
	return fd;
}

static void
set_nodelay(int fd)
{
	int on = 1;
	REQUIRE(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
}

static struct sockaddr_un
unix_address(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	REQUIRE(strlen(path) < sizeof address.sun_path);
	strcpy(address.sun_path, path);
	return address;
}

static struct sockaddr_in
inet_address(const char *host, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	REQUIRE(inet_pton(AF_INET, host, &address.sin_addr) == 1);
	return address;
}

/* ---- Servers ---- */

static int
bind_inet(int type, const char *name, const char *host)
{
	struct sockaddr_in address = inet_address(host, 0);
	socklen_t length = sizeof address;
	int fd = open_socket(AF_INET, type);

	REQUIRE(bind(fd, (struct sockaddr *)&address, length) == 0);
	REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	printf("%s %s %d\n", name, host, ntohs(address.sin_port));
	return fd;
}

static SVCXPRT *
serve_tcp(void)
{
	int fd = bind_inet(SOCK_STREAM, "tcp", "127.0.0.1");
	set_nodelay(fd); /* accepted connections inherit it */
	REQUIRE(listen(fd, 64) == 0);
	return svc_vc_create(fd, 0, 0);
}

static SVCXPRT *
serve_udp(const char *name, const char *host)
{
	return svc_dg_create(bind_inet(SOCK_DGRAM, name, host), 0, 0);
}

static SVCXPRT *
serve_unix(const char *path)
{
	struct sockaddr_un address = unix_address(path);
	int fd = open_socket(AF_UNIX, SOCK_STREAM);

	unlink(path);
	REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	REQUIRE(listen(fd, 64) == 0);
	printf("unix %s\n", path);
	return svc_vc_create(fd, 0, 0);
}

static SVCXPRT *
serve_on(const char *transport)
{
	if (strcmp(transport, "tcp") == 0)
		return serve_tcp();
	if (strcmp(transport, "udp") == 0)
		return serve_udp("udp", "127.0.0.1");
	if (strncmp(transport, "onc+xdp=", 8) == 0)
		return serve_udp("onc+xdp", transport + 8);
	if (strncmp(transport, "unix=", 5) == 0)
		return serve_unix(transport + 5);
	fail(transport, 0, "is none of tcp, udp, unix=PATH, onc+xdp=HOST");
}

void
serve(int argc, char **argv, register_program *enlist)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++) {
		SVCXPRT *transport = serve_on(argv[i]);
		REQUIRE(transport != NULL);
		enlist(transport);
	}
	puts("ready");
	fflush(stdout);
	svc_run();
}

/* ---- Clients ---- */

static CLIENT *
connect_inet(int type, const char *host, int port, rpcprog_t program, rpcvers_t version)
{
	struct sockaddr_in address = inet_address(host, port);
	struct netbuf buffer = { sizeof address, sizeof address, &address };
	int fd = open_socket(AF_INET, type);

	if (type == SOCK_DGRAM)
		return clnt_dg_create(fd, &buffer, program, version, 0, 0);
	set_nodelay(fd);
	REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
	return clnt_vc_create(fd, &buffer, program, version, 0, 0);
}

static CLIENT *
connect_unix(const char *path, rpcprog_t program, rpcvers_t version)
{
	struct sockaddr_un address = unix_address(path);
	struct netbuf buffer = { sizeof address, sizeof address, &address };
	int fd = open_socket(AF_UNIX, SOCK_STREAM);

	REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
	return clnt_vc_create(fd, &buffer, program, version, 0, 0);
}

size_t
message_max(char **argv)
{
	if (strcmp(argv[1], "udp") == 0)
		return 8000;
	if (strcmp(argv[1], "onc+xdp") == 0)
		return 1472;
	return SIZE_MAX;
}

CLIENT *
connect_to(int argc, char **argv, rpcprog_t program, rpcvers_t version)
{
	CLIENT *client;

	if (argc == 3 && strcmp(argv[1], "unix") == 0) {
		client = connect_unix(argv[2], program, version);
	} else if (argc == 4) {
		int type = message_max(argv) < SIZE_MAX ? SOCK_DGRAM : SOCK_STREAM;
		client = connect_inet(type, argv[2], atoi(argv[3]), program, version);
	} else {
		fprintf(stderr, "usage: %s tcp|udp|onc+xdp HOST PORT | unix PATH\n", argv[0]);
		exit(2);
	}
	REQUIRE(client != NULL);
	return client;
}
