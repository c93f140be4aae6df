/* Calls with streams by the functions of the library, without stubs: client and server are one process, which is given the
 * addresses to listen at. */
#include <tenon.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A stream of that many items is longer than what a connection holds. */
enum { MANY = 20000, ENDLESS = -1 };

/* What the handlers do at these numbers. */
enum { REFUSE_HERE = 99, ANSWER_HERE = 98, STALL_HERE = 97, FAIL_BEHIND = 77 };

/* Statuses of the lean protocol. */
enum { CANCELLED = 5, RAISED = 12 };

static tenon_error error;
static sem_t begun, ended;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

/* -- how words move -- */

static bool put_word(tenon_encoder *out, const void *value) {
    if (out->end - out->at < 4 && !out->grow(out, 4)) return false;
    memcpy(out->at, value, 4);
    out->at += 4;
    return true;
}

static bool get_word(tenon_decoder *in, void *value) {
    if (in->end - in->at < 4) {
        in->failure.kind = TENON_TRUNCATED;
        return false;
    }
    memcpy(value, in->at, 4);
    if (in->swapped) *(uint32_t *)value = __builtin_bswap32(*(uint32_t *)value);
    in->at += 4;
    return true;
}

static bool put_none(tenon_encoder *out, const void *value) {
    (void)value;
    out->failure.kind = TENON_UNKNOWN_VALUE;
    return false;
}

static const tenon_message word = {sizeof(uint32_t), _Alignof(uint32_t), put_word, get_word, put_word, get_word, NULL, NULL, 0, 0};
/* What it cannot encode is not sent. */
static const tenon_message unsendable = {sizeof(uint32_t), _Alignof(uint32_t), put_none, get_word, put_none, get_word, NULL, NULL, 0, 0};

enum { ADD, COUNT, ECHO, UPLOAD, DOWNLOAD, STREAMS };

/* The bytes of a download and of an upload move by tenon_stream_read and tenon_stream_write alone. */
static const tenon_stream_procedure procedures[STREAMS] = {
    {1, "add", NULL, &word, &word, NULL, 0, 0},
    {2, "count", &word, NULL, NULL, &word, 0, 0},
    {3, "echo", NULL, NULL, &word, &word, 0, 0},
    {4, "upload", NULL, &word, &word, NULL, 100, 0},
    {5, "download", &word, NULL, NULL, &word, 0, UINT32_MAX},
};

static const tenon_interface counting = {0x20000abf, 1, "COUNTING", 0, NULL, 0, NULL, 0};

/* -- handlers -- */

static bool add(const void *own, void *context, void *arguments, tenon_stream *stream, void *result, tenon_request *request) {
    (void)own, (void)context, (void)arguments;
    uint32_t sum = 0, number;
    int got;
    tenon_error why;
    sem_post(&begun);
    while ((got = tenon_stream_receive(stream, &number, &why)) == 1) {
        sum += number;
        if (number == REFUSE_HERE) return tenon_refuse(request, TENON_RAISED, "no such number");
        if (number == ANSWER_HERE) break;
        if (number == STALL_HERE) {
            while (!tenon_request_cancelled(request)) usleep(1000);
            sem_post(&ended);
        }
    }
    check(got >= 0 || why.kind == TENON_CLOSED, "a handler's stream fails if the call is given up");
    *(uint32_t *)result = sum;
    return true;
}

static bool count(const void *own, void *context, void *arguments, tenon_stream *stream, void *result,
                  tenon_request *request) {
    (void)own, (void)context;
    check(result == NULL, "the result is a stream");
    uint32_t end = *(uint32_t *)arguments;
    tenon_error why;
    for (uint32_t number = 0; number != end; number++) {
        if (number == 3 && end == FAIL_BEHIND) return tenon_refuse(request, TENON_RAISED, "behind three");
        bool is_sent = number % 2 ? tenon_stream_send(stream, &number, &why) : tenon_stream_feed(stream, &number, &why);
        if (!is_sent) {
            check(why.kind == TENON_CLOSED || why.kind == TENON_TIMEOUT, "the reader has gone, or its time has");
            sem_post(&ended);
            return false;
        }
    }
    return true;
}

static bool echo(const void *own, void *context, void *arguments, tenon_stream *stream, void *result,
                 tenon_request *request) {
    (void)own, (void)context, (void)arguments, (void)result, (void)request;
    uint32_t number;
    int got;
    while ((got = tenon_stream_receive(stream, &number, NULL)) == 1)
        if (!tenon_stream_send(stream, &number, NULL)) break;
    /* It may be closed; that is for others. */
    tenon_stream_close(stream);
    tenon_stream_cancel(stream);
    sem_post(&ended);
    return got == 0;
}

