/* Messages of Tenon as streams of libtirpc. */
#ifndef TENON_TIRPC_STREAM_H
#define TENON_TIRPC_STREAM_H

#include <rpc/rpc.h>
#include <tenon.h>

#pragma GCC visibility push(hidden)

/* A stream that writes behind what is written. */
void tenon_xdr_write(XDR *xdrs, tenon_encoder *out);

/* A stream that reads what is left, and how what it has read is left out. */
void tenon_xdr_read(XDR *xdrs, tenon_decoder *in);
void tenon_xdr_took(XDR *xdrs, tenon_decoder *in);

#pragma GCC visibility pop

#endif
