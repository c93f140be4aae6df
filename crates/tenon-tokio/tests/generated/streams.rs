//! Stubs of procedures with streams for tasks: `crates/tenon-gen/tests/corpus/streams_async.x`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenon::wire::BString;
use tenon::{CallError, CallErrorKind, CallInfo, CallOptions, Refusal, ServerLimits};
use tenon_tokio::{ItemSink, ItemStream, Server};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

use crate::common::place::fresh_path;
use crate::streams_stubs::{
    Chunk, Entry, Event, Missing, StoreV1Async, StoreV1AsyncClient, StoreV1AsyncService,
    StoreV1GetError, StoreV1RemoveError,
};

/// Keeps objects in memory.
#[derive(Default)]
struct Store(Mutex<BTreeMap<BString, Vec<Chunk>>>);

impl Store {
    fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<BString, Vec<Chunk>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreV1Async for Store {
    async fn remove(
        &self,
        _: &CallInfo<'_>,
        name: BString,
    ) -> Result<(), StoreV1RemoveError<Refusal>> {
        match self.objects().remove(&name) {
            Some(_) => Ok(()),
            None => Err(Missing { name }.into()),
        }
    }

    async fn put(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        mut part: ItemStream<Chunk>,
    ) -> Result<u64, Refusal> {
        let mut parts = Vec::new();
        if name.ends_with(b".raw") {
            let mut bytes = Vec::new();
            part.read_to_end(&mut bytes).await?;
            parts.push(bytes);
        }
        while let Some(part) = part.next().await {
            parts.push(part?);
        }
        let size = parts.iter().map(|part| part.len() as u64).sum();
        self.objects().insert(name, parts);
        Ok(size)
    }

    async fn get(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        results: &mut ItemSink<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let parts = self.objects().get(&name).cloned();
        let Some(parts) = parts else {
            return Err(Missing { name }.into());
        };
        if name.ends_with(b".raw") {
            results.write_all(&parts.concat()).await?;
            return Ok(());
        }
        Ok(results.send_all(&parts).await?)
    }

    async fn list(&self, _: &CallInfo<'_>, results: &mut ItemSink<Entry>) -> Result<(), Refusal> {
        let entries: Vec<Entry> = (self.objects().iter())
            .map(|(name, parts)| Entry {
                name: name.clone(),
                size: parts.iter().map(|part| part.len() as u64).sum(),
            })
            .collect();
        for entry in entries {
            results.feed(&entry).await?;
        }
        Ok(())
    }

    async fn add(&self, _: &CallInfo<'_>, mut args: ItemStream<i32>) -> Result<i32, Refusal> {
        let mut sum = 0;
        while let Some(number) = args.next().await {
            sum += number?;
        }
        Ok(sum)
    }

    async fn repeat(
        &self,
        _: &CallInfo<'_>,
        first: Option<Entry>,
        mut text: ItemStream<BString>,
        results: &mut ItemSink<BString>,
    ) -> Result<(), Refusal> {
        if let Some(first) = first {
            results.send(&first.name).await?;
        }
        while let Some(text) = text.next().await {
            results.send(&text?).await?;
        }
        Ok(())
    }

    async fn watch(
        &self,
        _: &CallInfo<'_>,
        results: i32,
        results_items: &mut ItemSink<Event>,
    ) -> Result<(), Refusal> {
        loop {
            for _ in 0..results {
                results_items.feed(&Event::Put).await?;
            }
            results_items.flush().await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Runs a test with a client of each transport that carries streams.
async fn each(test: impl AsyncFn(&StoreV1AsyncClient)) {
    let path = || fresh_path().display().to_string();
    for (listen, protocol) in [
        ("tcp://127.0.0.1:0".to_owned(), "lean+"),
        (format!("unix://{}", path()), "lean+"),
        (format!("shm://{}", path()), ""),
    ] {
        let builder = Server::builder().listen(&listen).unwrap();
        let builder = builder.service(StoreV1AsyncService(Store::default()));
        let server = builder.start().await.unwrap();
        let address = format!("{protocol}{}", server.addresses()[0]);
        eprintln!("{address}");
        test(&StoreV1AsyncClient::connect(&address).await.unwrap()).await;
        server.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_in_parts_is_got_in_parts() {
    each(async |store| {
        let lengths = [0, 1, 7, 65_500, 65_536, 32_800, 3];
        let parts: Vec<Chunk> = lengths.iter().map(|length| vec![7; *length]).collect();
        let mut put = store.put("object").await.unwrap();
        put.send_all(&parts).await.unwrap();
        let size: usize = lengths.iter().sum();
        assert_eq!(put.finish().await.unwrap(), size as u64);
        let mut got = store.get("object").await.unwrap();
        for part in &parts {
            assert!(got.next().await.unwrap().unwrap() == *part, "another part");
        }
        assert!(got.next().await.is_none());
        let mut listed = store.list().await.unwrap();
        let entry = listed.next().await.unwrap().unwrap();
        assert_eq!((entry.name, entry.size), ("object".into(), size as u64));
        assert!(listed.next().await.is_none());
        store.remove("object").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_opaque_data_are_written_and_read_as_bytes() {
    each(async |store| {
        let bytes: Vec<u8> = (0..1_000_003).map(|at| (at % 251) as u8).collect();
        let mut put = store.put("object.raw").await.unwrap();
        let (at_once, in_steps) = bytes.split_at(bytes.len() / 2);
        put.write_all(at_once).await.unwrap();
        for step in in_steps.chunks(10_007) {
            put.write_all(step).await.unwrap();
        }
        put.shutdown().await.unwrap();
        assert_eq!(put.finish().await.unwrap(), bytes.len() as u64);
        let mut got = store.get("object.raw").await.unwrap();
        let mut read = vec![0; 12_345];
        got.read_exact(&mut read).await.unwrap();
        // What is left of an item that was read in part is an item.
        let left = got.fill_buf().await.unwrap().len();
        let rest = got.next().await.unwrap().unwrap();
        assert_eq!(rest.len(), left);
        read.extend(rest);
        got.read_to_end(&mut read).await.unwrap();
        assert!(read == bytes, "other bytes");
        assert_eq!(got.read(&mut [0]).await.unwrap(), 0, "behind the end");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_bytes_get_the_error_that_the_procedure_raises() {
    each(async |store| {
        let mut got = store.get("nothing").await.unwrap();
        let error = got.read(&mut [0; 8]).await.unwrap_err();
        let raised = error.get_ref().and_then(|error| error.downcast_ref());
        let Some(StoreV1GetError::<CallError>::Missing(missing)) = raised else {
            panic!("another error: {error}");
        };
        assert_eq!(missing.name, "nothing");
        let read = got.read_to_end(&mut Vec::new()).await;
        assert!(read.is_err(), "it is no end of a whole object: {read:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_interface_ends_a_stream() {
    each(async |store| {
        let mut got = store.get("nothing").await.unwrap();
        let Some(Err(StoreV1GetError::Missing(missing))) = got.next().await else {
            panic!("it is not there");
        };
        assert_eq!(missing.name, "nothing");
        assert!(got.next().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_of_a_call_go_on_at_once() {
    each(async |store| {
        let first = Entry {
            name: "first".into(),
            size: 1,
        };
        let (mut texts, mut repeated) = store.repeat(Some(&first)).await.unwrap();
        let writing = tokio::spawn(async move {
            for number in 0..1000 {
                let text = number.to_string().repeat(50);
                texts.send(&text.into()).await.unwrap();
            }
            texts.finish().await.unwrap();
        });
        assert_eq!(repeated.next().await.unwrap().unwrap(), "first");
        for number in 0..1000 {
            let text = repeated.next().await.unwrap().unwrap();
            assert_eq!(text, number.to_string().repeat(50));
        }
        assert!(repeated.next().await.is_none());
        writing.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_end_ends_with_its_reader_or_its_time() {
    each(async |store| {
        let mut events = store.watch(3).await.unwrap();
        for _ in 0..100 {
            assert_eq!(events.next().await.unwrap().unwrap(), Event::Put);
        }
        drop(events);
        assert_eq!(store.add().await.unwrap().finish().await.unwrap(), 0);
        let options = CallOptions::new().timeout(Duration::from_millis(50));
        let mut events = store.with_options(options).watch(1).await.unwrap();
        let error = loop {
            if let Err(error) = events.next().await.unwrap() {
                break error;
            }
        };
        assert_eq!(error.kind(), CallErrorKind::TimedOut, "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_streams_of_arguments_find_memory_or_are_refused() {
    // Enough for the windows of one connection, and a message that has arrived in part.
    let limits = ServerLimits {
        receive_bytes: 350_000,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    let builder = builder.listen("tcp://127.0.0.1:0").unwrap();
    let service = StoreV1AsyncService(Store::default());
    let server = builder.service(service).start().await.unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let one = StoreV1AsyncClient::connect(&address).await.unwrap();
    let other = StoreV1AsyncClient::connect(&address).await.unwrap();
    let mut first = one.add().await.unwrap();
    first.send(&1).await.unwrap();
    // The server has begun with it when the connection goes on.
    one.ping().await.unwrap();
    let refused = other.add().await.unwrap().finish().await.unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::Busy, "{refused}");
    assert!(other.list().await.unwrap().next().await.is_none());
    assert_eq!(first.finish().await.unwrap(), 1);
    let until = Instant::now() + Duration::from_secs(5);
    while other.add().await.unwrap().finish().await.is_err() {
        assert!(Instant::now() < until, "the memory is never free");
    }
    server.shutdown(Duration::from_secs(5)).await;
}
