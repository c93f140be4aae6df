/* A call and its reply carry metadata, a call a claim of who makes it. Client and server are one process, which is given
 * the addresses to listen at. */
#include "notes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

/* Whether the index-th value of a key is this text. */
static bool has(const tenon_metadata *metadata, const char *key, size_t index, const char *text) {
    size_t length;
    const void *value = tenon_metadata_get(metadata, key, index, &length);
    return value != NULL && length == strlen(text) && memcmp(value, text, length) == 0;
}

/* Puts what the call carries on its reply; refuses the call if its metadata says so. */
static bool reflect(const void *own, void *context, void *arguments, void *result, tenon_request *request) {
    (void)own, (void)context, (void)arguments, (void)result;
    size_t length;
    for (size_t i = 0; ; i++) {
        const void *value = tenon_request_metadata(request, "word", i, &length);
        if (value == NULL) break;
        if (!tenon_request_append_metadata(request, "word", value, length, NULL)) return false;
    }
    uint32_t uid;
    if (tenon_request_user(request, &uid) && uid != getuid()) return false;
    bool is_network = tenon_request_ip(request, (unsigned char[16]){0}, NULL) > 0;
    if (tenon_request_user(request, NULL) == is_network) return tenon_refuse(request, TENON_FAILED, "the user");
    tenon_auth_sys claim;
    if (tenon_request_auth_sys(request, &claim)
        && !tenon_request_append_metadata(request, "uid-bin", &claim.uid, sizeof claim.uid, NULL))
        return false;
    if (tenon_request_metadata(request, "refuse", 0, NULL) != NULL) return tenon_refuse(request, TENON_FAILED, "asked");
    return true;
}

static void expect_reply(tenon_channel *channel, uint32_t uid) {
    size_t length;
    tenon_metadata *reply = tenon_channel_reply_metadata(channel);
    check(reply != NULL, "the metadata of the reply");
    check(has(reply, "word", 0, "first"), "the first value");
    check(has(reply, "word", 1, ""), "a value without bytes");
    const void *third = tenon_metadata_get(reply, "word", 2, &length);
    check(third == NULL && length == 0, "no third value");
    const void *claimed = tenon_metadata_get(reply, "uid-bin", 0, &length);
    check((claimed != NULL) == (uid != 0), "a claim");
    check(claimed == NULL || (length == sizeof uid && memcmp(claimed, &uid, length) == 0), "the claimed user");
    tenon_metadata_free(reply);
}

static void calls(tenon_channel *plain, const char *address) {
    tenon_metadata *metadata = tenon_metadata_new();
    check(tenon_metadata_append(metadata, "word", "first", 5, &error), "append");
    check(tenon_metadata_append(metadata, "word", NULL, 0, &error), "append nothing");
    check(!tenon_metadata_append(metadata, "Word", "first", 5, &error) && error.kind == TENON_CALLER, "a bad key");
    check(strstr(error.text, "Word") != NULL, "the error names the key");
    tenon_channel *channel = tenon_channel_metadata(plain, metadata, &error);
    check(channel != NULL, address);
    check(tenon_call(channel, &notes.procedures[WAIT], &(uint32_t){0}, NULL, &error), address);
    expect_reply(channel, 0);

    tenon_channel *claiming = tenon_channel_credential(channel, &(tenon_auth_sys){.machine = "here", .uid = 1000}, &error);
    tenon_pending *pending = tenon_start(claiming, &notes.procedures[WAIT], &(uint32_t){0}, &error);
    check(tenon_finish(pending, NULL, &error), address);
    expect_reply(claiming, 1000);
    tenon_close(claiming);

    /* A refusal has metadata, too. */
    tenon_metadata *wish = tenon_metadata_new();
    check(tenon_metadata_append(wish, "refuse", "yes", 3, &error), "append");
    tenon_channel *refused = tenon_channel_metadata(channel, wish, &error);
    check(!tenon_call(refused, &notes.procedures[WAIT], &(uint32_t){0}, NULL, &error) && error.kind == TENON_REFUSED, address);
    expect_reply(refused, 0);
    tenon_close(refused);
    tenon_metadata_free(wish);

    /* A token stays on this machine, unless the program says otherwise. */
    tenon_metadata *token = tenon_metadata_new();
    check(tenon_metadata_append(token, "authorization", "Bearer secret", 13, &error), "append");
    tenon_channel *trusting = tenon_channel_metadata(plain, token, &error);
    bool is_local = strncmp(address, "unix", 4) == 0 || strncmp(address, "shm", 3) == 0;
    bool is_sent = tenon_call(trusting, &notes.procedures[WAIT], &(uint32_t){0}, NULL, &error);
    check(is_sent == is_local && (is_sent || error.kind == TENON_CALLER), "a token");
    tenon_close(trusting);
    tenon_metadata_free(token);

    /* The channel that was there before has none. */
    check(tenon_call(plain, &notes.procedures[WAIT], &(uint32_t){0}, NULL, &error), address);
    tenon_metadata *none = tenon_channel_reply_metadata(plain);
    check(tenon_metadata_get(none, "word", 0, NULL) == NULL, "no metadata");
    tenon_metadata_free(none);
    tenon_metadata_free(metadata);
    tenon_close(channel);
}

int main(int count, char **arguments) {
    static const tenon_handler handlers[PROCEDURES] = {[WAIT] = reflect};
    for (int i = 1; i < count; i++) {
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
        calls(channel, plain);
        tenon_close(channel);
        tenon_server_free(server);
    }
    puts("fine");
    return 0;
}
