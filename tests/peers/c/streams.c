/*
 * Decodes and encodes again, as xdrdump does, by every kind of stream that libtirpc has: all have to
 * agree. It speaks the protocol of xdrdump, and has one status more.
 *
 * XDR_TYPES, a file written by the build, holds one TYPE(name) per type; INTERFACE_H is the header.
 */
#include INTERFACE_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything here is called dump_something where an interface might use the plain word. */
enum dump_status {
	DUMP_DONE = 0,
	DUMP_UNDECODED = 1,
	DUMP_UNENCODED = 2,
	DUMP_UNKNOWN = 3,
	DUMP_DIFFERENT = 4
};

/* How bytes come and go. */
enum dump_kind { DUMP_MEMORY, DUMP_UNALIGNED, DUMP_RECORD, DUMP_STDIO, DUMP_KINDS };

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

/* Bytes that a record stream reads from or writes to. */
struct dump_bytes {
	char *at;
	size_t length, done;
};

static void
give_up(const char *why)
{
	fprintf(stderr, "streams: %s\n", why);
	exit(1);
}

static void *
have(size_t bytes)
{
	void *memory = calloc(1, bytes + 1);
	if (memory == NULL)
		give_up("no memory");
	return memory;
}

static const struct dump_type *
find_type(const char *name)
{
	const struct dump_type *type = types;
	while (type->name != NULL && strcmp(type->name, name) != 0)
		type++;
	return type->name == NULL ? NULL : type;
}

/* Hands out a few bytes at a time, as a socket does. */
static int
take(void *handle, void *to, int length)
{
	struct dump_bytes *from = handle;
	size_t left = from->length - from->done;
	size_t now = left < 1000 ? left : 1000;
	if (now > (size_t)length)
		now = (size_t)length;
	if (now == 0)
		return -1;
	memcpy(to, from->at + from->done, now);
	from->done += now;
	return (int)now;
}

static int
give(void *handle, void *from, int length)
{
	struct dump_bytes *to = handle;
	to->at = realloc(to->at, to->done + (size_t)length + 1);
	if (to->at == NULL)
		give_up("no memory");
	memcpy(to->at + to->done, from, (size_t)length);
	to->done += (size_t)length;
	return length;
}

/* The bytes of a value behind one another, as record marking has them: fragments of 700 bytes. */
static struct dump_bytes
as_record(const char *bytes, uint32_t length)
{
	struct dump_bytes record = { have(length + 4 * (length / 700 + 1)), 0, 0 };
	uint32_t done = 0;
	do {
		uint32_t now = length - done < 700 ? length - done : 700;
		uint32_t mark = htonl(now | (done + now == length ? 0x80000000u : 0));
		memcpy(record.at + record.length, &mark, 4);
		memcpy(record.at + record.length + 4, bytes + done, now);
		record.length += 4 + now;
		done += now;
	} while (done < length);
	return record;
}

/* What is in fragments, without their marks; the length. */
static uint32_t
out_of_record(struct dump_bytes *record)
{
	size_t from = 0, to = 0;
	while (from + 4 <= record->done) {
		uint32_t mark;
		memcpy(&mark, record->at + from, 4);
		mark = ntohl(mark) & 0x7fffffffu;
		memmove(record->at + to, record->at + from + 4, mark);
		from += 4 + mark;
		to += mark;
	}
	return (uint32_t)to;
}

/* Decodes; how many bytes were used comes back by `used'. */
static bool_t
decode(const struct dump_type *type, void *value, enum dump_kind kind, const char *bytes,
    uint32_t length, uint32_t *used)
{
	XDR stream;
	bool_t done;
	struct dump_bytes record;
	char *copy;
	FILE *file;

	switch (kind) {
	case DUMP_MEMORY:
	case DUMP_UNALIGNED:
		copy = have(length + 1);
		memcpy(copy + (kind == DUMP_UNALIGNED), bytes, length);
		xdrmem_create(&stream, copy + (kind == DUMP_UNALIGNED), length, XDR_DECODE);
		done = type->routine(&stream, value);
		*used = xdr_getpos(&stream);
		free(copy);
		return done;
	case DUMP_RECORD:
		record = as_record(bytes, length);
		memset(&stream, 0, sizeof stream);
		xdrrec_create(&stream, 0, 4000, &record, take, give);
		stream.x_op = XDR_DECODE;
		xdrrec_skiprecord(&stream);
		done = type->routine(&stream, value);
		*used = done && xdrrec_eof(&stream) ? length : 0;
		xdr_destroy(&stream);
		free(record.at);
		return done;
	default:
		copy = have(length);
		memcpy(copy, bytes, length);
		file = fmemopen(copy, length + 1, "r");
		if (file == NULL)
			give_up("no file");
		xdrstdio_create(&stream, file, XDR_DECODE);
		done = type->routine(&stream, value);
		*used = (uint32_t)ftell(file);
		xdr_destroy(&stream);
		fclose(file);
		free(copy);
		return done;
	}
}

