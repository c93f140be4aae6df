/*
 * Tenon from C: connect, call and serve, by ONC RPC, the lean protocol or shared memory.
 *
 * `tenon gen --lang c FILE.x` makes the rest: types, how they move, a function for each procedure. What a
 * program calls itself is marked "for programs" below; the part marked "for generated code" may be read by
 * anybody and need not be.
 *
 * A function that can fail returns false or NULL and says why in a tenon_error, which may be NULL. It takes
 * no lock that a caller could hold, and may be called by any thread, unless something else is said. A text
 * that is handed over is copied. No function is for signal handlers.
 *
 * A process that has forked goes on with channels that it opened, and servers that it started, in the parent alone: a
 * child that does not exec opens its own. There, all functions but tenon_close, tenon_cancel, tenon_stream_close and
 * tenon_server_free, which do nothing, fail with TENON_CALLER.
 */
#ifndef TENON_H
#define TENON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Behind a function of a stub that the interface advises against: the compiler says so where it is called. */
#ifdef __GNUC__
#define TENON_DEPRECATED(reason) __attribute__((deprecated(reason)))
#else
#define TENON_DEPRECATED(reason)
#endif

#define TENON_VERSION_MAJOR 0
#define TENON_VERSION_MINOR 1
#define TENON_VERSION_PATCH 0

/* The version of the library that the program runs with, as "0.1.0". */
const char *tenon_version(void);

/* -- errors: for programs -- */

/* Whose fault it is, and so what can be done. */
typedef enum tenon_kind {
    TENON_OK = 0,
    /* Your call was wrong: an argument is over a bound, an address is none, a pointer is NULL. */
    TENON_CALLER = 1,
    /* The peer refused the call, or its procedure failed. code: the lean protocol's status, or 1000 and the
     * accept_stat of ONC RPC, or 2000 and its auth_stat. */
    TENON_REFUSED = 2,
    /* The peer broke the protocol, or its result is none of this interface. */
    TENON_PEER = 3,
    /* Time ran out. */
    TENON_TIMEOUT = 4,
    /* There is no connection. code: errno, if the system gave one. */
    TENON_UNREACHABLE = 5,
    /* The connection broke while the call was under way. code: errno, if the system gave one. */
    TENON_DISCONNECTED = 6,
    /* This machine has no memory, thread or socket for it, or does not let one listen. code: errno, if the system
     * gave one. */
    TENON_SYSTEM = 7,
    /* A mistake in Tenon: please report it with the text. */
    TENON_BUG = 8,
    /* The other end of a stream takes no further items, or sends none: it has answered the call or given it up. */
    TENON_CLOSED = 9
} tenon_kind;

typedef struct tenon_error {
    tenon_kind kind;
    uint32_t code;
    /* Whether the peer may have carried the call out: if not, it is safe to repeat any call. */
    bool may_have_executed;
    /* The versions that the peer has, if it has others than were asked for; otherwise 0. */
    uint32_t low, high;
    /* What happened, in words; ends in a NUL, and may have been cut to fit. */
    char text[500];
} tenon_error;

/* What TENON_REFUSED and a code of ONC RPC are made of: code - TENON_ONC is an accept_stat of RFC 5531
 * (1 PROG_UNAVAIL, 2 PROG_MISMATCH, 3 PROC_UNAVAIL, 4 GARBAGE_ARGS, 5 SYSTEM_ERR), code - TENON_ONC_AUTH
 * an auth_stat; TENON_ONC alone: the peer speaks another version of RPC. */
enum { TENON_ONC = 1000, TENON_ONC_AUTH = 2000 };

/* Prints the text to the standard error stream, behind `what` and a colon unless it is NULL. */
void tenon_error_print(const tenon_error *error, const char *what);

/* -- log: for programs -- */

typedef enum tenon_log_level {
    TENON_LOG_NONE = 0,
    TENON_LOG_ERROR = 1,
    TENON_LOG_WARNING = 2, /* what cost a call or a connection, and why: a result that could not be sent */
    TENON_LOG_INFO = 3,
    TENON_LOG_DEBUG = 4    /* connections, refusals, errors that functions return */
} tenon_log_level;

/* Is told something, in a line. It is called by any thread, several at once, and must not call the library. */
typedef void (*tenon_log_handler)(void *context, tenon_log_level level, const char *text);

/* Has what happens to channels and servers of this process, as important as LEVEL or more, told to HANDLER in the place of
 * the one before; NULL: to none. `context` has to live until a thread can no longer be in the handler. */
bool tenon_log(tenon_log_handler handler, void *context, tenon_log_level level, tenon_error *error);

/* -- codec: for generated code; plain memory -- */

