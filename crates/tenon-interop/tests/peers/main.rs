//! Our clients, servers and stubs against implementations that are not ours.

mod both_protocols;
mod fast;
mod fast_interface;
mod peers_agree;
mod peers_call_us;
mod prometheus;
mod rpcinfo;
mod same_bytes;
mod tshark;
mod we_call_peers;
