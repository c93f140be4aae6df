//! A caller whose calls are tasks of tokio.

use std::time::Instant;

use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Representation};
use tenon::{CallCodec, CallError, CalledProcedure};
use tenon_exec::random::Random;
use tenon_interop::compiled::hprpc::{
    GET_RAND_NUMS, HPRPC_PROGRAM, HPRPC_VERSION, HPRPC_VERSION_INTERFACE, Numbers, decode_numbers,
};
use tenon_interop::services::rand_nums;
use tenon_tokio::Client;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;

use crate::calls::{IN_FLIGHT_MAX, PATIENCE, Tally, size, size_max};

/// A call for so many numbers.
struct RandNums(u32);

impl CalledProcedure for RandNums {
    const PROCEDURE: u32 = GET_RAND_NUMS;

    type Result = Numbers;
    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for RandNums {
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        out.put(self.0);
        Ok(())
    }

    fn decode(input: &mut Decoder<'_, R>) -> Result<Numbers, DecodeError> {
        decode_numbers(input)
    }
}

async fn call(client: Client, count: u32) -> Result<bool, CallError> {
    Ok(client.call(&RandNums(count)).await? == rand_nums(count))
}

/// Calls the server at `url` until `end`, many tasks over one channel, of which some are dropped in the middle of
/// their call, and says what came of it.
pub fn call_until(url: &str, is_faulty: bool, seed: u64, end: Instant) -> Tally {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build();
    runtime.expect("a run time").block_on(async {
        let client = Client::connect(url, HPRPC_PROGRAM, HPRPC_VERSION).await;
        let client = client.expect("a server").with_timeout(PATIENCE);
        let client = client.with_interface(HPRPC_VERSION_INTERFACE.shared());
        let most = size_max(&client.channel().address().to_string());
        let (mut random, mut tally) = (Random::new(seed), Tally::default());
        while !tally.is_over(is_faulty, end) {
            let calls: Vec<_> = (0..=random.below(IN_FLIGHT_MAX))
                .map(|_| tokio::spawn(call(client.clone(), size(&mut random, most) / 4)))
                .collect();
            for task in calls {
                match random.below(10) {
                    0 => give_up(task, is_faulty, &mut tally).await,
                    _ => tally.note(is_faulty, task.await.expect("no task panics")),
                }
            }
        }
        tally
    })
}

/// Drops a call, unless it is over already.
async fn give_up(task: JoinHandle<Result<bool, CallError>>, is_faulty: bool, tally: &mut Tally) {
    task.abort();
    match task.await {
        Ok(outcome) => tally.note(is_faulty, outcome),
        Err(error) => {
            assert!(error.is_cancelled(), "{error}");
            tally.given_up += 1;
        }
    }
}
