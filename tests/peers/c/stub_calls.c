/*
 * Calls every procedure of parameters.x through its stubs, back into its handlers: tenon_call and tenon_server_add are
 * those below, which move messages in either representation without a library.
 */
#include "parameters.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef NDEBUG
#include <assert.h>

/* What was added to the server. */
static const tenon_interface *served;
static const tenon_handler *handlers;
static const void *methods;
static void *given;

/* How often there were no arguments for a procedure that has some. */
static int null_arguments;

/* Which representation messages have. */
static bool is_lean;

struct tenon_request {
	bool is_refused;
};

bool
tenon_server_add(tenon_server *server, const tenon_interface *interface, const tenon_handler *of, const void *table,
		 void *context, tenon_order order, tenon_error *error)
{
	tenon_handler *copy;

	(void)server, (void)order, (void)error;
	/* As the library does it. */
	if (of == NULL)
		return false;
	copy = malloc(interface->procedure_count * sizeof *copy);
	memcpy(copy, of, interface->procedure_count * sizeof *copy);
	served = interface;
	handlers = copy;
	methods = table;
	given = context;
	return true;
}

bool
tenon_refuse(tenon_request *request, tenon_refusal why, const char *words)
{
	(void)why, (void)words;
	request->is_refused = true;
	return false;
}

static bool
grow(tenon_encoder *out, size_t room)
{
	size_t there = (size_t)(out->at - out->base);

	out->base = realloc(out->base, there + room + 64);
	out->at = out->base + there;
	out->end = out->at + room + 64;
	return true;
}

/* Moves a value through a message. */
static void
move(const tenon_message *message, const void *from, void *to)
{
	unsigned char *first = malloc(1);
	tenon_encoder out = { 0 };
	tenon_decoder in = { 0 };

	out.base = out.at = out.end = first;
	out.grow = grow;
	out.depth_left = in.depth_left = 128;
	assert((is_lean ? message->encode_lean : message->encode_xdr)(&out, from));
	in.base = in.at = out.base;
	in.end = out.at;
	in.payable = 65536;
	memset(to, 0, message->size);
	assert((is_lean ? message->decode_lean : message->decode_xdr)(&in, to));
	assert(in.at == in.end);
	free(out.base);
}

static void
clear(const tenon_message *message, void *value)
{
	if (message->free != NULL)
		message->free(value);
	free(value);
}

bool
tenon_call(tenon_channel *channel, const tenon_procedure *procedure, const void *arguments, void *result,
	   tenon_error *error)
{
	size_t at = (size_t)(procedure - served->procedures);
	tenon_request request = { false };
	void *in = NULL, *out = NULL;
	bool done;

	(void)channel, (void)error;
	assert(at < served->procedure_count);
	assert((procedure->result == NULL) == (result == NULL));
	/* As the library does it. */
	if (procedure->arguments != NULL && arguments == NULL) {
		null_arguments++;
		return false;
	}
	if (handlers[at] == NULL)
		return false;
	if (procedure->arguments != NULL) {
		in = malloc(procedure->arguments->size);
		move(procedure->arguments, arguments, in);
	}
	if (procedure->result != NULL)
		out = calloc(1, procedure->result->size);
	done = handlers[at](methods, given, in, out, &request);
	assert(done != request.is_refused);
	if (procedure->result != NULL) {
		if (done)
			move(procedure->result, out, result);
		clear(procedure->result, out);
	}
	if (procedure->arguments != NULL)
		clear(procedure->arguments, in);
	return done;
}

/* The last call that was started is the one that is finished. */
tenon_pending *
tenon_start(tenon_channel *channel, const tenon_procedure *procedure, const void *arguments, tenon_error *error)
{
	int *result = calloc(1, sizeof *result);

	if (tenon_call(channel, procedure, arguments, result, error))
		return (tenon_pending *)result;
	free(result);
	return NULL;
}

bool
tenon_ping(tenon_channel *channel, tenon_error *error)
{
	(void)channel, (void)error;
	return true;
}

static char *
copied(const char *text)
{
	return strcpy(malloc(strlen(text) + 1), text);
}

/* -- the handlers: each is handed 7 as its context -- */

#define CHECKED(context) assert(*(int *)(context) == 7)

static bool
scalars(void *context, int32_t a, uint64_t b, int16_t c, bool d, color e, real f, int64_t *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	*result = a + (int64_t)b + c + d + e + (int64_t)f;
	return true;
}

static bool
scalar(void *context, int32_t arg1, int32_t *result, tenon_request *request)
{
	CHECKED(context);
	*result = arg1 + 1;
	return arg1 >= 0 || tenon_refuse(request, TENON_RAISED, "it is negative");
}

