//! The operations as a client calls them, and how they are measured.

use std::error::Error;
use std::future::Future;

use tenon_bench_common::measure::serve_rounds_async;
use tenon_bench_common::operation::{
    NAME, Operation, greeting, large_data, max_result, one_to, rand_nums,
};
use tenon_bench_common::task::check;

/// What a call returns.
pub type Answer<T> = Result<T, Box<dyn Error>>;

/// A client of a peer. Each method makes one call.
pub trait Peer {
    /// Nothing there and back.
    fn null(&self) -> impl Future<Output = Answer<()>>;

    /// Nothing there, one packet back.
    fn max_result(&self) -> impl Future<Output = Answer<impl AsRef<[u8]>>>;

    /// A name there, a greeting back.
    fn say_hello(&self, name: &str) -> impl Future<Output = Answer<impl AsRef<str>>>;

    /// Numbers there, their mean back.
    fn average(&self, numbers: &[i32]) -> impl Future<Output = Answer<f64>>;

    /// A count there, so many numbers back.
    fn get_rand_nums(&self, count: u32) -> impl Future<Output = Answer<Vec<i32>>>;

    /// Measures the operation that echoes a record of so many members, by [`measure_echo`].
    fn measure_large(&self, members: u32, in_flight: usize) -> impl Future<Output = Answer<()>>;
}

/// Measures what the task says, and checks all answers.
///
/// # Errors
/// A call fails or is answered wrongly.
pub async fn measure(peer: &impl Peer, operation: Operation, in_flight: usize) -> Answer<()> {
    match operation {
        Operation::Null => serve_rounds_async(in_flight, async || peer.null().await).await,
        Operation::MaxResult => {
            let expected = max_result();
            serve_rounds_async(in_flight, async || {
                Ok(check(peer.max_result().await?.as_ref() == expected)?)
            })
            .await
        }
        Operation::SayHello => {
            let expected = greeting(NAME);
            serve_rounds_async(in_flight, async || {
                Ok(check(peer.say_hello(NAME).await?.as_ref() == expected)?)
            })
            .await
        }
        Operation::Average(count) => {
            let numbers = one_to(count);
            let expected = f64::from(count + 1) / 2.0;
            serve_rounds_async(in_flight, async || {
                Ok(check(peer.average(&numbers).await? == expected)?)
            })
            .await
        }
        Operation::GetRandNums(count) => {
            let expected = rand_nums(count);
            serve_rounds_async(in_flight, async || {
                Ok(check(peer.get_rand_nums(count).await? == expected)?)
            })
            .await
        }
        Operation::Large(members) => peer.measure_large(members, in_flight).await,
    }
}

/// Measures a call that sends a record and gets it back.
///
/// # Errors
/// The call fails or is answered wrongly.
pub async fn measure_echo<T: PartialEq>(
    in_flight: usize,
    sent: &T,
    call: impl AsyncFn(&T) -> Answer<T>,
) -> Answer<()> {
    serve_rounds_async(in_flight, async || Ok(check(call(sent).await? == *sent)?)).await
}

/// The record of `COUNT` members that is sent.
///
/// # Errors
/// There is none of so many.
pub fn record<T: From<[i32; COUNT]>, const COUNT: usize>() -> Answer<T> {
    let values = large_data(u32::try_from(COUNT)?);
    let values = <[i32; COUNT]>::try_from(values).map_err(|_| "another number of members")?;
    Ok(T::from(values))
}
