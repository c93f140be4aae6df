/*
 * Stands before the C library's memcpy and memmove, and counts the bytes of long copies: those of threads whose names
 * begin with "client", and those of all others. Written to standard error when the process ends.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

/* Headers and what is gathered beside a message are shorter; its parts are not. */
#define LONG 32768

static atomic_ullong of_client, of_others;

static void count(size_t length)
{
	char name[16] = "";
	if (length < LONG)
		return;
	prctl(PR_GET_NAME, name);
	int is_client = name[0] == 'c' && name[1] == 'l' && name[2] == 'i';
	atomic_fetch_add(is_client ? &of_client : &of_others, length);
}

/* By one instruction, as a loop would be made into a call of what is defined here. */
static void forward(void *to, const void *from, size_t length)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
	count(length);
	forward(to, from, length);
	return to;
}

void *memmove(void *to, const void *from, size_t length)
{
	count(length);
	if ((char *)to - (char *)from >= 0 && (char *)to < (const char *)from + length) {
		char *end = (char *)to + length - 1;
		const char *last = (const char *)from + length - 1;
		size_t left = length;
		__asm__ volatile("std; rep movsb; cld" : "+D"(end), "+S"(last), "+c"(left) : : "memory");
		return to;
	}
	forward(to, from, length);
	return to;
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr, "copied %llu %llu\n", of_client, of_others);
}