static unsigned char byte_at(size_t place) { return (unsigned char)(place * 7 + place / 251); }

static bool upload(const void *own, void *context, void *arguments, tenon_stream *stream, void *result,
                   tenon_request *request) {
    (void)own, (void)context, (void)arguments, (void)request;
    unsigned char buffer[64];
    uint32_t size = 0;
    int64_t got;
    while ((got = tenon_stream_read(stream, buffer, sizeof buffer, NULL)) > 0)
        for (int64_t i = 0; i < got; i++) check(buffer[i] == byte_at(size++), "a byte of an upload");
    check(tenon_stream_read(stream, buffer, sizeof buffer, NULL) == 0, "the end stays");
    *(uint32_t *)result = size;
    return got == 0;
}

static bool download(const void *own, void *context, void *arguments, tenon_stream *stream, void *result,
                     tenon_request *request) {
    (void)own, (void)context, (void)result, (void)request;
    size_t size = *(uint32_t *)arguments;
    unsigned char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++) bytes[i] = byte_at(i);
    bool is_sent = tenon_stream_write(stream, bytes, size, NULL) && tenon_stream_write(stream, NULL, 0, NULL);
    free(bytes);
    return is_sent;
}

/* -- the client -- */

static tenon_stream *opened(tenon_channel *channel, int which, uint32_t argument) {
    tenon_stream *stream = tenon_stream_open(channel, &procedures[which], &argument, &error);
    check(stream != NULL && error.kind == TENON_OK, "open");
    return stream;
}

static void adds(tenon_channel *channel) {
    uint32_t sum, expected = 0;
    tenon_stream *stream = opened(channel, ADD, 0);
    for (uint32_t number = 1000; number < 1000 + MANY; number++) {
        check(tenon_stream_feed(stream, &number, &error), "feed");
        expected += number;
    }
    check(tenon_stream_flush(stream, &error), "flush");
    check(tenon_stream_result(stream, &sum, &error) && sum == expected, "the sum");
    check(!tenon_stream_result(stream, &sum, &error) && error.kind == TENON_CALLER && sum == 0, "once");
    check(!tenon_stream_send(stream, &expected, &error) && error.kind == TENON_CALLER, "it is finished");
    tenon_stream_close(stream);

    /* No items at all. */
    stream = opened(channel, ADD, 0);
    check(tenon_stream_finish(stream, &error) && tenon_stream_result(stream, &sum, &error) && sum == 0, "of nothing");
    check(!tenon_stream_finish(stream, &error) && error.kind == TENON_CALLER, "finished twice");
    tenon_stream_close(stream);
}

/* The server answers before the last item. */
static void ends_early(tenon_channel *channel) {
    for (uint32_t last = ANSWER_HERE; last <= REFUSE_HERE; last++) {
        uint32_t number = 1, sum;
        tenon_stream *stream = opened(channel, ADD, 0);
        check(tenon_stream_send(stream, &number, &error) && tenon_stream_send(stream, &last, &error), "send");
        while (tenon_stream_send(stream, &number, &error)) continue;
        check(error.kind == TENON_CLOSED && error.may_have_executed, "no further items are taken");
        bool has_result = tenon_stream_result(stream, &sum, &error);
        if (last == ANSWER_HERE)
            check(has_result && sum == 1 + ANSWER_HERE, "the answer");
        else
            check(!has_result && error.kind == TENON_REFUSED && error.code == RAISED && sum == 0 &&
                      strstr(error.text, "no such number") != NULL, "the refusal");
        tenon_stream_close(stream);
    }
}

