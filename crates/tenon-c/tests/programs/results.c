/* Results of known size, by the stubs of results.x: `serve ADDRESS...` serves them until its input ends, and
 * `in-place ADDRESS...` serves with tables that lack the functions which encode results. */
#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call with it is refused when the result is written. */
enum { REFUSED = 0 };

enum { PROCEDURES = 12 };

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

/* Writes a result, whose place has to be zero and to be aligned for it. */
static bool made(void *result, const void *value, size_t size, size_t align, uint32_t seed, tenon_request *request) {
    const unsigned char *bytes = result;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0) return tenon_refuse(request, TENON_FAILED, "the place is not zero");
    if ((uintptr_t)result % align != 0) return tenon_refuse(request, TENON_FAILED, "the place is not aligned");
    memcpy(result, value, size);
    return seed != REFUSED || tenon_refuse(request, TENON_FAILED, "as the test asked");
}

#define MADE(type, value) made(result, value, sizeof(type), _Alignof(type), seed, request)

static bool get_packet(void *context, uint32_t seed, packet *result, tenon_request *request) {
    (void)context;
    packet value;
    for (size_t i = 0; i < sizeof value; i++) value[i] = (uint8_t)(i + seed) | 1;
    return MADE(packet, value);
}

static bool get_tag(void *context, uint32_t seed, tag *result, tenon_request *request) {
    (void)context;
    return MADE(tag, ((tag){1, 2, 3, 4, 5}));
}

static bool get_counters(void *context, uint32_t seed, counters *result, tenon_request *request) {
    (void)context;
    counters value;
    for (int i = 0; i < 33; i++) value[i] = 0x0102030405060708 + i;
    return MADE(counters, value);
}

static bool get_samples(void *context, uint32_t seed, samples *result, tenon_request *request) {
    (void)context;
    return MADE(samples, ((samples){-1, -2, -3, -4, -5, -6, -7}));
}

static bool get_page(void *context, uint32_t seed, page *result, tenon_request *request) {
    (void)context;
    page value;
    memset(value, 7, sizeof value);
    return MADE(page, value);
}

static bool get_steps(void *context, uint32_t seed, steps *result, tenon_request *request) {
    (void)context;
    steps value;
    for (int i = 0; i < 2000; i++) value[i] = -i;
    return MADE(steps, value);
}

static bool get_vertex(void *context, uint32_t seed, char *name, vertex *result, tenon_request *request) {
    (void)context;
    if (strcmp(name, "there") != 0) return tenon_refuse(request, TENON_ARGUMENTS, "where?");
    return MADE(vertex, (&(vertex){.at = {1, 2, (float)seed}, .color = seed}));
}

static bool get_stamp(void *context, uint32_t seed, stamp *result, tenon_request *request) {
    (void)context;
    const stamp value = {.seconds = 0x0102030405060708, .fraction = -(int32_t)seed, .zone = 0x0A0B, .name = {'a', 'b'}};
    return MADE(stamp, &value);
}

static bool get_lamp(void *context, uint32_t seed, lamp *result, tenon_request *request) {
    (void)context;
    return MADE(lamp, (&(lamp){.of = LIGHT, .at = (int32_t)seed}));
}

static bool get_number(void *context, uint32_t seed, uint64_t *result, tenon_request *request) {
    (void)context;
    return MADE(uint64_t, (&(uint64_t){seed}));
}

static bool get_name(void *context, uint32_t seed, char **result, tenon_request *request) {
    (void)context;
    (void)seed;
    (void)request;
    *result = strdup("name");
    return true;
}

static bool get_both(void *context, uint32_t seed, RESULTS_BOTH_result *result, tenon_request *request) {
    (void)context;
    return MADE(RESULTS_BOTH_result, (&(RESULTS_BOTH_result){.least = seed, .most = UINT32_MAX}));
}

static const results_1_service service = {
    .results_packet_1 = get_packet, .results_tag_1 = get_tag,       .results_counters_1 = get_counters,
    .results_samples_1 = get_samples, .results_page_1 = get_page,   .results_steps_1 = get_steps,
    .results_vertex_1 = get_vertex, .results_stamp_1 = get_stamp,   .results_lamp_1 = get_lamp,
    .results_number_1 = get_number, .results_name_1 = get_name,     .results_both_1 = get_both,
};

/* The handlers of the procedures whose results may lie in the reply. */
static bool handle(const void *methods, void *context, void *arguments, void *result, tenon_request *request) {
    (void)methods;
    uint32_t seed = *(uint32_t *)arguments;
    switch (tenon_request_procedure(request)) {
    case RESULTS_PACKET: return get_packet(context, seed, result, request);
    case RESULTS_TAG: return get_tag(context, seed, result, request);
    case RESULTS_COUNTERS: return get_counters(context, seed, result, request);
    case RESULTS_SAMPLES: return get_samples(context, seed, result, request);
    case RESULTS_PAGE: return get_page(context, seed, result, request);
    case RESULTS_STEPS: return get_steps(context, seed, result, request);
    case RESULTS_STAMP: return get_stamp(context, seed, result, request);
    case RESULTS_BOTH: return get_both(context, seed, result, request);
    default: return tenon_refuse(request, TENON_NO_PROCEDURE, NULL);
    }
}

/* Adds the service with tables without what encodes results. */
static void add_in_place(tenon_server *server) {
    static tenon_message messages[PROCEDURES];
    static tenon_procedure procedures[PROCEDURES];
    static tenon_interface interface;
    static tenon_handler handlers[PROCEDURES];
    interface = results_1_interface;
    for (size_t i = 0; i < interface.procedure_count; i++) {
        procedures[i] = interface.procedures[i];
        messages[i] = *procedures[i].result;
        messages[i].encode_xdr = NULL;
        messages[i].encode_lean = NULL;
        procedures[i].result = &messages[i];
        handlers[i] = handle;
    }
    interface.procedures = procedures;
    check(tenon_server_add(server, &interface, handlers, NULL, NULL, TENON_ANY_ORDER, &error), "add");
}

int main(int count, char **arguments) {
    tenon_server *server = tenon_server_new();
    if (strcmp(arguments[1], "in-place") == 0)
        add_in_place(server);
    else
        check(results_1_serve(server, &service, NULL, TENON_ANY_ORDER, &error), "serve");
    for (int i = 2; i < count; i++) check(tenon_server_listen(server, arguments[i], &error), arguments[i]);
    check(tenon_server_start(server, &error), "start");
    const char *address;
    for (size_t i = 0; (address = tenon_server_address(server, i)) != NULL; i++) puts(address);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) continue;
    tenon_server_free(server);
    puts("stopped");
    return 0;
}
