/* Serves from an epoll loop of its own, on the main thread alone, while another thread calls at every address that is
 * given; a handler ends it. */
#include "notes.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CALLS = 200, STARTED = 20 };

typedef struct work {
    tenon_server *server;
    pthread_t loop;
    unsigned calls;
} work;

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

/* Threads of this process. */
static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *one; (one = readdir(tasks)) != NULL;) count += one->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static bool echo(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)request;
    work *of = context;
    note *from = arguments, *to = result;
    tenon_error refused;
    check(pthread_equal(of->loop, pthread_self()), "a handler runs on another thread");
    check(!tenon_server_step(of->server, &refused) && refused.kind == TENON_CALLER, "a handler steps");
    of->calls++;
    *to = *from;
    from->text = NULL;
    return true;
}

static bool stop(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)arguments, (void)result, (void)request;
    work *of = context;
    check(threads() == 2, "the library has started a thread");
    tenon_server_stop(of->server, 10000);
    return true;
}

static void call_at(const char *address) {
    tenon_error failed;
    tenon_pending *started[STARTED];
    note text = {7, (char *)(uintptr_t)"echo"}, echoed;
    tenon_channel *channel = tenon_connect(address, &notes, NULL, &failed);
    if (channel == NULL) tenon_error_print(&failed, address), exit(1);
    for (int i = 0; i < CALLS; i++) {
        if (!tenon_call(channel, &notes.procedures[ECHO], &text, &echoed, &failed))
            tenon_error_print(&failed, address), exit(1);
        if (echoed.number != 7 || strcmp(echoed.text, "echo") != 0) puts("another echo"), exit(1);
        tenon_clear(notes.procedures[ECHO].result, &echoed);
    }
    for (int i = 0; i < STARTED; i++) started[i] = tenon_start(channel, &notes.procedures[ECHO], &text, &failed);
    for (int i = 0; i < STARTED; i++) {
        if (!tenon_finish(started[i], &echoed, &failed)) tenon_error_print(&failed, address), exit(1);
        tenon_clear(notes.procedures[ECHO].result, &echoed);
    }
    tenon_close(channel);
}

static void *call(void *context) {
    work *of = context;
    char lean[300];
    const char *address = NULL;
    for (size_t i = 0; (address = tenon_server_address(of->server, i)) != NULL; i++) {
        call_at(address);
        if (strncmp(address, "shm", 3) == 0) continue;
        snprintf(lean, sizeof lean, "lean+%s", address);
        call_at(lean);
    }
    tenon_error failed;
    tenon_channel *channel = tenon_connect(tenon_server_address(of->server, 0), &notes, NULL, &failed);
    /* The call that stops the server is answered. */
    if (!tenon_call(channel, &notes.procedures[WAIT], &(uint32_t){0}, NULL, &failed))
        tenon_error_print(&failed, "stop"), exit(1);
    tenon_close(channel);
    return NULL;
}

static void loop(tenon_server *server) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, tenon_server_descriptor(server), &event) == 0, "epoll_ctl");
    while (tenon_server_step(server, &error)) {
        int happened = epoll_wait(epoll, &event, 1, tenon_server_next_timeout(server));
        check(happened >= 0, "epoll_wait");
    }
    check(error.kind == TENON_OK, "step");
    close(epoll);
}

int main(int count, char **arguments) {
    static const tenon_handler handlers[PROCEDURES] = {[ECHO] = echo, [WAIT] = stop};
    work all = {.loop = pthread_self()};
    pthread_t calling;
    alarm(120);
    all.server = tenon_server_new();
    check(tenon_server_descriptor(all.server) == -1 && tenon_server_next_timeout(all.server) == -1, "before the start");
    check(!tenon_server_step(all.server, &error) && error.kind == TENON_CALLER, "a step before the start");
    check(tenon_server_add(all.server, &notes, handlers, NULL, &all, TENON_ANY_ORDER, &error), "add");
    for (int i = 1; i < count; i++) check(tenon_server_listen(all.server, arguments[i], &error), arguments[i]);
    check(tenon_server_start_stepped(all.server, &error), "start");
    check(!tenon_server_run(all.server, &error) && error.kind == TENON_CALLER, "run");
    check(threads() == 1, "the library has started a thread");
    pthread_create(&calling, NULL, call, &all);
    loop(all.server);
    /* The stopping is done: everything that was begun has an answer. */
    check(!tenon_server_step(all.server, &error) && error.kind == TENON_OK, "a step behind the end");
    pthread_join(calling, NULL);
    tenon_server_counters counters;
    tenon_server_count(all.server, &counters);
    check(counters.calls == all.calls + 1 && all.calls == 7 * (CALLS + STARTED), "calls");
    tenon_server_free(all.server);
    puts("fine");
    return 0;
}
