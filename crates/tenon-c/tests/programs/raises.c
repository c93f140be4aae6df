/* Errors of an interface, by the stubs of raises.x: `serve ADDRESS...` raises what the key says until its input ends,
 * `call ADDRESS...` calls such a server and checks what it gets. */
#include "raises.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Statuses of the lean protocol. */
enum { FAILED = 4, RAISED = 12 };

static tenon_error error;

static void check(bool holds, const char *what) {
    if (holds) return;
    tenon_error_print(&error, what);
    exit(1);
}

static bool get(void *context, char *key, char **result, tenon_request *request) {
    (void)context;
    if (strcmp(key, "nothing") == 0)
        return keys_get_1_raise_no_such_key(request, &(no_such_key){.key = key}, "there is no such key");
    if (strcmp(key, "conflict") == 0)
        return keys_get_1_raise_conflict(request, &(conflict){.version = 1ull << 40, .holder = "somebody else"}, NULL);
    if (strcmp(key, "closed") == 0) return keys_get_1_raise_closed(request, &(closed){CLOSED_FOR_GOOD}, NULL);
    if (strcmp(key, "other") == 0) return keys_get_1_raise_other(request, &(other){.other_u.text = "why"}, NULL);
    /* None of these can be sent. */
    if (strcmp(key, "null") == 0) return keys_get_1_raise_conflict(request, NULL, NULL);
    if (strcmp(key, "unknown") == 0) return keys_get_1_raise_closed(request, &(closed){7}, NULL);
    if (strcmp(key, "long") == 0) {
        char text[100] = {0};
        memset(text, 'a', 65);
        return keys_get_1_raise_no_such_key(request, &(no_such_key){.key = text}, NULL);
    }
    *result = strdup(key);
    return true;
}

static bool close_keys(void *context, tenon_request *request) {
    (void)context;
    return keys_close_1_raise_closed(request, &(closed){CLOSED_FOR_NOW}, NULL);
}

static bool find(void *context, char *key, place *result, tenon_request *request) {
    (void)context;
    *result = (place){.x = 7, .y = -7};
    if (strcmp(key, "nothing") != 0) return true;
    return keys_find_1_raise_no_such_key(request, &(no_such_key){.key = key}, NULL);
}

