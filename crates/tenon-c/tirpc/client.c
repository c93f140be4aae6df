/* A CLIENT whose calls are Tenon's. */
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

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
    tenon_channel *channel;
    rpcprog_t program;
    rpcvers_t version;
    /* The time of the channel's calls, and whether it is the client's and not the call's. */
    struct timeval timeout;
    bool is_timeout_set;
    /* The body of the credential that the channel has; of AUTH_NONE nothing. */
    char credential[MAX_AUTH_BYTES];
    u_int credential_length;
    struct rpc_err error;
} state;

static bool encode(tenon_encoder *out, const void *value) {
    const moved *arguments = value;
    XDR xdrs;
    tenon_stream_write(&xdrs, out);
    return !(*arguments->failed = !arguments->routine(&xdrs, arguments->at));
}

static bool decode(tenon_decoder *in, void *value) {
    const moved *result = value;
    XDR xdrs;
    tenon_stream_read(&xdrs, in);
    *result->failed = !result->routine(&xdrs, result->at);
    tenon_stream_took(&xdrs, in);
    return !*result->failed;
}

/* Nothing, as far as the library is to know: a result may hold what was there before, and is not zeroed. */
static const tenon_message any = {0, 1, encode, decode, encode, decode, NULL};

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
        to->re_status = RPC_CANTSEND;
        to->re_errno = (int)error->code;
        return;
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

