/*
 * Calls procedures of torture.x by their names, with values in the layout of the generated header:
 *
 *     opened_calls FILE.x ENGINE ADDRESS...
 *
 * A server is at each address. What it returns has to be what was sent. Prints "fine".
 */
#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition, error) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, (error).text); \
			exit(1); \
		} \
	} while (0)

#define COUNTED(element, ...) \
	{ sizeof((element[]) { __VA_ARGS__ }) / sizeof(element), (element[]) { __VA_ARGS__ } }

static tenon_interface_file *file;
static const tenon_interface *version;
static tenon_error error;

/* The bytes of a value, by the interface that was opened. */
static char *
bytes_of(const tenon_message *message, const void *value, size_t *length)
{
	char *bytes = tenon_encode_alloc(message, TENON_XDR, value, 0, length, &error);

	REQUIRE(bytes != NULL, error);
	return bytes;
}

/* Sends a value to the procedure that returns its argument. */
static void
echo(tenon_channel *channel, const char *procedure, const void *value)
{
	const tenon_procedure *called = tenon_interface_procedure(version, procedure, &error);
	size_t sent_length, got_length;
	char *sent, *got;
	void *result;

	REQUIRE(called != NULL, error);
	result = malloc(called->result->size);
	REQUIRE(tenon_interface_call(version, channel, procedure, value, result, &error), error);
	sent = bytes_of(called->arguments, value, &sent_length);
	got = bytes_of(called->result, result, &got_length);
	REQUIRE(sent_length == got_length && memcmp(sent, got, sent_length) == 0, error);
	tenon_clear(called->result, result);
	free(result);
	free(sent);
	free(got);
}

static void
echo_values(tenon_channel *channel)
{
	const char *sentence = "a text";
	bool yes = true;
	int64_t wide = -9000000000000000000;
	temperature cold = FREEZING;
	node third = { 3, "three", NULL }, second = { 2, "two", &third }, first = { 1, "one", &second };
	node *list = &first;
	two_lists lists = { &second, 7, NULL };
	group last = { "last", NULL, NULL }, groups = { "first", &first, &last };
	tree leaf = { 5, NULL, NULL }, left = { 4, NULL, &leaf }, root = { 3, &left, &leaf };
	holes sparse = { true, -1, 'c', 0.5, -2 };
	drawing picture = {
		.first = { { 0, 0 }, { INT32_MAX, INT32_MIN } },
		.title = "a drawing",
		.ink = VIOLET,
		.pixels = COUNTED(uint8_t, 1, 2, 3, 4, 5),
		.created = wide,
	};
	shade green = { GREEN, { .green = "green" } };
	nested_union nested = { RED, { .inner = green } };
	by_bool none = { false, { { { { 0, 0 }, { 0, 0 } }, NULL, { { 0, 0 }, { 0, 0 } }, RED, { 0, NULL }, 0 } } };
	optionals maybe = { .maybe_hyper = &wide, .maybe_bool = &yes, .maybe_drawing = &picture };
	words many = COUNTED(text, "", "one", "two");
	blob nothing = { 0, NULL };
	expression literal = { "seven", { LITERAL, { .literal = 7 } } };
	expression sum = { "sum", { BINARY, { .operation = { '+', &literal, &literal } } } };
	counted_arrays arrays = {
		.ints = COUNTED(int32_t, 1, -2, 3),
		.bools = COUNTED(bool, true, false, true),
		.drawings = COUNTED(drawing, picture, picture),
	};

	echo(channel, "ECHO_STRING", &sentence);
	echo(channel, "ECHO_BOOL", &yes);
	echo(channel, "ECHO_HYPER", &wide);
	echo(channel, "ECHO_TEMPERATURE", &cold);
	echo(channel, "ECHO_NODE_LIST", &list);
	echo(channel, "ECHO_TWO_LISTS", &lists);
	echo(channel, "ECHO_GROUP", &groups);
	echo(channel, "ECHO_TREE", &root);
	echo(channel, "ECHO_HOLES", &sparse);
	echo(channel, "ECHO_DRAWING", &picture);
	echo(channel, "ECHO_SHADE", &green);
	echo(channel, "ECHO_NESTED_UNION", &nested);
	echo(channel, "ECHO_BY_BOOL", &none);
	echo(channel, "ECHO_OPTIONALS", &maybe);
	echo(channel, "ECHO_WORDS", &many);
	echo(channel, "ECHO_BLOB", &nothing);
	echo(channel, "ECHO_EXPRESSION", &sum);
	echo(channel, "ECHO_COUNTED_ARRAYS", &arrays);
}

