/*
 * What the codecs of stubs share. The generator copies the parts that an interface uses, each from its mark to
 * the next, into the file that it writes; so all of them are static. What reverses many numbers at once
 * comes from the runtime of xdr_ routines.
 *
 * "swapped" says everywhere whether numbers on the wire have another order than in memory.
 */
#include <tenon.h>
#include <stdlib.h>
#include <string.h>

/*@ TENON_COLD */
/* What is called when something is wrong stays out of the way of what is called when nothing is. */
#ifdef __GNUC__
#define TENON_COLD __attribute__ ((cold, noinline))
#else
#define TENON_COLD
#endif

/*@ TENON_BIG_SWAPS */
/* Whether numbers that are sent with their most significant byte first are reversed. */
#if defined (__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TENON_BIG_SWAPS false
#else
#define TENON_BIG_SWAPS true
#endif

/*@ TENON_LITTLE_SWAPS */
#define TENON_LITTLE_SWAPS (!TENON_BIG_SWAPS)

/*@ tenon_note */
TENON_COLD static void
tenon_note (tenon_failure *failure, tenon_failure_kind kind, size_t offset, uint64_t first, uint64_t second,
	    const char *field)
{
	failure->kind = kind;
	failure->offset = offset;
	failure->first = first;
	failure->second = second;
	failure->field = field;
}

/*@ tenon_fail */
/* Refuses a value that is to be sent. */
static inline bool
tenon_fail (tenon_encoder *out, tenon_failure_kind kind, uint64_t first, uint64_t second, const char *field)
{
	tenon_note (&out->failure, kind, 0, first, second, field);
	return false;
}

/*@ tenon_fail_at */
/* Refuses what lies at `at'. */
static inline bool
tenon_fail_at (tenon_decoder *in, const unsigned char *at, tenon_failure_kind kind, uint64_t first, uint64_t second,
	       const char *field)
{
	tenon_note (&in->failure, kind, (size_t) (at - in->base), first, second, field);
	return false;
}

/*@ tenon_unknown */
/* Refuses the value at `at', which its type does not have. */
static inline bool
tenon_unknown (tenon_decoder *in, const unsigned char *at, int64_t value, const char *field)
{
	return tenon_fail_at (in, at, TENON_UNKNOWN_VALUE, (uint64_t) value, 0, field);
}

/*@ tenon_room */
/* Room for so many bytes; NULL if there is none, and the library has said why. */
static inline unsigned char *
tenon_room (tenon_encoder *out, size_t bytes, const char *field)
{
	unsigned char *to = out->at;

	if ((size_t) (out->end - to) < bytes) {
		if (!out->grow (out, bytes)) {
			if (out->failure.field == NULL)
				out->failure.field = field;
			return NULL;
		}
		to = out->at;
	}
	out->at = to + bytes;
	return to;
}

/*@ tenon_take */
/* The next so many bytes; NULL if there are fewer. */
static inline const unsigned char *
tenon_take (tenon_decoder *in, size_t bytes, const char *field)
{
	const unsigned char *from = in->at;
	size_t left = (size_t) (in->end - from);

	if (left < bytes) {
		tenon_fail_at (in, from, TENON_TRUNCATED, bytes, left, field);
		return NULL;
	}
	in->at = from + bytes;
	return from;
}

/*@ tenon_put1 */
static inline void
tenon_put1 (unsigned char *to, uint32_t number)
{
	*to = (unsigned char) number;
}

/*@ tenon_put2 */
static inline void
tenon_put2 (unsigned char *to, uint32_t number, bool swapped)
{
	uint16_t there = (uint16_t) (swapped ? (number >> 8 & 0xff) | (number & 0xff) << 8 : number);

	memcpy (to, &there, 2);
}

/*@ tenon_put4 */
static inline void
tenon_put4 (unsigned char *to, uint32_t number, bool swapped)
{
	uint32_t there = swapped ? tenon_reversed4 (number) : number;

	memcpy (to, &there, 4);
}

