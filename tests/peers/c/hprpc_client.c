/*
 * Calls every operation of hprpc.x by libtirpc and checks each answer.
 */
#include "hprpc.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers in a message of 1 MB, many fragments. */
enum { MANY = 262144 };

/* Bytes that headers may take of a message. */
enum { HEADERS = 72 };

static void
check_null(CLIENT *client)
{
	REQUIRE(null_call_1(client) != NULL);
}

static void
check_say_hello(CLIENT *client)
{
	char **greeting = say_hello_1("World", client);
	REQUIRE(greeting != NULL);
	REQUIRE(strcmp(*greeting, "Hello World") == 0);

	greeting = say_hello_1("", client);
	REQUIRE(greeting != NULL);
	REQUIRE(strcmp(*greeting, "Hello ") == 0);
}

static void
check_average(CLIENT *client, u_int count)
{
	numbers all = { count, malloc(count * sizeof(int) + 1) };
	for (u_int i = 0; i < count; i++)
		all.numbers_val[i] = i + 1;

	double *mean = average_1(all, client);
	REQUIRE(mean != NULL);
	REQUIRE(*mean == (count == 0 ? 0.0 : (count + 1) / 2.0));
	free(all.numbers_val);
}

static void
check_get_rand_nums(CLIENT *client, u_int count)
{
	numbers *all = get_rand_nums_1(count, client);
	u_int x = 1;

	REQUIRE(all != NULL);
	REQUIRE(all->numbers_len == count);
	for (u_int i = 0; i < count; i++) {
		x = (1103515245u * x + 12345u) & 0x7fffffff;
		REQUIRE(all->numbers_val[i] == (int)x);
	}
	xdr_free((xdrproc_t)xdr_numbers, (char *)all);
}

static void
check_large_data(CLIENT *client)
{
	LargeData sent;
	int *members = (int *)&sent;
	for (int i = 0; i < (int)(sizeof sent / sizeof *members); i++)
		members[i] = i * 16777619 - 1;

	LargeData *received = send_rcv_large_data_1(sent, client);
	REQUIRE(received != NULL);
	REQUIRE(memcmp(received, &sent, sizeof sent) == 0);
}

static void
check_max_result(CLIENT *client)
{
	char *bytes = (char *)max_result_1(client);
	REQUIRE(bytes != NULL);
	for (int i = 0; i < MAX_RESULT_BYTES; i++)
		REQUIRE(bytes[i] == (char)i);
}

int
main(int argc, char **argv)
{
	CLIENT *client = connect_to(argc, argv, HPRPC_PROGRAM, HPRPC_VERSION);
	size_t fit = (message_max(argv) - HEADERS) / sizeof(int);
	u_int many = fit < MANY ? fit : MANY;

	check_null(client);
	check_say_hello(client);
	check_average(client, 0);
	check_average(client, 10);
	check_average(client, many);
	check_get_rand_nums(client, 0);
	check_get_rand_nums(client, 10);
	check_get_rand_nums(client, many);
	check_large_data(client);
	check_max_result(client);
	puts("hprpc: every answer is right");
	clnt_destroy(client);
	return 0;
}