/* What is wrong with a value to be sent, or with bytes that were received. */
typedef enum tenon_failure_kind {
    TENON_FINE = 0,
    TENON_TRUNCATED = 1,        /* first: bytes needed, second: bytes left */
    TENON_TOO_LONG = 2,         /* first: the length, second: the interface's bound */
    TENON_UNKNOWN_VALUE = 3,    /* first: a value that the enum or union does not have */
    TENON_NOT_A_BOOLEAN = 4,    /* first: the word */
    TENON_OUT_OF_RANGE = 5,     /* first: the word */
    TENON_TOO_DEEP = 6,
    TENON_TOO_MUCH_MEMORY = 7,  /* more than the message pays for */
    TENON_BAD_LIST = 8,         /* a list that must hold an element is empty, or one has no end */
    TENON_NULL = 9,             /* a pointer that must lead to something is NULL */
    TENON_NO_MEMORY = 10,       /* the system gave none */
    TENON_TOO_LARGE = 11,       /* first: bytes of the message so far, second: as many as may be sent */
    TENON_HOLDS_NUL = 12        /* a string that was received holds a NUL, behind which C would not see it */
} tenon_failure_kind;

typedef struct tenon_failure {
    tenon_failure_kind kind;
    /* Where in what was received; 0 for a value to be sent. */
    size_t offset;
    uint64_t first, second;
    /* The innermost field that is known, as "type.field", or NULL; it lives as long as the program. */
    const char *field;
} tenon_failure;

/* A message under way, in a buffer of the library's. What is aligned, is so as counted from base. */
typedef struct tenon_encoder {
    unsigned char *base, *at, *end;
    /* Makes room for so many bytes behind at; base, at and end may be others afterwards, at - base is the same. Returns
     * false if there is no memory or the message would be larger than may be sent, which failure says then. */
    bool (*grow)(struct tenon_encoder *encoder, size_t room);
    /* Levels of recursive types that may still be entered. */
    uint32_t depth_left;
    /* Set by whoever returns false. */
    tenon_failure failure;
} tenon_encoder;

/* A message where it was received. What is aligned, is so as counted from base; base itself may lie
 * anywhere in memory. */
typedef struct tenon_decoder {
    const unsigned char *base, *at, *end;
    /* Bytes of memory that the message may still cost its receiver: whoever takes memory for it takes so many
     * off first. It begins with 64 for each byte of the message, and 65536. */
    size_t payable;
    /* Levels of recursive types that may still be entered. */
    uint32_t depth_left;
    /* Lean only: the sender's order of bytes is not this machine's. */
    bool swapped;
    /* Set by whoever returns false. */
    tenon_failure failure;
} tenon_decoder;

/* How one type of message moves. A decoder is handed a value that is all zero, and leaves one that free
 * can be called for even if it fails. What a value owns comes from malloc. */
typedef struct tenon_message {
    size_t size, align;
    bool (*encode_xdr)(tenon_encoder *encoder, const void *value);
    bool (*decode_xdr)(tenon_decoder *decoder, void *value);
    bool (*encode_lean)(tenon_encoder *encoder, const void *value);
    bool (*decode_lean)(tenon_decoder *decoder, void *value);
    /* Gives back what the value owns, not the value; NULL: it owns nothing. */
    void (*free)(void *value);
    /* NULL. In a table of an opened interface (tenon_interface_open), where the functions are NULL: what the library moves
     * values by in their place. */
    const struct tenon_codec *codec;
    /* Of a value that lies in messages of ONC RPC, or in lean ones, as in memory, but for the order of the bytes of its
     * numbers: bytes of each of them, 1, 2, 4 or 8; in lean messages 1, too, if they have several sizes. A handler writes
     * such a result where it is sent from. 0: the functions move it. */
    uint32_t xdr_unit, lean_unit;
} tenon_message;

/* One procedure; a message that is NULL is empty. */
typedef struct tenon_procedure {
    uint32_t number;
    const char *name;
    const tenon_message *arguments, *result;
} tenon_procedure;

/*
 * A part of an interface: a procedure, or a type, whose number is 0. Where an interface differs from that of its peer,
 * procedures whose fingerprints are equal can be called all the same, and the error of the others names what differs.
 */
typedef struct tenon_part {
    const char *name;
    uint64_t fingerprint;
    uint64_t layout; /* the fingerprint without the names: where it alone is equal, something is renamed or swapped */
    uint32_t procedure;
} tenon_part;

/* A version of a program. Constant data: it has to live as long as anything that was handed it. */
typedef struct tenon_interface {
    uint32_t program, version;
    const char *name;
    /* What docs/lean-protocol.md says it is, or 0: then nobody compares it. */
    uint64_t fingerprint;
    const tenon_part *parts;
    size_t part_count;
    /* By number, in ascending order. Procedure 0 need not be there. */
    const tenon_procedure *procedures;
    size_t procedure_count;
} tenon_interface;

/* -- clients: for programs -- */

/* How a thread waits for its peer. */
typedef enum tenon_waiting {
    TENON_ADAPTIVE = 0, /* look for about as long as waking up would take, then sleep */
    TENON_BLOCK = 1,    /* sleep */
    TENON_SPIN = 2      /* look until something comes: for programs with processors to spare */
} tenon_waiting;

/* Who calls, by AUTH_SYS: a claim. */
typedef struct tenon_auth_sys {
    uint32_t stamp;
    const char *machine; /* at most 255 bytes */
    uint32_t uid, gid;
    const uint32_t *gids; /* at most 16 */
    size_t gid_count;
} tenon_auth_sys;

/* All zero says what most programs want, as TENON_OPTIONS does. Later versions may have more fields: `size` says how many
 * bytes the program knows; 0: those of version 0.1. */
