/*
 * A CLIENT whose calls are Tenon's. It stands on one of libtirpc's, which has found the server and connected the socket:
 * what a program asks or sets beside its calls is libtirpc's, and so are calls that Tenon cannot make.
 */
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "stream.h"

/* What a channel has unless a call says another. */
static const struct timeval default_timeout = {25, 0};
/* As long as libtirpc waits at most before it sends a datagram again. */
enum { RESEND_MAX_MS = 30000 };

/* What stubs hand over to be moved, and where it is said that it could not be. */
typedef struct moved {
    xdrproc_t routine;
    void *at;
    bool *failed;
} moved;

/* What is behind a CLIENT. */
typedef struct state {
    CLIENT client;
    /* One call at a time, as libtirpc has it. */
    pthread_mutex_t lock;
    /* NULL once libtirpc's client makes the calls. */
    tenon_channel *channel;
    /* libtirpc's client, whose socket the channel has; NULL if the address was one of Tenon's. */
    CLIENT *theirs;
    bool is_stream;
    /* Whether a call ended without its reply, which may yet come, and in part. */
    bool has_lost_reply;
    /* Whether the stream has ended. */
    bool has_lost_server;
    /* Of the process, when it was created: a fork makes it another. */
    unsigned generation;
    rpcprog_t program;
    rpcvers_t version;
    /* The time of the channel's calls, whether it is the client's and not the call's, and whether a call has had it. */
    struct timeval timeout;
    bool is_timeout_set, has_called;
    /* The body of the credential that the channel has; of AUTH_NONE nothing. */
    char credential[MAX_AUTH_BYTES];
    u_int credential_length;
    struct rpc_err error;
} state;

static bool encode(tenon_encoder *out, const void *value) {
    const moved *arguments = value;
    XDR xdrs;
    tenon_xdr_write(&xdrs, out);
    return !(*arguments->failed = !arguments->routine(&xdrs, arguments->at));
}

static bool decode(tenon_decoder *in, void *value) {
    const moved *result = value;
    XDR xdrs;
    tenon_xdr_read(&xdrs, in);
    *result->failed = !result->routine(&xdrs, result->at);
    tenon_xdr_took(&xdrs, in);
    return !*result->failed;
}

/* Nothing, as far as the library is to know: a result may hold what was there before, and is not zeroed. */
static const tenon_message any = {0, 1, encode, decode, encode, decode, NULL, NULL, 0, 0};

static state *state_of(CLIENT *client) { return (state *)client->cl_private; }

static enum clnt_stat fail(state *of, enum clnt_stat status) {
    memset(&of->error, 0, sizeof of->error);
    return of->error.re_status = status;
}

static enum clnt_stat status_of_refusal(uint32_t code) {
    switch (code) {
    case TENON_ONC: return RPC_VERSMISMATCH;
    case TENON_ONC + 1: return RPC_PROGUNAVAIL;
    case TENON_ONC + 2: return RPC_PROGVERSMISMATCH;
    case TENON_ONC + 3: return RPC_PROCUNAVAIL;
    case TENON_ONC + 4: return RPC_CANTDECODEARGS;
    case TENON_ONC + 5: return RPC_SYSTEMERROR;
    default: return code >= TENON_ONC_AUTH ? RPC_AUTHERROR : RPC_FAILED;
    }
}

/* What libtirpc calls it. */
static void translate(const tenon_error *error, struct rpc_err *to) {
    memset(to, 0, sizeof *to);
    switch (error->kind) {
    case TENON_REFUSED:
        to->re_status = status_of_refusal(error->code);
        to->re_vers.low = error->low;
        to->re_vers.high = error->high;
        if (to->re_status == RPC_AUTHERROR) to->re_why = (enum auth_stat)(error->code - TENON_ONC_AUTH);
        return;
    case TENON_TIMEOUT: to->re_status = RPC_TIMEDOUT; return;
    case TENON_PEER: to->re_status = RPC_CANTDECODERES; return;
    case TENON_UNREACHABLE:
    case TENON_DISCONNECTED:
        to->re_status = RPC_CANTRECV;
        to->re_errno = (int)error->code;
        return;
    case TENON_CALLER: to->re_status = RPC_CANTENCODEARGS; return;
    default: to->re_status = RPC_FAILED; return;
    }
}

