#include "stream.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

static tenon_encoder *encoder_of(XDR *xdrs) { return (tenon_encoder *)xdrs->x_private; }

static bool has_room(tenon_encoder *out, size_t bytes) {
    return (size_t)(out->end - out->at) >= bytes || out->grow(out, bytes);
}

static bool_t put_long(XDR *xdrs, const long *number) {
    tenon_encoder *out = encoder_of(xdrs);
    uint32_t word = htonl((uint32_t)*number);
    if (!has_room(out, sizeof word)) return FALSE;
    memcpy(out->at, &word, sizeof word);
    out->at += sizeof word;
    return TRUE;
}

static bool_t put_bytes(XDR *xdrs, const char *bytes, u_int count) {
    tenon_encoder *out = encoder_of(xdrs);
    if (!has_room(out, count)) return FALSE;
    if (count > 0) memcpy(out->at, bytes, count);
    out->at += count;
    return TRUE;
}

static u_int position(XDR *xdrs) {
    const tenon_encoder *out = encoder_of(xdrs);
    return (u_int)(out->at - out->base);
}

/* Back to what was written, and forth again as far as there is room: all of it is initialised. */
static bool_t go_to(XDR *xdrs, u_int to) {
    tenon_encoder *out = encoder_of(xdrs);
    if (to > (size_t)(out->end - out->base)) return FALSE;
    out->at = out->base + to;
    return TRUE;
}

static int32_t *hand_out(XDR *xdrs, u_int count) {
    tenon_encoder *out = encoder_of(xdrs);
    /* Who asks for room means words; elsewhere than at their own addresses not every machine takes them. */
    if (((uintptr_t)out->at & (sizeof(int32_t) - 1)) != 0 || count > INT_MAX || !has_room(out, count))
        return NULL;
    if (((uintptr_t)out->at & (sizeof(int32_t) - 1)) != 0) return NULL;
    void *room = out->at;
    out->at += count;
    return (int32_t *)room;
}

static bool_t get_long(XDR *xdrs, long *number) { return (void)xdrs, (void)number, FALSE; }
static bool_t get_bytes(XDR *xdrs, char *bytes, u_int count) {
    return (void)xdrs, (void)bytes, (void)count, FALSE;
}
static void destroy(XDR *xdrs) { (void)xdrs; }
static bool_t control(XDR *xdrs, int what, void *with) { return (void)xdrs, (void)what, (void)with, FALSE; }

void tenon_xdr_write(XDR *xdrs, tenon_encoder *out) {
    static const struct xdr_ops writing = {get_long, put_long, get_bytes, put_bytes, position,
                                           go_to,    hand_out, destroy,   control};
    memset(xdrs, 0, sizeof *xdrs);
    xdrs->x_op = XDR_ENCODE;
    xdrs->x_ops = &writing;
    xdrs->x_private = out;
}

void tenon_xdr_read(XDR *xdrs, tenon_decoder *in) {
    size_t left = (size_t)(in->end - in->at);
    /* Nothing is written there: a stream that reads has no other type. */
    char *from = (char *)(uintptr_t)in->at;
    xdrmem_create(xdrs, from, left > UINT_MAX ? UINT_MAX : (u_int)left, XDR_DECODE);
}

void tenon_xdr_took(XDR *xdrs, tenon_decoder *in) {
    in->at += xdr_getpos(xdrs);
    xdr_destroy(xdrs);
}
