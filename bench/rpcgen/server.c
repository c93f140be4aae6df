/*
 * Sends back what it gets. Arguments live until the reply is sent.
 */
#include "echo.h"
#include "transport.h"

extern void echo_program_1(struct svc_req *, SVCXPRT *);

Ints *
echo_ints_1_svc(Ints *all, struct svc_req *request)
{
	return all;
}

Structure *
echo_structure_1_svc(Structure *all, struct svc_req *request)
{
	return all;
}

Members1000 *
echo_members1000_1_svc(Members1000 *all, struct svc_req *request)
{
	return all;
}

Directory *
echo_directory_1_svc(Directory *all, struct svc_req *request)
{
	return all;
}

static void
enlist(SVCXPRT *transport)
{
	REQUIRE(svc_reg(transport, ECHO_PROGRAM, ECHO_VERSION, echo_program_1, NULL));
}

int
main(int argc, char **argv)
{
	serve(argc, argv, enlist);
	return 1;
}
