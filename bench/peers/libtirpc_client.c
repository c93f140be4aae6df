/*
 * Calls one operation of the section `rpc` by libtirpc, again and again, and reports its times.
 *
 * usage: libtirpc_client PROCEDURE N 1 ADDRESS...
 *
 * Speaks the protocol of src/measure.rs: prints "ready" when the answer of a first call is checked;
 * for each number of milliseconds on standard input, calls for so long and prints the number of
 * calls, the nanoseconds that they took, and the median and the 99th percentile of their times.
 */
#include "bench.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES_MAX = 1 << 20 };

static CLIENT *client;
static u_int n;

/* ---- Operations: each makes one call and checks what is cheap to check ---- */

static void
call_null(void)
{
	REQUIRE(null_call_1(NULL, client) != NULL);
}

static void
call_maxresult(void)
{
	char *bytes = (char *)max_result_1(NULL, client);
	REQUIRE(bytes != NULL && bytes[MAX_RESULT_BYTES - 1] == (char)(MAX_RESULT_BYTES - 1));
}

static void
call_sayhello(void)
{
	static text name = "world";
	text *greeting = say_hello_1(&name, client);
	REQUIRE(greeting != NULL && strcmp(*greeting, "Hello world") == 0);
	xdr_free((xdrproc_t)xdr_text, (char *)greeting);
}

static numbers
one_to_n(void)
{
	static numbers all;
	if (all.numbers_val == NULL) {
		all = (numbers) { n, malloc(n * sizeof(int)) };
		for (u_int i = 0; i < n; i++)
			all.numbers_val[i] = i + 1;
	}
	return all;
}

static void
call_average(void)
{
	numbers all = one_to_n();
	double *mean = average_1(&all, client);
	REQUIRE(mean != NULL && *mean == (n + 1) / 2.0);
}

/* So many numbers as a server returns them. */
static void
make_rand_nums(int *values, u_int count)
{
	u_int x = 1;

	for (u_int i = 0; i < count; i++) {
		x = (1103515245u * x + 12345u) & 0x7fffffff;
		values[i] = x;
	}
}

static void
call_getrandnums(void)
{
	static int *expected;
	numbers *all = get_rand_nums_1(&n, client);

	REQUIRE(all != NULL && all->numbers_len == n);
	if (expected == NULL) {
		expected = malloc(n * sizeof(int));
		make_rand_nums(expected, n);
		REQUIRE(memcmp(all->numbers_val, expected, n * sizeof(int)) == 0);
	}
	REQUIRE(all->numbers_val[n - 1] == expected[n - 1]);
	xdr_free((xdrproc_t)xdr_numbers, (char *)all);
}

#define LARGE(members) \
	static void \
	call_large##members(void) \
	{ \
		static LargeData##members sent; \
		int *values = (int *)&sent; \
		if (values[0] == 0) \
			make_rand_nums(values, members); \
		LargeData##members *received = large##members##_1(&sent, client); \
		REQUIRE(received != NULL && memcmp(received, &sent, sizeof sent) == 0); \
	}
LARGE(128)
LARGE(1024)
LARGE(4096)
LARGE(8192)

typedef void operation(void);

static operation *
find_operation(const char *name)
{
	static const struct {
		const char *name;
		operation *call;
	} operations[] = {
		{ "null", call_null }, { "maxresult", call_maxresult },
		{ "sayhello", call_sayhello }, { "average", call_average }, { "getrandnums", call_getrandnums },
		{ "large128", call_large128 }, { "large1024", call_large1024 },
		{ "large4096", call_large4096 }, { "large8192", call_large8192 },
	};
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (strcmp(operations[i].name, name) == 0)
			return operations[i].call;
	fail(name, 0, "is no operation");
}

/* ---- Measuring ---- */

static long long
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

static void
measure(operation *call, long long nanoseconds)
{
	static long long samples[SAMPLES_MAX];
	int count = 0;
	long long start = now(), before = start, after = start;

	while (count < SAMPLES_MAX && (after - start < nanoseconds || count == 0)) {
		call();
		after = now();
		samples[count++] = after - before;
		before = after;
	}
	long long elapsed = now() - start;
	qsort(samples, count, sizeof *samples, ascending);
	printf("%d %lld %lld %lld\n", count, elapsed, samples[count / 2], samples[count * 99LL / 100]);
}

int
main(int argc, char **argv)
{
	char line[64];

	REQUIRE(argc > 5 && atoi(argv[3]) == 1);
	operation *call = find_operation(argv[1]);
	n = atoi(argv[2]);
	client = connect_to(argc - 3, argv + 3, BENCH_PROGRAM, BENCH_VERSION);
	call();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL) {
		measure(call, atoll(line) * 1000000);
		fflush(stdout);
	}
	return 0;
}
