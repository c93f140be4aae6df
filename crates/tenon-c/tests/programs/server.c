/* Serves the interface at the addresses that it is given, and says where; until its input ends. */
#include "notes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct methods {
    uint32_t added;
} methods;

static bool echo(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)context, (void)request;
    note *from = arguments, *to = result;
    to->number = from->number + ((const methods *)own)->added;
    /* What it owns is moved. */
    to->text = from->text;
    from->text = NULL;
    return true;
}

static bool refuse(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)result;
    uint32_t why = *(uint32_t *)arguments;
    return why == 0 ? false : tenon_refuse(request, (tenon_refusal)why, "the quota is used up");
}

static bool pass_time(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)result, (void)request;
    usleep(*(uint32_t *)arguments * 1000);
    return true;
}

static bool who(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)arguments;
    note *to = result;
    tenon_auth_sys claim;
    to->number = tenon_request_procedure(request);
    if (tenon_request_auth_sys(request, &claim)) {
        to->number = claim.uid + claim.gid + claim.stamp;
        for (size_t i = 0; i < claim.gid_count; i++) to->number += claim.gids[i];
        to->text = strdup(claim.machine);
    } else {
        to->text = strdup(tenon_request_peer(request)[0] == 0 ? "near" : "far");
    }
    return true;
}

static bool reverse(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context;
    numbers *from = arguments, *to = result;
    for (uint32_t i = 0; i < from->count / 2; i++) {
        uint32_t one = from->at[i];
        from->at[i] = from->at[from->count - 1 - i];
        from->at[from->count - 1 - i] = one;
    }
    /* What it owns is the arguments'. */
    *to = *from;
    tenon_keep(request);
    return true;
}

static bool die(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)arguments, (void)result, (void)request;
    _exit(0);
}

static bool large(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)request;
    numbers *to = result;
    to->count = *(uint32_t *)arguments;
    to->at = calloc(to->count + 1, sizeof(uint32_t));
    return to->at != NULL;
}

int main(int count, char **arguments) {
    static const methods own = {1};
    static const tenon_handler handlers[PROCEDURES] = {echo, refuse, pass_time, who, reverse, die, large, NULL};
    tenon_error error;
    tenon_server *server = tenon_server_new();
    tenon_order order = getenv("IN_ORDER") != NULL ? TENON_IN_ORDER : TENON_ANY_ORDER;
    if (!tenon_server_add(server, &notes, handlers, &own, NULL, order, &error))
        return tenon_error_print(&error, "add"), 1;
    for (int i = 1; i < count; i++)
        if (!tenon_server_listen(server, arguments[i], &error)) return tenon_error_print(&error, arguments[i]), 1;
    if (!tenon_server_start(server, &error)) return tenon_error_print(&error, "start"), 1;
    const char *address;
    for (size_t i = 0; (address = tenon_server_address(server, i)) != NULL; i++) puts(address);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) continue;
    tenon_server_stop(server, 1000);
    tenon_server_counters counters;
    tenon_server_count(server, &counters);
    printf("%s\n", counters.calls > 0 ? "stopped" : "nobody called");
    tenon_server_free(server);
    return 0;
}
