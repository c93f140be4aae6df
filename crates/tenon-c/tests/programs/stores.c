/* Calls with streams, by the stubs of streams.x: `serve ADDRESS...` keeps objects until its input ends, `call ADDRESS...`
 * calls such a server and checks what it gets. */
#include "streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 100, TEXTS = 2000, RAISED = 12 };

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

/* -- the server -- */

typedef struct object {
    struct object *next;
    char *name;
    size_t count;
    chunk *parts;
} object;

static object *objects;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int watchers;

static void drop(object *it) {
    for (size_t i = 0; i < it->count; i++) tenon_clear(&chunk_message, &it->parts[i]);
    free(it->parts);
    free(it->name);
    free(it);
}

static uint64_t size_of(const object *it) {
    uint64_t size = 0;
    for (size_t i = 0; i < it->count; i++) size += it->parts[i].chunk_len;
    return size;
}

static bool put(void *context, char *name, tenon_stream *stream, uint64_t *result, tenon_request *request) {
    (void)context;
    object *it = calloc(1, sizeof *it);
    it->name = strdup(name);
    chunk part;
    tenon_error why;
    int got;
    while ((got = store_put_1_svc_receive(stream, &part, &why)) == 1) {
        it->parts = realloc(it->parts, (it->count + 1) * sizeof part);
        it->parts[it->count++] = part;
    }
    if (got == -1) {
        drop(it);
        return tenon_refuse(request, TENON_FAILED, why.text);
    }
    *result = size_of(it);
    pthread_mutex_lock(&mutex);
    it->next = objects;
    objects = it;
    pthread_mutex_unlock(&mutex);
    return true;
}

/* Objects are there until the server ends, or are removed when nothing gets them. */
static object *found(const char *name) {
    pthread_mutex_lock(&mutex);
    object *it = objects;
    while (it != NULL && strcmp(it->name, name) != 0) it = it->next;
    pthread_mutex_unlock(&mutex);
    return it;
}

static bool get(void *context, char *name, tenon_stream *stream, tenon_request *request) {
    (void)context;
    object *it = found(name);
    if (it == NULL) return store_get_1_raise_missing(request, &(missing){.name = name}, "there is no such object");
    for (size_t i = 0; i < it->count; i++)
        if (!store_get_1_svc_feed(stream, &it->parts[i], NULL)) return false;
    /* Behind the parts, which are sent before. */
    if (strcmp(name, "broken") == 0) return store_get_1_raise_missing(request, &(missing){.name = "rest"}, NULL);
    return true;
}

static bool list(void *context, tenon_stream *stream, tenon_request *request) {
    (void)context, (void)request;
    pthread_mutex_lock(&mutex);
    bool is_sent = true;
    for (object *it = objects; it != NULL && is_sent; it = it->next)
        is_sent = store_list_1_svc_send(stream, &(entry){.name = it->name, .size = size_of(it)}, NULL);
    pthread_mutex_unlock(&mutex);
    return is_sent;
}

static bool add(void *context, tenon_stream *stream, int32_t *result, tenon_request *request) {
    (void)context, (void)request;
    int32_t number;
    int got;
    while ((got = store_add_1_svc_receive(stream, &number, NULL)) == 1) *result += number;
    return got == 0;
}

static bool remove_object(void *context, char *name, tenon_request *request) {
    (void)context;
    pthread_mutex_lock(&mutex);
    object **at = &objects;
    while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    object *it = *at;
    if (it != NULL) *at = it->next;
    pthread_mutex_unlock(&mutex);
    if (it == NULL) return store_remove_1_raise_missing(request, &(missing){.name = name}, NULL);
    drop(it);
    return true;
}

static bool echo(void *context, entry *first, tenon_stream *stream, tenon_request *request) {
    (void)context, (void)request;
    if (first != NULL && !store_echo_1_svc_send(stream, first->name, NULL)) return false;
    char *text;
    int got;
    while ((got = store_echo_1_svc_receive(stream, &text, NULL)) == 1) {
        bool is_sent = store_echo_1_svc_send(stream, text, NULL);
        free(text);
        if (!is_sent) return false;
    }
    return got == 0;
}

/* Without end, until the caller has gone. */
static bool watch(void *context, int32_t results, tenon_stream *stream, tenon_request *request) {
    (void)context, (void)request;
    tenon_error why;
    bool is_sent = true;
    watchers++;
    while (is_sent) {
        for (int32_t i = 0; i < results && is_sent; i++) is_sent = store_watch_1_svc_feed(stream, PUT, &why);
        is_sent = is_sent && tenon_stream_flush(stream, &why);
    }
    watchers--;
    check(why.kind == TENON_CLOSED, why.text);
    return false;
}

