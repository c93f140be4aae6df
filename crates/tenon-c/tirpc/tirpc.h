/*
 * libtirpc's clients and servers with Tenon's way of moving their messages. Stubs, dispatchers and programs stay as
 * they are, and so does what they send. docs/fast.md says what differs.
 *
 * A program that includes this, as a header of `tenon rpcgen --fast` does, creates clients and servers by libtirpc's
 * names, which take Tenon's ways at once. With TENON_TIRPC_NO_NAMES defined in front, libtirpc's names are libtirpc's.
 */
#ifndef TENON_TIRPC_H
#define TENON_TIRPC_H

#include <rpc/rpc.h>

#include <tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- clients -- */

/* Returns a client whose calls are Tenon's, over the socket of THEIRS, one of libtirpc's: TCP, UDP or a Unix socket.
 * It owns THEIRS, to which it leaves what Tenon cannot do: calls with other credentials than AUTH_NONE and AUTH_SYS,
 * and calls of a child that was forked. A client that Tenon cannot use is returned as it is; NULL is NULL. */
CLIENT *tenon_clnt_adopt(CLIENT *theirs);

/* Creates a client as clnt_create does. HOST may also be an address of Tenon that speaks ONC RPC, tcp://HOST:PORT,
 * udp://HOST:PORT or unix:///PATH; then libtirpc has no part in it. */
CLIENT *tenon_clnt_create(const char *host, rpcprog_t program, rpcvers_t version, const char *transport);

/* The same, connecting for no longer than LIMIT. */
CLIENT *tenon_clnt_create_timed(const char *host, rpcprog_t program, rpcvers_t version, const char *transport,
                                const struct timeval *limit);

/* Create a client as libtirpc's functions of these names do, and adopt it. */
CLIENT *tenon_clnt_create_vers(const char *host, rpcprog_t program, rpcvers_t *version, rpcvers_t low,
                               rpcvers_t high, const char *transport);
CLIENT *tenon_clnt_create_vers_timed(const char *host, rpcprog_t program, rpcvers_t *version, rpcvers_t low,
                                     rpcvers_t high, const char *transport, const struct timeval *limit);
CLIENT *tenon_clnt_tp_create(const char *host, rpcprog_t program, rpcvers_t version,
                             const struct netconfig *network);
CLIENT *tenon_clnt_tp_create_timed(const char *host, rpcprog_t program, rpcvers_t version,
                                   const struct netconfig *network, const struct timeval *limit);
CLIENT *tenon_clnt_tli_create(int socket, const struct netconfig *network, struct netbuf *address,
                              rpcprog_t program, rpcvers_t version, u_int send, u_int receive);
CLIENT *tenon_clnt_vc_create(int socket, const struct netbuf *address, rpcprog_t program, rpcvers_t version,
                             u_int send, u_int receive);
CLIENT *tenon_clnt_dg_create(int socket, const struct netbuf *address, rpcprog_t program, rpcvers_t version,
                             u_int send, u_int receive);
CLIENT *tenon_clnttcp_create(struct sockaddr_in *address, u_long program, u_long version, int *socket,
                             u_int send, u_int receive);
CLIENT *tenon_clntudp_create(struct sockaddr_in *address, u_long program, u_long version, struct timeval wait,
                             int *socket);
CLIENT *tenon_clntudp_bufcreate(struct sockaddr_in *address, u_long program, u_long version,
                                struct timeval wait, int *socket, u_int send, u_int receive);
CLIENT *tenon_clntunix_create(struct sockaddr_un *address, u_long program, u_long version, int *socket,
                              u_int send, u_int receive);

/* Whether its calls are Tenon's. */
bool_t tenon_clnt_is_one(const CLIENT *client);

/* -- servers -- */

/* Has a stream transport of libtirpc's, one that listens or one that is connected, receive and send in Tenon's way, and
 * returns it. Others are returned as they are; NULL is NULL. */
