//! Stubs of procedures with streams: `crates/tenon-gen/tests/corpus/streams.x`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenon::{
    CallError, CallErrorKind, CallInfo, CallOptions, CallOutcome, CallScope, ItemReader,
    ItemWriter, Layered, Middleware, Refusal, Rejection, Server, ServerLimits,
};

use crate::common::place::fresh_path;
use crate::streams_stubs::{
    Chunk, Entry, Event, Missing, StoreV1, StoreV1Client, StoreV1GetError, StoreV1RemoveError,
    StoreV1Service,
};

/// Keeps objects in memory.
#[derive(Default)]
struct Store(Mutex<BTreeMap<String, Vec<Chunk>>>);

impl Store {
    fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<Chunk>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreV1 for Store {
    fn remove(
        &self,
        _: &CallInfo<'_>,
        name: tenon::wire::BString,
    ) -> Result<(), StoreV1RemoveError<Refusal>> {
        match self.objects().remove(&name.to_string()) {
            Some(_) => Ok(()),
            None => Err(Missing { name }.into()),
        }
    }

    fn put(
        &self,
        _: &CallInfo<'_>,
        name: tenon::wire::BString,
        part: ItemReader<Chunk>,
    ) -> Result<u64, Refusal> {
        let parts: Vec<Chunk> = if name.ends_with(b".raw") {
            let (mut part, mut bytes) = (part, Vec::new());
            part.read_to_end(&mut bytes)?;
            vec![bytes]
        } else {
            part.collect::<Result<_, _>>()?
        };
        let size = parts.iter().map(|part| part.len() as u64).sum();
        self.objects().insert(name.to_string(), parts);
        Ok(size)
    }

    fn get(
        &self,
        _: &CallInfo<'_>,
        name: tenon::wire::BString,
        results: &mut ItemWriter<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let parts = self.objects().get(&name.to_string()).cloned();
        let Some(parts) = parts else {
            return Err(Missing { name }.into());
        };
        if name.ends_with(b".raw") {
            results.write_all(&parts.concat())?;
            return Ok(());
        }
        Ok(results.send_all(&parts)?)
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
        text: ItemReader<tenon::wire::BString>,
        results: &mut ItemWriter<tenon::wire::BString>,
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
        call: &CallInfo<'_>,
        results: i32,
        results_items: &mut ItemWriter<Event>,
    ) -> Result<(), Refusal> {
        while !call.is_cancelled() {
            for _ in 0..results {
                results_items.feed(&Event::Put)?;
            }
            results_items.flush()?;
            thread::sleep(Duration::from_millis(1));
        }
        Err(Refusal::TimedOut("the caller waits no more".into()))
    }
}

/// Runs a test with a client of each transport that carries streams.
fn each(test: impl Fn(&StoreV1Client)) {
    let path = || fresh_path().display().to_string();
    for (listen, protocol) in [
        ("tcp://127.0.0.1:0".to_owned(), "lean+"),
        (format!("unix://{}", path()), "lean+"),
        (format!("shm://{}", path()), ""),
    ] {
        let builder = Server::builder().listen(&listen).unwrap();
        let builder = builder.service(StoreV1Service(Store::default()));
        let server = builder.start().unwrap();
        let address = format!("{protocol}{}", server.addresses()[0]);
        eprintln!("{address}");
        test(&StoreV1Client::connect(&address).unwrap());
        server.shutdown(Duration::from_secs(5));
    }
}

fn parts() -> Vec<Chunk> {
    let lengths = [0, 1, 7, 65_500, 65_536, 32_800, 3];
    let parts = lengths.iter().cycle().take(100).enumerate();
    parts
        .map(|(number, length)| vec![number as u8; *length])
        .collect()
}

#[test]
fn what_is_put_in_parts_is_got_in_parts() {
    each(|store| {
        let parts = parts();
        let mut put = store.put("object").unwrap();
        put.send_all(&parts).unwrap();
        let size: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(put.finish().unwrap(), size as u64);
        let got: Result<Vec<Chunk>, _> = store.get("object").unwrap().collect();
        assert!(got.unwrap() == parts, "other parts");
        let listed: Vec<Entry> = store.list().unwrap().map(Result::unwrap).collect();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (listed[0].name.to_string(), listed[0].size),
            ("object".to_owned(), size as u64)
        );
    });
}

#[test]
fn streams_of_opaque_data_are_written_and_read_as_bytes() {
    each(|store| {
        let bytes = parts().concat();
        let mut put = store.put("object.raw").unwrap();
        // Longer than an item, than a message, and than a window; then in steps that are none of these.
        let (at_once, in_steps) = bytes.split_at(bytes.len() / 2);
        put.write_all(at_once).unwrap();
        for step in in_steps.chunks(10_007) {
            put.write_all(step).unwrap();
        }
        put.flush().unwrap();
        assert_eq!(put.finish().unwrap(), bytes.len() as u64);
        for name in ["object.raw", "object.raw"] {
            let mut got = store.get(name).unwrap();
            let mut read = vec![0; 12_345];
            got.read_exact(&mut read).unwrap();
            got.read_to_end(&mut read).unwrap();
            assert!(read == bytes, "other bytes");
            assert_eq!(got.read(&mut [0]).unwrap(), 0, "behind the end");
        }
    });
}