typedef struct tenon_options {
    size_t size;
    uint64_t timeout_ms;         /* of every call; 0: 25 s */
    uint64_t connect_timeout_ms; /* of the first connection; 0: 25 s */
    tenon_waiting waiting;
    /* NULL: AUTH_NONE. */
    const tenon_auth_sys *credential;
    size_t send_max, receive_max; /* bytes of a call and of a reply on a stream; 0: 64 MiB */
    size_t calls_max;             /* calls that wait for their replies; 0: 4096 */
    uint64_t resend_first_ms, resend_longest_ms; /* udp://, onc+xdp://: when a call is sent again; 0: 500 and 8000 */
    bool wait_for_ready; /* calls wait for a peer that cannot be reached, for as long as they have time; else they fail at once */
    bool connect_lazily; /* with the first call: a program can start before its server */
    bool allow_insecure; /* calls carry a token (metadata `authorization`) over tcp, udp and xdp, too, where others can read it */
    uint64_t keep_alive_ms;    /* TCP: silence after which the kernel asks the peer, in whole seconds; 0: 30 s; or TENON_NEVER */
    uint64_t peer_timeout_ms;  /* TCP: time for which the peer may acknowledge nothing; 0: 60 s; TENON_NEVER: the kernel decides */
    uint64_t ping_interval_ms; /* silence after which calls that wait ask the peer; 0: 10 s by the lean protocol, and
                                  never by ONC RPC; or TENON_NEVER */
    uint64_t ping_timeout_ms;  /* time that the peer has to answer that; 0: 20 s */
} tenon_options;

/* Says of some times in tenon_options that they never come. */
#define TENON_NEVER UINT64_MAX

#define TENON_OPTIONS \
    {sizeof(tenon_options), 0, 0, TENON_ADAPTIVE, NULL, 0, 0, 0, 0, 0, false, false, false, 0, 0, 0, 0}

/* A version of a program at the other end of a connection. Any number of threads may call at once. */
typedef struct tenon_channel tenon_channel;

/* Connects to ADDRESS:
 *   tcp://HOST:PORT  udp://HOST:PORT  unix:///PATH                  by ONC RPC
 *   onc+xdp://HOST:PORT                                             the same, past the kernel
 *   lean+tcp://HOST:PORT  lean+udp://HOST:PORT  lean+unix:///PATH   by the lean protocol
 *   shm:///PATH  xdp://HOST:PORT                                    the same, over shared memory or past the kernel
 * Without a port the host's rpcbind is asked for it; past the kernel the port has to be said. Options that are NULL are all zero. */
tenon_channel *tenon_connect(const char *address, const tenon_interface *interface,
                             const tenon_options *options, tenon_error *error);

/* Calls over a SOCKET that the program has connected, by ONC RPC: TCP, UDP or a Unix stream socket. The library works with
 * a duplicate of the descriptor; reads and writes of the socket block from now on, and nothing else may read from it. A
 * connection that is lost is not made again. */
tenon_channel *tenon_connect_over(int socket, const tenon_interface *interface,
                                  const tenon_options *options, tenon_error *error);

/* The same connection, for another interface; NULL: the same one. */
tenon_channel *tenon_channel_share(const tenon_channel *channel, const tenon_interface *interface,
                                   tenon_error *error);

/* The same connection and interface, with another time for every call: 0 is none at all, and not the usual one. */
tenon_channel *tenon_channel_timeout(const tenon_channel *channel, uint64_t timeout_ms,
                                     tenon_error *error);

/* The same connection and interface, for another caller; NULL: AUTH_NONE. */
tenon_channel *tenon_channel_credential(const tenon_channel *channel,
                                        const tenon_auth_sys *credential, tenon_error *error);

/* Pairs of keys and values that travel beside the arguments of a call and the result of its reply, by the lean protocol.
 * Keys are made of a-z, 0-9, "_", "." and "-"; values are printable ASCII, or any bytes if the key ends in "-bin". Order
 * and repeats are kept. One thread at a time. */
typedef struct tenon_metadata tenon_metadata;

/* No pairs. */
tenon_metadata *tenon_metadata_new(void);

/* Frees it. NULL is nothing to do. */
void tenon_metadata_free(tenon_metadata *metadata);

/* Adds a pair, the value of LENGTH bytes. */
bool tenon_metadata_append(tenon_metadata *metadata, const char *key, const void *value, size_t length,
                           tenon_error *error);

/* The INDEX-th value of a key, from 0, and its length; NULL if there are not so many. It has no NUL behind it, and lives
 * until a pair is added. */
const void *tenon_metadata_get(const tenon_metadata *metadata, const char *key, size_t index, size_t *length);

/* The same connection and interface, with METADATA on every call beside that which is on the calls of CHANNEL already;
 * NULL: no more. The new channel keeps the metadata of replies. By ONC RPC, which has no place for it, calls with metadata
 * fail. */
tenon_channel *tenon_channel_metadata(const tenon_channel *channel, const tenon_metadata *metadata,
                                      tenon_error *error);

/* A copy of the metadata of the reply, or of the refusal, to the last call of CHANNEL that is over; to be freed. It is
 * empty if CHANNEL was not made by tenon_channel_metadata. NULL: the channel is NULL. */
