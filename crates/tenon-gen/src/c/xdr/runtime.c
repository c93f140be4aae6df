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
#define TENON_ALWAYS_INLINE static __inline__ __attribute__ ((__always_inline__))
#else
#define TENON_ALWAYS_INLINE static
#endif

/*@ TENON_SHARED */
/* What is not. */
#ifdef __GNUC__
#define TENON_SHARED static __attribute__ ((__noinline__))
#else
#define TENON_SHARED static
#endif

/*@ TENON_SLOW */
/* What is called when something is unusual stays out of the way of what is called otherwise. */
#ifdef __GNUC__
#define TENON_SLOW static __attribute__ ((__noinline__))
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
#define TENON_UNUSED __attribute__ ((__unused__))
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
#define TENON_AVX2 __attribute__ ((__target__ ("avx2")))
typedef char tenon_vector __attribute__ ((__vector_size__ (32)));

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
/* Copies vectors of 32 bytes and reverses each number of 4 bytes; `_to' may be `_from'. */
TENON_AVX2
static void
tenon_reverse4_avx2 (char *_to, const char *_from, size_t _bytes)
{
	size_t _at = 0;

	for (; _at + 64 <= _bytes; _at += 64) {
		tenon_vector _first, _second;

		memcpy (&_first, _from + _at, 32);
		memcpy (&_second, _from + _at + 32, 32);
		_first = TENON_REVERSED4 (_first);
		_second = TENON_REVERSED4 (_second);
		memcpy (_to + _at, &_first, 32);
		memcpy (_to + _at + 32, &_second, 32);
	}
	if (_at < _bytes) {
		tenon_vector _last;

		memcpy (&_last, _from + _at, 32);
		_last = TENON_REVERSED4 (_last);
		memcpy (_to + _at, &_last, 32);
	}
}
#endif

/*@ tenon_reverse8_avx2 */
#ifdef TENON_AVX2
/* The same with numbers of 8 bytes. */
TENON_AVX2
static void
tenon_reverse8_avx2 (char *_to, const char *_from, size_t _bytes)
{
	size_t _at = 0;

	for (; _at + 64 <= _bytes; _at += 64) {
		tenon_vector _first, _second;

		memcpy (&_first, _from + _at, 32);
		memcpy (&_second, _from + _at + 32, 32);
		_first = TENON_REVERSED8 (_first);
		_second = TENON_REVERSED8 (_second);
		memcpy (_to + _at, &_first, 32);
		memcpy (_to + _at + 32, &_second, 32);
	}
	if (_at < _bytes) {
		tenon_vector _last;

		memcpy (&_last, _from + _at, 32);
		_last = TENON_REVERSED8 (_last);
		memcpy (_to + _at, &_last, 32);
	}
}
#endif

/*@ tenon_reversed4 */
static __inline__ uint32_t
tenon_reversed4 (uint32_t _number)
{
	return _number >> 24 | (_number >> 8 & 0xff00u) | (_number << 8 & 0xff0000u) | _number << 24;
}

/*@ tenon_reverse4 */
/* Copies numbers of 4 bytes and changes the order of their bytes; `_to' may be `_from'. */
static void
tenon_reverse4 (void *_to, const void *_from, size_t _numbers)
{
	size_t _at = 0, _bytes = 4 * _numbers;

#ifdef TENON_AVX2
	if (_numbers >= 16 && __builtin_cpu_supports ("avx2")) {
		_at = _bytes & ~(size_t) 31;
		tenon_reverse4_avx2 ((char *) _to, (const char *) _from, _at);
	}
#endif
	for (; _at < _bytes; _at += 4) {
		uint32_t _number;

		memcpy (&_number, (const char *) _from + _at, 4);
		_number = tenon_reversed4 (_number);
		memcpy ((char *) _to + _at, &_number, 4);
	}
}

/*@ tenon_swap4 */
/* Copies numbers of 4 bytes between memory and the wire; `_to' may be `_from'. */
static void
tenon_swap4 (void *_to, const void *_from, size_t _numbers)
{
	if (htonl (1) == 1)
		memmove (_to, _from, 4 * _numbers);
	else
		tenon_reverse4 (_to, _from, _numbers);
}

/*@ tenon_swap4_few */
/* The same, of few. */
static __inline__ void
tenon_swap4_few (void *_to, const void *_from, size_t _numbers)
{
	size_t _at;

	for (_at = 0; _at < 4 * _numbers; _at += 4) {
		uint32_t _number;

		memcpy (&_number, (const char *) _from + _at, 4);
		_number = htonl (_number);
		memcpy ((char *) _to + _at, &_number, 4);
	}
}

/*@ tenon_swapped8 */
static __inline__ uint64_t
tenon_swapped8 (uint64_t _number)
{
	if (htonl (1) == 1)
		return _number;
	return ((uint64_t) htonl ((uint32_t) _number) << 32) | htonl ((uint32_t) (_number >> 32));
}

/*@ tenon_reversed8 */
static __inline__ uint64_t
tenon_reversed8 (uint64_t _number)
{
	return (uint64_t) tenon_reversed4 ((uint32_t) _number) << 32 | tenon_reversed4 ((uint32_t) (_number >> 32));
}

