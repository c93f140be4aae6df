//! What readers of the results are told of the sections `rpc` and `stream`: the texts in front of the tables.

/// The one of `rpc`.
pub const RPC: &str = "\
One call at a time: `block`, client and server on two cores, asleep while they wait; `onecore`, both on
one; `spin`, on two cores, and Tenon and `raw` do not sleep while they wait, whereas peers wait as they
do by default; `adaptive`, on two cores, and both ends of Tenon wait as they do by default, beside a `raw` that does
not sleep. Many: `inflight64`, one client that has 64 calls in flight; `processes4`, four clients that
have one each, on one core, the server on the other. `clients64`: one client of one thread has 64 connections and one
call outstanding on each, in rounds of a second; `raw`, `libtirpc` and Tenon's servers of threads (`tenon`) and of tasks
(`tenon_tokio`) are called by the same client, which speaks ONC RPC and looks all the time, the others by their own
asynchronous clients; there `raw` is one thread that echoes by epoll, in a process
without others: with another thread, for which the kernel counts who uses a file, that echo has answered 0.92 of the
calls of 64 Unix sockets. `threads64`: 64 threads share one channel of Tenon;
`raw` gives each a socket of its own. Both ends have a core each, under the system's default scheduling. `raw`: as many
bytes as Tenon sends over the same kind of socket and nothing else, in shared memory copied in and out by words, a line of the caches at least.
`tenon`: the lean protocol, but ONC RPC over UDP; `exchange`: the
lean protocol in datagrams; `tenon_tcp`: over TCP, beside it; `tenon_onc`: ONC RPC,
which libtirpc is compared with; `tenon_adaptive`: as `tenon`, but waiting as Tenon does if nothing is
said, which the rows with many calls do, too. Ratios are of times, but of calls per second where many
are made: there above 1 means that the first is faster. MaxResult returns 1440 bytes; LargeData sends so
many distinct members, random in [0, 2^31), and gets them back, built and owned one by one at both ends
by all. tonic, tarpc and Cap'n Proto run on one thread, which is what they are fastest on when they have
one core; TCP_NODELAY is set everywhere, and nothing is compressed. Tenon's client has many calls in
flight by starting them one after the other and taking the answers in order, in one thread. iceoryx2 moves
memory in which the other end reads and marshals nothing, and both its ends look all the time; Tenon moves typed
values, which are checked and owned at both ends. volo goes through shared memory by its shmipc, whose ends wake each
other by eventfds, as it recommends for small messages. tarpc beside greetings in shared memory goes over a Unix
socket. Bytes are those of a call and its answer, with all headers but those of TCP. A dash: the contestant cannot take
part (libtirpc carries no more than 8000 bytes over UDP and has one call in flight on a connection; others
do not speak UDP; protobuf's C++ for 8192 members does not compile, and what tarpc and Cap'n Proto derive
and generate for more than 1024 takes rustc too long).
";

/// The one of `stream`.
pub const STREAM: &str = "\
One call with one stream at a time, client and server on a core each, one connection; every round has one stream, from
the call to its end, and checks what came. `bytes`: 1 GB as the result, `argument_bytes`: as the argument, in items of
32,748 bytes, each of which is one message of 32 KiB with its header (tonic and gRPC C++: messages with 32,768 bytes);
every item is an owned value at the receiver. `items`: a million items of 64 bytes as the result, which Tenon's handler
feeds, as it has all of them, and the peers hand on as messages. `tenon`: threads; `tenon_tokio`: tasks, one thread at
each end; both wait as they do by default. `raw`: as many bytes over the same kind of socket, written in pieces of
32 KiB and read into a buffer of 32 KiB that stays, without values, headers or credit; its ends sleep while they wait,
and those of `raw_spinning` do not. In shared memory `raw` is two processes that copy by words into and out of a ring of
as many bytes as Tenon's has, and look all the time. tonic runs on one
thread, with messages that share the memory that they came in, and gRPC C++ has a callback server and a blocking client;
both with TCP_NODELAY, and nothing is compressed. Ratios are of rates: above 1 means that the first is faster.
";
