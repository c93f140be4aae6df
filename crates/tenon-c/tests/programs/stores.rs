//! Calls with streams, in stubs of C and of Rust for the same interface: each serves the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tenon::wire::BString;
use tenon::{CallErrorKind, CallInfo, ItemReader, ItemWriter, Refusal, Server};

use super::{Installed, SANITIZED, Serving, succeeds};

#[path = "../../../tenon-gen/tests/golden/streams.rs"]
mod store;

use store::{
    Chunk, Entry, Event, Missing, StoreV1, StoreV1Client, StoreV1GetError, StoreV1RemoveError,
    StoreV1Service,
};

/// Compiles the program with the stubs that the generator is held to.
fn program(installed: &Installed) -> PathBuf {
    let stubs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-gen/tests/golden/c/stubs");
    let include = format!("-I{}", stubs.display());
    let source = stubs.join("streams.c").display().to_string();
    let options = [&SANITIZED[..], &[include.as_str(), source.as_str()]].concat();
    installed.compile("gcc", "stores", &options, false)
}

#[test]
fn streams_go_between_both_languages() {
    let installed = Installed::shared();
    let program = program(installed);
    let folder = installed.prefix.join("stores");
    fs::create_dir_all(&folder).expect("a folder");
    let mut serve = Command::new(&program);
    serve.arg("serve");
    let server = Serving::spawn(serve, &folder);
    let addresses = server.reachable();
    assert_eq!(addresses.len(), 7, "{addresses:?}");
    let said = succeeds(Command::new(&program).arg("call").args(&addresses));
    assert_eq!(said, "fine\n");
    for address in addresses.iter().filter(|address| carries_streams(address)) {
        rust_calls(address);
    }
    assert_eq!(server.stop(), "stopped\n");

    let watchers = Arc::<AtomicUsize>::default();
    let store = Store {
        watchers: Arc::clone(&watchers),
        ..Store::default()
    };
    let builder = Server::builder().service(StoreV1Service(store));
    let shm = format!("shm://{}", folder.join("rust.shm").display());
    let unix = format!("unix://{}", folder.join("rust.socket").display());
    let builder = builder.listen("tcp://127.0.0.1:0").expect("an address");
    let builder = builder.listen(&unix).expect("an address");
    let builder = builder.listen(&shm).expect("an address");
    let server = builder.start().expect("it serves");
    let addresses = server.addresses().iter().map(ToString::to_string);
    let addresses = addresses.map(|address| match address.starts_with("shm") {
        true => address,
        false => format!("lean+{address}"),
    });
    let said = succeeds(Command::new(&program).arg("call").args(addresses));
    assert_eq!(said, "fine\n");
    ends(&watchers);
}

fn carries_streams(address: &str) -> bool {
    address.starts_with("shm") || address.starts_with("lean")
}

