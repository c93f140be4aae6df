/*
 * Calls every operation of torture.x by libtirpc and checks each answer.
 */
#include "torture.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes in a large result. */
enum { MANY = 1048573 };

/* Bytes that headers may take of a message, and padding. */
enum { HEADERS = 71 };

static CLIENT *client;

/* ---- Equality: two values are equal if they encode to the same bytes ---- */

struct encoding {
	u_int length;
	char *bytes;
};

static struct encoding
encode(xdrproc_t routine, void *value)
{
	struct encoding encoding = { xdr_sizeof(routine, value), NULL };
	XDR stream;

	encoding.bytes = malloc(encoding.length + 1);
	REQUIRE(encoding.bytes != NULL);
	xdrmem_create(&stream, encoding.bytes, encoding.length, XDR_ENCODE);
	REQUIRE(routine(&stream, value));
	return encoding;
}

static int
equal(xdrproc_t routine, void *left, void *right)
{
	struct encoding a = encode(routine, left);
	struct encoding b = encode(routine, right);
	int same = a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;

	free(a.bytes);
	free(b.bytes);
	return same;
}

/* Sends `value` to the echo procedure of its type and requires the same back. */
#define CHECK_ECHO(type, routine, name, ...) \
	do { \
		type value = __VA_ARGS__; \
		type *answer = name##_1(value, client); \
		REQUIRE(answer != NULL); \
		REQUIRE(equal((xdrproc_t)routine, &value, answer)); \
		xdr_free((xdrproc_t)routine, (char *)answer); \
	} while (0)

/* A counted array of any type, as rpcgen lays it out. */
#define COUNTED(element, ...) \
	{ sizeof((element[]) { __VA_ARGS__ }) / sizeof(element), (element[]) { __VA_ARGS__ } }

/* ---- Values ---- */

#define HERE { 1, -2 }
#define DIAGONAL { { 0, 0 }, { 2147483647, -2147483647 - 1 } }
#define A_DRAWING { \
		.first = DIAGONAL, \
		.title = "a drawing", \
		.second = { HERE, HERE }, \
		.ink = VIOLET, \
		.pixels = COUNTED(char, 1, 2, 3, 4, 5), \
		.created = -9000000000000000000LL, \
	}

static const point here = HERE;
static const line diagonal = DIAGONAL;
static const drawing a_drawing = A_DRAWING;

static const scalars some_scalars = {
	.an_int = -2,
	.an_uint = 4000000000u,
	.a_hyper = -5000000000LL,
	.a_bool = TRUE,
	.an_uhyper = 18446744073709551615ULL,
	.a_float = -0.5f,
	.a_double = 1e300,
};

static const small_scalars some_small_scalars = {
	-128, 255, -32768, 65535, -2147483647L - 1, 4294967295UL, 7, 8
};

static const fixed_opaques some_fixed_opaques = { "1", "22", "333", "4444", "55555" };

static const counted_opaques some_counted_opaques = {
	.up_to_one = { 0, NULL },
	.up_to_two = COUNTED(char, 1, 2),
	.up_to_three = COUNTED(char, 1, 2, 3),
	.up_to_four = COUNTED(char, 1),
	.up_to_five = COUNTED(char, 1, 2, 3, 4, 5),
	.any_length = COUNTED(char, -1, -2, -3, -4, -5, -6, -7),
};

static const strings some_strings = {
	"not \377 UTF-8", "333", "", "five!", "sixteen bytes..."
};

static const fixed_arrays some_fixed_arrays = {
	.ints = { 1, -2, 3 },
	.uints = { 0, 4294967295u },
	.hypers = { -1, 1 },
	.uhypers = { 1, 1ULL << 63 },
	.floats = { 0, 1.5f, -1.5f },
	.doubles = { 0, -0.0 },
	.bools = { TRUE, FALSE, TRUE, TRUE, FALSE },
	.colors = { RED, BLUE, VIOLET },
	.shorts = { -1, 0, 1 },
	.texts = { "", "text" },
	.points = { HERE, { 0, 0 }, HERE },
	.digests = { "0123456789abcdef", "fedcba9876543210" },
	.blobs = { { 0, NULL }, COUNTED(char, 9) },
};

