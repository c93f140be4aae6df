/*
 * What specialised xdr_ routines share. The generator copies the parts that an interface uses, each
 * from its mark to the next, into the file that it writes; so all of them are static. Every routine
 * works with any handle of libtirpc: bytes of a stream in memory are moved where they lie, those of other
 * streams through room that the handle gives or through a small space.
 */
#include <rpc/rpc.h>

/*@ tenon_includes */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

/*@ TENON_ALWAYS_INLINE */
/* What is worth a copy at each place where it is used. */
#ifdef __GNUC__
#define TENON_ALWAYS_INLINE static __inline__ __attribute__ ((always_inline))
#else
#define TENON_ALWAYS_INLINE static
#endif

/*@ TENON_SHARED */
/* What is not. */
#ifdef __GNUC__
#define TENON_SHARED static __attribute__ ((noinline))
#else
#define TENON_SHARED static
#endif

/*@ TENON_SLOW */
/* What is called when something is unusual stays out of the way of what is called otherwise. */
#ifdef __GNUC__
#define TENON_SLOW static __attribute__ ((noinline))
#else
#define TENON_SLOW static
#endif

/*@ TENON_UNLIKELY */
#ifdef __GNUC__
#define TENON_UNLIKELY(condition) __builtin_expect (!!(condition), 0)
#else
#define TENON_UNLIKELY(condition) (condition)
#endif

/*@ TENON_UNUSED */
/* In front of what rpcgen declares and programs may look for. */
#ifdef __GNUC__
#define TENON_UNUSED __attribute__ ((unused))
#else
#define TENON_UNUSED
#endif

/*@ TENON_INLINE_MAX */
/* Most bytes that a handle is asked for at once: some count with signed numbers. */
#define TENON_INLINE_MAX 0x1000000u

/*@ TENON_UNPAID_MAX */
/* Bytes of memory that a count alone may take; more comes as the elements come. */
#define TENON_UNPAID_MAX 65536u

/*@ TENON_SHORT */
/* Bytes that the shortest strings have memory for: allocators take no less for fewer. */
#define TENON_SHORT 24

/*@ TENON_FEW */
/* Most bytes that are copied without a call. */
#define TENON_FEW 32

/*@ TENON_DEPTH_MAX */
/* How deep values of recursive types may nest, but for lists: each level takes some of the stack. */
#ifndef TENON_DEPTH_MAX
#define TENON_DEPTH_MAX 1024
#endif

/*@ tenon_depth */
static __thread u_int tenon_depth;

/*@ TENON_AVX2 */
#if defined (__GNUC__) && defined (__x86_64__)
#define TENON_AVX2 __attribute__ ((target ("avx2")))
typedef char tenon_vector __attribute__ ((vector_size (32)));

#if defined (__clang__) || __GNUC__ >= 12
#define TENON_SHUFFLE(vector, ...) __builtin_shufflevector (vector, vector, __VA_ARGS__)
#else
#define TENON_SHUFFLE(vector, ...) __builtin_shuffle (vector, (tenon_vector) { __VA_ARGS__ })
#endif
#define TENON_REVERSED4(vector) \
	TENON_SHUFFLE (vector, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, \
		       19, 18, 17, 16, 23, 22, 21, 20, 27, 26, 25, 24, 31, 30, 29, 28)
#define TENON_REVERSED8(vector) \
	TENON_SHUFFLE (vector, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, \
		       23, 22, 21, 20, 19, 18, 17, 16, 31, 30, 29, 28, 27, 26, 25, 24)
#endif

/*@ tenon_reverse4_avx2 */
#ifdef TENON_AVX2
/* Copies vectors of 32 bytes and reverses each number of 4 bytes; `to' may be `from'. */
TENON_AVX2
static void
tenon_reverse4_avx2 (char *to, const char *from, size_t bytes)
{
	size_t at = 0;

	for (; at + 64 <= bytes; at += 64) {
		tenon_vector first, second;

		memcpy (&first, from + at, 32);
		memcpy (&second, from + at + 32, 32);
		first = TENON_REVERSED4 (first);
		second = TENON_REVERSED4 (second);
		memcpy (to + at, &first, 32);
		memcpy (to + at + 32, &second, 32);
	}
	if (at < bytes) {
		tenon_vector last;

		memcpy (&last, from + at, 32);
		last = TENON_REVERSED4 (last);
		memcpy (to + at, &last, 32);
	}
}
#endif

/*@ tenon_reverse8_avx2 */
#ifdef TENON_AVX2
/* The same with numbers of 8 bytes. */
TENON_AVX2
static void
tenon_reverse8_avx2 (char *to, const char *from, size_t bytes)
{
	size_t at = 0;

	for (; at + 64 <= bytes; at += 64) {
		tenon_vector first, second;

		memcpy (&first, from + at, 32);
		memcpy (&second, from + at + 32, 32);
		first = TENON_REVERSED8 (first);
		second = TENON_REVERSED8 (second);
		memcpy (to + at, &first, 32);
		memcpy (to + at + 32, &second, 32);
	}
	if (at < bytes) {
		tenon_vector last;

		memcpy (&last, from + at, 32);
		last = TENON_REVERSED8 (last);
		memcpy (to + at, &last, 32);
	}
}
#endif

