/*
 * The messages of `interfaces/torture.x` in C, as `tenon gen --lang c` writes them, are read from any bytes, in both
 * representations and both orders: under sanitizers nothing is lost, nothing costs more memory than its bytes pay
 * for, who refuses says which field and where, and what is accepted is written as bytes that mean the same.
 *
 * The first byte of an input says which type, the second how its bytes lie.
 */
#include "stubs.h"
#include "no_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct type {
	const char *name;
	const tenon_message *message;
};

static const struct type types[] = {
#define TYPE(name) { #name, &name##_message },
#include "stubs.inc"
#undef TYPE
};

enum { TYPES = sizeof types / sizeof *types };

/* Bytes of memory that a message may cost beyond those that it pays for itself, and levels that it may have. */
enum { CREDIT = 65536, DEPTH_MAX = 128 };

enum form { XDR, LEAN, SWAPPED, FORMS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
claim(bool holds, const struct type *type, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s: %s\n", type->name, what);
		abort();
	}
}

/* Always moves what was written, and never gives more than what was asked for. */
static bool
grow(tenon_encoder *out, size_t room)
{
	size_t there = (size_t)(out->at - out->base);
	unsigned char *memory = realloc(out->base, there + room);

	if (memory == NULL)
		return false;
	out->base = memory;
	out->at = memory + there;
	out->end = out->at + room;
	return true;
}

/* Decodes a copy that ends where the bytes end; the value can be freed whatever comes out. */
static bool
decode(const struct type *type, enum form form, const unsigned char *bytes, size_t length, void *value)
{
	unsigned char *copy = malloc(length);
	tenon_decoder in = { .depth_left = DEPTH_MAX, .swapped = form == SWAPPED };
	bool done;

	memcpy(copy, bytes, length);
	in.base = in.at = copy;
	in.end = copy + length;
	in.payable = 64 * length + CREDIT;
	done = (form == XDR ? type->message->decode_xdr : type->message->decode_lean)(&in, value);
	claim(in.payable <= 64 * length + CREDIT && in.at <= in.end, type, "goes over its limits");
	if (done)
		claim(in.depth_left == DEPTH_MAX, type, "does not come up again");
	else
		claim(in.failure.kind != TENON_FINE && in.failure.field != NULL && in.failure.offset <= length, type,
		    "does not say what is wrong, and where");
	free(copy);
	return done;
}

static tenon_encoder
encode(const struct type *type, enum form form, const void *value)
{
	tenon_encoder out = { .grow = grow, .depth_left = DEPTH_MAX };

	out.base = out.at = out.end = malloc(1);
	claim((form == XDR ? type->message->encode_xdr : type->message->encode_lean)(&out, value), type,
	    "cannot be encoded");
	return out;
}

static void
release(const struct type *type, void *value)
{
	if (type->message->free != NULL)
		type->message->free(value);
	free(value);
}

/* What a value is encoded as is read as the same value. */
static void
there_and_back(const struct type *type, enum form form, const void *value)
{
	tenon_encoder sent = encode(type, form, value), again;
	size_t length = (size_t)(sent.at - sent.base);
	void *other = calloc(1, type->message->size);

	claim(decode(type, form, sent.base, length, other), type, "refuses its own bytes");
	again = encode(type, form, other);
	claim((size_t)(again.at - again.base) == length && memcmp(again.base, sent.base, length) == 0, type,
	    "is another value when it is read again");
	release(type, other);
	free(sent.base);
	free(again.base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const struct type *type = &types[data[0] % TYPES];
	enum form form = (enum form)(data[1] % FORMS);
	void *value = calloc(1, type->message->size);

	if (decode(type, form, data + 2, size - 2, value))
		there_and_back(type, form == XDR ? XDR : LEAN, value);
	release(type, value);
	return 0;
}