tenon_metadata *tenon_channel_reply_metadata(const tenon_channel *channel);

/* Lets go of a channel that nobody uses any more; the connection is closed with the last that shares it.
 * NULL is nothing to do. */
void tenon_close(tenon_channel *channel);

/* Calls a procedure and waits for its result. What the result was before is not looked at; it is all zero
 * if the call fails, however it does. Only without a procedure, when nobody knows its size, it stays as it is. It may
 * own memory: its message's free, or tenon_clear. */
bool tenon_call(tenon_channel *channel, const tenon_procedure *procedure, const void *arguments,
                void *result, tenon_error *error);

/* Calls procedure 0, which every server answers. */
bool tenon_ping(tenon_channel *channel, tenon_error *error);

/* A call that was sent and not waited for. Its channel may be closed before it. */
typedef struct tenon_pending tenon_pending;

/* Sends a call; returns as soon as it is under way. The arguments are no longer needed then. */
tenon_pending *tenon_start(tenon_channel *channel, const tenon_procedure *procedure,
                           const void *arguments, tenon_error *error);

/* Waits for its result as tenon_call does. The pending call is gone afterwards, whatever is returned. If it is NULL,
 * as tenon_start returns it, that is TENON_CALLER, and the result stays as it is: nobody knows its size. */
bool tenon_finish(tenon_pending *pending, void *result, tenon_error *error);

/* Waits no longer than limit_ms, and says whether tenon_finish would return at once. One thread at a
 * time. */
bool tenon_ready(tenon_pending *pending, uint64_t limit_ms);

/* Gives a call up instead of finishing it; a lean server is told so. NULL is nothing to do. */
void tenon_cancel(tenon_pending *pending);

/* -- clients: for programs with an event loop of their own -- */

/* What poll, epoll, libuv or libev is to watch for something to read, level-triggered, as they do by default: while it
 * is readable, there is something to do for tenon_channel_step. It stays the same until tenon_close, also when the
 * connection is made again, and is the library's. From now on tenon_start does not wait for room in the socket, and no
 * other thread may wait for calls over the connection; one of the channels that share it is stepped for all. -1 and an
 * error: the process has too many descriptors. */
int tenon_channel_descriptor(tenon_channel *channel, tenon_error *error);

/* Milliseconds after which tenon_channel_step is to be called even if the descriptor has not become readable: a call is
 * given up or sent again then. As poll wants it: -1 is never. */
int tenon_channel_next_timeout(tenon_channel *channel);

/* Sends what waits and receives what has come, without waiting. To be called behind each tenon_start, too. Afterwards
 * tenon_ready(pending, 0) says which calls have ended; look at all of them, as some end by their time. What still waits:
 * a tenon_start or tenon_ready that has to connect again, and over lean+udp:// a tenon_start that the server has no room
 * for. */
bool tenon_channel_step(tenon_channel *channel, tenon_error *error);

/* Gives back what a value owns, if it owns something, and zeroes it. NULL is nothing to do. */
void tenon_clear(const tenon_message *message, void *value);

/* An error that the interface declares for a procedure, behind `raises`. Generated code has one for each, and functions
 * for its type that call tenon_raise and tenon_raised. */
typedef struct tenon_raised_type {
    /* Its position in the list, counted from 0. */
    uint32_t position;
    /* The name of its type. */
    const char *name;
    /* Alignment of a value in lean messages: 1, 2, 4 or 8. */
    size_t align;
    const tenon_message *message;
} tenon_raised_type;

/* Whether the last function of the library that failed in this thread did so because the procedure raised this error:
 * tenon_call, tenon_finish and what generated code calls. The error is decoded to `value`, which need not be initialised
 * and owns what it points to as a result does (tenon_clear); NULL only asks. False: it raised another error
 * or none, sent bytes that are no such error, or was called by ONC RPC, which does not carry errors; `value` is not to be
 * used then. The error can be asked for again until another function fails. */
bool tenon_raised(const tenon_raised_type *type, void *value);

/* -- marshalling without a call: for programs -- */

/* How a value lies in bytes. */
typedef enum tenon_representation {
    TENON_XDR = 0,         /* as ONC RPC has it: RFC 4506 */
    TENON_LEAN = 1,        /* as the lean protocol has it, in this machine's order of bytes */
    TENON_LEAN_SWAPPED = 2 /* in the other order; to be decoded only */
} tenon_representation;

/* Encodes a value into a buffer of SIZE bytes, and says how many it has used in `length`, which may be NULL. MESSAGE is the
 * type's table, of generated code or of an opened interface. A value that does not fit is TENON_CALLER. */
bool tenon_encode(const tenon_message *message, tenon_representation representation, const void *value,
                  void *buffer, size_t size, size_t *length, tenon_error *error);

/* The same, into memory from malloc that is the program's. MAX is how many bytes there may be, and so what a list without end
 * may cost; 0: 64 MiB. NULL and an error: there is none. */
void *tenon_encode_alloc(const tenon_message *message, tenon_representation representation, const void *value,
                         size_t max, size_t *length, tenon_error *error);