static void counts(tenon_channel *channel) {
    uint32_t number;
    tenon_stream *stream = opened(channel, COUNT, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        check(tenon_stream_receive(stream, &number, &error) == 1 && number == i, "in order");
    for (int i = 0; i < 2; i++) check(tenon_stream_receive(stream, &number, &error) == 0 && number == 0, "the end");
    tenon_stream_close(stream);

    stream = opened(channel, COUNT, FAIL_BEHIND);
    for (uint32_t i = 0; i < 3; i++)
        check(tenon_stream_receive(stream, &number, &error) == 1 && number == i, "before the refusal");
    check(tenon_stream_receive(stream, &number, &error) == -1 && error.kind == TENON_REFUSED && error.code == RAISED &&
              strstr(error.text, "behind three") != NULL, "the refusal");
    check(tenon_stream_receive(stream, &number, &error) == -1 && error.kind == TENON_CLOSED, "it stays so");
    tenon_stream_close(stream);
}

static void is_given_up(tenon_channel *channel) {
    uint32_t number;
    tenon_stream *stream = opened(channel, COUNT, ENDLESS);
    for (uint32_t i = 0; i < 100; i++) check(tenon_stream_receive(stream, &number, &error) == 1 && number == i, "endless");
    tenon_stream_close(stream);
    sem_wait(&ended);

    tenon_channel *hurried = tenon_channel_timeout(channel, 50, &error);
    stream = opened(hurried, COUNT, ENDLESS);
    /* The channel is not needed any more. */
    tenon_close(hurried);
    int got;
    while ((got = tenon_stream_receive(stream, &number, &error)) == 1) continue;
    check(got == -1 && error.kind == TENON_TIMEOUT, "it has no more time");
    tenon_stream_close(stream);
    sem_wait(&ended);
    check(tenon_ping(channel, &error), "the connection goes on");
}

static void *echoes(void *stream) {
    for (uint32_t number = 0; number < MANY; number++) check(tenon_stream_send(stream, &number, &error), "send");
    check(tenon_stream_finish(stream, &error), "finish");
    return NULL;
}

static void goes_both_ways(tenon_channel *channel) {
    uint32_t number;
    pthread_t writer;
    tenon_error why;
    tenon_stream *stream = opened(channel, ECHO, 0);
    check(pthread_create(&writer, NULL, echoes, stream) == 0, "a thread");
    for (uint32_t i = 0; i < MANY; i++)
        check(tenon_stream_receive(stream, &number, &why) == 1 && number == i, "an echo");
    check(tenon_stream_receive(stream, &number, &why) == 0, "all echoes");
    check(!tenon_stream_result(stream, &number, &why) && why.kind == TENON_CALLER, "the result is a stream");
    pthread_join(writer, NULL);
    tenon_stream_close(stream);
    sem_wait(&ended);
}

static void *cancels(void *stream) {
    usleep(50000);
    tenon_stream_cancel(stream);
    return NULL;
}

/* A thread that waits for a stream is woken when another gives the call up. */
static void is_cancelled(tenon_channel *channel) {
    uint32_t number = STALL_HERE;
    pthread_t other;
    tenon_stream *stream = opened(channel, ECHO, 0);
    check(pthread_create(&other, NULL, cancels, stream) == 0, "a thread");
    check(tenon_stream_receive(stream, &number, &error) == -1, "cancelled");
    check(error.kind == TENON_REFUSED && error.code == CANCELLED, "by this end");
    pthread_join(other, NULL);
    tenon_stream_close(stream);
    sem_wait(&ended);

    stream = opened(channel, ADD, 0);
    number = STALL_HERE;
    check(pthread_create(&other, NULL, cancels, stream) == 0, "a thread");
    /* The handler does not take them, so that this waits for room in the end. */
    while (tenon_stream_send(stream, &number, &error)) continue;
    check(error.kind == TENON_CLOSED, "woken");
    check(!tenon_stream_result(stream, &number, &error) && error.code == CANCELLED, "cancelled");
    pthread_join(other, NULL);
    tenon_stream_close(stream);
    sem_wait(&ended);
}

static void moves_bytes(tenon_channel *channel) {
    enum { SIZE = 300007 };
    unsigned char *bytes = malloc(SIZE), *at = bytes;
    uint32_t size;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = byte_at(i);
    tenon_stream *stream = opened(channel, UPLOAD, 0);
    for (size_t part = 1, left = SIZE; left > 0; left -= part, at += part, part *= 3) {
        if (part > left) part = left;
        check(tenon_stream_write(stream, at, part, &error), "write");
    }
    check(tenon_stream_result(stream, &size, &error) && size == SIZE, "an upload");
    tenon_stream_close(stream);

    stream = opened(channel, DOWNLOAD, SIZE);
    memset(bytes, 0, SIZE);
    size_t all = 0;
    int64_t got;
    while ((got = tenon_stream_read(stream, bytes + all, all % 5000 + 1 < SIZE - all ? all % 5000 + 1 : SIZE - all, &error)) > 0)
        all += (size_t)got;
    check(got == 0 && all == SIZE, "a download");
    for (size_t i = 0; i < SIZE; i++) check(bytes[i] == byte_at(i), "a byte of a download");
    check(tenon_stream_read(stream, bytes, SIZE, &error) == 0, "its end");
    tenon_stream_close(stream);
    free(bytes);
}

static void mistakes(tenon_channel *channel) {
    uint32_t number = 1;
    tenon_stream *stream = opened(channel, COUNT, 1);
    check(!tenon_stream_send(stream, &number, &error) && error.kind == TENON_CALLER, "nothing is sent");
    check(!tenon_stream_finish(stream, &error) && error.kind == TENON_CALLER, "nothing is finished");
    check(tenon_stream_receive(stream, NULL, &error) == -1 && error.kind == TENON_CALLER, "no place");
    check(tenon_stream_read(stream, &number, 4, &error) == -1 && error.kind == TENON_CALLER, "no bytes");
    check(tenon_stream_receive(stream, &number, &error) == 1 && number == 0, "none of that has ended it");
    tenon_stream_close(stream);
    stream = opened(channel, ADD, 0);
    check(tenon_stream_receive(stream, &number, &error) == -1 && error.kind == TENON_CALLER, "nothing is received");
    check(!tenon_stream_send(stream, NULL, &error) && error.kind == TENON_CALLER, "no item");
    check(!tenon_stream_write(stream, "x", 1, &error) && error.kind == TENON_CALLER, "no bytes");
    tenon_stream_close(stream);
    check(!tenon_stream_send(NULL, &number, &error) && error.kind == TENON_CALLER, "no stream");
    check(tenon_stream_receive(NULL, &number, &error) == -1, "no stream");
    check(tenon_stream_read(NULL, &number, 4, &error) == -1, "no stream");
    check(tenon_stream_open(channel, NULL, NULL, &error) == NULL && error.kind == TENON_CALLER, "no procedure");
    check(tenon_stream_open(channel, &procedures[COUNT], NULL, &error) == NULL && error.kind == TENON_CALLER, "no arguments");
    check(tenon_stream_open(NULL, &procedures[ADD], NULL, &error) == NULL && error.kind == TENON_CALLER, "no channel");
    tenon_stream_close(NULL);
    tenon_stream_cancel(NULL);

    /* An item that cannot be encoded is left out. */
    const tenon_stream_procedure bad = {1, "add", NULL, &word, &unsendable, NULL, 0, 0};
    stream = tenon_stream_open(channel, &bad, NULL, &error);
    check(!tenon_stream_send(stream, &number, &error) && error.kind == TENON_CALLER, "an item that has no encoding");
    check(tenon_stream_result(stream, &number, &error) && number == 0, "the others");
    tenon_stream_close(stream);
    /* The server has other streams. */
    const tenon_stream_procedure other = {1, "add", NULL, NULL, &word, &word, 0, 0};
    stream = tenon_stream_open(channel, &other, NULL, &error);
    check(tenon_stream_receive(stream, &number, &error) == -1 && error.kind == TENON_REFUSED, "other streams");
    tenon_stream_close(stream);
    const tenon_procedure plain = {1, "add", NULL, &word};
    check(!tenon_call(channel, &plain, NULL, &number, &error) && error.kind == TENON_REFUSED, "a call without streams");
}

static void refuses_onc(const char *address) {
    tenon_channel *channel = tenon_connect(address, &counting, NULL, &error);
    check(channel != NULL, address);
    tenon_stream *stream = tenon_stream_open(channel, &procedures[ADD], NULL, &error);
    check(stream == NULL && error.kind == TENON_CALLER && !error.may_have_executed, "ONC RPC has no streams");
    check(strstr(error.text, "lean+tcp://") != NULL, "and what has");
    tenon_close(channel);
}

int main(int count_, char **arguments) {
    static const tenon_stream_handler handlers[STREAMS] = {add, count, echo, upload, download};
    static const tenon_stream_service service = {procedures, handlers, STREAMS};
    sem_init(&begun, 0, 0);
    sem_init(&ended, 0, 0);
    for (int i = 1; i < count_; i++) {
        tenon_server *server = tenon_server_new();
        check(tenon_server_add_streams(server, &counting, NULL, &service, NULL, NULL, TENON_ANY_ORDER, &error), "add");
        check(tenon_server_listen(server, arguments[i], &error) && tenon_server_start(server, &error), arguments[i]);
        char lean[256] = "lean+";
        const char *plain = tenon_server_address(server, 0);
        bool is_shm = strncmp(plain, "shm", 3) == 0;
        strcpy(lean + (is_shm ? 0 : 5), plain);
        if (!is_shm) refuses_onc(plain);
        tenon_channel *channel = tenon_connect(lean, &counting, NULL, &error);
        check(channel != NULL, lean);
        adds(channel);
        ends_early(channel);
        counts(channel);
        is_given_up(channel);
        goes_both_ways(channel);
        is_cancelled(channel);
        moves_bytes(channel);
        mistakes(channel);

        /* A server that stops ends the streams that are open, so that it is free. */
        uint32_t number;
        tenon_stream *stream = opened(channel, ECHO, 0);
        tenon_server_free(server);
        check(tenon_stream_receive(stream, &number, &error) == -1, "the server has gone");
        tenon_stream_close(stream);
        tenon_close(channel);
        sem_wait(&ended);
    }
    puts("fine");
    return 0;
}
