//! A service that does what a test wants next: it fails, is slow, or panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenon::wire::BString;
use tenon::{CallInfo, ItemWriter, Refusal, Server, Service};
use tenon_tokio::ItemSink;

use crate::generated::{Item, ShelfV1, ShelfV1Async, ShelfV1Client, ShelfV1Service};

/// Time that a slow call takes, unless it is given up.
pub const SLOW: Duration = Duration::from_millis(1500);

/// What becomes of the next calls, and how many there were.
#[derive(Default)]
pub struct Shelf {
    pub calls: AtomicU32,
    /// Calls that are refused as there is too much to do.
    pub overloaded: AtomicU32,
    /// Calls that fail.
    pub failing: AtomicU32,
    /// Calls with streams that fail behind all items.
    pub failing_late: AtomicU32,
    /// Calls that take long.
    pub slow: AtomicU32,
    /// Calls that panic.
    pub panicking: AtomicU32,
    /// Calls whose future was dropped before it was ready.
    pub dropped: AtomicU32,
    /// Calls that run now, and the most that ever did.
    pub running: AtomicU32,
    pub most: AtomicU32,
}

/// Takes one of so many.
fn take(count: &AtomicU32) -> bool {
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
}

impl Shelf {
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn next(&self, count: &AtomicU32, number: u32) {
        self.calls.store(0, Ordering::Relaxed);
        count.store(number, Ordering::Relaxed);
    }

    /// Counts a call; returns whether it is to take long.
    fn begin(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        take(&self.slow)
    }

    /// Ends a list.
    fn end_list(&self) -> Result<(), Refusal> {
        match take(&self.failing_late) {
            true => Err(Refusal::Overloaded("not to the end".to_owned())),
            false => Ok(()),
        }
    }

    fn answer(&self, call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        if take(&self.overloaded) {
            return Err(Refusal::Overloaded("not now".to_owned()));
        }
        if take(&self.failing) {
            return Err(Refusal::SystemError("it fails".to_owned()));
        }
        assert!(!take(&self.panicking), "a test wants this");
        let value = match call.deadline() {
            None => -1,
            Some(at) => at.saturating_duration_since(Instant::now()).as_millis() as i32,
        };
        if let Some(tenant) = call.metadata().get("tenant") {
            return Ok(Item {
                name: tenant.into(),
                value,
            });
        }
        Ok(Item { name, value })
    }
}

/// A call that runs.
struct Running<'s>(&'s Shelf, bool);

impl<'s> Running<'s> {
    fn new(shelf: &'s Shelf) -> Self {
        let running = shelf.running.fetch_add(1, Ordering::Relaxed) + 1;
        shelf.most.fetch_max(running, Ordering::Relaxed);
        Self(shelf, false)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Clone, Default)]
pub struct SharedShelf(pub Arc<Shelf>);

impl SharedShelf {
    fn carry_out(&self, call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        let mut running = Running::new(&self.0);
        if self.0.begin() {
            thread::sleep(SLOW);
        }
        let answer = self.0.answer(call, name);
        running.1 = true;
        answer
    }

    async fn carry_out_in_task(&self, call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        let mut running = Running::new(&self.0);
        if self.0.begin() {
            tokio::time::sleep(SLOW).await;
        }
        let answer = self.0.answer(call, name);
        running.1 = true;
        answer
    }
}

impl ShelfV1 for SharedShelf {
    fn get(&self, call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        self.carry_out(call, name)
    }

    fn put(&self, call: &CallInfo<'_>, item: Item) -> Result<Item, Refusal> {
        self.carry_out(call, item.name)
    }

    fn list(
        &self,
        call: &CallInfo<'_>,
        count: i32,
        results: &mut ItemWriter<Item>,
    ) -> Result<(), Refusal> {
        let item = self.carry_out(call, "listed".into())?;
        for _ in 0..count {
            results.send(&item)?;
        }
        self.0.end_list()
    }
}

impl ShelfV1Async for SharedShelf {
    async fn get(&self, call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        self.carry_out_in_task(call, name).await
    }

    async fn put(&self, call: &CallInfo<'_>, item: Item) -> Result<Item, Refusal> {
        self.carry_out_in_task(call, item.name).await
    }

    async fn list(
        &self,
        call: &CallInfo<'_>,
        count: i32,
        results: &mut ItemSink<Item>,
    ) -> Result<(), Refusal> {
        let item = self.carry_out_in_task(call, "listed".into()).await?;
        for _ in 0..count {
            results.send(&item).await?;
        }
        self.0.end_list()
    }
}

/// Serves at a free port; returns the address of lean clients.
pub fn serve(service: impl Service) -> (Server, String) {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.service(service).start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    (server, address)
}

/// A server without middleware, and a client of it.
pub fn plain() -> (Server, ShelfV1Client, Arc<Shelf>) {
    let shelf = SharedShelf::default();
    let (server, address) = serve(ShelfV1Service(shelf.clone()));
    let client = ShelfV1Client::connect(&address).unwrap();
    (server, client, shelf.0)
}

pub fn item(name: &str) -> Item {
    Item {
        name: name.into(),
        value: 0,
    }
}
