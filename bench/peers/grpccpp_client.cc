/*
 * Calls one operation of the section `rpc` by gRPC C++, again and again, and reports its times: one
 * call at a time by the blocking stub, several by a completion queue.
 *
 * usage: grpccpp_client PROCEDURE N CALLS_IN_FLIGHT tcp HOST PORT | unix PATH
 *
 * Speaks the protocol of src/measure.rs, as libtirpc_client.c does.
 */
#include "bench.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using bench::Bench, bench::Count, bench::Mean, bench::Nothing, bench::Numbers, bench::Packet,
    bench::Text;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr size_t samples_max = 1 << 20;

static void
require(bool condition, const std::string &what)
{
	if (!condition) {
		fprintf(stderr, "grpccpp_client: %s\n", what.c_str());
		exit(1);
	}
}

/* ---- A round ---- */

class Round {
public:
	explicit Round(nanoseconds length) : length(length), start(Clock::now()) {}

	bool
	goes_on(Clock::time_point now) const
	{
		bool is_time = now - start < length || samples.empty();
		return is_time && samples.size() < samples_max;
	}

	Clock::time_point
	record(Clock::time_point started)
	{
		Clock::time_point now = Clock::now();
		samples.push_back(nanoseconds(now - started).count());
		return now;
	}

	void
	report()
	{
		long long elapsed = nanoseconds(Clock::now() - start).count();
		std::sort(samples.begin(), samples.end());
		size_t count = samples.size();
		printf("%zu %lld %lld %lld\n", count, elapsed, samples[count / 2],
		    samples[count * 99 / 100]);
		fflush(stdout);
	}

	const nanoseconds length;
	const Clock::time_point start;

private:
	/* Kept from one round to the next. */
	static std::vector<long long> &
	memory()
	{
		static std::vector<long long> all;
		all.clear();
		all.reserve(samples_max);
		return all;
	}

	std::vector<long long> &samples = memory();
};

/* ---- Calls ---- */

template <class Request, class Result> struct Procedure {
	grpc::Status (Bench::Stub::*call)(grpc::ClientContext *, const Request &, Result *);
	std::unique_ptr<grpc::ClientAsyncResponseReader<Result>> (Bench::Stub::*start)(
	    grpc::ClientContext *, const Request &, grpc::CompletionQueue *);
	Request request;
	std::function<bool(const Result &)> is_right;
};

template <class Request, class Result> class Measurement {
public:
	Measurement(Bench::Stub &stub, Procedure<Request, Result> procedure)
	    : stub(stub), procedure(std::move(procedure))
	{
	}

	void
	call()
	{
		grpc::ClientContext context;
		Result result;
		check((stub.*procedure.call)(&context, procedure.request, &result), result);
	}

	void
	one_after_the_other(Round &round)
	{
		Clock::time_point before = round.start;
		while (round.goes_on(before)) {
			call();
			before = round.record(before);
		}
	}

	void
	many_at_once(Round &round, size_t in_flight)
	{
		for (size_t i = 0; i < in_flight; i++)
			start(round.start);
		for (size_t pending = in_flight; pending > 0;) {
			void *tag;
			bool is_ok;
			require(queue.Next(&tag, &is_ok) && is_ok, "a call did not end");
			std::unique_ptr<Pending> call(static_cast<Pending *>(tag));
			check(call->status, call->result);
			Clock::time_point now = round.record(call->started);
			if (round.goes_on(now))
				start(now);
			else
				pending--;
		}
	}

private:
	struct Pending {
		grpc::ClientContext context;
		Result result;
		grpc::Status status;
		Clock::time_point started;
		std::unique_ptr<grpc::ClientAsyncResponseReader<Result>> reader;
	};

	void
	start(Clock::time_point now)
	{
		auto call = new Pending;
		call->started = now;
		call->reader = (stub.*procedure.start)(&call->context, procedure.request, &queue);
		call->reader->Finish(&call->result, &call->status, call);
	}

	void
	check(const grpc::Status &status, const Result &result)
	{
		require(status.ok(), status.error_message());
		require(procedure.is_right(result), "a wrong answer");
	}

	Bench::Stub &stub;
	Procedure<Request, Result> procedure;
	grpc::CompletionQueue queue;
};

template <class Request, class Result>
static void
measure(Bench::Stub &stub, size_t in_flight, Procedure<Request, Result> procedure)
{
	Measurement<Request, Result> measurement(stub, std::move(procedure));
	std::string line;

	measurement.call();
	puts("ready");
	fflush(stdout);
	while (std::getline(std::cin, line)) {
		Round round(std::chrono::milliseconds(std::stoll(line)));
		if (in_flight == 1)
			measurement.one_after_the_other(round);
		else
			measurement.many_at_once(round, in_flight);
		round.report();
	}
}

