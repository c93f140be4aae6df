#include "values.h"
#include "transport.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 1024 };

/* Bytes of the integers that a Structure begins with. */
#define INTS_BYTES (offsetof(Structure, triples) + sizeof((Structure *)NULL)->triples)

/* ---- Values ---- */

static int
next_int(void)
{
	static u_int x = 1;

	x = 1103515245u * x + 12345u;
	return x;
}

static void
fill_ints(void *value, u_int count)
{
	Ints *ints = value;

	ints->values.values_len = count;
	ints->values.values_val = malloc(count * sizeof(int));
	REQUIRE(ints->values.values_val != NULL);
	for (u_int i = 0; i < count; i++)
		ints->values.values_val[i] = next_int();
}

static int
equal_ints(const void *left, const void *right)
{
	const Ints *a = left, *b = right;
	u_int count = a->values.values_len;

	return count == b->values.values_len &&
	    memcmp(a->values.values_val, b->values.values_val, count * sizeof(int)) == 0;
}

static void
fill_structure(void *value, u_int count)
{
	Structure *all = value;

	for (size_t i = 0; i < INTS_BYTES / sizeof(int); i++)
		((int *)value)[i] = next_int();
	all->text.kind = next_int();
	all->text.text = malloc(TEXT_BYTES + 1);
	REQUIRE(all->text.text != NULL);
	memset(all->text.text, 'x', TEXT_BYTES);
	all->text.text[TEXT_BYTES] = 0;
}

static int
equal_structures(const void *left, const void *right)
{
	const Structure *a = left, *b = right;

	return memcmp(a, b, INTS_BYTES) == 0 && a->text.kind == b->text.kind &&
	    strcmp(a->text.text, b->text.text) == 0;
}

static void
fill_members(void *value, u_int count)
{
	for (size_t i = 0; i < sizeof(Members1000) / sizeof(int); i++)
		((int *)value)[i] = next_int();
}

static int
equal_members(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(Members1000)) == 0;
}

/* ---- Calls: only a client has them ---- */

#pragma weak echo_ints_1
#pragma weak echo_structure_1
#pragma weak echo_members1000_1

static void *
send_ints(void *value, CLIENT *client)
{
	return echo_ints_1(value, client);
}

static void *
send_structure(void *value, CLIENT *client)
{
	return echo_structure_1(value, client);
}

static void *
send_members(void *value, CLIENT *client)
{
	return echo_members1000_1(value, client);
}

const struct work works[] = {
	{ "ints", (xdrproc_t)xdr_Ints, sizeof(Ints), fill_ints, send_ints, equal_ints },
	{ "structure", (xdrproc_t)xdr_Structure, sizeof(Structure), fill_structure, send_structure,
	    equal_structures },
	{ "members1000", (xdrproc_t)xdr_Members1000, sizeof(Members1000), fill_members, send_members,
	    equal_members },
	{ NULL, NULL, 0, NULL, NULL, NULL },
};

const struct work *
find_work(const char *name, u_int *count)
{
	for (const struct work *work = works; work->name != NULL; work++) {
		size_t length = strlen(work->name);

		if (strncmp(name, work->name, length) == 0) {
			*count = atoi(name + length);
			return work;
		}
	}
	fail(name, 0, "is no work");
}

/* ---- Time ---- */

long long
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int
ascending(const void *left, const void *right)
{
	long long a = *(const long long *)left, b = *(const long long *)right;

	return (a > b) - (a < b);
}

void
sort(long long *samples, int count)
{
	qsort(samples, count, sizeof *samples, ascending);
}