static int serve(int count, char **addresses) {
    static const keys_1_service service = {.keys_get_1 = get, .keys_close_1 = close_keys, .keys_find_1 = find};
    tenon_server *server = tenon_server_new();
    check(keys_1_serve(server, &service, NULL, TENON_ANY_ORDER, &error), "serve");
    for (int i = 0; i < count; i++) check(tenon_server_listen(server, addresses[i], &error), addresses[i]);
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

/* Fails as the key says; false with the error of the interface, if the protocol carries it. */
static void fails(tenon_channel *channel, const char *key) {
    char *value = NULL;
    check(!keys_get_1(channel, key, &value, &error) && value == NULL, key);
    check(error.kind == TENON_REFUSED && error.may_have_executed, "a refusal");
}

static void raises(tenon_channel *channel, const char *address) {
    no_such_key missing;
    conflict held;
    closed state;
    other why;
    fails(channel, "nothing");
    check(error.code == RAISED && strstr(error.text, "there is no such key") != NULL, address);
    /* It is that error and no other one, as often as it is asked for. */
    check(!keys_get_1_raised_conflict(&held) && !keys_get_1_raised_closed(NULL) && !keys_get_1_raised_other(&why), "others");
    for (int i = 0; i < 2; i++) {
        check(keys_get_1_raised_no_such_key(NULL) && keys_get_1_raised_no_such_key(&missing), address);
        check(strcmp(missing.key, "nothing") == 0, "the key");
        tenon_clear(&no_such_key_message, &missing);
    }
    fails(channel, "conflict");
    check(strstr(error.text, "conflict") != NULL, "without words, the name of the type");
    check(!keys_get_1_raised_no_such_key(NULL) && keys_get_1_raised_conflict(&held), address);
    check(held.version == 1ull << 40 && strcmp(held.holder, "somebody else") == 0, "the conflict");
    tenon_clear(&conflict_message, &held);
    fails(channel, "closed");
    check(keys_get_1_raised_closed(&state) && state == CLOSED_FOR_GOOD, address);
    fails(channel, "other");
    check(keys_get_1_raised_other(&why) && why.why == 0 && strcmp(why.other_u.text, "why") == 0, address);
    tenon_clear(&other_message, &why);
    check(!keys_close_1(channel, &error) && keys_close_1_raised_closed(&state) && state == CLOSED_FOR_NOW, "close");
    place found;
    check(!keys_find_1(channel, "nothing", &found, &error) && keys_find_1_raised_no_such_key(NULL), "find");

    /* A call that succeeds leaves the error there, and one that fails otherwise does not. */
    char *value = NULL;
    check(keys_get_1(channel, "key", &value, &error) && strcmp(value, "key") == 0, "a result");
    free(value);
    check(keys_find_1_raised_no_such_key(NULL), "still there");
    tenon_channel *none = tenon_connect("nowhere://", &keys_1_interface, NULL, &error);
    check(none == NULL && error.kind == TENON_CALLER, "no address");
    check(!keys_find_1_raised_no_such_key(NULL), "gone");

    tenon_pending *pending = keys_get_1_start(channel, "conflict", &error);
    check(!tenon_finish(pending, &value, &error) && keys_get_1_raised_conflict(NULL), "a call that was started");
    for (const char *const *key = (const char *const[]){"null", "unknown", "long", NULL}; *key != NULL; key++) {
        fails(channel, *key);
        check(error.code == FAILED && !keys_get_1_raised_conflict(NULL), *key);
        check(!keys_get_1_raised_closed(NULL) && !keys_get_1_raised_no_such_key(NULL), *key);
    }
    check(!tenon_raised(NULL, NULL), "no type");
}

/* Details that are not the error at their position: cut off, of a member that the enum does not have. What follows an
 * error is ignored, as it is behind a result. */
static void lies(tenon_channel *channel) {
    conflict held;
    closed state;
    fails(channel, "cut off");
    check(error.code == RAISED && !keys_get_1_raised_conflict(NULL) && !keys_get_1_raised_conflict(&held), "cut off");
    fails(channel, "too long");
    check(keys_get_1_raised_closed(&state) && state == CLOSED_FOR_NOW, "too long");
    fails(channel, "unknown member");
    check(!keys_get_1_raised_closed(NULL) && !keys_get_1_raised_closed(&state), "an unknown member");
    fails(channel, "no details");
    check(!keys_get_1_raised_no_such_key(NULL), "no details");
}

/* ONC RPC has no room for errors. */
static void raises_nothing(tenon_channel *channel, const char *address) {
    for (const char *const *key = (const char *const[]){"nothing", "conflict", "closed", NULL}; *key != NULL; key++) {
        fails(channel, *key);
        check(error.code == TENON_ONC + 5, address);
        check(!keys_get_1_raised_no_such_key(NULL) && !keys_get_1_raised_conflict(NULL), address);
    }
}

/* What another thread's call failed of is not this thread's. */
static void *sees_nothing(void *unused) {
    check(!keys_get_1_raised_no_such_key(NULL), "another thread's error");
    return unused;
}

static void in_threads(tenon_channel *channel) {
    pthread_t thread;
    fails(channel, "nothing");
    check(pthread_create(&thread, NULL, sees_nothing, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    check(keys_get_1_raised_no_such_key(NULL), "this thread's error");
}

static int call(int count, char **addresses, bool is_liar) {
    for (int i = 0; i < count; i++) {
        tenon_options options = TENON_OPTIONS;
        tenon_channel *channel = tenon_connect(addresses[i], &keys_1_interface, &options, &error);
        check(channel != NULL, addresses[i]);
        bool is_lean = strncmp(addresses[i], "lean", 4) == 0 || strncmp(addresses[i], "shm", 3) == 0;
        if (is_lean && is_liar) {
            lies(channel);
        } else if (is_lean) {
            raises(channel, addresses[i]);
            in_threads(channel);
        } else {
            raises_nothing(channel, addresses[i]);
        }
        tenon_close(channel);
    }
    puts("fine");
    return 0;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    if (strcmp(arguments[1], "serve") == 0) return serve(count - 2, arguments + 2);
    return call(count - 2, arguments + 2, strcmp(arguments[1], "lies") == 0);
}