/*@ tenon_reverse8 */
/* Copies numbers of 8 bytes and changes the order of their bytes; `_to' may be `_from'. */
static void
tenon_reverse8 (void *_to, const void *_from, size_t _numbers)
{
	size_t _at = 0, _bytes = 8 * _numbers;

#ifdef TENON_AVX2
	if (_numbers >= 8 && __builtin_cpu_supports ("avx2")) {
		_at = _bytes & ~(size_t) 31;
		tenon_reverse8_avx2 ((char *) _to, (const char *) _from, _at);
	}
#endif
	for (; _at < _bytes; _at += 8) {
		uint64_t _number;

		memcpy (&_number, (const char *) _from + _at, 8);
		_number = tenon_reversed8 (_number);
		memcpy ((char *) _to + _at, &_number, 8);
	}
}

/*@ tenon_swap8 */
/* Copies numbers of 8 bytes between memory and the wire; `_to' may be `_from'. */
static void
tenon_swap8 (void *_to, const void *_from, size_t _numbers)
{
	if (htonl (1) == 1)
		memmove (_to, _from, 8 * _numbers);
	else
		tenon_reverse8 (_to, _from, _numbers);
}

/*@ tenon_swap */
/* The same with numbers of 4 or 8 bytes. */
static void
tenon_swap (void *_to, const void *_from, size_t _numbers, u_int _unit)
{
	if (_unit == 4)
		tenon_swap4 (_to, _from, _numbers);
	else
		tenon_swap8 (_to, _from, _numbers);
}

/*@ tenon_put4 */
static __inline__ void
tenon_put4 (char *_at, uint32_t _number)
{
	_number = htonl (_number);
	memcpy (_at, &_number, 4);
}

/*@ tenon_get4 */
static __inline__ uint32_t
tenon_get4 (const char *_at)
{
	uint32_t _number;

	memcpy (&_number, _at, 4);
	return ntohl (_number);
}

/*@ tenon_put8 */
static __inline__ void
tenon_put8 (char *_at, uint64_t _number)
{
	_number = tenon_swapped8 (_number);
	memcpy (_at, &_number, 8);
}

/*@ tenon_get8 */
static __inline__ uint64_t
tenon_get8 (const char *_at)
{
	uint64_t _number;

	memcpy (&_number, _at, 8);
	return tenon_swapped8 (_number);
}

/*@ tenon_put_float */
static __inline__ void
tenon_put_float (char *_at, float _number)
{
	uint32_t _bits;

	memcpy (&_bits, &_number, 4);
	tenon_put4 (_at, _bits);
}

/*@ tenon_get_float */
static __inline__ float
tenon_get_float (const char *_at)
{
	uint32_t _bits = tenon_get4 (_at);
	float _number;

	memcpy (&_number, &_bits, 4);
	return _number;
}

/*@ tenon_put_double */
static __inline__ void
tenon_put_double (char *_at, double _number)
{
	uint64_t _bits;

	memcpy (&_bits, &_number, 8);
	tenon_put8 (_at, _bits);
}

/*@ tenon_get_double */
static __inline__ double
tenon_get_double (const char *_at)
{
	uint64_t _bits = tenon_get8 (_at);
	double _number;

	memcpy (&_number, &_bits, 8);
	return _number;
}

/*@ tenon_xdr_stream */
/*
 * A stream while a value goes through it. Functions hand the position on: of the bytes that are at hand, it is
 * where the next ones are read or written, and NULL once something was refused.
 */
struct tenon_xdr_stream {
	XDR *xdrs;
	char *_end;			/* of the bytes at hand */
	bool_t _is_memory;		/* they are those of the stream, and there are no others */
	uint64_t _space[129];	/* otherwise: what is to be written, or was read, without room in the handle */
};

/*@ tenon_memory_ops */
/*
 * What tells streams in memory from others, aligned or not. Where they are and how much is left stands in their
 * handles; that it does is tried before it is believed.
 */
static const void *tenon_memory_ops[2];

#ifdef __GNUC__
static const void *
tenon_tried_ops (char *_at)
{
	char _word[4] = { 1, 2, 3, 4 };
	XDR xdrs;
	bool_t _is_known;

	xdrmem_create (&xdrs, _at, 8, XDR_ENCODE);
	_is_known = (char *) xdrs.x_private == _at && xdrs.x_handy == 8 && XDR_PUTBYTES (&xdrs, _word, 4) &&
	    (char *) xdrs.x_private == _at + 4 && xdrs.x_handy == 4;
	xdrs.x_private = _at;
	xdrs.x_handy = 3;
	_is_known = _is_known && XDR_GETPOS (&xdrs) == 0 && !XDR_PUTBYTES (&xdrs, _word, 4) &&
		    memcmp (_at, _word, 4) == 0;
	return _is_known ? (const void *) xdrs.x_ops : NULL;
}

__attribute__ ((__constructor__))
static void
tenon_find_memory_ops (void)
{
	uint64_t _bytes[2];

	tenon_memory_ops[0] = tenon_tried_ops ((char *) _bytes);
	tenon_memory_ops[1] = tenon_tried_ops ((char *) _bytes + 1);
}
#endif

