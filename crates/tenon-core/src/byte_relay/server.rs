//! The relay of a port: one thread for all connections in packets, started with the first of them.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tenon_net::{PollRegistry, PollWaker, Poller, Transport, Watch};
use tenon_proto::exchange::byte_stream::server::{ByteStreamEvent, ServerByteStreams};
use tenon_proto::exchange::server::{ServerLimits, ServerSecrets};

use super::local_end::LocalEnd;
use super::{PIECE, RelayHost};
use crate::serve::DATAGRAM_SEND_PATIENCE;
use crate::trains::PacketTrains;

/// Bytes of datagrams that wait for the thread; what is more is dropped, and comes again.
const WAITING_MAX: usize = 8 << 20;

/// Pause before a packet is sent again that found no room.
const NO_ROOM_PAUSE: Duration = Duration::from_micros(50);

/// The relay of a port.
#[derive(Debug)]
pub(crate) struct ServerRelay {
    shared: Arc<RelayShared>,
    thread: Option<JoinHandle<()>>,
}

/// The state that a port and its relay share.
#[derive(Debug)]
struct RelayShared {
    inbox: Mutex<Inbox>,
    waker: PollWaker,
    /// There are connections.
    has_connections: AtomicBool,
}

/// What was received for the relay.
#[derive(Debug, Default)]
struct Inbox {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    bytes: usize,
    /// Memory for further ones.
    spare: Vec<Vec<u8>>,
    is_closed: bool,
    is_stopped: bool,
}

impl RelayShared {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerRelay {
    /// Starts the relay of a port of this transport, of which the packet exchange has the same limits and secrets since
    /// `now`.
    ///
    /// # Errors
    /// The process has too many descriptors or threads.
    pub(crate) fn start(
        transport: Transport,
        host: Arc<dyn RelayHost>,
        limits: ServerLimits,
        secrets: ServerSecrets,
        now: Instant,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let registry = poller.registry()?;
        let shared = Arc::new(RelayShared {
            inbox: Mutex::default(),
            waker: poller.waker()?,
            has_connections: AtomicBool::new(false),
        });
        let thread = RelayThread {
            shared: Arc::clone(&shared),
            transport,
            host,
            streams: ServerByteStreams::new(limits, secrets, now),
            ends: HashMap::new(),
            tokens: HashMap::new(),
            next_token: 0,
            registry,
            trains: PacketTrains::default(),
            touched: Vec::new(),
            piece: Box::new([0; PIECE]),
        };
        let builder = thread::Builder::new().name("tenon-relay".to_owned());
        let thread = builder.spawn(move || thread.run(poller))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Takes in a packet of a stream of bytes.
    pub(crate) fn handle_datagram(&self, from: SocketAddr, datagram: &[u8]) {
        let mut inbox = self.shared.lock();
        if inbox.bytes + datagram.len() > WAITING_MAX {
            return;
        }
        let mut copy = inbox.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(datagram);
        inbox.bytes += copy.len();
        let is_first = inbox.datagrams.is_empty();
        inbox.datagrams.push_back((from, copy));
        drop(inbox);
        if is_first {
            self.shared.waker.wake();
        }
    }

    /// No further connections are taken in.
    pub(crate) fn close(&self) {
        self.shared.lock().is_closed = true;
        self.shared.waker.wake();
    }

    /// Ends the thread, once it has sent what it has, and waits for it: it has the socket of the port no longer then.
    pub(crate) fn stop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of connections in packets has panicked");
        }
    }

    /// Returns whether there are connections. One that its server has closed is there until all has arrived.
    pub(crate) fn has_connections(&self) -> bool {
        self.shared.has_connections.load(Ordering::Relaxed)
    }
}

impl Drop for ServerRelay {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread that relays all connections of a port.
struct RelayThread {
    shared: Arc<RelayShared>,
    transport: Transport,
    host: Arc<dyn RelayHost>,
    streams: ServerByteStreams<SocketAddr>,
    /// The near end of each stream, and its number at the poller.
    ends: HashMap<u64, (usize, LocalEnd)>,
    tokens: HashMap<usize, u64>,
    next_token: usize,
    registry: PollRegistry,
    trains: PacketTrains<SocketAddr>,
    /// Streams to which something has happened.
    touched: Vec<u64>,
    piece: Box<[u8; PIECE]>,
}

impl RelayThread {
    fn run(mut self, mut poller: Poller) {
        loop {
            let is_stopped = self.take_datagrams();
            let now = Instant::now();
            while let Some(id) = self.streams.handle_timeout(now) {
                self.touched.push(id);
            }
            self.pump_touched();
            self.transmit();
            self.note_connections();
            if is_stopped {
                return self.end_all();
            }
            let limit = self.streams.poll_timeout();
            let limit = limit.map(|at| at.saturating_duration_since(Instant::now()));
            if let Err(error) = poller.wait(limit) {
                tracing::error!(%error, "connections in packets are no longer served");
                return self.end_all();
            }
            self.take_events(&poller);
        }
    }