/* Encodes a value whose encoding has so many bytes; NULL if that fails. */
static char *
encode(const struct dump_type *type, void *value, enum dump_kind kind, uint32_t *length)
{
	XDR stream;
	bool_t done;
	struct dump_bytes record = { NULL, 0, 0 };
	char *bytes = NULL;
	size_t written = 0;
	FILE *file;

	switch (kind) {
	case DUMP_MEMORY:
	case DUMP_UNALIGNED:
		bytes = have(*length + 1);
		xdrmem_create(&stream, bytes + (kind == DUMP_UNALIGNED), *length, XDR_ENCODE);
		done = type->routine(&stream, value);
		*length = xdr_getpos(&stream);
		memmove(bytes, bytes + (kind == DUMP_UNALIGNED), *length);
		break;
	case DUMP_RECORD:
		memset(&stream, 0, sizeof stream);
		xdrrec_create(&stream, 400, 0, &record, take, give);
		stream.x_op = XDR_ENCODE;
		done = type->routine(&stream, value) && xdrrec_endofrecord(&stream, TRUE);
		xdr_destroy(&stream);
		*length = out_of_record(&record);
		bytes = record.at;
		break;
	default:
		file = open_memstream(&bytes, &written);
		if (file == NULL)
			give_up("no file");
		xdrstdio_create(&stream, file, XDR_ENCODE);
		done = type->routine(&stream, value);
		xdr_destroy(&stream);
		fclose(file);
		*length = (uint32_t)written;
		break;
	}
	if (done)
		return bytes;
	free(bytes);
	return NULL;
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
	char *bytes = have(*length);
	if (fread(bytes, 1, *length, stdin) != *length)
		give_up("a request is cut off");
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
	if (length > 0)
		fwrite(bytes, 1, length, stdout);
}

/* Encodes by so many kinds of stream; the status says how it went, `first' is the encoding. */
static enum dump_status
encode_all(const struct dump_type *type, void *value, int kinds, char **first, uint32_t *length)
{
	int kind;
	*length = (uint32_t)xdr_sizeof(type->routine, value);
	for (kind = 0; kind < kinds; kind++) {
		uint32_t other_length = *length;
		char *other = encode(type, value, (enum dump_kind)kind, &other_length);
		bool_t same;

		if (other == NULL)
			return DUMP_UNENCODED;
		if (kind == 0) {
			*first = other;
			*length = other_length;
			continue;
		}
		same = other_length == *length && memcmp(*first, other, *length) == 0;
		free(other);
		if (!same)
			return DUMP_DIFFERENT;
	}
	return DUMP_DONE;
}

static void
recode(const struct dump_type *type, const char *bytes, uint32_t length)
{
	char *first = NULL;
	uint32_t consumed = 0, first_length = 0;
	enum dump_status status = DUMP_DONE;
	int kind;

	for (kind = 0; kind < DUMP_KINDS && status == DUMP_DONE; kind++) {
		void *value = have(type->size);
		uint32_t used = 0, other_length = 0;
		char *other = NULL;

		if (!decode(type, value, (enum dump_kind)kind, bytes, length, &used))
			status = kind == 0 ? DUMP_UNDECODED : DUMP_DIFFERENT;
		else
			status = encode_all(type, value, kind == 0 ? DUMP_KINDS : 1, &other, &other_length);
		xdr_free(type->routine, value);
		free(value);
		if (kind == 0) {
			first = other;
			first_length = other_length;
			consumed = used;
			continue;
		}
		if (status == DUMP_DONE && (used != consumed || other_length != first_length
		    || memcmp(first, other, first_length) != 0))
			status = DUMP_DIFFERENT;
		free(other);
	}
	answer(status, consumed, first, status == DUMP_DONE ? first_length : 0);
	free(first);
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
			recode(type, bytes, length);
		fflush(stdout);
		free(name);
		free(bytes);
	}
}
