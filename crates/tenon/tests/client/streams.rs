//! Calls with streams, over every transport that carries them: all items arrive in order, ends are told, and a stream that
//! one end gives up ends at the other.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenon::lean::{CallStreams, Interface};
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean, Representation};
use tenon::{
    CallCodec, CallError, CallErrorKind, CallInfo, CallOptions, CalledProcedure, Client,
    ItemReader, ItemWriter, LeanInput, LeanService, OpenStreams, Refusal, ServedStreams, Server,
    ServerLimits, Service, Transport,
};

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

/// A call with one number as its argument.
struct Call<const PROCEDURE: u32>(u32);

impl<const PROCEDURE: u32> CalledProcedure for Call<PROCEDURE> {
    const PROCEDURE: u32 = PROCEDURE;
    type Result = ();
    type Error = CallError;
}

impl<R: Representation, const PROCEDURE: u32> CallCodec<R> for Call<PROCEDURE> {
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        out.put(self.0);
        Ok(())
    }

    fn decode(_input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// A call that returns a number.
struct Sum;

impl CalledProcedure for Sum {
    const PROCEDURE: u32 = SUM;
    type Result = u64;
    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for Sum {
    fn decode(input: &mut Decoder<'_, R>) -> Result<u64, DecodeError> {
        input.get()
    }
}

/// A call that returns a number behind the first item.
struct First;

impl CalledProcedure for First {
    const PROCEDURE: u32 = FIRST;
    type Result = u64;
    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for First {
    fn decode(input: &mut Decoder<'_, R>) -> Result<u64, DecodeError> {
        input.get()
    }
}

#[expect(clippy::ptr_arg, reason = "items are vectors")]
fn put_opaque(item: &Vec<u8>, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put_opaque(item, u32::MAX)
}

fn get_opaque(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    match input {
        LeanInput::Native(input) => input.get_opaque(u32::MAX),
        LeanInput::Swapped(input) => input.get_opaque(u32::MAX),
    }
}

fn put_number(item: &u32, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put(*item);
    Ok(())
}

fn get_number(input: &mut LeanInput<'_>) -> Result<u32, DecodeError> {
    match input {
        LeanInput::Native(input) => input.get(),
        LeanInput::Swapped(input) => input.get(),
    }
}

/// Has procedures with streams.
#[derive(Default)]
struct Streaming(Arc<Counted>);

/// What handlers have seen.
#[derive(Default)]
struct Counted {
    /// Handlers that have ended because their callers wanted no more.
    ended: AtomicUsize,
    /// Items of an argument that were added up.
    added: AtomicUsize,
    /// Items of a result that were handed over.
    sent: AtomicUsize,
}

/// Bytes of an item of `ENDLESS`.
const LARGE: usize = 4096;

impl Service for Streaming {
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

impl LeanService for Streaming {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        _: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(Refusal::InvalidArguments(
            "every procedure has streams".into(),
        ))
    }

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
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
                let mut sum = 0;
                for number in numbers() {
                    match number {
                        Ok(number) => {
                            sum += u64::from(number);
                            self.0.added.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), CallErrorKind::Cancelled);
                            self.0.ended.fetch_add(1, Ordering::SeqCst);
                            return Err(error.into());
                        }
                    }
                }
                result.put(sum);
            }
            ECHO => {
                streams.expect(CallStreams {
                    argument: true,
                    result: true,
                })?;
                let mut out = ItemWriter::of_handler(streams, put_opaque);
                for item in ItemReader::of_handler(streams, get_opaque) {
                    out.send(&item?)?;
                }
            }
            ENDLESS => {
                let mut out = ItemWriter::of_handler(streams, put_opaque);
                let item = vec![7; LARGE];
                let end = loop {
                    if let Err(error) = out.send(&item) {
                        break error;
                    }
                    self.0.sent.fetch_add(1, Ordering::SeqCst);
                };
                assert!(call.is_cancelled(), "{end}");
                self.0.ended.fetch_add(1, Ordering::SeqCst);
                return Err(end.into());
            }
            FAIL => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                out.send_all(&[1, 2, 3])?;
                return Err(Refusal::Denied("no more for you".into()));
            }
            FIRST => {
                let first = numbers().next().ok_or(Refusal::ProcedureUnavailable)??;
                result.put(u64::from(first));
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        Ok(())
    }
}

