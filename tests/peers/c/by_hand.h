/*
 * What interface_server.c and interface_client.c have in common. They use libtirpc's interface by hand, without stubs,
 * and are built twice: on libtirpc alone, and with what `tenon rpcgen --fast` puts behind its names. Both builds have to
 * say the same.
 */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <rpc/rpc.h>

#define PROGRAM 0x20000777
#define OTHER_PROGRAM 0x20000778
#define VERSION 2
#define NEXT_VERSION 3

enum {
	ADD = 1,	/* int to int, one more */
	TWICE,		/* reads its arguments twice; a text */
	PROGVERS,	/* answers with svcerr_progvers and so on */
	NOPROG,
	SYSTEMERR,
	REJECTED,
	WEAKAUTH,
	DECODE,
	NOPROC,
	SILENT,		/* never answers */
	LATER,		/* answers when the dispatcher has returned */
	CALLER,		/* what the server sees of its caller; a text */
	BIG,		/* int to so many bytes */
	UNREGISTER,	/* forgets NEXT_VERSION */
	EXIT,		/* answers, and leaves the loop */
	LENGTH,		/* how many bytes its argument has */
	COUNT,		/* how many calls there were of BATCHED */
	BATCHED,	/* is not answered */
	UNENCODABLE	/* has a result that no stream takes */
};

enum { TEXT_MAX = 400, BIG_MAX = 64 << 20 };

#define REQUIRE(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

#endif