/*@ tenon_reversed4 */
static __inline__ uint32_t
tenon_reversed4 (uint32_t number)
{
	return number >> 24 | (number >> 8 & 0xff00u) | (number << 8 & 0xff0000u) | number << 24;
}

/*@ tenon_reverse4 */
/* Copies numbers of 4 bytes and changes the order of their bytes; `to' may be `from'. */
static void
tenon_reverse4 (void *to, const void *from, size_t numbers)
{
	size_t at = 0, bytes = 4 * numbers;

#ifdef TENON_AVX2
	if (numbers >= 16 && __builtin_cpu_supports ("avx2")) {
		at = bytes & ~(size_t) 31;
		tenon_reverse4_avx2 ((char *) to, (const char *) from, at);
	}
#endif
	for (; at < bytes; at += 4) {
		uint32_t number;

		memcpy (&number, (const char *) from + at, 4);
		number = tenon_reversed4 (number);
		memcpy ((char *) to + at, &number, 4);
	}
}

/*@ tenon_swap4 */
/* Copies numbers of 4 bytes between memory and the wire; `to' may be `from'. */
static void
tenon_swap4 (void *to, const void *from, size_t numbers)
{
	if (htonl (1) == 1)
		memmove (to, from, 4 * numbers);
	else
		tenon_reverse4 (to, from, numbers);
}

/*@ tenon_swap4_few */
/* The same, of few. */
static __inline__ void
tenon_swap4_few (void *to, const void *from, size_t numbers)
{
	size_t at;

	for (at = 0; at < 4 * numbers; at += 4) {
		uint32_t number;

		memcpy (&number, (const char *) from + at, 4);
		number = htonl (number);
		memcpy ((char *) to + at, &number, 4);
	}
}

/*@ tenon_swapped8 */
static __inline__ uint64_t
tenon_swapped8 (uint64_t number)
{
	if (htonl (1) == 1)
		return number;
	return ((uint64_t) htonl ((uint32_t) number) << 32) | htonl ((uint32_t) (number >> 32));
}

/*@ tenon_reversed8 */
static __inline__ uint64_t
tenon_reversed8 (uint64_t number)
{
	return (uint64_t) tenon_reversed4 ((uint32_t) number) << 32 | tenon_reversed4 ((uint32_t) (number >> 32));
}

/*@ tenon_reverse8 */
/* Copies numbers of 8 bytes and changes the order of their bytes; `to' may be `from'. */
static void
tenon_reverse8 (void *to, const void *from, size_t numbers)
{
	size_t at = 0, bytes = 8 * numbers;

#ifdef TENON_AVX2
	if (numbers >= 8 && __builtin_cpu_supports ("avx2")) {
		at = bytes & ~(size_t) 31;
		tenon_reverse8_avx2 ((char *) to, (const char *) from, at);
	}
#endif
	for (; at < bytes; at += 8) {
		uint64_t number;

		memcpy (&number, (const char *) from + at, 8);
		number = tenon_reversed8 (number);
		memcpy ((char *) to + at, &number, 8);
	}
}

/*@ tenon_swap8 */
/* Copies numbers of 8 bytes between memory and the wire; `to' may be `from'. */
static void
tenon_swap8 (void *to, const void *from, size_t numbers)
{
	if (htonl (1) == 1)
		memmove (to, from, 8 * numbers);
	else
		tenon_reverse8 (to, from, numbers);
}

/*@ tenon_swap */
/* The same with numbers of 4 or 8 bytes. */
static void
tenon_swap (void *to, const void *from, size_t numbers, u_int unit)
{
	if (unit == 4)
		tenon_swap4 (to, from, numbers);
	else
		tenon_swap8 (to, from, numbers);
}

/*@ tenon_put4 */
static __inline__ void
tenon_put4 (char *at, uint32_t number)
{
	number = htonl (number);
	memcpy (at, &number, 4);
}

/*@ tenon_get4 */
static __inline__ uint32_t
tenon_get4 (const char *at)
{
	uint32_t number;

	memcpy (&number, at, 4);
	return ntohl (number);
}

/*@ tenon_put8 */
static __inline__ void
tenon_put8 (char *at, uint64_t number)
{
	number = tenon_swapped8 (number);
	memcpy (at, &number, 8);
}

/*@ tenon_get8 */
static __inline__ uint64_t
tenon_get8 (const char *at)
{
	uint64_t number;

	memcpy (&number, at, 8);
	return tenon_swapped8 (number);
}

/*@ tenon_put_float */
static __inline__ void
tenon_put_float (char *at, float number)
{
	uint32_t bits;

	memcpy (&bits, &number, 4);
	tenon_put4 (at, bits);
}

/*@ tenon_get_float */
static __inline__ float
tenon_get_float (const char *at)
{
	uint32_t bits = tenon_get4 (at);
	float number;

	memcpy (&number, &bits, 4);
	return number;
}

/*@ tenon_put_double */
static __inline__ void
tenon_put_double (char *at, double number)
{
	uint64_t bits;

	memcpy (&bits, &number, 8);
	tenon_put8 (at, bits);
}

