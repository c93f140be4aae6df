/* Runs a server on two threads, and stops it after it has begun, while it begins and before: both return, and nobody is
 * told that something is wrong. Is given an address to listen at. */
#include "notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 30 };

typedef enum when { BEHIND, WHILE, BEFORE } when;

static pthread_barrier_t all_are_there;

static void *run(void *server) {
    tenon_error error;
    pthread_barrier_wait(&all_are_there);
    if (tenon_server_run(server, &error)) return NULL;
    tenon_error_print(&error, "run");
    exit(1);
}

static void stops(const char *address, when when) {
    tenon_error error;
    pthread_t threads[2];
    tenon_server *server = tenon_server_new();
    if (!tenon_server_listen(server, address, &error)) tenon_error_print(&error, address), exit(1);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, server);
    if (when == BEFORE) tenon_server_stop(server, 0);
    pthread_barrier_wait(&all_are_there);
    while (when == BEHIND && tenon_server_address(server, 0) == NULL) usleep(100);
    if (when != BEFORE) tenon_server_stop(server, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    if (when == BEFORE && tenon_server_address(server, 0) != NULL) puts("it served"), exit(1);
    tenon_server_free(server);
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    /* Who waits for ever is not fine. */
    alarm(120);
    pthread_barrier_init(&all_are_there, NULL, 3);
    for (int i = 0; i < ROUNDS; i++) {
        stops(arguments[1], BEHIND);
        stops(arguments[1], WHILE);
        stops(arguments[1], BEFORE);
    }
    puts("fine");
    return 0;
}