static bool
texts(void *context, char *one, char *two, name *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	*result = malloc(strlen(one) + strlen(two) + 1);
	strcat(strcpy(*result, one), two);
	return true;
}

static bool
text(void *context, char *arg1, char **result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	*result = copied(arg1);
	return true;
}

static bool
structure(void *context, point *arg1, point *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	result->x = arg1->y;
	result->y = arg1->x;
	return true;
}

static bool
vector(void *context, digest arg1, digest *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	for (int i = 0; i < 16; i++)
		(*result)[i] = (uint8_t)~arg1[i];
	return true;
}

static bool
vectors(void *context, digest sum, matrix m, matrix *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	for (int i = 0; i < 6; i++)
		(*result)[i / 3][i % 3] = m[i / 3][i % 3] + sum[i];
	return true;
}

static bool
counted(void *context, numbers *arg1, numbers *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	/* Takes what the arguments own. */
	*result = *arg1;
	arg1->numbers_val = NULL;
	return true;
}

static bool
pointer(void *context, point *arg1, maybe_point *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	if (arg1 == NULL)
		return true;
	*result = malloc(sizeof **result);
	**result = *arg1;
	return true;
}

static bool
pointers(void *context, point *p, int32_t *n, int32_t **result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	assert((p == NULL) == (n == NULL));
	if (p == NULL)
		return true;
	*result = malloc(sizeof **result);
	**result = p->x + p->y + *n;
	return true;
}

static bool
unnamed(void *context, uint32_t x_len, int32_t *x_val, uint32_t y_len, uint8_t *y_val, uint8_t z[4], int32_t w[2],
	int32_t *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	for (uint32_t i = 0; i < x_len; i++)
		*result += x_val[i];
	for (uint32_t i = 0; i < y_len; i++)
		*result += y_val[i];
	*result += z[0] + z[3] + w[1];
	return true;
}

static bool
one_unnamed(void *context, uint32_t x_len, uint8_t *x_val, int32_t *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	*result = (int32_t)x_len * 10 + (x_len > 0 ? x_val[0] : 0);
	return true;
}

static bool
unnamed_result(void *context, int32_t count, unnamed_result_1_result *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	result->unnamed_result_1_result_len = (uint32_t)count;
	result->unnamed_result_1_result_val = calloc((size_t)count, 4);
	for (int i = 0; i < count; i++)
		result->unnamed_result_1_result_val[i] = i;
	return true;
}

static bool
list(void *context, node *arg1, node *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	result->value = arg1->value;
	result->next = arg1->next;
	arg1->next = NULL;
	return true;
}

static bool
lists(void *context, node *one, node *two, node **result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	for (; one != NULL; one = one->next)
		two->value += one->value;
	*result = two->next;
	two->next = NULL;
	if (*result != NULL)
		(*result)->value = two->value;
	return true;
}

static bool
unite(void *context, shade *arg1, shade *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	result->kind = arg1->kind == RED ? GREEN : RED;
	if (result->kind == RED)
		result->shade_u.red = copied("was green");
	return true;
}

static bool
directions(void *context, uint32_t count, point *where, DIRECTIONS_result *result, tenon_request *request)
{
	(void)request;
	CHECKED(context);
	result->result = true;
	result->them.numbers_len = count;
	result->them.numbers_val = calloc(count, 4);
	result->where.x = where->x + 1;
	result->where.y = where->y + 1;
	return true;
}

static bool
swallow(void *context, color arg1, tenon_request *request)
{
	CHECKED(context);
	return arg1 == GREEN || tenon_refuse(request, TENON_FORBIDDEN, NULL);
}

static bool
names(void *context, int32_t channel_, int32_t result_, point *point_, int32_t error_, point *it_, int32_t *result,
      tenon_request *request)
{
	(void)request;
	CHECKED(context);
	*result = channel_ + 10 * result_ + 100 * point_->x + 1000 * error_ + 10000 * it_->y;
	return true;
}

static const parameters_1_service service = {
	.scalars_1 = scalars,
	.scalar_1 = scalar,
	.texts_1 = texts,
	.text_1 = text,
	.struct_1 = structure,
	.vector_1 = vector,
	.vectors_1 = vectors,
	.counted_1 = counted,
	.pointer_1 = pointer,
	.pointers_1 = pointers,
	.unnamed_1 = unnamed,
	.one_unnamed_1 = one_unnamed,
	.unnamed_result_1 = unnamed_result,
	.list_1 = list,
	.lists_1 = lists,
	.union_1 = unite,
	.directions_1 = directions,
	.swallow_1 = swallow,
	.names_1 = names,
};