/*@ tenon_get_double */
static __inline__ double
tenon_get_double (const char *at)
{
	uint64_t bits = tenon_get8 (at);
	double number;

	memcpy (&number, &bits, 8);
	return number;
}

/*@ tenon_stream */
/*
 * A stream while a value goes through it. Functions hand the position on: of the bytes that are at hand, it is
 * where the next ones are read or written, and NULL once something was refused.
 */
struct tenon_stream {
	XDR *xdrs;
	char *end;			/* of the bytes at hand */
	bool_t is_memory;		/* they are those of the stream, and there are no others */
	uint64_t space[129];		/* otherwise: what is to be written, or was read, without room in the handle */
};

/*@ tenon_memory_ops */
/*
 * What tells streams in memory from others, aligned or not. Where they are and how much is left stands in their
 * handles; that it does is tried before it is believed.
 */
static const void *tenon_memory_ops[2];

#ifdef __GNUC__
static const void *
tenon_tried_ops (char *at)
{
	char word[4] = { 1, 2, 3, 4 };
	XDR xdrs;
	bool_t is_known;

	xdrmem_create (&xdrs, at, 8, XDR_ENCODE);
	is_known = (char *) xdrs.x_private == at && xdrs.x_handy == 8 && XDR_PUTBYTES (&xdrs, word, 4) &&
	    (char *) xdrs.x_private == at + 4 && xdrs.x_handy == 4;
	xdrs.x_private = at;
	xdrs.x_handy = 3;
	is_known = is_known && XDR_GETPOS (&xdrs) == 0 && !XDR_PUTBYTES (&xdrs, word, 4) && memcmp (at, word, 4) == 0;
	return is_known ? (const void *) xdrs.x_ops : NULL;
}

__attribute__ ((constructor))
static void
tenon_find_memory_ops (void)
{
	uint64_t bytes[2];

	tenon_memory_ops[0] = tenon_tried_ops ((char *) bytes);
	tenon_memory_ops[1] = tenon_tried_ops ((char *) bytes + 1);
}
#endif

/*@ tenon_enter */
/* Goes on where the stream is. */
static char *
tenon_enter (struct tenon_stream *s, XDR *xdrs)
{
	const void *ops = (const void *) xdrs->x_ops;
	char *at = (char *) s->space;

	s->xdrs = xdrs;
	s->is_memory = (ops == tenon_memory_ops[0] || ops == tenon_memory_ops[1]) && (u_int) xdrs->x_handy < 0x80000000u;
	if (s->is_memory) {
		at = (char *) xdrs->x_private;
		s->end = at + xdrs->x_handy;
	} else {
		s->end = xdrs->x_op == XDR_ENCODE ? at + sizeof (s->space) : at;
	}
	return at;
}

/*@ tenon_leave */
/* Leaves the stream behind what was moved; FALSE if that was refused. */
static bool_t
tenon_leave (struct tenon_stream *s, char *at)
{
	XDR *xdrs = s->xdrs;

	if (at == NULL)
		return FALSE;
	if (s->is_memory) {
		xdrs->x_private = at;
		xdrs->x_handy = (u_int) (s->end - at);
	} else if (xdrs->x_op == XDR_ENCODE && at > (char *) s->space) {
		return XDR_PUTBYTES (xdrs, (char *) s->space, (u_int) (at - (char *) s->space));
	}
	return TRUE;
}

/*@ tenon_marshal */
/* What a routine is: a function for each thing that it may be called for. */
static bool_t
tenon_marshal (XDR *xdrs, void *value, char *(*encode) (struct tenon_stream *, char *, void *),
	       char *(*decode) (struct tenon_stream *, char *, void *), void (*release) (XDR *, void *))
{
	struct tenon_stream s;
	char *at;

	switch (xdrs->x_op) {
	case XDR_ENCODE:
		at = tenon_enter (&s, xdrs);
		return tenon_leave (&s, encode (&s, at, value));
	case XDR_DECODE:
		at = tenon_enter (&s, xdrs);
		return tenon_leave (&s, decode (&s, at, value));
	case XDR_FREE:
		if (release != NULL)
			release (xdrs, value);
		return TRUE;
	}
	return FALSE;
}

/*@ tenon_call_alone */
/* Calls a routine that stands by itself. */
TENON_SHARED char *
tenon_call_alone (struct tenon_stream *s, char *at, xdrproc_t routine, void *value)
{
	if (!tenon_leave (s, at) || !(*routine) (s->xdrs, value))
		return NULL;
	return tenon_enter (s, s->xdrs);
}

/*@ tenon_lacks */
/* Whether fewer bytes are at hand. */
static __inline__ bool_t
tenon_lacks (const struct tenon_stream *s, const char *at, size_t bytes)
{
	return TENON_UNLIKELY ((size_t) (s->end - at) < bytes);
}

/*@ tenon_room */
/* Room for more bytes, at most those of the space: a stream in memory is full. */
TENON_SLOW char *
tenon_room (struct tenon_stream *s, char *at, size_t bytes)
{
	if (s->is_memory || bytes > sizeof (s->space) || !tenon_leave (s, at))
		return NULL;
	return (char *) s->space;
}

