/*
 * The operations of the section `rpc`, served by libtirpc.
 */
#include "bench.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>

extern void bench_program_1(struct svc_req *, SVCXPRT *);

/* Numbers that anybody asks for, at most. */
enum { COUNT_MAX = 1 << 20 };

void *
null_call_1_svc(void *nothing, struct svc_req *request)
{
	static char result;
	return &result;
}

char *
max_result_1_svc(void *nothing, struct svc_req *request)
{
	static packet result;

	for (int i = 0; i < MAX_RESULT_BYTES; i++)
		result[i] = i;
	return result;
}

double *
average_1_svc(numbers *all, struct svc_req *request)
{
	static double result;
	long long sum = 0;

	for (u_int i = 0; i < all->numbers_len; i++)
		sum += all->numbers_val[i];
	result = all->numbers_len == 0 ? 0 : (double)sum / all->numbers_len;
	return &result;
}

numbers *
get_rand_nums_1_svc(u_int *count, struct svc_req *request)
{
	static int values[COUNT_MAX];
	static numbers result = { 0, values };
	u_int x = 1;

	REQUIRE(*count <= COUNT_MAX);
	result.numbers_len = *count;
	for (u_int i = 0; i < *count; i++) {
		x = (1103515245u * x + 12345u) & 0x7fffffff;
		values[i] = x;
	}
	return &result;
}

text *
say_hello_1_svc(text *name, struct svc_req *request)
{
	static char greeting[1024];
	static text result = greeting;

	REQUIRE(snprintf(greeting, sizeof greeting, "Hello %s", *name) < (int)sizeof greeting);
	return &result;
}

/* The argument lives until the reply is sent. */
#define LARGE(members) \
	LargeData##members * \
	large##members##_1_svc(LargeData##members *data, struct svc_req *request) \
	{ \
		return data; \
	}
LARGE(128)
LARGE(1024)
LARGE(4096)
LARGE(8192)

static void
enlist(SVCXPRT *transport)
{
	REQUIRE(svc_reg(transport, BENCH_PROGRAM, BENCH_VERSION, bench_program_1, NULL));
}

int
main(int argc, char **argv)
{
	serve(argc, argv, enlist);
	return 1;
}