/* -- the calls -- */

/* Of what a stub would have to copy from there, NULL is refused where the library refuses it. */
static void
call_with_null(void)
{
	digest sum = { 0 };
	matrix m = { { 0 } }, turned;
	int32_t w[2] = { 0 }, x[1] = { 0 }, number, *maybe;
	uint8_t z[4] = { 0 };
	DIRECTIONS_result back;
	const point there = { 1, 2 };
	point place;
	node *rest;

	null_arguments = 0;
	assert(!vectors_1(NULL, NULL, m, &turned, NULL));
	assert(!vectors_1(NULL, sum, NULL, &turned, NULL));
	assert(!unnamed_1(NULL, 1, x, 0, NULL, NULL, w, &number, NULL));
	assert(!unnamed_1(NULL, 1, x, 0, NULL, z, NULL, &number, NULL));
	assert(!directions_1(NULL, 3, NULL, &back, NULL));
	assert(!lists_1(NULL, NULL, NULL, &rest, NULL));
	assert(!names_1(NULL, 1, 2, &there, 3, NULL, &number, NULL));
	assert(names_1_start(NULL, 1, 2, NULL, 3, &there, NULL) == NULL);
	assert(!struct_1(NULL, NULL, &place, NULL));
	assert(null_arguments == 9);
	/* What may be NULL. */
	assert(pointers_1(NULL, NULL, NULL, &maybe, NULL) && maybe == NULL);
	assert(null_arguments == 9);
}

static void
call_with_values(void)
{
	const point there = { 3, -4 };
	const point *none = NULL;
	int64_t sum;
	int32_t number, *maybe;
	maybe_point found;
	point turned;
	char *said;
	name joined;

	assert(nothing_1(NULL, NULL));
	assert(scalars_1(NULL, -1, 20, -300, true, GREEN, 4000.5, &sum, NULL) && sum == 3718);
	assert(scalar_1(NULL, 4, &number, NULL) && number == 5);
	assert(!scalar_1(NULL, -4, &number, NULL));
	assert(!absent_1(NULL, 4, &number, NULL));
	assert(texts_1(NULL, "one", "two", &joined, NULL) && strcmp(joined, "onetwo") == 0);
	free(joined);
	assert(text_1(NULL, "", &said, NULL) && *said == 0);
	free(said);
	assert(text_1(NULL, NULL, &said, NULL) && *said == 0);
	free(said);
	assert(struct_1(NULL, &there, &turned, NULL) && turned.x == -4 && turned.y == 3);
	assert(pointer_1(NULL, &there, &found, NULL) && found->x == 3 && found->y == -4);
	free(found);
	assert(pointer_1(NULL, none, &found, NULL) && found == NULL);
	number = 9;
	assert(pointers_1(NULL, &there, &number, &maybe, NULL) && *maybe == 8);
	free(maybe);
	assert(pointers_1(NULL, none, NULL, &maybe, NULL) && maybe == NULL);
	assert(swallow_1(NULL, GREEN, NULL) && !swallow_1(NULL, RED, NULL));
	assert(names_1(NULL, 1, 2, &there, 4, &(point){ 0, 5 }, &number, NULL) && number == 54321);
}

static void
call_with_arrays(void)
{
	const int32_t some[] = { 1, 2, 3 };
	const uint8_t bytes[] = { 10, 20 }, four[4] = { 100, 0, 0, 101 };
	numbers them = { 3, (int32_t *)some }, same;
	digest sum = { 0, 1, 2, 3, 4, 5 }, reversed;
	matrix m = { { 1, 1, 1 }, { 2, 2, 2 } }, added;
	unnamed_result_1_result listed;
	DIRECTIONS_result went;
	int32_t number, *started;

	assert(vector_1(NULL, sum, &reversed, NULL) && reversed[5] == 250 && reversed[15] == 255);
	assert(vectors_1(NULL, sum, (const row *)m, &added, NULL) && added[0][2] == 3 && added[1][2] == 7);
	assert(counted_1(NULL, &them, &same, NULL) && same.numbers_len == 3 && same.numbers_val[2] == 3);
	numbers_message.free(&same);
	assert(unnamed_1(NULL, 3, some, 2, bytes, four, some, &number, NULL) && number == 6 + 30 + 201 + 2);
	assert(unnamed_1(NULL, 0, NULL, 0, NULL, four, some, &number, NULL) && number == 203);
	assert(one_unnamed_1(NULL, 2, bytes, &number, NULL) && number == 30);
	assert(unnamed_result_1(NULL, 5, &listed, NULL) && listed.unnamed_result_1_result_val[4] == 4);
	free(listed.unnamed_result_1_result_val);
	assert(directions_1(NULL, 2, &(point){ 5, 6 }, &went, NULL));
	assert(went.result && went.them.numbers_len == 2 && went.where.x == 6 && went.where.y == 7);
	DIRECTIONS_result_message.free(&went);
	started = (int32_t *)unnamed_1_start(NULL, 1, some, 0, NULL, four, some, NULL);
	assert(*started == 204);
	free(started);
}