/* Decodes the value that LENGTH bytes begin with, and says in `used` how many of them it takes; NULL: all of them, or it is an
 * error. `value` need not be initialised, and owns memory as a result does (tenon_clear); if this fails, it is all zero. Bytes
 * that are no value of the type are TENON_PEER. They may have come from anywhere: what they cost is bounded as it is for a
 * message (tenon_decoder). */
bool tenon_decode(const tenon_message *message, tenon_representation representation, const void *bytes,
                  size_t length, void *value, size_t *used, tenon_error *error);

/* -- interfaces that are opened at run time: for programs -- */

/*
 * A program that does not know an interface when it is built opens its file when it runs, and has the tables that generated code
 * has: for tenon_connect, tenon_call, tenon_start, tenon_encode, tenon_clear, tenon_server_add. Values lie in memory as the
 * header generated for the same file declares them, and are moved by machine code, which is made when a message has been moved
 * a thousand times; before, and where there is no machine code for the processor, the interpreter moves them.
 */

/* An interface file that was opened. It does not change, and any number of threads may use it. */
typedef struct tenon_interface_file tenon_interface_file;

/* The header that declares the types. */
typedef enum tenon_layout {
    TENON_LAYOUT_STUBS = 0, /* that of `tenon gen --lang c` */
    TENON_LAYOUT_RPCGEN = 1 /* that of rpcgen, also `tenon rpcgen`; no interface in which a type is spelled `long` */
} tenon_layout;

/* What moves values. */
typedef enum tenon_engine {
    TENON_ENGINE_ADAPTIVE = 0,   /* machine code, made of each message when that has been moved often */
    TENON_ENGINE_COMPILED = 1,   /* machine code, made of all messages when the interface is opened */
    TENON_ENGINE_INTERPRETED = 2 /* the interpreter */
} tenon_engine;

/* All zero says what most programs want, as TENON_OPEN_OPTIONS does. `size` says how many bytes the program knows; 0: those of
 * version 0.1. */
typedef struct tenon_open_options {
    size_t size;
    tenon_layout layout;
    tenon_engine engine;
    /* Folders in which #include lines are looked up, behind that of the file. */
    const char *const *include;
    size_t include_count;
    /* Macros, as "NAME" or "NAME=VALUE". */
    const char *const *define;
    size_t define_count;
} tenon_open_options;

#define TENON_OPEN_OPTIONS \
    {sizeof(tenon_open_options), TENON_LAYOUT_STUBS, TENON_ENGINE_ADAPTIVE, NULL, 0, NULL, 0}

/* Opens the interface in a file, which is a text or a descriptor (docs/descriptor.md). If it is none, that is TENON_CALLER,
 * and error.text says where, as "store.x:7:12: ..."; so is an interface with types for which C has no layout: those that it
 * only names, and `quadruple`. Options that are NULL are all zero. */
tenon_interface_file *tenon_interface_open(const char *path, const tenon_open_options *options,
                                           tenon_error *error);

/* The same of LENGTH bytes in memory, a text or a descriptor. Errors call it NAME; NULL: "interface". They may have come from
 * anywhere: no file is read for an #include line, unless the options name folders, and then from that of NAME, too. */
tenon_interface_file *tenon_interface_parse(const void *bytes, size_t length, const char *name,
                                            const tenon_open_options *options, tenon_error *error);

/* Lets go of it and of its tables, which nothing may use any more: no channel, pending call, server or value that is yet to be
 * cleared. NULL is nothing to do. */
void tenon_interface_free(tenon_interface_file *file);

/* The version of a program, by the program's name in the file; NULL: the only program. 0: the highest version, unless the
 * program has a version 0. NULL and an error: it is not there. It lives until tenon_interface_free, as all tables do. */
const tenon_interface *tenon_interface_version(const tenon_interface_file *file, const char *program,
                                               uint32_t version, tenon_error *error);

/* A procedure of a version, by its name in the file; also of the tables of generated code. NULL and an error: it is not there, or
 * has streams. Its arguments lie in a struct with a field for each parameter, as in C, so that a single one is just its value;
 * size and align of `arguments` and `result` are those of the types in C, which a program can hold against its own. */
const tenon_procedure *tenon_interface_procedure(const tenon_interface *interface, const char *procedure,
                                                 tenon_error *error);

/* The table of a type, by its name in the file. NULL and an error: it is not there. */
const tenon_message *tenon_interface_type(const tenon_interface_file *file, const char *type, tenon_error *error);

/* An error of the interface that a procedure of a version raises, by the name of its type: for tenon_raised and tenon_raise.
 * NULL and an error: it is not there. */
const tenon_raised_type *tenon_interface_raised(const tenon_interface_file *file, const tenon_interface *interface,
                                                const char *procedure, const char *type, tenon_error *error);

/* Calls a procedure by its name, as tenon_call does. The channel was connected with the same INTERFACE. A program that calls
 * often looks the procedure up once. */
bool tenon_interface_call(const tenon_interface *interface, tenon_channel *channel, const char *procedure,
                          const void *arguments, void *result, tenon_error *error);

/* -- streams: for programs -- */

