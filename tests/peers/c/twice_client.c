/* Calls the server of twice.x on this host, over the transport that is named, at the port that rpcbind knows. */
#include "twice.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	CLIENT *client = clnt_create("localhost", TWICE_PROGRAM, TWICE_VERSION, argc > 1 ? argv[1] : "tcp");
	int number = 21, *result;

	if (client == NULL) {
		clnt_pcreateerror("localhost");
		return 1;
	}
	result = twice_1(&number, client);
	if (result == NULL) {
		clnt_perror(client, "twice");
		return 1;
	}
	printf("%d\n", *result);
	clnt_destroy(client);
	return 0;
}
