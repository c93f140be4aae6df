/*
 * Transports of libtirpc whose streams are received and sent by messages: a call is parsed where it was received, and
 * a reply is encoded in one piece and sent by one system call. All else stays libtirpc's: the descriptors that a program
 * polls, dispatching, authentication, and registration with rpcbind. Datagrams are libtirpc's own.
 */
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rpc/nettype.h>
#include <rpc/rpc_com.h>
#include <rpc/svc_auth.h>
#include <rpc/svc_mt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

/* Bytes of a call, unless the program has set RPC_SVC_CONNMAXREC_SET. */
enum { RECORD_MAX = 64 << 20 };
/* Room to begin with, and what a connection keeps for its next message. */
enum { ROOM_FIRST = 16 << 10, ROOM_KEPT = 1 << 20 };
/* How long a peer may leave no room for a reply, and be silent when the process has no descriptors left. */
enum { SEND_LIMIT_MS = 35000, IDLE_LIMIT_S = 10 };
/* A pause when all connections are busy and there is no descriptor for another. */
enum { FULL_PAUSE_MS = 10 };

/* The mark in front of each fragment of a record (RFC 5531, 11). */
enum { MARK = 4 };
static const uint32_t LAST_FRAGMENT = UINT32_C(1) << 31;

/* What was received of a stream: a record under way, then bytes that nothing has looked at. */
typedef struct input {
    char *bytes;
    size_t room, end;
    /* The fragments of the record that have come whole, joined. */
    size_t record, record_length;
    /* The next fragment's mark. */
    size_t next;
} input;

/* A connection that calls come from. */
typedef struct connection {
    SVCXPRT *transport;
    input in;
    size_t record_max;
    /* The call that was received last: its arguments, and the number that its reply has. */
    XDR arguments;
    uint32_t xid;
    /* Where replies are encoded; kept from one to the next. */
    char *reply;
    size_t reply_room;
    bool has_call, has_failed;
    time_t used_at;
    const struct xp_ops *before;
} connection;

/* By descriptor: libtirpc takes no others. */
static connection *connections[FD_SETSIZE];

static connection *connection_of(const SVCXPRT *transport) { return connections[transport->xp_fd]; }

static time_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec;
}

/* -- receiving -- */

static uint32_t word_at(const char *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return ntohl(word);
}

typedef enum progress { WAITS, IS_WHOLE, IS_TOO_LONG } progress;

/* Joins the fragments that have come to the record; each byte is moved once at the most. */
static progress join_fragments(input *in, size_t record_max) {
    while (in->end - in->next >= MARK) {
        uint32_t mark = word_at(in->bytes + in->next);
        size_t length = mark & ~LAST_FRAGMENT;
        if (length > record_max - in->record_length) return IS_TOO_LONG;
        if (in->end - in->next - MARK < length) return WAITS;
        size_t fragment = in->next + MARK;
        if (in->record_length == 0)
            in->record = fragment;
        else
            memmove(in->bytes + in->record + in->record_length, in->bytes + fragment, length);
        in->record_length += length;
        in->next = fragment + length;
        if (mark & LAST_FRAGMENT) return IS_WHOLE;
    }
    return WAITS;
}

/* Bytes in front of what is still needed. */
static size_t used_up(const input *in) { return in->next - in->record_length; }

/* The record was a call; the next one begins behind it. */
static void end_record(input *in) {
    in->record = in->next;
    in->record_length = 0;
    if (in->next == in->end) in->record = in->next = in->end = 0;
}

/* Moves what is needed to the beginning. */
static void compact(input *in) {
    memmove(in->bytes, in->bytes + in->record, in->record_length);
    memmove(in->bytes + in->record_length, in->bytes + in->next, in->end - in->next);
    in->end = in->record_length + (in->end - in->next);
    in->next = in->record_length;
    in->record = 0;
}

/* Makes room for something, by what has come: a peer that sends little gets little. What is moved to the beginning is
 * less than half of the room, so that short fragments do not have it moved for each of them. */
static bool make_room(input *in) {
    if (in->end < in->room) return true;
    if (in->room > 0 && used_up(in) > in->room / 2) {
        compact(in);
        return true;
    }
    size_t room = in->room == 0 ? ROOM_FIRST : in->room * 2;
    char *bytes = realloc(in->bytes, room);
    if (bytes == NULL) return false;
    in->bytes = bytes;
    in->room = room;
    return true;
}