/*@ tenon_enter */
/* Goes on where the stream is. */
static char *
tenon_enter (struct tenon_xdr_stream *_s, XDR *xdrs)
{
	const void *_ops = (const void *) xdrs->x_ops;
	char *_at = (char *) _s->_space;

	_s->xdrs = xdrs;
	_s->_is_memory = (_ops == tenon_memory_ops[0] || _ops == tenon_memory_ops[1]) &&
			 (u_int) xdrs->x_handy < 0x80000000u;
	if (_s->_is_memory) {
		_at = (char *) xdrs->x_private;
		_s->_end = _at + xdrs->x_handy;
	} else {
		_s->_end = xdrs->x_op == XDR_ENCODE ? _at + sizeof (_s->_space) : _at;
	}
	return _at;
}

/*@ tenon_leave */
/* Leaves the stream behind what was moved; FALSE if that was refused. */
static bool_t
tenon_leave (struct tenon_xdr_stream *_s, char *_at)
{
	XDR *xdrs = _s->xdrs;

	if (_at == NULL)
		return FALSE;
	if (_s->_is_memory) {
		xdrs->x_private = _at;
		xdrs->x_handy = (u_int) (_s->_end - _at);
	} else if (xdrs->x_op == XDR_ENCODE && _at > (char *) _s->_space) {
		return XDR_PUTBYTES (xdrs, (char *) _s->_space, (u_int) (_at - (char *) _s->_space));
	}
	return TRUE;
}

/*@ tenon_marshal */
/* What a routine is: a function for each thing that it may be called for. */
static bool_t
tenon_marshal (XDR *xdrs, void *_value, char *(*_encode) (struct tenon_xdr_stream *, char *, void *),
	       char *(*_decode) (struct tenon_xdr_stream *, char *, void *), void (*_release) (XDR *, void *))
{
	struct tenon_xdr_stream _s;
	char *_at;

	switch (xdrs->x_op) {
	case XDR_ENCODE:
		_at = tenon_enter (&_s, xdrs);
		return tenon_leave (&_s, _encode (&_s, _at, _value));
	case XDR_DECODE:
		_at = tenon_enter (&_s, xdrs);
		return tenon_leave (&_s, _decode (&_s, _at, _value));
	case XDR_FREE:
		if (_release != NULL)
			_release (xdrs, _value);
		return TRUE;
	}
	return FALSE;
}

/*@ tenon_call_alone */
/* Calls a routine that stands by itself. */
TENON_SHARED char *
tenon_call_alone (struct tenon_xdr_stream *_s, char *_at, xdrproc_t _routine, void *_value)
{
	if (!tenon_leave (_s, _at) || !(*_routine) (_s->xdrs, _value))
		return NULL;
	return tenon_enter (_s, _s->xdrs);
}

/*@ tenon_lacks */
/* Whether fewer bytes are at hand. */
static __inline__ bool_t
tenon_lacks (const struct tenon_xdr_stream *_s, const char *_at, size_t _bytes)
{
	return TENON_UNLIKELY ((size_t) (_s->_end - _at) < _bytes);
}

/*@ tenon_room */
/* Room for more bytes, at most those of the space: a stream in memory is full. */
TENON_SLOW char *
tenon_room (struct tenon_xdr_stream *_s, char *_at, size_t _bytes)
{
	if (_s->_is_memory || _bytes > sizeof (_s->_space) || !tenon_leave (_s, _at))
		return NULL;
	return (char *) _s->_space;
}

/*@ tenon_fetch */
/* Further bytes, at most those of the space: a stream in memory has none. */
TENON_SLOW char *
tenon_fetch (struct tenon_xdr_stream *_s, size_t _bytes)
{
	char *_at;

	if (_s->_is_memory || _bytes > sizeof (_s->_space))
		return NULL;
	_at = (char *) XDR_INLINE (_s->xdrs, (u_int) _bytes);
	if (_at == NULL) {
		_at = (char *) _s->_space;
		if (!XDR_GETBYTES (_s->xdrs, _at, (u_int) _bytes))
			return NULL;
	}
	_s->_end = _at + _bytes;
	return _at;
}

/*@ tenon_nothing */
/* Where nothing is at hand, after bytes went past the space. */
static char *
tenon_nothing (struct tenon_xdr_stream *_s)
{
	char *_at = (char *) _s->_space;

	_s->_end = _s->xdrs->x_op == XDR_ENCODE ? _at + sizeof (_s->_space) : _at;
	return _at;
}

/*@ tenon_put_far */
/* Puts numbers of 4 or 8 bytes for which there is no room at hand. */
TENON_SLOW char *
tenon_put_far (struct tenon_xdr_stream *_s, char *_at, const char *_from, size_t _numbers, u_int _unit)
{
	if (_s->_is_memory || !tenon_leave (_s, _at))
		return NULL;
	while (_numbers > 0) {
		size_t _now = _numbers < TENON_INLINE_MAX / _unit ? _numbers : TENON_INLINE_MAX / _unit;
		char *_to = (char *) XDR_INLINE (_s->xdrs, (u_int) (_now * _unit));

		if (_to == NULL) {
			_now = _now < sizeof (_s->_space) / _unit ? _now : sizeof (_s->_space) / _unit;
			_to = (char *) _s->_space;
		}
		tenon_swap (_to, _from, _now, _unit);
		if (_to == (char *) _s->_space && !XDR_PUTBYTES (_s->xdrs, _to, (u_int) (_now * _unit)))
			return NULL;
		_from += _now * _unit;
		_numbers -= _now;
	}
	return tenon_nothing (_s);
}