/*@ tenon_put8 */
static inline void
tenon_put8 (unsigned char *to, uint64_t number, bool swapped)
{
	uint64_t there = swapped ? tenon_reversed8 (number) : number;

	memcpy (to, &there, 8);
}

/*@ tenon_get1 */
static inline uint8_t
tenon_get1 (const unsigned char *from)
{
	return *from;
}

/*@ tenon_get2 */
static inline uint16_t
tenon_get2 (const unsigned char *from, bool swapped)
{
	uint16_t there;

	memcpy (&there, from, 2);
	return (uint16_t) (swapped ? there >> 8 | (there & 0xff) << 8 : there);
}

/*@ tenon_get4 */
static inline uint32_t
tenon_get4 (const unsigned char *from, bool swapped)
{
	uint32_t there;

	memcpy (&there, from, 4);
	return swapped ? tenon_reversed4 (there) : there;
}

/*@ tenon_get8 */
static inline uint64_t
tenon_get8 (const unsigned char *from, bool swapped)
{
	uint64_t there;

	memcpy (&there, from, 8);
	return swapped ? tenon_reversed8 (there) : there;
}

/*@ tenon_float_bits */
static inline uint32_t
tenon_float_bits (float number)
{
	uint32_t bits;

	memcpy (&bits, &number, 4);
	return bits;
}

/*@ tenon_double_bits */
static inline uint64_t
tenon_double_bits (double number)
{
	uint64_t bits;

	memcpy (&bits, &number, 8);
	return bits;
}

/*@ tenon_float_of */
static inline float
tenon_float_of (uint32_t bits)
{
	float number;

	memcpy (&number, &bits, 4);
	return number;
}

/*@ tenon_double_of */
static inline double
tenon_double_of (uint64_t bits)
{
	double number;

	memcpy (&number, &bits, 8);
	return number;
}

/*@ tenon_copy */
/* Copies bytes; of none, there need be no memory. */
static inline void
tenon_copy (void *to, const void *from, size_t bytes)
{
	if (bytes > 0)
		memcpy (to, from, bytes);
}

/*@ tenon_few2 */
/* Moves a few numbers, so few that compilers write them out. */
static inline void
tenon_few2 (void *to, const void *from, size_t numbers, bool swapped)
{
	size_t at;

	for (at = 0; at < 2 * numbers; at += 2)
		tenon_put2 ((unsigned char *) to + at, tenon_get2 ((const unsigned char *) from + at, swapped), false);
}

/*@ tenon_few4 */
/* Moves a few numbers, so few that compilers write them out. */
static inline void
tenon_few4 (void *to, const void *from, size_t numbers, bool swapped)
{
	size_t at;

	for (at = 0; at < 4 * numbers; at += 4)
		tenon_put4 ((unsigned char *) to + at, tenon_get4 ((const unsigned char *) from + at, swapped), false);
}

/*@ tenon_few8 */
/* Moves a few numbers, so few that compilers write them out. */
static inline void
tenon_few8 (void *to, const void *from, size_t numbers, bool swapped)
{
	size_t at;

	for (at = 0; at < 8 * numbers; at += 8)
		tenon_put8 ((unsigned char *) to + at, tenon_get8 ((const unsigned char *) from + at, swapped), false);
}

/*@ tenon_move2 */
/* Moves numbers of 2 bytes. */
static inline void
tenon_move2 (void *to, const void *from, size_t numbers, bool swapped)
{
	if (swapped)
		tenon_few2 (to, from, numbers, true);
	else
		tenon_copy (to, from, 2 * numbers);
}

/*@ tenon_move4 */
/* Moves numbers of 4 bytes. */
static inline void
tenon_move4 (void *to, const void *from, size_t numbers, bool swapped)
{
	if (swapped)
		tenon_reverse4 (to, from, numbers);
	else
		tenon_copy (to, from, 4 * numbers);
}

