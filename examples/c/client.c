/*
 * Asks a store.
 *
 *     client ADDRESS put NAME TEXT
 *     client ADDRESS get NAME
 *     client ADDRESS list
 */
#include <stdio.h>
#include <string.h>

#include "store.h"

static bool
put (tenon_channel *channel, char *name, char *text, tenon_error *error)
{
	const entry new_one = { name, text };
	uint32_t count;

	if (!put_1 (channel, &new_one, &count, error))
		return false;
	printf ("%u in the store\n", (unsigned) count);
	return true;
}

static bool
get (tenon_channel *channel, const char *name, tenon_error *error)
{
	found result;

	if (!get_1 (channel, name, &result, error))
		return false;
	puts (result.is_there ? result.found_u.text : "(nothing)");
	tenon_clear (&found_message, &result);
	return true;
}

static bool
list (tenon_channel *channel, tenon_error *error)
{
	entry_names result;

	if (!list_1 (channel, &result, error))
		return false;
	for (uint32_t i = 0; i < result.names.names_len; i++)
		puts (result.names.names_val[i]);
	tenon_clear (&entry_names_message, &result);
	return true;
}

static bool
is (const char *word, int count, char **arguments, int needed)
{
	return count == needed && strcmp (arguments[2], word) == 0;
}

int
main (int count, char **arguments)
{
	tenon_error error;
	bool has_answered;

	if (!is ("put", count, arguments, 5) && !is ("get", count, arguments, 4)
	    && !is ("list", count, arguments, 3)) {
		fprintf (stderr, "usage: %s ADDRESS put NAME TEXT | get NAME | list\n", arguments[0]);
		return 2;
	}
	tenon_channel *channel = tenon_connect (arguments[1], &store_1_interface, NULL, &error);
	if (channel == NULL) {
		tenon_error_print (&error, arguments[0]);
		return 1;
	}
	if (count == 5)
		has_answered = put (channel, arguments[3], arguments[4], &error);
	else if (count == 4)
		has_answered = get (channel, arguments[3], &error);
	else
		has_answered = list (channel, &error);
	if (!has_answered)
		tenon_error_print (&error, arguments[0]);
	tenon_close (channel);
	return has_answered ? 0 : 1;
}