/*@ tenon_get_far */
/* Gets numbers of 4 or 8 bytes that are not at hand. */
TENON_SLOW char *
tenon_get_far (struct tenon_xdr_stream *_s, char *_to, size_t _numbers, u_int _unit)
{
	if (_s->_is_memory)
		return NULL;
	while (_numbers > 0) {
		size_t _now = _numbers < TENON_INLINE_MAX / _unit ? _numbers : TENON_INLINE_MAX / _unit;
		const char *_from = (const char *) XDR_INLINE (_s->xdrs, (u_int) (_now * _unit));

		if (_from == NULL) {
			if (!XDR_GETBYTES (_s->xdrs, _to, (u_int) (_now * _unit)))
				return NULL;
			_from = _to;
		}
		tenon_swap (_to, _from, _now, _unit);
		_to += _now * _unit;
		_numbers -= _now;
	}
	return tenon_nothing (_s);
}

/*@ tenon_put_numbers */
/* Puts so many numbers of 4 or 8 bytes. */
TENON_SHARED char *
tenon_put_numbers (struct tenon_xdr_stream *_s, char *_at, const void *_from, size_t _numbers, u_int _unit)
{
	if (tenon_lacks (_s, _at, _numbers * _unit))
		return tenon_put_far (_s, _at, (const char *) _from, _numbers, _unit);
	tenon_swap (_at, _from, _numbers, _unit);
	return _at + _numbers * _unit;
}

/*@ tenon_get_numbers */
/* Gets so many numbers of 4 or 8 bytes into memory that is there. */
TENON_SHARED char *
tenon_get_numbers (struct tenon_xdr_stream *_s, char *_at, void *_to, size_t _numbers, u_int _unit)
{
	if (tenon_lacks (_s, _at, _numbers * _unit))
		return tenon_get_far (_s, (char *) _to, _numbers, _unit);
	tenon_swap (_to, _at, _numbers, _unit);
	return _at + _numbers * _unit;
}

/*@ TENON_SMALL */
/* Bytes up to which memory is faster cleared here than by calloc, which has no small blocks at hand. */
#define TENON_SMALL 1024

/*@ tenon_new */
/* Memory for a value, which is zero. */
TENON_ALWAYS_INLINE void *
tenon_new (size_t _size)
{
	void *_memory = malloc (_size);

#ifdef __GNUC__
	/* Or compilers make calloc of the two. */
	__asm__ ("" : "+r" (_memory));
#endif
	if (_memory != NULL)
		memset (_memory, 0, _size);
	return _memory;
}

/*@ tenon_begin */
/*
 * Memory for elements of which so many are announced, each of at least so many bytes: what is there already, or as
 * much as they have paid for. `_length' becomes the number of elements that there is memory for; what is not
 * read yet is zero, so that freeing is safe at any time. NULL if there is none.
 */
TENON_SHARED void *
tenon_begin (const struct tenon_xdr_stream *_s, const char *_at, void *_memory, u_int *_length, u_int _count, size_t _size,
	     u_int _fewest)
{
	u_int _first = _count;

	*_length = _count;
	if (_memory != NULL)
		return _memory;
	*_length = 0;
	if ((uint64_t) _count * _size > UINT32_MAX)
		return NULL;
	if (_s->_is_memory && _fewest > 0) {
		if ((uint64_t) _count * _fewest > (uint64_t) (_s->_end - _at))
			return NULL;
	} else if (_count * _size > TENON_UNPAID_MAX) {
		_first = (u_int) (TENON_UNPAID_MAX / _size) + 1;
	}
	if (_first > _count)
		_first = _count;
	_memory = _first * _size <= TENON_SMALL ? tenon_new (_first * _size) : calloc (_first, _size);
	*_length = _memory == NULL ? 0 : _first;
	return _memory;
}

/*@ tenon_more */
/* Twice as much memory, or as much as is needed; the same, and `_length' as it was, if there is none. */
TENON_SLOW void *
tenon_more (void *_memory, u_int *_length, u_int _count, size_t _size)
{
	u_int _more = *_length > _count / 2 ? _count : 2 * *_length;
	char *_moved = (char *) realloc (_memory, _more * _size);

	if (_moved == NULL)
		return _memory;
	memset (_moved + *_length * _size, 0, (_more - *_length) * _size);
	*_length = _more;
	return _moved;
}

/*@ tenon_put_array */
/* Puts a count and so many items, each of some numbers of 4 or 8 bytes. */
TENON_SHARED char *
tenon_put_array (struct tenon_xdr_stream *_s, char *_at, const void *_from, u_int _count, size_t _size, u_int _unit)
{
	if (_from == NULL && _count > 0)
		return NULL;
	if (tenon_lacks (_s, _at, 4) && (_at = tenon_room (_s, _at, 4)) == NULL)
		return NULL;
	tenon_put4 (_at, _count);
	return tenon_put_numbers (_s, _at + 4, _from, _count * _size / _unit, _unit);
}