static int serve(int count, char **addresses) {
    static const store_1_service service = {put, get, list, add, remove_object, echo, watch};
    tenon_server *server = tenon_server_new();
    check(!store_1_serve(server, NULL, NULL, TENON_ANY_ORDER, &error) && error.kind == TENON_CALLER, "no handlers");
    check(store_1_serve(server, &service, NULL, TENON_ANY_ORDER, &error), "serve");
    for (int i = 0; i < count; i++) check(tenon_server_listen(server, addresses[i], &error), addresses[i]);
    check(tenon_server_start(server, &error), "start");
    const char *address;
    for (size_t i = 0; (address = tenon_server_address(server, i)) != NULL; i++) puts(address);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) continue;
    /* All callers have gone, and their handlers have seen it. */
    for (int waited = 0; watchers > 0 && waited < 10000; waited++) usleep(1000);
    check(watchers == 0, "a handler has not ended");
    tenon_server_free(server);
    while (objects != NULL) {
        object *it = objects;
        objects = it->next;
        drop(it);
    }
    puts("stopped");
    return 0;
}

/* -- the client -- */

static uint32_t length_of(int part) {
    static const uint32_t lengths[] = {0, 1, 7, 32700, 32800, 65536, 3};
    return lengths[part % 7];
}

static void puts_parts(tenon_channel *channel, const char *name, int parts) {
    static uint8_t bytes[65537];
    uint64_t size = 0, expected = 0;
    tenon_stream *stream = store_put_1_open(channel, name, &error);
    check(stream != NULL, "open");
    for (int i = 0; i < parts; i++) {
        chunk part = {length_of(i), bytes};
        memset(bytes, i, part.chunk_len);
        expected += part.chunk_len;
        bool is_sent = i % 2 ? store_put_1_send(stream, &part, &error) : store_put_1_feed(stream, &part, &error);
        check(is_sent, "a part");
    }
    /* What the interface does not allow is left out. */
    check(!store_put_1_send(stream, &(chunk){65537, bytes}, &error) && error.kind == TENON_CALLER, "a part that is too long");
    check(!store_put_1_send(stream, NULL, &error) && error.kind == TENON_CALLER, "no part");
    check(store_put_1_finish(stream, &size, &error) && size == expected, "the size");
    tenon_stream_close(stream);
}

static void gets_parts(tenon_channel *channel, const char *name, int parts) {
    chunk part;
    tenon_stream *stream = store_get_1_open(channel, name, &error);
    check(stream != NULL, "open");
    for (int i = 0; i < parts; i++) {
        check(store_get_1_receive(stream, &part, &error) == 1 && part.chunk_len == length_of(i), "a part");
        for (uint32_t j = 0; j < part.chunk_len; j++) check(part.chunk_val[j] == (uint8_t)i, "its bytes");
        tenon_clear(&chunk_message, &part);
    }
    int got = store_get_1_receive(stream, &part, &error);
    check(part.chunk_len == 0 && part.chunk_val == NULL, "no part");
    if (strcmp(name, "broken") != 0) {
        check(got == 0, "the end");
    } else {
        missing rest;
        check(got == -1 && error.kind == TENON_REFUSED && error.code == RAISED, "the error behind the parts");
        check(store_get_1_raised_missing(&rest) && strcmp(rest.name, "rest") == 0, "its value");
        tenon_clear(&missing_message, &rest);
    }
    tenon_stream_close(stream);
}

static void lists(tenon_channel *channel) {
    entry item;
    int count = 0;
    tenon_stream *stream = store_list_1_open(channel, &error);
    while (store_list_1_receive(stream, &item, &error) == 1) {
        if (strcmp(item.name, "broken") == 0) check(item.size == 8, "its size");
        else check(strcmp(item.name, "object") == 0 && item.size > 1000000, "an entry");
        tenon_clear(&entry_message, &item);
        count++;
    }
    check(error.kind == TENON_OK && count == 2, "two objects");
    tenon_stream_close(stream);
}

