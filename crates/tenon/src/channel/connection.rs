//! One connection to the peer: its socket and what has been received.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tenon_net::{Address, Came, Ready, Train, Until};
use tenon_proto::lean::ByteOrder;

use super::inbox::Inbox;
use super::slots::SlotId;
use super::socket::Socket;
use crate::options::ChannelOptions;
use crate::waiting::{Company, LOOKS, Looking, Spinners, Spun, WaitTally, Waiter};

/// A connection to the peer. Whoever has its desk is its reader.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    looking: Looking,
    /// Whether it has been given up: a socket for datagrams does not say so to whoever does not
    /// sleep in it.
    is_shut: AtomicBool,
    waits: Arc<WaitTally>,
}

/// What the reader works with. It stands at the line as long as nobody reads.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) connection: Arc<Connection>,
    pub(super) inbox: Inbox,
    pub(super) waiter: Waiter,
    /// The results of the reader's own call, once they have come.
    pub(super) own: InPlace,
    /// That call, if the bookkeeping still has it in flight.
    pub(super) answered: Option<(u32, SlotId)>,
}

/// The results of a call where they were received.
#[derive(Debug)]
pub(super) struct InPlace {
    /// Where they are in what [`Inbox::message`] returns.
    pub(super) place: Range<usize>,
    /// The order of their bytes.
    pub(super) order: ByteOrder,
}

impl Connection {
    /// Connects to `address`, and sets a desk up for whoever reads.
    pub(super) fn open(
        address: &Address,
        options: &ChannelOptions,
        waits: &Arc<WaitTally>,
        deadline: Instant,
    ) -> io::Result<Box<Desk>> {
        let socket = Socket::connect(address, deadline)?;
        let connection = Self {
            looking: Looking::at(socket.transport()),
            socket,
            is_shut: AtomicBool::new(false),
            waits: Arc::clone(waits),
        };
        Ok(Box::new(Desk {
            connection: Arc::new(connection),
            inbox: Inbox::new(address, options),
            waiter: Waiter::new(options.waiting),
            own: InPlace {
                place: 0..0,
                order: ByteOrder::NATIVE,
            },
            answered: None,
        }))
    }

    /// Receives, waiting in the way of this channel. A part of what is received `has_begun` to come.
    #[inline(always)]
    pub(super) fn wait_for_bytes(
        &self,
        waiter: &mut Waiter,
        room: &mut [u8],
        has_begun: bool,
        until: Until,
    ) -> io::Result<Came> {
        if waiter.always_sleeps() && !has_begun {
            self.waits.blocks();
            return self.socket.recv_until(room, until);
        }
        self.look_for_bytes(waiter, room, has_begun, until)
    }

    /// The same in whatever way there is.
    fn look_for_bytes(
        &self,
        waiter: &mut Waiter,
        room: &mut [u8],
        has_begun: bool,
        until: Until,
    ) -> io::Result<Came> {
        let company = Company {
            spinners: Spinners::of_callers(),
            looking: self.looking,
            tally: &self.waits,
        };
        let may_go_on = || !self.is_shut.load(Ordering::Relaxed);
        let mut looks = 0;
        let mut look = || {
            self.socket.look(looks);
            looks = LOOKS;
            self.socket.try_recv(room)
        };
        if has_begun && let Some(came) = waiter.look_for_rest(&company, &mut look) {
            return came;
        }
        match waiter.look(&company, |_| until.deadline, may_go_on, look) {
            Spun::Came(received) => received,
            Spun::Late => Err(io::ErrorKind::TimedOut.into()),
            Spun::Sleep => waiter.sleep(&company, || self.socket.recv_until(room, until)),
        }
    }

    /// As [`Socket::try_send`].
    #[inline]
    pub(super) fn try_send(&self, call: &[u8], sent: usize) -> io::Result<usize> {
        self.socket.try_send(call, sent)
    }

    /// As [`Socket::try_send_train`].
    #[inline]
    pub(super) fn try_send_train(&self, train: Train<'_>) -> io::Result<usize> {
        self.socket.try_send_train(train)
    }

    /// As [`Carrier::expect_train`](tenon_net::Carrier::expect_train).
    #[inline]
    pub(super) fn expect_train(&self, size: usize) {
        self.socket.expect_train(size);
    }

    /// As [`Socket::is_here`].
    pub(super) fn is_here(&self) -> bool {
        self.socket.is_here()
    }

    /// As [`Socket::refresh`].
    pub(super) fn refresh(&self) {
        self.socket.refresh();
    }

    pub(super) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        self.socket.wait(wanted, deadline)
    }

    /// As [`Socket::shutdown`].
    pub(super) fn shutdown(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.socket.shutdown();
    }
}

impl Desk {
    /// Receives into the inbox once, waiting `until` a deadline: `TimedOut` then.
    #[inline]
    pub(super) fn receive(&mut self, until: Until) -> io::Result<()> {
        let Self {
            connection,
            inbox,
            waiter,
            ..
        } = self;
        let has_begun = inbox.has_begun();
        inbox.fill(|room| connection.wait_for_bytes(waiter, room, has_begun, until))
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::waiting::Waiting;

    #[test]
    fn whoever_waits_for_datagrams_notices_that_the_connection_is_given_up() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = format!("udp://{}", silent.local_addr().unwrap());
        for (_, waiting) in Waiting::ALL {
            let options = ChannelOptions::default().waiting(waiting);
            let deadline = Instant::now() + Duration::from_secs(20);
            let address = address.parse().unwrap();
            let desk = Connection::open(&address, &options, &Arc::default(), deadline);
            let mut desk = desk.unwrap();
            let connection = Arc::clone(&desk.connection);
            thread::scope(|scope| {
                let reader = scope.spawn(|| desk.receive(deadline.into()));
                thread::sleep(Duration::from_millis(20));
                connection.shutdown();
                reader.join().unwrap().unwrap();
            });
        }
    }
}