#[test]
fn items_of_any_length_are_read_as_bytes_and_what_is_left_of_one_is_an_item() {
    each(|store| {
        let parts = parts();
        let mut put = store.put("object").unwrap();
        put.send_all(&parts).unwrap();
        put.finish().unwrap();
        let mut got = store.get("object").unwrap();
        // An item of length 0, and one of a single byte.
        assert_eq!(got.fill_buf().unwrap(), [1]);
        got.consume(1);
        let mut three = [0; 3];
        got.read_exact(&mut three).unwrap();
        assert_eq!(three, [2; 3]);
        assert_eq!(got.next().unwrap().unwrap(), [2; 4]);
        assert_eq!(got.next().unwrap().unwrap(), parts[3]);
        // One that came in parts.
        let mut begin = [0; 10_000];
        got.read_exact(&mut begin).unwrap();
        assert_eq!(got.next().unwrap().unwrap(), [4; 55_536]);
        let mut rest = Vec::new();
        assert_eq!(io::copy(&mut got, &mut rest).unwrap(), rest.len() as u64);
        assert!(rest == parts[5..].concat(), "other bytes");
        assert!(got.next().is_none());
    });
}

#[test]
fn readers_of_bytes_get_the_error_that_the_procedure_raises() {
    each(|store| {
        let mut got = store.get("nothing").unwrap();
        let error = got.read(&mut [0; 8]).unwrap_err();
        let raised = error.get_ref().and_then(|error| error.downcast_ref());
        let Some(StoreV1GetError::<CallError>::Missing(missing)) = raised else {
            panic!("another error: {error}");
        };
        assert_eq!(missing.name, "nothing");
        // It is no end of a whole object, however often it is read.
        assert_eq!(
            got.read(&mut [0; 8]).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
        let read = got.read_to_end(&mut Vec::new());
        assert!(read.is_err(), "{read:?}");
    });
}

#[test]
fn an_error_of_the_interface_ends_a_stream() {
    each(|store| {
        let mut got = store.get("nothing").unwrap();
        let Some(Err(StoreV1GetError::Missing(missing))) = got.next() else {
            panic!("it is not there");
        };
        assert_eq!(missing.name, "nothing");
        assert!(got.next().is_none());
        let removed = store.remove("nothing");
        assert!(matches!(removed, Err(StoreV1RemoveError::Missing(_))));
    });
}

#[test]
fn both_sides_of_a_call_go_on_at_once() {
    each(|store| {
        let first = Entry {
            name: "first".into(),
            size: 1,
        };
        let (mut texts, echoed) = store.echo(Some(&first)).unwrap();
        let writer = thread::spawn(move || {
            for number in 0..2000 {
                texts.send(&number.to_string().repeat(50).into()).unwrap();
            }
            texts.finish().unwrap();
        });
        let echoed: Vec<String> = echoed.map(|text| text.unwrap().to_string()).collect();
        writer.join().unwrap();
        assert_eq!(echoed.len(), 2001);
        assert_eq!(echoed[0], "first");
        let expected = (0..2000).map(|number: u32| number.to_string().repeat(50));
        assert!(echoed[1..].iter().cloned().eq(expected));
    });
}

/// Handlers send what they have themselves, while other threads receive and carry calls out.
#[test]
fn calls_beside_streams_over_one_connection_are_answered() {
    each(|client| {
        let parts: Vec<Chunk> = (0..60).map(|number| vec![number; 30_000]).collect();
        let mut put = client.put("object").unwrap();
        put.send_all(&parts).unwrap();
        put.finish().unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let got = client.get("object").unwrap().map(Result::unwrap);
                        assert!(got.eq(parts.iter().cloned()), "other parts");
                    }
                });
                scope.spawn(|| {
                    for _ in 0..3000 {
                        let missing = client.remove("other").expect_err("it is not there");
                        assert!(
                            matches!(missing, StoreV1RemoveError::Missing(_)),
                            "{missing}"
                        );
                    }
                });
            }
        });
    });
}

#[test]
fn numbers_of_an_unnamed_argument_are_added_up() {
    each(|store| {
        let mut numbers = store.add().unwrap();
        for number in 1..=100 {
            numbers.send(&number).unwrap();
        }
        assert_eq!(numbers.finish().unwrap(), 5050);
    });
}