/* The bytes of chunks as one sequence. */
static void copies(tenon_channel *channel) {
    enum { SIZE = 1000000 };
    uint8_t *bytes = malloc(SIZE + 1), buffer[1000];
    uint64_t size;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i % 251);
    tenon_stream *stream = store_put_1_open(channel, "bytes", &error);
    check(tenon_stream_write(stream, bytes, SIZE, &error), "write");
    check(store_put_1_finish(stream, &size, &error) && size == SIZE, "the size");
    tenon_stream_close(stream);
    free(bytes);
    stream = store_get_1_open(channel, "bytes", &error);
    int64_t got;
    size = 0;
    while ((got = tenon_stream_read(stream, buffer, sizeof buffer, &error)) > 0)
        for (int64_t i = 0; i < got; i++) check(buffer[i] == (uint8_t)(size++ % 251), "a byte");
    check(got == 0 && size == SIZE, "all bytes");
    tenon_stream_close(stream);
    check(store_remove_1(channel, "bytes", &error), "remove");
}

static void is_missing(tenon_channel *channel) {
    chunk part;
    missing it;
    tenon_stream *stream = store_get_1_open(channel, "nothing", &error);
    check(store_get_1_receive(stream, &part, &error) == -1 && error.code == RAISED, "there is none");
    check(store_get_1_raised_missing(&it) && strcmp(it.name, "nothing") == 0, "the error");
    tenon_clear(&missing_message, &it);
    tenon_stream_close(stream);
    check(!store_remove_1(channel, "nothing", &error) && store_remove_1_raised_missing(NULL), "nothing to remove");
}

static char *text_of(int number) {
    char *text = malloc(400);
    for (int i = 0; i < 50; i++) sprintf(text + i * 6, "%05d.", number);
    return text;
}

static void *sends_texts(void *stream) {
    for (int i = 0; i < TEXTS; i++) {
        char *text = text_of(i);
        check(store_echo_1_send(stream, text, NULL), "a text");
        free(text);
    }
    check(store_echo_1_finish(stream, NULL), "finish");
    return NULL;
}

static void echoes(tenon_channel *channel) {
    pthread_t writer;
    char *text;
    tenon_stream *stream = store_echo_1_open(channel, &(entry){.name = "first", .size = 1}, &error);
    check(stream != NULL && pthread_create(&writer, NULL, sends_texts, stream) == 0, "a thread");
    check(store_echo_1_receive(stream, &text, &error) == 1 && strcmp(text, "first") == 0, "the first");
    free(text);
    for (int i = 0; i < TEXTS; i++) {
        char *expected = text_of(i);
        check(store_echo_1_receive(stream, &text, &error) == 1 && strcmp(text, expected) == 0, "an echo");
        free(text);
        free(expected);
    }
    check(store_echo_1_receive(stream, &text, &error) == 0, "the end");
    pthread_join(writer, NULL);
    tenon_stream_close(stream);
}

static void adds(tenon_channel *channel) {
    int32_t sum;
    tenon_stream *stream = store_add_1_open(channel, &error);
    for (int32_t number = 1; number <= 100; number++) check(store_add_1_send(stream, number, &error), "a number");
    check(store_add_1_finish(stream, &sum, &error) && sum == 5050, "the sum");
    tenon_stream_close(stream);
}

static void watches(tenon_channel *channel) {
    event item;
    tenon_stream *stream = store_watch_1_open(channel, 3, &error);
    for (int i = 0; i < 100; i++) check(store_watch_1_receive(stream, &item, &error) == 1 && item == PUT, "an event");
    tenon_stream_close(stream);
    check(tenon_ping(channel, &error), "the connection goes on");
}

static int call(int count, char **addresses) {
    for (int i = 0; i < count; i++) {
        tenon_channel *channel = tenon_connect(addresses[i], &store_1_interface, NULL, &error);
        check(channel != NULL, addresses[i]);
        if (strncmp(addresses[i], "lean", 4) != 0 && strncmp(addresses[i], "shm", 3) != 0) {
            check(store_list_1_open(channel, &error) == NULL && error.kind == TENON_CALLER, addresses[i]);
            tenon_close(channel);
            continue;
        }
        puts_parts(channel, "object", PARTS);
        puts_parts(channel, "broken", 3);
        gets_parts(channel, "object", PARTS);
        gets_parts(channel, "broken", 3);
        lists(channel);
        copies(channel);
        is_missing(channel);
        echoes(channel);
        adds(channel);
        watches(channel);
        check(store_remove_1(channel, "object", &error) && store_remove_1(channel, "broken", &error), "remove");
        tenon_close(channel);
    }
    puts("fine");
    return 0;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    if (strcmp(arguments[1], "serve") == 0) return serve(count - 2, arguments + 2);
    return call(count - 2, arguments + 2);
}
