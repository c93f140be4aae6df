/*
 * What foreign.x leaves to C: numbers that the interface does not define, and a type with its routine.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <rpc/rpc.h>

#define KIND_NUMBERS 7
enum { KIND_TEXT = 9, FIRST_LEVEL = 40 };
#define BLOCK_BYTES 13
#define ROW_LENGTH 3
#define NAME_MAX_BYTES 20
#define MOST_NUMBERS 6
#define PROGRAM_NUMBER 0x20005151
#define SHADE_NUMBER 3
#define LARGE (1LL << 40)

typedef enum { DARK, LIGHT = 5 } shade;
extern bool_t xdr_shade(XDR *, shade *);

#endif
