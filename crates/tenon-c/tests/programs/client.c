/* Calls the server at each of the addresses that it is given, and stops at what is not as it should be. */
#include "notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static tenon_error error;
static const char *address;

static void check_at(bool holds, const char *what, int line) {
    if (holds) return;
    fprintf(stderr, "%s: line %d: not so: %s (kind %d, code %u)\n", address, line, what, (int)error.kind, error.code);
    tenon_error_print(&error, "the last error");
    exit(1);
}
#define CHECK(holds) check_at(holds, #holds, __LINE__)

static const tenon_procedure *procedure(int index) { return &notes.procedures[index]; }

static bool is_lean(void) {
    return strncmp(address, "lean+", 5) == 0 || strncmp(address, "shm", 3) == 0 || strncmp(address, "xdp", 3) == 0;
}

/* Numbers in the largest message. */
static uint32_t many(void) {
    if (strncmp(address, "onc+xdp", 7) == 0) return 350;
    return strncmp(address, "udp", 3) == 0 ? 1000 : 100000;
}

static tenon_channel *connect_with(const tenon_options *options) {
    tenon_channel *channel = tenon_connect(address, &notes, options, &error);
    CHECK(channel != NULL);
    return channel;
}

static void echoes(tenon_channel *channel, const char *text) {
    note sent = {41, (char *)text}, back = {7, (char *)"not looked at"};
    CHECK(tenon_call(channel, procedure(ECHO), &sent, &back, &error));
    CHECK(error.kind == TENON_OK);
    CHECK(back.number == 42 && strcmp(back.text, text) == 0);
    tenon_clear(procedure(ECHO)->result, &back);
    CHECK(back.text == NULL);
}

static void calls_are_answered(tenon_channel *channel) {
    CHECK(tenon_ping(channel, &error));
    echoes(channel, "");
    echoes(channel, "four");
    echoes(channel, "five!");
    echoes(channel, "0123456789012345678901234567890123456789012345678901234567890123");
    uint32_t no_time = 0;
    CHECK(tenon_call(channel, procedure(WAIT), &no_time, NULL, &error));
    for (int i = 0; i < 100; i++) echoes(channel, "again");
}

static void large_messages_grow(tenon_channel *channel) {
    numbers sent = {many(), NULL}, back;
    sent.at = malloc(sent.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < sent.count; i++) sent.at[i] = i;
    CHECK(tenon_call(channel, procedure(REVERSE), &sent, &back, &error));
    CHECK(back.count == sent.count);
    for (uint32_t i = 0; i < sent.count; i++) CHECK(back.at[i] == sent.count - 1 - i);
    tenon_clear(procedure(REVERSE)->result, &back);
    free(sent.at);
}

static void callers_are_known(void) {
    const uint32_t gids[] = {100, 200};
    const tenon_auth_sys claim = {1, "here", 2, 3, gids, 2};
    const tenon_options options = {.credential = &claim, .waiting = TENON_BLOCK};
    tenon_channel *channel = connect_with(&options);
    note back;
    CHECK(tenon_call(channel, procedure(WHO), NULL, &back, &error));
    CHECK(back.number == 306);
    CHECK(strcmp(back.text, "here") == 0);
    tenon_clear(procedure(WHO)->result, &back);
    tenon_close(channel);
    tenon_channel *anonymous = connect_with(NULL);
    CHECK(tenon_call(anonymous, procedure(WHO), NULL, &back, &error));
    CHECK(back.number == 4);
    CHECK(strcmp(back.text, strstr(address, ":///") ? "near" : "far") == 0);
    tenon_clear(procedure(WHO)->result, &back);
    tenon_close(anonymous);
}

static void refused(tenon_channel *channel, uint32_t why, uint32_t onc, uint32_t lean, bool is_told) {
    uint32_t result = 5;
    CHECK(!tenon_call(channel, procedure(REFUSE), &why, &result, &error));
    CHECK(error.kind == TENON_REFUSED);
    CHECK(error.code == (is_lean() ? lean : onc));
    CHECK((strstr(error.text, "the quota is used up") != NULL) == (is_told && is_lean()));
    CHECK(result == 0);
}