/*
 * A call with streams: its last argument, its result or both are sequences of items, which go both ways at once, as many as
 * there are. Items are messages of their own, and the peer holds the sender back. The lean protocol alone carries them, over
 * a connection: lean+tcp://, lean+unix:// and shm://.
 *
 * A client opens a call (tenon_stream_open) and closes it. In a handler the stream is the library's. One thread may send while
 * another receives; more of them wait for each other. Functions that wait do so as long as the call has time: a client's
 * has no end unless tenon_options or tenon_channel_timeout sets one.
 */
typedef struct tenon_stream tenon_stream;

/* A procedure with streams. Constant data. Generated code has one for each, and functions for the types of its items that
 * call those below. */
typedef struct tenon_stream_procedure {
    uint32_t number;
    const char *name;
    /* The arguments without the stream, and the result unless that is one; NULL: empty. */
    const tenon_message *arguments, *result;
    /* An item of the last argument, and one of the result; NULL: that is no stream. */
    const tenon_message *argument_item, *result_item;
    /* If items are opaque<>, how many bytes the interface lets one have, for tenon_stream_read and tenon_stream_write; 0:
     * items are something else. */
    uint32_t argument_bytes, result_bytes;
} tenon_stream_procedure;

/* Makes a call with streams, which is under way when this returns; the arguments are no longer needed then. Its channel may
 * be closed before it. While a channel is stepped, no stream of it may be waited for. */
tenon_stream *tenon_stream_open(tenon_channel *channel, const tenon_stream_procedure *procedure,
                                const void *arguments, tenon_error *error);

/* Sends an item at once, and waits until the peer has room for it. An item that cannot be encoded is TENON_CALLER and is left
 * out. TENON_CLOSED: the peer takes no further items; at the client tenon_stream_result or tenon_stream_receive say why. */
bool tenon_stream_send(tenon_stream *stream, const void *item, tenon_error *error);

/* Takes an item, which is sent with others when there are many, or by tenon_stream_flush: small items cost less so. */
bool tenon_stream_feed(tenon_stream *stream, const void *item, tenon_error *error);

/* Sends the items that were fed. */
bool tenon_stream_flush(tenon_stream *stream, tenon_error *error);

/* Sends bytes where items are opaque<>, as one sequence whatever items it is cut into: any number of bytes makes as many items
 * as it needs, which respect the interface's bound. */
bool tenon_stream_write(tenon_stream *stream, const void *buffer, size_t size, tenon_error *error);

/* Sends what was fed, and tells the peer that these are all items. A handler need not: its stream ends when it returns. */
bool tenon_stream_finish(tenon_stream *stream, tenon_error *error);

/* Waits for an item. 1: it is in `item`, which need not be initialised, and may own memory: tenon_clear. 0: there are no more.
 * -1: the stream has failed; at the client, error is that of the call, and tenon_raised knows it. `item` is all zero then. */
int tenon_stream_receive(tenon_stream *stream, void *item, tenon_error *error);

/* Waits for bytes where items are opaque<>, and copies no more than SIZE of them. Returns how many, or 0 if there are no more,
 * or -1, as tenon_stream_receive does. */
int64_t tenon_stream_read(tenon_stream *stream, void *buffer, size_t size, tenon_error *error);

/* For clients, where the result is no stream: finishes the stream unless that is done, and waits for the result as tenon_call
 * does, once. The stream is still to be closed. */
bool tenon_stream_result(tenon_stream *stream, void *result, tenon_error *error);

/* For clients: gives the call up unless it is answered. Any thread may, while others wait for the stream, which fails. */
void tenon_stream_cancel(tenon_stream *stream);

/* For clients: lets go of a stream that nothing uses any more, and gives the call up unless it is answered; the server is told
 * so. NULL is nothing to do. */
void tenon_stream_close(tenon_stream *stream);

/* -- servers: for programs -- */

/* A server, before and while it serves. */
typedef struct tenon_server tenon_server;

/* A call that came in, for as long as its handler runs. */
typedef struct tenon_request tenon_request;

/* Why a handler does not carry its call out. */
typedef enum tenon_refusal {
    /* The procedure failed. ONC RPC: SYSTEM_ERR; the words stay in the server. */
    TENON_FAILED = 1,
    /* The procedure raised an error: a lean client is told the words. ONC RPC: SYSTEM_ERR. */
    TENON_RAISED = 2,
    /* There is no such procedure. */
    TENON_NO_PROCEDURE = 3,
    /* The arguments are none that the procedure takes. ONC RPC: GARBAGE_ARGS. */
    TENON_ARGUMENTS = 4,
    /* The caller may not. ONC RPC: AUTH_ERROR with AUTH_TOOWEAK; TENON_ONC_AUTH and an auth_stat in the place of
     * this says another. */
    TENON_FORBIDDEN = 5
} tenon_refusal;

/* Refuses the call; the words may be NULL. Returns false, which the handler returns in turn:
 *     return tenon_refuse(request, TENON_RAISED, "the quota is used up");
 */
bool tenon_refuse(tenon_request *request, unsigned why, const char *words);

/* Refuses the call with an error of its interface, which is encoded before this returns; words that are NULL are the name
 * of its type. A lean client is told the words and the error, a client of ONC RPC SYSTEM_ERR. An error that cannot be
 * encoded is TENON_FAILED. Returns false, which the handler returns in turn. */
