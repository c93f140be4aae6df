/*
 * Recodes values of an interface that is opened at run time, beside the routines that were generated for it: whatever one
 * of them decodes, the other encodes to the same bytes, and frees. Requests and answers are those of xdrdump.c.
 *
 *     opened_recode FILE.x ENGINE
 *
 * XDR_TYPES holds one TYPE(name) per type, INTERFACE_H is the header. With RPCGEN defined, that and the routines are rpcgen's,
 * otherwise the stubs of Tenon.
 */
#include INTERFACE_H

#include <tenon.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dump_status { DUMP_DONE = 0, DUMP_UNDECODED = 1, DUMP_UNENCODED = 2, DUMP_UNKNOWN = 3, DUMP_DISAGREE = 4 };

enum { DUMP_BYTES_MAX = 64 << 20 };

struct dump_type {
	const char *name;
	size_t size, align;
#ifdef RPCGEN
	xdrproc_t routine;
#else
	const tenon_message *stub;
#endif
	const tenon_message *opened;
};

static struct dump_type types[] = {
#ifdef RPCGEN
#define TYPE(name) { #name, sizeof(name), __alignof__(name), (xdrproc_t)xdr_##name, NULL },
#else
#define TYPE(name) { #name, sizeof(name), __alignof__(name), &name##_message, NULL },
#endif
#include XDR_TYPES
#undef TYPE
};

enum { DUMP_TYPES = sizeof types / sizeof *types };

static void
give_up(const char *why, const char *what)
{
	fprintf(stderr, "opened_recode: %s: %s\n", what, why);
	exit(1);
}

static uint32_t
read_number(void)
{
	uint32_t number;
	if (fread(&number, sizeof number, 1, stdin) != 1)
		return UINT32_MAX;
	return ntohl(number);
}

static char *
read_bytes(uint32_t *length)
{
	char *bytes;

	*length = read_number();
	if (*length == UINT32_MAX)
		return NULL;
	bytes = *length > DUMP_BYTES_MAX ? NULL : malloc(*length + 1);
	if (bytes == NULL || fread(bytes, 1, *length, stdin) != *length)
		give_up("it is too long or cut off", "a request");
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
answer(enum dump_status status, size_t consumed, const void *bytes, size_t length)
{
	write_number(status);
	write_number((uint32_t)consumed);
	write_number((uint32_t)length);
	fwrite(bytes, 1, length, stdout);
}

/* What the generated routines do. */

static bool
stub_decode(const struct dump_type *type, char *bytes, size_t length, void *value)
{
#ifdef RPCGEN
	XDR stream;

	xdrmem_create(&stream, bytes, (u_int)length, XDR_DECODE);
	return type->routine(&stream, value);
#else
	size_t used;

	return tenon_decode(type->stub, TENON_XDR, bytes, length, value, &used, NULL);
#endif
}

static char *
stub_encode(const struct dump_type *type, void *value, size_t *length)
{
#ifdef RPCGEN
	u_int size = (u_int)xdr_sizeof(type->routine, value);
	char *bytes = malloc(size + 1);
	XDR stream;

	xdrmem_create(&stream, bytes, size, XDR_ENCODE);
	if (!type->routine(&stream, value)) {
		free(bytes);
		return NULL;
	}
	*length = xdr_getpos(&stream);
	return bytes;
#else
	return tenon_encode_alloc(type->stub, TENON_XDR, value, 0, length, NULL);
#endif
}

static void
stub_free(const struct dump_type *type, void *value)
{
#ifdef RPCGEN
	xdr_free(type->routine, value);
#else
	tenon_clear(type->stub, value);
#endif
}

static bool
same(const char *one, size_t one_length, const char *other, size_t other_length)
{
	return one != NULL && other != NULL && one_length == other_length && memcmp(one, other, one_length) == 0;
}

/* What the opened interface decodes the generated routines encode and free, and the other way round. */
static void
recode(const struct dump_type *type, char *bytes, size_t length)
{
	void *by_opened = calloc(1, type->size + 1), *by_stub = calloc(1, type->size + 1);
	char *crossed = NULL, *own = NULL, *crossed_back = NULL;
	size_t consumed = 0, lengths[3] = { 0, 0, 0 };
	tenon_error error;
	bool is_decoded = tenon_decode(type->opened, TENON_XDR, bytes, length, by_opened, &consumed, &error);

	if (is_decoded != stub_decode(type, bytes, length, by_stub))
		answer(DUMP_DISAGREE, consumed, "", 0);
	else if (!is_decoded)
		answer(DUMP_UNDECODED, 0, error.text, strlen(error.text));
	else {
		crossed = stub_encode(type, by_opened, &lengths[0]);
		own = tenon_encode_alloc(type->opened, TENON_XDR, by_opened, 0, &lengths[1], &error);
		crossed_back = tenon_encode_alloc(type->opened, TENON_XDR, by_stub, 0, &lengths[2], &error);
		if (!same(crossed, lengths[0], own, lengths[1]) || !same(own, lengths[1], crossed_back, lengths[2]))
			answer(DUMP_DISAGREE, consumed, "", 0);
		else
			answer(DUMP_DONE, consumed, own, lengths[1]);
	}
	/* Each frees what the other has made. */
	if (is_decoded)
		stub_free(type, by_opened);
	if (is_decoded)
		tenon_clear(type->opened, by_stub);
	else
		stub_free(type, by_stub);
	free(crossed);
	free(own);
	free(crossed_back);
	free(by_opened);
	free(by_stub);
}

static const struct dump_type *
find_type(const char *name)
{
	size_t at;

	for (at = 0; at < DUMP_TYPES; at++)
		if (strcmp(types[at].name, name) == 0)
			return &types[at];
	return NULL;
}

int
main(int argc, char **argv)
{
	tenon_open_options options = TENON_OPEN_OPTIONS;
	tenon_interface_file *file;
	tenon_error error;
	size_t at;

	if (argc != 3)
		give_up("FILE.x ENGINE", "arguments");
#ifdef RPCGEN
	options.layout = TENON_LAYOUT_RPCGEN;
#endif
	options.engine = (tenon_engine)atoi(argv[2]);
	file = tenon_interface_open(argv[1], &options, &error);
	if (file == NULL)
		give_up(error.text, argv[1]);
	for (at = 0; at < DUMP_TYPES; at++) {
		types[at].opened = tenon_interface_type(file, types[at].name, &error);
		if (types[at].opened == NULL)
			give_up(error.text, types[at].name);
		if (types[at].opened->size != types[at].size || types[at].opened->align != types[at].align)
			give_up("it has another size than in C", types[at].name);
	}
	for (;;) {
		uint32_t name_length, length;
		char *name = read_bytes(&name_length), *bytes;
		const struct dump_type *type;

		if (name == NULL)
			break;
		bytes = read_bytes(&length);
		type = find_type(name);
		if (type == NULL)
			answer(DUMP_UNKNOWN, 0, "", 0);
		else
			recode(type, bytes, length);
		fflush(stdout);
		free(name);
		free(bytes);
	}
	tenon_interface_free(file);
	return 0;
}
