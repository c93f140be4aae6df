/*
 * Transports for peers that stand on libtirpc: no rpcbind, any port, nothing beyond loopback.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <rpc/rpc.h>

/* Registers the program on one transport; rpcgen's dispatcher is in the server's own file. */
typedef void register_program(SVCXPRT *transport);

/*
 * Opens the transports named in the arguments ("tcp", "udp", "unix=PATH"), calls `enlist` on each,
 * prints one address per line ("tcp 127.0.0.1 PORT", "unix PATH") and then "ready", and serves
 * until it is killed or its parent ends.
 */
void serve(int argc, char **argv, register_program *enlist);

/*
 * Connects to the address in the arguments: "tcp HOST PORT", "udp HOST PORT" or "unix PATH".
 * Ends the process with a message if that fails.
 */
CLIENT *connect_to(int argc, char **argv, rpcprog_t program, rpcvers_t version);

/* Whether the address in the arguments is UDP, over which libtirpc carries 8,000 bytes. */
int is_datagram(char **argv);

/* Ends the process with a message unless `condition` holds. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
			fail(__FILE__, __LINE__, #condition); \
	} while (0)

void fail(const char *file, int line, const char *what) __attribute__((noreturn));

#endif