/*@ tenon_fetch */
/* Further bytes, at most those of the space: a stream in memory has none. */
TENON_SLOW char *
tenon_fetch (struct tenon_stream *s, size_t bytes)
{
	char *at;

	if (s->is_memory || bytes > sizeof (s->space))
		return NULL;
	at = (char *) XDR_INLINE (s->xdrs, (u_int) bytes);
	if (at == NULL) {
		at = (char *) s->space;
		if (!XDR_GETBYTES (s->xdrs, at, (u_int) bytes))
			return NULL;
	}
	s->end = at + bytes;
	return at;
}

/*@ tenon_nothing */
/* Where nothing is at hand, after bytes went past the space. */
static char *
tenon_nothing (struct tenon_stream *s)
{
	char *at = (char *) s->space;

	s->end = s->xdrs->x_op == XDR_ENCODE ? at + sizeof (s->space) : at;
	return at;
}

/*@ tenon_put_far */
/* Puts numbers of 4 or 8 bytes for which there is no room at hand. */
TENON_SLOW char *
tenon_put_far (struct tenon_stream *s, char *at, const char *from, size_t numbers, u_int unit)
{
	if (s->is_memory || !tenon_leave (s, at))
		return NULL;
	while (numbers > 0) {
		size_t now = numbers < TENON_INLINE_MAX / unit ? numbers : TENON_INLINE_MAX / unit;
		char *to = (char *) XDR_INLINE (s->xdrs, (u_int) (now * unit));

		if (to == NULL) {
			now = now < sizeof (s->space) / unit ? now : sizeof (s->space) / unit;
			to = (char *) s->space;
		}
		tenon_swap (to, from, now, unit);
		if (to == (char *) s->space && !XDR_PUTBYTES (s->xdrs, to, (u_int) (now * unit)))
			return NULL;
		from += now * unit;
		numbers -= now;
	}
	return tenon_nothing (s);
}

/*@ tenon_get_far */
/* Gets numbers of 4 or 8 bytes that are not at hand. */
TENON_SLOW char *
tenon_get_far (struct tenon_stream *s, char *to, size_t numbers, u_int unit)
{
	if (s->is_memory)
		return NULL;
	while (numbers > 0) {
		size_t now = numbers < TENON_INLINE_MAX / unit ? numbers : TENON_INLINE_MAX / unit;
		const char *from = (const char *) XDR_INLINE (s->xdrs, (u_int) (now * unit));

		if (from == NULL) {
			if (!XDR_GETBYTES (s->xdrs, to, (u_int) (now * unit)))
				return NULL;
			from = to;
		}
		tenon_swap (to, from, now, unit);
		to += now * unit;
		numbers -= now;
	}
	return tenon_nothing (s);
}

/*@ tenon_put_numbers */
/* Puts so many numbers of 4 or 8 bytes. */
TENON_SHARED char *
tenon_put_numbers (struct tenon_stream *s, char *at, const void *from, size_t numbers, u_int unit)
{
	if (tenon_lacks (s, at, numbers * unit))
		return tenon_put_far (s, at, (const char *) from, numbers, unit);
	tenon_swap (at, from, numbers, unit);
	return at + numbers * unit;
}

/*@ tenon_get_numbers */
/* Gets so many numbers of 4 or 8 bytes into memory that is there. */
TENON_SHARED char *
tenon_get_numbers (struct tenon_stream *s, char *at, void *to, size_t numbers, u_int unit)
{
	if (tenon_lacks (s, at, numbers * unit))
		return tenon_get_far (s, (char *) to, numbers, unit);
	tenon_swap (to, at, numbers, unit);
	return at + numbers * unit;
}

/*@ TENON_SMALL */
/* Bytes up to which memory is faster cleared here than by calloc, which has no small blocks at hand. */
#define TENON_SMALL 1024

/*@ tenon_new */
/* Memory for a value, which is zero. */
TENON_ALWAYS_INLINE void *
tenon_new (size_t size)
{
	void *memory = malloc (size);

#ifdef __GNUC__
	/* Or compilers make calloc of the two. */
	__asm__ ("" : "+r" (memory));
#endif
	if (memory != NULL)
		memset (memory, 0, size);
	return memory;
}

/*@ tenon_begin */
/*
 * Memory for elements of which so many are announced, each of at least so many bytes: what is there already, or as
 * much as they have paid for. `length' becomes the number of elements that there is memory for; what is not
 * read yet is zero, so that freeing is safe at any time. NULL if there is none.
 */
TENON_SHARED void *
tenon_begin (const struct tenon_stream *s, const char *at, void *memory, u_int *length, u_int count, size_t size,
	     u_int fewest)
{
	u_int first = count;

	*length = count;
	if (memory != NULL)
		return memory;
	*length = 0;
	if ((uint64_t) count * size > UINT32_MAX)
		return NULL;
	if (s->is_memory && fewest > 0) {
		if ((uint64_t) count * fewest > (uint64_t) (s->end - at))
			return NULL;
	} else if (count * size > TENON_UNPAID_MAX) {
		first = (u_int) (TENON_UNPAID_MAX / size) + 1;
	}
	if (first > count)
		first = count;
	memory = first * size <= TENON_SMALL ? tenon_new (first * size) : calloc (first, size);
	*length = memory == NULL ? 0 : first;
	return memory;
}

