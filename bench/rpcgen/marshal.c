/*
 * Marshals a value on memory streams, again and again, and reports how long it takes.
 *
 * usage: marshal WORK encode|decode|reused|blocks
 *
 * `decode` decodes into memory of its own and frees it, as clients and servers do; `reused` into memory that
 * is there. `blocks` only takes the blocks of memory that decoding takes, and gives them back. Prints the number of bytes and their digest, by which two such programs are compared, and
 * "ready"; then, for each number of nanoseconds on standard input, works for about so long and prints
 * how many picoseconds it takes once.
 */
#include "values.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, BATCHES = 9 };

static const struct work *work;
static void *value, *room;
static char bytes[ROOM];
static u_int length;

static void
encode(void)
{
	XDR xdrs;

	xdrmem_create(&xdrs, bytes, length, XDR_ENCODE);
	REQUIRE(work->xdr(&xdrs, value));
}

static void
decode_reused(void)
{
	XDR xdrs;

	xdrmem_create(&xdrs, bytes, length, XDR_DECODE);
	REQUIRE(work->xdr(&xdrs, room));
}

static void
decode(void)
{
	memset(room, 0, work->size);
	decode_reused();
	xdr_free(work->xdr, room);
}

static size_t sizes[BLOCKS_MAX];
static u_int block_count;

static void
take_blocks(void)
{
	static void *blocks[BLOCKS_MAX];

	for (u_int i = 0; i < block_count; i++) {
		blocks[i] = malloc(sizes[i]);
		REQUIRE(blocks[i] != NULL);
		*(volatile char *)blocks[i] = 1;
	}
	for (u_int i = 0; i < block_count; i++)
		free(blocks[i]);
}

typedef void operation(void);

static operation *
find_operation(const char *name)
{
	if (strcmp(name, "encode") == 0)
		return encode;
	if (strcmp(name, "decode") == 0)
		return decode;
	if (strcmp(name, "reused") == 0)
		return decode_reused;
	if (strcmp(name, "blocks") == 0 && work->blocks != NULL)
		return take_blocks;
	fail(name, 0, "is none of encode, decode, reused, blocks");
}

/* Encodes once and decodes that, and says what the bytes are. */
static void
try_out(void)
{
	unsigned long long digest = 0xcbf29ce484222325;
	XDR xdrs;

	xdrmem_create(&xdrs, bytes, ROOM, XDR_ENCODE);
	REQUIRE(work->xdr(&xdrs, value));
	length = xdr_getpos(&xdrs);
	for (u_int i = 0; i < length; i++)
		digest = (digest ^ (unsigned char)bytes[i]) * 0x100000001b3;
	decode_reused();
	REQUIRE(work->equal(room, value));
	printf("%u %llx\nready\n", length, digest);
	fflush(stdout);
}

static long long
time_batch(operation *once, long long times)
{
	long long start = now();

	for (long long i = 0; i < times; i++) {
		once();
		/* What was done is seen by somebody, as far as the compiler knows. */
		__asm__ volatile("" ::: "memory");
	}
	return now() - start;
}

int
main(int argc, char **argv)
{
	char line[64];
	long long samples[BATCHES], times = 1;
	u_int count;

	REQUIRE(argc == 3);
	work = find_work(argv[1], &count);
	operation *once = find_operation(argv[2]);
	value = calloc(1, work->size);
	room = calloc(1, work->size);
	REQUIRE(value != NULL && room != NULL);
	work->fill(value, count);
	try_out();
	if (work->blocks != NULL)
		block_count = work->blocks(value, sizes);
	while (fgets(line, sizeof line, stdin) != NULL) {
		while (time_batch(once, times) < atoll(line) / BATCHES)
			times *= 2;
		for (int i = 0; i < BATCHES; i++)
			samples[i] = time_batch(once, times);
		sort(samples, BATCHES);
		printf("%lld\n", samples[BATCHES / 2] * 1000 / times);
		fflush(stdout);
	}
	return 0;
}