static enum clnt_stat status_of(state *of, const tenon_error *error, bool is_unsent, bool is_unread) {
    if (is_unsent) return fail(of, RPC_CANTENCODEARGS);
    if (is_unread) return fail(of, RPC_CANTDECODERES);
    translate(error, &of->error);
    if (of->error.re_status == RPC_CANTRECV && of->error.re_errno == 0) of->error.re_errno = ECONNREFUSED;
    if (of->error.re_status == RPC_CANTRECV && of->is_stream) {
        /* The first call finds the end of the stream, and the next ones cannot be sent. */
        of->error.re_errno = of->has_lost_server ? EPIPE : ECONNRESET;
        if (of->has_lost_server) of->error.re_status = RPC_CANTSEND;
        of->has_lost_server = of->theirs != NULL;
    }
    if (of->error.re_status == RPC_TIMEDOUT) of->has_lost_reply = true;
    return of->error.re_status;
}

/* Takes the place of the channel, unless it is none. */
static bool change(state *of, tenon_channel *to) {
    if (to == NULL) return false;
    tenon_close(of->channel);
    of->channel = to;
    return true;
}

static bool read_credential(const struct opaque_auth *from, struct authunix_parms *user) {
    XDR xdrs;
    memset(user, 0, sizeof *user);
    xdrmem_create(&xdrs, from->oa_base, from->oa_length, XDR_DECODE);
    return xdr_authunix_parms(&xdrs, user);
}

/* Has the channel call as who the program says now: cl_auth is the program's to change. */
static enum clnt_stat follow_credential(state *of, const AUTH *auth) {
    const struct opaque_auth *now = &auth->ah_cred;
    u_int length = now->oa_flavor == AUTH_NONE ? 0 : now->oa_length;
    if (length == of->credential_length && (length == 0 || memcmp(now->oa_base, of->credential, length) == 0))
        return RPC_SUCCESS;
    if (length > 0 && (now->oa_flavor != AUTH_SYS || length > sizeof of->credential)) {
        fail(of, RPC_AUTHERROR);
        of->error.re_why = AUTH_FAILED;
        return RPC_AUTHERROR;
    }
    tenon_channel *changed = NULL;
    if (length == 0) {
        changed = tenon_channel_credential(of->channel, NULL, NULL);
    } else {
        struct authunix_parms user;
        if (!read_credential(now, &user)) return fail(of, RPC_CANTENCODEARGS);
        uint32_t gids[16];
        tenon_auth_sys claim = {(uint32_t)user.aup_time, user.aup_machname,     user.aup_uid,
                                user.aup_gid,            gids, user.aup_len > 16 ? 16 : user.aup_len};
        for (size_t i = 0; i < claim.gid_count; i++) gids[i] = user.aup_gids[i];
        changed = tenon_channel_credential(of->channel, &claim, NULL);
        xdr_free((xdrproc_t)xdr_authunix_parms, (char *)&user);
    }
    if (!change(of, changed)) return fail(of, RPC_SYSTEMERROR);
    if (length > 0) memcpy(of->credential, now->oa_base, length);
    of->credential_length = length;
    return RPC_SUCCESS;
}

static uint64_t milliseconds(struct timeval time) {
    if (time.tv_sec < 0) return 0;
    return (uint64_t)time.tv_sec * 1000 + ((uint64_t)time.tv_usec + 999) / 1000;
}

static enum clnt_stat follow_timeout(state *of, struct timeval said) {
    if (of->is_timeout_set || (said.tv_sec == of->timeout.tv_sec && said.tv_usec == of->timeout.tv_usec))
        return RPC_SUCCESS;
    if (!change(of, tenon_channel_timeout(of->channel, milliseconds(said), NULL))) return fail(of, RPC_SYSTEMERROR);
    of->timeout = said;
    return RPC_SUCCESS;
}

/* A call whose time is over before it has begun. Without a result it succeeds, as it may be one of many that are sent
 * without waiting (batching). */
static enum clnt_stat send_only(state *of, rpcproc_t number, xdrproc_t xargs, void *args, bool has_result) {
    const tenon_procedure procedure = {number, NULL, &any, NULL};
    bool is_unsent = false;
    const moved arguments = {xargs, args, &is_unsent};
    tenon_error error;
    tenon_pending *pending = tenon_start(of->channel, &procedure, &arguments, &error);
    if (pending == NULL) return status_of(of, &error, is_unsent, false);
    tenon_cancel(pending);
    of->has_lost_reply = true;
    return fail(of, has_result || !of->is_stream ? RPC_TIMEDOUT : RPC_SUCCESS);
}

