/*
 * Decodes and encodes again, by the functions of stubs for tenon.h, of one interface.
 *
 * Requests and answers are those of xdrdump.c, but for the name of a type, which says first how its bytes lie:
 * "x:" is XDR, "l:" lean in this machine's order, "s:" lean in the other one; what is answered has this machine's
 * order. With a capital letter no prefix of the bytes may decode. Whatever is decoded is freed, and then no
 * more memory may be in use than before.
 *
 * STUB_TYPES holds one TYPE(name) per type; INTERFACE_H is the header. With STUB_INTERFACE, a version of a
 * program, "(NAME" are the arguments of a procedure and ")NAME" is its result.
 */
#include INTERFACE_H
#include "no_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the address sanitizer, whose headers not every compiler has. */
size_t __sanitizer_get_current_allocated_bytes(void);

enum status { DONE = 0, UNDECODED = 1, UNENCODED = 2, UNKNOWN = 3, WRONG = 4 };

/* No request of a test is larger. */
enum { BYTES_MAX = 64 << 20, DEPTH_MAX = 128 };

struct type {
	const char *name;
	const tenon_message *message;
};

static const struct type types[] = {
#define TYPE(name) { #name, &name##_message },
#include STUB_TYPES
#undef TYPE
	{ NULL, NULL }
};

static const tenon_message *
find_message(const char *name)
{
#ifdef STUB_INTERFACE
	size_t at;

	for (at = 0; at < STUB_INTERFACE.procedure_count; at++) {
		const tenon_procedure *procedure = &STUB_INTERFACE.procedures[at];

		if (strcmp(procedure->name, name + 1) == 0)
			return *name == '(' ? procedure->arguments : procedure->result;
	}
#else
	(void)name;
#endif
	return NULL;
}

static const tenon_message *
find_type(const char *name)
{
	const struct type *type = types;

	if (*name == '(' || *name == ')')
		return find_message(name);
	while (type->name != NULL && strcmp(type->name, name) != 0)
		type++;
	return type->message;
}

static void
give_up(const char *why)
{
	fprintf(stderr, "stub_codec: %s\n", why);
	exit(1);
}

static uint32_t
read_number(void)
{
	unsigned char at[4];

	if (fread(at, 1, 4, stdin) != 4)
		exit(0);
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void
write_number(uint32_t number)
{
	unsigned char at[4] = { number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255 };

	fwrite(at, 1, 4, stdout);
}

static char *
read_bytes(uint32_t *length)
{
	char *bytes;

	*length = read_number();
	if (*length > BYTES_MAX)
		give_up("a request is too long");
	bytes = malloc(*length + 1);
	if (bytes == NULL || fread(bytes, 1, *length, stdin) != *length)
		give_up("a request is cut off");
	bytes[*length] = 0;
	return bytes;
}

static void
answer(enum status status, size_t consumed, const void *bytes, size_t length)
{
	write_number(status);
	write_number((uint32_t)consumed);
	write_number((uint32_t)length);
	fwrite(bytes, 1, length, stdout);
	fflush(stdout);
}

/* Always moves what was written, and never gives more than what was asked for. */
static bool
grow(tenon_encoder *out, size_t room)
{
	size_t there = (size_t)(out->at - out->base);
	unsigned char *memory = malloc(there + room + 1);

	if (memory == NULL)
		return false;
	memcpy(memory + 1, out->base, there);
	free(out->base - 1);
	out->base = memory + 1;
	out->at = out->base + there;
	out->end = out->at + room;
	return true;
}

/* Decodes bytes behind which there is nothing, at an odd address. The value is there to be freed whatever comes out. */
static bool
decode(const tenon_message *message, char form, const char *bytes, size_t length, void *value, tenon_failure *failure,
       size_t *consumed)
{
	tenon_decoder decoder, *in = &decoder;
	unsigned char *copy = malloc(length + 1);
	bool done;

	memset(value, 0, message->size);
	memset(in, 0, sizeof *in);
	memcpy(copy + 1, bytes, length);
	in->base = in->at = copy + 1;
	in->end = in->base + length;
	in->payable = 64 * length + 65536;
	in->depth_left = DEPTH_MAX;
	in->swapped = form == 's';
	done = (form == 'x' ? message->decode_xdr : message->decode_lean)(in, value);
	if (in->payable > 64 * length + 65536 || in->at > in->end)
		give_up("a decoder goes over its limits");
	if (done && in->depth_left != DEPTH_MAX)
		give_up("a decoder does not come up again");
	*failure = in->failure;
	*consumed = (size_t)(in->at - in->base);
	free(copy);
	return done;
}

static void
forget(const tenon_message *message, void *value)
{
	if (message->free != NULL)
		message->free(value);
}

/* Whether a part of the bytes decodes that is not all of them. */
static bool
prefix_decodes(const tenon_message *message, char form, const char *bytes, size_t length, void *value)
{
	tenon_failure failure;
	size_t part, consumed;

	for (part = 0; part < length; part++) {
		bool done = decode(message, form, bytes, part, value, &failure, &consumed);

		forget(message, value);
		if (done || failure.kind == TENON_FINE || failure.field == NULL || failure.offset > part)
			return true;
	}
	return false;
}

static void
encode(const tenon_message *message, char form, const void *value, size_t consumed)
{
	unsigned char *first = malloc(1);
	tenon_encoder out;

	memset(&out, 0, sizeof out);
	out.base = out.at = out.end = first + 1;
	out.grow = grow;
	out.depth_left = DEPTH_MAX;
	if ((form == 'x' ? message->encode_xdr : message->encode_lean)(&out, value))
		answer(DONE, consumed, out.base, (size_t)(out.at - out.base));
	else
		answer(UNENCODED, consumed, "", 0);
	free(out.base - 1);
}

static void
recode(const tenon_message *message, char form, bool is_cut, const char *bytes, size_t length)
{
	void *value = malloc(message->size);
	size_t before = __sanitizer_get_current_allocated_bytes(), consumed;
	tenon_failure failure;
	char why[32];

	if (is_cut && prefix_decodes(message, form, bytes, length, value)) {
		answer(WRONG, 0, "", 0);
	} else if (decode(message, form, bytes, length, value, &failure, &consumed)) {
		encode(message, form, value, consumed);
		forget(message, value);
	} else {
		forget(message, value);
		snprintf(why, sizeof why, "%d", (int)failure.kind);
		answer(UNDECODED, failure.offset, why, strlen(why));
	}
	if (__sanitizer_get_current_allocated_bytes() != before)
		give_up("memory is lost");
	free(value);
}

int
main(void)
{
	/* What stdio takes for itself is none of our business. */
	static char input[65536], output[65536];

	setvbuf(stdin, input, _IOFBF, sizeof input);
	setvbuf(stdout, output, _IOFBF, sizeof output);
	for (;;) {
		uint32_t name_length, length;
		char *name = read_bytes(&name_length), *bytes = read_bytes(&length);
		const tenon_message *message = name_length > 2 ? find_type(name + 2) : NULL;
		bool is_cut = *name >= 'A' && *name <= 'Z';

		if (message == NULL)
			answer(UNKNOWN, 0, "", 0);
		else
			recode(message, is_cut ? *name - 'A' + 'a' : *name, is_cut, bytes, length);
		free(name);
		free(bytes);
	}
}
