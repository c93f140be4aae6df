/*
 * The run time of Tenon behind libtirpc's own interface: clients that are a CLIENT, and servers that call the
 * dispatchers which rpcgen makes. Stubs, dispatchers and programs stay as they are, and so does what they send.
 *
 * Whoever includes this creates clients and servers of Tenon by libtirpc's names. With TENON_TIRPC_NO_NAMES
 * defined in front, libtirpc's names are libtirpc's.
 */
#ifndef TENON_TIRPC_H
#define TENON_TIRPC_H

#include <rpc/rpc.h>

#include <tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a client of Tenon as clnt_create does. `host` may also be an address of Tenon that speaks ONC RPC: with a
 * port nobody is asked for it. Transports that Tenon has not ("netpath", "ticlts") are libtirpc's. */
CLIENT *tenon_clnt_create(const char *host, rpcprog_t program, rpcvers_t version,
                          const char *transport);

/* The same, connecting for no longer than `limit`. */
CLIENT *tenon_clnt_create_timed(const char *host, rpcprog_t program, rpcvers_t version,
                                const char *transport, const struct timeval *limit);

/* Whether it is one of them. */
bool_t tenon_clnt_is_one(const CLIENT *client);

/* Adds one of rpcgen's dispatchers to a server. Unless it is reentrant (-M), one call is executed at a time,
 * of all dispatchers together. */
bool tenon_svc_add(tenon_server *server, rpcprog_t program, rpcvers_t version,
                   void (*dispatcher)(struct svc_req *, SVCXPRT *), bool is_reentrant,
                   tenon_error *error);

/* A server for programs that have one: what svctcp_create, svcudp_create, svc_register, svc_reg, svc_run and
 * svc_exit do. A socket that is there already, as one of inetd's, is served by libtirpc, and so is then everything
 * else. It listens when it runs: before, xp_port is 0. */
SVCXPRT *tenon_svctcp_create(int socket, u_int send, u_int receive);
SVCXPRT *tenon_svcudp_create(int socket);
bool_t tenon_svc_register(SVCXPRT *transport, rpcprog_t program, rpcvers_t version,
                          void (*dispatcher)(struct svc_req *, SVCXPRT *), rpcprot_t protocol,
                          bool is_reentrant);
bool_t tenon_svc_reg(SVCXPRT *transport, rpcprog_t program, rpcvers_t version,
                     void (*dispatcher)(struct svc_req *, SVCXPRT *), const struct netconfig *network,
                     bool is_reentrant);
void tenon_svc_run(void);
void tenon_svc_exit(void);

/* Listens at an address of Tenon's, as svctcp_create does at any port. */
SVCXPRT *tenon_svc_listen(const char *address);

/* The server itself: to start it before it runs, to ask it for its addresses, to add what is not rpcgen's. */
tenon_server *tenon_svc_server(void);

#ifndef TENON_TIRPC_NO_NAMES

#undef clnt_create
#undef clnt_create_timed
#undef svctcp_create
#undef svcudp_create
#undef svc_register
#undef svc_reg
#undef svc_run
#undef svc_exit
#define clnt_create tenon_clnt_create
#define clnt_create_timed tenon_clnt_create_timed
#define svctcp_create tenon_svctcp_create
#define svcudp_create tenon_svcudp_create
#ifdef TENON_TIRPC_REENTRANT
#define svc_register(transport, program, version, dispatcher, protocol) \
    tenon_svc_register(transport, program, version, dispatcher, protocol, true)
#define svc_reg(transport, program, version, dispatcher, network) \
    tenon_svc_reg(transport, program, version, dispatcher, network, true)
#else
#define svc_register(transport, program, version, dispatcher, protocol) \
    tenon_svc_register(transport, program, version, dispatcher, protocol, false)
#define svc_reg(transport, program, version, dispatcher, network) \
    tenon_svc_reg(transport, program, version, dispatcher, network, false)
#endif
#define svc_run tenon_svc_run
#define svc_exit tenon_svc_exit

#endif

#ifdef __cplusplus
}
#endif

#endif