#[test]
fn a_stream_without_end_ends_when_its_reader_is_dropped() {
    each(|store| {
        let mut events = store.watch(3).unwrap();
        for _ in 0..100 {
            assert_eq!(events.next().unwrap().unwrap(), Event::Put);
        }
        drop(events);
        // The connection goes on.
        store.ping().unwrap();
        assert_eq!(store.add().unwrap().finish().unwrap(), 0);
    });
}

#[test]
fn a_stream_has_no_more_time_than_its_options_say() {
    each(|store| {
        let options = CallOptions::new().timeout(Duration::from_millis(50));
        let events = store.with_options(options);
        let mut events = events.watch(1).unwrap();
        let error = loop {
            match events.next() {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("it ends by an error"),
            }
        };
        assert_eq!(error.kind(), CallErrorKind::TimedOut);
        assert!(events.next().is_none());
    });
}

#[test]
fn addresses_that_carry_no_streams_are_told_so() {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.listen("udp://127.0.0.1:0").unwrap();
    let server = builder
        .service(StoreV1Service(Store::default()))
        .start()
        .unwrap();
    let [tcp, udp] = server.addresses() else {
        panic!("two addresses");
    };
    for address in [tcp.to_string(), udp.to_string()] {
        let store = StoreV1Client::connect(&address).unwrap();
        let refused = store.list().unwrap_err();
        assert!(matches!(refused, CallError::NoStreams { .. }), "{refused}");
        assert!(!refused.may_have_executed());
    }
}

#[test]
fn calls_with_streams_of_arguments_find_memory_or_are_refused() {
    // Enough for the windows of one connection, and a message that has arrived in part.
    let limits = ServerLimits {
        receive_bytes: 350_000,
        ..ServerLimits::default()
    };
    let builder = Server::builder()
        .limits(limits)
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let server = builder
        .service(StoreV1Service(Store::default()))
        .start()
        .unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let (one, other) = (
        StoreV1Client::connect(&address).unwrap(),
        StoreV1Client::connect(&address).unwrap(),
    );
    let put = |store: &StoreV1Client, name: &str| {
        let mut put = store.put(name)?;
        // The call may be refused before all of them were sent.
        let _ = put.send_all(&parts());
        put.finish()
    };
    let mut first = one.put("first").unwrap();
    first.send(&vec![1]).unwrap();
    // The server has begun with it when the connection goes on.
    one.ping().unwrap();
    let refused = put(&other, "second").unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::Busy, "{refused}");
    assert!(!refused.may_have_executed());
    // Further streams of the same connection share its windows, and results need none.
    assert!(put(&one, "third").is_ok());
    assert_eq!(other.list().unwrap().count(), 1);
    assert_eq!(first.finish().unwrap(), 1);
    let until = Instant::now() + Duration::from_secs(5);
    while put(&other, "second").is_err() {
        assert!(Instant::now() < until, "the memory is never free");
    }
    server.shutdown(Duration::from_secs(5));
}

/// Counts the calls that begin and end, and how they end.
#[derive(Default)]
struct Counting(Mutex<Vec<String>>);

impl Middleware for Counting {
    type State = ();

    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        let name = call.procedure().name;
        self.0.lock().unwrap().push(format!("{name} begins"));
        Ok(())
    }

    fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        let name = call.procedure().name;
        let how = match outcome {
            CallOutcome::Success => "ends",
            _ => "fails",
        };
        self.0.lock().unwrap().push(format!("{name} {how}"));
    }
}

#[test]
fn middleware_sees_a_call_with_streams_from_its_opening_to_its_reply() {
    each(|store| {
        let layered = Layered::new(store.0.clone(), Counting::default());
        let counting = std::sync::Arc::clone(layered.middleware());
        let seen = || std::mem::take(&mut *counting.0.lock().unwrap());
        let store = StoreV1Client(layered);
        let mut put = store.put("object").unwrap();
        put.send(&vec![1, 2, 3]).unwrap();
        assert_eq!(seen(), ["STORE_PUT begins"]);
        assert_eq!(put.finish().unwrap(), 3);
        assert_eq!(seen(), ["STORE_PUT ends"]);
        let mut got = store.get("object").unwrap();
        assert_eq!(got.next().unwrap().unwrap(), [1, 2, 3]);
        assert_eq!(seen(), ["STORE_GET begins"]);
        assert!(got.next().is_none());
        assert_eq!(seen(), ["STORE_GET ends"]);
        assert!(store.get("nothing").unwrap().next().unwrap().is_err());
        assert_eq!(seen(), ["STORE_GET begins", "STORE_GET fails"]);
        let (texts, mut echoed) = store.echo(None).unwrap();
        texts.finish().unwrap();
        assert!(echoed.next().is_none());
        assert_eq!(seen(), ["STORE_ECHO begins", "STORE_ECHO ends"]);
    });
}
