//! Networks for what goes straight on Ethernet: a pair for each test, found by the addresses in it.

use std::cell::OnceCell;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock};

use crate::pair::Pair;

/// All pairs of this process.
static PAIRS: Mutex<Vec<Arc<Pair>>> = Mutex::new(Vec::new());

thread_local! {
    /// The pair of the test, which has a thread of its own.
    static OWN: OnceCell<Arc<Pair>> = const { OnceCell::new() };
}

/// Whether there may be any. If not, that is said once.
pub fn are_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| Pair::make("the rows of xdp").is_some())
}

fn make() -> Arc<Pair> {
    let pair = Arc::new(Pair::make("a row of xdp").expect("it is allowed"));
    PAIRS.lock().unwrap().push(Arc::clone(&pair));
    pair
}

/// Where a server of this test listens, by an address with this scheme.
pub fn server_address(scheme: &str) -> String {
    let pair = OWN.with(|own| Arc::clone(own.get_or_init(make)));
    format!("{scheme}://{}:0", pair.server_at)
}

/// The pair that a place is in; none if it is no such place.
fn pair_of(address: &str) -> Option<Arc<Pair>> {
    let (_, place) = address.split_once("xdp://")?;
    let host: Ipv4Addr = place.split(':').next()?.parse().ok()?;
    let pairs = PAIRS.lock().unwrap();
    let found = pairs
        .iter()
        .find(|pair| [pair.client_at, pair.server_at].contains(&host));
    found.cloned()
}

/// Does something where a server at this address is.
pub fn at_server<T: Send>(address: &str, body: impl FnOnce() -> T + Send) -> T {
    match pair_of(address) {
        Some(pair) => pair.in_server(body),
        None => body(),
    }
}

/// Does something where a client of this address is.
pub fn at_client<T: Send>(address: &str, body: impl FnOnce() -> T + Send) -> T {
    match pair_of(address) {
        Some(pair) => pair.in_client(body),
        None => body(),
    }
}
