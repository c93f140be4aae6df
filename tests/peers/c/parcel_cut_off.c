/*
 * A server of parcel.x that gets a parcel cut off behind each of its words, and then a whole one. It ends in order,
 * so that a sanitizer finds what was read of the others and is lost.
 */
#include "parcel.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>

#include <tenon/tirpc.h>

extern void parcel_program_1(struct svc_req *, SVCXPRT *);

void
fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	exit(1);
}

int *
weigh_1_svc(parcel *whole, struct svc_req *request)
{
	static int result;

	(void)request;
	result = whole->weight;
	return &result;
}

/* What there is of a parcel. */
struct part {
	char bytes[400];
	u_int count;
};

static bool_t
xdr_part(XDR *xdrs, struct part *part)
{
	return xdr_opaque(xdrs, part->bytes, part->count);
}

static void
encode(struct part *whole)
{
	letter third = {"third", NULL}, second = {"second", &third};
	letter both[2] = {{"first", &second}, {"alone", NULL}};
	parcel value = {"sender", {5, "wax\0!"}, "labels", {2, both}, &second, 42};
	XDR xdrs;

	xdrmem_create(&xdrs, whole->bytes, sizeof whole->bytes, XDR_ENCODE);
	REQUIRE(xdr_parcel(&xdrs, &value));
	whole->count = xdr_getpos(&xdrs);
	xdr_destroy(&xdrs);
}

static enum clnt_stat
weigh(CLIENT *client, struct part *part, int *weight)
{
	struct timeval patience = {60, 0};

	return clnt_call(client, WEIGH, (xdrproc_t)xdr_part, (caddr_t)part, (xdrproc_t)xdr_int, (caddr_t)weight, patience);
}

int
main(void)
{
	tenon_server *server = tenon_server_new();
	struct part part;
	tenon_error error;
	int weight = 0;

	REQUIRE(server != NULL && tenon_server_listen(server, "tcp://127.0.0.1:0", &error));
	REQUIRE(tenon_svc_add(server, PARCEL_PROGRAM, PARCEL_VERSION, parcel_program_1, false, &error));
	REQUIRE(tenon_server_start(server, &error));
	CLIENT *client = clnt_create(tenon_server_address(server, 0), PARCEL_PROGRAM, PARCEL_VERSION, "tcp");
	REQUIRE(client != NULL);
	encode(&part);
	u_int whole = part.count;
	for (part.count = 0; part.count < whole; part.count += BYTES_PER_XDR_UNIT)
		REQUIRE(weigh(client, &part, &weight) == RPC_CANTDECODEARGS);
	REQUIRE(weigh(client, &part, &weight) == RPC_SUCCESS);
	REQUIRE(weight == 42);
	clnt_destroy(client);
	tenon_server_free(server);
	puts("fine");
	return 0;
}
