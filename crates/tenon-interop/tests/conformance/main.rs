//! One suite that every way to call passes: both protocols, over every transport that carries them, from
//! clients and at servers of threads and of tasks. [`rows`] has the table; a transport that is new is one
//! more entry there, and one more kind of plain socket in [`sockets`]. What makes no sense for one is left
//! out with a reason, which is said.
//!
//! Nothing here depends on how long something takes: what has to happen in an order is held up by a
//! [gate](service::Gate). Times only bound what would hang.

#![allow(clippy::unwrap_used)]

mod callbacks;
mod deadlines;
mod death;
mod echo;
mod fingerprints;
mod flight;
mod hostile;
#[path = "../../../tenon/tests/common/interloper.rs"]
mod interloper;
#[path = "../../../tenon-gen/tests/golden/callbacks_async.rs"]
mod job_stubs;
mod metadata;
mod networks;
mod orders;
#[path = "../../../tenon-xdp/tests/common/pair.rs"]
mod pair;
mod peer;
#[path = "../../../tenon/tests/common/place.rs"]
mod place;
mod production;
mod refusals;
mod relay;
mod rows;
mod service;
mod shutdown;
mod sockets;
#[path = "../../../tenon-gen/tests/golden/streams_async.rs"]
mod store_stubs;
mod streams;