static enum clnt_stat call_and_wait(state *of, rpcproc_t number, xdrproc_t xargs, void *args, xdrproc_t xres,
                                    void *res) {
    const tenon_procedure procedure = {number, NULL, &any, &any};
    bool is_unsent = false, is_unread = false;
    const moved arguments = {xargs, args, &is_unsent};
    moved result = {xres, res, &is_unread};
    tenon_error error;
    if (tenon_call(of->channel, &procedure, &arguments, &result, &error)) return fail(of, RPC_SUCCESS);
    return status_of(of, &error, is_unsent, is_unread);
}

/* -- libtirpc's client in the channel's place -- */

static unsigned generation;

static void enter_child(void) { generation++; }

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, enter_child); }

/* Whether Tenon cannot make the call: in a child that was forked, or with a credential that it does not know. */
static bool is_for_theirs(const state *of, const AUTH *auth) {
    enum_t flavor = auth->ah_cred.oa_flavor;
    return of->generation != generation || (flavor != AUTH_NONE && flavor != AUTH_SYS);
}

/* Lets libtirpc's client make all calls from now on. The socket must be between two replies. */
static bool hand_over(state *of) {
    if (of->theirs == NULL || (of->is_stream && of->has_lost_reply)) return false;
    /* What a forked child has of the channel may be locked by a thread that it has not. */
    if (of->generation == generation) tenon_close(of->channel);
    of->channel = NULL;
    return true;
}

static enum clnt_stat call_theirs(state *of, CLIENT *client, rpcproc_t number, xdrproc_t xargs, void *args,
                                  xdrproc_t xres, void *res, struct timeval timeout) {
    of->theirs->cl_auth = client->cl_auth;
    enum clnt_stat status = CLNT_CALL(of->theirs, number, xargs, args, xres, res, timeout);
    client->cl_auth = of->theirs->cl_auth;
    CLNT_GETERR(of->theirs, &of->error);
    return status;
}

static enum clnt_stat call_channel(state *of, CLIENT *client, rpcproc_t number, xdrproc_t xargs, void *args,
                                   xdrproc_t xres, void *res, struct timeval timeout) {
    bool waits = of->is_timeout_set ? milliseconds(of->timeout) > 0 : milliseconds(timeout) > 0;
    enum clnt_stat status = follow_credential(of, client->cl_auth);
    of->has_called = true;
    if (status == RPC_SUCCESS && waits) status = follow_timeout(of, timeout);
    if (status != RPC_SUCCESS) return status;
    if (!waits) return send_only(of, number, xargs, args, xres != NULL);
    return call_and_wait(of, number, xargs, args, xres, res);
}

static enum clnt_stat call(CLIENT *client, rpcproc_t number, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
                           struct timeval timeout) {
    state *of = state_of(client);
    enum clnt_stat status;
    pthread_mutex_lock(&of->lock);
    if (of->channel != NULL && is_for_theirs(of, client->cl_auth) && !hand_over(of)) {
        status = fail(of, of->generation != generation ? RPC_CANTSEND : RPC_AUTHERROR);
        if (status == RPC_AUTHERROR)
            of->error.re_why = AUTH_FAILED;
        else
            of->error.re_errno = EBUSY;
    } else if (of->channel != NULL) {
        status = call_channel(of, client, number, xargs, args, xres, res, timeout);
    } else {
        status = call_theirs(of, client, number, xargs, args, xres, res, timeout);
    }
    pthread_mutex_unlock(&of->lock);
    return status;
}

static void abort_call(CLIENT *client) { (void)client; }

static void get_error(CLIENT *client, struct rpc_err *to) { *to = state_of(client)->error; }

static bool_t free_result(CLIENT *client, xdrproc_t routine, void *result) {
    (void)client;
    xdr_free(routine, (char *)result);
    return TRUE;
}

static void destroy(CLIENT *client) {
    state *of = state_of(client);
    if (of->generation == generation) tenon_close(of->channel);
    if (of->theirs != NULL) CLNT_DESTROY(of->theirs);
    pthread_mutex_destroy(&of->lock);
    free(client->cl_netid);
    free(client->cl_tp);
    free(of);
}

/* Another program or version, over the same connection. */
static bool_t call_other(state *of, rpcprog_t program, rpcvers_t version) {
    tenon_interface interface = {0};
    interface.program = (uint32_t)program;
    interface.version = (uint32_t)version;
    if (!change(of, tenon_channel_share(of->channel, &interface, NULL))) return FALSE;
    of->program = program;
    of->version = version;
    return TRUE;
}

/* As libtirpc has it. */
static bool is_time(struct timeval time) {
    return time.tv_sec >= -1 && time.tv_sec <= 100000000 && time.tv_usec >= -1 && time.tv_usec <= 1000000;
}

