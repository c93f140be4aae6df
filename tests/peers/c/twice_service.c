/* The procedure of twice.x. */
#include "twice.h"

int *
twice_1_svc(int *number, struct svc_req *request)
{
	static int result;

	(void)request;
	result = 2 * *number;
	return &result;
}