/*@ tenon_get_array */
/* Gets a count, which is at hand, and so many items, each of some numbers of 4 or 8 bytes, and says where they are. */
TENON_SHARED char *
tenon_get_array (struct tenon_xdr_stream *_s, char *_at, void **_to, u_int *_length, u_int _bound, size_t _size,
		 u_int _unit)
{
	u_int _count = tenon_get4 (_at), _done = 0;
	char *_memory;

	_at += 4;
	if (_count > _bound)
		return NULL;
	if (_count == 0) {
		*_length = 0;
		return _at;
	}
	if (*_to == NULL && (uint64_t) (_s->_end - _at) >= (uint64_t) _count * _size) {
		/* All of it is written at once. */
		*_to = malloc (_count * _size);
		*_length = *_to == NULL ? 0 : _count;
	} else {
		*_to = tenon_begin (_s, _at, *_to, _length, _count, _size, (u_int) _size);
	}
	_memory = (char *) *_to;
	for (;;) {
		if (_memory == NULL)
			return NULL;
		_at = tenon_get_numbers (_s, _at, _memory + _done * _size, (*_length - _done) * _size / _unit, _unit);
		if (_at == NULL || *_length == _count)
			return _at;
		_done = *_length;
		*_to = tenon_more (_memory, _length, _count, _size);
		_memory = *_length == _done ? NULL : (char *) *_to;
	}
}

/*@ tenon_copy */
/* Copies few bytes, by fewer branches than memcpy has. */
TENON_ALWAYS_INLINE void
tenon_copy (char *_to, const char *_from, size_t _bytes)
{
	if (_bytes > 16) {
		char _first[16], _last[16];

		memcpy (_first, _from, 16);
		memcpy (_last, _from + _bytes - 16, 16);
		memcpy (_to, _first, 16);
		memcpy (_to + _bytes - 16, _last, 16);
	} else if (_bytes >= 8) {
		uint64_t _first, _last;

		memcpy (&_first, _from, 8);
		memcpy (&_last, _from + _bytes - 8, 8);
		memcpy (_to, &_first, 8);
		memcpy (_to + _bytes - 8, &_last, 8);
	} else if (_bytes >= 4) {
		uint32_t _first, _last;

		memcpy (&_first, _from, 4);
		memcpy (&_last, _from + _bytes - 4, 4);
		memcpy (_to, &_first, 4);
		memcpy (_to + _bytes - 4, &_last, 4);
	} else if (_bytes > 0) {
		_to[0] = _from[0];
		_to[_bytes / 2] = _from[_bytes / 2];
		_to[_bytes - 1] = _from[_bytes - 1];
	}
}

/*@ tenon_put_opaque */
/* Puts so many bytes, and zeros up to a multiple of 4. */
TENON_SHARED char *
tenon_put_opaque (struct tenon_xdr_stream *_s, char *_at, const char *_from, size_t _count)
{
	size_t _padded = (_count + 3) & ~(size_t) 3;

	if (_count == 0)
		return _at;
	if (tenon_lacks (_s, _at, _padded)) {
		if (_s->_is_memory || _count > UINT32_MAX || !tenon_leave (_s, _at) ||
		    !xdr_opaque (_s->xdrs, (char *) (uintptr_t) _from, (u_int) _count))
			return NULL;
		return tenon_nothing (_s);
	}
	memset (_at + _padded - 4, 0, 4);
	memcpy (_at, _from, _count);
	return _at + _padded;
}

/*@ tenon_get_opaque */
/* Gets so many bytes and their padding into memory that is there. */
TENON_SHARED char *
tenon_get_opaque (struct tenon_xdr_stream *_s, char *_at, char *_to, size_t _count)
{
	size_t _padded = (_count + 3) & ~(size_t) 3;

	if (tenon_lacks (_s, _at, _padded)) {
		if (_s->_is_memory || !xdr_opaque (_s->xdrs, _to, (u_int) _count))
			return NULL;
		return tenon_nothing (_s);
	}
	memcpy (_to, _at, _count);
	return _at + _padded;
}

/*@ tenon_get_growing */
/*
 * Gets so many bytes and their padding, which are not at hand, into new memory that grows as they come. `_behind'
 * more are zero.
 */
TENON_SLOW char *
tenon_get_growing (struct tenon_xdr_stream *_s, char **_to, u_int _count, u_int _behind)
{
	u_int _done = 0, _first = _count < TENON_UNPAID_MAX ? _count : TENON_UNPAID_MAX;

	if (_s->_is_memory)
		return NULL;
	/* Multiples of 4 have no padding, so the pieces are as good as the whole. */
	for (;;) {
		char *_more = (char *) realloc (*_to, (size_t) _first + _behind), *_at;

		if (_more == NULL)
			return NULL;
		*_to = _more;
		memset (_more + _done, 0, (size_t) (_first - _done) + _behind);
		_at = tenon_get_opaque (_s, _s->_end, _more + _done, _first - _done);
		if (_at == NULL || _first == _count)
			return _at;
		_done = _first;
		_first = _first > _count / 2 ? _count : 2 * _first;
	}
}

