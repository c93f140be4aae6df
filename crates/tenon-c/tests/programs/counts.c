/* Counts what warm calls allocate, at both ends: nothing. Client and server are one process, which is given
 * pairs of addresses: where to listen, and where to connect to. */
#include "notes.h"

#include <stdatomic.h>
#include <stdlib.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static atomic_ulong allocations;

void *malloc(size_t bytes) { return atomic_fetch_add(&allocations, 1), __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return atomic_fetch_add(&allocations, 1), __libc_calloc(count, bytes); }
void *realloc(void *at, size_t bytes) { return atomic_fetch_add(&allocations, 1), __libc_realloc(at, bytes); }

enum { ROUNDS = 20 };

static bool answer(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)result, (void)request;
    *(uint32_t *)context += *(uint32_t *)arguments;
    return true;
}

static unsigned long calls(tenon_channel *channel, uint32_t count) {
    unsigned long before = allocations;
    for (uint32_t i = 0; i < count; i++) {
        tenon_error error;
        if (!tenon_call(channel, &notes.procedures[WAIT], &(uint32_t){1}, NULL, &error))
            tenon_error_print(&error, "call"), exit(1);
    }
    return allocations - before;
}

int main(int count, char **arguments) {
    static const tenon_handler handlers[PROCEDURES] = {[WAIT] = answer};
    tenon_error error;
    for (int i = 1; i + 1 < count; i += 2) {
        uint32_t sum = 0;
        tenon_server *server = tenon_server_new();
        if (!tenon_server_add(server, &notes, handlers, NULL, &sum, TENON_ANY_ORDER, &error) ||
            !tenon_server_listen(server, arguments[i], &error) || !tenon_server_start(server, &error))
            return tenon_error_print(&error, arguments[i]), 1;
        tenon_channel *channel = tenon_connect(arguments[i + 1], &notes, NULL, &error);
        if (channel == NULL) return tenon_error_print(&error, arguments[i + 1]), 1;
        unsigned long cold = calls(channel, 1000), warm = calls(channel, 1000);
        uint32_t made = 2000;
        /* A server starts a thread when a handler does not return, as on a machine that stands still for a moment. */
        for (int round = 0; warm > 0 && round < ROUNDS; round++, made += 1000) warm = calls(channel, 1000);
        if (warm > 0 || cold == 0 || sum != made)
            return fprintf(stderr, "%s: %lu allocations, then %lu\n", arguments[i + 1], cold, warm), 1;
        tenon_close(channel);
        tenon_server_free(server);
    }
    puts("fine");
    return 0;
}