/* Gives back the memory of a large record. */
static void shrink(input *in) {
    if (in->end > 0 || in->room <= ROOM_KEPT) return;
    free(in->bytes);
    memset(in, 0, sizeof *in);
}

/* Receives what is there; false: nothing, or the stream has ended. */
static bool receive_bytes(connection *from) {
    input *in = &from->in;
    if (!make_room(in)) {
        from->has_failed = true;
        return false;
    }
    ssize_t count;
    do
        count = recv(from->transport->xp_fd, in->bytes + in->end, in->room - in->end, MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count <= 0) {
        from->has_failed = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        return false;
    }
    in->end += (size_t)count;
    return true;
}

/* Whether a whole record lies there, and a call may be read from it. */
static bool has_record(connection *from) {
    progress progress = join_fragments(&from->in, from->record_max);
    if (progress == IS_TOO_LONG) from->has_failed = true;
    return progress == IS_WHOLE;
}

static bool_t receive_call(SVCXPRT *transport, struct rpc_msg *message) {
    connection *from = connection_of(transport);
    if (from->has_call) end_record(&from->in);
    from->has_call = false;
    shrink(&from->in);
    if (!has_record(from) && (from->has_failed || !receive_bytes(from) || !has_record(from))) return FALSE;
    from->has_call = true;
    from->used_at = now();
    input *in = &from->in;
    xdrmem_create(&from->arguments, in->bytes + in->record, (u_int)in->record_length, XDR_DECODE);
    if (!xdr_callmsg(&from->arguments, message)) {
        from->has_failed = true;
        return FALSE;
    }
    from->xid = message->rm_xid;
    return TRUE;
}

static enum xprt_stat status(SVCXPRT *transport) {
    connection *of = connection_of(transport);
    if (of->has_failed) return XPRT_DIED;
    /* Behind the call that is being carried out, whose arguments stay where they are. */
    const input *in = &of->in;
    size_t left = in->end - in->next;
    bool has_fragment = left >= MARK && left - MARK >= (word_at(in->bytes + in->next) & ~LAST_FRAGMENT);
    return has_fragment ? XPRT_MOREREQS : XPRT_IDLE;
}

static bool_t get_arguments(SVCXPRT *transport, xdrproc_t routine, void *arguments) {
    connection *of = connection_of(transport);
    if (SVCAUTH_UNWRAP(&SVC_XP_AUTH(transport), &of->arguments, routine, (caddr_t)arguments)) return TRUE;
    (void)svc_freeargs(transport, routine, arguments);
    return FALSE;
}

static bool_t free_arguments(SVCXPRT *transport, xdrproc_t routine, void *arguments) {
    (void)transport;
    xdr_free(routine, (char *)arguments);
    return TRUE;
}

/* -- replying -- */

/* Makes room for a reply that is being encoded, as tenon_encoder says. */
static bool grow(tenon_encoder *encoder, size_t room) {
    size_t written = (size_t)(encoder->at - encoder->base), has = (size_t)(encoder->end - encoder->base);
    if (room > (size_t)INT_MAX - written) return false;
    size_t wanted = has < ROOM_FIRST ? ROOM_FIRST : has * 2;
    if (wanted < written + room) wanted = written + room;
    unsigned char *bytes = realloc(encoder->base, wanted);
    if (bytes == NULL) return false;
    /* A stream may go back and forth in it. */
    memset(bytes + written, 0, wanted - written);
    encoder->base = bytes;
    encoder->at = bytes + written;
    encoder->end = bytes + wanted;
    return true;
}

static bool wait_for_room(int fd) {
    struct pollfd room = {fd, POLLOUT, 0};
    int count;
    do
        count = poll(&room, 1, SEND_LIMIT_MS);
    while (count < 0 && errno == EINTR);
    return count > 0;
}

static bool send_bytes(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_for_room(fd)) return false;
            continue;
        }
        if (sent <= 0) return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* Appends header and results; the authentication of the call may seal the results. */
