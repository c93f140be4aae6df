/* An interface, written by hand as generated code has it. */
#ifndef NOTES_H
#define NOTES_H

#include <tenon.h>

enum { TEXT_MAX = 64, NUMBERS_MAX = 1 << 20 };

typedef struct note {
    uint32_t number;
    char *text;
} note;

typedef struct numbers {
    uint32_t count;
    uint32_t *at;
} numbers;

/* By their places in the interface. */
enum { ECHO, REFUSE, WAIT, WHO, REVERSE, DIE, LARGE, UNSERVED, PROCEDURES };

extern const tenon_interface notes;
/* The same program, but built from something else. */
extern const tenon_interface notes_changed;
/* A program that nobody serves. */
extern const tenon_interface nobody;

#endif
