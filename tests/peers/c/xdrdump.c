/*
 * Decodes and encodes again, by the routines that rpcgen wrote for one interface.
 *
 * Standard input is a sequence of requests: the length of a type's name, the name, the length of an
 * encoding, the encoding. Each is answered on standard output: a status, how many bytes were
 * decoded, the length of the new encoding, the new encoding. Numbers are 32 bits, big-endian.
 *
 * XDR_TYPES, a file written by the build, holds one TYPE(name) per type; INTERFACE_H is the header.
 */
#include INTERFACE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything here is called dump_something where an interface might use the plain word. */
enum dump_status { DUMP_DONE = 0, DUMP_UNDECODED = 1, DUMP_UNENCODED = 2, DUMP_UNKNOWN = 3 };

/* No request of a test is larger. */
enum { DUMP_BYTES_MAX = 64 << 20 };

struct dump_type {
	const char *name;
	xdrproc_t routine;
	size_t size;
};

static const struct dump_type types[] = {
#define TYPE(name) { #name, (xdrproc_t)xdr_##name, sizeof(name) },
#include XDR_TYPES
#undef TYPE
	{ NULL, NULL, 0 }
};

static const struct dump_type *
find_type(const char *name)
{
	const struct dump_type *type = types;
	while (type->name != NULL && strcmp(type->name, name) != 0)
		type++;
	return type->name == NULL ? NULL : type;
}

static void
give_up(const char *why)
{
	fprintf(stderr, "xdrdump: %s\n", why);
	exit(1);
}

/* The next number; ends the process at the end of the input. */
static uint32_t
read_number(void)
{
	uint32_t number;
	if (fread(&number, sizeof number, 1, stdin) != 1)
		exit(0);
	return ntohl(number);
}

/* A length and that many bytes, with a terminating zero. */
static char *
read_bytes(uint32_t *length)
{
	*length = read_number();
	if (*length > DUMP_BYTES_MAX)
		give_up("a request is too long");
	char *bytes = malloc(*length + 1);
	if (bytes == NULL || fread(bytes, 1, *length, stdin) != *length)
		give_up("a request is cut off");
	bytes[*length] = 0;
	return bytes;
}

static void
write_number(uint32_t number)
{
	number = htonl(number);
	fwrite(&number, sizeof number, 1, stdout);
}

static void
answer(enum dump_status status, uint32_t consumed, const char *bytes, uint32_t length)
{
	write_number(status);
	write_number(consumed);
	write_number(length);
	fwrite(bytes, 1, length, stdout);
}

static void
encode(const struct dump_type *type, void *value, uint32_t consumed)
{
	XDR stream;
	u_int length = xdr_sizeof(type->routine, value);
	char *bytes = malloc(length + 1);

	xdrmem_create(&stream, bytes, length, XDR_ENCODE);
	if (type->routine(&stream, value))
		answer(DUMP_DONE, consumed, bytes, xdr_getpos(&stream));
	else
		answer(DUMP_UNENCODED, consumed, "", 0);
	free(bytes);
}

static void
decode_and_encode(const struct dump_type *type, char *bytes, uint32_t length)
{
	XDR stream;
	void *value = calloc(1, type->size + 1);

	xdrmem_create(&stream, bytes, length, XDR_DECODE);
	if (type->routine(&stream, value))
		encode(type, value, xdr_getpos(&stream));
	else
		answer(DUMP_UNDECODED, xdr_getpos(&stream), "", 0);
	xdr_free(type->routine, value);
	free(value);
}

int
main(void)
{
	for (;;) {
		uint32_t name_length, length;
		char *name = read_bytes(&name_length);
		char *bytes = read_bytes(&length);
		const struct dump_type *type = find_type(name);

		if (type == NULL)
			answer(DUMP_UNKNOWN, 0, "", 0);
		else
			decode_and_encode(type, bytes, length);
		fflush(stdout);
		free(name);
		free(bytes);
	}
}
