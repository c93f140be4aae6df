/*
 * The routines of `interfaces/torture.x` in C, as `tenon rpcgen` writes them, read any bytes: under sanitizers,
 * nothing is lost, and what a routine accepts it writes again as bytes that mean the same. Streams that hold
 * a message as one piece of memory, and streams that hold it in fragments, accept the same.
 *
 * The first byte of an input says which type, the second how long fragments are.
 */
#include "torture.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct type {
	const char *name;
	xdrproc_t routine;
	size_t size;
};

static const struct type types[] = {
#define TYPE(name) { #name, (xdrproc_t)xdr_##name, sizeof(name) },
#include "types.inc"
#undef TYPE
};

enum { TYPES = sizeof types / sizeof *types };

struct bytes {
	char *at;
	size_t length;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
claim(int holds, const struct type *type, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s: %s\n", type->name, what);
		abort();
	}
}

/* Memory of its own, which ends where the bytes end. */
static struct bytes
copy(const void *from, size_t length)
{
	struct bytes bytes = { malloc(length), length };

	memcpy(bytes.at, from, length);
	return bytes;
}

static int
take(void *handle, void *to, int length)
{
	struct bytes *from = handle;
	size_t now = from->length < (size_t)length ? from->length : (size_t)length;

	if (now == 0)
		return -1;
	memcpy(to, from->at, now);
	from->at += now;
	from->length -= now;
	return (int)now;
}

static int
give(void *handle, void *from, int length)
{
	(void)handle;
	(void)from;
	return length;
}

/* As record marking has them, in fragments of so many bytes. */
static struct bytes
in_fragments(struct bytes message, size_t most)
{
	struct bytes record = { malloc(message.length + 4 * (message.length / most + 1)), 0 };
	size_t done = 0;

	do {
		size_t left = message.length - done, now = left < most ? left : most;
		uint32_t mark = htonl((uint32_t)now | (now == left ? 0x80000000u : 0));

		memcpy(record.at + record.length, &mark, 4);
		memcpy(record.at + record.length + 4, message.at + done, now);
		record.length += 4 + now;
		done += now;
	} while (done < message.length);
	return record;
}

static bool_t
decode_memory(const struct type *type, void *value, struct bytes message)
{
	XDR stream;

	xdrmem_create(&stream, message.at, (u_int)message.length, XDR_DECODE);
	return type->routine(&stream, value);
}

static bool_t
decode_record(const struct type *type, void *value, struct bytes message, size_t most)
{
	struct bytes record = in_fragments(message, most), left = record;
	XDR stream;
	bool_t done;

	memset(&stream, 0, sizeof stream);
	xdrrec_create(&stream, 400, 400, &left, take, give);
	stream.x_op = XDR_DECODE;
	done = xdrrec_skiprecord(&stream) && type->routine(&stream, value);
	xdr_destroy(&stream);
	free(record.at);
	return done;
}

/* What was accepted can be sent. */
static struct bytes
encode(const struct type *type, void *value)
{
	u_long length = xdr_sizeof(type->routine, value);
	struct bytes bytes = { malloc(length), length };
	XDR stream;

	xdrmem_create(&stream, bytes.at, (u_int)length, XDR_ENCODE);
	claim(type->routine(&stream, value), type, "cannot be encoded");
	claim(xdr_getpos(&stream) == length, type, "has another size than it says");
	return bytes;
}

static void
release(const struct type *type, void *value)
{
	xdr_free(type->routine, value);
	free(value);
}

/* What a value is encoded as is read as the same value. */
static struct bytes
there_and_back(const struct type *type, void *value)
{
	struct bytes sent = encode(type, value), again;
	void *other = calloc(1, type->size);

	claim(decode_memory(type, other, sent), type, "refuses its own bytes");
	again = encode(type, other);
	claim(again.length == sent.length && memcmp(again.at, sent.at, sent.length) == 0, type,
	    "is another value when it is read again");
	release(type, other);
	free(again.at);
	return sent;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const struct type *type = &types[data[0] % TYPES];
	struct bytes message = copy(data + 2, size - 2), sent = { NULL, 0 };
	void *value = calloc(1, type->size), *other = calloc(1, type->size);
	bool_t accepted = decode_memory(type, value, message);

	if (accepted)
		sent = there_and_back(type, value);
	release(type, value);
	claim(decode_record(type, other, message, 1 + (size_t)data[1]) == accepted, type,
	    "is not accepted by every stream");
	if (accepted) {
		struct bytes same = encode(type, other);

		claim(same.length == sent.length && memcmp(same.at, sent.at, sent.length) == 0, type,
		    "is another value in fragments");
		free(same.at);
	}
	release(type, other);
	free(sent.at);
	free(message.at);
	return 0;
}
