/*
 * Transports for peers that stand on libtirpc: no rpcbind, any port.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <rpc/rpc.h>

/* Registers the program on one transport; rpcgen's dispatcher is in the server's own file. */
typedef void register_program(SVCXPRT *transport);

/*
 * Opens the transports named in the arguments ("tcp", "udp", "unix=PATH", "onc+xdp=HOST"), calls
 * `enlist` on each, prints one address per line ("tcp 127.0.0.1 PORT", "unix PATH",
 * "onc+xdp HOST PORT") and then "ready", and serves until it is killed or its parent ends.
 * To libtirpc "onc+xdp" is UDP: the peer is what goes past the kernel.
 */
void serve(int argc, char **argv, register_program *enlist);

/*
 * Connects to the address in the arguments: "tcp HOST PORT", "udp HOST PORT", "unix PATH" or
 * "onc+xdp HOST PORT".
 * Ends the process with a message if that fails.
 */
CLIENT *connect_to(int argc, char **argv, rpcprog_t program, rpcvers_t version);

/*
 * Bytes of the largest message to the address in the arguments: 8,000 over UDP, as libtirpc carries
 * no more; 1,472 where it has to fit one frame; otherwise SIZE_MAX.
 */
size_t message_max(char **argv);

/* Ends the process with a message unless `condition` holds. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
			fail(__FILE__, __LINE__, #condition); \
	} while (0)

void fail(const char *file, int line, const char *what) __attribute__((noreturn));

#endif
