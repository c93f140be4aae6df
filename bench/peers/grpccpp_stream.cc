/*
 * Streams of the section `stream` by gRPC C++: a callback server, and a client with a blocking stub.
 *
 * usage: grpccpp_stream server tcp, or grpccpp_stream client bytes|items tcp HOST PORT
 *
 * Speaks the protocol of common/src/transfer.rs, and sends and checks the same pieces.
 */
#include "stream.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using grpc::CallbackServerContext, grpc::ServerWriteReactor, grpc::Status;
using stream::Amount, stream::Chunk, stream::Item, stream::Streams;

/* Bytes of a piece, and of a small item. */
constexpr size_t piece_bytes = 32 << 10;
constexpr size_t item_bytes = 64;

/* Bytes or items of the first stream, all of whose bytes are compared. */
constexpr uint64_t first_amount = 1 << 20;

static void
require(bool condition, const std::string &what)
{
	if (!condition) {
		fprintf(stderr, "grpccpp_stream: %s\n", what.c_str());
		exit(1);
	}
}

/* So many bytes in pieces: each has its number in front and then the same bytes. */
class Pieces {
public:
	Pieces(uint64_t amount, size_t length) : buffer(length, '\0'), left(amount)
	{
		for (size_t at = 0; at < length; at++)
			buffer[at] = at % 251;
	}

	/* The next piece; NULL behind the last. */
	const std::string *
	next()
	{
		if (left == 0)
			return NULL;
		if (left < buffer.size())
			buffer.resize(left);
		left -= buffer.size();
		memcpy(&buffer[0], &number, std::min(sizeof(number), buffer.size()));
		number++;
		return &buffer;
	}

	bool
	is_empty() const
	{
		return left == 0;
	}

private:
	std::string buffer;
	uint64_t left, number = 0;
};

/* ---- The server ---- */

template <class Message> class Writer final : public ServerWriteReactor<Message> {
public:
	explicit Writer(Pieces pieces) : pieces(std::move(pieces))
	{
		write_next();
	}

	void
	OnWriteDone(bool is_ok) override
	{
		if (is_ok)
			write_next();
		else
			this->Finish(Status::CANCELLED);
	}

	void
	OnDone() override
	{
		delete this;
	}

private:
	void
	write_next()
	{
		const std::string *piece = pieces.next();
		if (piece == NULL) {
			this->Finish(Status::OK);
			return;
		}
		message.set_data(*piece);
		this->StartWrite(&message);
	}

	Pieces pieces;
	Message message;
};

class Operations final : public Streams::CallbackService {
	ServerWriteReactor<Chunk> *
	Get(CallbackServerContext *, const Amount *amount) override
	{
		return new Writer<Chunk>(Pieces(amount->amount(), piece_bytes));
	}

	ServerWriteReactor<Item> *
	List(CallbackServerContext *, const Amount *amount) override
	{
		return new Writer<Item>(Pieces(amount->amount() * item_bytes, item_bytes));
	}
};

static void
serve()
{
	Operations operations;
	int port = 0;
	grpc::ServerBuilder builder;
	builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(&operations);
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	require(server != nullptr, "no server");
	printf("tcp 127.0.0.1 %d\nready\n", port);
	fflush(stdout);
	server->Wait();
}

/* ---- The client ---- */

template <class Message>
static void
receive(Streams::Stub &stub,
    std::unique_ptr<grpc::ClientReader<Message>> (Streams::Stub::*call)(
	grpc::ClientContext *, const Amount &),
    uint64_t count, Pieces expected)
{
	grpc::ClientContext context;
	Amount amount;
	Message message;
	amount.set_amount(count);
	auto reader = (stub.*call)(&context, amount);
	while (reader->Read(&message)) {
		const std::string *piece = expected.next();
		const std::string &data = message.data();
		require(piece != NULL && data.size() == piece->size(), "a wrong piece");
		size_t number = std::min(sizeof(uint64_t), data.size());
		require(memcmp(data.data(), piece->data(), number) == 0, "another piece");
		require(data.back() == piece->back(), "wrong bytes");
		require(count > first_amount || data == *piece, "wrong bytes");
	}
	Status status = reader->Finish();
	require(status.ok(), status.error_message());
	require(expected.is_empty(), "pieces are missing");
}

static void
transfer(Streams::Stub &stub, const std::string &content, uint64_t amount)
{
	if (content == "bytes")
		receive(stub, &Streams::Stub::Get, amount, Pieces(amount, piece_bytes));
	else if (content == "items")
		receive(stub, &Streams::Stub::List, amount,
		    Pieces(amount * item_bytes, item_bytes));
	else
		require(false, "no streams of " + content);
}

static void
call(const std::string &content, const std::string &target)
{
	using Clock = std::chrono::steady_clock;
	auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
	auto stub = Streams::NewStub(channel);
	std::string line;

	transfer(*stub, content, first_amount);
	puts("ready");
	fflush(stdout);
	while (std::getline(std::cin, line)) {
		long long amount = std::stoll(line);
		auto start = Clock::now();
		transfer(*stub, content, amount);
		long long elapsed = std::chrono::nanoseconds(Clock::now() - start).count();
		printf("%lld %lld %lld %lld\n", amount, elapsed, elapsed, elapsed);
		fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	std::string role = argc > 1 ? argv[1] : "";
	if (role == "server" && argc == 3 && std::string(argv[2]) == "tcp")
		serve();
	else if (role == "client" && argc == 6 && std::string(argv[3]) == "tcp")
		call(argv[2], std::string(argv[4]) + ":" + argv[5]);
	else
		require(false, "usage: grpccpp_stream server tcp | client CONTENT tcp HOST PORT");
	return 0;
}
