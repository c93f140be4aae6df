/* svc_run, looking for calls for a moment before it sleeps. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define TENON_TIRPC_NO_NAMES
#include "tirpc.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* About what waking up takes; nothing is gained by looking longer. */
enum { LOOK_NS = 50000 };
/* Looks in vain that end looking, and sleeps after which it is tried again. */
enum { VAIN_MAX = 8, TRY_AGAIN = 64 };
/* Looks between two times that the processor is offered to others. */
enum { LOOKS = 16 };

/* Whether looking pays. */
typedef struct looking {
    bool has_processors;
    unsigned vain, sleeps;
} looking;

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool has_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

static bool should_look(looking *of) {
    if (!of->has_processors) return false;
    if (of->vain < VAIN_MAX) return true;
    if (++of->sleeps < TRY_AGAIN) return false;
    of->sleeps = 0;
    return true;
}

/* Looks for a moment; returns what poll does. */
static int look(looking *of, struct pollfd *fds, nfds_t count) {
    int64_t end = nanoseconds() + LOOK_NS;
    for (unsigned looks = 1;; looks++) {
        int ready = poll(fds, count, 0);
        if (ready != 0) {
            of->vain = 0;
            return ready;
        }
        if (looks % LOOKS == 0) sched_yield();
        if (nanoseconds() > end) break;
    }
    of->vain++;
    return 0;
}

/* Copies what libtirpc polls, as serving changes it; returns false when there is no memory. */
static bool copy_descriptors(struct pollfd **to, size_t *room, size_t count) {
    if (count > *room) {
        struct pollfd *more = reallocarray(*to, count, sizeof *more);
        if (more == NULL) return false;
        *to = more;
        *room = count;
    }
    for (size_t i = 0; i < count; i++) {
        (*to)[i] = svc_pollfd[i];
        (*to)[i].revents = 0;
    }
    return true;
}

void tenon_svc_run(void) {
    struct pollfd *fds = NULL;
    size_t room = 0;
    looking looking = {has_processors(), 0, 0};
    bool has_served = false;
    /* As with libtirpc, svc_exit leaves nothing to poll. */
    while (svc_max_pollfd > 0 || svc_pollfd != NULL) {
        size_t count = svc_max_pollfd > 0 ? (size_t)svc_max_pollfd : 0;
        if (!copy_descriptors(&fds, &room, count)) {
            fputs("svc_run: there is no memory\n", stderr);
            break;
        }
        int ready = has_served && should_look(&looking) ? look(&looking, fds, count) : 0;
        if (ready == 0) ready = poll(fds, count, -1);
        has_served = ready > 0;
        if (ready > 0)
            svc_getreq_poll(fds, ready);
        else if (ready < 0 && errno != EINTR) {
            perror("svc_run: poll failed");
            break;
        }
    }
    free(fds);
}
