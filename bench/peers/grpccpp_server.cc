/*
 * The operations of the section `rpc`, served by gRPC C++ through its callback API.
 *
 * usage: grpccpp_server tcp|unix=PATH
 */
#include "bench.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include <string>

using bench::Count, bench::Mean, bench::Nothing, bench::Numbers, bench::Packet, bench::Text;
using grpc::CallbackServerContext, grpc::ServerUnaryReactor, grpc::Status;

/* Numbers that anybody asks for, at most. */
constexpr uint32_t count_max = 1 << 20;

static ServerUnaryReactor *
finish(CallbackServerContext *context, const Status &status = Status::OK)
{
	ServerUnaryReactor *reactor = context->DefaultReactor();
	reactor->Finish(status);
	return reactor;
}

class Operations final : public bench::Bench::CallbackService {
	ServerUnaryReactor *
	NullCall(CallbackServerContext *context, const Nothing *, Nothing *) override
	{
		return finish(context);
	}

	ServerUnaryReactor *
	MaxResult(CallbackServerContext *context, const Nothing *, Packet *result) override
	{
		std::string &bytes = *result->mutable_bytes();
		bytes.resize(1440);
		for (size_t i = 0; i < bytes.size(); i++)
			bytes[i] = i;
		return finish(context);
	}

	ServerUnaryReactor *
	Average(CallbackServerContext *context, const Numbers *all, Mean *result) override
	{
		int64_t sum = 0;
		for (int32_t number : all->numbers())
			sum += number;
		result->set_mean(all->numbers_size() == 0 ? 0 : (double)sum / all->numbers_size());
		return finish(context);
	}

	ServerUnaryReactor *
	GetRandNums(CallbackServerContext *context, const Count *count, Numbers *result) override
	{
		if (count->count() > count_max)
			return finish(context, Status(grpc::INVALID_ARGUMENT, "too many"));
		uint32_t x = 1;
		result->mutable_numbers()->Reserve(count->count());
		for (uint32_t i = 0; i < count->count(); i++) {
			x = (1103515245u * x + 12345u) & 0x7fffffff;
			result->add_numbers(x);
		}
		return finish(context);
	}

	ServerUnaryReactor *
	SayHello(CallbackServerContext *context, const Text *name, Text *result) override
	{
		result->set_text("Hello " + name->text());
		return finish(context);
	}

#define LARGE(members) \
	ServerUnaryReactor * \
	Large##members(CallbackServerContext *context, const bench::LargeData##members *data, \
	    bench::LargeData##members *result) override \
	{ \
		*result = *data; \
		return finish(context); \
	}
	LARGE(128)
	LARGE(1024)
	LARGE(4096)
};

int
main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 2) {
		fprintf(stderr, "usage: grpccpp_server tcp|unix=PATH\n");
		return 2;
	}
	std::string listen = argv[1];
	bool is_unix = listen.rfind("unix=", 0) == 0;
	std::string path = is_unix ? listen.substr(5) : "";
	Operations operations;
	int port = 0;
	grpc::ServerBuilder builder;
	builder.AddListeningPort(is_unix ? "unix:" + path : "127.0.0.1:0",
	    grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(&operations);
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	if (server == nullptr)
		return 1;
	if (is_unix)
		printf("unix %s\nready\n", path.c_str());
	else
		printf("tcp 127.0.0.1 %d\nready\n", port);
	fflush(stdout);
	server->Wait();
	return 0;
}