/*@ tenon_more */
/* Twice as much memory, or as much as is needed; the same, and `length' as it was, if there is none. */
TENON_SLOW void *
tenon_more (void *memory, u_int *length, u_int count, size_t size)
{
	u_int more = *length > count / 2 ? count : 2 * *length;
	char *moved = (char *) realloc (memory, more * size);

	if (moved == NULL)
		return memory;
	memset (moved + *length * size, 0, (more - *length) * size);
	*length = more;
	return moved;
}

/*@ tenon_put_array */
/* Puts a count and so many items, each of some numbers of 4 or 8 bytes. */
TENON_SHARED char *
tenon_put_array (struct tenon_stream *s, char *at, const void *from, u_int count, size_t size, u_int unit)
{
	if (from == NULL && count > 0)
		return NULL;
	if (tenon_lacks (s, at, 4) && (at = tenon_room (s, at, 4)) == NULL)
		return NULL;
	tenon_put4 (at, count);
	return tenon_put_numbers (s, at + 4, from, count * size / unit, unit);
}

/*@ tenon_get_array */
/* Gets a count, which is at hand, and so many items, each of some numbers of 4 or 8 bytes, and says where they are. */
TENON_SHARED char *
tenon_get_array (struct tenon_stream *s, char *at, void **to, u_int *length, u_int bound, size_t size, u_int unit)
{
	u_int count = tenon_get4 (at), done = 0;
	char *memory;

	at += 4;
	if (count > bound)
		return NULL;
	if (count == 0) {
		*length = 0;
		return at;
	}
	if (*to == NULL && (uint64_t) (s->end - at) >= (uint64_t) count * size) {
		/* All of it is written at once. */
		*to = malloc (count * size);
		*length = *to == NULL ? 0 : count;
	} else {
		*to = tenon_begin (s, at, *to, length, count, size, (u_int) size);
	}
	memory = (char *) *to;
	for (;;) {
		if (memory == NULL)
			return NULL;
		at = tenon_get_numbers (s, at, memory + done * size, (*length - done) * size / unit, unit);
		if (at == NULL || *length == count)
			return at;
		done = *length;
		*to = tenon_more (memory, length, count, size);
		memory = *length == done ? NULL : (char *) *to;
	}
}

/*@ tenon_copy */
/* Copies few bytes, by fewer branches than memcpy has. */
TENON_ALWAYS_INLINE void
tenon_copy (char *to, const char *from, size_t bytes)
{
	if (bytes > 16) {
		char first[16], last[16];

		memcpy (first, from, 16);
		memcpy (last, from + bytes - 16, 16);
		memcpy (to, first, 16);
		memcpy (to + bytes - 16, last, 16);
	} else if (bytes >= 8) {
		uint64_t first, last;

		memcpy (&first, from, 8);
		memcpy (&last, from + bytes - 8, 8);
		memcpy (to, &first, 8);
		memcpy (to + bytes - 8, &last, 8);
	} else if (bytes >= 4) {
		uint32_t first, last;

		memcpy (&first, from, 4);
		memcpy (&last, from + bytes - 4, 4);
		memcpy (to, &first, 4);
		memcpy (to + bytes - 4, &last, 4);
	} else if (bytes > 0) {
		to[0] = from[0];
		to[bytes / 2] = from[bytes / 2];
		to[bytes - 1] = from[bytes - 1];
	}
}

/*@ tenon_put_opaque */
/* Puts so many bytes, and zeros up to a multiple of 4. */
TENON_SHARED char *
tenon_put_opaque (struct tenon_stream *s, char *at, const char *from, size_t count)
{
	size_t padded = (count + 3) & ~(size_t) 3;

	if (count == 0)
		return at;
	if (tenon_lacks (s, at, padded)) {
		if (s->is_memory || count > UINT32_MAX || !tenon_leave (s, at) ||
		    !xdr_opaque (s->xdrs, (char *) (uintptr_t) from, (u_int) count))
			return NULL;
		return tenon_nothing (s);
	}
	memset (at + padded - 4, 0, 4);
	memcpy (at, from, count);
	return at + padded;
}

/*@ tenon_get_opaque */
/* Gets so many bytes and their padding into memory that is there. */
TENON_SHARED char *
tenon_get_opaque (struct tenon_stream *s, char *at, char *to, size_t count)
{
	size_t padded = (count + 3) & ~(size_t) 3;

	if (tenon_lacks (s, at, padded)) {
		if (s->is_memory || !xdr_opaque (s->xdrs, to, (u_int) count))
			return NULL;
		return tenon_nothing (s);
	}
	memcpy (to, at, count);
	return at + padded;
}

/*@ tenon_get_growing */
/*
 * Gets so many bytes and their padding, which are not at hand, into new memory that grows as they come. `behind'
 * more are zero.
 */