/* ---- Operations ---- */

static std::vector<int32_t>
rand_nums(uint32_t count)
{
	std::vector<int32_t> all;
	uint32_t x = 1;
	for (uint32_t i = 0; i < count; i++) {
		x = (1103515245u * x + 12345u) & 0x7fffffff;
		all.push_back(x);
	}
	return all;
}

static std::string
max_result()
{
	std::string bytes(1440, '\0');
	for (size_t i = 0; i < bytes.size(); i++)
		bytes[i] = i;
	return bytes;
}

static Procedure<Count, Numbers>
get_rand_nums(uint32_t n)
{
	std::vector<int32_t> expected = rand_nums(n);
	bool is_first = true;
	Count count;
	count.set_count(n);
	return { &Bench::Stub::GetRandNums, &Bench::Stub::AsyncGetRandNums, count,
		[expected, is_first](const Numbers &all) mutable {
			if ((uint32_t)all.numbers_size() != expected.size())
				return false;
			if (!is_first)
				return all.numbers(all.numbers_size() - 1) == expected.back();
			is_first = false;
			return std::equal(expected.begin(), expected.end(), all.numbers().begin());
		} };
}

static Procedure<Numbers, Mean>
average(uint32_t n)
{
	Numbers all;
	for (uint32_t i = 1; i <= n; i++)
		all.add_numbers(i);
	return { &Bench::Stub::Average, &Bench::Stub::AsyncAverage, all,
		[n](const Mean &mean) { return mean.mean() == (n + 1) / 2.0; } };
}

/* The first answer is compared whole, and its first and last member ever after: protobuf has no way
 * to compare messages that does not take longer than the call. */
template <class LargeData>
static Procedure<LargeData, LargeData>
large(decltype(Procedure<LargeData, LargeData>::call) call,
    decltype(Procedure<LargeData, LargeData>::start) start, int32_t (LargeData::*last)() const)
{
	LargeData sent;
	const auto *fields = LargeData::descriptor();
	std::vector<int32_t> values = rand_nums(fields->field_count());
	for (int i = 0; i < fields->field_count(); i++)
		sent.GetReflection()->SetInt32(&sent, fields->field(i), values[i]);
	bool is_first = true;
	return { call, start, sent, [sent, last, is_first](const LargeData &received) mutable {
		bool is_right = received.m1() == sent.m1() && (received.*last)() == (sent.*last)();
		if (is_first)
			is_right = received.SerializeAsString() == sent.SerializeAsString();
		is_first = false;
		return is_right;
	} };
}

#define LARGE(members) \
	large<bench::LargeData##members>(&Bench::Stub::Large##members, \
	    &Bench::Stub::AsyncLarge##members, &bench::LargeData##members::m##members)

static void
measure(Bench::Stub &stub, const std::string &name, uint32_t n, size_t in_flight)
{
	Text world;
	world.set_text("world");
	if (name == "null")
		measure<Nothing, Nothing>(stub, in_flight,
		    { &Bench::Stub::NullCall, &Bench::Stub::AsyncNullCall, {},
			[](const Nothing &) { return true; } });
	else if (name == "maxresult")
		measure<Nothing, Packet>(stub, in_flight,
		    { &Bench::Stub::MaxResult, &Bench::Stub::AsyncMaxResult, {},
			[expected = max_result()](
			    const Packet &packet) { return packet.bytes() == expected; } });
	else if (name == "sayhello")
		measure<Text, Text>(stub, in_flight,
		    { &Bench::Stub::SayHello, &Bench::Stub::AsyncSayHello, world,
			[](const Text &text) { return text.text() == "Hello world"; } });
	else if (name == "average")
		measure(stub, in_flight, average(n));
	else if (name == "getrandnums")
		measure(stub, in_flight, get_rand_nums(n));
	else if (name == "large128")
		measure(stub, in_flight, LARGE(128));
	else if (name == "large1024")
		measure(stub, in_flight, LARGE(1024));
	else if (name == "large4096")
		measure(stub, in_flight, LARGE(4096));
	else
		require(false, name + " is no operation");
}

int
main(int argc, char **argv)
{
	require(argc > 5, "usage: grpccpp_client PROCEDURE N CALLS_IN_FLIGHT ADDRESS...");
	bool is_unix = std::string(argv[4]) == "unix";
	std::string target = is_unix ? std::string("unix:") + argv[5]
				     : std::string(argv[5]) + ":" + (argc > 6 ? argv[6] : "");
	auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
	auto stub = Bench::NewStub(channel);
	measure(*stub, argv[1], atoi(argv[2]), atoi(argv[3]));
	return 0;
}