/*@ tenon_put_bytes */
/* Puts a count, and so many bytes. */
TENON_SHARED char *
tenon_put_bytes (struct tenon_xdr_stream *_s, char *_at, const char *_from, u_int _count)
{
	if (_from == NULL && _count > 0)
		return NULL;
	if (tenon_lacks (_s, _at, 4) && (_at = tenon_room (_s, _at, 4)) == NULL)
		return NULL;
	tenon_put4 (_at, _count);
	return tenon_put_opaque (_s, _at + 4, _from, _count);
}

/*@ tenon_get_counted */
/* Gets a count, which is at hand, and so many bytes. */
TENON_SHARED char *
tenon_get_counted (struct tenon_xdr_stream *_s, char *_at, char **_to, u_int *_length, u_int _bound)
{
	u_int _count = tenon_get4 (_at);
	size_t _padded = ((size_t) _count + 3) & ~(size_t) 3;

	_at += 4;
	if (_count > _bound)
		return NULL;
	*_length = _count;
	if (_count == 0)
		return _at;
	if (*_to != NULL)
		return tenon_get_opaque (_s, _at, *_to, _count);
	if (tenon_lacks (_s, _at, _padded))
		return tenon_get_growing (_s, _to, _count, 0);
	*_to = (char *) malloc (_count);
	if (*_to == NULL)
		return NULL;
	memcpy (*_to, _at, _count);
	return _at + _padded;
}

/*@ tenon_put_string */
TENON_ALWAYS_INLINE char *
tenon_put_string (struct tenon_xdr_stream *_s, char *_at, const char *_from, u_int _bound)
{
	size_t _length, _padded;

	if (_from == NULL)
		return NULL;
	_length = strlen (_from);
	if (_length > _bound)
		return NULL;
	_padded = (_length + 3) & ~(size_t) 3;
	if (_length > TENON_FEW || tenon_lacks (_s, _at, 4 + _padded))
		return tenon_put_bytes (_s, _at, _from, (u_int) _length);
	/* Of an empty string, these are the count. */
	memset (_at + _padded, 0, 4);
	tenon_put4 (_at, (uint32_t) _length);
	tenon_copy (_at + 4, _from, _length);
	return _at + 4 + _padded;
}

/*@ tenon_put_text */
/* The same, where it is not worth a copy. */
TENON_SHARED char *
tenon_put_text (struct tenon_xdr_stream *_s, char *_at, const char *_from, u_int _bound)
{
	return tenon_put_string (_s, _at, _from, _bound);
}

/*@ tenon_get_known_string */
/* Gets a string of so many bytes into memory that is there. */
TENON_SHARED char *
tenon_get_known_string (struct tenon_xdr_stream *_s, char *_at, char *_to, u_int _count)
{
	size_t _padded = ((size_t) _count + 3) & ~(size_t) 3;

	_to[_count] = 0;
	if (_count > TENON_FEW || tenon_lacks (_s, _at, _padded))
		return tenon_get_opaque (_s, _at, _to, _count);
	tenon_copy (_to, _at, _count);
	return _at + _padded;
}

/*@ tenon_get_long_string */
/* Gets a string of so many bytes into new memory. */
TENON_SHARED char *
tenon_get_long_string (struct tenon_xdr_stream *_s, char *_at, char **_to, u_int _count)
{
	size_t _padded = ((size_t) _count + 3) & ~(size_t) 3;
	char *_text;

	if (_count == UINT32_MAX)
		return NULL;
	if (tenon_lacks (_s, _at, _padded))
		return tenon_get_growing (_s, _to, _count, 1);
	_text = (char *) malloc ((size_t) _count + 1);
	if (_text == NULL)
		return NULL;
	if (_count > TENON_FEW)
		memcpy (_text, _at, _count);
	else
		tenon_copy (_text, _at, _count);
	_text[_count] = 0;
	*_to = _text;
	return _at + _padded;
}

/*@ tenon_get_string */
/* Gets a string, whose count is at hand. */
TENON_ALWAYS_INLINE char *
tenon_get_string (struct tenon_xdr_stream *_s, char *_at, char **_to, u_int _bound)
{
	uint32_t _count = tenon_get4 (_at);

	_at += 4;
	if (_count > _bound)
		return NULL;
	if (*_to != NULL)
		return tenon_get_known_string (_s, _at, *_to, _count);
	if (_count < TENON_SHORT && _s->_end - _at >= TENON_SHORT) {
		char *_text = (char *) malloc (TENON_SHORT);

		if (_text == NULL)
			return NULL;
		memcpy (_text, _at, TENON_SHORT);
		_text[_count] = 0;
		*_to = _text;
		return _at + ((_count + 3) & ~3u);
	}
	return tenon_get_long_string (_s, _at, _to, _count);
}

/*@ tenon_get_text */
/* The same, where it is not worth a copy. */
TENON_SHARED char *
tenon_get_text (struct tenon_xdr_stream *_s, char *_at, char **_to, u_int _bound)
{
	return tenon_get_string (_s, _at, _to, _bound);
}