TENON_SLOW char *
tenon_get_growing (struct tenon_stream *s, char **to, u_int count, u_int behind)
{
	u_int done = 0, first = count < TENON_UNPAID_MAX ? count : TENON_UNPAID_MAX;

	if (s->is_memory)
		return NULL;
	/* Multiples of 4 have no padding, so the pieces are as good as the whole. */
	for (;;) {
		char *more = (char *) realloc (*to, (size_t) first + behind), *at;

		if (more == NULL)
			return NULL;
		*to = more;
		memset (more + done, 0, (size_t) (first - done) + behind);
		at = tenon_get_opaque (s, s->end, more + done, first - done);
		if (at == NULL || first == count)
			return at;
		done = first;
		first = first > count / 2 ? count : 2 * first;
	}
}

/*@ tenon_put_bytes */
/* Puts a count, and so many bytes. */
TENON_SHARED char *
tenon_put_bytes (struct tenon_stream *s, char *at, const char *from, u_int count)
{
	if (from == NULL && count > 0)
		return NULL;
	if (tenon_lacks (s, at, 4) && (at = tenon_room (s, at, 4)) == NULL)
		return NULL;
	tenon_put4 (at, count);
	return tenon_put_opaque (s, at + 4, from, count);
}

/*@ tenon_get_counted */
/* Gets a count, which is at hand, and so many bytes. */
TENON_SHARED char *
tenon_get_counted (struct tenon_stream *s, char *at, char **to, u_int *length, u_int bound)
{
	u_int count = tenon_get4 (at);
	size_t padded = ((size_t) count + 3) & ~(size_t) 3;

	at += 4;
	if (count > bound)
		return NULL;
	*length = count;
	if (count == 0)
		return at;
	if (*to != NULL)
		return tenon_get_opaque (s, at, *to, count);
	if (tenon_lacks (s, at, padded))
		return tenon_get_growing (s, to, count, 0);
	*to = (char *) malloc (count);
	if (*to == NULL)
		return NULL;
	memcpy (*to, at, count);
	return at + padded;
}

/*@ tenon_put_string */
TENON_ALWAYS_INLINE char *
tenon_put_string (struct tenon_stream *s, char *at, const char *from, u_int bound)
{
	size_t length, padded;

	if (from == NULL)
		return NULL;
	length = strlen (from);
	if (length > bound)
		return NULL;
	padded = (length + 3) & ~(size_t) 3;
	if (length > TENON_FEW || tenon_lacks (s, at, 4 + padded))
		return tenon_put_bytes (s, at, from, (u_int) length);
	/* Of an empty string, these are the count. */
	memset (at + padded, 0, 4);
	tenon_put4 (at, (uint32_t) length);
	tenon_copy (at + 4, from, length);
	return at + 4 + padded;
}

/*@ tenon_put_text */
/* The same, where it is not worth a copy. */
TENON_SHARED char *
tenon_put_text (struct tenon_stream *s, char *at, const char *from, u_int bound)
{
	return tenon_put_string (s, at, from, bound);
}

/*@ tenon_get_known_string */
/* Gets a string of so many bytes into memory that is there. */
TENON_SHARED char *
tenon_get_known_string (struct tenon_stream *s, char *at, char *to, u_int count)
{
	size_t padded = ((size_t) count + 3) & ~(size_t) 3;

	to[count] = 0;
	if (count > TENON_FEW || tenon_lacks (s, at, padded))
		return tenon_get_opaque (s, at, to, count);
	tenon_copy (to, at, count);
	return at + padded;
}

/*@ tenon_get_long_string */
/* Gets a string of so many bytes into new memory. */
TENON_SHARED char *
tenon_get_long_string (struct tenon_stream *s, char *at, char **to, u_int count)
{
	size_t padded = ((size_t) count + 3) & ~(size_t) 3;
	char *text;

	if (count == UINT32_MAX)
		return NULL;
	if (tenon_lacks (s, at, padded))
		return tenon_get_growing (s, to, count, 1);
	text = (char *) malloc ((size_t) count + 1);
	if (text == NULL)
		return NULL;
	if (count > TENON_FEW)
		memcpy (text, at, count);
	else
		tenon_copy (text, at, count);
	text[count] = 0;
	*to = text;
	return at + padded;
}

/*@ tenon_get_string */
/* Gets a string, whose count is at hand. */
TENON_ALWAYS_INLINE char *
tenon_get_string (struct tenon_stream *s, char *at, char **to, u_int bound)
{
	uint32_t count = tenon_get4 (at);

	at += 4;
	if (count > bound)
		return NULL;
	if (*to != NULL)
		return tenon_get_known_string (s, at, *to, count);
	if (count < TENON_SHORT && s->end - at >= TENON_SHORT) {
		char *text = (char *) malloc (TENON_SHORT);

		if (text == NULL)
			return NULL;
		memcpy (text, at, TENON_SHORT);
		text[count] = 0;
		*to = text;
		return at + ((count + 3) & ~3u);
	}
	return tenon_get_long_string (s, at, to, count);
}