/// A server at an address of its own.
fn serve(listen: &str, limits: ServerLimits) -> (Server, Arc<Counted>) {
    let service = Streaming::default();
    let counted = Arc::clone(&service.0);
    let builder = Server::builder().limits(limits).listen(listen).unwrap();
    (builder.service(service).start().unwrap(), counted)
}

fn connect(server: &Server) -> Client {
    let address = &server.addresses()[0];
    let address = match address.transport() {
        Transport::Shm => address.to_string(),
        _ => format!("lean+{address}"),
    };
    Client::connect(&address, PROGRAM, 1).unwrap()
}

/// Runs a test with a client of a server at an address of each kind that carries streams, and what its handlers count.
fn each(test: impl Fn(&Client, &Counted)) {
    let path = || fresh_path().display().to_string();
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        "udp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        let (server, counted) = serve(&listen, ServerLimits::default());
        eprintln!("{listen}");
        test(&connect(&server), &counted);
        server.shutdown(Duration::from_secs(5));
    }
}

const PLAIN: CallOptions<'static> = CallOptions::new();

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn all_items_of_a_result_arrive_in_their_order() {
    each(|client, _| {
        for count in [0, 1, 1000, 300_000] {
            let numbers = client.open_result(&Call::<COUNT>(count), get_number, PLAIN);
            let numbers: Result<Vec<u32>, CallError> = numbers.unwrap().collect();
            assert!(numbers.unwrap().into_iter().eq(0..count), "{count}");
        }
    });
}

/// Starts what stands between a client and a server; returns its address, and how many bytes the server has sent.
fn count_sent(server: &Server) -> (String, Arc<AtomicUsize>) {
    let server = server.addresses()[0].to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("lean+tcp://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(server.trim_start_matches("tcp://")).unwrap();
        let (mut from_client, mut to_server) = (&client, &server);
        thread::scope(|scope| {
            scope.spawn(move || io::copy(&mut from_client, &mut to_server));
            let (mut from_server, mut to_client, mut bytes) = (&server, &client, [0; 4096]);
            while let Ok(read @ 1..) = from_server.read(&mut bytes) {
                counted.fetch_add(read, Ordering::SeqCst);
                to_client.write_all(&bytes[..read]).unwrap();
            }
            let _ = client.shutdown(Shutdown::Both);
        });
    });
    (address, sent)
}

#[test]
fn items_that_are_fed_share_their_messages() {
    let (server, _) = serve("tcp://127.0.0.1:0", ServerLimits::default());
    let (address, sent) = count_sent(&server);
    let client = Client::connect(&address, PROGRAM, 1).unwrap();
    let count = |count: u32| {
        let before = sent.load(Ordering::SeqCst);
        let numbers = client.open_result(&Call::<COUNT>(count), get_number, PLAIN);
        assert_eq!(numbers.unwrap().count(), count as usize);
        sent.load(Ordering::SeqCst) - before
    };
    let first = count(1);
    let bytes = count(1001);
    // Each item lies at a multiple of 8 bytes; a message has a header of 16.
    assert!((8000..8000 + first + 100).contains(&bytes), "{bytes} bytes");
    drop(client);
    server.shutdown(Duration::from_secs(5));
}

#[test]
fn what_is_no_item_ends_a_stream() {
    each(|client, _| {
        let reads_nothing = |_: &mut LeanInput<'_>| Ok(());
        let items = client.open_result(&Call::<COUNT>(10), reads_nothing, PLAIN);
        let items: Vec<_> = items.unwrap().collect();
        let [Err(error)] = &items[..] else {
            panic!("{items:?}");
        };
        assert_eq!(error.kind(), CallErrorKind::PeerMisbehaved);
        // The last of three begins where the content ends 4 bytes further.
        let reads_much = |input: &mut LeanInput<'_>| {
            let halves = [get_number(input)?, get_number(input)?];
            Ok(halves)
        };
        let items = client.open_result(&Call::<COUNT>(3), reads_much, PLAIN);
        let items: Vec<_> = items.unwrap().collect();
        let [Ok([0, 0]), Ok([1, 0]), Err(error)] = &items[..] else {
            panic!("{items:?}");
        };
        assert_eq!(error.kind(), CallErrorKind::PeerMisbehaved);
        let numbers = client.open_result(&Call::<COUNT>(3), get_number, PLAIN);
        assert_eq!(numbers.unwrap().count(), 3, "the connection goes on");
    });
}

