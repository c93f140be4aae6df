/* Dispatchers of rpcgen's, called by a server of Tenon's. */
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

typedef void (*dispatcher)(struct svc_req *, SVCXPRT *);

/* A dispatcher that was added to a server. */
typedef struct service {
    rpcprog_t program;
    rpcvers_t version;
    dispatcher dispatch;
    bool is_reentrant;
    struct service *next;
} service;

/* A call that a dispatcher executes; the transport is what the dispatcher sees of it. */
typedef struct call {
    SVCXPRT transport;
    tenon_decoder *arguments;
    tenon_encoder *result;
    tenon_request *request;
    bool is_replied, is_done;
} call;

/* Dispatchers that are not reentrant have one result for all calls. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static call *call_of(SVCXPRT *transport) { return (call *)transport->xp_p1; }

static bool_t receive(SVCXPRT *transport, struct rpc_msg *message) { return (void)transport, (void)message, FALSE; }

static enum xprt_stat status(SVCXPRT *transport) { return (void)transport, XPRT_IDLE; }

static void destroy(SVCXPRT *transport) { (void)transport; }

static bool_t control(SVCXPRT *transport, const u_int what, void *with) {
    return (void)transport, (void)what, (void)with, FALSE;
}

static bool_t get_arguments(SVCXPRT *transport, xdrproc_t routine, void *arguments) {
    tenon_decoder *in = call_of(transport)->arguments;
    XDR xdrs;
    tenon_xdr_read(&xdrs, in);
    bool_t is_read = routine(&xdrs, arguments);
    tenon_xdr_took(&xdrs, in);
    /* As libtirpc does: dispatchers give back what they got, but not what they got in part. */
    if (!is_read) xdr_free(routine, (char *)arguments);
    return is_read;
}

static bool_t free_arguments(SVCXPRT *transport, xdrproc_t routine, void *arguments) {
    (void)transport;
    xdr_free(routine, (char *)arguments);
    return TRUE;
}

static bool_t put_result(call *of, const struct accepted_reply *reply) {
    XDR xdrs;
    tenon_xdr_write(&xdrs, of->result);
    if (!reply->ar_results.proc(&xdrs, reply->ar_results.where)) {
        of->result->at = of->result->base;
        return FALSE;
    }
    return of->is_done = true;
}

static bool_t refuse(call *of, unsigned why) {
    (void)tenon_refuse(of->request, why, NULL);
    return TRUE;
}

static bool_t reply(SVCXPRT *transport, struct rpc_msg *message) {
    call *of = call_of(transport);
    const struct reply_body *body = &message->rm_reply;
    /* A call has one answer. */
    if (of->is_replied) return FALSE;
    if (body->rp_stat == MSG_DENIED) {
        of->is_replied = true;
        return refuse(of, TENON_ONC_AUTH + (unsigned)body->rp_rjct.rj_why);
    }
    if (body->rp_acpt.ar_stat == SUCCESS) return of->is_replied = put_result(of, &body->rp_acpt);
    of->is_replied = true;
    switch (body->rp_acpt.ar_stat) {
    case PROC_UNAVAIL: return refuse(of, TENON_NO_PROCEDURE);
    case GARBAGE_ARGS: return refuse(of, TENON_ARGUMENTS);
    default: return refuse(of, TENON_FAILED);
    }
}

static const struct xp_ops operations = {receive, status, get_arguments, reply, free_arguments, destroy};
static const struct xp_ops2 more_operations = {control};

/* Where the caller is, in all the places where programs look for it. */
static void set_caller(SVCXPRT *transport, const tenon_request *request) {
    unsigned char ip[16];
    uint16_t port = 0;
    struct sockaddr_in *four = (void *)&transport->xp_raddr;
    switch (tenon_request_ip(request, ip, &port)) {
    case 4:
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, ip, 4);
        transport->xp_addrlen = sizeof *four;
        break;
    case 16:
        transport->xp_raddr.sin6_family = AF_INET6;
        transport->xp_raddr.sin6_port = htons(port);
        memcpy(&transport->xp_raddr.sin6_addr, ip, 16);
        transport->xp_addrlen = sizeof transport->xp_raddr;
        break;
    default:
        transport->xp_raddr.sin6_family = AF_UNIX;
        transport->xp_addrlen = sizeof(sa_family_t);
    }
    transport->xp_rtaddr.buf = &transport->xp_raddr;
    transport->xp_rtaddr.len = (unsigned)transport->xp_addrlen;
    transport->xp_rtaddr.maxlen = sizeof transport->xp_raddr;
}

static void set_credential(struct svc_req *of, struct authunix_parms *user, gid_t gids[16], tenon_request *request) {
    tenon_auth_sys claim;
    if (!tenon_request_auth_sys(request, &claim)) return;
    memset(user, 0, sizeof *user);
    user->aup_time = claim.stamp;
    user->aup_machname = (char *)(uintptr_t)claim.machine;
    user->aup_uid = claim.uid;
    user->aup_gid = claim.gid;
    user->aup_len = (u_int)claim.gid_count;
    user->aup_gids = gids;
    for (size_t i = 0; i < claim.gid_count && i < 16; i++) gids[i] = claim.gids[i];
    of->rq_cred.oa_flavor = AUTH_SYS;
    of->rq_clntcred = user;
}

static bool handle(void *context, tenon_decoder *arguments, tenon_encoder *result, tenon_request *request) {
    const service *own = context;
    struct authunix_parms user;
    gid_t gids[16];
    call of;
    struct svc_req asked;
    memset(&of, 0, sizeof of);
    memset(&asked, 0, sizeof asked);
    of.arguments = arguments;
    of.result = result;
    of.request = request;
    of.transport.xp_fd = -1;
    of.transport.xp_ops = &operations;
    of.transport.xp_ops2 = &more_operations;
    of.transport.xp_netid = (char *)(uintptr_t)tenon_request_transport(request);
    of.transport.xp_p1 = &of;
    set_caller(&of.transport, request);
    asked.rq_prog = (u_int32_t)own->program;
    asked.rq_vers = (u_int32_t)own->version;
    asked.rq_proc = tenon_request_procedure(request);
    asked.rq_xprt = &of.transport;
    set_credential(&asked, &user, gids, request);
    if (!own->is_reentrant) pthread_mutex_lock(&one_at_a_time);
    own->dispatch(&asked, &of.transport);
    if (!own->is_reentrant) pthread_mutex_unlock(&one_at_a_time);
    return of.is_done;
}

/* What was added, to any server: it lives as long as the program. */
static service *added;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

bool tenon_svc_add(tenon_server *server, rpcprog_t program, rpcvers_t version, dispatcher dispatch, bool is_reentrant,
                   tenon_error *error) {
    service *own = calloc(1, sizeof *own);
    if (own == NULL) {
        if (error != NULL) *error = (tenon_error){.kind = TENON_SYSTEM, .text = "there is no memory"};
        return false;
    }
    own->program = program;
    own->version = version;
    own->dispatch = dispatch;
    own->is_reentrant = is_reentrant;
    /* A connection whose calls wait for the lock needs no second thread. */
    tenon_order order = is_reentrant ? TENON_ANY_ORDER : TENON_IN_ORDER;
    if (!tenon_server_add_raw(server, (uint32_t)program, (uint32_t)version, handle, own, order, error)) {
        free(own);
        return false;
    }
    pthread_mutex_lock(&adding);
    own->next = added;
    added = own;
    pthread_mutex_unlock(&adding);
    return true;
}