SVCXPRT *tenon_svc_adopt(SVCXPRT *transport);

/* Create a transport as libtirpc's functions of these names do, and adopt it. */
SVCXPRT *tenon_svc_tp_create(void (*dispatcher)(struct svc_req *, SVCXPRT *), rpcprog_t program,
                             rpcvers_t version, const struct netconfig *network);
SVCXPRT *tenon_svc_tli_create(int socket, const struct netconfig *network, const struct t_bind *at,
                              u_int send, u_int receive);
SVCXPRT *tenon_svc_vc_create(int socket, u_int send, u_int receive);
SVCXPRT *tenon_svc_fd_create(int socket, u_int send, u_int receive);
SVCXPRT *tenon_svctcp_create(int socket, u_int send, u_int receive);
SVCXPRT *tenon_svcfd_create(int socket, u_int send, u_int receive);
SVCXPRT *tenon_svcunix_create(int socket, u_int send, u_int receive, char *path);
SVCXPRT *tenon_svcunixfd_create(int socket, u_int send, u_int receive);

/* Creates a transport for each network of a kind, as svc_create does; returns how many. */
int tenon_svc_create(void (*dispatcher)(struct svc_req *, SVCXPRT *), rpcprog_t program,
                     rpcvers_t version, const char *kind);

/* Serves as svc_run does, but looks for the next call for some microseconds before it sleeps, if the process may use
 * several processors. */
void tenon_svc_run(void);

/* Adds one of rpcgen's dispatchers to a server of tenon.h, whose threads call it. Unless it is reentrant (-M), one call
 * is executed at a time, of all dispatchers together. */
bool tenon_svc_add(tenon_server *server, rpcprog_t program, rpcvers_t version,
                   void (*dispatcher)(struct svc_req *, SVCXPRT *), bool is_reentrant,
                   tenon_error *error);

#ifdef __cplusplus
}
#endif

#ifndef TENON_TIRPC_NO_NAMES

#undef clnt_create
#undef clnt_create_timed
#undef clnt_create_vers
#undef clnt_create_vers_timed
#undef clnt_tp_create
#undef clnt_tp_create_timed
#undef clnt_tli_create
#undef clnt_vc_create
#undef clnt_dg_create
#undef clnttcp_create
#undef clntudp_create
#undef clntudp_bufcreate
#undef clntunix_create
#undef svc_create
#undef svc_tp_create
#undef svc_tli_create
#undef svc_vc_create
#undef svc_fd_create
#undef svctcp_create
#undef svcfd_create
#undef svcunix_create
#undef svcunixfd_create
#undef svc_run
#define clnt_create tenon_clnt_create
#define clnt_create_timed tenon_clnt_create_timed
#define clnt_create_vers tenon_clnt_create_vers
#define clnt_create_vers_timed tenon_clnt_create_vers_timed
#define clnt_tp_create tenon_clnt_tp_create
#define clnt_tp_create_timed tenon_clnt_tp_create_timed
#define clnt_tli_create tenon_clnt_tli_create
#define clnt_vc_create tenon_clnt_vc_create
#define clnt_dg_create tenon_clnt_dg_create
#define clnttcp_create tenon_clnttcp_create
#define clntudp_create tenon_clntudp_create
#define clntudp_bufcreate tenon_clntudp_bufcreate
#define clntunix_create tenon_clntunix_create
#define svc_create tenon_svc_create
#define svc_tp_create tenon_svc_tp_create
#define svc_tli_create tenon_svc_tli_create
#define svc_vc_create tenon_svc_vc_create
#define svc_fd_create tenon_svc_fd_create
#define svctcp_create tenon_svctcp_create
#define svcfd_create tenon_svcfd_create
#define svcunix_create tenon_svcunix_create
#define svcunixfd_create tenon_svcunixfd_create
#define svc_run tenon_svc_run

#endif

#endif
