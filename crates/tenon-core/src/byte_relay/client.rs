//! The relay of a channel: one thread for each connection.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tenon_net::fd::AsFd;
use tenon_net::{Carrier, PacketTrain, Ready, Stream, Until};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::exchange::byte_stream::ByteStream;
use tenon_proto::exchange::byte_stream::client::ByteStreamHandshake;
use tenon_proto::exchange::{RetransmitTimeouts, is_one_of_many};
use tenon_wire::Buffer;

use super::PIECE;
use super::local_end::LocalEnd;
use crate::client_socket::exchange_datagram_max;
use crate::serve::random;
use crate::trains::PacketTrains;

/// Receives of a thread before it sends again.
const RECEIVES_PER_TURN: usize = 16;

/// Begins a stream of bytes with the server at `peer`, to which `carrier` leads, and starts the thread that relays it;
/// returns the connection.
///
/// # Errors
/// The server refuses, or does not answer by `deadline`; the process has too many descriptors or threads.
pub(crate) fn connect(
    carrier: Carrier,
    peer: SocketAddr,
    config: &ConnectionConfig,
    deadline: Instant,
) -> io::Result<Stream> {
    let stream = shake_hands(&carrier, config, deadline)?;
    let (local, connection) = LocalEnd::pair(carrier.transport(), peer)?;
    let relay = ClientRelay {
        carrier,
        stream,
        local,
        room: vec![0; Carrier::RECEIVE_MAX],
        trains: PacketTrains::default(),
    };
    let thread = thread::Builder::new().name("tenon-relay".to_owned());
    let thread = thread.spawn(move || relay.run())?;
    Ok(connection.relayed_by(thread))
}

fn shake_hands(
    carrier: &Carrier,
    config: &ConnectionConfig,
    deadline: Instant,
) -> io::Result<Box<ByteStream>> {
    let mut handshake = ByteStreamHandshake::new(
        config,
        exchange_datagram_max(carrier.is_here()),
        RetransmitTimeouts::default(),
        random::word(),
        Instant::now(),
    );
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    let mut hello = Buffer::default();
    loop {
        let now = Instant::now();
        if now >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        hello.clear();
        if handshake.poll_transmit(now, &mut hello) {
            carrier.try_send(PacketTrain::one(hello.as_slice()))?;
        }
        let until = Until::from(handshake.poll_timeout().min(deadline));
        let came = match carrier.recv_until(&mut room, until) {
            Ok(came) => came,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
            Err(error) => return Err(error),
        };
        for datagram in came.packets(&room) {
            match handshake.handle_datagram(Instant::now(), datagram) {
                None => {}
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, error));
                }
            }
        }
    }
}

/// A connection that a thread relays.
struct ClientRelay {
    carrier: Carrier,
    stream: Box<ByteStream>,
    local: LocalEnd,
    room: Vec<u8>,
    trains: PacketTrains<()>,
}

impl ClientRelay {
    fn run(mut self) {
        let mut piece = Box::new([0; PIECE]);
        loop {
            self.local.pump(&mut self.stream, &mut piece);
            self.stream.handle_timeout(Instant::now());
            if self.local.is_done(&self.stream) {
                break;
            }
            let sent = self.transmit();
            // No call waits for anything any more. What is on its way is not sent again, so that the thread that closes
            // the connection, perhaps at the end of the process, need not wait until it has arrived.
            if self.local.is_gone() {
                break;
            }
            if let Err(error) = sent.and_then(|()| self.wait()) {
                tracing::debug!(%error, "a connection in packets fails");
                break;
            }
        }
        // A server that does not hear of it forgets the stream when it is silent for long.
        let mut end = Buffer::default();
        self.stream.put_end(&mut end);
        let _ = self.carrier.try_send(PacketTrain::one(end.as_slice()));
    }

    /// Sends what there is to send, as far as there is room.
    fn transmit(&mut self) -> io::Result<()> {
        let Self {
            stream,
            trains,
            carrier,
            ..
        } = self;
        while let Some((train, ())) =
            trains.next(|out| stream.poll_transmit(Instant::now(), out).then_some(()))
        {
            let length = train.bytes.len();
            match carrier.try_send(train) {
                Ok(sent) if sent >= length => {}
                Ok(sent) => trains.keep((), sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    trains.keep((), 0);
                    return Ok(());
                }
                // That an earlier packet met a closed port says that the server is gone, perhaps to come again.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until something happens, and takes in what has come.
    fn wait(&mut self) -> io::Result<()> {
        if self.trains.has_next() {
            let soon = Instant::now() + Duration::from_secs(1);
            self.carrier.wait(Ready::WRITABLE, soon)?;
            return self.receive();
        }
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.local.wants_bytes(&self.stream));
        flags.set(PollFlags::OUT, self.local.wants_room());
        let mut polled = [
            PollFd::from_borrowed_fd(self.carrier.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.local.as_fd(), flags),
        ];
        let now = Instant::now();
        let left = (self.stream.poll_timeout()).map(|at| at.saturating_duration_since(now));
        // A duration that is no time for the system is longer than any wait here.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [carrier, local] = polled;
        let (has_come, is_hung_up) = (
            !carrier.revents().is_empty(),
            local.revents().contains(PollFlags::HUP),
        );
        if is_hung_up {
            self.local.hang_up();
        }
        match has_come {
            true => self.receive(),
            false => Ok(()),
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let came = match self.carrier.try_recv_ready(&mut self.room) {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let now = Instant::now();
            for datagram in came.packets(&self.room) {
                // What is dropped comes again, if it was of this stream.
                let _ = self.stream.handle_datagram(now, datagram);
                if is_one_of_many(datagram) {
                    self.carrier.expect_train(datagram.len());
                }
            }
        }
        Ok(())
    }
}
