/*
 * Holds the routines of one rpcgen to those of another: decodes random messages by both, encodes what was decoded by
 * either, and compares the bytes.
 *
 * usage: messages OURS THEIRS ROUNDS
 *
 * OURS and THEIRS are shared objects, each with a list `message_types` of the types whose routines it has. Prints how
 * many types there are, of how many a message was accepted, and how many messages were. Ends with 1 at the first
 * difference.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rpc/rpc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 2000
#define ENCODED_MAX (1 << 14)
/* Bytes behind each value, for routines that believe a type to be larger than its header says. */
#define MARGIN 64

struct message_type {
	const char *name;
	size_t size;
	xdrproc_t routine;
};

enum stream { ALIGNED, UNALIGNED, STDIO, STREAMS };

struct decoded {
	void *value;
	bool_t accepted;
	u_int taken;
};

static void
fail(const char *type, const char *what)
{
	printf("%s: %s\n", type, what);
	exit(1);
}

static uint32_t
next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

/* Mostly what counts, discriminants, booleans and strings begin with. */
static uint32_t
next_word(bool_t is_small)
{
	uint32_t kind = next_random() % 100;

	if (is_small)
		return next_random() % 3;
	if (kind < 40)
		return 0;
	if (kind < 65)
		return 1;
	if (kind < 85)
		return next_random() % 9;
	if (kind < 90)
		return next_random() % 64;
	return kind < 95 ? 0x6162 : next_random() & 0x1ffff;
}

/* Fills a message with random words; how many bytes it has. */
static u_int
fill(uint32_t *words)
{
	u_int count = next_random() % (WORDS_MAX >> (next_random() % 9));
	bool_t is_small = next_random() % 4 == 0;

	for (u_int i = 0; i < count; i++)
		words[i] = htonl(next_word(is_small));
	return count * 4;
}

static struct decoded
decode(const struct message_type *type, enum stream stream, char *message, u_int bytes)
{
	struct decoded decoded = { calloc(1, type->size + MARGIN), FALSE, 0 };
	FILE *file = NULL;
	XDR xdrs;

	if (stream == STDIO) {
		file = fmemopen(message, bytes == 0 ? 1 : bytes, "r");
		xdrstdio_create(&xdrs, file, XDR_DECODE);
	} else {
		xdrmem_create(&xdrs, message, bytes, XDR_DECODE);
	}
	decoded.accepted = type->routine(&xdrs, decoded.value);
	decoded.taken = xdr_getpos(&xdrs);
	xdr_destroy(&xdrs);
	if (file != NULL)
		fclose(file);
	return decoded;
}

/* Encodes a value; how many bytes that takes, or all ones if it is refused. */
static u_int
encode(const struct message_type *type, void *value, char *to)
{
	XDR xdrs;
	u_int bytes;

	memset(to, 0, ENCODED_MAX);
	xdrmem_create(&xdrs, to, ENCODED_MAX, XDR_ENCODE);
	bytes = type->routine(&xdrs, value) ? xdr_getpos(&xdrs) : ~0u;
	xdr_destroy(&xdrs);
	return bytes;
}

/* Whether messages are the same value: rpcgen's inlined code keeps what a boolean was, its routines make 1 of it. */
static bool_t
is_same_value(const struct message_type *type, char *first, char *other, u_int bytes)
{
	static char again[2][ENCODED_MAX];
	char *messages[2] = { first, other };
	u_int lengths[2];

	for (int i = 0; i < 2; i++) {
		struct decoded decoded = decode(type, ALIGNED, messages[i], bytes);

		lengths[i] = decoded.accepted ? encode(type, decoded.value, again[i]) : ~0u;
		xdr_free(type->routine, decoded.value);
		free(decoded.value);
	}
	return lengths[0] == lengths[1] && lengths[0] == bytes && memcmp(again[0], again[1], bytes) == 0;
}

/* Either maker encodes what either has decoded. */
static void
compare_encodings(const struct message_type *const types[2], const struct decoded decoded[2])
{
	static char first[ENCODED_MAX], other[ENCODED_MAX];
	u_int bytes = encode(types[0], decoded[0].value, first);

	for (int i = 1; i < 4; i++) {
		if (encode(types[i & 1], decoded[i >> 1].value, other) != bytes)
			fail(types[0]->name, "other lengths");
		if (bytes != ~0u && memcmp(first, other, bytes) != 0 && !is_same_value(types[0], first, other, bytes))
			fail(types[0]->name, "other bytes");
	}
}

/* Whether the message was accepted, by both. */
static bool_t
compare(const struct message_type *const types[2], enum stream stream)
{
	static uint32_t words[WORDS_MAX + 1];
	u_int bytes = fill(words);
	char *message = (char *)words;
	struct decoded decoded[2];
	bool_t accepted;

	if (stream == UNALIGNED) {
		memmove(message + 1, message, bytes);
		message++;
	}
	for (int i = 0; i < 2; i++)
		decoded[i] = decode(types[i], stream, message, bytes);
	accepted = decoded[0].accepted;
	if (accepted != decoded[1].accepted)
		fail(types[0]->name, accepted ? "only ours accepts" : "only theirs accepts");
	if (accepted && decoded[0].taken != decoded[1].taken)
		fail(types[0]->name, "takes another number of bytes");
	if (accepted)
		compare_encodings(types, decoded);
	/* Each frees what the other has decoded. */
	for (int i = 0; i < 2; i++) {
		if (accepted)
			xdr_free(types[1 - i]->routine, decoded[i].value);
		free(decoded[i].value);
	}
	return accepted;
}

static const struct message_type *
open_types(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct message_type *types;

	if (library == NULL || (types = dlsym(library, "message_types")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return types;
}

int
main(int argc, char **argv)
{
	const struct message_type *ours, *theirs;
	unsigned long types = 0, reached = 0, accepted = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: messages OURS THEIRS ROUNDS\n");
		return 2;
	}
	ours = open_types(argv[1]);
	theirs = open_types(argv[2]);
	for (; ours->name != NULL && theirs->name != NULL; ours++, theirs++, types++) {
		const struct message_type *const both[2] = { ours, theirs };
		unsigned long before = accepted;

		if (strcmp(ours->name, theirs->name) != 0 || ours->size != theirs->size)
			fail(ours->name, "the headers disagree");
		for (int round = 0; round < atoi(argv[3]); round++)
			accepted += compare(both, round % STREAMS);
		reached += accepted > before;
	}
	if (ours->name != theirs->name)
		fail("the headers", "have other types");
	printf("%lu types, %lu of them reached, %lu messages\n", types, reached, accepted);
	return types == 0;
}