static const counted_arrays some_counted_arrays = {
	.ints = COUNTED(int, 1, 2, 3, 4, 5),
	.uints = COUNTED(u_int, 1, 2, 3, 4),
	.hypers = COUNTED(quad_t, -1),
	.uhypers = COUNTED(u_quad_t, 1, 2, 3),
	.floats = COUNTED(float, 1, 2),
	.doubles = COUNTED(double, 1, 2),
	.bools = COUNTED(bool_t, TRUE, FALSE),
	.colors = COUNTED(color, GREEN),
	.shorts = COUNTED(short, -3, 3),
	.texts = COUNTED(text, "one", "", "three"),
	.labels = COUNTED(label, "label"),
	.points = COUNTED(point, { 1, 2 }, { 3, 4 }),
	.drawings = COUNTED(drawing, A_DRAWING),
	.digests = { 0, NULL },
	.blobs = COUNTED(blob, { 0, NULL }, { 1, "x" }),
};

static const optionals some_optionals = {
	.maybe_int = &(int) { 7 },
	.maybe_hyper = &(quad_t) { 1LL << 40 },
	.maybe_text = &(text) { "words" },
	.maybe_point = &(point) { 5, 6 },
};

static node third = { 3, "three", NULL };
static node second = { 2, "", &third };
static node first = { 1, "one", &second };

static tree left_leaf = { 1, NULL, NULL };
static tree right_branch = { 3, &left_leaf, NULL };
static tree root = { 2, &left_leaf, &right_branch };

/* ---- Checks ---- */

static void
check_scalars(void)
{
	CHECK_ECHO(int, xdr_int, echo_int, -2147483647 - 1);
	CHECK_ECHO(u_int, xdr_u_int, echo_uint, 4294967295u);
	CHECK_ECHO(quad_t, xdr_quad_t, echo_hyper, -9223372036854775807LL - 1);
	CHECK_ECHO(u_quad_t, xdr_u_quad_t, echo_uhyper, ~0ULL);
	CHECK_ECHO(float, xdr_float, echo_float, 3.25f);
	CHECK_ECHO(double, xdr_double, echo_double, -1e-300);
	CHECK_ECHO(bool_t, xdr_bool, echo_bool, TRUE);
	CHECK_ECHO(bool_t, xdr_bool, echo_bool, FALSE);
	CHECK_ECHO(char *, xdr_wrapstring, echo_string, "a \001 string");
	CHECK_ECHO(short, xdr_short, echo_short, -32768);
	CHECK_ECHO(u_char, xdr_u_char, echo_uchar, 255);
	CHECK_ECHO(temperature, xdr_temperature, echo_temperature, COLDEST);
	CHECK_ECHO(scalars, xdr_scalars, echo_scalars, some_scalars);
	CHECK_ECHO(small_scalars, xdr_small_scalars, echo_small_scalars, some_small_scalars);
}

static void
check_bytes_and_arrays(void)
{
	CHECK_ECHO(fixed_opaques, xdr_fixed_opaques, echo_fixed_opaques, some_fixed_opaques);
	CHECK_ECHO(counted_opaques, xdr_counted_opaques, echo_counted_opaques, some_counted_opaques);
	CHECK_ECHO(strings, xdr_strings, echo_strings, some_strings);
	CHECK_ECHO(drawing, xdr_drawing, echo_drawing, a_drawing);
	CHECK_ECHO(holes, xdr_holes, echo_holes, { TRUE, -1, -1, 0.1, -1 });
	CHECK_ECHO(fixed_arrays, xdr_fixed_arrays, echo_fixed_arrays, some_fixed_arrays);
	CHECK_ECHO(counted_arrays, xdr_counted_arrays, echo_counted_arrays, some_counted_arrays);
	CHECK_ECHO(small_arrays, xdr_small_arrays, echo_small_arrays, {
		.chars = { -1, 0, 1 },
		.chars_counted = COUNTED(char, -128, 127),
		.shorts = { -1, 1 },
		.ushorts = COUNTED(u_short, 65535),
		.longs = COUNTED(long, -1, 2147483647),
		.ulongs = { 4294967295UL, 0 },
	});
	CHECK_ECHO(ragged, xdr_ragged, echo_ragged,
	    COUNTED(list_of_ints, { 0, NULL }, COUNTED(int, 1, 2, 3)));
	CHECK_ECHO(blob, xdr_blob, echo_blob, COUNTED(char, 1, 2, 3));
	CHECK_ECHO(words, xdr_words, echo_words, COUNTED(text, "some", "words"));
}