#[test]
fn all_items_of_an_argument_arrive_before_the_result() {
    each(|client, _| {
        for count in [0, 1, 1000, 300_000_u32] {
            let mut numbers = client.open_argument(&Sum, put_number, PLAIN).unwrap();
            let items: Vec<u32> = (0..count).collect();
            numbers.send_all(&items).unwrap();
            let expected = u64::from(count) * u64::from(count.saturating_sub(1)) / 2;
            assert_eq!(numbers.finish().unwrap(), expected, "{count}");
        }
    });
}

#[test]
fn items_of_any_size_come_back() {
    each(|client, _| {
        let (mut out, mut echoed) = client
            .open_both(&Call::<ECHO>(0), put_opaque, get_opaque, PLAIN)
            .unwrap();
        let sizes = [
            0,
            1,
            100,
            32_752,
            65_517,
            65_520,
            65_521,
            100_000,
            1 << 20,
            3 << 20,
        ];
        for round in 0..3_u8 {
            for size in sizes {
                let item: Vec<u8> = (0..size).map(|at| (at as u8).wrapping_mul(round)).collect();
                // Beside the writer, as the item may be larger than all that is on its way.
                let written = thread::scope(|scope| {
                    let writer = scope.spawn(|| out.send(&item));
                    let came = echoed.next().unwrap().unwrap();
                    assert!(came == item, "another item of {size} bytes");
                    writer.join().unwrap()
                });
                written.unwrap();
            }
        }
        out.finish().unwrap();
        assert!(echoed.next().is_none());
    });
}

#[test]
fn an_item_over_the_limit_of_the_server_is_not_sent() {
    each(|client, _| {
        let (mut out, mut echoed) = client
            .open_both(&Call::<ECHO>(0), put_opaque, get_opaque, PLAIN)
            .unwrap();
        let error = out.send(&vec![0; 5 << 20]).unwrap_err();
        assert!(
            matches!(error, CallError::TooLargeForPeer { .. }),
            "{error}"
        );
        out.send(&vec![1, 2, 3]).unwrap();
        assert_eq!(echoed.next().unwrap().unwrap(), [1, 2, 3]);
    });
}

#[test]
fn a_handler_ends_when_the_reader_of_its_result_is_dropped() {
    each(|client, counted| {
        let mut items = client
            .open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN)
            .unwrap();
        for _ in 0..100 {
            assert_eq!(items.next().unwrap().unwrap().len(), LARGE);
        }
        assert_eq!(counted.ended.load(Ordering::SeqCst), 0);
        drop(items);
        wait_until("it ends", || counted.ended.load(Ordering::SeqCst) == 1);
        client.ping().unwrap();
    });
}

#[test]
fn a_handler_is_told_that_the_writer_of_its_argument_is_gone() {
    each(|client, counted| {
        let mut numbers = client.open_argument(&Sum, put_number, PLAIN).unwrap();
        numbers.send(&1).unwrap();
        // A call that is cancelled before its handler has begun is not begun.
        wait_until("it begins", || counted.added.load(Ordering::SeqCst) == 1);
        drop(numbers);
        wait_until("it ends", || counted.ended.load(Ordering::SeqCst) == 1);
        client.ping().unwrap();
    });
}

#[test]
fn one_half_of_a_call_ends_with_the_other() {
    each(|client, _| {
        let open = || client.open_both(&Call::<ECHO>(0), put_opaque, get_opaque, PLAIN);
        let (mut out, mut echoed) = open().unwrap();
        out.send(&vec![1]).unwrap();
        assert_eq!(echoed.next().unwrap().unwrap(), [1]);
        drop(out);
        let error = echoed.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Cancelled, "{error}");
        assert!(echoed.next().is_none());

        let (mut out, echoed) = open().unwrap();
        drop(echoed);
        let error = out.send(&vec![1]).unwrap_err();
        assert!(matches!(error, CallError::StreamClosed), "{error}");
    });
}

