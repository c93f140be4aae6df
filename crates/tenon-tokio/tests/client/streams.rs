//! Calls with streams, over every transport that carries them: all items arrive in order, ends are told, and a stream that
//! one end gives up ends at the other.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_sink::Sink;

use tenon::lean::{CallStreams, Interface, Status};
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean, Representation};
use tenon::{
    CallCodec, CallError, CallErrorKind, CallInfo, CallOptions, CallOutcome, CallScope,
    CalledProcedure, ChannelOptions, ItemReader, ItemWriter, Layered, LeanInput, LeanService,
    Middleware, OpenStreams, Refusal, Rejection, ServedStreams, ServerLimits, Service,
};
use tenon_tokio::{
    Answer, ArgumentSink, AsyncService, Call, Client, ItemSink, ItemStream, OpenAsyncStreams,
    Server,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::common::place::fresh_path;

const PROGRAM: u32 = 0x2000_0077;

/// Counts up to a number.
const COUNT: u32 = 1;
/// Adds up what it is sent.
const SUM: u32 = 2;
/// Sends everything back.
const ECHO: u32 = 3;
/// Sends items until its caller wants no more.
const ENDLESS: u32 = 4;
/// Fails behind some items.
const FAIL: u32 = 5;
/// Reads one item and answers.
const FIRST: u32 = 6;
/// Has no streams, and returns its argument.
const PLAIN: u32 = 7;
/// Reads nothing, and does not end.
const HOLD: u32 = 8;

/// Items that the handler of [`FAIL`] sends.
const FAIL_AFTER: u32 = 1000;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call with one number as its argument.
struct NumberCall<const PROCEDURE: u32>(u32);

impl<const PROCEDURE: u32> CalledProcedure for NumberCall<PROCEDURE> {
    const PROCEDURE: u32 = PROCEDURE;
    type Result = ();
    type Error = CallError;
}

impl<R: Representation, const PROCEDURE: u32> CallCodec<R> for NumberCall<PROCEDURE> {
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        out.put(self.0);
        Ok(())
    }

    fn decode(_input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// A call that returns a number.
struct SumCall<const PROCEDURE: u32>;

impl<const PROCEDURE: u32> CalledProcedure for SumCall<PROCEDURE> {
    const PROCEDURE: u32 = PROCEDURE;
    type Result = u64;
    type Error = CallError;
}

impl<R: Representation, const PROCEDURE: u32> CallCodec<R> for SumCall<PROCEDURE> {
    fn decode(input: &mut Decoder<'_, R>) -> Result<u64, DecodeError> {
        input.get()
    }
}

fn put_words(item: &Vec<u32>, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put(item.len() as u32);
    for word in item {
        out.put(*word);
    }
    Ok(())
}

fn get_words(input: &mut LeanInput<'_>) -> Result<Vec<u32>, DecodeError> {
    let length = get_number(input)?;
    (0..length).map(|_| get_number(input)).collect()
}

fn put_number(item: &u32, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put(*item);
    Ok(())
}

fn put_sum(sum: u64, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put(sum);
    Ok(())
}

fn get_number(input: &mut LeanInput<'_>) -> Result<u32, DecodeError> {
    match input {
        LeanInput::Native(input) => input.get(),
        LeanInput::Swapped(input) => input.get(),
    }
}

/// What the handlers of a server have done.
#[derive(Debug, Default)]
struct Journal {
    /// Handlers that run.
    running: AtomicUsize,
    /// Bytes of the items that [`ENDLESS`] has sent.
    sent: AtomicUsize,
}

/// Counts a handler while it runs.
struct Running<'j>(&'j Journal);

impl<'j> Running<'j> {
    fn new(journal: &'j Journal) -> Self {
        journal.running.fetch_add(1, Ordering::SeqCst);
        Self(journal)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Has procedures with streams, which are carried out by tasks.
struct ByTasks(Arc<Journal>);

impl AsyncService for ByTasks {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(Interface::unknown(PROGRAM, 1)))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let _running = Running::new(&self.0);
        let Some(streams) = call.streams() else {
            let argument = call.decode_lean(get_number)?;
            return call.answer_lean(|out| put_sum(argument.into(), out));
        };
        let mut result = None;
        match call.procedure() {
            COUNT => {
                let mut out = ItemSink::of_handler(streams, put_number);
                for number in 0..call.decode_lean(get_number)? {
                    out.feed(&number).await?;
                }
                // What was not flushed is sent all the same.
            }
            SUM => {
                let mut numbers = ItemStream::of_handler(streams, get_number);
                let mut sum = 0;
                while let Some(number) = numbers.next().await {
                    sum += u64::from(number?);
                }
                result = Some(sum);
            }
            ECHO => {
                let both = CallStreams {
                    argument: true,
                    result: true,
                };
                let streams = call.declared_streams(both)?;
                let mut out = ItemSink::of_handler(streams, put_words);
                let mut items = ItemStream::of_handler(streams, get_words);
                while let Some(item) = items.next().await {
                    out.send(&item?).await?;
                }
            }
            ENDLESS => {
                let mut out = ItemSink::of_handler(streams, put_words);
                let item = vec![7; 250];
                loop {
                    out.send(&item).await?;
                    self.0.sent.fetch_add(1004, Ordering::SeqCst);
                }
            }
            FAIL => {
                let mut out = ItemSink::of_handler(streams, put_number);
                let items: Vec<u32> = (0..FAIL_AFTER).collect();
                out.send_all(&items).await?;
                return Err(Refusal::Denied("no more for you".into()));
            }
            FIRST => {
                let mut numbers = ItemStream::of_handler(streams, get_number);
                let first = numbers.next().await;
                let first = first.ok_or(Refusal::ProcedureUnavailable)??;
                result = Some(u64::from(first));
            }
            HOLD => std::future::pending().await,
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        match result {
            None => call.answer_lean(|_| Ok(())),
            Some(sum) => call.answer_lean(|out| put_sum(sum, out)),
        }
    }
}

/// Has the same procedures, which are carried out by threads.
struct ByThreads(Arc<Journal>);

impl Service for ByThreads {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for ByThreads {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        _: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Ok(put_sum(get_number(&mut arguments)?.into(), result)?)
    }

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let _running = Running::new(&self.0);
        let numbers = || ItemReader::of_handler(streams, get_number);
        match call.procedure() {
            COUNT => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                for number in 0..get_number(&mut arguments)? {
                    out.feed(&number)?;
                }
                out.flush()?;
            }
            SUM => {
                let sum: Result<Vec<u32>, CallError> = numbers().collect();
                result.put(sum?.into_iter().map(u64::from).sum::<u64>());
            }
            ECHO => {
                let mut out = ItemWriter::of_handler(streams, put_words);
                for item in ItemReader::of_handler(streams, get_words) {
                    out.send(&item?)?;
                }
            }
            ENDLESS => {
                let mut out = ItemWriter::of_handler(streams, put_words);
                let item = vec![7; 250];
                loop {
                    out.send(&item)?;
                    self.0.sent.fetch_add(1004, Ordering::SeqCst);
                }
            }
            FAIL => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                let items: Vec<u32> = (0..FAIL_AFTER).collect();
                out.send_all(&items)?;
                return Err(Refusal::Denied("no more for you".into()));
            }
            FIRST => {
                let first = numbers().next().ok_or(Refusal::ProcedureUnavailable)??;
                result.put(u64::from(first));
            }
            HOLD => {
                while !call.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return Err(Refusal::TimedOut("nobody waits".into()));
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        Ok(())
    }
}

/// Starts a server at an address of its own of each kind.
async fn serve(limits: ServerLimits, by_threads: bool) -> (Server, Arc<Journal>, Vec<String>) {
    let path = || fresh_path().display().to_string();
    let mut builder = Server::builder().limits(limits);
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        "udp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        builder = builder.listen(&listen).unwrap();
    }
    let journal = Arc::new(Journal::default());
    let builder = if by_threads {
        builder.sync_service(ByThreads(Arc::clone(&journal)))
    } else {
        builder.service(ByTasks(Arc::clone(&journal)))
    };
    let server = builder.start().await.unwrap();
    let addresses = server.addresses().iter().map(|address| {
        let address = address.to_string();
        if address.starts_with("shm") {
            address
        } else {
            format!("lean+{address}")
        }
    });
    let addresses = addresses.collect();
    (server, journal, addresses)
}