/* A call that nobody waits for: its time is over before it has begun. */
static enum clnt_stat send_only(state *of, rpcproc_t number, xdrproc_t xargs, void *args) {
    const tenon_procedure procedure = {number, NULL, &any, NULL};
    bool is_unsent = false;
    const moved arguments = {xargs, args, &is_unsent};
    tenon_error error;
    tenon_pending *pending = tenon_start(of->channel, &procedure, &arguments, &error);
    if (pending == NULL) return status_of(of, &error, is_unsent, false);
    tenon_cancel(pending);
    return fail(of, RPC_TIMEDOUT);
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

static enum clnt_stat call(CLIENT *client, rpcproc_t number, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
                           struct timeval timeout) {
    state *of = state_of(client);
    pthread_mutex_lock(&of->lock);
    bool waits = of->is_timeout_set || milliseconds(timeout) > 0;
    enum clnt_stat status = follow_credential(of, client->cl_auth);
    if (status == RPC_SUCCESS && waits) status = follow_timeout(of, timeout);
    if (status == RPC_SUCCESS && !waits) status = send_only(of, number, xargs, args);
    if (status == RPC_SUCCESS && waits) status = call_and_wait(of, number, xargs, args, xres, res);
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
    tenon_close(of->channel);
    pthread_mutex_destroy(&of->lock);
    free(client->cl_netid);
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

static bool_t set_timeout(state *of, struct timeval to) {
    if (!change(of, tenon_channel_timeout(of->channel, milliseconds(to), NULL))) return FALSE;
    of->timeout = to;
    of->is_timeout_set = true;
    return TRUE;
}

static bool_t control_locked(state *of, u_int what, void *with) {
    switch (what) {
    case CLSET_FD_CLOSE: return TRUE;
    case CLSET_TIMEOUT: return set_timeout(of, *(struct timeval *)with);
    case CLGET_TIMEOUT: *(struct timeval *)with = of->timeout; return TRUE;
    case CLGET_VERS: *(rpcvers_t *)with = of->version; return TRUE;
    case CLSET_VERS: return call_other(of, of->program, *(rpcvers_t *)with);
    case CLGET_PROG: *(rpcprog_t *)with = of->program; return TRUE;
    case CLSET_PROG: return call_other(of, *(rpcprog_t *)with, of->version);
    /* Descriptors, addresses and numbers of calls are the library's. */
    default: return FALSE;
    }
}

static bool_t control(CLIENT *client, u_int what, void *with) {
    state *of = state_of(client);
    if (with == NULL && what != CLSET_FD_CLOSE) return FALSE;
    pthread_mutex_lock(&of->lock);
    bool_t known = control_locked(of, what, with);
    pthread_mutex_unlock(&of->lock);
    return known;
}

static struct clnt_ops operations = {call, abort_call, get_error, free_result, destroy, control};

bool_t tenon_clnt_is_one(const CLIENT *client) { return client != NULL && client->cl_ops == &operations; }

static CLIENT *not_created(enum clnt_stat status, const struct rpc_err *error) {
    rpc_createerr.cf_stat = status;
    if (error != NULL) rpc_createerr.cf_error = *error;
    return NULL;
}

/* What Tenon calls a transport of libtirpc's, or NULL. */
static const char *scheme_of(const char *transport) {
    if (strcmp(transport, "tcp") == 0 || strcmp(transport, "circuit_v") == 0 || strcmp(transport, "circuit_n") == 0)
        return "tcp://";
    if (strcmp(transport, "udp") == 0 || strcmp(transport, "datagram_v") == 0 || strcmp(transport, "datagram_n") == 0)
        return "udp://";
    return NULL;
}

/* The address as Tenon writes it, which is to be freed; NULL if it has none. */
static char *address_of(const char *host, const char *transport) {
    if (strstr(host, "://") != NULL) return strdup(host);
    const char *scheme = transport == NULL ? NULL : scheme_of(transport);
    if (scheme == NULL) return NULL;
    bool is_bare = strchr(host, ':') != NULL && host[0] != '[';
    size_t room = strlen(scheme) + strlen(host) + 3;
    char *address = malloc(room);
    if (address != NULL) snprintf(address, room, is_bare ? "%s[%s]" : "%s%s", scheme, host);
    return address;
}

/* Routines of libtirpc's write XDR, and nothing else. */
static bool speaks_onc(const char *address) {
    return strncmp(address, "tcp://", 6) == 0 || strncmp(address, "udp://", 6) == 0 ||
           strncmp(address, "unix://", 7) == 0 || strncmp(address, "onc+", 4) == 0;
}

static CLIENT *connect_to(const char *address, rpcprog_t program, rpcvers_t version, const tenon_options *options) {
    tenon_interface interface = {0};
    tenon_error error;
    struct rpc_err translated;
    state *of = calloc(1, sizeof *of);
    if (of == NULL) return not_created(RPC_SYSTEMERROR, NULL);
    interface.program = (uint32_t)program;
    interface.version = (uint32_t)version;
    of->channel = tenon_connect(address, &interface, options, &error);
    if (of->channel == NULL) {
        free(of);
        translate(&error, &translated);
        if (error.kind != TENON_UNREACHABLE) return not_created(RPC_UNKNOWNHOST, &translated);
        return not_created(error.code != 0 ? RPC_SYSTEMERROR : RPC_PROGNOTREGISTERED, &translated);
    }
    pthread_mutex_init(&of->lock, NULL);
    of->program = program;
    of->version = version;
    /* What a channel has if nothing is said. */
    of->timeout.tv_sec = 25;
    of->client.cl_auth = authnone_create();
    of->client.cl_ops = &operations;
    of->client.cl_private = of;
    of->client.cl_netid = strdup(strncmp(address, "udp", 3) == 0 ? "udp" : "tcp");
    return &of->client;
}

CLIENT *tenon_clnt_create_timed(const char *host, rpcprog_t program, rpcvers_t version, const char *transport,
                                const struct timeval *limit) {
    tenon_options options;
    if (host == NULL) return not_created(RPC_UNKNOWNHOST, NULL);
    char *address = address_of(host, transport);
    if (address == NULL) return clnt_create_timed(host, program, version, transport, limit);
    memset(&options, 0, sizeof options);
    if (limit != NULL) options.connect_timeout_ms = milliseconds(*limit);
    CLIENT *client = speaks_onc(address) ? connect_to(address, program, version, &options)
                                         : not_created(RPC_UNKNOWNPROTO, NULL);
    free(address);
    return client;
}

CLIENT *tenon_clnt_create(const char *host, rpcprog_t program, rpcvers_t version, const char *transport) {
    return tenon_clnt_create_timed(host, program, version, transport, NULL);
}
