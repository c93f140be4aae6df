//! A peer that calls on and reads slowly takes no more memory of a server, of tasks or threads, than the replies that are
//! under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ALLOCATOR;
use crate::common::obliging::{ECHO, PATIENCE, in_time, interface, serving_at};
use crate::common::place::fresh_path;
use crate::common::raw::Raw;
use crate::common::serving::Serving;
use tenon::ServerLimits;
use tokio::task::spawn_blocking;

/// Bytes of the result of each call, and of the memory through which it goes.
const RESULT: usize = 60 << 10;
const RING: usize = 64 << 10;

const CALLS: usize = 300;

/// Calls that may be carried out elsewhere, as long as it is not known that they are quick.
const DEFERRED: usize = 4;

/// What the server may take meanwhile: some results, and not a tenth of all.
const MOST: usize = 3 << 19;

fn taken() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Sends all calls at once, and reads all replies, always a little of what waits to be read.
fn call_on(address: &str) {
    let mut peer = Raw::connect(address);
    let service = peer.bind(interface());
    for id in 0..CALLS {
        peer.call(service, ECHO, id as u32 + 1, b"");
    }
    peer.send();
    let mut room = [0; 8 << 10];
    let mut left = CALLS * RESULT;
    while left > 0 {
        let until = Instant::now() + PATIENCE;
        let read = peer.stream.recv_until(&mut room, until).unwrap();
        assert_ne!(read, 0, "the server has hung up");
        left = left.saturating_sub(read);
        thread::sleep(Duration::from_micros(100));
    }
}

/// Calls a server, tasks or threads, whose memory was at most this at the begin of a handler.
async fn check(address: String, most: &AtomicUsize, before: usize) {
    in_time(spawn_blocking(move || call_on(&address)))
        .await
        .unwrap();
    let most = most.swap(0, Ordering::SeqCst) - before;
    assert!(most < MOST, "{most} bytes");
}

#[tokio::main(flavor = "current_thread")]
pub async fn replies_that_were_sent_take_no_memory_while_others_are() {
    let most = Arc::new(AtomicUsize::new(0));
    let result = || {
        let seen = Arc::clone(&most);
        move |_, _: &[u8]| {
            seen.fetch_max(taken(), Ordering::SeqCst);
            Ok(vec![7; RESULT])
        }
    };
    let address = || format!("shm://{}", fresh_path().display());
    let limits = ServerLimits {
        ring_bytes: RING,
        connection_calls: DEFERRED,
        ..ServerLimits::default()
    };

    let at = address();
    let server = serving_at(&at, limits.clone(), result());
    let server = server.start().await.unwrap();
    check(at, &most, taken()).await;
    assert_eq!(server.counters().calls, CALLS as u64);
    drop(server);

    let at = address();
    let (interface, body) = (interface(), result());
    let server = tenon::Server::builder().listen(&at).unwrap().limits(limits);
    let server = server.service(Serving { interface, body }).start().unwrap();
    check(at, &most, taken()).await;
    assert_eq!(server.counters().calls, CALLS as u64);
}
