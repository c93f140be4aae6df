/* A handler sees how much time its caller has, and that the caller has stopped waiting, also where it runs on the thread
 * that received its call. Client and server are one process, which is given the addresses to listen at. */
#include "notes.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handler that is told nothing gives up after this time. */
enum { PATIENCE_MS = 60000 };

static tenon_error error;
static sem_t begun, ended;
static atomic_bool was_told;
static atomic_llong time_left_ms;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

static bool poll_long(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)arguments, (void)result;
    time_left_ms = tenon_request_time_left_ms(request);
    sem_post(&begun);
    bool is_told = false;
    for (int waited = 0; waited < PATIENCE_MS && !is_told; waited++) {
        usleep(1000);
        is_told = tenon_request_cancelled(request);
    }
    was_told = is_told;
    sem_post(&ended);
    return tenon_refuse(request, TENON_FAILED, "the caller has gone");
}

/* The client gives a call up that a handler carries out. */
static void gives_up(tenon_channel *channel) {
    tenon_pending *call = tenon_start(channel, &notes.procedures[WAIT], &(uint32_t){0}, &error);
    check(call != NULL, "start");
    sem_wait(&begun);
    tenon_cancel(call);
    sem_wait(&ended);
    check(was_told, "a call that was cancelled");
}

int main(int count, char **arguments) {
    static const tenon_handler handlers[PROCEDURES] = {[WAIT] = poll_long};
    sem_init(&begun, 0, 0);
    sem_init(&ended, 0, 0);
    for (int i = 1; i < count; i++) {
        /* A new server each time: its first calls are carried out where they are received, the later ones elsewhere. */
        tenon_server *server = tenon_server_new();
        check(tenon_server_add(server, &notes, handlers, NULL, NULL, TENON_ANY_ORDER, &error), "add");
        check(tenon_server_listen(server, arguments[i], &error), arguments[i]);
        check(tenon_server_start(server, &error), "start");
        char lean[256] = "lean+";
        const char *plain = tenon_server_address(server, 0);
        if (strncmp(plain, "shm", 3) == 0) lean[0] = 0;
        strncat(lean, plain, sizeof lean - 6);
        tenon_options options = TENON_OPTIONS;
        tenon_channel *channel = tenon_connect(lean, &notes, &options, &error);
        check(channel != NULL, lean);
        for (int call = 0; call < 4; call++) {
            gives_up(channel);
            check(time_left_ms == -1, "no time was said");
        }
        tenon_channel *hurried = tenon_channel_timeout(channel, PATIENCE_MS, &error);
        check(hurried != NULL, "timeout");
        gives_up(hurried);
        check(time_left_ms > 0 && time_left_ms <= PATIENCE_MS, "the time that the caller has");
        tenon_close(hurried);
        tenon_close(channel);
        tenon_server_free(server);
    }
    puts("fine");
    return 0;
}