/* Several arguments, none, and no result. */
static void
call_others(tenon_channel *channel)
{
	struct { int32_t left, right; } numbers = { 40, 2 };
	struct { text title; blob pixels; color ink; line border; } parts = {
		"parts", COUNTED(uint8_t, 9, 8, 7), BLUE, { { 1, 2 }, { 3, 4 } }
	};
	const tenon_procedure *assemble = tenon_interface_procedure(version, "ASSEMBLE", &error);
	tenon_pending *pending;
	drawing made;
	int32_t answer = 0;
	uint32_t length = 20000;
	blob large;

	REQUIRE(tenon_interface_call(version, channel, "ANSWER", NULL, &answer, &error) && answer == 42, error);
	REQUIRE(tenon_interface_call(version, channel, "SWALLOW", &answer, NULL, &error), error);
	REQUIRE(tenon_interface_call(version, channel, "ADD", &numbers, &answer, &error) && answer == 42, error);
	REQUIRE(assemble != NULL && assemble->arguments->size == sizeof parts, error);
	pending = tenon_start(channel, assemble, &parts, &error);
	REQUIRE(tenon_finish(pending, &made, &error), error);
	REQUIRE(strcmp(made.title, "parts") == 0 && made.ink == BLUE && made.pixels.blob_val[2] == 7, error);
	/* The stub's table frees what the opened interface has decoded. */
	tenon_clear(&drawing_message, &made);
	REQUIRE(tenon_interface_call(version, channel, "PRODUCE", &length, &large, &error), error);
	REQUIRE(large.blob_len == length && large.blob_val[19999] == 19999 % 251, error);
	tenon_clear(&blob_message, &large);
}

/* What a program does wrong is an error, and nothing is sent. */
static void
refuse(tenon_channel *channel)
{
	node cycle = { 1, "round", &cycle };
	node *list = &cycle, *returned = &cycle;
	blob missing = { 3, NULL }, got;
	const char *sentence = "x";
	int32_t answer = 1;

	REQUIRE(!tenon_interface_call(version, channel, "ECHO_NODE_LIST", &list, &returned, &error), error);
	REQUIRE(error.kind == TENON_CALLER && strstr(error.text, "does a list lead back to itself?") != NULL, error);
	REQUIRE(returned == NULL, error);
	REQUIRE(!tenon_interface_call(version, channel, "ECHO_BLOB", &missing, &got, &error), error);
	REQUIRE(error.kind == TENON_CALLER && strstr(error.text, "is NULL") != NULL, error);
	REQUIRE(!tenon_interface_call(version, channel, "ECHO_STRING", NULL, &sentence, &error), error);
	REQUIRE(error.kind == TENON_CALLER && sentence == NULL, error);
	REQUIRE(!tenon_interface_call(version, channel, "NOT_THERE", &sentence, &answer, &error), error);
	REQUIRE(error.kind == TENON_CALLER && strstr(error.text, "NOT_THERE") != NULL && answer == 1, error);
	REQUIRE(!tenon_interface_call(NULL, channel, "ANSWER", NULL, &answer, &error), error);
	REQUIRE(!tenon_interface_call(version, NULL, "ANSWER", NULL, &answer, &error), error);
	REQUIRE(error.kind == TENON_CALLER, error);
}

int
main(int argc, char **argv)
{
	tenon_open_options options = TENON_OPEN_OPTIONS;
	tenon_options limits = TENON_OPTIONS;
	int at, times;

	if (argc < 4)
		return 1;
	options.engine = (tenon_engine)atoi(argv[2]);
	limits.send_max = 100000;
	file = tenon_interface_open(argv[1], &options, &error);
	REQUIRE(file != NULL, error);
	version = tenon_interface_version(file, NULL, 1, &error);
	REQUIRE(version != NULL && version->fingerprint == torture_program_1_interface.fingerprint, error);
	for (at = 3; at < argc; at++) {
		tenon_channel *channel = tenon_connect(argv[at], version, &limits, &error);

		REQUIRE(channel != NULL, error);
		for (times = 0; times < 3; times++) {
			echo_values(channel);
			call_others(channel);
		}
		refuse(channel);
		tenon_close(channel);
	}
	tenon_interface_free(file);
	puts("fine");
	return 0;
}
