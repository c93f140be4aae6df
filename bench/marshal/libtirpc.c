/* The door to rpcgen's routines: what is marshalled by its name, and memory streams. */
#include <stdlib.h>
#include <string.h>
#include <rpc/rpc.h>
#include "marshal.h"

struct work {
    const char *name;
    xdrproc_t xdr;
    size_t size;
};

static const struct work works[] = {
    {"int", (xdrproc_t)xdr_int, sizeof(int)},
    {"ints", (xdrproc_t)xdr_Ints, sizeof(Ints)},
    {"structure", (xdrproc_t)xdr_Structure, sizeof(Structure)},
    {"members1000", (xdrproc_t)xdr_Members1000, sizeof(Members1000)},
    {"mesh", (xdrproc_t)xdr_Mesh, sizeof(Mesh)},
    {"log", (xdrproc_t)xdr_Log, sizeof(Log)},
};

/* NULL if there is none of this name. */
const struct work *marshal_work(const char *name)
{
    for (size_t at = 0; at < sizeof works / sizeof *works; at++)
        if (strcmp(works[at].name, name) == 0)
            return &works[at];
    return NULL;
}

/* Room for a value, all zeroes: xdr routines allocate what NULL points to. */
void *marshal_room(const struct work *work)
{
    return calloc(1, work->size);
}

/* The bytes written, or 0. */
unsigned marshal_encode(const struct work *work, void *value, char *bytes, unsigned room)
{
    XDR xdrs;
    xdrmem_create(&xdrs, bytes, room, XDR_ENCODE);
    return work->xdr(&xdrs, value) ? xdr_getpos(&xdrs) : 0;
}

/* Decodes into memory that is there already, or allocates what is not. */
int marshal_decode(const struct work *work, void *value, char *bytes, unsigned length)
{
    XDR xdrs;
    xdrmem_create(&xdrs, bytes, length, XDR_DECODE);
    return work->xdr(&xdrs, value);
}

void marshal_free(const struct work *work, void *value)
{
    xdr_free(work->xdr, value);
}

/* Decodes into memory of its own and frees it, as a server does with arguments. */
int marshal_decode_fresh(const struct work *work, void *room, char *bytes, unsigned length)
{
    memset(room, 0, work->size);
    int done = marshal_decode(work, room, bytes, length);
    marshal_free(work, room);
    return done;
}
