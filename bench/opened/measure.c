/*
 * Times encoding into memory that is there, and decoding and freeing, of the types of measured.x: by generated routines, and by
 * the interface opened at run time. With RPCGEN defined, the header and the routines are rpcgen's, otherwise those of
 * `tenon gen --lang c`.
 *
 *     measure FILE.x [OPENED.x...]
 *
 * A row is a name and nanoseconds: those of the fastest of ROUNDS. Behind them, what opening each OPENED.x takes.
 */
#include "measured.h"

#include <tenon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 21, ENTRIES = 32, NUMBERS = 1000 };

/* How long a round is to take, in nanoseconds. */
static const double ROUND = 2e6;

#ifdef RPCGEN
#define WHO "libtirpc"
#define LAYOUT TENON_LAYOUT_RPCGEN
typedef char byte;
#else
#define WHO "generated"
#define LAYOUT TENON_LAYOUT_STUBS
typedef uint8_t byte;
#endif

struct work {
	const char *name;
#ifdef RPCGEN
	xdrproc_t routine;
#else
	const tenon_message *stub;
#endif
	const tenon_message *opened;
	void *value;
	unsigned char *bytes;
	size_t length;
};

static unsigned char room[1 << 20];
static union { listing listing; numbers numbers; attributes attributes; } place;

static void
check(bool is_done, const char *what)
{
	if (!is_done) {
		fprintf(stderr, "measure: %s fails\n", what);
		exit(1);
	}
}

/* The contestants. */

#ifdef RPCGEN
static void
stub_encode(struct work *work)
{
	XDR stream;

	xdrmem_create(&stream, (char *)room, sizeof room, XDR_ENCODE);
	check(work->routine(&stream, work->value), "xdr encode");
}

static void
stub_decode(struct work *work)
{
	XDR stream;

	memset(&place, 0, work->opened->size);
	xdrmem_create(&stream, (char *)work->bytes, (u_int)work->length, XDR_DECODE);
	check(work->routine(&stream, &place), "xdr decode");
	xdr_free(work->routine, (char *)&place);
}
#else
static bool
grow(tenon_encoder *encoder, size_t more)
{
	(void)encoder, (void)more;
	return false;
}

static void
stub_encode(struct work *work)
{
	tenon_encoder out = { room, room, room + sizeof room, grow, 128, { TENON_FINE, 0, 0, 0, NULL } };

	check(work->stub->encode_xdr(&out, work->value), "stub encode");
}

static void
stub_decode(struct work *work)
{
	tenon_decoder in = { work->bytes, work->bytes, work->bytes + work->length, 64 * work->length + 65536, 128,
			     false, { TENON_FINE, 0, 0, 0, NULL } };

	memset(&place, 0, work->opened->size);
	check(work->stub->decode_xdr(&in, &place), "stub decode");
	if (work->stub->free != NULL)
		work->stub->free(&place);
}
#endif

static void
opened_encode(struct work *work)
{
	check(tenon_encode(work->opened, TENON_XDR, work->value, room, sizeof room, NULL, NULL), "encode");
}

static void
opened_decode(struct work *work)
{
	check(tenon_decode(work->opened, TENON_XDR, work->bytes, work->length, &place, NULL, NULL), "decode");
	tenon_clear(work->opened, &place);
}

/* Time. */

static double
now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* What other processes take of the processor is in the others. */
static double
fastest(const double *times)
{
	double least = times[0];
	int round;

	for (round = 1; round < ROUNDS; round++)
		if (times[round] < least)
			least = times[round];
	return least;
}

static void
measure(struct work *work, const char *who, const char *what, void (*act)(struct work *))
{
	double times[ROUNDS], before = now(), once;
	long count, at;
	int round;

	/* The first thousand are interpreted. */
	for (at = 0; at < 2000; at++)
		act(work);
	before = now();
	for (at = 0; at < 1000; at++)
		act(work);
	once = (now() - before) / 1000;
	count = (long)(ROUND / once) + 1;
	for (round = 0; round < ROUNDS; round++) {
		before = now();
		for (at = 0; at < count; at++)
			act(work);
		times[round] = (now() - before) / (double)count;
	}
	printf("%s %s %s %.0f\n", work->name, what, who, fastest(times));
}