#[test]
fn an_exception_comes_behind_the_items_before_it() {
    each(|client, _| {
        let items = client
            .open_result(&Call::<FAIL>(0), get_number, PLAIN)
            .unwrap();
        let items: Vec<_> = items.collect();
        let numbers: Vec<u32> = items.iter().flatten().copied().collect();
        assert_eq!(numbers, [1, 2, 3]);
        let error = items[3].as_ref().unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Denied);
        assert_eq!(items.len(), 4);
    });
}

#[test]
fn a_call_may_be_answered_before_its_last_item() {
    each(|client, _| {
        let mut numbers = client.open_argument(&First, put_number, PLAIN).unwrap();
        let closed = (7..)
            .find_map(|number| numbers.send(&number).err())
            .unwrap();
        assert!(matches!(closed, CallError::StreamClosed), "{closed}");
        assert_eq!(numbers.finish().unwrap(), 7);
    });
}

#[test]
fn a_stream_that_is_not_read_stands_still_and_the_rest_of_the_connection_goes_on() {
    each(|client, counted| {
        let mut items = client
            .open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN)
            .unwrap();
        items.next().unwrap().unwrap();
        // Other calls read what comes meanwhile.
        let mut before = usize::MAX;
        wait_until("it stands still", || {
            (0..20).for_each(|_| client.ping().unwrap());
            let sent = counted.sent.load(Ordering::SeqCst);
            std::mem::replace(&mut before, sent) == sent
        });
        // The first window, and what lies between the handler and the connection.
        let bytes = counted.sent.load(Ordering::SeqCst) * LARGE;
        assert!(bytes <= 256 << 10, "{bytes} bytes are under way");
        let numbers = client.open_result(&Call::<COUNT>(1000), get_number, PLAIN);
        assert_eq!(numbers.unwrap().count(), 1000);
        for _ in 0..1000 {
            items.next().unwrap().unwrap();
        }
    });
}

