/*
 * interface_client WHAT TCP-PORT UDP-PORT: calls a server of by_hand.h at ports of this host, and prints all that a
 * client of libtirpc sees.
 */
#include "by_hand.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpcb_clnt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct timeval patience = {20, 0};

static bool_t
xdr_text(XDR *xdrs, char **text)
{
	return xdr_string(xdrs, text, TEXT_MAX);
}

static bool_t
xdr_refused(XDR *xdrs, void *value)
{
	(void)xdrs;
	(void)value;
	return FALSE;
}

struct bytes {
	u_int length;
	char *value;
};

static bool_t
xdr_big(XDR *xdrs, struct bytes *big)
{
	return xdr_bytes(xdrs, &big->value, &big->length, BIG_MAX);
}

static struct sockaddr_in
at_port(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	at.sin_port = htons(port);
	return at;
}

static CLIENT *
client_of(int type, int port, int version)
{
	struct sockaddr_in at = at_port(port);
	struct netbuf address = { sizeof at, sizeof at, &at };
	int fd = socket(AF_INET, type, 0);

	REQUIRE(fd >= 0);
	if (type == SOCK_STREAM)
		REQUIRE(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
	CLIENT *client = type == SOCK_STREAM ? clnt_vc_create(fd, &address, PROGRAM, version, 0, 0)
	                                     : clnt_dg_create(fd, &address, PROGRAM, version, 0, 0);
	REQUIRE(client != NULL);
#ifdef TENON_TIRPC_H
	REQUIRE(tenon_clnt_is_one(client));
#endif
	REQUIRE(clnt_control(client, CLSET_FD_CLOSE, NULL));
	return client;
}

static void
say(CLIENT *client, const char *what, enum clnt_stat status)
{
	struct rpc_err error;

	clnt_geterr(client, &error);
	printf("%s: %d", what, status);
	switch (status) {
	case RPC_PROGVERSMISMATCH: printf(" %lu..%lu", (u_long)error.re_vers.low, (u_long)error.re_vers.high); break;
	case RPC_AUTHERROR: printf(" why %d", error.re_why); break;
	case RPC_CANTSEND:
	case RPC_CANTRECV: printf(" errno %d", error.re_errno); break;
	default: break;
	}
	printf(" [%s]\n", status == RPC_SUCCESS ? "" : clnt_sperror(client, what));
}

static void
add(CLIENT *client, const char *what, int number)
{
	int result = -1;
	enum clnt_stat status = clnt_call(client, ADD, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&result, patience);

	say(client, what, status);
	printf("  %d\n", result);
}

static void
text_of(CLIENT *client, const char *what, u_long procedure, int own_port)
{
	char *text = NULL, *port, digits[20];
	int numbers[2] = {11, 22};
	struct bytes two = { sizeof numbers, (char *)numbers };
	enum clnt_stat status = clnt_call(client, procedure, (xdrproc_t)xdr_int, (char *)&two.length, (xdrproc_t)xdr_text,
	    (char *)&text, patience);

	say(client, what, status);
	if (status != RPC_SUCCESS)
		return;
	/* The port is another each time, but the caller knows it. */
	snprintf(digits, sizeof digits, " %d ", own_port);
	port = own_port == 0 ? NULL : strstr(text, digits);
	if (port != NULL)
		memset(port + 1, '#', strlen(digits) - 2);
	printf("  %s port %s\n", port == NULL ? text : "", port == NULL ? "unknown" : "right");
	if (port != NULL) {
		*port = 0;
		printf("  %s ... %s\n", text, strchr(port + 1, ' ') + 1);
	}
	REQUIRE(clnt_freeres(client, (xdrproc_t)xdr_text, (char *)&text));
}

static int
own_port(CLIENT *client)
{
	struct sockaddr_in at;
	socklen_t length = sizeof at;
	int fd = -1;

	if (!clnt_control(client, CLGET_FD, (char *)&fd) || getsockname(fd, (struct sockaddr *)&at, &length) != 0)
		return 0;
	return ntohs(at.sin_port);
}

static void
status_of(CLIENT *client, const char *what, u_long procedure)
{
	int number = 1, result = -1;

	say(client, what, clnt_call(client, procedure, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&result, patience));
}

static void
statuses(CLIENT *client)
{
	static const char *const names[] = {"progvers", "noprog", "systemerr", "auth", "weakauth", "decode", "noproc"};

	for (u_long each = PROGVERS; each <= NOPROC; each++)
		status_of(client, names[each - PROGVERS], each);
	add(client, "after statuses", 5);
}

static void
sizes(CLIENT *client, int max)
{
	for (int size = 0; size <= max; size = size * 7 + 1) {
		struct bytes big = { 0, NULL };
		enum clnt_stat status = clnt_call(client, BIG, (xdrproc_t)xdr_int, (char *)&size, (xdrproc_t)xdr_big,
		    (char *)&big, patience);
		printf("size %d: %d %u %c\n", size, status, big.length, big.length > 0 ? big.value[big.length - 1] : '-');
		clnt_freeres(client, (xdrproc_t)xdr_big, (char *)&big);
	}
}

static void
credentials(CLIENT *client)
{
	gid_t gids[3] = {5, 6, 7};

	text_of(client, "nobody", CALLER, own_port(client));
	client->cl_auth = authunix_create("machine", 12, 34, 3, gids);
	text_of(client, "somebody", CALLER, own_port(client));
	auth_destroy(client->cl_auth);
	client->cl_auth = authunix_create("another", 13, 35, 0, gids);
	text_of(client, "another", CALLER, own_port(client));
	auth_destroy(client->cl_auth);
	client->cl_auth = authnone_create();
	text_of(client, "nobody again", CALLER, own_port(client));
}

static void
control(CLIENT *client, int version)
{
	struct sockaddr_in at;
	struct timeval time = {3, 4};
	struct netbuf address = { sizeof at, 0, &at };
	rpcvers_t vers = 0;
	rpcprog_t program = 0;
	socklen_t length = sizeof at;
	int fd = -1, yes;

	yes = clnt_control(client, CLGET_FD, (char *)&fd);
	printf("fd %d %d\n", yes, fd >= 0 && getsockname(fd, (struct sockaddr *)&at, &length) == 0);
	memset(&at, 0, sizeof at);
	yes = clnt_control(client, CLGET_SERVER_ADDR, (char *)&at);
	printf("server %d %d\n", yes, yes ? at.sin_family : 0);
	memset(&address, 0, sizeof address);
	yes = clnt_control(client, CLGET_SVC_ADDR, (char *)&address);
	printf("svc %d %d\n", yes, address.len);
	yes = clnt_control(client, CLGET_TIMEOUT, (char *)&time);
	printf("timeout %d %ld\n", yes, (long)time.tv_sec);
	add(client, "a call", 0);
	yes = clnt_control(client, CLGET_TIMEOUT, (char *)&time);
	printf("timeout %d %ld\n", yes, (long)time.tv_sec);
	time.tv_usec = 2000000;
	printf("no time %d\n", clnt_control(client, CLSET_TIMEOUT, (char *)&time));
	printf("no pointer %d\n", clnt_control(client, CLSET_TIMEOUT, NULL));
	printf("unknown %d\n", clnt_control(client, 999, (char *)&time));
	yes = clnt_control(client, CLGET_VERS, (char *)&vers);
	printf("version %d %lu\n", yes, (u_long)vers);
	yes = clnt_control(client, CLGET_PROG, (char *)&program);
	printf("program %d %lx\n", yes, (u_long)program);
	vers = 99;
	printf("set version %d\n", clnt_control(client, CLSET_VERS, (char *)&vers));
	add(client, "another version", 1);
	program = OTHER_PROGRAM;
	printf("set program %d\n", clnt_control(client, CLSET_PROG, (char *)&program));
	add(client, "another program", 2);
	program = PROGRAM;
	vers = version;
	printf("set back %d\n", clnt_control(client, CLSET_PROG, (char *)&program) &&
	    clnt_control(client, CLSET_VERS, (char *)&vers));
	add(client, "set back", 3);
}

static int64_t
milliseconds(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static void
times(int type, int port, int version)
{
	CLIENT *client = client_of(type, port, version);
	struct timeval short_time = {0, 300000}, none = {0, 0};
	int number = 1, result = -1;
	int64_t began = milliseconds();

	say(client, "silent", clnt_call(client, SILENT, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&result, short_time));
	int64_t took = milliseconds() - began;
	printf("  %s\n", took >= 290 && took < 18000 ? "in time" : "early or late");
	clnt_destroy(client);
	client = client_of(type, port, version);
	say(client, "no time", clnt_call(client, ADD, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&result, none));
	add(client, "after no time", 2);
	printf("set %d\n", clnt_control(client, CLSET_TIMEOUT, (char *)&short_time));
	began = milliseconds();
	say(client, "silent", clnt_call(client, SILENT, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&result, patience));
	printf("  %s\n", milliseconds() - began < 18000 ? "in time" : "late");
	clnt_destroy(client);
}

/* Calls that are sent and not waited for, and one that is. */
static void
batch(CLIENT *client)
{
	struct timeval none = {0, 0};
	int number = 1, result = -1;

	for (int i = 0; i < 10; i++) {
		enum clnt_stat status = clnt_call(client, BATCHED, (xdrproc_t)xdr_int, (char *)&number, NULL, NULL, none);
		if (i == 0)
			say(client, "batched", status);
	}
	say(client, "count", clnt_call(client, COUNT, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int, (char *)&result,
	    patience));
	printf("  %d\n", result);
}

static void
wrong(CLIENT *client)
{
	int number = 1;
	char *text = NULL;

	say(client, "arguments", clnt_call(client, ADD, (xdrproc_t)xdr_refused, (char *)&number, (xdrproc_t)xdr_int,
	    (char *)&number, patience));
	add(client, "after arguments", 1);
	say(client, "result", clnt_call(client, ADD, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_text,
	    (char *)&text, patience));
	add(client, "after result", 2);
	say(client, "no arguments", clnt_call(client, ADD, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int,
	    (char *)&number, patience));
	add(client, "after no arguments", 3);
	say(client, "short result", clnt_call(client, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int,
	    (char *)&number, patience));
	add(client, "after short result", 4);
}

/* A child calls over the connection of its parent, which goes on afterwards. */
static void
forked(CLIENT *client)
{
	fflush(stdout);
	pid_t child = fork();
	int status;

	REQUIRE(child >= 0);
	if (child == 0) {
		add(client, "child", 10);
		clnt_destroy(client);
		fflush(stdout);
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	add(client, "parent", 20);
}

/* What is left of a program's own socket. */
static void
kept_socket(int port)
{
	struct sockaddr_in at = at_port(port);
	int fd = RPC_ANYSOCK;
	CLIENT *client = clnttcp_create(&at, PROGRAM, VERSION, &fd, 0, 0);

	REQUIRE(client != NULL && fd >= 0);
	add(client, "own socket", 1);
	printf("keep %d\n", clnt_control(client, CLSET_FD_NCLOSE, NULL));
	clnt_destroy(client);
	socklen_t length = sizeof at;
	printf("still there %d\n", getpeername(fd, (struct sockaddr *)&at, &length) == 0);
	client = clnttcp_create(&at, PROGRAM, VERSION, &fd, 0, 0);
	REQUIRE(client != NULL);
	add(client, "again", 2);
	clnt_destroy(client);
	printf("the program's %d\n", fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

/* -- a credential that neither libtirpc nor Tenon has -- */

static void
next_verifier(AUTH *auth)
{
	(void)auth;
}

static bool_t
marshal(AUTH *auth, XDR *xdrs)
{
	return xdr_opaque_auth(xdrs, &auth->ah_cred) && xdr_opaque_auth(xdrs, &auth->ah_verf);
}

static bool_t
validate(AUTH *auth, struct opaque_auth *verifier)
{
	return (void)auth, (void)verifier, TRUE;
}

static bool_t
refresh(AUTH *auth, void *message)
{
	return (void)auth, (void)message, FALSE;
}

static bool_t
wrap(AUTH *auth, XDR *xdrs, xdrproc_t routine, caddr_t value)
{
	return (void)auth, routine(xdrs, value);
}

static void
other_credential(CLIENT *client)
{
	struct auth_ops operations = {next_verifier, marshal, validate, refresh, next_verifier, wrap, wrap};
	AUTH other = { .ah_cred = { 4711, "body", 4 }, .ah_ops = &operations };
	AUTH *before = client->cl_auth;

	add(client, "known credential", 1);
	client->cl_auth = &other;
	add(client, "other credential", 2);
	client->cl_auth = before;
	add(client, "known again", 3);
	control(client, VERSION);
}

static void
created(const char *what, CLIENT *client)
{
	if (client == NULL) {
		printf("%s: %s\n", what, clnt_spcreateerror(what));
		return;
	}
#ifdef TENON_TIRPC_H
	REQUIRE(tenon_clnt_is_one(client));
#endif
	printf("%s: netid %s\n", what, client->cl_netid);
	add(client, what, 1);
	clnt_destroy(client);
}

static int
by_text(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* What rpcbind knows of the programs, but for the ports. */
static void
announced(void)
{
	struct netconfig *network = getnetconfigent("tcp");
	char *lines[40];
	int count = 0;

	REQUIRE(network != NULL);
	for (rpcblist *each = rpcb_getmaps(network, "localhost"); each != NULL; each = each->rpcb_next) {
		char line[200];
		if (each->rpcb_map.r_prog != PROGRAM && each->rpcb_map.r_prog != OTHER_PROGRAM)
			continue;
		snprintf(line, sizeof line, "%lx.%lu %s %s", (u_long)each->rpcb_map.r_prog, (u_long)each->rpcb_map.r_vers,
		    each->rpcb_map.r_netid, each->rpcb_map.r_owner);
		lines[count++] = strdup(line);
		REQUIRE(count < 40);
	}
	qsort(lines, count, sizeof *lines, by_text);
	for (int i = 0; i < count; i++)
		puts(lines[i]);
	freenetconfigent(network);
}

static void
by_rpcbind(void)
{
	struct timeval limit = {5, 0};
	rpcvers_t version = 0;

	announced();
	created("tcp", clnt_create("localhost", PROGRAM, VERSION, "tcp"));
	created("timed", clnt_create_timed("127.0.0.1", PROGRAM, VERSION, "tcp", &limit));
	created("udp", clnt_create("localhost", OTHER_PROGRAM, VERSION, "udp"));
	created("not over udp", clnt_create("localhost", PROGRAM, VERSION, "udp"));
	created("not over tcp", clnt_create("localhost", OTHER_PROGRAM, VERSION, "tcp"));
	created("unregistered version", clnt_create("localhost", PROGRAM, 99, "tcp"));
	created("unregistered program", clnt_create("localhost", PROGRAM + 99, 1, "tcp"));
	created("unknown host", clnt_create("no.such.host.invalid", PROGRAM, VERSION, "tcp"));
	created("unknown network", clnt_create("localhost", PROGRAM, VERSION, "nonsense"));
	created("one of two", clnt_create_vers("localhost", PROGRAM, &version, 1, 9, "tcp"));
	printf("version %lu\n", (u_long)version);
	created("none of them", clnt_create_vers("localhost", PROGRAM, &version, 8, 9, "tcp"));
	struct sockaddr_in at = at_port(0);
	int fd = RPC_ANYSOCK;
	created("by address", clnttcp_create(&at, PROGRAM, VERSION, &fd, 0, 0));
	fd = RPC_ANYSOCK;
	at = at_port(0);
	created("by address", clntudp_create(&at, OTHER_PROGRAM, VERSION, limit, &fd));
}

static void
everything(int type, int port, int version)
{
	CLIENT *client = client_of(type, port, version);

	printf("-- %s\n", type == SOCK_STREAM ? "tcp" : "udp");
	add(client, "add", 41);
	text_of(client, "twice", TWICE, 0);
	statuses(client);
	sizes(client, type == SOCK_STREAM ? 3000000 : 8000);
	credentials(client);
	control(client, version);
	wrong(client);
	forked(client);
	clnt_destroy(client);
	times(type, port, version);
	client = client_of(type, port, version);
	if (type == SOCK_STREAM)
		batch(client);
	clnt_destroy(client);
}

int
main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	int tcp = atoi(argv[2]), udp = atoi(argv[3]);
	const char *what = argv[1];

	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	if (strcmp(what, "everything") == 0) {
		everything(SOCK_STREAM, tcp, VERSION);
		kept_socket(tcp);
		if (udp != 0)
			everything(SOCK_DGRAM, udp, NEXT_VERSION);
		return 0;
	}
	if (strcmp(what, "datagram") == 0) {
		CLIENT *client = client_of(SOCK_DGRAM, udp, VERSION);
		struct timeval retry = {0, 100000}, limit = {1, 0};
		REQUIRE(clnt_control(client, CLSET_RETRY_TIMEOUT, (char *)&retry));
		REQUIRE(clnt_control(client, CLSET_TIMEOUT, (char *)&limit));
		add(client, "datagram", 1);
		clnt_destroy(client);
		return 0;
	}
	if (strcmp(what, "rpcbind") == 0) {
		by_rpcbind();
		return 0;
	}
	CLIENT *client = client_of(SOCK_STREAM, tcp, VERSION);
	if (strcmp(what, "basic") == 0) {
		add(client, "add", 1);
		sizes(client, 100000);
		statuses(client);
		credentials(client);
	} else if (strcmp(what, "numbers") == 0) {
		u_int32_t xid = 7;
		add(client, "a call", 1);
		printf("get %d\n", clnt_control(client, CLGET_XID, (char *)&xid));
		printf("set %d\n", clnt_control(client, CLSET_XID, (char *)&xid));
	} else if (strcmp(what, "signal") == 0) {
		pid_t child = fork();
		int status;
		REQUIRE(child >= 0);
		if (child == 0) {
			signal(SIGPIPE, SIG_DFL);
			client = client_of(SOCK_STREAM, tcp, VERSION);
			status_of(client, "exit", EXIT);
			sleep(1);
			add(client, "closed", 1);
			add(client, "closed again", 2);
			_exit(0);
		}
		REQUIRE(waitpid(child, &status, 0) == child);
		printf("signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	} else if (strcmp(what, "lost") == 0) {
		struct timeval short_time = {0, 300000};
		int number = 1;
		say(client, "silent", clnt_call(client, SILENT, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
		    (char *)&number, short_time));
		forked(client);
	} else if (strcmp(what, "credential") == 0) {
		other_credential(client);
	} else if (strcmp(what, "later") == 0) {
		status_of(client, "later", LATER);
		add(client, "after later", 1);
	} else if (strcmp(what, "unregister") == 0) {
		status_of(client, "unregister", UNREGISTER);
		rpcvers_t version = NEXT_VERSION;
		REQUIRE(clnt_control(client, CLSET_VERS, (char *)&version));
		add(client, "forgotten", 1);
	} else if (strcmp(what, "unencodable") == 0) {
		status_of(client, "unencodable", UNENCODABLE);
	} else if (strcmp(what, "exit") == 0) {
		status_of(client, "exit", EXIT);
		sleep(1);
		add(client, "closed", 1);
		add(client, "closed again", 2);
	} else if (strcmp(what, "silence") == 0) {
		struct timeval short_time = {0, 300000};
		int number = 1;
		say(client, "silent", clnt_call(client, SILENT, (xdrproc_t)xdr_int, (char *)&number, (xdrproc_t)xdr_int,
		    (char *)&number, short_time));
		add(client, "after silence", 1);
	} else if (strcmp(what, "large") == 0) {
		int result = 0;
		struct bytes big = { BIG_MAX, calloc(1, BIG_MAX) };
		REQUIRE(big.value != NULL);
		say(client, "large", clnt_call(client, LENGTH, (xdrproc_t)xdr_big, (char *)&big, (xdrproc_t)xdr_int,
		    (char *)&result, patience));
		printf("  %d\n", result);
		free(big.value);
	}
	clnt_destroy(client);
	return 0;
}