/// Has `test` run with a client of each address of a server by tasks and of one by threads.
async fn each(test: impl AsyncFn(&Client, &Journal)) {
    for by_threads in [false, true] {
        let (server, journal, addresses) = serve(ServerLimits::default(), by_threads).await;
        for address in &addresses {
            eprintln!("{address} by_threads: {by_threads}");
            let client = Client::connect(address, PROGRAM, 1).await.unwrap();
            in_time(test(&client, &journal)).await;
            eventually(|| journal.running.load(Ordering::SeqCst) == 0).await;
            assert_eq!(client.channel().counters().in_flight, 0);
        }
        server.shutdown(Duration::from_secs(5)).await;
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it takes too long")
}

async fn eventually(mut condition: impl FnMut() -> bool) {
    in_time(async {
        while !condition() {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

async fn count(client: &Client, count: u32) -> Result<ItemStream<u32>, CallError> {
    let call = NumberCall::<COUNT>(count);
    client
        .open_result(&call, get_number, CallOptions::new())
        .await
}

async fn endless(client: &Client, options: CallOptions<'_>) -> ItemStream<Vec<u32>> {
    let call = NumberCall::<ENDLESS>(0);
    client.open_result(&call, get_words, options).await.unwrap()
}

async fn sum(client: &Client) -> ArgumentSink<u32, u64> {
    let options = CallOptions::new();
    let opened = client.open_argument(&SumCall::<SUM>, put_number, options);
    opened.await.unwrap()
}

async fn hold(
    client: &Client,
    options: CallOptions<'_>,
) -> Result<ArgumentSink<u32, u64>, CallError> {
    let call = SumCall::<HOLD>;
    client.open_argument(&call, put_number, options).await
}

async fn echo(client: &Client) -> (ItemSink<Vec<u32>>, ItemStream<Vec<u32>>) {
    let call = NumberCall::<ECHO>(0);
    let opened = client.open_both(&call, put_words, get_words, CallOptions::new());
    opened.await.unwrap()
}

async fn plain(client: &Client, number: u32) -> u64 {
    let put = |out: &mut Encoder<'_, Lean>| put_number(&number, out);
    let get = |input: &mut LeanInput<'_>| match input {
        LeanInput::Native(input) => input.get::<u64>(),
        LeanInput::Swapped(input) => input.get::<u64>(),
    };
    in_time(client.lean().call(PLAIN, put, get)).await.unwrap()
}

fn status_of(error: &CallError) -> Option<Status> {
    match error {
        CallError::Exception(exception) => Some(exception.status),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_items_of_a_result_arrive_in_their_order() {
    each(async |client, _| {
        for length in [0, 1, 1000, 300_000] {
            let mut numbers = count(client, length).await.unwrap();
            let mut next = 0;
            while let Some(number) = numbers.next().await {
                assert_eq!(number.unwrap(), next);
                next += 1;
            }
            assert_eq!(next, length);
            assert!(numbers.next().await.is_none());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_items_of_an_argument_arrive_before_the_result() {
    each(async |client, _| {
        for length in [0, 1, 1000, 300_000_u32] {
            let mut numbers = sum(client).await;
            let items: Vec<u32> = (0..length).collect();
            numbers.send_all(&items).await.unwrap();
            let expected = u64::from(length) * u64::from(length.saturating_sub(1)) / 2;
            assert_eq!(numbers.finish().await.unwrap(), expected, "{length}");
        }
    })
    .await;
}

/// In a run time of one thread nothing but waiting lets other tasks run.
#[tokio::test]
async fn one_thread_is_enough() {
    each(async |client, _| {
        let (mut out, mut items) = echo(client).await;
        let sender = tokio::spawn(async move {
            for number in 0..20_000 {
                out.send(&vec![number]).await.unwrap();
            }
            out.finish().await.unwrap();
        });
        for number in 0..20_000 {
            assert_eq!(items.next().await.unwrap().unwrap(), [number]);
        }
        assert!(items.next().await.is_none());
        sender.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_items_go_in_parts() {
    each(async |client, _| {
        let (mut out, mut items) = echo(client).await;
        let lengths = [100_000, 3, 8188, 8189, 8190, 8191, 8192, 0, 200_000, 1];
        let sender = tokio::spawn(async move {
            for length in lengths {
                out.feed(&(0..length).collect()).await.unwrap();
            }
            out.finish().await.unwrap();
        });
        for length in lengths {
            let item = items.next().await.unwrap().unwrap();
            assert!(item.into_iter().eq(0..length), "{length}");
        }
        assert!(items.next().await.is_none());
        sender.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_ends_hold_quick_ones_up() {
    each(async |client, _| {
        for (slow_sender, slow_reader) in [(true, false), (false, true)] {
            let (mut out, mut items) = echo(client).await;
            let sender = tokio::spawn(async move {
                for number in 0..300 {
                    if slow_sender && number % 30 == 0 {
                        sleep(Duration::from_millis(2)).await;
                    }
                    out.send(&vec![number; 1000]).await.unwrap();
                }
                out.finish().await.unwrap();
            });
            for number in 0..300 {
                if slow_reader && number % 30 == 0 {
                    sleep(Duration::from_millis(2)).await;
                }
                let item = items.next().await.unwrap().unwrap();
                assert_eq!((item.len(), item[0]), (1000, number));
            }
            assert!(items.next().await.is_none());
            sender.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_dropped_ends_the_handler() {
    each(async |client, journal| {
        // More than fills the window of the connection, if it were not given back.
        for read in [0, 1, 500, 3, 3, 3, 3, 3, 3] {
            let mut items = endless(client, CallOptions::new()).await;
            for _ in 0..read {
                items.next().await.unwrap().unwrap();
            }
            drop(items);
            eventually(|| journal.running.load(Ordering::SeqCst) == 0).await;
        }
        assert_eq!(
            count(client, 1)
                .await
                .unwrap()
                .next()
                .await
                .unwrap()
                .unwrap(),
            0
        );
        // The same where nothing was sent.
        drop(echo(client).await);
        let (out, items) = echo(client).await;
        drop(out);
        let mut items = items;
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(status_of(&error), Some(Status::CANCELLED), "{error}");
        let (mut out, items) = echo(client).await;
        drop(items);
        let error = out.send(&vec![1]).await.unwrap_err();
        assert!(matches!(error, CallError::StreamClosed), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_may_come_before_the_last_item() {
    each(async |client, _| {
        let options = CallOptions::new();
        // More than fills the window of the connection, if it were not given back.
        for _ in 0..20 {
            let opened = client.open_argument(&SumCall::<FIRST>, put_number, options);
            let mut numbers: ArgumentSink<u32, u64> = opened.await.unwrap();
            let error = loop {
                if let Err(error) = numbers.send(&42).await {
                    break error;
                }
            };
            assert!(matches!(error, CallError::StreamClosed), "{error}");
            assert_eq!(numbers.finish().await.unwrap(), 42);
        }
        let opened = client.open_argument(&SumCall::<FIRST>, put_number, options);
        let numbers: ArgumentSink<u32, u64> = opened.await.unwrap();
        let error = numbers.finish().await.unwrap_err();
        assert!(status_of(&error).is_some(), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exception_comes_behind_the_items() {
    each(async |client, _| {
        let call = NumberCall::<FAIL>(0);
        let opened = client.open_result(&call, get_number, CallOptions::new());
        let mut numbers: ItemStream<u32> = opened.await.unwrap();
        for number in 0..FAIL_AFTER {
            assert_eq!(numbers.next().await.unwrap().unwrap(), number);
        }
        let error = numbers.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no more for you"), "{error}");
        assert!(numbers.next().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_is_dropped_cancels_the_call() {
    each(async |client, journal| {
        let mut numbers = sum(client).await;
        numbers.send(&1).await.unwrap();
        eventually(|| journal.running.load(Ordering::SeqCst) == 1).await;
        drop(numbers);
        eventually(|| journal.running.load(Ordering::SeqCst) == 0).await;
        // One that is dropped while it waits for room.
        let mut held = hold(client, CallOptions::new()).await.unwrap();
        let items = vec![1; 100_000];
        let sent = timeout(Duration::from_millis(30), held.send_all(&items)).await;
        assert!(sent.is_err());
        drop(held);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_at_its_deadline() {
    each(async |client, _| {
        // Enough for a call to be opened on a machine that is busy.
        let options = CallOptions::new().timeout(Duration::from_millis(300));
        let is_late = |error: &CallError| {
            matches!(error, CallError::TimedOut { .. })
                || status_of(error) == Some(Status::DEADLINE)
        };
        let numbers = hold(client, options).await.unwrap();
        let error = numbers.finish().await.unwrap_err();
        assert!(is_late(&error), "{error}");

        let mut numbers = hold(client, options).await.unwrap();
        let items = vec![1; 100_000];
        let error = numbers.send_all(&items).await.unwrap_err();
        // The server may have answered first that it is over.
        let is_closed = matches!(error, CallError::StreamClosed);
        assert!(is_closed || is_late(&error), "{error}");

        let mut items = endless(client, options).await;
        let begin = Instant::now();
        let error = loop {
            match items.next().await.unwrap() {
                Ok(_) => assert!(begin.elapsed() < PATIENCE),
                Err(error) => break error,
            }
        };
        // The handler may have been told first, and have failed of it.
        let has_failed = status_of(&error) == Some(Status::FAILED);
        assert!(has_failed || is_late(&error), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_deadline_outlasts_those_that_have_one() {
    let (server, _, addresses) = serve(ServerLimits::default(), false).await;
    for address in &addresses {
        let client = Client::connect(address, PROGRAM, 1).await.unwrap();
        let (mut out, mut items) = echo(&client).await;
        let late = CallOptions::new().timeout(Duration::from_millis(20));
        let held = hold(&client, late).await.unwrap();
        assert!(in_time(held.finish()).await.is_err());
        sleep(Duration::from_millis(50)).await;
        out.send(&vec![1, 2, 3]).await.unwrap();
        assert_eq!(in_time(items.next()).await.unwrap().unwrap(), [1, 2, 3]);
        out.finish().await.unwrap();
        assert!(in_time(items.next()).await.is_none());
    }
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_reader_leaves_takes_bounded_memory_and_delays_no_other_call() {
    each(async |client, journal| {
        journal.sent.store(0, Ordering::SeqCst);
        let mut items = endless(client, CallOptions::new()).await;
        items.next().await.unwrap().unwrap();
        let mut before = 0;
        // Until it stands still.
        loop {
            sleep(Duration::from_millis(30)).await;
            let sent = journal.sent.load(Ordering::SeqCst);
            if sent == std::mem::replace(&mut before, sent) {
                break;
            }
        }
        assert!((64 << 10..400 << 10).contains(&before), "{before}");
        for number in 0..100 {
            assert_eq!(plain(client, number).await, u64::from(number));
        }
        let numbers = count(client, 20_000).await.unwrap();
        assert_eq!(drain(numbers).await, 20_000);
    })
    .await;
}

async fn drain<T>(mut items: ItemStream<T>) -> usize {
    let mut length = 0;
    while let Some(item) = items.next().await {
        item.unwrap();
        length += 1;
    }
    length
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_without_streams_are_told_apart_from_those_with() {
    for address in ["tcp://127.0.0.1:1", "udp://127.0.0.1:1"] {
        let options = ChannelOptions {
            connect_lazily: true,
            ..ChannelOptions::default()
        };
        let client = Client::connect_with(address, PROGRAM, 1, options)
            .await
            .unwrap();
        let error = in_time(count(&client, 1)).await.unwrap_err();
        assert!(matches!(error, CallError::NoStreams { .. }), "{error}");
        assert_eq!(client.channel().counters().in_flight, 0);
    }
    let limits = ServerLimits {
        connection_streams: 0,
        ..ServerLimits::default()
    };
    let (server, _, addresses) = serve(limits, false).await;
    for address in &addresses {
        let client = Client::connect(address, PROGRAM, 1).await.unwrap();
        let error = in_time(count(&client, 1)).await.unwrap_err();
        assert!(matches!(error, CallError::NoStreams { .. }), "{error}");
        assert_eq!(plain(&client, 5).await, 5);
    }
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_an_error_behind_what_came() {
    for by_threads in [false, true] {
        for index in 0..3 {
            let (server, _, addresses) = serve(ServerLimits::default(), by_threads).await;
            let client = Client::connect(&addresses[index], PROGRAM, 1)
                .await
                .unwrap();
            let mut items = endless(&client, CallOptions::new()).await;
            in_time(items.next()).await.unwrap().unwrap();
            let (mut out, mut echoed) = echo(&client).await;
            let held = hold(&client, CallOptions::new()).await.unwrap();
            out.send(&vec![1]).await.unwrap();
            sleep(Duration::from_millis(30)).await;
            server.shutdown(Duration::ZERO).await;
            let mut came = 0;
            let error = loop {
                match in_time(items.next()).await.unwrap() {
                    Ok(_) => came += 1,
                    Err(error) => break error,
                }
            };
            assert!(came > 0);
            let is_lost = |error: &CallError| {
                matches!(
                    error,
                    CallError::Disconnected {
                        may_have_executed: true,
                        ..
                    }
                ) || matches!(status_of(error), Some(Status::STOPPING | Status::CANCELLED))
            };
            assert!(is_lost(&error), "{error:?}");
            let mut came = 0;
            let error = loop {
                match in_time(echoed.next()).await.unwrap() {
                    Ok(item) => assert_eq!(item, [1]),
                    Err(error) => break error,
                }
                came += 1;
            };
            assert!(came <= 1 && is_lost(&error), "{error:?}");
            let error = in_time(out.send(&vec![1])).await.unwrap_err();
            let is_closed = matches!(error, CallError::StreamClosed);
            assert!(is_closed || is_lost(&error), "{error}");
            let error = in_time(held.finish()).await.unwrap_err();
            assert!(is_lost(&error), "{error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_streams_go_over_one_channel() {
    each(async |client, _| {
        let mut tasks = JoinSet::new();
        for task in 0..100 {
            let client = client.clone();
            tasks.spawn(async move {
                let (mut out, mut items) = echo(&client).await;
                let sender = tokio::spawn(async move {
                    for number in 0..50 {
                        out.send(&vec![task, number, 7, 7, 7, 7]).await.unwrap();
                    }
                    out.finish().await.unwrap();
                });
                for number in 0..50 {
                    let item = items.next().await.unwrap().unwrap();
                    assert_eq!(item[..2], [task, number]);
                }
                assert!(items.next().await.is_none());
                sender.await.unwrap();
            });
        }
        tasks.join_all().await;
        // In packets they have a connection beside the socket of other calls.
        let is_datagram = client.channel().address().is_datagram();
        let connections = client.channel().counters().connections;
        assert_eq!(connections, 1 + u64::from(is_datagram));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_streams_wait_for_the_peer_and_others_do_not() {
    let limits = ServerLimits {
        connection_streams: 2,
        connection_calls: 4,
        ..ServerLimits::default()
    };
    for by_threads in [false, true] {
        let (server, journal, addresses) = serve(limits.clone(), by_threads).await;
        for address in &addresses {
            let client = Client::connect(address, PROGRAM, 1).await.unwrap();
            let first = hold(&client, CallOptions::new()).await.unwrap();
            let second = echo(&client).await;
            let waiting = {
                let client = client.clone();
                tokio::spawn(async move { drain(count(&client, 10).await.unwrap()).await })
            };
            let late = CallOptions::new().timeout(Duration::from_millis(40));
            let error = in_time(hold(&client, late)).await.unwrap_err();
            assert!(!error.may_have_executed(), "{error}");
            assert_eq!(plain(&client, 5).await, 5);
            assert!(!waiting.is_finished());
            drop(first);
            assert_eq!(in_time(waiting).await.unwrap(), 10);
            drop(second);
            eventually(|| journal.running.load(Ordering::SeqCst) == 0).await;
        }
        server.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_in_order_while_their_server_stops() {
    for by_threads in [false, true] {
        for index in 0..3 {
            let (server, _, addresses) = serve(ServerLimits::default(), by_threads).await;
            let client = Client::connect(&addresses[index], PROGRAM, 1)
                .await
                .unwrap();
            let (mut out, mut items) = echo(&client).await;
            out.send(&vec![1]).await.unwrap();
            in_time(items.next()).await.unwrap().unwrap();
            let stopping = tokio::spawn(async move {
                server.shutdown(Duration::from_secs(20)).await;
            });
            sleep(Duration::from_millis(30)).await;
            let sender = tokio::spawn(async move {
                for number in 0..100 {
                    out.send(&vec![number; 10]).await.unwrap();
                }
                out.finish().await.unwrap();
            });
            assert_eq!(in_time(drain(items)).await, 100);
            sender.await.unwrap();
            in_time(stopping).await.unwrap();
        }
    }
}

/// Has `test` run with a client of each address, each of a server of its own, by tasks and by threads.
async fn each_stopping(limits: &ServerLimits, test: impl AsyncFn(Client, Server, Arc<Journal>)) {
    for by_threads in [false, true] {
        for index in 0..3 {
            let (server, journal, addresses) = serve(limits.clone(), by_threads).await;
            eprintln!("{} by_threads: {by_threads}", addresses[index]);
            let client = Client::connect(&addresses[index], PROGRAM, 1);
            let client = client.await.unwrap();
            in_time(test(client, server, Arc::clone(&journal))).await;
            eventually(|| journal.running.load(Ordering::SeqCst) == 0).await;
        }
    }
}

/// Stops a server whose calls do not end by themselves: the streams end at the deadline.
async fn stop(server: Server, drain: Duration) {
    let begun = Instant::now();
    server.shutdown(drain).await;
    assert!(begun.elapsed() >= drain);
    assert!(begun.elapsed() < drain + Duration::from_secs(10));
}

/// Takes items until an error comes, which is that of a call which the server has ended.
async fn expect_stopped<T>(items: &mut ItemStream<T>) {
    loop {
        match items.next().await.expect("an error is the end") {
            Ok(_) => {}
            Err(error) => return expect_stopping(&error),
        }
    }
}

fn expect_stopping(error: &CallError) {
    assert_eq!(error.kind(), CallErrorKind::Stopping, "{error}");
    assert_eq!(status_of(error), Some(Status::STOPPING));
    assert!(error.may_have_executed(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_its_streams() {
    let limits = ServerLimits::default();
    each_stopping(&limits, async |client, server, _| {
        let mut items = endless(&client, CallOptions::new()).await;
        let mut numbers = sum(&client).await;
        let (mut out, mut echoed) = echo(&client).await;
        items.next().await.unwrap().unwrap();
        out.send(&vec![1; 20_000]).await.unwrap();
        echoed.next().await.unwrap().unwrap();
        let stopping = tokio::spawn(stop(server, Duration::from_millis(200)));
        expect_stopped(&mut items).await;
        expect_stopped(&mut echoed).await;
        expect_stopping(&out.send(&vec![2]).await.unwrap_err());
        let error = loop {
            if let Err(error) = numbers.send(&1).await {
                break error;
            }
        };
        expect_stopping(&error);
        expect_stopping(&numbers.finish().await.unwrap_err());
        stopping.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_does_not_hold_up_a_server_that_stops() {
    let limits = ServerLimits::default();
    each_stopping(&limits, async |client, server, journal| {
        // A client of threads receives nothing unless a thread waits for it.
        let address = client.channel().address().to_string();
        let blocking = tokio::task::block_in_place(|| tenon::Client::connect(&address, PROGRAM, 1));
        let (blocking, mut unread) = (blocking.unwrap(), Vec::new());
        for _ in 0..8 {
            let call = NumberCall::<ENDLESS>(0);
            let open = || blocking.open_result(&call, get_words, CallOptions::new());
            unread.push(tokio::task::block_in_place(open).unwrap());
        }
        let mut sent = 0;
        loop {
            sleep(Duration::from_millis(30)).await;
            let before = std::mem::replace(&mut sent, journal.sent.load(Ordering::SeqCst));
            if sent > 100_000 && before == sent {
                break;
            }
        }
        stop(server, Duration::from_millis(50)).await;
        for items in &mut unread {
            let last = || items.find_map(Result::err).unwrap().kind();
            let kind = tokio::task::block_in_place(last);
            let kinds = [CallErrorKind::Stopping, CallErrorKind::Disconnected];
            assert!(kinds.contains(&kind), "{kind:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_their_connection_has_had_its_grace() {
    let limits = ServerLimits {
        connection_age: Some(Duration::from_millis(100)),
        connection_grace: Some(Duration::from_millis(300)),
        ..ServerLimits::default()
    };
    each_stopping(&limits, async |client, server, _| {
        let mut items = endless(&client, CallOptions::new()).await;
        expect_stopped(&mut items).await;
        assert_eq!(plain(&client, 7).await, 7);
        server.shutdown(Duration::from_secs(5)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_of_connections_in_packets_is_free_when_its_server_has_stopped() {
    let mut address = "udp://127.0.0.1:0".to_owned();
    for _ in 0..20 {
        let builder = Server::builder().listen(&address).unwrap();
        let builder = builder.service(ByTasks(Arc::default()));
        let server = builder.start().await.unwrap();
        address = server.addresses()[0].to_string();
        let at = format!("lean+{address}");
        let client = Client::connect(&at, PROGRAM, 1).await.unwrap();
        let mut counting = in_time(count(&client, 1_000_000)).await.unwrap();
        in_time(counting.next()).await.unwrap().unwrap();
        in_time(server.shutdown(Duration::ZERO)).await;
    }
}

/// A server that has as many connections of a host as it takes refuses the next one, and the caller hears that at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_in_packets_may_be_refused() {
    let limits = ServerLimits {
        connections_of_host: 1,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    let builder = builder.listen("udp://127.0.0.1:0").unwrap();
    let builder = builder.service(ByTasks(Arc::default()));
    let server = builder.start().await.unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let one = Client::connect(&address, PROGRAM, 1).await.unwrap();
    let other = Client::connect(&address, PROGRAM, 1).await.unwrap();
    let _counting = in_time(count(&one, 3)).await.unwrap();
    let refused = in_time(count(&other, 3)).await.unwrap_err();
    assert!(
        matches!(refused, CallError::ConnectionRefused(_)),
        "{refused}"
    );
    assert_eq!(plain(&other, 5).await, 5);
    one.channel().close().await;
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_threads_is_a_peer_too() {
    let path = || fresh_path().display().to_string();
    for (listen, protocol) in [
        ("tcp://127.0.0.1:0".to_owned(), "lean+"),
        ("udp://127.0.0.1:0".to_owned(), "lean+"),
        (format!("unix://{}", path()), "lean+"),
        (format!("shm://{}", path()), ""),
    ] {
        let journal = Arc::new(Journal::default());
        let builder = tenon::Server::builder().listen(&listen).unwrap();
        let builder = builder.service(ByThreads(Arc::clone(&journal)));
        let server = builder.start().unwrap();
        let address = format!("{protocol}{}", server.addresses()[0]);
        let client = Client::connect(&address, PROGRAM, 1).await.unwrap();
        let (mut out, mut items) = echo(&client).await;
        let sender = tokio::spawn(async move {
            for number in 0..5000 {
                out.feed(&vec![number; 50]).await.unwrap();
            }
            out.finish().await.unwrap();
        });
        for number in 0..5000 {
            assert_eq!(in_time(items.next()).await.unwrap().unwrap(), [number; 50]);
        }
        assert!(in_time(items.next()).await.is_none());
        sender.await.unwrap();
        drop(client);
        tokio::task::spawn_blocking(move || server.shutdown(Duration::from_secs(5)))
            .await
            .unwrap();
    }
}

/// The traits of other crates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sinks_and_streams_are_those_of_futures() {
    each(async |client, _| {
        let (mut out, mut items) = echo(client).await;
        for number in 0..5000 {
            poll_fn(|cx| Pin::new(&mut out).poll_ready(cx))
                .await
                .unwrap();
            Pin::new(&mut out).start_send(vec![number; 5]).unwrap();
            if number % 100 == 99 {
                poll_fn(|cx| Pin::new(&mut out).poll_flush(cx))
                    .await
                    .unwrap();
                for expected in number - 99..=number {
                    let item = poll_fn(|cx| Pin::new(&mut items).poll_next(cx)).await;
                    assert_eq!(item.unwrap().unwrap(), [expected; 5]);
                }
            }
        }
        poll_fn(|cx| Pin::new(&mut out).poll_close(cx))
            .await
            .unwrap();
        drop(out);
        assert!(
            poll_fn(|cx| Pin::new(&mut items).poll_next(cx))
                .await
                .is_none()
        );
        let mut numbers = sum(client).await;
        Pin::new(&mut numbers).start_send(5).unwrap();
        poll_fn(|cx| Pin::new(&mut numbers).poll_close(cx))
            .await
            .unwrap();
        assert_eq!(numbers.finish().await.unwrap(), 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_future_that_is_dropped_loses_no_item() {
    each(async |client, _| {
        let (mut out, mut items) = echo(client).await;
        let mut expected = 0;
        for number in 0..200 {
            // One that is polled once.
            let item = vec![number; 10_000];
            let mut sent = Box::pin(out.send(&item));
            poll_fn(|cx| Poll::Ready(sent.as_mut().poll(cx).is_ready())).await;
            drop(sent);
            while let Ok(item) = timeout(Duration::from_micros(10), items.next()).await {
                let item = item.unwrap().unwrap();
                assert_eq!((item.len(), item[0]), (10_000, expected));
                expected += 1;
            }
        }
        let reader = tokio::spawn(drain(items));
        out.finish().await.unwrap();
        assert_eq!(reader.await.unwrap() + expected as usize, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_streams_connects_and_connects_again() {
    let limits = ServerLimits::default();
    let path = format!("unix://{}", fresh_path().display());
    let options = ChannelOptions {
        connect_lazily: true,
        wait_for_ready: true,
        ..ChannelOptions::default()
    };
    let address = format!("lean+{path}");
    let client = Client::connect_with(&address, PROGRAM, 1, options);
    let client = client.await.unwrap();
    for connections in 1..4 {
        let early = {
            let client = client.clone();
            tokio::spawn(async move { drain(count(&client, 5000).await.unwrap()).await })
        };
        sleep(Duration::from_millis(10)).await;
        let builder = Server::builder().limits(limits.clone());
        let service = ByTasks(Arc::default());
        let builder = builder.listen(&path).unwrap().service(service);
        let server = builder.start().await.unwrap();
        assert_eq!(in_time(early).await.unwrap(), 5000);
        let mut items = endless(&client, CallOptions::new()).await;
        server.shutdown(Duration::ZERO).await;
        while let Some(Ok(_)) = in_time(items.next()).await {}
        // It is still there while the next connection is used.
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            drop(items);
        });
        assert_eq!(client.channel().counters().connections, connections);
    }
}

/// Notes what becomes of calls.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl Noting {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Middleware for Noting {
    type State = ();

    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        let number = call.procedure().number;
        self.0.lock().unwrap().push(format!("begin {number}"));
        Ok(())
    }

    fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        let outcome = match outcome {
            CallOutcome::Success => "success".to_owned(),
            CallOutcome::Refused(refusal) => format!("{refusal}"),
            CallOutcome::Failed(error) => format!("{error}"),
            _ => "dropped".to_owned(),
        };
        let number = call.procedure().number;
        let text = format!("end {number}: {outcome}");
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn middleware_sees_calls_with_streams_to_their_end() {
    for by_threads in [false, true] {
        let journal = Arc::new(Journal::default());
        let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
        let (builder, noted) = if by_threads {
            let service = Layered::new(ByThreads(journal), Noting::default());
            let noted = Arc::clone(service.middleware());
            (builder.sync_service(service), noted)
        } else {
            let service = Layered::new(ByTasks(journal), Noting::default());
            let noted = Arc::clone(service.middleware());
            (builder.service(service), noted)
        };
        let server = builder.start().await.unwrap();
        let address = format!("lean+{}", server.addresses()[0]);
        let client = Client::connect(&address, PROGRAM, 1).await.unwrap();
        let client = Layered::new(client, Noting::default());
        let options = CallOptions::new();

        let opened = client.open_result(&NumberCall::<COUNT>(10), get_number, options);
        let mut numbers = opened.await.unwrap();
        for number in 0..10 {
            assert_eq!(numbers.next().await.unwrap().unwrap(), number);
            assert_eq!(client.middleware().0.lock().unwrap()[..], ["begin 1"]);
        }
        assert!(numbers.next().await.is_none());
        assert_eq!(client.middleware().take(), ["begin 1", "end 1: success"]);
        assert_eq!(noted.take(), ["begin 1", "end 1: success"]);

        let opened = client.open_argument(&SumCall::<SUM>, put_number, options);
        let mut numbers = opened.await.unwrap();
        numbers.send(&5).await.unwrap();
        assert_eq!(client.middleware().take(), ["begin 2"]);
        assert_eq!(numbers.finish().await.unwrap(), 5);
        assert_eq!(client.middleware().take(), ["end 2: success"]);
        assert_eq!(noted.take(), ["begin 2", "end 2: success"]);

        let opened = client.open_result(&NumberCall::<FAIL>(0), get_number, options);
        let mut numbers: ItemStream<u32> = opened.await.unwrap();
        while let Some(Ok(_)) = numbers.next().await {}
        for noted in [client.middleware().take(), noted.take()] {
            assert!(noted[1].contains("no more for you"), "{noted:?}");
        }

        let call = NumberCall::<ECHO>(0);
        let opened = client.open_both(&call, put_words, get_words, options);
        let (out, items) = opened.await.unwrap();
        drop(items);
        assert_eq!(client.middleware().take()[1], "end 3: dropped");
        drop(out);
        server.shutdown(Duration::from_secs(5)).await;
    }
}

/// What generated code needs.
#[test]
fn everything_may_be_sent_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn check(client: &Client, items: &mut ItemStream<u32>, sink: &mut ItemSink<Vec<u32>>) {
        let options = CallOptions::new();
        is_send(&client.open_result(&NumberCall::<COUNT>(1), get_number, options));
        is_send(&client.open_argument(&SumCall::<SUM>, put_number, options));
        let call = NumberCall::<ECHO>(1);
        is_send(&client.open_both(&call, put_words, get_words, options));
        is_send(items);
        is_send(&items.next());
        is_send(sink);
        is_send(&sink.send(&vec![]));
    }
    let _ = check;
}
