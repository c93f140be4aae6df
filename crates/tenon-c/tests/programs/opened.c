/*
 * Interfaces that are opened at run time, at both ends: opened FILE DESCRIPTOR ADDRESS. FILE holds the text below, DESCRIPTOR
 * the same interface as a descriptor. What is wrong with a file, a name, a value or bytes is an error that says where. Prints
 * "fine".
 */
#include <tenon.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error.text); \
            exit(1); \
        } \
    } while (0)

/* Whether the last function failed for the program's or a file's mistake, and has said so in these words. */
#define SAYS(words) (error.kind == TENON_CALLER && strstr(error.text, words) != NULL)

/* The types of FILE as a generated header declares them. */
typedef struct link {
    bool last;
    char *name;
    struct link *next;
} chain;

typedef struct missing {
    char *name;
} missing;

typedef struct record {
    int64_t wide;
    struct {
        uint32_t numbers_len;
        int16_t *numbers_val;
    } numbers;
    chain *names;
    bool *maybe;
} record;

static tenon_error error;

static void refuse_files(const char *path) {
    tenon_open_options options = TENON_OPEN_OPTIONS;
    const char *bad = "struct a {\n    int x;\n    nothing y;\n};\n";
    const char *external = "%#include \"other.h\"\nstruct a { other x; };\n";
    const char *including = "#include \"opened.x\"\n";
    const char *define[] = {"SIZE=3"}, *sized = "struct a { int x[SIZE]; };\n";
    tenon_interface_file *file;

    REQUIRE(tenon_interface_open("/not/there.x", NULL, &error) == NULL && SAYS("/not/there.x"));
    REQUIRE(tenon_interface_open(NULL, NULL, &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_parse(NULL, 3, NULL, NULL, &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_parse(bad, strlen(bad), "bad.x", NULL, &error) == NULL && SAYS("bad.x:3:5: "));
    REQUIRE(tenon_interface_parse(bad, strlen(bad), NULL, NULL, &error) == NULL && SAYS("interface:3:5: "));
    REQUIRE(tenon_interface_parse(external, strlen(external), "e.x", NULL, &error) == NULL && SAYS("`other` is"));
    REQUIRE(tenon_interface_parse("tenonIDL\0\0\0\1", 12, "d", NULL, &error) == NULL && SAYS("d: "));
    REQUIRE(tenon_interface_parse(including, strlen(including), path, NULL, &error) == NULL && SAYS(":1:"));
    options.size = 3;
    REQUIRE(tenon_interface_open(path, &options, &error) == NULL && SAYS("TENON_OPEN_OPTIONS"));
    options.size = sizeof options;
    options.engine = (tenon_engine)9;
    REQUIRE(tenon_interface_open(path, &options, &error) == NULL && SAYS("engine"));
    options.engine = TENON_ENGINE_ADAPTIVE;
    options.layout = (tenon_layout)9;
    REQUIRE(tenon_interface_open(path, &options, &error) == NULL && SAYS("layout"));
    options.layout = TENON_LAYOUT_RPCGEN;
    REQUIRE(tenon_interface_parse("struct a { long x; };", 21, "l.x", &options, &error) == NULL && SAYS("`long`"));
    options.layout = TENON_LAYOUT_STUBS;
    REQUIRE(tenon_interface_parse(sized, strlen(sized), "s.x", &options, &error) == NULL && SAYS("s.x:1:"));
    options.define = define;
    options.define_count = 1;
    file = tenon_interface_parse(sized, strlen(sized), "s.x", &options, &error);
    REQUIRE(file != NULL && tenon_interface_type(file, "a", &error)->size == 3 * sizeof(int32_t));
    tenon_interface_free(file);
    /* Folders for #include lines have files read, also from that of the name. */
    options.include = define;
    options.include_count = 1;
    file = tenon_interface_parse(including, strlen(including), path, &options, &error);
    REQUIRE(file != NULL && tenon_interface_type(file, "record", &error) != NULL);
    tenon_interface_free(file);
    tenon_interface_free(NULL);
}

static void look_up(const tenon_interface_file *file) {
    const tenon_interface *first = tenon_interface_version(file, "OPENED", 1, &error);
    const tenon_interface *highest = tenon_interface_version(file, "OPENED", 0, &error);

    REQUIRE(first != NULL && first->version == 1 && highest != NULL && highest->version == 2);
    REQUIRE(tenon_interface_version(file, NULL, 2, &error) == highest);
    REQUIRE(tenon_interface_version(file, "OPENED", 3, &error) == NULL && SAYS("`OPENED` that has version 3"));
    REQUIRE(tenon_interface_version(file, "CLOSED", 1, &error) == NULL && SAYS("`CLOSED`"));
    REQUIRE(tenon_interface_version(NULL, "OPENED", 1, &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_type(file, "record", &error)->size == sizeof(record));
    REQUIRE(tenon_interface_type(file, "link", &error)->size == sizeof(chain));
    REQUIRE(tenon_interface_type(file, "nothing", &error) == NULL && SAYS("`nothing`"));
    REQUIRE(tenon_interface_type(file, NULL, &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_type(NULL, "record", &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_procedure(first, "ECHO", &error)->number == 1);
    REQUIRE(tenon_interface_procedure(first, "FLOW", &error) == NULL && SAYS("`FLOW`"));
    REQUIRE(tenon_interface_procedure(NULL, "ECHO", &error) == NULL && SAYS("NULL"));
    REQUIRE(tenon_interface_raised(file, first, "ECHO", "missing", &error) != NULL);
    REQUIRE(tenon_interface_raised(file, highest, "ECHO", "missing", &error) == NULL && SAYS("`missing`"));
    REQUIRE(tenon_interface_raised(file, NULL, "ECHO", "missing", &error) == NULL && SAYS("`ECHO`"));
}

static void marshal(const tenon_interface_file *file) {
    const tenon_message *message = tenon_interface_type(file, "record", &error);
    int16_t numbers[] = {1, -2, 3};
    bool yes = true;
    chain second = {true, "second", NULL}, first = {false, NULL, &second};
    record sent = {-5, {3, numbers}, &first, &yes}, got;
    tenon_representation form;
    unsigned char buffer[128], many[128];
    size_t length, used, at;

    for (form = TENON_XDR; form <= TENON_LEAN; form++) {
        REQUIRE(tenon_encode(message, form, &sent, buffer, sizeof buffer, &length, &error));
        REQUIRE(tenon_decode(message, form, buffer, length, &got, NULL, &error));
        REQUIRE(got.wide == -5 && got.numbers.numbers_len == 3 && got.numbers.numbers_val[1] == -2);
        REQUIRE(*got.names->name == 0 && strcmp(got.names->next->name, "second") == 0);
        REQUIRE(got.names->next->last && got.names->next->next == NULL && *got.maybe);
        tenon_clear(message, &got);
        REQUIRE(got.names == NULL && got.maybe == NULL && got.numbers.numbers_val == NULL);
        tenon_clear(message, &got);
        /* A buffer is filled to its end, and not further. */
        memset(many, 0, sizeof many);
        REQUIRE(tenon_encode(message, form, &sent, many, length, NULL, &error) && many[length] == 0);
        for (at = 0; at < length; at++) {
            memset(&got, 0xff, sizeof got);
            REQUIRE(!tenon_encode(message, form, &sent, many, at, NULL, &error) && SAYS("the limit, are not enough"));
            REQUIRE(!tenon_decode(message, form, buffer, at, &got, NULL, &error) && error.kind == TENON_PEER);
            REQUIRE(got.names == NULL && got.wide == 0);
        }
        REQUIRE(!tenon_decode(message, form, buffer, length + 3, &got, NULL, &error));
        REQUIRE(error.kind == TENON_PEER && strstr(error.text, "3 bytes follow") != NULL);
        REQUIRE(tenon_decode(message, form, buffer, length + 3, &got, &used, &error) && used == length);
        tenon_clear(message, &got);
    }
    REQUIRE(tenon_encode(message, TENON_XDR, &sent, buffer, sizeof buffer, &length, &error));
    REQUIRE(!tenon_encode(message, TENON_LEAN_SWAPPED, &sent, buffer, sizeof buffer, NULL, &error) && SAYS("order"));
    REQUIRE(!tenon_encode(message, (tenon_representation)7, &sent, buffer, 9, NULL, &error) && SAYS("representation"));
    REQUIRE(!tenon_decode(message, (tenon_representation)7, buffer, 9, &got, NULL, &error) && SAYS("representation"));
    REQUIRE(!tenon_encode(NULL, TENON_XDR, &sent, buffer, 9, NULL, &error) && SAYS("NULL"));
    REQUIRE(!tenon_encode(message, TENON_XDR, NULL, buffer, 9, NULL, &error) && SAYS("NULL"));
    REQUIRE(!tenon_encode(message, TENON_XDR, &sent, NULL, 9, NULL, &error) && SAYS("NULL"));
    REQUIRE(!tenon_decode(NULL, TENON_XDR, buffer, 9, &got, NULL, &error) && SAYS("NULL"));
    REQUIRE(!tenon_decode(message, TENON_XDR, NULL, 9, &got, NULL, &error) && SAYS("NULL"));
    REQUIRE(!tenon_decode(message, TENON_XDR, buffer, 9, NULL, NULL, &error) && SAYS("NULL"));
    sent.numbers.numbers_val = NULL;
    REQUIRE(!tenon_encode(message, TENON_XDR, &sent, buffer, sizeof buffer, NULL, &error) && SAYS("numbers is NULL"));
    sent.numbers.numbers_val = numbers;
    sent.numbers.numbers_len = 2000000000;
    REQUIRE(!tenon_encode(message, TENON_XDR, &sent, buffer, sizeof buffer, NULL, &error) && SAYS("over the bound 100"));
    sent.numbers.numbers_len = 0;
    second.next = &first;
    for (form = TENON_XDR; form <= TENON_LEAN; form++) {
        REQUIRE(tenon_encode_alloc(message, form, &sent, 1 << 20, &length, &error) == NULL && SAYS("lead back to itself?"));
        REQUIRE(tenon_encode_alloc(message, form, &sent, 0, &length, &error) == NULL && SAYS("lead back to itself?"));
    }
}

/* More bytes than a message pays memory for, and counts without elements. */
static void decode_hostile(const tenon_interface_file *file) {
    const tenon_message *message = tenon_interface_type(file, "record", &error);
    unsigned char bytes[4096];
    unsigned seed = 1, round, at;
    record got;

    for (round = 0; round < 20000; round++) {
        size_t length = 0;
        tenon_representation form = (tenon_representation)(round % 3);

        /* Words that are small, as counts, flags and lengths are, and some that are not. */
        while (length + 4 <= sizeof bytes && length < 8 + round % 300) {
            seed = seed * 1103515245 + 12345;
            at = seed >> 16;
            memset(bytes + length, 0, 4);
            bytes[length + (form == TENON_LEAN ? 0 : 3)] = (unsigned char)(at % 3);
            if (at % 41 == 0)
                memset(bytes + length, (int)(at & 0xff), 4);
            length += 4;
        }
        if (tenon_decode(message, form, bytes, length, &got, &length, &error))
            tenon_clear(message, &got);
        else
            REQUIRE(error.kind == TENON_PEER && got.names == NULL && got.numbers.numbers_val == NULL);
    }
}

/* Handlers, of which the arguments and results are in the layout of the opened interface. */

static const tenon_raised_type *missing_type;

static bool serve_echo(const void *methods, void *context, void *arguments, void *result, tenon_request *request) {
    record *value = arguments;

    (void)methods, (void)context;
    if (value->names == NULL) {
        missing none = {"no names"};

        return tenon_raise(request, missing_type, &none, NULL);
    }
    *(record *)result = *value;
    memset(value, 0, sizeof *value);
    return true;
}

static bool serve_count(const void *methods, void *context, void *arguments, void *result, tenon_request *request) {
    struct {
        char *name;
        chain list;
    } *value = arguments;
    chain *each;
    int32_t count = 0;

    (void)methods, (void)context, (void)request;
    for (each = &value->list; each != NULL; each = each->next)
        count += strcmp(each->name, value->name) == 0;
    *(int32_t *)result = count;
    return true;
}

static void call(const tenon_interface_file *file, const char *address) {
    const tenon_interface *version = tenon_interface_version(file, NULL, 1, &error);
    const tenon_message *message = tenon_interface_type(file, "record", &error);
    bool is_lean = strncmp(address, "lean", 4) == 0;
    tenon_channel *channel = tenon_connect(address, version, NULL, &error);
    chain third = {true, "twice", NULL}, second = {false, "once", &third}, first = {false, "twice", &second};
    struct {
        char *name;
        chain list;
    } arguments = {"twice", first};
    record sent = {7, {0, NULL}, &first, NULL}, got;
    missing none;
    int32_t count = 0;
    int times;

    REQUIRE(channel != NULL);
    for (times = 0; times < 2000; times++) {
        REQUIRE(tenon_interface_call(version, channel, "ECHO", &sent, &got, &error));
        REQUIRE(got.wide == 7 && strcmp(got.names->next->name, "once") == 0 && got.names->next->next->last);
        tenon_clear(message, &got);
        REQUIRE(tenon_interface_call(version, channel, "COUNT", &arguments, &count, &error) && count == 2);
    }
    sent.names = NULL;
    REQUIRE(!tenon_interface_call(version, channel, "ECHO", &sent, &got, &error) && error.kind == TENON_REFUSED);
    REQUIRE(tenon_raised(missing_type, &none) == is_lean);
    if (is_lean) {
        REQUIRE(strcmp(none.name, "no names") == 0);
        tenon_clear(missing_type->message, &none);
    }
    tenon_close(channel);
}

static void *call_beside_others(void *file) {
    const tenon_message *message = tenon_interface_type(file, "record", NULL);
    chain only = {true, "only", NULL};
    record sent = {1, {0, NULL}, &only, NULL}, got;
    unsigned char buffer[64];
    size_t length;
    int times;

    for (times = 0; times < 3000; times++) {
        if (!tenon_encode(message, TENON_XDR, &sent, buffer, sizeof buffer, &length, NULL) ||
            !tenon_decode(message, TENON_XDR, buffer, length, &got, NULL, NULL))
            return NULL;
        tenon_clear(message, &got);
    }
    return file;
}

static void run(const char *path, tenon_engine engine, const char *address) {
    tenon_open_options options = TENON_OPEN_OPTIONS;
    const tenon_handler handlers[] = {serve_echo, serve_count};
    tenon_server *server = tenon_server_new();
    const tenon_interface *version;
    tenon_interface_file *file;
    pthread_t threads[4];
    char lean[200];
    int at;

    options.engine = engine;
    file = tenon_interface_open(path, &options, &error);
    REQUIRE(file != NULL);
    look_up(file);
    for (at = 0; at < 4; at++)
        REQUIRE(pthread_create(&threads[at], NULL, call_beside_others, file) == 0);
    for (at = 0; at < 4; at++) {
        void *outcome;

        REQUIRE(pthread_join(threads[at], &outcome) == 0 && outcome == file);
    }
    marshal(file);
    decode_hostile(file);
    version = tenon_interface_version(file, NULL, 1, &error);
    missing_type = tenon_interface_raised(file, version, "ECHO", "missing", &error);
    REQUIRE(tenon_server_add(server, version, handlers, NULL, NULL, TENON_ANY_ORDER, &error));
    REQUIRE(tenon_server_listen(server, address, &error) && tenon_server_start(server, &error));
    call(file, address);
    snprintf(lean, sizeof lean, "lean+%s", address);
    call(file, lean);
    tenon_server_free(server);
    tenon_interface_free(file);
}

int main(int argc, char **argv) {
    tenon_engine engine;

    if (argc != 4)
        return 1;
    refuse_files(argv[1]);
    for (engine = TENON_ENGINE_ADAPTIVE; engine <= TENON_ENGINE_INTERPRETED; engine++)
        run(argv[1], engine, argv[3]);
    run(argv[2], TENON_ENGINE_COMPILED, argv[3]);
    puts("fine");
    return 0;
}