static void refusals_arrive(tenon_channel *channel) {
    refused(channel, 0, TENON_ONC + 5, 4, false);
    refused(channel, TENON_FAILED, TENON_ONC + 5, 4, false);
    refused(channel, TENON_RAISED, TENON_ONC + 5, 12, true);
    refused(channel, TENON_NO_PROCEDURE, TENON_ONC + 3, 2, false);
    refused(channel, TENON_ARGUMENTS, TENON_ONC + 4, 13, true);
    refused(channel, TENON_FORBIDDEN, TENON_ONC_AUTH + 5, 10, false);
    CHECK(!tenon_call(channel, procedure(UNSERVED), NULL, NULL, &error));
    CHECK(error.kind == TENON_REFUSED && error.code == (is_lean() ? 2 : TENON_ONC + 3));
    CHECK(!error.may_have_executed);
}

/* A call that fails leaves a result that can be cleared, whatever was in its place. */
static void failed_without_result(tenon_channel *channel, const note *sent) {
    note back;
    memset(&back, 0xff, sizeof back);
    CHECK(!tenon_call(channel, procedure(ECHO), sent, &back, &error) && error.kind == TENON_CALLER);
    CHECK(back.number == 0 && back.text == NULL);
    tenon_clear(procedure(ECHO)->result, &back);
}

