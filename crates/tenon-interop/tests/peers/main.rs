//! Our clients, servers and stubs against implementations that are not ours.

mod both_protocols;
mod fast;
mod fast_interface;
#[path = "../../../tenon-xdp/tests/common/pair.rs"]
#[allow(clippy::unwrap_used, reason = "as in the tests it comes from")]
mod pair;
mod past_the_kernel;
mod peers_agree;
mod peers_call_us;
mod prometheus;
mod rpcinfo;
mod same_bytes;
mod tshark;
mod we_call_peers;
