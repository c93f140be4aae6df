//! The interface as tarpc has it: a trait. Records are boxed, as a request is as large as the largest.
#![allow(missing_docs)]

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tarpc::serde_transport::{self, Transport};
use tenon_bench_asynchronous::Stream;
use tokio_serde::formats::Bincode;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

include!(concat!(env!("OUT_DIR"), "/records.rs"));

macro_rules! declare {
    (
        $record:ident $module:ident $count:literal
        $({ $($member:ident $get:ident $set:ident,)* })*
    ) => {
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        pub struct $record { $($(pub $member: i32,)*)* }

        impl From<[i32; $count]> for $record {
            fn from(values: [i32; $count]) -> Self {
                let mut record = Self::default();
                let mut values = values.into_iter();
                $({
                    #[inline(never)]
                    fn fill(record: &mut $record, values: &mut impl Iterator<Item = i32>) {
                        $(record.$member = values.next().unwrap_or_default();)*
                    }
                    fill(&mut record, &mut values);
                })*
                record
            }
        }
    };
}
large128!(declare);
large1024!(declare);

#[tarpc::service]
pub trait Bench {
    async fn null_call();
    async fn max_result() -> ByteBuf;
    async fn average(numbers: Vec<i32>) -> f64;
    async fn get_rand_nums(count: u32) -> Vec<i32>;
    async fn say_hello(name: String) -> String;
    async fn large128(data: Box<LargeData128>) -> Box<LargeData128>;
    async fn large1024(data: Box<LargeData1024>) -> Box<LargeData1024>;
}

/// What tarpc does with a connection by itself, but for its kind.
pub fn transport<Item, SinkItem>(
    stream: Stream,
) -> Transport<Stream, Item, SinkItem, Bincode<Item, SinkItem>>
where
    Item: for<'de> Deserialize<'de>,
    SinkItem: Serialize,
{
    let framed = Framed::new(stream, LengthDelimitedCodec::new());
    serde_transport::new(framed, Bincode::default())
}