static bool encode_reply(SVCXPRT *transport, XDR *to, struct rpc_msg *message) {
    struct accepted_reply *accepted = &message->acpted_rply;
    bool has_results = message->rm_reply.rp_stat == MSG_ACCEPTED && accepted->ar_stat == SUCCESS;
    if (!has_results) return xdr_replymsg(to, message);
    xdrproc_t routine = accepted->ar_results.proc;
    caddr_t results = accepted->ar_results.where;
    accepted->ar_results.proc = (xdrproc_t)(void *)xdr_void;
    accepted->ar_results.where = NULL;
    bool is_encoded = xdr_replymsg(to, message) && SVCAUTH_WRAP(&SVC_XP_AUTH(transport), to, routine, results);
    accepted->ar_results.proc = routine;
    accepted->ar_results.where = results;
    return is_encoded;
}

/* Puts mark and message into the connection's room; returns their length, or 0. */
static size_t put_reply(connection *of, struct rpc_msg *message) {
    tenon_encoder out;
    memset(&out, 0, sizeof out);
    out.base = out.at = (unsigned char *)of->reply;
    out.end = out.base + of->reply_room;
    out.grow = grow;
    if (of->reply_room < MARK && !grow(&out, MARK)) return 0;
    out.at += MARK;
    XDR xdrs;
    tenon_xdr_write(&xdrs, &out);
    bool is_encoded = encode_reply(of->transport, &xdrs, message);
    of->reply = (char *)out.base;
    of->reply_room = (size_t)(out.end - out.base);
    if (!is_encoded) return 0;
    size_t length = (size_t)(out.at - out.base);
    uint32_t mark = htonl((uint32_t)(length - MARK) | LAST_FRAGMENT);
    memcpy(out.base, &mark, sizeof mark);
    return length;
}

static bool_t send_reply(SVCXPRT *transport, struct rpc_msg *message) {
    connection *to = connection_of(transport);
    message->rm_xid = to->xid;
    size_t length = put_reply(to, message);
    bool is_sent = length > 0 && send_bytes(transport->xp_fd, to->reply, length);
    if (length > 0 && !is_sent) to->has_failed = true;
    if (to->reply_room > ROOM_KEPT) {
        free(to->reply);
        to->reply = NULL;
        to->reply_room = 0;
    }
    return is_sent;
}

/* -- connections -- */

static void destroy(SVCXPRT *transport) {
    connection *of = connection_of(transport);
    connections[transport->xp_fd] = NULL;
    transport->xp_ops = of->before;
    free(of->in.bytes);
    free(of->reply);
    free(of);
    SVC_DESTROY(transport);
}

static const struct xp_ops connected = {receive_call, status, get_arguments, send_reply, free_arguments, destroy};

/* Receives and sends for a connection from now on. */
static bool take_over_connection(SVCXPRT *transport, size_t record_max) {
    if (transport->xp_fd < 0 || transport->xp_fd >= FD_SETSIZE) return false;
    connection *of = calloc(1, sizeof *of);
    if (of == NULL) return false;
    of->transport = transport;
    of->record_max = record_max;
    of->used_at = now();
    of->before = transport->xp_ops;
    connections[transport->xp_fd] = of;
    transport->xp_ops = &connected;
    return true;
}

/* Closes the connection that has been silent for the longest time, if that is long; the process has no descriptors. */
static bool close_idle(void) {
    connection *idle = NULL;
    for (int fd = 0; fd < FD_SETSIZE; fd++)
        if (connections[fd] != NULL && (idle == NULL || connections[fd]->used_at < idle->used_at)) idle = connections[fd];
    if (idle == NULL || now() - idle->used_at < IDLE_LIMIT_S) return false;
    SVC_DESTROY(idle->transport);
    return true;
}

static int accept_one(int listener, struct sockaddr_storage *peer, socklen_t *length) {
    for (;;) {
        *length = sizeof *peer;
        int fd = accept(listener, (struct sockaddr *)peer, length);
        if (fd >= 0 || (errno != EINTR && errno != EMFILE && errno != ENFILE)) return fd;
        if (errno != EINTR && !close_idle()) {
            /* The listener stays readable: others have a moment to end. */
            (void)poll(NULL, 0, FULL_PAUSE_MS);
            return -1;
        }
    }
}

/* Where programs look for the caller that were written before libtirpc. */
static void set_peer(SVCXPRT *transport, const struct sockaddr_storage *peer, socklen_t length) {
    transport->xp_addrlen = (int)length;
    memset(&transport->xp_raddr, 0, sizeof transport->xp_raddr);
    if (peer->ss_family == AF_INET || peer->ss_family == AF_INET6)
        memcpy(&transport->xp_raddr, peer, length < sizeof transport->xp_raddr ? length : sizeof transport->xp_raddr);
    else
        transport->xp_raddr.sin6_family = peer->ss_family;
}