static bool_t set_timeout(state *of, struct timeval to) {
    if (!is_time(to) || !change(of, tenon_channel_timeout(of->channel, milliseconds(to), NULL))) return FALSE;
    of->timeout = to;
    of->is_timeout_set = true;
    return TRUE;
}

static bool_t ask_theirs(const state *of, u_int what, void *with) {
    return of->theirs != NULL && CLNT_CONTROL(of->theirs, what, with);
}

/* The channel's options, over a socket that libtirpc has connected. */
static tenon_options options_of(const state *of) {
    struct timeval resend = {0, 0};
    tenon_options options;
    memset(&options, 0, sizeof options);
    /* libtirpc knows no limits. */
    options.send_max = options.receive_max = INT_MAX;
    if (ask_theirs(of, CLGET_RETRY_TIMEOUT, &resend)) {
        options.resend_first_ms = milliseconds(resend) > 0 ? milliseconds(resend) : 1;
        options.resend_longest_ms = options.resend_first_ms > RESEND_MAX_MS ? options.resend_first_ms : RESEND_MAX_MS;
    }
    return options;
}

static tenon_channel *connect_over(const state *of, int fd) {
    tenon_options options = options_of(of);
    tenon_interface interface = {0};
    interface.program = (uint32_t)of->program;
    interface.version = (uint32_t)of->version;
    return tenon_connect_over(fd, &interface, &options, NULL);
}

/* Datagrams are sent again after other times: by another channel over the same socket. */
static bool_t set_retry(state *of, void *with) {
    int fd;
    if (of->is_stream || !ask_theirs(of, CLSET_RETRY_TIMEOUT, with) || !ask_theirs(of, CLGET_FD, &fd)) return FALSE;
    if (!change(of, connect_over(of, fd))) return FALSE;
    of->credential_length = 0;
    if (of->is_timeout_set) return set_timeout(of, of->timeout);
    of->timeout = default_timeout;
    return TRUE;
}

static bool_t control_locked(state *of, u_int what, void *with) {
    switch (what) {
    case CLSET_TIMEOUT: return set_timeout(of, *(struct timeval *)with);
    case CLGET_TIMEOUT:
        /* libtirpc remembers the time of a call on streams alone. */
        if (!of->is_timeout_set && !(of->is_stream && of->has_called) && of->theirs != NULL)
            return ask_theirs(of, what, with);
        *(struct timeval *)with = of->timeout;
        return TRUE;
    case CLSET_RETRY_TIMEOUT: return set_retry(of, with);
    case CLGET_VERS: *(rpcvers_t *)with = of->version; return TRUE;
    case CLSET_VERS: return call_other(of, of->program, *(rpcvers_t *)with);
    case CLGET_PROG: *(rpcprog_t *)with = of->program; return TRUE;
    case CLSET_PROG: return call_other(of, *(rpcprog_t *)with, of->version);
    /* The socket, which is libtirpc's. */
    case CLGET_FD:
    case CLSET_FD_CLOSE:
    case CLSET_FD_NCLOSE:
    case CLGET_SVC_ADDR:
    case CLGET_SERVER_ADDR:
    case CLGET_RETRY_TIMEOUT: return ask_theirs(of, what, with);
    /* Numbers of calls are the library's, and a socket that is connected stays so. */
    default: return FALSE;
    }
}

static bool needs_nothing(u_int what) { return what == CLSET_FD_CLOSE || what == CLSET_FD_NCLOSE; }

static bool_t control(CLIENT *client, u_int what, void *with) {
    state *of = state_of(client);
    if (with == NULL && !needs_nothing(what)) return FALSE;
    pthread_mutex_lock(&of->lock);
    bool_t is_done = of->channel != NULL ? control_locked(of, what, with) : ask_theirs(of, what, with);
    /* What libtirpc's client is to know, should it make calls. */
    if (is_done && of->channel != NULL && (what == CLSET_TIMEOUT || what == CLSET_VERS || what == CLSET_PROG))
        (void)ask_theirs(of, what, with);
    pthread_mutex_unlock(&of->lock);
    return is_done;
}

static struct clnt_ops operations = {call, abort_call, get_error, free_result, destroy, control};

bool_t tenon_clnt_is_one(const CLIENT *client) { return client != NULL && client->cl_ops == &operations; }

static CLIENT *not_created(enum clnt_stat status, const struct rpc_err *error) {
    rpc_createerr.cf_stat = status;
    if (error != NULL) rpc_createerr.cf_error = *error;
    return NULL;
}

/* Routines of libtirpc's write XDR, and nothing else. */
static bool speaks_onc(const char *address) {
    return strncmp(address, "tcp://", 6) == 0 || strncmp(address, "udp://", 6) == 0 ||
           strncmp(address, "unix://", 7) == 0 || strncmp(address, "onc+", 4) == 0;
}

