/* What creates clients and transports, by libtirpc's names: libtirpc creates them, and they are taken over. */
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <sys/un.h>

CLIENT *tenon_clnt_create_vers(const char *host, rpcprog_t program, rpcvers_t *version, rpcvers_t low,
                               rpcvers_t high, const char *transport) {
    return tenon_clnt_adopt(clnt_create_vers(host, program, version, low, high, transport));
}

CLIENT *tenon_clnt_create_vers_timed(const char *host, rpcprog_t program, rpcvers_t *version, rpcvers_t low,
                                     rpcvers_t high, const char *transport, const struct timeval *limit) {
    return tenon_clnt_adopt(clnt_create_vers_timed(host, program, version, low, high, transport, limit));
}

CLIENT *tenon_clnt_tp_create(const char *host, rpcprog_t program, rpcvers_t version,
                             const struct netconfig *network) {
    return tenon_clnt_adopt(clnt_tp_create(host, program, version, network));
}

CLIENT *tenon_clnt_tp_create_timed(const char *host, rpcprog_t program, rpcvers_t version,
                                   const struct netconfig *network, const struct timeval *limit) {
    return tenon_clnt_adopt(clnt_tp_create_timed(host, program, version, network, limit));
}

CLIENT *tenon_clnt_tli_create(int socket, const struct netconfig *network, struct netbuf *address,
                              rpcprog_t program, rpcvers_t version, u_int send, u_int receive) {
    return tenon_clnt_adopt(clnt_tli_create(socket, network, address, program, version, send, receive));
}

CLIENT *tenon_clnt_vc_create(int socket, const struct netbuf *address, rpcprog_t program, rpcvers_t version,
                             u_int send, u_int receive) {
    return tenon_clnt_adopt(clnt_vc_create(socket, address, program, version, send, receive));
}

CLIENT *tenon_clnt_dg_create(int socket, const struct netbuf *address, rpcprog_t program, rpcvers_t version,
                             u_int send, u_int receive) {
    return tenon_clnt_adopt(clnt_dg_create(socket, address, program, version, send, receive));
}

CLIENT *tenon_clnttcp_create(struct sockaddr_in *address, u_long program, u_long version, int *socket,
                             u_int send, u_int receive) {
    return tenon_clnt_adopt(clnttcp_create(address, program, version, socket, send, receive));
}

CLIENT *tenon_clntudp_create(struct sockaddr_in *address, u_long program, u_long version, struct timeval wait,
                             int *socket) {
    return tenon_clnt_adopt(clntudp_create(address, program, version, wait, socket));
}

CLIENT *tenon_clntudp_bufcreate(struct sockaddr_in *address, u_long program, u_long version,
                                struct timeval wait, int *socket, u_int send, u_int receive) {
    return tenon_clnt_adopt(clntudp_bufcreate(address, program, version, wait, socket, send, receive));
}

CLIENT *tenon_clntunix_create(struct sockaddr_un *address, u_long program, u_long version, int *socket,
                              u_int send, u_int receive) {
    return tenon_clnt_adopt(clntunix_create(address, program, version, socket, send, receive));
}

SVCXPRT *tenon_svc_tp_create(void (*dispatcher)(struct svc_req *, SVCXPRT *), rpcprog_t program,
                             rpcvers_t version, const struct netconfig *network) {
    return tenon_svc_adopt(svc_tp_create(dispatcher, program, version, network));
}

SVCXPRT *tenon_svc_tli_create(int socket, const struct netconfig *network, const struct t_bind *at,
                              u_int send, u_int receive) {
    return tenon_svc_adopt(svc_tli_create(socket, network, at, send, receive));
}

SVCXPRT *tenon_svc_vc_create(int socket, u_int send, u_int receive) {
    return tenon_svc_adopt(svc_vc_create(socket, send, receive));
}

SVCXPRT *tenon_svc_fd_create(int socket, u_int send, u_int receive) {
    return tenon_svc_adopt(svc_fd_create(socket, send, receive));
}

SVCXPRT *tenon_svctcp_create(int socket, u_int send, u_int receive) {
    return tenon_svc_adopt(svctcp_create(socket, send, receive));
}

SVCXPRT *tenon_svcfd_create(int socket, u_int send, u_int receive) {
    return tenon_svc_adopt(svcfd_create(socket, send, receive));
}

SVCXPRT *tenon_svcunix_create(int socket, u_int send, u_int receive, char *path) {
    return tenon_svc_adopt(svcunix_create(socket, send, receive, path));
}

SVCXPRT *tenon_svcunixfd_create(int socket, u_int send, u_int receive) {
    return tenon_svc_adopt(svcunixfd_create(socket, send, receive));
}