/* Bytes that a call may have: what the program has told libtirpc, for this listener or for all. */
static size_t record_max_of(SVCXPRT *listener) {
    int limit = 0;
    if (listener != NULL && SVC_CONTROL(listener, SVCGET_CONNMAXREC, &limit) && limit > 0) return (size_t)limit;
    if (rpc_control(RPC_SVC_CONNMAXREC_GET, &limit) && limit > 0) return (size_t)limit;
    return RECORD_MAX;
}

/* Accepts a connection. Returns false, as a listener has no call. */
static bool_t accept_connection(SVCXPRT *listener, struct rpc_msg *message) {
    struct sockaddr_storage peer;
    socklen_t length;
    int on = 1;
    (void)message;
    int fd = accept_one(listener->xp_fd, &peer, &length);
    if (fd < 0) return FALSE;
    SVCXPRT *transport = fd < FD_SETSIZE ? svc_fd_create(fd, 0, 0) : NULL;
    if (transport == NULL) {
        close(fd);
        return FALSE;
    }
    set_peer(transport, &peer, length);
    if (peer.ss_family != AF_UNIX) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* Without memory it stays libtirpc's. */
    (void)take_over_connection(transport, record_max_of(listener));
    return FALSE;
}

/* libtirpc's operations of a listener, but for accepting. All listeners have the same. */
static struct xp_ops listening;

static void take_over_listener(SVCXPRT *transport) {
    if (transport->xp_ops == &listening) return;
    listening = *transport->xp_ops;
    listening.xp_recv = accept_connection;
    transport->xp_ops = &listening;
}

static bool socket_option(int fd, int option, int *value) {
    socklen_t length = sizeof *value;
    return getsockopt(fd, SOL_SOCKET, option, value, &length) == 0;
}

SVCXPRT *tenon_svc_adopt(SVCXPRT *transport) {
    int type = 0, is_listening = 0;
    if (transport == NULL || !socket_option(transport->xp_fd, SO_TYPE, &type) || type != SOCK_STREAM) return transport;
    if (transport->xp_ops == &connected) return transport;
    (void)socket_option(transport->xp_fd, SO_ACCEPTCONN, &is_listening);
    if (is_listening)
        take_over_listener(transport);
    else
        (void)take_over_connection(transport, record_max_of(NULL));
    return transport;
}

/* -- transports by their kinds -- */

/* One that svc_create has made, for the next program that asks for the same network. */
typedef struct made {
    SVCXPRT *transport;
    struct made *next;
} made;

static made *all_made;

static bool reuse(const struct netconfig *network, rpcprog_t program, rpcvers_t version,
                  void (*dispatch)(struct svc_req *, SVCXPRT *), bool *is_registered) {
    for (made *each = all_made; each != NULL; each = each->next) {
        if (strcmp(each->transport->xp_netid, network->nc_netid) != 0) continue;
        (void)rpcb_unset(program, version, network);
        *is_registered = svc_reg(each->transport, program, version, dispatch, network);
        return true;
    }
    return false;
}

static bool make(const struct netconfig *network, rpcprog_t program, rpcvers_t version,
                 void (*dispatch)(struct svc_req *, SVCXPRT *)) {
    SVCXPRT *transport = tenon_svc_adopt(svc_tp_create(dispatch, program, version, network));
    if (transport == NULL) return false;
    made *own = malloc(sizeof *own);
    if (own == NULL) return true;
    own->transport = transport;
    own->next = all_made;
    all_made = own;
    return true;
}

int tenon_svc_create(void (*dispatch)(struct svc_req *, SVCXPRT *), rpcprog_t program, rpcvers_t version,
                     const char *kind) {
    const struct netconfig *network;
    int count = 0;
    void *networks = __rpc_setconf(kind);
    if (networks == NULL) {
        /* In libtirpc's words. */
        warnx("svc_create: unknown protocol");
        return 0;
    }
    while ((network = __rpc_getconf(networks)) != NULL) {
        bool is_registered = false;
        if (!reuse(network, program, version, dispatch, &is_registered))
            is_registered = make(network, program, version, dispatch);
        count += is_registered;
    }
    __rpc_endconf(networks);
    return count;
}