static state *new_state(rpcprog_t program, rpcvers_t version) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    state *of = calloc(1, sizeof *of);
    if (of == NULL) return NULL;
    (void)pthread_once(&once, watch_forks);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    /* A credential may be refreshed by another call, within the call that it was refused for. */
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&of->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    of->generation = generation;
    of->program = program;
    of->version = version;
    of->timeout = default_timeout;
    of->client.cl_ops = &operations;
    of->client.cl_private = of;
    return of;
}

static void free_state(state *of) {
    pthread_mutex_destroy(&of->lock);
    free(of);
}

/* Connects to an address of Tenon's. */
static CLIENT *connect_to(const char *address, rpcprog_t program, rpcvers_t version, const tenon_options *options) {
    tenon_interface interface = {0};
    tenon_error error;
    struct rpc_err translated;
    state *of = new_state(program, version);
    if (of == NULL) return not_created(RPC_SYSTEMERROR, NULL);
    interface.program = (uint32_t)program;
    interface.version = (uint32_t)version;
    of->channel = tenon_connect(address, &interface, options, &error);
    if (of->channel == NULL) {
        free_state(of);
        translate(&error, &translated);
        if (error.kind != TENON_UNREACHABLE) return not_created(RPC_UNKNOWNHOST, &translated);
        return not_created(error.code != 0 ? RPC_SYSTEMERROR : RPC_PROGNOTREGISTERED, &translated);
    }
    of->is_stream = strncmp(address, "udp", 3) != 0;
    of->client.cl_auth = authnone_create();
    of->client.cl_netid = strdup(of->is_stream ? "tcp" : "udp");
    return &of->client;
}

/* Errors of datagrams come with the next receive, and not by a queue of their own. */
static void end_error_queue(int fd) {
    int off = 0;
    (void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &off, sizeof off);
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &off, sizeof off);
}

/* The socket of libtirpc's client, which is connected to its server afterwards; -1 if it cannot be. */
static int connected_socket(CLIENT *theirs, bool *is_stream) {
    int fd, type = 0;
    socklen_t length = sizeof type;
    struct netbuf at = {0};
    if (!CLNT_CONTROL(theirs, CLGET_FD, (char *)&fd)) return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return -1;
    *is_stream = type == SOCK_STREAM;
    if (*is_stream) return fd;
    if (type != SOCK_DGRAM || !CLNT_CONTROL(theirs, CLGET_SVC_ADDR, (char *)&at)) return -1;
    if (connect(fd, at.buf, at.len) != 0) return -1;
    end_error_queue(fd);
    return fd;
}

CLIENT *tenon_clnt_adopt(CLIENT *theirs) {
    if (theirs == NULL || tenon_clnt_is_one(theirs)) return theirs;
    rpcprog_t program;
    rpcvers_t version;
    bool is_stream;
    int fd = connected_socket(theirs, &is_stream);
    if (fd < 0 || !CLNT_CONTROL(theirs, CLGET_PROG, (char *)&program) ||
        !CLNT_CONTROL(theirs, CLGET_VERS, (char *)&version))
        return theirs;
    state *of = new_state(program, version);
    if (of == NULL) return theirs;
    of->theirs = theirs;
    of->is_stream = is_stream;
    of->channel = connect_over(of, fd);
    if (of->channel == NULL) {
        free_state(of);
        return theirs;
    }
    of->client.cl_auth = theirs->cl_auth;
    of->client.cl_netid = theirs->cl_netid == NULL ? NULL : strdup(theirs->cl_netid);
    of->client.cl_tp = theirs->cl_tp == NULL ? NULL : strdup(theirs->cl_tp);
    return &of->client;
}

CLIENT *tenon_clnt_create_timed(const char *host, rpcprog_t program, rpcvers_t version, const char *transport,
                                const struct timeval *limit) {
    tenon_options options;
    if (host == NULL || strstr(host, "://") == NULL)
        return tenon_clnt_adopt(clnt_create_timed(host, program, version, transport, limit));
    memset(&options, 0, sizeof options);
    if (limit != NULL) options.connect_timeout_ms = milliseconds(*limit);
    if (!speaks_onc(host)) return not_created(RPC_UNKNOWNPROTO, NULL);
    return connect_to(host, program, version, &options);
}

CLIENT *tenon_clnt_create(const char *host, rpcprog_t program, rpcvers_t version, const char *transport) {
    return tenon_clnt_create_timed(host, program, version, transport, NULL);
}
