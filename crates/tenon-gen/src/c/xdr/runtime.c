/*
 * What specialised xdr_ routines share. The generator copies the parts that an interface uses, each
 * from its mark to the next, into the file that it writes; so all of them are static. Every routine
 * works with any handle of libtirpc: where XDR_INLINE gives no room, bytes go through a small
 * space or straight through the handle's own procedures.
 */
#include <rpc/rpc.h>

/*@ tenon_includes */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

/*@ TENON_INLINE_MAX */
/* Most bytes that a handle is asked for at once: some count with signed numbers. */
#define TENON_INLINE_MAX 0x1000000u

/*@ TENON_UNPAID_MAX */
/* Bytes of memory that a count alone may take; more comes as the elements come. */
#define TENON_UNPAID_MAX 65536u

/*@ TENON_DEPTH_MAX */
/* How deep values of recursive types may nest, but for lists: each level takes some of the stack. */
#ifndef TENON_DEPTH_MAX
#define TENON_DEPTH_MAX 1024
#endif

/*@ tenon_depth */
static __thread u_int tenon_depth;

/*@ TENON_AVX2 */
#if defined (__GNUC__) && defined (__x86_64__)
#define TENON_AVX2 1
#include <immintrin.h>
#endif

/*@ tenon_reverse_avx2 */
#ifdef TENON_AVX2
/* Copies vectors and puts the bytes of each half into this order. */
__attribute__ ((target ("avx2")))
static void
tenon_reverse_avx2 (char *to, const char *from, size_t bytes, const char *order16)
{
	const __m256i order = _mm256_broadcastsi128_si256 (_mm_loadu_si128 ((const __m128i *) (const void *) order16));
	size_t at = 0;

	for (; at + 64 <= bytes; at += 64) {
		__m256i first = _mm256_loadu_si256 ((const __m256i *) (const void *) (from + at));
		__m256i second = _mm256_loadu_si256 ((const __m256i *) (const void *) (from + at + 32));

		_mm256_storeu_si256 ((__m256i *) (void *) (to + at), _mm256_shuffle_epi8 (first, order));
		_mm256_storeu_si256 ((__m256i *) (void *) (to + at + 32), _mm256_shuffle_epi8 (second, order));
	}
	if (at < bytes) {
		__m256i last = _mm256_loadu_si256 ((const __m256i *) (const void *) (from + at));

		_mm256_storeu_si256 ((__m256i *) (void *) (to + at), _mm256_shuffle_epi8 (last, order));
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
		static const char order[16] = { 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12 };

		at = bytes & ~(size_t) 31;
		tenon_reverse_avx2 ((char *) to, (const char *) from, at, order);
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
		static const char order[16] = { 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8 };

		at = bytes & ~(size_t) 31;
		tenon_reverse_avx2 ((char *) to, (const char *) from, at, order);
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

/*@ tenon_put_hyper */
static __inline__ void
tenon_put_hyper (int32_t *at, uint64_t number)
{
	number = tenon_swapped8 (number);
	memcpy (at, &number, 8);
}

/*@ tenon_get_hyper */
static __inline__ uint64_t
tenon_get_hyper (const int32_t *at)
{
	uint64_t number;

	memcpy (&number, at, 8);
	return tenon_swapped8 (number);
}

/*@ tenon_put_float */
static __inline__ void
tenon_put_float (int32_t *at, float number)
{
	uint32_t bits;

	memcpy (&bits, &number, 4);
	*at = (int32_t) htonl (bits);
}

/*@ tenon_get_float */
static __inline__ float
tenon_get_float (const int32_t *at)
{
	uint32_t bits = ntohl ((uint32_t) *at);
	float number;

	memcpy (&number, &bits, 4);
	return number;
}

/*@ tenon_put_double */
static __inline__ void
tenon_put_double (int32_t *at, double number)
{
	uint64_t bits;

	memcpy (&bits, &number, 8);
	tenon_put_hyper (at, bits);
}

/*@ tenon_get_double */
static __inline__ double
tenon_get_double (const int32_t *at)
{
	uint64_t bits = tenon_get_hyper (at);
	double number;

	memcpy (&number, &bits, 8);
	return number;
}

/*@ tenon_room */
/* Room for so many bytes: in the stream, or else in a space whose bytes are put behind it later. */
static __inline__ int32_t *
tenon_room (XDR *xdrs, int32_t *space, u_int bytes)
{
	int32_t *buf = (int32_t *) XDR_INLINE (xdrs, bytes);

	return buf != NULL ? buf : space;
}

/*@ tenon_received */
/* So many bytes: in the stream, or else copied into a space. NULL if there are fewer. */
static __inline__ int32_t *
tenon_received (XDR *xdrs, int32_t *space, u_int bytes)
{
	int32_t *buf = (int32_t *) XDR_INLINE (xdrs, bytes);

	if (buf != NULL)
		return buf;
	return XDR_GETBYTES (xdrs, (char *) space, bytes) ? space : NULL;
}

/*@ tenon_run */
/* Room for, or the bytes of, elements one behind the other; NULL if not all are there at once. */
static __inline__ int32_t *
tenon_run (XDR *xdrs, u_int count, u_int size)
{
	if (count == 0 || (uint64_t) count * size > TENON_INLINE_MAX)
		return NULL;
	return (int32_t *) XDR_INLINE (xdrs, count * size);
}

/*@ tenon_put_word */
static __inline__ bool_t
tenon_put_word (XDR *xdrs, uint32_t word)
{
	int32_t *buf = (int32_t *) XDR_INLINE (xdrs, 4);
	int32_t there = (int32_t) htonl (word);

	if (buf == NULL)
		return XDR_PUTBYTES (xdrs, (char *) &there, 4);
	*buf = there;
	return TRUE;
}

/*@ tenon_get_word */
static __inline__ bool_t
tenon_get_word (XDR *xdrs, uint32_t *word)
{
	int32_t *buf = (int32_t *) XDR_INLINE (xdrs, 4);
	int32_t there;

	if (buf != NULL)
		there = *buf;
	else if (!XDR_GETBYTES (xdrs, (char *) &there, 4))
		return FALSE;
	*word = ntohl ((uint32_t) there);
	return TRUE;
}

/*@ tenon_put_numbers */
/* Puts a fixed number of numbers of 4 or 8 bytes. */
static bool_t
tenon_put_numbers (XDR *xdrs, const void *from, size_t numbers, u_int unit)
{
	const char *at = (const char *) from;
	uint64_t space[128];

	while (numbers > 0) {
		size_t most = TENON_INLINE_MAX / unit;
		size_t now = numbers < most ? numbers : most;
		void *to = XDR_INLINE (xdrs, (u_int) (now * unit));

		if (to == NULL) {
			now = now < sizeof (space) / unit ? now : sizeof (space) / unit;
			to = space;
		}
		if (unit == 4)
			tenon_swap4 (to, at, now);
		else
			tenon_swap8 (to, at, now);
		if (to == space && !XDR_PUTBYTES (xdrs, (char *) space, (u_int) (now * unit)))
			return FALSE;
		at += now * unit;
		numbers -= now;
	}
	return TRUE;
}

/*@ tenon_get_numbers */
/* Gets a fixed number of numbers of 4 or 8 bytes. */
static bool_t
tenon_get_numbers (XDR *xdrs, void *to, size_t numbers, u_int unit)
{
	char *at = (char *) to;

	while (numbers > 0) {
		size_t most = TENON_INLINE_MAX / unit;
		size_t now = numbers < most ? numbers : most;
		const void *from = XDR_INLINE (xdrs, (u_int) (now * unit));

		if (from == NULL) {
			if (!XDR_GETBYTES (xdrs, at, (u_int) (now * unit)))
				return FALSE;
			from = at;
		}
		if (unit == 4)
			tenon_swap4 (at, from, now);
		else
			tenon_swap8 (at, from, now);
		at += now * unit;
		numbers -= now;
	}
	return TRUE;
}

/*@ tenon_begin */
/*
 * Memory for elements of which so many are announced: what is there already, or as much as they have
 * paid for. `length' becomes the number of elements that there is memory for; what is not read yet is
 * zero, so that freeing is safe at any time. NULL if there is none.
 */
static void *
tenon_begin (void *memory, u_int *length, u_int count, size_t size, bool_t paid)
{
	u_int first = count;

	if (memory != NULL) {
		*length = count;
		return memory;
	}
	if (!paid && (uint64_t) count * size > TENON_UNPAID_MAX)
		first = (u_int) (TENON_UNPAID_MAX / size) + 1;
	if (first > count)
		first = count;
	memory = (uint64_t) count * size > UINT32_MAX ? NULL : calloc (first, size);
	*length = memory == NULL ? 0 : first;
	return memory;
}

/*@ tenon_more */
/* Twice as much memory, or as much as is needed. NULL, and nothing changed, if there is none. */
static void *
tenon_more (void *memory, u_int *length, u_int count, size_t size)
{
	u_int more = *length > count / 2 ? count : 2 * *length;
	char *moved = (char *) realloc (memory, more * size);

	if (moved == NULL)
		return NULL;
	memset (moved + *length * size, 0, (more - *length) * size);
	*length = more;
	return moved;
}

/*@ tenon_put_array */
/* Puts a count and so many items, each of some numbers of 4 or 8 bytes. */
static bool_t
tenon_put_array (XDR *xdrs, const void *from, u_int count, size_t size, u_int unit)
{
	size_t bytes = count * size;
	char *buf;

	if (from == NULL && count > 0)
		return FALSE;
	if (bytes >= TENON_INLINE_MAX || (buf = (char *) XDR_INLINE (xdrs, (u_int) (4 + bytes))) == NULL)
		return tenon_put_word (xdrs, count) && tenon_put_numbers (xdrs, from, bytes / unit, unit);
	*(int32_t *) (void *) buf = (int32_t) htonl (count);
	if (unit == 4)
		tenon_swap4 (buf + 4, from, bytes / 4);
	else
		tenon_swap8 (buf + 4, from, bytes / 8);
	return TRUE;
}

/*@ tenon_get_array */
/* Gets a count and so many items, each of some numbers of 4 or 8 bytes, and says where they are. */
static bool_t
tenon_get_array (XDR *xdrs, void *memory, void **to, u_int *length, u_int bound, size_t size, u_int unit)
{
	uint32_t count;
	u_int done = 0;
	int32_t *buf;

	*to = memory;
	if (!tenon_get_word (xdrs, &count) || count > bound || (uint64_t) count * size > UINT32_MAX)
		return FALSE;
	if (count == 0) {
		*length = 0;
		return TRUE;
	}
	buf = tenon_run (xdrs, count, (u_int) size);
	if (buf != NULL && memory == NULL) {
		*to = malloc (count * size);
		*length = *to == NULL ? 0 : count;
	} else {
		*to = tenon_begin (memory, length, count, size, FALSE);
	}
	if (*to == NULL)
		return FALSE;
	if (buf != NULL) {
		if (unit == 4)
			tenon_swap4 (*to, buf, count * size / 4);
		else
			tenon_swap8 (*to, buf, count * size / 8);
		return TRUE;
	}
	for (;;) {
		size_t numbers = (*length - done) * size / unit;
		void *more;

		if (!tenon_get_numbers (xdrs, (char *) *to + done * size, numbers, unit))
			return FALSE;
		if (*length == count)
			return TRUE;
		done = *length;
		more = tenon_more (*to, length, count, size);
		if (more == NULL)
			return FALSE;
		*to = more;
	}
}

/*@ tenon_put_bytes */
/* Puts a count, so many bytes, and zeros up to a multiple of 4. */
static bool_t
tenon_put_bytes (XDR *xdrs, const char *from, u_int count)
{
	u_int padded = (count + 3) & ~3u;
	char *buf;

	if (from == NULL && count > 0)
		return FALSE;
	if (count >= TENON_INLINE_MAX || (buf = (char *) XDR_INLINE (xdrs, 4 + padded)) == NULL)
		return tenon_put_word (xdrs, count) && xdr_opaque (xdrs, (char *) (uintptr_t) from, count);
	*(int32_t *) (void *) buf = (int32_t) htonl (count);
	if (count > 0) {
		memset (buf + padded, 0, 4);
		memcpy (buf + 4, from, count);
	}
	return TRUE;
}

/*@ tenon_get_opaque */
/* Gets so many bytes and their padding into memory that is there. */
static bool_t
tenon_get_opaque (XDR *xdrs, char *to, u_int count)
{
	u_int padded = (count + 3) & ~3u;
	const char *buf;

	if (count == 0)
		return TRUE;
	if (count >= TENON_INLINE_MAX || (buf = (const char *) XDR_INLINE (xdrs, padded)) == NULL)
		return xdr_opaque (xdrs, to, count);
	memcpy (to, buf, count);
	return TRUE;
}

/*@ tenon_get_bytes */
/*
 * Gets so many bytes and their padding into `to', or into new memory, which has room for `behind' more
 * that are zero.
 */
static bool_t
tenon_get_bytes (XDR *xdrs, char **to, u_int count, u_int behind)
{
	u_int padded = (count + 3) & ~3u;
	u_int done = 0, first = TENON_UNPAID_MAX;
	const char *buf = NULL;

	if (*to != NULL)
		return tenon_get_opaque (xdrs, *to, count);
	if (count > 0 && count < TENON_INLINE_MAX)
		buf = (const char *) XDR_INLINE (xdrs, padded);
	if (buf != NULL) {
		*to = (char *) malloc ((size_t) count + behind);
		if (*to == NULL)
			return FALSE;
		memcpy (*to, buf, count);
		memset (*to + count, 0, behind);
		return TRUE;
	}
	if (count <= first) {
		*to = (char *) calloc ((size_t) count + behind, 1);
		return *to != NULL && (count == 0 || xdr_opaque (xdrs, *to, count));
	}
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

/*@ tenon_put_string */
static bool_t
tenon_put_string (XDR *xdrs, const char *from, u_int bound)
{
	size_t length = from == NULL ? 0 : strlen (from);

	if (from == NULL || length > bound)
		return FALSE;
	return tenon_put_bytes (xdrs, from, (u_int) length);
}

/*@ tenon_get_string */
static bool_t
tenon_get_string (XDR *xdrs, char **to, u_int bound)
{
	uint32_t count;

	if (!tenon_get_word (xdrs, &count) || count > bound || count > UINT32_MAX - 4)
		return FALSE;
	if (*to != NULL)
		(*to)[count] = 0;
	return tenon_get_bytes (xdrs, to, count, 1);
}

/*@ tenon_get_counted */
static bool_t
tenon_get_counted (XDR *xdrs, char **to, u_int *length, u_int bound)
{
	uint32_t count;

	if (!tenon_get_word (xdrs, &count) || count > bound || count > UINT32_MAX - 4)
		return FALSE;
	*length = count;
	return count == 0 || tenon_get_bytes (xdrs, to, count, 0);
}
