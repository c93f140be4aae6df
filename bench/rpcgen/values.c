#include "values.h"
#include "transport.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 1024 };

/* Bytes of the integers that a Structure begins with. */
#define INTS_BYTES (offsetof(Structure, triples) + sizeof((Structure *)NULL)->triples)

/* ---- Values ---- */

static int
next_int(void)
{
	static u_int x = 1;

	x = 1103515245u * x + 12345u;
	return x;
}

static void
fill_ints(void *value, u_int count)
{
	Ints *ints = value;

	ints->values.values_len = count;
	ints->values.values_val = malloc(count * sizeof(int));
	REQUIRE(ints->values.values_val != NULL);
	for (u_int i = 0; i < count; i++)
		ints->values.values_val[i] = next_int();
}

static int
equal_ints(const void *left, const void *right)
{
	const Ints *a = left, *b = right;
	u_int count = a->values.values_len;

	return count == b->values.values_len &&
	    memcmp(a->values.values_val, b->values.values_val, count * sizeof(int)) == 0;
}

static void
fill_structure(void *value, u_int count)
{
	Structure *all = value;

	for (size_t i = 0; i < INTS_BYTES / sizeof(int); i++)
		((int *)value)[i] = next_int();
	all->text.kind = next_int();
	all->text.text = malloc(TEXT_BYTES + 1);
	REQUIRE(all->text.text != NULL);
	memset(all->text.text, 'x', TEXT_BYTES);
	all->text.text[TEXT_BYTES] = 0;
}

static int
equal_structures(const void *left, const void *right)
{
	const Structure *a = left, *b = right;

	return memcmp(a, b, INTS_BYTES) == 0 && a->text.kind == b->text.kind &&
	    strcmp(a->text.text, b->text.text) == 0;
}

static void
fill_members(void *value, u_int count)
{
	for (size_t i = 0; i < sizeof(Members1000) / sizeof(int); i++)
		((int *)value)[i] = next_int();
}

static int
equal_members(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(Members1000)) == 0;
}

/* A text of at least `least` letters, and at most as many more. */
static char *
new_text(u_int least, u_int more)
{
	u_int length = least + ((u_int)next_int() >> 16) % (more + 1);
	char *text = malloc(length + 1);

	REQUIRE(text != NULL);
	for (u_int i = 0; i < length; i++)
		text[i] = 'a' + ((u_int)next_int() >> 16) % 26;
	text[length] = 0;
	return text;
}

static void *
new_zero(size_t size)
{
	void *memory = calloc(1, size);

	REQUIRE(memory != NULL);
	return memory;
}

static void
fill_texts(Value *value, u_int count)
{
	value->Value_u.texts.texts_len = count;
	value->Value_u.texts.texts_val = new_zero(count * sizeof(Line));
	for (u_int i = 0; i < count; i++)
		value->Value_u.texts.texts_val[i] = new_text(3, 17);
}

static Attribute *
new_attribute(Attribute *next)
{
	Attribute *attribute = new_zero(sizeof *attribute);
	Value *value = &attribute->value;

	attribute->name = new_text(4, 8);
	value->kind = ((u_int)next_int() >> 16) % 4;
	if (value->kind == VALUE_TEXT)
		value->Value_u.text = new_text(3, 37);
	else if (value->kind == VALUE_NUMBER)
		value->Value_u.number = next_int();
	else if (value->kind == VALUE_TEXTS)
		fill_texts(value, 1 + ((u_int)next_int() >> 16) % 3);
	attribute->next = next;
	return attribute;
}

static Owner *
new_owner(void)
{
	Owner *owner = new_zero(sizeof *owner);

	owner->name = new_text(4, 8);
	if (((u_int)next_int() >> 16) % 2) {
		owner->address = new_zero(sizeof(Line));
		*owner->address = new_text(10, 20);
	}
	owner->id = next_int();
	return owner;
}

static void
fill_directory(void *value, u_int count)
{
	Directory *directory = value;

	directory->path = new_text(20, 20);
	directory->changed = 0x123456789a;
	for (u_int i = 0; i < count; i++) {
		Entry *entry = new_zero(sizeof *entry);

		entry->id = next_int();
		entry->name = new_text(5, 25);
		if (((u_int)next_int() >> 16) % 4)
			entry->owner = new_owner();
		for (u_int left = ((u_int)next_int() >> 16) % 5; left > 0; left--)
			entry->attributes = new_attribute(entry->attributes);
		entry->next = directory->entries;
		directory->entries = entry;
	}
}