/*@ tenon_move8 */
/* Moves numbers of 8 bytes. */
static inline void
tenon_move8 (void *to, const void *from, size_t numbers, bool swapped)
{
	if (swapped)
		tenon_reverse8 (to, from, numbers);
	else
		tenon_copy (to, from, 8 * numbers);
}

/*@ tenon_zero */
static inline void
tenon_zero (unsigned char *at, size_t bytes)
{
	if (bytes > 0)
		memset (at, 0, bytes);
}

/*@ tenon_align */
/* Zeros up to where what lies `before' bytes further is at a multiple of `to'. */
static inline bool
tenon_align (tenon_encoder *out, size_t to, size_t before, const char *field)
{
	size_t hole = (0 - ((size_t) (out->at - out->base) + before)) & (to - 1);
	unsigned char *at = tenon_room (out, hole, field);

	if (at == NULL)
		return false;
	tenon_zero (at, hole);
	return true;
}

/*@ tenon_skip */
/* Skips as much; what a hole holds does not matter. */
static inline bool
tenon_skip (tenon_decoder *in, size_t to, size_t before, const char *field)
{
	size_t hole = (0 - ((size_t) (in->at - in->base) + before)) & (to - 1);

	return tenon_take (in, hole, field) != NULL;
}

/*@ tenon_begin */
/* Puts the count of elements of which each takes so many bytes, and makes room for them behind it. */
static inline unsigned char *
tenon_begin (tenon_encoder *out, uint32_t count, const void *elements, uint32_t bound, size_t bytes, bool swapped,
	     const char *field)
{
	unsigned char *to;

	if (count > bound) {
		tenon_fail (out, TENON_TOO_LONG, count, bound, field);
		return NULL;
	}
	if (count > 0 && elements == NULL) {
		tenon_fail (out, TENON_NULL, 0, 0, field);
		return NULL;
	}
	if (bytes > 0 && count > (SIZE_MAX - 4) / bytes) {
		tenon_fail (out, TENON_NO_MEMORY, count, 0, field);
		return NULL;
	}
	to = tenon_room (out, 4 + count * bytes, field);
	if (to == NULL)
		return NULL;
	tenon_put4 (to, count, swapped);
	return to + 4;
}

/*@ tenon_put_bytes */
/* Puts a count, so many bytes, and zeros up to a multiple of `padding'. */
static bool
tenon_put_bytes (tenon_encoder *out, uint32_t count, const void *from, uint32_t bound, uint32_t padding, bool swapped,
		 const char *field)
{
	uint32_t zeros = (0 - count) & (padding - 1);
	unsigned char *to;

	if (count > UINT32_MAX - 7)
		return tenon_fail (out, TENON_TOO_LONG, count, bound, field);
	to = tenon_begin (out, count, from, bound, 1, swapped, field);
	if (to == NULL || (zeros > 0 && tenon_room (out, zeros, field) == NULL))
		return false;
	to = out->at - zeros;
	tenon_copy (to - count, from, count);
	tenon_zero (to, zeros);
	return true;
}

/*@ tenon_put_string */
/* Puts a string; NULL is the empty one. */
static bool
tenon_put_string (tenon_encoder *out, const char *from, uint32_t bound, uint32_t padding, bool swapped,
		  const char *field)
{
	size_t length = from == NULL ? 0 : strlen (from);

	if (length > UINT32_MAX)
		return tenon_fail (out, TENON_TOO_LONG, length, bound, field);
	return tenon_put_bytes (out, (uint32_t) length, from, bound, padding, swapped, field);
}

/*@ tenon_count */
/* Gets a count, and holds it against its bound and against the bytes that are there, of which each element takes so
 * many at least. */
static inline bool
tenon_count (tenon_decoder *in, uint32_t *count, uint32_t bound, uint32_t fewest, bool swapped, const char *field)
{
	const unsigned char *from = tenon_take (in, 4, field);
	uint64_t needed, left;
	uint32_t there;

	if (from == NULL)
		return false;
	there = tenon_get4 (from, swapped);
	if (there > bound)
		return tenon_fail_at (in, from, TENON_TOO_LONG, there, bound, field);
	needed = (uint64_t) there * fewest;
	left = (uint64_t) (in->end - in->at);
	if (needed > left)
		return tenon_fail_at (in, in->at, TENON_TRUNCATED, needed, left, field);
	*count = there;
	return true;
}