#[test]
fn many_streams_share_a_connection() {
    each(|client, _| {
        thread::scope(|scope| {
            for thread in 0..20 {
                scope.spawn(move || {
                    for round in 0..5 {
                        let count = 100 * thread + round;
                        let numbers = client.open_result(&Call::<COUNT>(count), get_number, PLAIN);
                        let numbers = numbers.unwrap().map(Result::unwrap);
                        assert!(numbers.eq(0..count));
                        client.ping().unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn a_call_with_streams_waits_while_the_server_has_as_many_as_it_takes() {
    let limits = ServerLimits {
        connection_streams: 2,
        ..ServerLimits::default()
    };
    let (server, counted) = serve("tcp://127.0.0.1:0", limits);
    let client = connect(&server);
    let open = || client.open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN);
    let (first, _second) = (open().unwrap(), open().unwrap());
    let hurried = CallOptions::new().timeout(Duration::from_millis(50));
    let refused = client.open_result(&Call::<ENDLESS>(0), get_opaque, hurried);
    assert_eq!(refused.unwrap_err().kind(), CallErrorKind::TimedOut);
    client.ping().unwrap();
    drop(first);
    open().unwrap().next().unwrap().unwrap();
    wait_until("two end", || counted.ended.load(Ordering::SeqCst) >= 2);
}

#[test]
fn a_server_may_take_no_streams() {
    let limits = ServerLimits {
        connection_streams: 0,
        ..ServerLimits::default()
    };
    for listen in ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"] {
        let (server, _) = serve(listen, limits.clone());
        let refused = connect(&server).open_result(&Call::<COUNT>(1), get_number, PLAIN);
        let refused = refused.unwrap_err();
        assert!(matches!(refused, CallError::NoStreams { .. }), "{refused}");
    }
}

#[test]
fn a_port_of_connections_in_packets_is_free_when_its_server_has_stopped() {
    let (server, _) = serve("udp://127.0.0.1:0", ServerLimits::default());
    let address = server.addresses()[0].to_string();
    let mut server = Some(server);
    for _ in 0..20 {
        let stopped = server.take().unwrap();
        let client = connect(&stopped);
        let mut endless = client.open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN);
        endless.as_mut().unwrap().next().unwrap().unwrap();
        stopped.shutdown(Duration::ZERO);
        drop(stopped);
        server = Some(serve(&address, ServerLimits::default()).0);
    }
}

#[test]
fn connections_in_packets_count_as_all_do() {
    let limits = ServerLimits {
        connections_of_host: 1,
        ..ServerLimits::default()
    };
    let (server, _) = serve("udp://127.0.0.1:0", limits);
    let open = |client: &Client| client.open_result(&Call::<COUNT>(3), get_number, PLAIN);
    let (one, other) = (connect(&server), connect(&server));
    assert_eq!(open(&one).unwrap().count(), 3);
    one.ping().unwrap();
    let counters = one.channel().counters();
    assert_eq!((counters.connections, counters.calls.successes), (2, 2));
    assert_eq!(server.counters().connections_accepted, 1);
    let refused = open(&other).and_then(|mut items| items.next().unwrap());
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, CallError::ConnectionRefused(_)),
        "{refused}"
    );
    other.ping().unwrap();
    assert_eq!(server.counters().hosts_refused, 1);
    // What has one end has room for another.
    drop(one);
    wait_until("the connection ends", || {
        open(&other).is_ok_and(|items| items.count() == 3)
    });
}

#[test]
fn a_server_that_stops_ends_its_streams() {
    each_stopping(|client, (server, counted)| {
        let mut items = client
            .open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN)
            .unwrap();
        let mut numbers = client.open_argument(&Sum, put_number, PLAIN).unwrap();
        let (mut out, mut echoed) = client
            .open_both(&Call::<ECHO>(0), put_opaque, get_opaque, PLAIN)
            .unwrap();
        items.next().unwrap().unwrap();
        numbers.send(&1).unwrap();
        wait_until("the sum begins", || {
            counted.added.load(Ordering::SeqCst) > 0
        });
        out.send(&vec![1; 100_000]).unwrap();
        echoed.next().unwrap().unwrap();
        let drain = Duration::from_millis(200);
        let stopping = thread::spawn(move || stop(server, drain));
        expect_stopping(&items.find_map(Result::err).unwrap());
        expect_stopping(&echoed.find_map(Result::err).unwrap());
        expect_stopping(&out.send(&vec![2]).unwrap_err());
        expect_stopping(&loop_until_err(|| numbers.send(&1)));
        expect_stopping(&numbers.finish().unwrap_err());
        stopping.join().unwrap();
        wait_until("the handlers end", || {
            counted.ended.load(Ordering::SeqCst) == 2
        });
    });
}

/// Stops a server whose calls do not end by themselves: the streams end at the deadline.
fn stop(server: Server, drain: Duration) {
    let begun = Instant::now();
    server.shutdown(drain);
    assert!(begun.elapsed() >= drain);
    assert!(begun.elapsed() < drain + Duration::from_secs(10));
}

fn expect_stopping(error: &CallError) {
    assert_eq!(error.kind(), CallErrorKind::Stopping, "{error}");
    assert!(error.exception().is_some(), "{error}");
    assert!(error.may_have_executed(), "{error}");
}

/// Does something again until it fails.
fn loop_until_err<T, E>(mut attempt: impl FnMut() -> Result<T, E>) -> E {
    loop {
        if let Err(error) = attempt() {
            return error;
        }
    }
}

/// Opens calls whose items nobody reads, and waits until no more find room.
fn open_unread(client: &Client, calls: usize, counted: &Counted) -> Vec<ItemReader<Vec<u8>>> {
    let open = || client.open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN);
    let opened = (0..calls).map(|_| open().unwrap()).collect();
    let mut sent = 0;
    wait_until("the windows are full", || {
        thread::sleep(Duration::from_millis(20));
        let before = std::mem::replace(&mut sent, counted.sent.load(Ordering::SeqCst));
        sent >= 16 * calls.min(4) && before == sent
    });
    opened
}

#[test]
fn a_reader_that_is_behind_finds_the_end_of_a_stream_that_was_ended() {
    each_stopping(|client, (server, counted)| {
        let mut unread = open_unread(client, 1, &counted);
        stop(server, Duration::from_millis(50));
        expect_stopping(&unread[0].find_map(Result::err).unwrap());
    });
}

#[test]
fn a_peer_that_does_not_read_does_not_hold_up_a_server_that_stops() {
    each_stopping(|client, (server, counted)| {
        // Together they take all the credit that a connection has at first.
        let mut unread = open_unread(client, 8, &counted);
        stop(server, Duration::from_millis(50));
        wait_until("the handlers end", || {
            counted.ended.load(Ordering::SeqCst) == 8
        });
        for items in &mut unread {
            let kind = items.find_map(Result::err).unwrap().kind();
            let kinds = [CallErrorKind::Stopping, CallErrorKind::Disconnected];
            assert!(kinds.contains(&kind), "{kind:?}");
        }
    });
}

#[test]
fn a_server_that_stops_lets_streams_end() {
    each_stopping(|client, (server, _)| {
        let mut numbers = client.open_argument(&Sum, put_number, PLAIN).unwrap();
        numbers.send(&1).unwrap();
        let mut count = client
            .open_result(&Call::<COUNT>(500_000), get_number, PLAIN)
            .unwrap();
        count.next().unwrap().unwrap();
        let other = connect(&server);
        let stopping = thread::spawn(move || server.shutdown(Duration::from_secs(600)));
        wait_until("the server goes away", || other.ping().is_err());
        for _ in 1..250_000 {
            numbers.feed(&1).unwrap();
        }
        assert_eq!(numbers.finish().unwrap(), 250_000);
        assert_eq!(count.map(Result::unwrap).count(), 499_999);
        stopping.join().unwrap();
    });
}

#[test]
fn streams_outlive_the_age_of_their_connection() {
    let path = fresh_path().display().to_string();
    for listen in ["tcp://127.0.0.1:0".to_owned(), format!("shm://{path}")] {
        let limits = ServerLimits {
            connection_age: Some(Duration::from_millis(100)),
            ..ServerLimits::default()
        };
        let (server, _) = serve(&listen, limits);
        let client = connect(&server);
        let (mut out, echoed) = client
            .open_both(&Call::<ECHO>(0), put_opaque, get_opaque, PLAIN)
            .unwrap();
        let received = thread::spawn(move || echoed.map(Result::unwrap).count());
        for _ in 0..30 {
            out.send(&vec![7; 100_000]).unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        out.finish().unwrap();
        assert_eq!(received.join().unwrap(), 30);
        wait_until("the connection ends", || {
            server.counters().aged_connections == 1
        });
        client.ping().unwrap();
    }
}

#[test]
fn streams_end_when_their_connection_has_had_its_grace() {
    let path = || fresh_path().display().to_string();
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        let limits = ServerLimits {
            connection_age: Some(Duration::from_millis(100)),
            connection_grace: Some(Duration::from_millis(300)),
            ..ServerLimits::default()
        };
        let (server, counted) = serve(&listen, limits);
        let client = connect(&server);
        let endless = client.open_result(&Call::<ENDLESS>(0), get_opaque, PLAIN);
        expect_stopping(&endless.unwrap().find_map(Result::err).unwrap());
        wait_until("the handler ends", || {
            counted.ended.load(Ordering::SeqCst) == 1
        });
        wait_until("the connection ends", || {
            server.counters().aged_connections == 1
        });
        client.ping().unwrap();
    }
}

fn each_stopping(test: impl Fn(&Client, (Server, Arc<Counted>))) {
    let path = || fresh_path().display().to_string();
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        eprintln!("{listen}");
        let (server, counted) = serve(&listen, ServerLimits::default());
        test(&connect(&server), (server, counted));
    }
}

/// Says to another process where the server is.
const ADDRESS: &str = "TENON_STREAMS_ADDRESS";

/// Makes a call with a stream, if the process is told to, and ends.
#[test]
fn count_and_end() {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let client = Client::connect(&address, PROGRAM, 1).unwrap();
    let items = client.open_result(&Call::<COUNT>(3), get_number, PLAIN);
    assert_eq!(items.unwrap().count(), 3);
    drop(client);
    std::process::exit(0);
}

#[test]
fn a_connection_in_packets_ends_with_the_process_of_its_client() {
    let (server, _) = serve("udp://127.0.0.1:0", ServerLimits::default());
    let address = format!("lean+{}", server.addresses()[0]);
    for _ in 0..5 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "streams::count_and_end"])
            .env(ADDRESS, &address)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        // A client that said nothing would be missed after more than twice that time.
        wait_until("the server knows", || {
            server.counters().connections_open == 0
        });
    }
    assert_eq!(server.counters().connections_accepted, 5);
    server.shutdown(Duration::from_secs(5));
}
