//! Connections in packets: a thread relays them between a pair of sockets of this process, at whose other
//! end a channel or a server has a connection like all others, and a [stream of bytes](tenon_proto::exchange::byte_stream)
//! of the packet exchange. So both drivers, and C, have calls with streams over UDP and past the kernel without another
//! kind of connection; what that costs are two copies and a system call more for each piece of up to 64 KiB.

mod client;
mod host;
mod local_end;
mod port;
mod server;

pub(crate) use client::connect;
pub use host::RelayHost;
pub(crate) use port::PortRelay;

/// Bytes that are moved at a time.
const PIECE: usize = 64 << 10;