static void
check_unions(void)
{
	static by_int six = { .selector = 6, .by_int_u.three = { 1, 2, 3 } };

	CHECK_ECHO(shade, xdr_shade, echo_shade, { .value = RED, .shade_u.red = -7 });
	CHECK_ECHO(shade, xdr_shade, echo_shade, { .value = GREEN, .shade_u.green = "green" });
	CHECK_ECHO(shade, xdr_shade, echo_shade, { .value = BLUE, .shade_u.blue = here });
	CHECK_ECHO(shade, xdr_shade, echo_shade, { .value = VIOLET });
	CHECK_ECHO(weather, xdr_weather, echo_weather, { .degrees = COLD, .weather_u.clothing = "coat" });
	CHECK_ECHO(weather, xdr_weather, echo_weather, { .degrees = WARM, .weather_u.since = 1LL << 50 });
	CHECK_ECHO(weather, xdr_weather, echo_weather, { .degrees = COLDEST });
	CHECK_ECHO(weather, xdr_weather, echo_weather, { .degrees = ZERO, .weather_u.otherwise = 0.5 });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = -1, .by_int_u.minus_one = 4294967295u });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = 3, .by_int_u.fixed = "abc" });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = 4, .by_int_u.counted = { 6, "abcdef" } });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = 5, .by_int_u.name = "name" });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, six);
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = 7, .by_int_u.many = COUNTED(int, 1, 2) });
	CHECK_ECHO(by_int, xdr_by_int, echo_by_int, { .selector = 1000 });
	CHECK_ECHO(by_uint, xdr_by_uint, echo_by_uint, { .selector = 2, .by_uint_u.one_or_two = diagonal });
	CHECK_ECHO(by_uint, xdr_by_uint, echo_by_uint, { .selector = 4000000000u, .by_uint_u.large = TRUE });
	CHECK_ECHO(by_bool, xdr_by_bool, echo_by_bool, { .present = FALSE });
	CHECK_ECHO(by_bool, xdr_by_bool, echo_by_bool, { .present = TRUE, .by_bool_u.picture = a_drawing });
	CHECK_ECHO(nested_union, xdr_nested_union, echo_nested_union,
	    { .first = RED, .nested_union_u.inner = { .value = BLUE, .shade_u.blue = here } });
	CHECK_ECHO(nested_union, xdr_nested_union, echo_nested_union,
	    { .first = GREEN, .nested_union_u.optional_inner = &six });
	CHECK_ECHO(nested_union, xdr_nested_union, echo_nested_union, { .first = GREEN });
	CHECK_ECHO(nested_union, xdr_nested_union, echo_nested_union, { .first = BLUE });
}

static void
check_optionals_and_recursion(void)
{
	expression one = { "one", { .kind = LITERAL, .expression_body_u.literal = 1 } };
	expression sum = { "sum", { .kind = BINARY, .expression_body_u.operation = { '+', &one, &one } } };
	directory entries[2] = { { "a" }, { "b" } };

	CHECK_ECHO(optionals, xdr_optionals, echo_optionals, { NULL });
	CHECK_ECHO(optionals, xdr_optionals, echo_optionals, some_optionals);
	CHECK_ECHO(node_list, xdr_node_list, echo_node_list, NULL);
	CHECK_ECHO(node_list, xdr_node_list, echo_node_list, &first);
	CHECK_ECHO(two_lists, xdr_two_lists, echo_two_lists, { NULL, 5, &second });
	CHECK_ECHO(group, xdr_group, echo_group, { "outer", &first, &(group) { "inner", NULL, NULL } });
	CHECK_ECHO(tree, xdr_tree, echo_tree, root);
	CHECK_ECHO(directory, xdr_directory, echo_directory, { "top", { 2, entries } });
	CHECK_ECHO(expression, xdr_expression, echo_expression, sum);
}

