/*
 * The operations of hprpc.x, served by libtirpc.
 */
#include "hprpc.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>

extern void hprpc_program_1(struct svc_req *, SVCXPRT *);

void *
null_call_1_svc(struct svc_req *request)
{
	static char result;
	return &result;
}

char **
say_hello_1_svc(char *name, struct svc_req *request)
{
	static char *greeting;

	free(greeting);
	REQUIRE(asprintf(&greeting, "Hello %s", name) >= 0);
	return &greeting;
}

double *
average_1_svc(numbers all, struct svc_req *request)
{
	static double result;
	long long sum = 0;

	for (u_int i = 0; i < all.numbers_len; i++)
		sum += all.numbers_val[i];
	result = all.numbers_len == 0 ? 0 : (double)sum / all.numbers_len;
	return &result;
}

numbers *
get_rand_nums_1_svc(u_int count, struct svc_req *request)
{
	static numbers result;
	static u_int capacity;
	u_int x = 1;

	if (count > capacity) {
		capacity = count;
		result.numbers_val = realloc(result.numbers_val, count * sizeof(int));
		REQUIRE(result.numbers_val != NULL);
	}
	result.numbers_len = count;
	for (u_int i = 0; i < count; i++) {
		x = (1103515245u * x + 12345u) & 0x7fffffff;
		result.numbers_val[i] = x;
	}
	return &result;
}

LargeData *
send_rcv_large_data_1_svc(LargeData data, struct svc_req *request)
{
	static LargeData result;
	result = data;
	return &result;
}

char *
max_result_1_svc(struct svc_req *request)
{
	static packet result;

	for (int i = 0; i < MAX_RESULT_BYTES; i++)
		result[i] = i;
	return result;
}

static void
enlist(SVCXPRT *transport)
{
	REQUIRE(svc_reg(transport, HPRPC_PROGRAM, HPRPC_VERSION, hprpc_program_1, NULL));
}

int
main(int argc, char **argv)
{
	serve(argc, argv, enlist);
	return 1;
}
