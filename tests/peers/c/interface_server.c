/*
 * interface_server LOOP CREATE: a server of by_hand.h. LOOP says how it waits (run, set, poll, common), with "fork" in
 * front (fork-set) in a process for each call; CREATE how its transports are made. It prints the ports of TCP and UDP,
 * then "ready", and at its end what ended it.
 */
#include "by_hand.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpc_com.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int forks;
static int batched;
static volatile int has_exited;

/* The call that is answered later. */
static SVCXPRT *later;

static bool_t
xdr_unencodable(XDR *xdrs, void *value)
{
	int first = 1;

	(void)value;
	(void)xdr_int(xdrs, &first);
	return FALSE;
}

static bool_t
xdr_text(XDR *xdrs, char **text)
{
	return xdr_string(xdrs, text, TEXT_MAX);
}

static void
answer_text(SVCXPRT *transport, char *text)
{
	REQUIRE(svc_sendreply(transport, (xdrproc_t)xdr_text, &text));
}

static void
answer_number(SVCXPRT *transport, int number)
{
	REQUIRE(svc_sendreply(transport, (xdrproc_t)xdr_int, &number));
}

static void
add(SVCXPRT *transport)
{
	int number;

	if (!svc_getargs(transport, (xdrproc_t)xdr_int, &number)) {
		svcerr_decode(transport);
		return;
	}
	answer_number(transport, number + 1);
}

static void
twice(SVCXPRT *transport)
{
	char text[TEXT_MAX];
	int first = -1, second = -1, third = -1;
	bool_t has_first = svc_getargs(transport, (xdrproc_t)xdr_int, &first);
	bool_t has_second = svc_getargs(transport, (xdrproc_t)xdr_int, &second);
	bool_t has_third = svc_getargs(transport, (xdrproc_t)xdr_int, &third);

	snprintf(text, sizeof text, "%d:%d %d:%d %d", has_first, first, has_second, second, has_third);
	answer_text(transport, text);
}

static const char *
address_of(const struct netbuf *at, int *port)
{
	static char text[INET_ADDRSTRLEN];
	const struct sockaddr_in *in = at->buf;

	*port = 0;
	if (at->buf == NULL)
		return "nowhere";
	if (in->sin_family == AF_INET) {
		*port = ntohs(in->sin_port);
		return inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
	}
	return in->sin_family == AF_UNIX ? "unix" : "?";
}