/// Waits until every handler has seen that its caller has gone.
fn ends(watchers: &AtomicUsize) {
    for _ in 0..10_000 {
        if watchers.load(Ordering::SeqCst) == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("a handler goes on");
}

fn rust_calls(address: &str) {
    let client = StoreV1Client::connect(address).expect("it listens");
    let lengths = [0, 1, 7, 32_700, 32_800, 65_536, 3];
    let parts = lengths.iter().cycle().take(50).enumerate();
    let parts: Vec<Chunk> = parts
        .map(|(number, length)| vec![number as u8; *length])
        .collect();
    for name in ["object", "broken"] {
        let mut put = client.put(name).expect("a call");
        put.send_all(&parts).expect("room");
        let size: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(put.finish().expect("a size"), size as u64);
    }
    let got: Result<Vec<Chunk>, _> = client.get("object").expect("a call").collect();
    assert!(got.expect("all parts") == parts, "other parts");
    let mut got: Vec<_> = client.get("broken").expect("a call").collect();
    let Some(Err(StoreV1GetError::Missing(missing))) = got.pop() else {
        panic!("it ends by an error");
    };
    assert_eq!(missing.name, "rest");
    assert!(got.into_iter().map(Result::unwrap).eq(parts));

    let listed: Vec<Entry> = client.list().expect("a call").map(Result::unwrap).collect();
    assert_eq!(listed.len(), 2);
    let mut numbers = client.add().expect("a call");
    numbers.send_all(&[1, 2, -7]).expect("room");
    assert_eq!(numbers.finish().expect("a sum"), -4);
    let (mut texts, mut echoed) = client.echo(None).expect("a call");
    for text in ["", "one", "two"] {
        texts.send(&text.into()).expect("room");
        assert_eq!(echoed.next().expect("an echo").expect("a text"), text);
    }
    texts.finish().expect("the end");
    assert!(echoed.next().is_none());
    // A handler in C is told when its caller goes; the program checks that it was.
    let mut events = client.watch(3).expect("a call");
    let events: Vec<Event> = events.by_ref().take(100).map(Result::unwrap).collect();
    assert_eq!(events, [Event::Put; 100]);
    // A string that holds a NUL is none of C's.
    let (mut texts, mut echoed) = client.echo(None).expect("a call");
    texts.send(&"a\0b".into()).expect("room");
    let refused = echoed.next().expect("an error").expect_err("a NUL");
    assert_eq!(refused.kind(), CallErrorKind::Failed, "{refused}");
    for name in ["object", "broken"] {
        client.remove(name).expect("it is there");
    }
}

/// Keeps objects in memory.
#[derive(Default)]
struct Store {
    objects: Mutex<BTreeMap<String, Vec<Chunk>>>,
    watchers: Arc<AtomicUsize>,
}

impl Store {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Chunk>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreV1 for Store {
    fn remove(&self, _: &CallInfo<'_>, name: BString) -> Result<(), StoreV1RemoveError<Refusal>> {
        match self.objects().remove(&name.to_string()) {
            Some(_) => Ok(()),
            None => Err(Missing { name }.into()),
        }
    }

    fn put(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        part: ItemReader<Chunk>,
    ) -> Result<u64, Refusal> {
        let parts: Vec<Chunk> = part.collect::<Result<_, _>>()?;
        let size = parts.iter().map(|part| part.len() as u64).sum();
        self.objects().insert(name.to_string(), parts);
        Ok(size)
    }

    fn get(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        results: &mut ItemWriter<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let parts = self.objects().get(&name.to_string()).cloned();
        let Some(parts) = parts else {
            return Err(Missing { name }.into());
        };
        results.send_all(&parts)?;
        match name == "broken" {
            true => Err(Missing {
                name: "rest".into(),
            }
            .into()),
            false => Ok(()),
        }
    }

    fn list(&self, _: &CallInfo<'_>, results: &mut ItemWriter<Entry>) -> Result<(), Refusal> {
        for (name, parts) in &*self.objects() {
            results.feed(&Entry {
                name: name.as_str().into(),
                size: parts.iter().map(|part| part.len() as u64).sum(),
            })?;
        }
        Ok(())
    }

    fn add(&self, _: &CallInfo<'_>, args: ItemReader<i32>) -> Result<i32, Refusal> {
        let mut sum = 0;
        for number in args {
            sum += number?;
        }
        Ok(sum)
    }

    fn echo(
        &self,
        _: &CallInfo<'_>,
        first: Option<Entry>,
        text: ItemReader<BString>,
        results: &mut ItemWriter<BString>,
    ) -> Result<(), Refusal> {
        if let Some(first) = first {
            results.send(&first.name)?;
        }
        for text in text {
            results.send(&text?)?;
        }
        Ok(())
    }

    fn watch(
        &self,
        _: &CallInfo<'_>,
        results: i32,
        results_items: &mut ItemWriter<Event>,
    ) -> Result<(), Refusal> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let events = vec![Event::Put; results as usize];
        let ended = loop {
            if let Err(error) = results_items.send_all(&events) {
                break Err(error.into());
            }
        };
        self.watchers.fetch_sub(1, Ordering::SeqCst);
        ended
    }
}
