/*
 * Keeps texts by name, for all its clients.
 *
 *     server ADDRESS...
 *
 * serves at each address until it is interrupted, and prints where: tcp://127.0.0.1:0 takes any free port.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* Handlers run on several threads. */
typedef struct store {
	pthread_mutex_t lock;
	entry *entries;
	uint32_t count;
} store;

static entry *
find (store *all, const char *name)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (strcmp (all->entries[i].name, name) == 0)
			return &all->entries[i];
	return NULL;
}

/* Room for an entry of this name: the one that has it, emptied, or a new one. */
static entry *
make_room (store *all, const char *name)
{
	entry *room = find (all, name);
	if (room != NULL) {
		tenon_clear (&entry_message, room);
		return room;
	}
	entry *more = realloc (all->entries, (all->count + 1) * sizeof *more);
	if (more == NULL)
		return NULL;
	all->entries = more;
	return &more[all->count++];
}

static bool
put (void *context, entry *arguments, uint32_t *count, tenon_request *request)
{
	store *all = context;
	if (arguments->name == NULL || arguments->name[0] == 0)
		return tenon_refuse (request, TENON_RAISED, "an entry needs a name");
	pthread_mutex_lock (&all->lock);
	entry *room = make_room (all, arguments->name);
	if (room != NULL) {
		/* What the arguments own is kept, and no longer theirs. */
		*room = *arguments;
		memset (arguments, 0, sizeof *arguments);
	}
	*count = all->count;
	pthread_mutex_unlock (&all->lock);
	return room != NULL || tenon_refuse (request, TENON_FAILED, "there is no memory");
}

static bool
get (void *context, char *name, found *result, tenon_request *request)
{
	store *all = context;
	(void) request;
	pthread_mutex_lock (&all->lock);
	const entry *known = find (all, name);
	if (known != NULL) {
		result->is_there = true;
		/* The library frees it when it was sent. */
		result->found_u.text = strdup (known->text);
	}
	pthread_mutex_unlock (&all->lock);
	return true;
}

static bool
list (void *context, entry_names *result, tenon_request *request)
{
	store *all = context;
	pthread_mutex_lock (&all->lock);
	entry_name *names = calloc (all->count + 1, sizeof *names);
	if (names != NULL) {
		result->names.names_val = names;
		for (uint32_t i = 0; i < all->count; i++)
			names[i] = strdup (all->entries[i].name);
		result->names.names_len = all->count;
	}
	pthread_mutex_unlock (&all->lock);
	return names != NULL || tenon_refuse (request, TENON_FAILED, "there is no memory");
}

static void
forget (store *all)
{
	for (uint32_t i = 0; i < all->count; i++)
		tenon_clear (&entry_message, &all->entries[i]);
	free (all->entries);
}

/* Serves until the process is told to end. */
static bool
serve (store *all, int count, char **addresses, tenon_server *server, tenon_error *error)
{
	static const store_1_service methods = { put, get, list };
	const char *address;
	sigset_t ends;
	int which;

	if (!store_1_serve (server, &methods, all, TENON_ANY_ORDER, error))
		return false;
	for (int i = 0; i < count; i++)
		if (!tenon_server_listen (server, addresses[i], error))
			return false;
	/* In front of the server's threads, which inherit it: so the signal waits for sigwait. */
	sigemptyset (&ends);
	sigaddset (&ends, SIGINT);
	sigaddset (&ends, SIGTERM);
	pthread_sigmask (SIG_BLOCK, &ends, NULL);
	if (!tenon_server_start (server, error))
		return false;
	for (size_t i = 0; (address = tenon_server_address (server, i)) != NULL; i++)
		printf ("serving at %s\n", address);
	fflush (stdout);
	sigwait (&ends, &which);
	tenon_server_stop (server, 1000);
	return true;
}

int
main (int count, char **arguments)
{
	store all = { PTHREAD_MUTEX_INITIALIZER, NULL, 0 };
	tenon_error error;

	if (count < 2) {
		fprintf (stderr, "usage: %s ADDRESS...\n", arguments[0]);
		return 2;
	}
	tenon_server *server = tenon_server_new ();
	bool has_served = serve (&all, count - 1, arguments + 1, server, &error);
	if (!has_served)
		tenon_error_print (&error, arguments[0]);
	tenon_server_free (server);
	forget (&all);
	return has_served ? 0 : 1;
}