bool tenon_raise(tenon_request *request, const tenon_raised_type *type, const void *value, const char *words);

/* Says that what the result owns is not the library's to free: constants, parts of the arguments, or what
 * the handler's program keeps. It is read as soon as the handler has returned, by the same thread, before
 * the arguments are freed. */
void tenon_keep(tenon_request *request);

/* The procedure's number. */
uint32_t tenon_request_procedure(const tenon_request *request);

/* Whether the caller says by AUTH_SYS who it is: a claim, to be believed only of a network you trust. What
 * is written to `claim` lives as long as the request. */
bool tenon_request_auth_sys(tenon_request *request, tenon_auth_sys *claim);

/* Whether it is known which user the caller's process ran as when it connected, by the kernel: over a Unix socket and in
 * shared memory. It is written to `uid`, which may be NULL. */
bool tenon_request_user(const tenon_request *request, uint32_t *uid);

/* Where the caller is, as "192.0.2.1:1023"; empty over a Unix socket and shared memory. Lives as long as the
 * request. */
const char *tenon_request_peer(tenon_request *request);

/* What the call came over: "tcp", "unix", "udp", "shm" or "xdp". */
const char *tenon_request_transport(const tenon_request *request);

/* Where the caller is, in bytes: writes 4 or 16 of them and says how many, or 0 over a Unix socket and shared memory. */
size_t tenon_request_ip(const tenon_request *request, unsigned char address[16], uint16_t *port);

/* The INDEX-th value of a key in the metadata of the call, from 0, and its length; NULL if there are not so many. It has
 * no NUL behind it, and lives as long as the request. */
const void *tenon_request_metadata(const tenon_request *request, const char *key, size_t index,
                                   size_t *length);

/* Adds a pair to the metadata of the reply, which goes with the result and with a refusal. Clients of ONC RPC are not
 * told. All pairs have at most 8 KiB. */
bool tenon_request_append_metadata(tenon_request *request, const char *key, const void *value, size_t length,
                                   tenon_error *error);

/* Milliseconds until the caller stops waiting, rounded up: 0 if it has; -1 if it has not said so, which clients of ONC
 * RPC cannot. */
int64_t tenon_request_time_left_ms(const tenon_request *request);

/* Whether the caller is known to have stopped waiting: it has cancelled the call, it is gone, or its time has run out. A
 * handler that takes long asks now and then, and refuses the call; whatever it returns is not sent. Other threads of the
 * handler may ask, too. A service that is added with TENON_IN_ORDER and a server that an event loop steps receive
 * nothing while a handler runs, and know only whether the time has run out. */
bool tenon_request_cancelled(const tenon_request *request);

/* -- servers: for generated code -- */

/* Carries a call out. `methods` is the program's own table, `context` its own as well. The arguments, which are
 * NULL if the procedure has none, belong to the library, which frees them; a handler that keeps something that they
 * own puts NULL in its place. The result, if the procedure has one, is all zero and is freed when it was
 * sent. Returns true, or false and has refused. It must not leave by longjmp or an exception of C++. */
typedef bool (*tenon_handler)(const void *methods, void *context, void *arguments, void *result,
                              tenon_request *request);

/* In which order the calls of one connection are carried out. */
typedef enum tenon_order {
    TENON_ANY_ORDER = 0, /* calls do not wait for one that takes long: another thread goes on with them */
    TENON_IN_ORDER = 1   /* one after the other, as they came; calls in datagrams have no order */
} tenon_order;

/* Adds a service to a server that does not serve yet: a handler for each procedure of the interface, in the
 * order in which the interface has them; NULL: it is not there. `handlers` is copied, the interface, `methods` and
 * `context` have to live until tenon_server_free has returned. Handlers run on several threads at once. */
bool tenon_server_add(tenon_server *server, const tenon_interface *interface,
                      const tenon_handler *handlers, const void *methods, void *context,
                      tenon_order order, tenon_error *error);

/* Carries a call with streams out, as a tenon_handler does other calls, on a thread of its own, also where the server is
 * stepped: it may take as long as its caller likes. It receives the items of the argument from `stream`, and sends those of the result there; `stream` is the
 * library's, and lives as long as the handler runs. It returns true when it has sent all items, or false and has refused:
 * the caller is told behind the items. -1 and false with TENON_CLOSED: the caller has given the call up. */
typedef bool (*tenon_stream_handler)(const void *methods, void *context, void *arguments, tenon_stream *stream,
                                     void *result, tenon_request *request);

/* The procedures of a version that have streams, in any order, and a handler for each; NULL: it is not there. `handlers` is
 * copied, `procedures` has to live as long as the interface. */
typedef struct tenon_stream_service {
    const tenon_stream_procedure *procedures;
    const tenon_stream_handler *handlers;
    size_t count;
} tenon_stream_service;

/* As tenon_server_add, of an interface with procedures that have streams, which are not among its others. With TENON_IN_ORDER
 * the next call of a connection to the service waits for the end of a call with streams, and what comes behind it in the
 * connection waits as well, items included: streams are for TENON_ANY_ORDER. */
