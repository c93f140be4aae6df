//! What Cap'n Proto's compiler makes of the interface, and records that own their members: messages
//! are built of them and read into them, as with the other peers.
#![allow(missing_docs)]

use capnp_rpc::rpc_twoparty_capnp::Side;
use capnp_rpc::twoparty::VatNetwork;
use futures_util::io::{AsyncReadExt, BufReader, BufWriter};
use tenon_bench_asynchronous::Stream;
use tokio_util::compat::TokioAsyncReadCompatExt;

#[allow(clippy::all)]
pub mod bench_capnp {
    include!(concat!(env!("OUT_DIR"), "/bench_capnp.rs"));
}

use bench_capnp::{large_data128, large_data1024};

include!(concat!(env!("OUT_DIR"), "/records.rs"));

macro_rules! declare {
    (
        $record:ident $module:ident $count:literal
        $({ $($member:ident $get:ident $set:ident,)* })*
    ) => {
        #[derive(Debug, Clone, Default, PartialEq)]
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

        impl $record {
            pub fn read(message: $module::Reader<'_>) -> Self {
                let mut record = Self::default();
                $({
                    #[inline(never)]
                    fn read(record: &mut $record, message: $module::Reader<'_>) {
                        $(record.$member = message.$get();)*
                    }
                    read(&mut record, message);
                })*
                record
            }

            pub fn write(&self, mut message: $module::Builder<'_>) {
                $({
                    #[inline(never)]
                    fn write(record: &$record, mut message: $module::Builder<'_>) {
                        $(message.$set(record.$member);)*
                    }
                    write(self, message.reborrow());
                })*
            }
        }
    };
}
large128!(declare);
large1024!(declare);

/// One end of a connection, through buffers, as Cap'n Proto's documentation advises.
pub fn network(
    stream: Stream,
    side: Side,
) -> VatNetwork<BufReader<impl futures_util::AsyncRead + Unpin>> {
    let (reader, writer) = stream.compat().split();
    VatNetwork::new(
        BufReader::new(reader),
        BufWriter::new(writer),
        side,
        Default::default(),
    )
}