/*@ tenon_get_text */
/* The same, where it is not worth a copy. */
TENON_SHARED char *
tenon_get_text (struct tenon_stream *s, char *at, char **to, u_int bound)
{
	return tenon_get_string (s, at, to, bound);
}

/*@ tenon_xdr_growing */
/* Gets so many bytes and their padding into new memory that grows as they come; `behind' more are zero. */
TENON_SHARED bool_t
tenon_xdr_growing (XDR *xdrs, char **to, u_int count, u_int behind)
{
	u_int done = 0, first = count < TENON_UNPAID_MAX ? count : TENON_UNPAID_MAX;

	/* Multiples of 4 have no padding, so the pieces are as good as the whole. */
	for (;;) {
		char *more = (char *) realloc (*to, (size_t) first + behind);

		if (more == NULL)
			return FALSE;
		*to = more;
		memset (more + done, 0, (size_t) (first - done) + behind);
		if (!xdr_opaque (xdrs, more + done, first - done))
			return FALSE;
		if (first == count)
			return TRUE;
		done = first;
		first = first > count / 2 ? count : 2 * first;
	}
}

/*@ tenon_xdr_string */
/* As libtirpc's xdr_string, but that a count is not believed. */
TENON_SHARED bool_t
tenon_xdr_string (XDR *xdrs, char **text, u_int bound)
{
	size_t length = xdrs->x_op == XDR_ENCODE && *text != NULL ? strlen (*text) : 0;
	u_int count = (u_int) length;

	if (xdrs->x_op == XDR_FREE) {
		free (*text);
		*text = NULL;
		return TRUE;
	}
	if (length > bound || (xdrs->x_op == XDR_ENCODE && *text == NULL))
		return FALSE;
	if (!xdr_u_int (xdrs, &count) || count > bound || count == UINT32_MAX)
		return FALSE;
	if (*text == NULL)
		return tenon_xdr_growing (xdrs, text, count, 1);
	if (xdrs->x_op == XDR_DECODE)
		(*text)[count] = 0;
	return xdr_opaque (xdrs, *text, count);
}

/*@ tenon_xdr_bytes */
/* As libtirpc's xdr_bytes, but that a count is not believed. */
TENON_SHARED bool_t
tenon_xdr_bytes (XDR *xdrs, char **bytes, u_int *length, u_int bound)
{
	if (xdrs->x_op == XDR_FREE) {
		free (*bytes);
		*bytes = NULL;
		return TRUE;
	}
	if (!xdr_u_int (xdrs, length) || *length > bound)
		return FALSE;
	if (*length == 0)
		return TRUE;
	if (*bytes == NULL)
		return xdrs->x_op == XDR_DECODE && tenon_xdr_growing (xdrs, bytes, *length, 0);
	return xdr_opaque (xdrs, *bytes, *length);
}

/*@ tenon_xdr_begin */
/*
 * Memory for elements of which so many are announced: what is there already, or a little in advance. `length' becomes
 * the number of elements that there is memory for; what is not read yet is zero, so that freeing is safe at
 * any time. NULL if there is none.
 */
static void *
tenon_xdr_begin (void *memory, u_int *length, u_int count, size_t size)
{
	u_int first = count * (uint64_t) size > TENON_UNPAID_MAX ? (u_int) (TENON_UNPAID_MAX / size) + 1 : count;

	if (first > count)
		first = count;
	*length = count;
	if (memory != NULL)
		return memory;
	memory = (uint64_t) count * size > UINT32_MAX ? NULL : calloc (first, size);
	*length = memory == NULL ? 0 : first;
	return memory;
}

/*@ tenon_xdr_pieces */
/* Moves numbers of 4 or 8 bytes for which a stream has no room, or which it has not, at once. */
TENON_SHARED bool_t
tenon_xdr_pieces (XDR *xdrs, char *at, size_t numbers, u_int unit)
{
	while (numbers > 0) {
		uint64_t space[128];
		size_t now = numbers < TENON_INLINE_MAX / unit ? numbers : TENON_INLINE_MAX / unit;
		char *there = (char *) XDR_INLINE (xdrs, (u_int) (now * unit));

		if (there == NULL && now > sizeof (space) / unit)
			now = sizeof (space) / unit;
		if (xdrs->x_op == XDR_ENCODE) {
			tenon_swap (there == NULL ? (char *) space : there, at, now, unit);
			if (there == NULL && !XDR_PUTBYTES (xdrs, (char *) space, (u_int) (now * unit)))
				return FALSE;
		} else {
			if (there == NULL && !XDR_GETBYTES (xdrs, (char *) space, (u_int) (now * unit)))
				return FALSE;
			tenon_swap (at, there == NULL ? (char *) space : there, now, unit);
		}
		at += now * unit;
		numbers -= now;
	}
	return TRUE;
}