/*@ tenon_xdr_growing */
/* Gets so many bytes and their padding into new memory that grows as they come; `_behind' more are zero. */
static bool_t
tenon_xdr_growing (XDR *xdrs, char **_to, u_int _count, u_int _behind)
{
	size_t _done = 0, _now;

	/* Multiples of 4 have no padding, so the pieces are as good as the whole. */
	do {
		char *_more;

		_now = _count - _done < _done + TENON_UNPAID_MAX ? _count - _done : _done + TENON_UNPAID_MAX;
		if ((_more = (char *) realloc (*_to, _done + _now + _behind)) == NULL)
			return FALSE;
		*_to = _more;
		memset (_more + _done, 0, _now + _behind);
		if (!xdr_opaque (xdrs, _more + _done, (u_int) _now))
			return FALSE;
		_done += _now;
	} while (_done < _count);
	return TRUE;
}

/*@ tenon_xdr_string */
/* As libtirpc's xdr_string, but that a count is not believed. */
TENON_SHARED bool_t
tenon_xdr_string (XDR *xdrs, char **_text, u_int _bound)
{
	u_int _count;

	/* Tools that watch what xdr_string reads read what is not there. */
	if (xdrs->x_op == XDR_ENCODE && *_text == NULL)
		return FALSE;
	if (xdrs->x_op != XDR_DECODE || *_text != NULL)
		return xdr_string (xdrs, _text, _bound);
	return xdr_u_int (xdrs, &_count) && _count <= _bound && tenon_xdr_growing (xdrs, _text, _count, 1);
}

/*@ tenon_xdr_bytes */
/* As libtirpc's xdr_bytes, but that a count is not believed, and that bytes that are not there are not put. */
TENON_SHARED bool_t
tenon_xdr_bytes (XDR *xdrs, char **_bytes, u_int *_length, u_int _bound)
{
	if (xdrs->x_op == XDR_ENCODE && *_bytes == NULL && *_length > 0)
		return FALSE;
	if (xdrs->x_op != XDR_DECODE || *_bytes != NULL)
		return xdr_bytes (xdrs, _bytes, _length, _bound);
	return xdr_u_int (xdrs, _length) && *_length <= _bound &&
	    (*_length == 0 || tenon_xdr_growing (xdrs, _bytes, *_length, 0));
}

/*@ tenon_xdr_begin */
/*
 * Memory for elements of which so many are announced: what is there already, or a little in advance. `_length' becomes
 * the number of elements that there is memory for; what is not read yet is zero, so that freeing is safe at
 * any time. NULL if there is none.
 */
static void *
tenon_xdr_begin (void *_memory, u_int *_length, u_int _count, size_t _size)
{
	u_int _first = _count * (uint64_t) _size > TENON_UNPAID_MAX ? (u_int) (TENON_UNPAID_MAX / _size) + 1 : _count;

	if (_first > _count)
		_first = _count;
	*_length = _count;
	if (_memory != NULL)
		return _memory;
	_memory = (uint64_t) _count * _size > UINT32_MAX ? NULL : calloc (_first, _size);
	*_length = _memory == NULL ? 0 : _first;
	return _memory;
}

/*@ tenon_xdr_pieces */
/* Moves numbers of 4 or 8 bytes for which a stream has no room, or which it has not, at once. */
TENON_SHARED bool_t
tenon_xdr_pieces (XDR *xdrs, char *_at, size_t _numbers, u_int _unit)
{
	while (_numbers > 0) {
		uint64_t _space[128];
		size_t _now = _numbers < TENON_INLINE_MAX / _unit ? _numbers : TENON_INLINE_MAX / _unit;
		char *_there = (char *) XDR_INLINE (xdrs, (u_int) (_now * _unit));

		if (_there == NULL && _now > sizeof (_space) / _unit)
			_now = sizeof (_space) / _unit;
		if (xdrs->x_op == XDR_ENCODE) {
			tenon_swap (_there == NULL ? (char *) _space : _there, _at, _now, _unit);
			if (_there == NULL && !XDR_PUTBYTES (xdrs, (char *) _space, (u_int) (_now * _unit)))
				return FALSE;
		} else {
			if (_there == NULL && !XDR_GETBYTES (xdrs, (char *) _space, (u_int) (_now * _unit)))
				return FALSE;
			tenon_swap (_at, _there == NULL ? (char *) _space : _there, _now, _unit);
		}
		_at += _now * _unit;
		_numbers -= _now;
	}
	return TRUE;
}

/*@ tenon_xdr_put_numbers */
/* Puts a count, and so many numbers of 4 or 8 bytes. */
static bool_t
tenon_xdr_put_numbers (XDR *xdrs, char *_from, u_int _count, u_int _unit)
{
	size_t _bytes = (size_t) _count * _unit;
	char *_to;

	if (_from == NULL && _count > 0)
		return FALSE;
	if (_bytes >= TENON_INLINE_MAX || (_to = (char *) XDR_INLINE (xdrs, (u_int) (4 + _bytes))) == NULL)
		return xdr_u_int (xdrs, &_count) && tenon_xdr_pieces (xdrs, _from, _count, _unit);
	tenon_put4 (_to, _count);
	tenon_swap (_to + 4, _from, _count, _unit);
	return TRUE;
}