static int
equal_directories(const void *left, const void *right)
{
	static char bytes[2][1 << 20];
	const void *values[2] = { left, right };
	u_int lengths[2];

	for (int i = 0; i < 2; i++) {
		XDR xdrs;

		xdrmem_create(&xdrs, bytes[i], sizeof bytes[i], XDR_ENCODE);
		REQUIRE(xdr_Directory(&xdrs, (Directory *)values[i]));
		lengths[i] = xdr_getpos(&xdrs);
	}
	return lengths[0] == lengths[1] && memcmp(bytes[0], bytes[1], lengths[0]) == 0;
}

static u_int
value_blocks(const Value *value, size_t *sizes)
{
	u_int count = 0;

	if (value->kind == VALUE_TEXT)
		sizes[count++] = strlen(value->Value_u.text) + 1;
	if (value->kind == VALUE_TEXTS) {
		sizes[count++] = value->Value_u.texts.texts_len * sizeof(Line);
		for (u_int i = 0; i < value->Value_u.texts.texts_len; i++)
			sizes[count++] = strlen(value->Value_u.texts.texts_val[i]) + 1;
	}
	return count;
}

static u_int
owner_blocks(const Owner *owner, size_t *sizes)
{
	u_int count = 0;

	sizes[count++] = sizeof *owner;
	sizes[count++] = strlen(owner->name) + 1;
	if (owner->address != NULL) {
		sizes[count++] = sizeof *owner->address;
		sizes[count++] = strlen(*owner->address) + 1;
	}
	return count;
}

static u_int
directory_blocks(const void *value, size_t *sizes)
{
	const Directory *directory = value;
	u_int count = 0;

	sizes[count++] = strlen(directory->path) + 1;
	for (const Entry *entry = directory->entries; entry != NULL; entry = entry->next) {
		REQUIRE(count < BLOCKS_MAX - 100);
		sizes[count++] = sizeof *entry;
		sizes[count++] = strlen(entry->name) + 1;
		if (entry->owner != NULL)
			count += owner_blocks(entry->owner, sizes + count);
		for (const Attribute *attribute = entry->attributes; attribute != NULL; attribute = attribute->next) {
			sizes[count++] = sizeof *attribute;
			sizes[count++] = strlen(attribute->name) + 1;
			count += value_blocks(&attribute->value, sizes + count);
		}
	}
	return count;
}

/* ---- Calls: only a client has them ---- */

#pragma weak echo_ints_1
#pragma weak echo_structure_1
#pragma weak echo_members1000_1
#pragma weak echo_directory_1

static void *
send_ints(void *value, CLIENT *client)
{
	return echo_ints_1(value, client);
}

static void *
send_structure(void *value, CLIENT *client)
{
	return echo_structure_1(value, client);
}

static void *
send_members(void *value, CLIENT *client)
{
	return echo_members1000_1(value, client);
}

static void *
send_directory(void *value, CLIENT *client)
{
	return echo_directory_1(value, client);
}

const struct work works[] = {
	{ "ints", (xdrproc_t)xdr_Ints, sizeof(Ints), fill_ints, send_ints, equal_ints, NULL },
	{ "structure", (xdrproc_t)xdr_Structure, sizeof(Structure), fill_structure, send_structure,
	    equal_structures, NULL },
	{ "members1000", (xdrproc_t)xdr_Members1000, sizeof(Members1000), fill_members, send_members,
	    equal_members, NULL },
	{ "nested", (xdrproc_t)xdr_Directory, sizeof(Directory), fill_directory, send_directory,
	    equal_directories, directory_blocks },
	{ NULL, NULL, 0, NULL, NULL, NULL, NULL },
};

const struct work *
find_work(const char *name, u_int *count)
{
	for (const struct work *work = works; work->name != NULL; work++) {
		size_t length = strlen(work->name);

		if (strncmp(name, work->name, length) == 0) {
			*count = atoi(name + length);
			return work;
		}
	}
	fail(name, 0, "is no work");
}

/* ---- Time ---- */

long long
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int
ascending(const void *left, const void *right)
{
	long long a = *(const long long *)left, b = *(const long long *)right;

	return (a > b) - (a < b);
}

void
sort(long long *samples, int count)
{
	qsort(samples, count, sizeof *samples, ascending);
}