/*@ tenon_xdr_put_numbers */
/* Puts a count, and so many numbers of 4 or 8 bytes. */
static bool_t
tenon_xdr_put_numbers (XDR *xdrs, char *from, u_int count, u_int unit)
{
	size_t bytes = (size_t) count * unit;
	char *to;

	if (from == NULL && count > 0)
		return FALSE;
	if (bytes >= TENON_INLINE_MAX || (to = (char *) XDR_INLINE (xdrs, (u_int) (4 + bytes))) == NULL)
		return xdr_u_int (xdrs, &count) && tenon_xdr_pieces (xdrs, from, count, unit);
	tenon_put4 (to, count);
	tenon_swap (to + 4, from, count, unit);
	return TRUE;
}

/*@ tenon_xdr_get_numbers */
/* Gets so many numbers of 4 or 8 bytes, and says where they are. */
static bool_t
tenon_xdr_get_numbers (XDR *xdrs, void **to, u_int *length, u_int count, u_int unit)
{
	size_t bytes = (size_t) count * unit;
	u_int done = 0;
	char *from;

	if (*to == NULL && bytes < TENON_INLINE_MAX && (from = (char *) XDR_INLINE (xdrs, (u_int) bytes)) != NULL) {
		*to = malloc (bytes);
		*length = *to == NULL ? 0 : count;
		if (*to == NULL)
			return FALSE;
		tenon_swap (*to, from, count, unit);
		return TRUE;
	}
	*to = tenon_xdr_begin (*to, length, count, unit);
	while (*to != NULL) {
		if (!tenon_xdr_pieces (xdrs, (char *) *to + (size_t) done * unit, *length - done, unit))
			return FALSE;
		done = *length;
		if (done == count)
			return TRUE;
		*to = tenon_more (*to, length, count, unit);
		if (*length == done)
			return FALSE;
	}
	return FALSE;
}

/*@ tenon_xdr_numbers */
/* An array of numbers of 4 or 8 bytes; `elements' is where the pointer to them is. */
TENON_SHARED bool_t
tenon_xdr_numbers (XDR *xdrs, void *elements, u_int *length, u_int bound, u_int unit)
{
	u_int count = *length;
	void *memory;
	bool_t done = TRUE;

	memcpy (&memory, elements, sizeof (memory));
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return count <= bound && tenon_xdr_put_numbers (xdrs, (char *) memory, count, unit);
	case XDR_DECODE:
		if (!xdr_u_int (xdrs, &count) || count > bound)
			return FALSE;
		if (count == 0)
			*length = 0;
		else
			done = tenon_xdr_get_numbers (xdrs, &memory, length, count, unit);
		break;
	case XDR_FREE:
		free (memory);
		memory = NULL;
	}
	memcpy (elements, &memory, sizeof (memory));
	return done;
}

/*@ tenon_xdr_array */
/* As libtirpc's xdr_array, but that a count is not believed; `elements' is where the pointer to them is. */
TENON_SHARED bool_t
tenon_xdr_array (XDR *xdrs, void *elements, u_int *length, u_int bound, size_t size, xdrproc_t routine)
{
	u_int index, count = *length;
	char *memory;

	memcpy (&memory, elements, sizeof (memory));
	if (xdrs->x_op != XDR_FREE && (!xdr_u_int (xdrs, &count) || count > bound))
		return FALSE;
	if (xdrs->x_op == XDR_DECODE) {
		*length = count;
		if (count > 0)
			memory = (char *) tenon_xdr_begin (memory, length, count, size);
		memcpy (elements, &memory, sizeof (memory));
	}
	if (memory == NULL)
		return xdrs->x_op == XDR_FREE || count == 0;
	for (index = 0; index < count; index++) {
		if (xdrs->x_op == XDR_DECODE && index == *length) {
			memory = (char *) tenon_more (memory, length, count, size);
			memcpy (elements, &memory, sizeof (memory));
			if (index == *length)
				return FALSE;
		}
		if (!(*routine) (xdrs, memory + index * size) && xdrs->x_op != XDR_FREE)
			return FALSE;
	}
	if (xdrs->x_op == XDR_FREE) {
		free (memory);
		memset (elements, 0, sizeof (memory));
	}
	return TRUE;
}

/*@ tenon_xdr_link */
/* What leads from an element of a list to the next; `pointer' is where that is, and `next' becomes it. */
TENON_SHARED bool_t
tenon_xdr_link (XDR *xdrs, void *pointer, size_t size, void **next)
{
	bool_t more;

	memcpy (next, pointer, sizeof (*next));
	more = *next != NULL;
	if (xdrs->x_op == XDR_FREE) {
		memset (pointer, 0, sizeof (*next));
		return TRUE;
	}
	if (!xdr_bool (xdrs, &more))
		return FALSE;
	if (!more)
		*next = NULL;
	else if (*next == NULL && (*next = calloc (1, size)) == NULL)
		return FALSE;
	memcpy (pointer, next, sizeof (*next));
	return TRUE;
}

/*@ tenon_xdr_deeper */
/* The routine of a type that may hold others of its kind: who sends it does not choose how deep. */
static bool_t
tenon_xdr_deeper (XDR *xdrs, void *value, xdrproc_t routine)
{
	bool_t done;

	if (xdrs->x_op == XDR_DECODE && tenon_depth == TENON_DEPTH_MAX)
		return FALSE;
	tenon_depth++;
	done = (*routine) (xdrs, value);
	tenon_depth--;
	return done;
}