/* The port of the peer is the caller's own, which tells whether it is right. */
static void
describe_caller(struct svc_req *request, SVCXPRT *transport)
{
	char text[TEXT_MAX], user[200] = "";
	struct sockaddr_in at;
	socklen_t length = sizeof at;
	int port, old_port = ntohs(((struct sockaddr_in *)&transport->xp_raddr)->sin_port);
	const char *from = address_of(svc_getrpccaller(transport), &port);

	memset(&at, 0, sizeof at);
	REQUIRE(getsockname(transport->xp_fd, (struct sockaddr *)&at, &length) == 0);
	if (request->rq_cred.oa_flavor == AUTH_SYS) {
		const struct authunix_parms *unix_user = request->rq_clntcred;
		snprintf(user, sizeof user, "%s %u %u %u:%u", unix_user->aup_machname, unix_user->aup_uid,
		    unix_user->aup_gid, unix_user->aup_len, unix_user->aup_len > 0 ? unix_user->aup_gids[0] : 0);
	}
	snprintf(text, sizeof text, "program %x.%u.%u flavor %d of %u bytes [%s] from %s %d %d addrlen %d netid %s verf %d own %s",
	    request->rq_prog, request->rq_vers, request->rq_proc, request->rq_cred.oa_flavor, request->rq_cred.oa_length, user,
	    from, port, port == old_port, transport->xp_addrlen, transport->xp_netid == NULL ? "-" : transport->xp_netid,
	    transport->xp_verf.oa_flavor, inet_ntoa(at.sin_addr));
	answer_text(transport, text);
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

static void
answer_big(SVCXPRT *transport)
{
	struct bytes big = { 0, NULL };

	REQUIRE(svc_getargs(transport, (xdrproc_t)xdr_int, &big.length));
	big.value = malloc(big.length + 1);
	REQUIRE(big.value != NULL);
	memset(big.value, 'b', big.length);
	REQUIRE(svc_sendreply(transport, (xdrproc_t)xdr_big, &big));
	free(big.value);
}

static void
measure(SVCXPRT *transport)
{
	struct bytes big = { 0, NULL };

	if (!svc_getargs(transport, (xdrproc_t)xdr_big, &big)) {
		svcerr_decode(transport);
		return;
	}
	answer_number(transport, big.length);
	REQUIRE(svc_freeargs(transport, (xdrproc_t)xdr_big, &big));
}

static void
execute(struct svc_req *request, SVCXPRT *transport)
{
	switch (request->rq_proc) {
	case NULLPROC:
		REQUIRE(svc_sendreply(transport, (xdrproc_t)xdr_void, NULL));
		return;
	case ADD: add(transport); return;
	case TWICE: twice(transport); return;
	case PROGVERS: svcerr_progvers(transport, 5, 9); return;
	case NOPROG: svcerr_noprog(transport); return;
	case SYSTEMERR: svcerr_systemerr(transport); return;
	case REJECTED: svcerr_auth(transport, AUTH_REJECTEDCRED); return;
	case WEAKAUTH: svcerr_weakauth(transport); return;
	case DECODE: svcerr_decode(transport); return;
	case SILENT: return;
	case LATER: later = transport; return;
	case CALLER: describe_caller(request, transport); return;
	case BIG: answer_big(transport); return;
	case UNREGISTER:
		svc_unreg(PROGRAM, NEXT_VERSION);
		answer_number(transport, 0);
		return;
	case EXIT:
		answer_number(transport, 0);
		has_exited = 1;
		svc_exit();
		return;
	case LENGTH: measure(transport); return;
	case COUNT: answer_number(transport, batched); return;
	case BATCHED: batched++; return;
	case UNENCODABLE:
		if (!svc_sendreply(transport, (xdrproc_t)xdr_unencodable, NULL))
			svcerr_systemerr(transport);
		return;
	default: svcerr_noproc(transport);
	}
}

static void
dispatch(struct svc_req *request, SVCXPRT *transport)
{
	pid_t child;

	/* What changes the server is its own. */
	if (!forks || request->rq_proc >= UNREGISTER) {
		execute(request, transport);
		return;
	}
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		execute(request, transport);
		exit(0);
	}
}

/* -- transports -- */

static int
bound(int type)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0);

	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
	return fd;
}

static int
port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t length = sizeof at;

	REQUIRE(getsockname(fd, (struct sockaddr *)&at, &length) == 0);
	return ntohs(at.sin_port);
}

static SVCXPRT *
by_network(const char *name)
{
	struct netconfig *network = getnetconfigent(name);
	SVCXPRT *transport;

	REQUIRE(network != NULL);
	transport = svc_tli_create(RPC_ANYFD, network, NULL, 0, 0);
	freenetconfigent(network);
	return transport;
}

static void
create(const char *how, SVCXPRT **tcp, SVCXPRT **udp, int ports[2])
{
	int fd;

	if (strcmp(how, "old") == 0) {
		*tcp = svctcp_create(RPC_ANYSOCK, 0, 0);
		*udp = svcudp_create(RPC_ANYSOCK);
	} else if (strcmp(how, "tli") == 0) {
		*tcp = by_network("tcp");
		*udp = by_network("udp");
	} else {
		REQUIRE(strcmp(how, "socket") == 0);
		fd = bound(SOCK_STREAM);
		REQUIRE(listen(fd, 64) == 0);
		*tcp = svc_vc_create(fd, 0, 0);
		*udp = svc_dg_create(bound(SOCK_DGRAM), 0, 0);
	}
	REQUIRE(*tcp != NULL && *udp != NULL);
	ports[0] = port_of((*tcp)->xp_fd);
	ports[1] = port_of((*udp)->xp_fd);
	if (strcmp(how, "old") == 0)
		REQUIRE((*tcp)->xp_port == ports[0] && (*udp)->xp_port == ports[1]);
}

/* A connection that is there already, as inetd hands it over: the server takes the first that comes. */
static void
serve_connected(void)
{
	int fd, listener = bound(SOCK_STREAM);

	REQUIRE(listen(listener, 1) == 0);
	printf("%d 0\nready\n", port_of(listener));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	REQUIRE(fd >= 0 && svcfd_create(fd, 0, 0) != NULL);
	close(listener);
}