static void
measure_opening(const char *path, tenon_engine engine, const char *who)
{
	tenon_open_options options = TENON_OPEN_OPTIONS;
	double times[ROUNDS], before;
	int round;

	options.engine = engine;
	for (round = 0; round < ROUNDS; round++) {
		tenon_error error;
		tenon_interface_file *file;

		before = now();
		file = tenon_interface_open(path, &options, &error);
		times[round] = now() - before;
		if (file == NULL) {
			tenon_error_print(&error, path);
			exit(1);
		}
		tenon_interface_free(file);
	}
	printf("%s open %s %.0f\n", strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1, who, fastest(times));
}

int
main(int argc, char **argv)
{
	static attributes known = { REG, 0644, 1, 1000, 1000, 4096, 8192, 0, 0, 77, 123456, { 1, 2 }, { 3, 4 }, { 5, 6 } };
	static entry entries[ENTRIES];
	static char names[ENTRIES][16];
	static byte handle[32];
	static int values[NUMBERS];
	numbers many = { NUMBERS, values };
	listing folder;
	struct work works[] = {
#ifdef RPCGEN
		{ "attributes", (xdrproc_t)xdr_attributes, NULL, &known, NULL, 0 },
		{ "listing", (xdrproc_t)xdr_listing, NULL, &folder, NULL, 0 },
		{ "numbers", (xdrproc_t)xdr_numbers, NULL, &many, NULL, 0 },
#else
		{ "attributes", &attributes_message, NULL, &known, NULL, 0 },
		{ "listing", &listing_message, NULL, &folder, NULL, 0 },
		{ "numbers", &numbers_message, NULL, &many, NULL, 0 },
#endif
	};
	tenon_open_options options = TENON_OPEN_OPTIONS;
	tenon_interface_file *file, *interpreted;
	tenon_error error;
	size_t at;
	int each;

	memset(&folder, 0, sizeof folder);
	for (at = 0; at < ENTRIES; at++) {
		snprintf(names[at], sizeof names[at], "file-%zu.txt", at);
		entries[at].fileid = at;
		entries[at].name = names[at];
		entries[at].known = &known;
		entries[at].handle.handle_len = sizeof handle;
		entries[at].handle.handle_val = handle;
		entries[at].next = at + 1 < ENTRIES ? &entries[at + 1] : NULL;
	}
	folder.listing_u.entries = entries;
	options.layout = LAYOUT;
	file = tenon_interface_open(argv[1], &options, &error);
	options.engine = TENON_ENGINE_INTERPRETED;
	interpreted = tenon_interface_open(argv[1], &options, &error);
	check(file != NULL && interpreted != NULL, error.text);
	for (at = 0; at < sizeof works / sizeof *works; at++) {
		struct work *work = &works[at];

		work->opened = tenon_interface_type(file, work->name, &error);
		check(work->opened != NULL, error.text);
		work->bytes = tenon_encode_alloc(work->opened, TENON_XDR, work->value, 0, &work->length, &error);
		check(work->bytes != NULL, error.text);
		measure(work, WHO, "encode", stub_encode);
		check(memcmp(room, work->bytes, work->length) == 0, "the same bytes");
		measure(work, "opened", "encode", opened_encode);
		measure(work, WHO, "decode", stub_decode);
		measure(work, "opened", "decode", opened_decode);
		work->opened = tenon_interface_type(interpreted, work->name, &error);
		measure(work, "interpreted", "encode", opened_encode);
		measure(work, "interpreted", "decode", opened_decode);
		free(work->bytes);
	}
	tenon_interface_free(file);
	tenon_interface_free(interpreted);
	for (each = 2; each < argc; each++) {
		measure_opening(argv[each], TENON_ENGINE_ADAPTIVE, "adaptive");
		measure_opening(argv[each], TENON_ENGINE_COMPILED, "compiled");
	}
	return 0;
}
