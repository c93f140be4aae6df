//! Calls with streams: what is put is what is got, in its order, for each kind of server and client; by ONC RPC,
//! which has none, that is said before anything is sent.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Mutex;

use tenon::wire::BString;
use tenon::{CallError, CallErrorKind, CallInfo, ItemReader, ItemWriter, Protocol, Refusal};
use tenon_tokio::{ItemSink, ItemStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rows::{Driven, Row, Server, rows};
use crate::service::pattern;
use crate::store_stubs::{
    Chunk, Entry, Event, Missing, StoreV1, StoreV1Async, StoreV1AsyncClient, StoreV1AsyncService,
    StoreV1Client, StoreV1GetError, StoreV1RemoveError, StoreV1Service,
};

/// Keeps objects in memory.
#[derive(Default)]
pub struct Store(Mutex<BTreeMap<BString, Vec<Chunk>>>);

impl Store {
    fn keep(&self, name: BString, parts: Vec<Chunk>) -> u64 {
        let size = parts.iter().map(|part| part.len() as u64).sum();
        self.0.lock().unwrap().insert(name, parts);
        size
    }

    fn find(&self, name: BString) -> Result<Vec<Chunk>, Missing> {
        let parts = self.0.lock().unwrap().get(&name).cloned();
        parts.ok_or(Missing { name })
    }

    fn entries(&self) -> Vec<Entry> {
        let objects = self.0.lock().unwrap();
        let entry = |(name, parts): (&BString, &Vec<Chunk>)| Entry {
            name: name.clone(),
            size: parts.len() as u64,
        };
        objects.iter().map(entry).collect()
    }
}

fn missing(error: Missing) -> StoreV1GetError<Refusal> {
    StoreV1GetError::Missing(error)
}

impl StoreV1 for Store {
    fn remove(&self, _: &CallInfo<'_>, name: BString) -> Result<(), StoreV1RemoveError<Refusal>> {
        self.0.lock().unwrap().remove(&name);
        Ok(())
    }

    fn put(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        part: ItemReader<Chunk>,
    ) -> Result<u64, Refusal> {
        Ok(self.keep(name, part.collect::<Result<_, _>>()?))
    }

    fn get(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        results: &mut ItemWriter<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let parts = self.find(name).map_err(missing)?;
        Ok(results.send_all(&parts)?)
    }

    fn list(&self, _: &CallInfo<'_>, results: &mut ItemWriter<Entry>) -> Result<(), Refusal> {
        Ok(results.send_all(&self.entries())?)
    }

    fn add(&self, _: &CallInfo<'_>, args: ItemReader<i32>) -> Result<i32, Refusal> {
        Ok(args.sum::<Result<i32, CallError>>()?)
    }

    fn repeat(
        &self,
        _: &CallInfo<'_>,
        _: Option<Entry>,
        text: ItemReader<BString>,
        results: &mut ItemWriter<BString>,
    ) -> Result<(), Refusal> {
        for text in text {
            results.send(&text?)?;
        }
        Ok(())
    }

    fn watch(
        &self,
        _: &CallInfo<'_>,
        _: i32,
        results: &mut ItemWriter<Event>,
    ) -> Result<(), Refusal> {
        loop {
            results.send(&Event::Put)?;
        }
    }
}

impl StoreV1Async for Store {
    async fn remove(
        &self,
        _: &CallInfo<'_>,
        name: BString,
    ) -> Result<(), StoreV1RemoveError<Refusal>> {
        self.0.lock().unwrap().remove(&name);
        Ok(())
    }

    async fn put(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        mut part: ItemStream<Chunk>,
    ) -> Result<u64, Refusal> {
        let mut parts = Vec::new();
        while let Some(part) = part.next().await {
            parts.push(part?);
        }
        Ok(self.keep(name, parts))
    }

    async fn get(
        &self,
        _: &CallInfo<'_>,
        name: BString,
        results: &mut ItemSink<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let parts = self.find(name).map_err(missing)?;
        Ok(results.send_all(&parts).await?)
    }

    async fn list(&self, _: &CallInfo<'_>, results: &mut ItemSink<Entry>) -> Result<(), Refusal> {
        Ok(results.send_all(&self.entries()).await?)
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
        _: Option<Entry>,
        mut text: ItemStream<BString>,
        results: &mut ItemSink<BString>,
    ) -> Result<(), Refusal> {
        while let Some(text) = text.next().await {
            results.send(&text?).await?;
        }
        Ok(())
    }

    async fn watch(
        &self,
        _: &CallInfo<'_>,
        _: i32,
        results: &mut ItemSink<Event>,
    ) -> Result<(), Refusal> {
        loop {
            results.send(&Event::Put).await?;
        }
    }
}

type StoreClient = Driven<StoreV1Client, StoreV1AsyncClient>;

fn serve(row: &Row) -> Server {
    row.serve_by(
        |builder| builder.service(StoreV1Service(Store::default())),
        |builder| builder.service(StoreV1AsyncService(Store::default())),
    )
}

/// Connects, and makes the connection for calls with streams, too, where that is another one: past the kernel only the
/// network of the client leads to the server.
fn connect(row: &Row, server: &Server) -> StoreClient {
    row.connect_by(
        server,
        |address| {
            let store = StoreV1Client::connect(address).unwrap();
            if row.protocol == Protocol::Lean {
                assert_eq!(store.add().unwrap().finish().unwrap(), 0, "{row}");
            }
            store
        },
        async |address| {
            let store = StoreV1AsyncClient::connect(address).await.unwrap();
            if row.protocol == Protocol::Lean {
                let sum = store.add().await.unwrap().finish().await.unwrap();
                assert_eq!(sum, 0, "{row}");
            }
            store
        },
    )
}

/// Every row whose client and server may have streams between them.
fn streaming_rows() -> Vec<Row> {
    let rows = rows().into_iter();
    rows.filter(|row| row.protocol == Protocol::Lean).collect()
}

/// Parts of every length that is treated otherwise.
fn parts() -> Vec<Chunk> {
    let lengths = [0, 1, 100, 32_748, 65_515, 65_516, 65_517, 65_536, 5];
    (0..40)
        .map(|at| pattern(lengths[at % lengths.len()]))
        .collect()
}

#[test]
fn what_is_put_is_got_in_its_order() {
    for row in streaming_rows() {
        let server = serve(&row);
        let parts = parts();
        let size: usize = parts.iter().map(Vec::len).sum();
        let got: Vec<Chunk> = match connect(&row, &server) {
            Driven::Threads(store) => {
                let mut put = store.put("object").unwrap();
                put.send_all(&parts).unwrap();
                assert_eq!(put.finish().unwrap(), size as u64, "{row}");
                store.get("object").unwrap().map(Result::unwrap).collect()
            }
            Driven::Tasks(store, runtime) => runtime.block_on(async {
                let mut put = store.put("object").await.unwrap();
                put.send_all(&parts).await.unwrap();
                assert_eq!(put.finish().await.unwrap(), size as u64, "{row}");
                let (mut stream, mut got) = (store.get("object").await.unwrap(), Vec::new());
                while let Some(part) = stream.next().await {
                    got.push(part.unwrap());
                }
                got
            }),
        };
        assert!(got == parts, "{row}: other parts");
        server.shutdown();
    }
}

#[test]
fn opaque_data_is_written_and_read_as_bytes() {
    for row in streaming_rows() {
        let server = serve(&row);
        let bytes = pattern(1_000_003);
        let mut got = Vec::new();
        match connect(&row, &server) {
            Driven::Threads(store) => {
                let mut put = store.put("object").unwrap();
                put.write_all(&bytes).unwrap();
                put.finish().unwrap();
                store.get("object").unwrap().read_to_end(&mut got).unwrap();
            }
            Driven::Tasks(store, runtime) => runtime.block_on(async {
                let mut put = store.put("object").await.unwrap();
                put.write_all(&bytes).await.unwrap();
                put.finish().await.unwrap();
                let mut stream = store.get("object").await.unwrap();
                stream.read_to_end(&mut got).await.unwrap();
            }),
        }
        assert!(got == bytes, "{row}: other bytes");
        server.shutdown();
    }
}

#[test]
fn both_directions_go_on_at_once_and_an_end_without_items_is_one() {
    for row in streaming_rows() {
        let server = serve(&row);
        match connect(&row, &server) {
            Driven::Threads(store) => {
                let (mut texts, mut echoed) = store.repeat(None).unwrap();
                for number in 0..100 {
                    let text = BString::from(number.to_string());
                    texts.send(&text).unwrap();
                    assert_eq!(echoed.next().unwrap().unwrap(), text, "{row}");
                }
                texts.finish().unwrap();
                assert!(echoed.next().is_none(), "{row}");
                assert_eq!(store.add().unwrap().finish().unwrap(), 0, "{row}");
                assert!(store.list().unwrap().next().is_none(), "{row}");
            }
            Driven::Tasks(store, runtime) => runtime.block_on(async {
                let (mut texts, mut echoed) = store.repeat(None).await.unwrap();
                for number in 0..100 {
                    let text = BString::from(number.to_string());
                    texts.send(&text).await.unwrap();
                    assert_eq!(echoed.next().await.unwrap().unwrap(), text, "{row}");
                }
                texts.finish().await.unwrap();
                assert!(echoed.next().await.is_none(), "{row}");
                assert_eq!(store.add().await.unwrap().finish().await.unwrap(), 0);
                assert!(store.list().await.unwrap().next().await.is_none(), "{row}");
            }),
        }
        server.shutdown();
    }
}

#[test]
fn an_error_that_is_raised_ends_a_stream_and_the_connection_goes_on() {
    for row in streaming_rows() {
        let server = serve(&row);
        let raised = match connect(&row, &server) {
            Driven::Threads(store) => {
                let raised = store.get("nothing").unwrap().next();
                store.ping().unwrap();
                raised
            }
            Driven::Tasks(store, runtime) => runtime.block_on(async {
                let raised = store.get("nothing").await.unwrap().next().await;
                store.ping().await.unwrap();
                raised
            }),
        };
        match raised {
            Some(Err(StoreV1GetError::Missing(missing))) => {
                assert_eq!(missing.name, "nothing", "{row}");
            }
            other => panic!("{row}: {other:?}"),
        }
        server.shutdown();
    }
}

#[test]
fn a_stream_without_end_ends_with_its_reader() {
    for row in streaming_rows() {
        let server = serve(&row);
        match connect(&row, &server) {
            Driven::Threads(store) => {
                let mut events = store.watch(1).unwrap();
                for _ in 0..1000 {
                    assert_eq!(events.next().unwrap().unwrap(), Event::Put, "{row}");
                }
                drop(events);
                assert_eq!(store.add().unwrap().finish().unwrap(), 0, "{row}");
            }
            Driven::Tasks(store, runtime) => runtime.block_on(async {
                let mut events = store.watch(1).await.unwrap();
                for _ in 0..1000 {
                    assert_eq!(events.next().await.unwrap().unwrap(), Event::Put);
                }
                drop(events);
                assert_eq!(store.add().await.unwrap().finish().await.unwrap(), 0);
            }),
        }
        // No handler is left that would hold it up.
        server.shutdown();
    }
}

#[test]
fn onc_rpc_carries_no_streams_and_says_so() {
    let carried = |row: &Row| row.protocol == Protocol::Lean;
    for row in rows().into_iter().filter(|row| !carried(row)) {
        let server = serve(&row);
        let refused = match connect(&row, &server) {
            Driven::Threads(store) => store.list().unwrap_err(),
            Driven::Tasks(store, runtime) => runtime.block_on(store.list()).unwrap_err(),
        };
        assert!(
            matches!(refused, CallError::NoStreams { .. }),
            "{row}: {refused}"
        );
        assert_eq!(refused.kind(), CallErrorKind::InvalidCall, "{row}");
        assert!(!refused.may_have_executed(), "{row}");
        server.shutdown();
    }
}