/* As a server that rpcbind knows, or is not to know. */
static void
serve_announced(const char *how)
{
	SVCXPRT *tcp, *udp;

	if (strcmp(how, "create") == 0) {
		printf("%d networks\n", svc_create(dispatch, PROGRAM, VERSION, "tcp"));
		printf("%d networks\n", svc_create(dispatch, PROGRAM, NEXT_VERSION, "tcp"));
		printf("%d networks\n", svc_create(dispatch, OTHER_PROGRAM, VERSION, "udp"));
		printf("%d networks\n", svc_create(dispatch, OTHER_PROGRAM, VERSION, "nonsense"));
	} else {
		int is_told = strcmp(how, "tcp-only") == 0;
		tcp = svctcp_create(RPC_ANYSOCK, 0, 0);
		udp = svcudp_create(RPC_ANYSOCK);
		REQUIRE(tcp != NULL && udp != NULL);
		REQUIRE(svc_register(tcp, PROGRAM, VERSION, dispatch, is_told ? IPPROTO_TCP : 0));
		REQUIRE(svc_register(udp, OTHER_PROGRAM, VERSION, dispatch, is_told ? IPPROTO_UDP : 0));
	}
	puts("ready");
	fflush(stdout);
}

/* -- loops -- */

static void
answer_later(void)
{
	SVCXPRT *transport = later;

	later = NULL;
	if (transport != NULL)
		answer_number(transport, 77);
}

static void
wait_by_set(void)
{
	fd_set ready;

	while (!has_exited) {
		ready = svc_fdset;
		if (select(FD_SETSIZE, &ready, NULL, NULL, NULL) <= 0)
			continue;
		svc_getreqset(&ready);
		answer_later();
	}
}

static void
wait_by_poll(void)
{
	while (!has_exited) {
		int count = svc_max_pollfd;
		struct pollfd *fds = calloc(count, sizeof *fds);

		REQUIRE(fds != NULL);
		for (int i = 0; i < count; i++)
			fds[i] = svc_pollfd[i];
		int ready = poll(fds, count, -1);
		if (ready > 0)
			svc_getreq_poll(fds, ready);
		free(fds);
		answer_later();
	}
}

static void
wait_by_descriptor(void)
{
	while (!has_exited) {
		fd_set ready = svc_fdset;

		if (select(FD_SETSIZE, &ready, NULL, NULL, NULL) <= 0)
			continue;
		for (int fd = 0; fd < FD_SETSIZE && !has_exited; fd++)
			if (FD_ISSET(fd, &ready))
				svc_getreq_common(fd);
		answer_later();
	}
}

int
main(int argc, char **argv)
{
	SVCXPRT *tcp, *udp;
	const char *loop;
	int ports[2];

	REQUIRE(argc == 3);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	if (getenv("RECORD_MAX") != NULL) {
		int limit = atoi(getenv("RECORD_MAX"));
		REQUIRE(rpc_control(RPC_SVC_CONNMAXREC_SET, &limit));
	}
	loop = argv[1];
	forks = strncmp(loop, "fork-", 5) == 0;
	loop += forks ? 5 : 0;
	if (strcmp(argv[2], "connected") == 0) {
		serve_connected();
		tcp = svcudp_create(RPC_ANYSOCK);
		REQUIRE(svc_register(tcp, PROGRAM, VERSION, dispatch, 0));
	} else if (strncmp(argv[2], "rpcbind-", 8) == 0) {
		serve_announced(argv[2] + 8);
	} else {
		create(argv[2], &tcp, &udp, ports);
		REQUIRE(svc_register(tcp, PROGRAM, VERSION, dispatch, 0));
		REQUIRE(svc_reg(udp, PROGRAM, NEXT_VERSION, dispatch, NULL));
		printf("%d %d\nready\n", ports[0], ports[1]);
		fflush(stdout);
	}
	if (strcmp(loop, "run") == 0)
		svc_run();
	else if (strcmp(loop, "set") == 0)
		wait_by_set();
	else if (strcmp(loop, "poll") == 0)
		wait_by_poll();
	else
		wait_by_descriptor();
	return has_exited ? 0 : 1;
}