    /// Takes in what was received; returns whether the thread is to end.
    fn take_datagrams(&mut self) -> bool {
        let mut inbox = self.shared.lock();
        let (is_closed, is_stopped) = (inbox.is_closed, inbox.is_stopped);
        let mut datagrams = std::mem::take(&mut inbox.datagrams);
        inbox.bytes = 0;
        drop(inbox);
        if is_closed {
            self.streams.close();
        }
        let now = Instant::now();
        for (from, datagram) in &datagrams {
            match self.streams.handle_datagram(now, *from, datagram) {
                Ok(ByteStreamEvent::Opened(id, peer)) => self.open(id, peer),
                Ok(ByteStreamEvent::Changed(id)) => self.touched.push(id),
                // The sender is not told, as any host can send anything.
                Err(_) => {}
            }
        }
        let mut inbox = self.shared.lock();
        while let Some((_, memory)) = datagrams.pop_front()
            && inbox.spare.len() < 64
        {
            inbox.spare.push(memory);
        }
        is_stopped
    }

    /// Has the server take in the connection of a stream that has begun.
    fn open(&mut self, id: u64, peer: SocketAddr) {
        let (mut end, connection) = match LocalEnd::pair(self.transport, peer) {
            Ok(pair) => pair,
            Err(error) => {
                tracing::warn!(%peer, %error, "a connection in packets cannot be taken in");
                self.streams.remove(id, Instant::now());
                return;
            }
        };
        let token = self.next_token;
        self.next_token += 1;
        if let Err(error) = self.registry.add(&end, token, Watch::ReceiveAndSend) {
            tracing::warn!(%peer, %error, "a connection in packets cannot be waited for");
            self.streams.remove(id, Instant::now());
            return;
        }
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        // A server that refuses a connection looks at its first bytes.
        end.pump(stream, &mut self.piece);
        let is_taken_in = self.host.admit(connection);
        end.pump(stream, &mut self.piece);
        self.streams.touch(id);
        // Of one that is refused no descriptor is kept for what its peer says to that.
        if is_taken_in {
            self.ends.insert(id, (token, end));
            self.tokens.insert(token, id);
            self.touched.push(id);
        }
    }

    fn take_events(&mut self, poller: &Poller) {
        for event in poller.events() {
            let Some(id) = self.tokens.get(&event.token) else {
                continue;
            };
            if let Some((_, end)) = self.ends.get_mut(id)
                && event.is_hung_up
            {
                end.hang_up();
            }
            self.touched.push(*id);
        }
    }

    /// Moves what there is to move, at the ends to which something has happened.
    fn pump_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for id in touched.drain(..) {
            self.pump(id);
        }
        self.touched = touched;
    }

    fn pump(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let Some((_, end)) = self.ends.get_mut(&id) else {
            // Its end is gone, and it waits to be forgotten.
            self.streams.remove(id, Instant::now());
            return;
        };
        end.pump(stream, &mut self.piece);
        let is_done = end.is_done(stream);
        self.streams.touch(id);
        if is_done {
            self.close(id);
        }
    }

    fn close(&mut self, id: u64) {
        if let Some((token, _)) = self.ends.remove(&id) {
            self.tokens.remove(&token);
        }
        self.streams.remove(id, Instant::now());
    }

    /// Sends what there is to send. What finds no room for long is dropped, and comes again.
    fn transmit(&mut self) {
        let Self {
            streams,
            trains,
            host,
            ..
        } = self;
        let mut deadline = None;
        while let Some((train, to)) = trains.next(|out| streams.poll_transmit(Instant::now(), out))
        {
            let length = train.bytes.len();
            match host.send(train, to) {
                Ok(sent) if sent >= length => deadline = None,
                Ok(sent) => trains.keep(to, sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now = Instant::now();
                    if now < *deadline.get_or_insert(now + DATAGRAM_SEND_PATIENCE) {
                        trains.keep(to, 0);
                        thread::sleep(NO_ROOM_PAUSE);
                    }
                }
                Err(error) => tracing::debug!(peer = %to, %error, "a packet could not be sent"),
            }
        }
    }

    fn note_connections(&self) {
        let has_connections = !self.ends.is_empty();
        let shown = &self.shared.has_connections;
        if shown.swap(has_connections, Ordering::Relaxed) && !has_connections {
            self.host.note_all_ended();
        }
    }

    /// Tells all peers that their streams are over.
    fn end_all(mut self) {
        for id in self.ends.drain().map(|(id, _)| id).collect::<Vec<_>>() {
            self.streams.remove(id, Instant::now());
        }
        self.transmit();
    }
}
