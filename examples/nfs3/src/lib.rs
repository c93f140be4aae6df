//! NFS version 3 (RFC 1813) on Tenon: a server over a file system in memory, and a client.
//!
//! * [`fs`] is the file system; it knows nothing of RPC.

pub mod fs;
