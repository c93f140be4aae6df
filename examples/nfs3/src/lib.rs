//! NFS version 3 (RFC 1813) on Tenon: a server over a file system in memory, and a client.
//!
//! * [`protocol`] is generated from `nfs3.x` and `mount3.x`.
//! * [`fs`] is the file system; it knows nothing of RPC.
//! * [`server`] serves the file system; the program is `nfs3-server`.
//! * [`client`] uses any NFS server; the program is `nfs3-client`.

pub mod client;
pub mod fs;
pub mod protocol;
pub mod server;