bool tenon_server_add_streams(tenon_server *server, const tenon_interface *interface,
                              const tenon_handler *handlers, const tenon_stream_service *streams,
                              const void *methods, void *context, tenon_order order, tenon_error *error);

/* Carries a call out whose messages nobody has described: reads the arguments and writes the result. */
typedef bool (*tenon_raw_handler)(void *context, tenon_decoder *arguments, tenon_encoder *result,
                                  tenon_request *request);

/* Adds a version of a program all of whose procedures but 0 have one handler, as tenon_server_add does; for
 * ONC RPC only. */
bool tenon_server_add_raw(tenon_server *server, uint32_t program, uint32_t version,
                          tenon_raw_handler handler, void *context, tenon_order order,
                          tenon_error *error);

/* -- servers: for programs again -- */

/* A server without services and listen addresses; NULL if there is no memory. */
tenon_server *tenon_server_new(void);

/* Is to listen at ADDRESS too, tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH, shm:///PATH, xdp://HOST:PORT or
 * onc+xdp://HOST:PORT; port 0: any. One port serves ONC RPC and the lean protocol, without lean+; shm:// and xdp:// serve
 * the lean protocol alone. */
bool tenon_server_listen(tenon_server *server, const char *address, tenon_error *error);

/* How its threads wait for peers. */
void tenon_server_waiting(tenon_server *server, tenon_waiting waiting);

/* How many threads it may have, which are started as they are needed; 0: 256. Calls that find all of them busy wait. */
void tenon_server_threads(tenon_server *server, size_t threads);

/* How many bytes a result may have, and so what a list without end may cost; 0: 64 MiB. A larger one is refused with
 * SYSTEM_ERR, and the log says so. */
void tenon_server_send_max(tenon_server *server, size_t bytes);

/* Whether this host's rpcbind is to be told of it, until it ends. */
void tenon_server_rpcbind(tenon_server *server, bool is_registered);

/* Unix sockets and shared memory: takes connections of processes of these users only. */
void tenon_server_users(tenon_server *server, const uint32_t *uids, size_t count);

/* Listens and begins to serve, on threads of its own. */
bool tenon_server_start(tenon_server *server, tenon_error *error);

/* Where it listens, the INDEXth address in the order in which they were given, with its real port; NULL if there is
 * none or the server does not serve. Lives as long as the server. */
const char *tenon_server_address(const tenon_server *server, size_t index);

/* Starts unless it has, and serves until tenon_server_stop was called, by another thread or by a handler; if that was
 * before it served, it returns at once, and true. Any number of threads may. */
bool tenon_server_run(tenon_server *server, tenon_error *error);

/* -- servers: for programs with an event loop of their own -- */

/* Listens, and serves within tenon_server_step alone: the library starts no thread. Handlers run within the step, one
 * after the other; one that takes long delays the program's loop and all other calls. tenon_server_waiting and
 * tenon_server_threads mean nothing then. */
bool tenon_server_start_stepped(tenon_server *server, tenon_error *error);

/* What poll, epoll, libuv or libev is to watch for something to read, level-triggered, as they do by default: while it
 * is readable, there is something to do for tenon_server_step. It stays the same until tenon_server_free, and is the
 * library's: nothing else may read or close it. -1 if the server is not stepped, or a step runs. */
int tenon_server_descriptor(const tenon_server *server);

/* Milliseconds after which tenon_server_step is to be called even if the descriptor has not become readable: for
 * limits on what peers may take, and packets that are sent again. As poll wants it: -1 is never. It is another after
 * each step. */
int tenon_server_next_timeout(const tenon_server *server);

/* Serves what has come, without waiting: accepts, and gives every connection that has something to say a turn, of a
 * bounded number of calls. What is left keeps the descriptor readable. Returns true; false and TENON_OK once the server
 * was stopped; false and TENON_CALLER if it is not stepped, or a step runs already: one thread at a time may step, and
 * no handler. */
bool tenon_server_step(tenon_server *server, tenon_error *error);

/* -- servers: stopping -- */

/* Begins to stop: nothing new is taken in, and calls that were begun are answered for up to drain_ms. Returns at
 * once if a handler calls it, otherwise when it is done. A handler that takes longer goes on until it returns, and
 * its reply goes nowhere: tenon_server_free waits for it. The descriptor of a stepped server becomes readable. A server
 * that does not serve yet never will. */
void tenon_server_stop(tenon_server *server, uint64_t drain_ms);

/* What it has seen since it started. */
typedef struct tenon_server_counters {
    uint64_t calls, pings, refusals, service_refusals, violations;
    uint64_t connections_open, connections_accepted, broken_connections;
    uint64_t reserved[8];
} tenon_server_counters;

void tenon_server_count(const tenon_server *server, tenon_server_counters *counters);

/* Stops it, with a second for calls that were begun, if it serves and nobody has stopped it; waits until every
 * handler has returned, however long that takes; and lets go of it. From then on nothing uses what it was handed:
 * interfaces, methods, contexts. NULL is nothing to do. Not for handlers: one would wait for itself. */
void tenon_server_free(tenon_server *server);

#ifdef __cplusplus
}
#endif

#endif
