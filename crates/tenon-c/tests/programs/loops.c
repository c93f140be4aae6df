/* One thread, one epoll loop, and both ends in it: a server that is stepped and clients of it, which are stepped, too.
 * Is given the addresses to listen at. */
#include "notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CLIENTS_MAX = 8, CALLS = 30, ROUNDS = 20, LARGE_COUNT = 500000 };

typedef struct client {
    tenon_channel *channel;
    tenon_pending *calls[CALLS];
    int left;
} client;

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

static bool echo(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)request;
    note *from = arguments;
    *(note *)result = *from;
    from->text = NULL;
    return true;
}

static bool large(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)request;
    numbers *to = result;
    to->count = *(uint32_t *)arguments;
    to->at = calloc(to->count + 1, sizeof(uint32_t));
    return to->at != NULL;
}

static int earlier(int one, int other) { return one < 0 || (other >= 0 && other < one) ? other : one; }

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    check(descriptor >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

/* Steps until all calls of all clients have ended. */
static void run(int epoll, tenon_server *server, client *clients, int count, unsigned procedure) {
    for (int left = 1; left > 0;) {
        int limit = tenon_server_next_timeout(server);
        struct epoll_event events[CLIENTS_MAX + 1];
        check(tenon_server_step(server, &error), "step");
        left = 0;
        for (int i = 0; i < count; i++) {
            check(tenon_channel_step(clients[i].channel, &error), "step");
            for (int call = 0; call < CALLS; call++) {
                tenon_pending *pending = clients[i].calls[call];
                if (pending == NULL || !tenon_ready(pending, 0)) continue;
                union { note text; numbers many; } got;
                check(tenon_finish(pending, &got, &error), "finish");
                if (procedure == ECHO) check(got.text.number == (uint32_t)call, "another echo");
                if (procedure == LARGE) check(got.many.count == LARGE_COUNT, "another length");
                tenon_clear(notes.procedures[procedure].result, &got);
                clients[i].calls[call] = NULL;
                clients[i].left--;
            }
            left += clients[i].left;
            limit = earlier(limit, tenon_channel_next_timeout(clients[i].channel));
        }
        if (left > 0) check(epoll_wait(epoll, events, CLIENTS_MAX + 1, limit) >= 0, "epoll_wait");
    }
}

static void start(client *of, unsigned procedure, int count) {
    of->left = count;
    for (int call = 0; call < count; call++) {
        note text = {(uint32_t)call, (char *)(uintptr_t)"echo"};
        uint32_t length = LARGE_COUNT;
        const void *arguments = procedure == ECHO ? (void *)&text : (void *)&length;
        of->calls[call] = tenon_start(of->channel, &notes.procedures[procedure], arguments, &error);
        check(of->calls[call] != NULL, "start");
    }
}

int main(int count, char **arguments) {
    static const tenon_handler handlers[PROCEDURES] = {[ECHO] = echo, [LARGE] = large};
    int epoll = epoll_create1(EPOLL_CLOEXEC), clients = 0;
    client all[CLIENTS_MAX] = {0};
    alarm(120);
    check(tenon_channel_descriptor(NULL, &error) == -1 && error.kind == TENON_CALLER, "no channel");
    check(!tenon_channel_step(NULL, &error) && tenon_channel_next_timeout(NULL) == -1, "no channel");
    tenon_server *server = tenon_server_new();
    check(tenon_server_add(server, &notes, handlers, NULL, NULL, TENON_ANY_ORDER, &error), "add");
    for (int i = 1; i < count; i++) check(tenon_server_listen(server, arguments[i], &error), arguments[i]);
    check(tenon_server_start_stepped(server, &error), "start");
    watch(epoll, tenon_server_descriptor(server));
    const char *address;
    for (size_t i = 0; (address = tenon_server_address(server, i)) != NULL; i++) {
        char lean[300];
        snprintf(lean, sizeof lean, "lean+%s", address);
        const char *both[] = {address, lean};
        for (int j = 0; j < 2; j++, clients++) {
            all[clients].channel = tenon_connect(both[j], &notes, NULL, &error);
            check(all[clients].channel != NULL, both[j]);
            watch(epoll, tenon_channel_descriptor(all[clients].channel, &error));
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < clients; i++) start(&all[i], ECHO, CALLS);
        run(epoll, server, all, clients, ECHO);
    }
    for (int i = 0; i < clients; i++) start(&all[i], LARGE, 3);
    run(epoll, server, all, clients, LARGE);
    for (int i = 0; i < clients; i++) tenon_close(all[i].channel);
    tenon_server_free(server);
    close(epoll);
    puts("fine");
    return 0;
}
