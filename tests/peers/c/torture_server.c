/*
 * The operations of torture.x, served by libtirpc: nearly all return their argument.
 */
#include "torture.h"
#include "transport.h"

#include <stdlib.h>

extern void torture_program_1(struct svc_req *, SVCXPRT *);
extern void torture_program_3(struct svc_req *, SVCXPRT *);

/* The result points into the argument, which libtirpc frees only when the reply is sent. */
#define ECHO(type, name) \
	type * \
	name##_1_svc(type value, struct svc_req *request) \
	{ \
		static type result; \
		result = value; \
		return &result; \
	}

ECHO(int, echo_int)
ECHO(u_int, echo_uint)
ECHO(quad_t, echo_hyper)
ECHO(u_quad_t, echo_uhyper)
ECHO(float, echo_float)
ECHO(double, echo_double)
ECHO(bool_t, echo_bool)
ECHO(char *, echo_string)
ECHO(short, echo_short)
ECHO(u_char, echo_uchar)
ECHO(temperature, echo_temperature)
ECHO(scalars, echo_scalars)
ECHO(small_scalars, echo_small_scalars)
ECHO(fixed_opaques, echo_fixed_opaques)
ECHO(counted_opaques, echo_counted_opaques)
ECHO(strings, echo_strings)
ECHO(drawing, echo_drawing)
ECHO(holes, echo_holes)
ECHO(fixed_arrays, echo_fixed_arrays)
ECHO(counted_arrays, echo_counted_arrays)
ECHO(small_arrays, echo_small_arrays)
ECHO(ragged, echo_ragged)
ECHO(blob, echo_blob)
ECHO(words, echo_words)
ECHO(shade, echo_shade)
ECHO(weather, echo_weather)
ECHO(by_int, echo_by_int)
ECHO(by_uint, echo_by_uint)
ECHO(by_bool, echo_by_bool)
ECHO(nested_union, echo_nested_union)
ECHO(optionals, echo_optionals)
ECHO(node_list, echo_node_list)
ECHO(two_lists, echo_two_lists)
ECHO(group, echo_group)
ECHO(tree, echo_tree)
ECHO(directory, echo_directory)
ECHO(expression, echo_expression)
ECHO(everything, echo_everything)

void *
torture_null_1_svc(struct svc_req *request)
{
	static char result;
	return &result;
}

int *
answer_1_svc(struct svc_req *request)
{
	static int result = 42;
	return &result;
}

int *
answer_three_3_svc(struct svc_req *request)
{
	return answer_1_svc(request);
}

void *
swallow_1_svc(int ignored, struct svc_req *request)
{
	return torture_null_1_svc(request);
}

int *
add_1_svc(int left, int right, struct svc_req *request)
{
	static int result;
	result = left + right;
	return &result;
}

drawing *
assemble_1_svc(text title, blob pixels, color ink, line border, struct svc_req *request)
{
	static drawing result;
	result = (drawing) {
		.first = border,
		.title = title,
		.second = border,
		.ink = ink,
		.pixels = pixels,
		.created = 0,
	};
	return &result;
}

blob *
produce_1_svc(u_int count, struct svc_req *request)
{
	static blob result;

	free(result.blob_val);
	result.blob_val = malloc(count + 1);
	REQUIRE(result.blob_val != NULL);
	result.blob_len = count;
	for (u_int i = 0; i < count; i++)
		result.blob_val[i] = i % 251;
	return &result;
}

static void
enlist(SVCXPRT *transport)
{
	REQUIRE(svc_reg(transport, TORTURE_PROGRAM, TORTURE_VERSION, torture_program_1, NULL));
	REQUIRE(svc_reg(transport, TORTURE_PROGRAM, TORTURE_VERSION_THREE, torture_program_3, NULL));
}

int
main(int argc, char **argv)
{
	serve(argc, argv, enlist);
	return 1;
}
