/*
 * Decodes values that nest deeper than any program means: each routine has to refuse them, and what it had
 * built by then can be freed, on the stack that a thread has by default.
 */
#include "torture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levels, and words of a message: a tree has two a level, an expression six. */
enum { LEVELS = 1000000, WORDS = 8 * LEVELS };

static uint32_t message[WORDS];

/* As many levels as there are words; `count` words are repeated. */
static void
fill(const uint32_t *level, int count, int levels)
{
	memset(message, 0, sizeof message);
	for (int i = 0; i < levels; i++)
		for (int j = 0; j < count; j++)
			message[i * count + j] = htonl(level[j]);
}

static void
expect(int accepted, const char *name, xdrproc_t routine, size_t size)
{
	void *value = calloc(1, size);
	XDR stream;

	xdrmem_create(&stream, (char *)message, sizeof message, XDR_DECODE);
	if (!!routine(&stream, value) != accepted) {
		printf("%s was%s read\n", name, accepted ? " not" : "");
		exit(1);
	}
	xdr_free(routine, value);
	free(value);
}

#define EXPECT(accepted, name) expect(accepted, #name, (xdrproc_t)xdr_##name, sizeof(name))

int
main(void)
{
	/* A value, and one more to the left. */
	const uint32_t tree_level[] = { 7, 1 };
	/* A name without letters, and one entry. */
	const uint32_t directory_level[] = { 0, 1 };
	/* No comment, two operands, the operator, and the one to the left is there. */
	const uint32_t expression_level[] = { 0, 2, 9, 1 };
	/* A value, and another one behind it: a list, which has no depth. */
	const uint32_t node_level[] = { 7, 1 };

	for (int round = 0; round < 2; round++) {
		fill(tree_level, 2, LEVELS);
		EXPECT(0, tree);
		fill(tree_level, 2, 1000);
		EXPECT(1, tree);
		fill(directory_level, 2, LEVELS);
		EXPECT(0, directory);
		fill(expression_level, 4, LEVELS);
		EXPECT(0, expression);
		fill(node_level, 2, LEVELS);
		EXPECT(1, node);
	}
	puts("nothing was too deep");
	return 0;
}
