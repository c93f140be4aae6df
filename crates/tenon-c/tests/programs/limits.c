/* What values without end cost, what a forked child is told, what the log says, and pointers that are NULL. */
#include <tenon.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static tenon_error error;

static void check_at(bool holds, const char *what, int line) {
    if (holds) return;
    fprintf(stderr, "line %d: not so: %s (kind %d, code %u)\n", line, what, (int)error.kind, error.code);
    tenon_error_print(&error, "the last error");
    exit(1);
}
#define CHECK(holds) check_at(holds, #holds, __LINE__)

/* A list whose last element leads to its first. */
typedef struct cycle {
    uint32_t value;
    struct cycle *next;
} cycle;

static bool room(tenon_encoder *out, size_t bytes) {
    return (size_t)(out->end - out->at) >= bytes || out->grow(out, bytes);
}

static bool put_cycle(tenon_encoder *out, const void *value) {
    for (const cycle *each = value; each != NULL; each = each->next) {
        if (!room(out, 8)) return false;
        memset(out->at, 1, 8);
        out->at += 8;
    }
    return true;
}

static bool get_nothing(tenon_decoder *in, void *value) {
    (void)value;
    in->at = in->end;
    return true;
}

static const tenon_message cycle_message = {sizeof(cycle), _Alignof(cycle), put_cycle, get_nothing, put_cycle, get_nothing,
                                            NULL, NULL, 0, 0};
enum { TAKE, GIVE };
static const tenon_procedure procedures[] = {{1, "take", &cycle_message, NULL}, {2, "give", NULL, &cycle_message}};
static const tenon_interface cycles = {0x20000abe, 1, "CYCLES", 0, NULL, 0, procedures, 2};

static bool take(const void *methods, void *context, void *arguments, void *result, tenon_request *request) {
    (void)methods, (void)context, (void)arguments, (void)result, (void)request;
    return true;
}

static bool give(const void *methods, void *context, void *arguments, void *result, tenon_request *request) {
    (void)methods, (void)context, (void)arguments;
    cycle *back = result;
    tenon_keep(request);
    back->next = back;
    return true;
}

/* -- the log -- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int told, warnings;
static char last_warning[1000];

static void hear(void *context, tenon_log_level level, const char *text) {
    if (context != &told || strlen(text) >= sizeof last_warning) abort();
    pthread_mutex_lock(&lock);
    told++;
    if (level == TENON_LOG_WARNING) {
        warnings++;
        strcpy(last_warning, text);
    }
    pthread_mutex_unlock(&lock);
}

static int count_of(const int *what) {
    pthread_mutex_lock(&lock);
    int count = *what;
    pthread_mutex_unlock(&lock);
    return count;
}

/* -- values without end -- */

static tenon_channel *connect_with(const char *address, const tenon_options *options) {
    tenon_channel *channel = tenon_connect(address, &cycles, options, &error);
    CHECK(channel != NULL);
    return channel;
}

static void is_refused(tenon_channel *channel, tenon_kind kind, const char *text) {
    cycle endless = {1, &endless}, back;
    CHECK(!tenon_call(channel, &procedures[TAKE], &endless, NULL, &error));
    CHECK(error.kind == kind && strstr(error.text, text) != NULL && !error.may_have_executed);
    CHECK(tenon_start(channel, &procedures[TAKE], &endless, &error) == NULL);
    CHECK(error.kind == kind);
    /* The connection is as it was. */
    endless.next = NULL;
    CHECK(tenon_call(channel, &procedures[TAKE], &endless, NULL, &error));
    (void)back;
}

static void calls_without_end_are_refused(const char *address) {
    tenon_options options = {0};
    tenon_channel *channel = connect_with(address, NULL);
    is_refused(channel, TENON_CALLER, "67108864 bytes, the limit, are not enough");
    tenon_close(channel);
    options.send_max = 5000;
    channel = connect_with(address, &options);
    is_refused(channel, TENON_CALLER, "5000 bytes, the limit, are not enough");
    tenon_close(channel);
}

