/*
 * Sends a value to a server and gets it back, again and again, and reports its times.
 *
 * usage: client WORK ADDRESS...
 *
 * Prints "ready" when the answer of a first call is checked; for each number of milliseconds on
 * standard input, calls for so long and prints the number of calls, the nanoseconds that they took, and the
 * median and the 99th percentile of their times.
 */
#include "values.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES_MAX = 1 << 20 };

static const struct work *work;
static CLIENT *client;
static void *value;

static void
call(void)
{
	void *result = work->echo(value, client);

	REQUIRE(result != NULL);
	xdr_free(work->xdr, result);
}

static void
try_out(void)
{
	void *result = work->echo(value, client);

	REQUIRE(result != NULL && work->equal(result, value));
	xdr_free(work->xdr, result);
	puts("ready");
	fflush(stdout);
}

static void
measure(long long nanoseconds)
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
	sort(samples, count);
	printf("%d %lld %lld %lld\n", count, elapsed, samples[count / 2], samples[count * 99LL / 100]);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	char line[64];
	u_int count;

	REQUIRE(argc > 3);
	work = find_work(argv[1], &count);
	client = connect_to(argc - 1, argv + 1, ECHO_PROGRAM, ECHO_VERSION);
	value = calloc(1, work->size);
	REQUIRE(value != NULL);
	work->fill(value, count);
	try_out();
	while (fgets(line, sizeof line, stdin) != NULL)
		measure(atoll(line) * 1000000);
	return 0;
}
