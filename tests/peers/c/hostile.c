/*
 * Decodes counts whose elements never come: no routine may take memory for them, whatever the stream.
 */
#include "torture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The counts ask for gigabytes; the routines may take a little in advance. */
enum { MEMORY_MAX = 128 << 10 };

/* The linker calls these in place of the functions of libc, whose own names have __real_ in front. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static void
judge(size_t size)
{
	if (size > MEMORY_MAX) {
		printf("%zu bytes were asked for\n", size);
		exit(1);
	}
}

void *
__wrap_malloc(size_t size)
{
	judge(size);
	return __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	judge(count * size);
	return __real_calloc(count, size);
}

void *
__wrap_realloc(void *memory, size_t size)
{
	judge(size);
	return __real_realloc(memory, size);
}

/* A message, once. */
static char message[64];
static int left;

static int
take(void *handle, void *to, int length)
{
	int now = length < left ? length : left;
	(void)handle;
	if (now == 0)
		return -1;
	memcpy(to, message + sizeof message - left, now);
	left -= now;
	return now;
}

static int
give(void *handle, void *from, int length)
{
	(void)handle;
	(void)from;
	return length;
}

static void
expect_refusal(const char *name, xdrproc_t routine, size_t size)
{
	const char *kinds[] = { "memory", "record", "stdio" };
	int kind;

	for (kind = 0; kind < 3; kind++) {
		void *value = calloc(1, size);
		FILE *file = NULL;
		XDR stream;

		memset(&stream, 0, sizeof stream);
		if (kind == 0) {
			xdrmem_create(&stream, message + 4, sizeof message - 4, XDR_DECODE);
		} else if (kind == 1) {
			left = sizeof message;
			xdrrec_create(&stream, 0, 0, NULL, take, give);
			stream.x_op = XDR_DECODE;
			xdrrec_skiprecord(&stream);
		} else {
			file = fmemopen(message + 4, sizeof message - 4, "r");
			xdrstdio_create(&stream, file, XDR_DECODE);
		}
		if (routine(&stream, value)) {
			printf("%s was read from %s\n", name, kinds[kind]);
			exit(1);
		}
		xdr_free(routine, value);
		xdr_destroy(&stream);
		if (file != NULL)
			fclose(file);
		free(value);
	}
}

#define EXPECT_REFUSAL(name) expect_refusal(#name, (xdrproc_t)xdr_##name, sizeof(name))

int
main(void)
{
	uint32_t mark = htonl(0x80000000u | (sizeof message - 4));
	uint32_t count = htonl(0x3fffffffu);

	memcpy(message, &mark, 4);
	memcpy(message + 4, &count, 4);
	EXPECT_REFUSAL(list_of_ints);
	EXPECT_REFUSAL(reals);
	EXPECT_REFUSAL(bools);
	EXPECT_REFUSAL(octets);
	EXPECT_REFUSAL(ragged);
	EXPECT_REFUSAL(polygon);
	EXPECT_REFUSAL(words);
	EXPECT_REFUSAL(shades);
	EXPECT_REFUSAL(text);
	EXPECT_REFUSAL(blob);
	puts("nothing was taken");
	return 0;
}
