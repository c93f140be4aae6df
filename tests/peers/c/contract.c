/*
 * What programs rely on beside the bytes: what is read into memory that is there, what is let pass,
 * what is refused, what is left behind. It prints what it sees, which has to be the same, whether rpcgen or tenon wrote
 * the routines of the torture interface.
 */
#include "torture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t sheet[64];

static bool_t
run(xdrproc_t routine, void *value, enum xdr_op op, u_int bytes)
{
	XDR stream;
	xdrmem_create(&stream, (char *)sheet, bytes, op);
	return routine(&stream, value);
}

#define DECODE(name, value, count) run((xdrproc_t)xdr_##name, value, XDR_DECODE, 4 * (count))
#define ENCODE(name, value, count) run((xdrproc_t)xdr_##name, value, XDR_ENCODE, 4 * (count))

static void
set(int count, const uint32_t *numbers)
{
	int i;
	memset(sheet, 0, sizeof sheet);
	for (i = 0; i < count; i++)
		sheet[i] = htonl(numbers[i]);
}

#define SET(...) \
	do { \
		const uint32_t numbers[] = { __VA_ARGS__ }; \
		set(sizeof numbers / 4, numbers); \
	} while (0)

static void
numbers(void)
{
	small_scalars small;
	flag truth = 5;
	temperature degrees;

	SET(0xffffffff, 0x1ff, 0x18000, 0x1ffff, 0xffffffff, 0xffffffff, 1, 2);
	printf("small %d", DECODE(small_scalars, &small, 8));
	printf(" %d %u %d %u %ld %lu\n", small.a_char, small.an_uchar, small.a_short,
	    small.an_ushort, small.a_long, small.an_ulong);
	printf("true %d", ENCODE(flag, &truth, 1));
	printf(" %u\n", ntohl(sheet[0]));
	SET(7);
	printf("seven %d", DECODE(flag, &truth, 1));
	printf(" %d\n", truth);
	SET(12345);
	printf("no member %d", DECODE(temperature, &degrees, 1));
	printf(" %d\n", (int)degrees);
}

static void
strings_and_bytes(void)
{
	char room[8] = "before";
	text there = room, none = NULL, empty = NULL;
	label long_one = "seventeen letters";
	blob bytes = { 0, NULL };

	printf("no string %d\n", ENCODE(text, &none, 8));
	printf("too long %d\n", ENCODE(label, &long_one, 8));
	SET(17);
	printf("too long to read %d\n", DECODE(label, &none, 8));
	SET(2, 0x41420000);
	printf("into memory %d", DECODE(text, &there, 2));
	printf(" %s %d\n", there, there == room);
	SET(0);
	printf("empty %d", DECODE(text, &empty, 1));
	printf(" %d %zu\n", empty != NULL, strlen(empty));
	xdr_free((xdrproc_t)xdr_text, &empty);
	printf("freed %d\n", empty == NULL);
	SET(1, 0x41ffffff);
	printf("padding %d", DECODE(blob, &bytes, 2));
	printf(" %u %c\n", bytes.blob_len, bytes.blob_val[0]);
	xdr_free((xdrproc_t)xdr_blob, &bytes);
	printf("freed %d\n", bytes.blob_val == NULL);
	SET(0);
	printf("no bytes %d", DECODE(blob, &bytes, 1));
	printf(" %u %d\n", bytes.blob_len, bytes.blob_val == NULL);
	SET(9, 0x41414141);
	printf("cut off %d\n", DECODE(blob, &bytes, 2));
	xdr_free((xdrproc_t)xdr_blob, &bytes);
}

static void
arrays(void)
{
	int room[4] = { 9, 9, 9, 9 };
	list_of_ints list = { 0, room }, none = { 0, NULL };
	row three = { 1, 2, 3 };
	rows many = { 5, &three };
	temperature one = WARM;
	temperatures warm = { 1, &one };

	SET(2, 7, 8);
	printf("into memory %d", DECODE(list_of_ints, &list, 3));
	printf(" %u %d %d %d\n", list.list_of_ints_len, room[0], room[1], list.list_of_ints_val == room);
	SET(0);
	printf("nothing %d", DECODE(list_of_ints, &none, 1));
	printf(" %u %d\n", none.list_of_ints_len, none.list_of_ints_val == NULL);
	printf("too many %d\n", ENCODE(rows, &many, 60));
	printf("no room %d\n", ENCODE(temperatures, &warm, 1));
	printf("room %d\n", ENCODE(temperatures, &warm, 2));
	printf("fixed, no room %d\n", ENCODE(row, three, 2));
}

static void
pointers(void)
{
	int number = 3;
	optional_int maybe = &number;
	node_list nodes = NULL;
	by_uint choice = { 7, { 0 } };

	SET(1, 77);
	printf("into memory %d", DECODE(optional_int, &maybe, 2));
	printf(" %d %d\n", number, maybe == &number);
	SET(0);
	printf("absent %d", DECODE(optional_int, &maybe, 1));
	printf(" %d\n", maybe == NULL);
	SET(1, 5, 0, 1, 6, 0, 0);
	printf("list %d", DECODE(node_list, &nodes, 7));
	printf(" %d %d %d\n", nodes->value, nodes->next->value, nodes->next->next == NULL);
	xdr_free((xdrproc_t)xdr_node_list, &nodes);
	printf("freed %d\n", nodes == NULL);
	SET(1, 5, 0, 1);
	printf("list, cut off %d\n", DECODE(node_list, &nodes, 4));
	xdr_free((xdrproc_t)xdr_node_list, &nodes);
	printf("no arm %d\n", ENCODE(by_uint, &choice, 8));
	SET(7);
	printf("no arm to read %d\n", DECODE(by_uint, &choice, 8));
}

int
main(void)
{
	numbers();
	strings_and_bytes();
	arrays();
	pointers();
	return 0;
}