/*@ tenon_xdr_get_numbers */
/* Gets so many numbers of 4 or 8 bytes, and says where they are. */
static bool_t
tenon_xdr_get_numbers (XDR *xdrs, void **_to, u_int *_length, u_int _count, u_int _unit)
{
	size_t _bytes = (size_t) _count * _unit;
	u_int _done = 0;
	char *_from;

	if (*_to == NULL && _bytes < TENON_INLINE_MAX && (_from = (char *) XDR_INLINE (xdrs, (u_int) _bytes)) != NULL) {
		*_to = malloc (_bytes);
		*_length = *_to == NULL ? 0 : _count;
		if (*_to == NULL)
			return FALSE;
		tenon_swap (*_to, _from, _count, _unit);
		return TRUE;
	}
	*_to = tenon_xdr_begin (*_to, _length, _count, _unit);
	while (*_to != NULL) {
		if (!tenon_xdr_pieces (xdrs, (char *) *_to + (size_t) _done * _unit, *_length - _done, _unit))
			return FALSE;
		_done = *_length;
		if (_done == _count)
			return TRUE;
		*_to = tenon_more (*_to, _length, _count, _unit);
		if (*_length == _done)
			return FALSE;
	}
	return FALSE;
}

/*@ tenon_xdr_numbers */
/* An array of numbers of 4 or 8 bytes; `_elements' is where the pointer to them is. */
TENON_SHARED bool_t
tenon_xdr_numbers (XDR *xdrs, void *_elements, u_int *_length, u_int _bound, u_int _unit)
{
	u_int _count = *_length;
	void *_memory;
	bool_t _done = TRUE;

	memcpy (&_memory, _elements, sizeof (_memory));
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return _count <= _bound && tenon_xdr_put_numbers (xdrs, (char *) _memory, _count, _unit);
	case XDR_DECODE:
		if (!xdr_u_int (xdrs, &_count) || _count > _bound)
			return FALSE;
		if (_count == 0)
			*_length = 0;
		else
			_done = tenon_xdr_get_numbers (xdrs, &_memory, _length, _count, _unit);
		break;
	case XDR_FREE:
		free (_memory);
		_memory = NULL;
	}
	memcpy (_elements, &_memory, sizeof (_memory));
	return _done;
}

/*@ tenon_xdr_array */
/*
 * As libtirpc's xdr_array, but that a count is not believed: memory grows as the elements come. What is not there
 * is not put. `_elements' is where the pointer to them is.
 */
TENON_SHARED bool_t
tenon_xdr_array (XDR *xdrs, void *_elements, u_int *_length, u_int _bound, size_t _size, xdrproc_t _routine)
{
	u_int _done, _count;
	char *_memory;

	memcpy (&_memory, _elements, sizeof (_memory));
	if (xdrs->x_op == XDR_ENCODE && _memory == NULL && *_length > 0)
		return FALSE;
	if (xdrs->x_op != XDR_DECODE || _memory != NULL)
		return xdr_array (xdrs, (char **) _elements, _length, _bound, (u_int) _size, _routine);
	if (!xdr_u_int (xdrs, &_count) || _count > _bound || (uint64_t) _count * _size >= UINT32_MAX)
		return FALSE;
	*_length = 0;
	for (_done = 0; _done < _count; _done++) {
		if (_done == *_length) {
			uint64_t _more = 2 * (uint64_t) _done + TENON_UNPAID_MAX / (_size + 1) + 1;

			*_length = _more > _count ? _count : (u_int) _more;
			/* An element may take no memory, and realloc frees what is to have none. */
			if ((_memory = (char *) realloc (_memory, *_length * _size + 1)) == NULL) {
				*_length = _done;
				return FALSE;
			}
			memcpy (_elements, &_memory, sizeof (_memory));
			memset (_memory + _done * _size, 0, (*_length - _done) * _size);
		}
		if (!(*_routine) (xdrs, _memory + _done * _size))
			return FALSE;
	}
	return TRUE;
}

/*@ tenon_xdr_link */
/* What leads from an element of a list to the next; `_pointer' is where that is, and `_next' becomes it. */
TENON_SHARED bool_t
tenon_xdr_link (XDR *xdrs, void *_pointer, size_t _size, void **_next)
{
	bool_t _more;

	memcpy (_next, _pointer, sizeof (*_next));
	_more = *_next != NULL;
	if (xdrs->x_op == XDR_FREE) {
		memset (_pointer, 0, sizeof (*_next));
		return TRUE;
	}
	if (!xdr_bool (xdrs, &_more))
		return FALSE;
	if (!_more)
		*_next = NULL;
	else if (*_next == NULL && (*_next = calloc (1, _size)) == NULL)
		return FALSE;
	memcpy (_pointer, _next, sizeof (*_next));
	return TRUE;
}

/*@ tenon_xdr_deeper */
/* The routine of a type that may hold others of its kind: who sends it does not choose how deep. */
static bool_t
tenon_xdr_deeper (XDR *xdrs, void *_value, xdrproc_t _routine)
{
	bool_t _done;

	if (xdrs->x_op == XDR_DECODE && tenon_depth == TENON_DEPTH_MAX)
		return FALSE;
	tenon_depth++;
	_done = (*_routine) (xdrs, _value);
	tenon_depth--;
	return _done;
}
