/*
 * What is marshalled and sent, by its name in the tables: ints20, structure, members1000, nested10.
 */
#ifndef VALUES_H
#define VALUES_H

#include "echo.h"

struct work {
	const char *name;
	xdrproc_t xdr;
	size_t size;
	/* Fills a value that is all zeroes. */
	void (*fill)(void *value, u_int count);
	/* Sends a value there and back. NULL if that fails. */
	void *(*echo)(void *value, CLIENT *client);
	/* Whether two values are equal. */
	int (*equal)(const void *left, const void *right);
	/* The blocks of memory that decoding a value takes, in order; how many. NULL if nobody asks. */
	u_int (*blocks)(const void *value, size_t *sizes);
};

/* Most blocks of a value. */
enum { BLOCKS_MAX = 1 << 16 };

extern const struct work works[];

/* The work and, in `count`, the number behind its name, if it has one. */
const struct work *find_work(const char *name, u_int *count);

/* Nanoseconds since some moment. */
long long now(void);

/* Sorts, ascending. */
void sort(long long *samples, int count);

#endif
