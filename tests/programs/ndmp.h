/*
 * What the interfaces of NDMP leave to amanda, for a comparison of routines without the rest of it.
 */
#include <rpc/rpc.h>

#define xdr_ndmp2_u_quad xdr_u_quad_t
#define xdr_ndmp3_u_quad xdr_u_quad_t
#define xdr_ndmp4_u_quad xdr_u_quad_t
#define xdr_ndmp9_u_quad xdr_u_quad_t

/* Each file has it; it is a routine without parameters there. */
__attribute__ ((weak)) bool_t
xdr_ndmp9_no_arguments()
{
	return TRUE;
}
