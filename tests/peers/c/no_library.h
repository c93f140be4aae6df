/*
 * What stubs for tenon.h call of the library, for programs that move messages and call nobody: it fails.
 */
#ifndef NO_LIBRARY_H
#define NO_LIBRARY_H

#include <tenon.h>

bool
tenon_call(tenon_channel *channel, const tenon_procedure *procedure, const void *arguments, void *result,
	   tenon_error *error)
{
	(void)channel, (void)procedure, (void)arguments, (void)result, (void)error;
	return false;
}

tenon_pending *
tenon_start(tenon_channel *channel, const tenon_procedure *procedure, const void *arguments, tenon_error *error)
{
	(void)channel, (void)procedure, (void)arguments, (void)error;
	return NULL;
}

bool
tenon_ping(tenon_channel *channel, tenon_error *error)
{
	(void)channel, (void)error;
	return false;
}

bool
tenon_server_add(tenon_server *server, const tenon_interface *interface, const tenon_handler *handlers,
		 const void *methods, void *context, tenon_order order, tenon_error *error)
{
	(void)server, (void)interface, (void)handlers, (void)methods, (void)context, (void)order, (void)error;
	return false;
}

#endif