static void results_without_end_are_refused(const char *address) {
    tenon_channel *channel = connect_with(address, NULL);
    cycle back;
    int before = count_of(&warnings);
    CHECK(!tenon_call(channel, &procedures[GIVE], NULL, &back, &error));
    CHECK(error.kind == TENON_REFUSED);
    CHECK(count_of(&warnings) == before + 1);
    CHECK(strstr(last_warning, "the result cannot be sent: 1000000 bytes, the limit, are not enough") != NULL);
    CHECK(strstr(last_warning, "a procedure failed") != NULL && strstr(last_warning, "procedure") != NULL);
    tenon_close(channel);
}

static void memory_that_is_missing_is_an_error(const char *address) {
    struct rlimit before, little;
    tenon_options options = {0};
    options.send_max = (size_t)1 << 40;
    tenon_channel *channel = connect_with(address, &options);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    little = before;
    little.rlim_cur = (rlim_t)1 << 30;
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    is_refused(channel, TENON_SYSTEM, "there is no memory");
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    tenon_close(channel);
}

/* -- a forked child -- */

static void child_is_told(tenon_channel *channel, tenon_pending *pending, tenon_server *server) {
    cycle one = {1, NULL};
    CHECK(!tenon_ping(channel, &error));
    CHECK(error.kind == TENON_CALLER && strstr(error.text, "before this process was forked") != NULL);
    CHECK(!tenon_call(channel, &procedures[TAKE], &one, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(tenon_start(channel, &procedures[TAKE], &one, &error) == NULL);
    CHECK(tenon_channel_share(channel, NULL, &error) == NULL);
    CHECK(tenon_channel_descriptor(channel, &error) == -1);
    CHECK(!tenon_finish(pending, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_server_run(server, &error) && error.kind == TENON_CALLER);
    CHECK(tenon_server_address(server, 0) == NULL);
    tenon_close(channel);
    tenon_server_stop(server, 0);
    tenon_server_free(server);
}

static void children_open_their_own(const char *address, tenon_server *server) {
    tenon_channel *channel = connect_with(address, NULL);
    cycle one = {1, NULL};
    tenon_pending *pending = tenon_start(channel, &procedures[TAKE], &one, &error);
    CHECK(pending != NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        child_is_told(channel, pending, server);
        tenon_channel *own = connect_with(address, NULL);
        CHECK(tenon_ping(own, &error));
        tenon_close(own);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(tenon_finish(pending, NULL, &error));
    CHECK(tenon_ping(channel, &error));
    tenon_close(channel);
}

/* -- NULL -- */

static void nothing_is_dereferenced(tenon_channel *channel, tenon_server *server) {
    tenon_auth_sys claim = {0, NULL, 1, 2, NULL, 7};
    uint16_t port;
    unsigned char ip[16];
    CHECK(tenon_connect(NULL, &cycles, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect("tcp://localhost:1", NULL, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect(NULL, NULL, NULL, NULL) == NULL);
    CHECK(tenon_connect_over(-1, &cycles, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect_over(0, NULL, NULL, NULL) == NULL);
    CHECK(tenon_channel_share(NULL, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_channel_timeout(NULL, 1, NULL) == NULL);
    CHECK(tenon_channel_credential(NULL, &claim, &error) == NULL && error.kind == TENON_CALLER);
    claim.gid_count = SIZE_MAX;
    claim.gids = ((uint32_t[20]){0});
    CHECK(tenon_channel_credential(channel, &claim, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(!tenon_call(NULL, &procedures[TAKE], &claim, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(channel, NULL, NULL, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(channel, &procedures[TAKE], NULL, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(channel, &procedures[GIVE], NULL, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(tenon_start(channel, NULL, NULL, NULL) == NULL);
    CHECK(!tenon_ping(NULL, NULL) && !tenon_finish(NULL, NULL, NULL));
    CHECK(tenon_ready(NULL, 0));
    CHECK(tenon_channel_descriptor(NULL, NULL) == -1 && tenon_channel_next_timeout(NULL) == -1);
    CHECK(!tenon_channel_step(NULL, NULL));
    tenon_close(NULL);
    tenon_cancel(NULL);
    tenon_clear(NULL, NULL);
    tenon_clear(&cycle_message, NULL);
    tenon_error_print(NULL, NULL);
    CHECK(!tenon_refuse(NULL, TENON_FAILED, NULL));
    tenon_keep(NULL);
    CHECK(tenon_request_procedure(NULL) == 0 && !tenon_request_auth_sys(NULL, NULL));
    CHECK(tenon_request_peer(NULL)[0] == 0 && tenon_request_transport(NULL)[0] == 0);
    CHECK(tenon_request_ip(NULL, ip, &port) == 0);
    CHECK(!tenon_server_add(NULL, &cycles, NULL, NULL, NULL, TENON_ANY_ORDER, NULL));
    CHECK(!tenon_server_add(server, NULL, NULL, NULL, NULL, TENON_ANY_ORDER, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_server_add(server, &cycles, NULL, NULL, NULL, TENON_ANY_ORDER, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_server_add_raw(server, 1, 1, NULL, NULL, TENON_ANY_ORDER, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_server_listen(server, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_server_listen(NULL, "tcp://localhost:0", NULL));
    tenon_server_waiting(NULL, TENON_SPIN);
    tenon_server_threads(NULL, 1);
    tenon_server_send_max(NULL, 1);
    tenon_server_rpcbind(NULL, true);
    tenon_server_users(NULL, NULL, 0);
    CHECK(!tenon_server_start(NULL, NULL) && !tenon_server_run(NULL, NULL) && !tenon_server_start_stepped(NULL, NULL));
    CHECK(tenon_server_address(NULL, 0) == NULL && tenon_server_descriptor(NULL) == -1);
    CHECK(tenon_server_next_timeout(NULL) == -1 && !tenon_server_step(NULL, NULL));
    tenon_server_stop(NULL, 0);
    tenon_server_count(NULL, NULL);
    tenon_server_free(NULL);
    CHECK(tenon_log(NULL, NULL, TENON_LOG_NONE, NULL));
    CHECK(!tenon_log(hear, &told, (tenon_log_level)9, &error) && error.kind == TENON_CALLER);
}

/* A program of a later version, which knows options that the library does not. */
static void options_grow(const char *address) {
    struct {
        tenon_options options;
        uint64_t later;
    } more = {TENON_OPTIONS, 0};
    tenon_close(connect_with(address, &more.options));
    more.options.size = sizeof more;
    tenon_close(connect_with(address, &more.options));
    more.later = 1;
    CHECK(tenon_connect(address, &cycles, &more.options, &error) == NULL && error.kind == TENON_CALLER);
    more.options.size = 3;
    CHECK(tenon_connect(address, &cycles, &more.options, &error) == NULL && error.kind == TENON_CALLER);
}

/* -- a peer that is not there yet, or not any more -- */

static void *ping(void *channel) {
    tenon_error waited;
    return tenon_ping(channel, &waited) ? channel : NULL;
}

/* ADDRESS is one that nobody listens on, until a server of HANDLERS does. */
static void calls_may_wait_for_a_server(const char *address, const tenon_handler *handlers) {
    tenon_options options = TENON_OPTIONS;
    CHECK(tenon_connect(address, &cycles, &options, &error) == NULL && error.kind == TENON_UNREACHABLE);
    options.connect_lazily = true;
    tenon_channel *hasty = connect_with(address, &options);
    CHECK(!tenon_ping(hasty, &error) && error.kind == TENON_UNREACHABLE && !error.may_have_executed);
    options.wait_for_ready = true;
    tenon_channel *patient = connect_with(address, &options);
    pthread_t waiting;
    void *reached;
    CHECK(pthread_create(&waiting, NULL, ping, patient) == 0);
    tenon_server *server = tenon_server_new();
    CHECK(tenon_server_add(server, &cycles, handlers, NULL, NULL, TENON_ANY_ORDER, &error));
    CHECK(tenon_server_listen(server, address, &error) && tenon_server_start(server, &error));
    CHECK(pthread_join(waiting, &reached) == 0 && reached == patient);
    tenon_close(patient);
    tenon_close(hasty);
    tenon_server_free(server);
}

/* Whatever is said of silent peers, one that answers is not given up. */
static void times_may_be_set_or_never_come(const char *address) {
    static const uint64_t times[] = {0, 1, 20000, TENON_NEVER};
    for (size_t index = 0; index < sizeof times / sizeof *times; index++) {
        tenon_options options = TENON_OPTIONS;
        options.keep_alive_ms = options.peer_timeout_ms = times[index];
        options.ping_interval_ms = options.ping_timeout_ms = times[index];
        tenon_channel *channel = connect_with(address, &options);
        CHECK(tenon_ping(channel, &error));
        tenon_close(channel);
    }
}

static void errors_speak_c(const char *address) {
    tenon_options options = {0};
    options.calls_max = 1;
    tenon_channel *channel = connect_with(address, &options);
    cycle one = {1, NULL};
    tenon_pending *first = tenon_start(channel, &procedures[TAKE], &one, &error);
    CHECK(first != NULL);
    CHECK(tenon_start(channel, &procedures[TAKE], &one, &error) == NULL);
    CHECK(strstr(error.text, "calls_max in tenon_options") != NULL && strstr(error.text, "::") == NULL);
    CHECK(tenon_finish(first, NULL, &error));
    tenon_close(channel);
    tenon_server *server = tenon_server_new();
    CHECK(!tenon_server_start(server, &error));
    CHECK(strstr(error.text, "tenon_server_listen") != NULL && strstr(error.text, "::") == NULL);
    tenon_server_free(server);
}

int main(int argc, char **argv) {
    static const tenon_handler handlers[] = {take, give};
    CHECK(argc == 2);
    tenon_server *server = tenon_server_new(), *other = tenon_server_new();
    CHECK(tenon_server_add(server, &cycles, handlers, NULL, NULL, TENON_ANY_ORDER, &error));
    CHECK(tenon_server_listen(server, argv[1], &error));
    tenon_server_send_max(server, 1000000);
    CHECK(tenon_log(hear, &told, TENON_LOG_WARNING, &error));
    CHECK(tenon_server_start(server, &error));
    calls_without_end_are_refused(argv[1]);
    results_without_end_are_refused(argv[1]);
    CHECK(count_of(&told) == count_of(&warnings));
    CHECK(tenon_log(hear, &told, TENON_LOG_DEBUG, &error));
    CHECK(!tenon_ping(NULL, &error));
    CHECK(count_of(&told) > count_of(&warnings));
    CHECK(tenon_log(NULL, NULL, TENON_LOG_DEBUG, &error));
    int before = count_of(&told);
    CHECK(!tenon_ping(NULL, &error));
    CHECK(count_of(&told) == before);
    memory_that_is_missing_is_an_error(argv[1]);
    children_open_their_own(argv[1], server);
    tenon_channel *channel = connect_with(argv[1], NULL);
    nothing_is_dereferenced(channel, other);
    CHECK(tenon_ping(channel, &error));
    tenon_close(channel);
    errors_speak_c(argv[1]);
    options_grow(argv[1]);
    times_may_be_set_or_never_come(argv[1]);
    char later[200];
    CHECK(snprintf(later, sizeof later, "%s-later", argv[1]) < (int)sizeof later);
    calls_may_wait_for_a_server(later, handlers);
    tenon_server_free(other);
    tenon_server_free(server);
    puts("fine");
    return 0;
}
