//! A call of a task takes no memory once everything is warm: client, run time and server are counted.

use std::future::Future;
use std::sync::Arc;

use crate::ALLOCATOR;
use crate::common::place;
use stats_alloc::Region;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Protocol, Refusal, Server, Service};
use tenon_tokio::Client;

const PROGRAM: u32 = 0x2000_0042;

/// Returns its arguments, and allocates nothing.
struct Echo;

impl Service for Echo {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let rest = arguments.rest();
        result.room(rest.len()).copy_from_slice(rest);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Echo {
    fn interface(&self) -> Arc<tenon::lean::Interface> {
        Arc::new(tenon::lean::Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        _call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let rest = match &arguments {
            LeanInput::Native(arguments) => arguments.rest(),
            LeanInput::Swapped(arguments) => arguments.rest(),
        };
        result.room(rest.len()).copy_from_slice(rest);
        Ok(())
    }
}

/// Makes an empty call or a large one, by turns, and looks at the result.
async fn call(client: &Client, number: usize) {
    let size = number % 2 * 1440;
    let length = match client.channel().address().protocol() {
        Protocol::Onc => {
            let encode = |out: &mut Encoder<'_>| {
                out.room(size).fill(7);
                Ok(())
            };
            client
                .onc()
                .call(1, encode, |input| Ok(input.take(input.left())?.len()))
                .await
        }
        Protocol::Lean => {
            let encode = |out: &mut Encoder<'_, Lean>| {
                out.room(size).fill(7);
                Ok(())
            };
            let decode = |input: &mut LeanInput<'_>| match input {
                LeanInput::Native(input) => Ok(input.take(input.left())?.len()),
                LeanInput::Swapped(input) => Ok(input.take(input.left())?.len()),
            };
            client.lean().call(1, encode, decode).await
        }
    };
    assert_eq!(length.unwrap(), size);
}

/// Eight calls at the same time.
async fn call_eight(client: &Client) {
    tokio::join!(
        call(client, 0),
        call(client, 1),
        call(client, 2),
        call(client, 3),
        call(client, 4),
        call(client, 5),
        call(client, 6),
        call(client, 7),
    );
}

/// Allocations of the quietest of several rounds: a machine that is busy with something else may
/// let the server believe that the peer is silent, or that a procedure takes long.
async fn fewest_allocations<F: Future<Output = ()>>(call: impl Fn() -> F) -> usize {
    for _ in 0..1000 {
        call().await;
    }
    let mut fewest = usize::MAX;
    for _ in 0..200 {
        let region = Region::new(ALLOCATOR);
        for _ in 0..100 {
            call().await;
        }
        let change = region.change();
        fewest = fewest.min(change.allocations + change.reallocations);
        if fewest == 0 {
            break;
        }
    }
    fewest
}

pub fn a_warm_call_allocates_nothing() {
    let path = place::fresh_path();
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .listen(&format!("unix://{}", path.display()))
        .unwrap()
        .service(Echo)
        .start()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        for address in server.addresses() {
            for address in [address.to_string(), format!("lean+{address}")] {
                let client = Client::connect(&address, PROGRAM, 1).await.unwrap();
                let shared = Arc::new(client.with_timeout(std::time::Duration::from_secs(20)));
                let alone = fewest_allocations(|| call(&shared, 1)).await;
                let together = fewest_allocations(|| call_eight(&shared)).await;
                assert_eq!((alone, together), (0, 0), "{address}");
            }
        }
    });
}