static void
check_everything(void)
{
	CHECK_ECHO(everything, xdr_everything, echo_everything, {
		.all_scalars = some_scalars,
		.all_small_scalars = some_small_scalars,
		.all_fixed_opaques = some_fixed_opaques,
		.all_counted_opaques = some_counted_opaques,
		.all_strings = some_strings,
		.all_fixed_arrays = some_fixed_arrays,
		.all_counted_arrays = some_counted_arrays,
		.a_shade = { .value = VIOLET },
		.a_weather = { .degrees = HOTTEST, .weather_u.otherwise = 1 },
		.all_optionals = some_optionals,
		.lists = { &first, 0, NULL },
		.a_tree = &root,
	});
}

static void
check_arguments(void)
{
	int *number = answer_1(client);
	REQUIRE(number != NULL && *number == 42);
	REQUIRE(swallow_1(1, client) != NULL);
	number = add_1(40, -50, client);
	REQUIRE(number != NULL && *number == -10);

	blob pixels = COUNTED(char, 7, 8, 9);
	drawing expected = { diagonal, "title", diagonal, BLUE, pixels, 0 };
	drawing *assembled = assemble_1("title", pixels, BLUE, diagonal, client);
	REQUIRE(assembled != NULL);
	REQUIRE(equal((xdrproc_t)xdr_drawing, &expected, assembled));
}

static void
check_large_result(u_int count)
{
	blob *bytes = produce_1(count, client);
	REQUIRE(bytes != NULL);
	REQUIRE(bytes->blob_len == count);
	for (u_int i = 0; i < count; i++)
		REQUIRE((u_char)bytes->blob_val[i] == i % 251);
}

/* A version that the server lacks is refused, and the refusal names the lowest and highest. */
static void
check_version_mismatch(void)
{
	rpcvers_t version = 2;
	struct rpc_err error;

	REQUIRE(clnt_control(client, CLSET_VERS, (char *)&version));
	REQUIRE(torture_null_1(client) == NULL);
	clnt_geterr(client, &error);
	REQUIRE(error.re_status == RPC_PROGVERSMISMATCH);
	REQUIRE(error.re_vers.low == TORTURE_VERSION);
	REQUIRE(error.re_vers.high == TORTURE_VERSION_THREE);

	version = TORTURE_VERSION_THREE;
	REQUIRE(clnt_control(client, CLSET_VERS, (char *)&version));
	int *number = answer_three_3(client);
	REQUIRE(number != NULL && *number == 42);
	version = TORTURE_VERSION;
	REQUIRE(clnt_control(client, CLSET_VERS, (char *)&version));
}

/* A procedure that the server lacks is refused, and the connection goes on. */
static void
check_unknown_procedure(void)
{
	struct timeval patience = { 10, 0 };
	enum clnt_stat status = clnt_call(client, 9999, (xdrproc_t)xdr_void, NULL,
	    (xdrproc_t)xdr_void, NULL, patience);
	REQUIRE(status == RPC_PROCUNAVAIL);
}

/* AUTH_SYS is accepted. */
static void
check_auth_sys(void)
{
	AUTH *before = client->cl_auth;
	client->cl_auth = authunix_create("peer", 1000, 1000, 3, (gid_t[]) { 1, 2, 3 });
	REQUIRE(torture_null_1(client) != NULL);
	auth_destroy(client->cl_auth);
	client->cl_auth = before;
}

int
main(int argc, char **argv)
{
	client = connect_to(argc, argv, TORTURE_PROGRAM, TORTURE_VERSION);
	REQUIRE(torture_null_1(client) != NULL);
	check_scalars();
	check_bytes_and_arrays();
	check_unions();
	check_optionals_and_recursion();
	check_everything();
	check_arguments();
	check_large_result(0);
	size_t fit = message_max(argv) - HEADERS;
	check_large_result(fit < MANY ? fit : MANY);
	check_version_mismatch();
	check_unknown_procedure();
	check_auth_sys();
	REQUIRE(torture_null_1(client) != NULL);
	puts("torture: every answer is right");
	clnt_destroy(client);
	return 0;
}
