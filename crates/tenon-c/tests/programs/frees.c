/* Frees a server while its handlers run, and then what they work with: by each way to stop it, and however long they take,
 * they have to be done. Client and server are one process, which is given the addresses to listen at. */
#include "notes.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 8 };

/* What handlers work with. */
typedef struct work {
    tenon_server *server;
    pthread_barrier_t all_are_called;
    sem_t begun;
    /* Whether handlers stop the server, with time enough for all. */
    bool is_stopped_by_handlers;
    unsigned milliseconds;
    atomic_int returned;
} work;

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

static bool take_long(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)arguments, (void)result, (void)request;
    work *of = context;
    pthread_barrier_wait(&of->all_are_called);
    if (of->is_stopped_by_handlers) tenon_server_stop(of->server, 60000);
    sem_post(&of->begun);
    usleep(of->milliseconds * 1000);
    atomic_fetch_add(&of->returned, 1);
    return true;
}

static tenon_server *serving(work *context, int count, char **addresses, tenon_order order) {
    static const tenon_handler handlers[PROCEDURES] = {[WAIT] = take_long};
    tenon_server *server = tenon_server_new();
    check(tenon_server_add(server, &notes, handlers, NULL, context, order, &error), "add");
    for (int i = 0; i < count; i++) check(tenon_server_listen(server, addresses[i], &error), addresses[i]);
    check(tenon_server_start(server, &error), "start");
    return server;
}

static void frees_in_time(int count, char **addresses, tenon_order order, bool is_stopped_by_handlers,
                          unsigned milliseconds) {
    work *context = calloc(1, sizeof *context);
    tenon_channel *channels[ADDRESSES_MAX];
    tenon_pending *calls[ADDRESSES_MAX];
    context->is_stopped_by_handlers = is_stopped_by_handlers;
    context->milliseconds = milliseconds;
    sem_init(&context->begun, 0, 0);
    pthread_barrier_init(&context->all_are_called, NULL, (unsigned)count);
    tenon_server *server = context->server = serving(context, count, addresses, order);
    for (int i = 0; i < count; i++) {
        channels[i] = tenon_connect(tenon_server_address(server, (size_t)i), &notes, NULL, &error);
        check(channels[i] != NULL, "connect");
        calls[i] = tenon_start(channels[i], &notes.procedures[WAIT], &(uint32_t){0}, &error);
        check(calls[i] != NULL, "call");
    }
    for (int i = 0; i < count; i++) sem_wait(&context->begun);
    tenon_server_free(server);
    check(context->returned == count, "handlers run behind a server that is no more");
    pthread_barrier_destroy(&context->all_are_called);
    sem_destroy(&context->begun);
    free(context);
    for (int i = 0; i < count; i++) {
        /* Who stopped it had patience, so all were answered. */
        if (is_stopped_by_handlers)
            check(tenon_finish(calls[i], NULL, &error), "finish");
        else
            tenon_cancel(calls[i]);
        tenon_close(channels[i]);
    }
}

int main(int count, char **arguments) {
    const tenon_order orders[] = {TENON_ANY_ORDER, TENON_IN_ORDER};
    for (int i = 0; i < 2; i++) {
        frees_in_time(count - 1, arguments + 1, orders[i], true, 300);
        /* Longer than a server has patience that nobody else stops. */
        frees_in_time(count - 1, arguments + 1, orders[i], false, 2500);
    }
    puts("fine");
    return 0;
}
