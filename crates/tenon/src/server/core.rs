//! What all threads of a server share.

use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tenon_net::Stream;

use super::connection::Connection;
use super::lean;
use super::line::Lines;
use super::memory::Share;
use super::offer::Offer;
use super::parking::Parking;
use super::pool::{Guest, Pool};
use super::port::Socket;
use super::workers::Workers;
use crate::waiting::{Company, Looking, Spinners, Spun, Waiter, Waiting};

pub(super) struct Core {
    pub(super) offer: Offer,
    pub(super) lines: Arc<Lines>,
    pub(super) parking: Parking,
    pub(super) pool: Pool,
    pub(super) workers: Workers,
    pub(super) stopping: AtomicBool,
    /// How threads wait for the peers that they attend.
    pub(super) waiting: Waiting,
    pub(super) spinners: Spinners,
    /// The UDP ports, which are closed by whoever attends them last.
    pub(super) ports: Vec<Weak<Socket>>,
}

/// Whoever has the core has what it offers.
impl Deref for Core {
    type Target = Offer;

    #[inline]
    fn deref(&self) -> &Offer {
        &self.offer
    }
}

impl Core {
    /// Whether nothing further is to be begun.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether connections or calls wait for a thread and there is none.
    pub(super) fn is_crowded(&self) -> bool {
        self.pool.is_crowded() || self.workers.are_crowded()
    }

    /// Waits, in the way of this server and for as long as `limit`, until `receive` succeeds, which is
    /// told for how long it may sleep, or not to sleep at all. When it [may not](Self::may_linger), it waits for
    /// nothing. Of what is received a part `has_begun` to come.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came; what `receive` reports.
    #[inline]
    pub(super) fn linger<T>(
        &self,
        waiter: &mut Waiter,
        looking: Looking,
        has_begun: bool,
        limit: Duration,
        mut receive: impl FnMut(Option<Duration>) -> io::Result<T>,
    ) -> io::Result<T> {
        let may_wait = || self.may_linger();
        if !may_wait() {
            return receive(None);
        }
        if waiter.always_sleeps() && !has_begun {
            self.tally.waits.blocks();
            return receive(Some(limit));
        }
        let company = Company {
            spinners: &self.spinners,
            looking,
            tally: &self.tally.waits,
        };
        if has_begun && let Some(came) = waiter.look_for_rest(&company, || receive(None)) {
            return came;
        }
        let end = |begin| begin + limit;
        match waiter.look(&company, end, may_wait, || receive(None)) {
            Spun::Came(received) => received,
            Spun::Late => Err(io::ErrorKind::WouldBlock.into()),
            Spun::Sleep if may_wait() => waiter.sleep(&company, || receive(Some(limit))),
            Spun::Sleep => receive(None),
        }
    }

    /// Whether a thread may wait for those whom it attends: nobody else needs it, and the server does not stop.
    #[inline]
    pub(super) fn may_linger(&self) -> bool {
        !self.pool.is_crowded() && !self.is_stopping()
    }

    /// The UDP ports that are open.
    pub(super) fn open_ports(&self) -> impl Iterator<Item = Arc<Socket>> {
        self.ports.iter().filter_map(Weak::upgrade)
    }

    /// Takes a new connection in, unless there are too many.
    pub(super) fn admit(&self, stream: Stream) {
        let (id, peer) = (self.parking.new_id(), stream.peer());
        let calls_max = lean::preamble(&self.limits).calls_max as usize;
        match self
            .lines
            .open(id, stream, self.limits.connections, calls_max)
        {
            Ok(line) => {
                self.tally.connections_accepted.up();
                tracing::debug!(id, ?peer, "a connection");
                let share = Share::new(&self.memory);
                let waiter = Waiter::new(self.waiting);
                let connection = Connection::new(line, self.limits.record_bytes, share, waiter);
                self.park(Guest::Connection(Box::new(connection)));
            }
            Err(_closed_when_counted) => {
                self.tally.connections_refused.up();
                let limit = self.limits.connections;
                tracing::warn!(?peer, limit, "too many connections: closing the newest");
            }
        }
    }

    /// Lets a guest wait until it has something to say.
    pub(super) fn park(&self, guest: Guest) {
        let id = guest.id();
        if let Err(error) = self.parking.park(guest) {
            tracing::error!(id, %error, "the system cannot wait for one more: closed");
        }
    }
}