static void
call_with_lists(void)
{
	node third = { 3, NULL }, second = { 2, &third }, first = { 1, &second }, list, *rest;
	shade red = { .kind = RED }, green;

	assert(list_1(NULL, &first, &list, NULL));
	assert(list.value == 1 && list.next->value == 2 && list.next->next->value == 3 && list.next->next->next == NULL);
	node_message.free(&list);
	assert(lists_1(NULL, &second, &first, &rest, NULL));
	assert(rest->value == 1 + 2 + 3 && rest->next->value == 3 && rest->next->next == NULL);
	node_message.free(rest);
	free(rest);
	assert(lists_1(NULL, NULL, &third, &rest, NULL) && rest == NULL);
	red.shade_u.red = copied("really");
	assert(union_1(NULL, &red, &green, NULL) && green.kind == GREEN);
	shade_message.free(&red);
	assert(union_1(NULL, &green, &red, NULL) && red.kind == RED && strcmp(red.shade_u.red, "was green") == 0);
	shade_message.free(&red);
}

/* -- what an encoder refuses -- */

/* Encodes a value that cannot be sent, and says what is wrong with it. */
static tenon_failure
refused(const tenon_message *message, const void *value)
{
	tenon_encoder out = { 0 };

	out.base = out.at = out.end = malloc(1);
	out.grow = grow;
	out.depth_left = 128;
	assert(!(is_lean ? message->encode_lean : message->encode_xdr)(&out, value));
	free(out.base);
	return out.failure;
}

static void
encode_nonsense(void)
{
	static tree levels[129];
	char one[] = "one", long_one[] = "much too long";
	name names[3] = { one, long_one, one };
	uint8_t bytes[] = { 1, 2, 3, 4 };
	limits value = { { 0, NULL }, { 0, NULL }, RED, { 0, NULL } };
	tenon_failure failure;
	shade other = { .kind = (color)3 };

	value.names.names_len = 3;
	value.names.names_val = names;
	failure = refused(&limits_message, &value);
	assert(failure.kind == TENON_TOO_LONG && failure.first == 3 && failure.second == 2);
	assert(strcmp(failure.field, "limits.names") == 0);
	value.names.names_len = 2;
	failure = refused(&limits_message, &value);
	assert(failure.kind == TENON_TOO_LONG && failure.first == 13 && failure.second == 8);
	value.names.names_len = 1;
	value.bytes.bytes_len = 4;
	value.bytes.bytes_val = bytes;
	failure = refused(&limits_message, &value);
	assert(failure.kind == TENON_TOO_LONG && strcmp(failure.field, "limits.bytes") == 0);
	value.bytes.bytes_len = 1;
	value.bytes.bytes_val = NULL;
	assert(refused(&limits_message, &value).kind == TENON_NULL);
	value.bytes.bytes_len = 0;
	value.color = (color)7;
	failure = refused(&limits_message, &value);
	assert(failure.kind == TENON_UNKNOWN_VALUE && failure.first == 7 && strcmp(failure.field, "limits.color") == 0);
	value.color = GREEN;
	value.flags.flags_len = UINT32_MAX;
	assert(refused(&limits_message, &value).kind == TENON_NULL);
	assert(refused(&shade_message, &other).kind == TENON_UNKNOWN_VALUE);
	for (int i = 0; i < 128; i++)
		levels[i].below = &levels[i + 1];
	assert(refused(&tree_message, levels).kind == TENON_TOO_DEEP);
}

int
main(void)
{
	int context = 7, round;

	assert(!parameters_1_serve(NULL, NULL, &context, TENON_ANY_ORDER, NULL));
	assert(parameters_1_serve(NULL, &service, &context, TENON_ANY_ORDER, NULL));
	assert(served == &parameters_1_interface && served->program == 0x20000018 && served->version == 1);
	for (size_t i = 1; i < served->procedure_count; i++)
		assert(served->procedures[i - 1].number < served->procedures[i].number);
	for (round = 0; round < 2; round++) {
		is_lean = round == 1;
		call_with_values();
		call_with_null();
		call_with_arrays();
		call_with_lists();
		encode_nonsense();
	}
	free((void *)handlers);
	puts("every answer is right");
	return 0;
}