/*@ tenon_counted */
/* The bytes of elements that a count was held against. */
static inline const unsigned char *
tenon_counted (tenon_decoder *in, uint32_t count, size_t bytes)
{
	const unsigned char *from = in->at;

	in->at = from + count * bytes;
	return from;
}

/*@ tenon_pay */
/* Takes the price of memory off what the message has paid. */
static inline bool
tenon_pay (tenon_decoder *in, size_t count, size_t size, const char *field)
{
	/* What takes no memory still costs the time to make it. */
	const size_t price = size > 0 ? size : 1;

	if (count > in->payable / price)
		return tenon_fail_at (in, in->at, TENON_TOO_MUCH_MEMORY, count, size, field);
	in->payable -= count * price;
	return true;
}

/*@ tenon_zeroed */
/* Memory for elements that are zero before they are there, so that freeing is safe at any time. */
static inline void *
tenon_zeroed (tenon_decoder *in, size_t count, size_t size, const char *field)
{
	void *memory;

	if (!tenon_pay (in, count, size, field))
		return NULL;
	memory = calloc (count, size);
	if (memory == NULL)
		tenon_fail_at (in, in->at, TENON_NO_MEMORY, count, size, field);
	return memory;
}

/*@ tenon_unset */
/* Memory for elements that own none. */
static inline void *
tenon_unset (tenon_decoder *in, size_t count, size_t size, const char *field)
{
	void *memory;

	if (!tenon_pay (in, count, size, field))
		return NULL;
	memory = malloc (count * size);
	if (memory == NULL)
		tenon_fail_at (in, in->at, TENON_NO_MEMORY, count, size, field);
	return memory;
}

/*@ tenon_bytes */
/* The next so many bytes and their padding, which may hold anything. */
static inline const unsigned char *
tenon_bytes (tenon_decoder *in, uint32_t count, uint32_t padding, const char *field)
{
	const unsigned char *from = tenon_take (in, count, field);

	if (from != NULL && tenon_take (in, (0 - count) & (padding - 1), field) == NULL)
		return NULL;
	return from;
}

/*@ tenon_get_bytes */
/* Gets a count and so many bytes, which become memory of their own; NULL, too, if there are none. */
static bool
tenon_get_bytes (tenon_decoder *in, uint32_t *count, uint8_t **to, uint32_t bound, uint32_t padding, bool swapped,
		 const char *field)
{
	const unsigned char *from;

	if (!tenon_count (in, count, bound, 1, swapped, field))
		return false;
	from = tenon_bytes (in, *count, padding, field);
	if (from == NULL)
		return false;
	if (*count == 0)
		return true;
	*to = (uint8_t *) tenon_unset (in, *count, 1, field);
	if (*to == NULL)
		return false;
	memcpy (*to, from, *count);
	return true;
}

/*@ tenon_get_string */
/* Gets a count and so many bytes, which become a string. */
static bool
tenon_get_string (tenon_decoder *in, char **to, uint32_t bound, uint32_t padding, bool swapped, const char *field)
{
	const unsigned char *from;
	uint32_t count = 0;

	if (!tenon_count (in, &count, bound, 1, swapped, field))
		return false;
	from = tenon_bytes (in, count, padding, field);
	if (from == NULL)
		return false;
	/* What is behind it would be lost. */
	if (count > 0 && memchr (from, 0, count) != NULL)
		return tenon_fail_at (in, from, TENON_HOLDS_NUL, 0, 0, field);
	*to = (char *) tenon_unset (in, (size_t) count + 1, 1, field);
	if (*to == NULL)
		return false;
	memcpy (*to, from, count);
	(*to)[count] = 0;
	return true;
}