static void wrong_calls_are_said_to_be(tenon_channel *channel) {
    char too_long[TEXT_MAX + 2];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    note long_note = {1, too_long}, no_text = {1, NULL}, back = {1, too_long};
    CHECK(!tenon_call(channel, procedure(ECHO), &long_note, &back, &error));
    CHECK(error.kind == TENON_CALLER && !error.may_have_executed);
    CHECK(strcmp(error.text, "the arguments cannot be sent: note.text: length 65 is over the bound 64") == 0);
    CHECK(back.text == NULL);
    CHECK(!tenon_call(channel, procedure(ECHO), &no_text, &back, &error));
    CHECK(error.kind == TENON_CALLER && strstr(error.text, "note.text is NULL"));
    failed_without_result(channel, NULL);
    failed_without_result(channel, &no_text);
    failed_without_result(NULL, &no_text);
    failed_without_result(NULL, NULL);
    CHECK(!tenon_call(channel, procedure(ECHO), &no_text, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(channel, NULL, NULL, NULL, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(NULL, procedure(ECHO), &no_text, &back, NULL));
    /* Nobody knows what the result would have been. */
    memset(&back, 0xff, sizeof back);
    CHECK(!tenon_finish(NULL, &back, &error) && error.kind == TENON_CALLER);
    CHECK(!tenon_call(channel, NULL, &no_text, &back, &error) && error.kind == TENON_CALLER);
    CHECK(back.number == UINT32_MAX);
    tenon_close(NULL);
    tenon_cancel(NULL);
    tenon_clear(procedure(ECHO)->result, NULL);
    echoes(channel, "still there");
}

static void wrong_addresses_are_said_to_be(void) {
    CHECK(tenon_connect("nonsense", &notes, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect(NULL, &notes, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect(address, NULL, NULL, &error) == NULL && error.kind == TENON_CALLER);
    CHECK(tenon_connect("unix:///nowhere/at/all", &notes, NULL, &error) == NULL);
    CHECK(error.kind == TENON_UNREACHABLE && error.code == 2);
    const tenon_options options = {.waiting = (tenon_waiting)7};
    CHECK(tenon_connect(address, &notes, &options, &error) == NULL && error.kind == TENON_CALLER);
}

static void other_interfaces_are_noticed(tenon_channel *channel) {
    tenon_channel *other = tenon_channel_share(channel, &nobody, &error);
    CHECK(other != NULL);
    note sent = {1, (char *)"x"}, back;
    CHECK(!tenon_call(other, procedure(ECHO), &sent, &back, &error));
    CHECK(error.kind == TENON_REFUSED && error.code == (is_lean() ? 1 : TENON_ONC + 1));
    tenon_close(other);
    if (!is_lean()) return;
    other = tenon_channel_share(channel, &notes_changed, &error);
    CHECK(!tenon_call(other, procedure(ECHO), &sent, &back, &error));
    CHECK(error.kind == TENON_REFUSED && strstr(error.text, "note") != NULL);
    tenon_close(other);
}

static void calls_can_be_under_way_together(tenon_channel *channel) {
    enum { CALLS = 20 };
    tenon_pending *pending[CALLS];
    for (uint32_t i = 0; i < CALLS; i++) {
        note sent = {i, (char *)"later"};
        pending[i] = tenon_start(channel, procedure(ECHO), &sent, &error);
        CHECK(pending[i] != NULL);
    }
    for (uint32_t i = CALLS; i-- > 0;) {
        note back;
        if (i % 5 == 4) {
            tenon_cancel(pending[i]);
            continue;
        }
        if (i % 3 == 0) CHECK(tenon_ready(pending[i], 10000));
        CHECK(tenon_finish(pending[i], &back, &error));
        CHECK(back.number == i + 1 && strcmp(back.text, "later") == 0);
        tenon_clear(procedure(ECHO)->result, &back);
    }
    CHECK(tenon_start(channel, procedure(ECHO), NULL, &error) == NULL && error.kind == TENON_CALLER);
}

static void time_runs_out(tenon_channel *channel) {
    tenon_channel *hasty = tenon_channel_timeout(channel, 20, &error);
    uint32_t long_time = 1500;
    CHECK(!tenon_call(hasty, procedure(WAIT), &long_time, NULL, &error));
    CHECK(error.kind == TENON_TIMEOUT);
    tenon_close(hasty);
    echoes(channel, "and goes on");
}

static void *call_often(void *channel) {
    for (int i = 0; i < 50; i++) {
        note sent = {1, (char *)"threads"}, back;
        tenon_error own;
        if (!tenon_call(channel, procedure(ECHO), &sent, &back, &own)) return tenon_error_print(&own, "a thread"), channel;
        tenon_clear(procedure(ECHO)->result, &back);
    }
    return NULL;
}

static void threads_share_a_channel(tenon_channel *channel) {
    pthread_t threads[4];
    void *failed;
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, call_often, channel) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
}

/* Against a server that answers what it should not. */
static void hostile(tenon_channel *channel) {
    note sent = {1, (char *)"x"}, back;
    numbers many = {0, NULL}, much;
    CHECK(!tenon_call(channel, procedure(ECHO), &sent, &back, &error));
    CHECK(error.kind == TENON_PEER && error.may_have_executed);
    CHECK(strstr(error.text, "note.text: length 4294967295 is over the bound 64 at byte 4") != NULL);
    CHECK(back.text == NULL);
    CHECK(!tenon_call(channel, procedure(REVERSE), &many, &much, &error));
    CHECK(error.kind == TENON_PEER && strstr(error.text, "numbers: 4000 bytes needed, 4 left at byte 4") != NULL);
    CHECK(much.at == NULL);
    CHECK(!tenon_call(channel, procedure(WHO), NULL, &back, &error));
    CHECK(error.kind == TENON_PEER && strstr(error.text, "4 bytes needed, 0 left at byte 0") != NULL);
}

static void dies(tenon_channel *channel) {
    CHECK(!tenon_call(channel, procedure(DIE), NULL, NULL, &error));
    CHECK(error.kind == TENON_DISCONNECTED || error.kind == TENON_TIMEOUT);
    CHECK(error.may_have_executed);
}

static void everything(tenon_channel *channel) {
    calls_are_answered(channel);
    large_messages_grow(channel);
    callers_are_known();
    refusals_arrive(channel);
    wrong_calls_are_said_to_be(channel);
    wrong_addresses_are_said_to_be();
    other_interfaces_are_noticed(channel);
    calls_can_be_under_way_together(channel);
    time_runs_out(channel);
    threads_share_a_channel(channel);
}

int main(int count, char **arguments) {
    const char *what = arguments[1];
    for (int i = 2; i < count; i++) {
        address = arguments[i];
        const tenon_options options = {.timeout_ms = strcmp(what, "dies") == 0 ? 2000 : 25000};
        tenon_channel *channel = connect_with(&options);
        if (strcmp(what, "everything") == 0) everything(channel);
        if (strcmp(what, "hostile") == 0) hostile(channel);
        if (strcmp(what, "dies") == 0) dies(channel);
        tenon_close(channel);
    }
    CHECK(strcmp(tenon_version(), "0.1.0") == 0);
    puts("fine");
    return 0;
}
