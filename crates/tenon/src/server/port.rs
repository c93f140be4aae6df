//! A UDP port: one socket for all peers, with the duplicate request cache in front of the services for
//! calls of ONC RPC. Packets of the packet exchange are told by their first bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenon_net::{Came, Carrier, Ready, Train};
use tenon_proto::exchange::{Whole, is_packet};
use tenon_proto::onc::duplicates::{CallKey, DuplicateLimits};
use tenon_proto::onc::record;
use tenon_proto::onc::server::Call;
use tenon_wire::Buffer;

use super::LINGER;
use super::core::Core;
use super::datagrams::{Duplicates, SEND_PATIENCE, Wanted, note};
use super::exchange::Exchange;
use super::lean;
use super::limits::ServerLimits;
use super::lock;
use super::services::Execution;
use super::services::Origin;
use super::workers::ReplyTo;
use crate::waiting::{LOOKS, Looking, Waiter};

/// The receiving side of a UDP port. Whoever has it attends it; nobody else touches it.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) id: usize,
    pub(super) socket: Arc<Socket>,
    request: Vec<u8>,
    /// Where requests of the packet exchange are put together.
    whole: Whole,
    reply: Buffer,
    waiter: Waiter,
}

/// The sending side, shared with the workers.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) carrier: Carrier,
    duplicates: Mutex<Duplicates>,
    pub(super) exchange: Mutex<Exchange>,
    /// Whether the attendant executes a call of the exchange. Changed and looked at with that locked.
    pub(super) is_executing: AtomicBool,
}

impl Port {
    pub(super) fn new(
        id: usize,
        carrier: Carrier,
        duplicates: DuplicateLimits,
        limits: &ServerLimits,
        waiter: Waiter,
    ) -> Self {
        Self {
            id,
            socket: Arc::new(Socket {
                duplicates: Mutex::new(Duplicates::new(carrier.transport(), duplicates)),
                exchange: Mutex::new(Exchange::new(limits)),
                is_executing: AtomicBool::new(false),
                carrier,
            }),
            request: vec![0; Carrier::RECEIVE_MAX],
            whole: Whole::new(&lean::preamble(limits)),
            reply: Buffer::default(),
            waiter,
        }
    }

    /// Serves the port until it has been silent for a while or others need the thread more.
    pub(super) fn attend(&mut self, core: &Core) {
        while !core.is_stopping() {
            match self.receive(core) {
                Ok((came, peer)) => self.answer_all(core, came, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An earlier reply met a closed port, or the like: the error is consumed.
                Err(error) => tracing::debug!(%error, "receiving a datagram failed"),
            }
            if core.pool.is_crowded() {
                break;
            }
        }
        // Whoever watches looks at the time of exchanges from now on.
        if self.socket.next_timeout().is_some() {
            core.parking.wake();
        }
    }

    /// Receives, and does what is due of the exchange while it waits.
    fn receive(&mut self, core: &Core) -> io::Result<(Came, SocketAddr)> {
        loop {
            let limit = self.limit(core);
            match self.receive_within(core, limit) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock
                        && limit < LINGER
                        && core.may_linger() => {}
                done => return done,
            }
        }
    }

    /// For how long to wait: not beyond the time at which an answer of the exchange is sent again.
    fn limit(&self, core: &Core) -> Duration {
        let next = || lock(&self.socket.exchange).next_repeat();
        // Most answers are never sent again by themselves, and nobody looks at the clock.
        let Some(at) = next() else {
            return LINGER;
        };
        let now = Instant::now();
        if at > now {
            return limit_until(at, now);
        }
        self.socket.look_at_time(core, now);
        next().map_or(LINGER, |at| limit_until(at, now))
    }

    fn receive_within(&mut self, core: &Core, limit: Duration) -> io::Result<(Came, SocketAddr)> {
        let (carrier, request) = (&self.socket.carrier, &mut self.request);
        let mut looks = 0;
        let receive = |limit| match limit {
            None => {
                carrier.look(looks);
                looks = LOOKS;
                carrier.try_recv_from(request)
            }
            Some(limit) => carrier.recv_from_within(request, limit),
        };
        let looking = Looking::at(carrier.transport());
        core.linger(&mut self.waiter, looking, false, limit, receive)
    }

    /// Answers packets that have come together.
    fn answer_all(&mut self, core: &Core, came: Came, peer: SocketAddr) {
        let (socket, whole, out) = (&self.socket, &mut self.whole, &mut self.reply);
        let mut packets = came.packets(&self.request).peekable();
        let mut is_alone = true;
        while let Some(packet) = packets.next() {
            is_alone &= packets.peek().is_none();
            out.clear();
            match is_packet(packet) {
                true => socket.take_packet(core, packet, is_alone, peer, (whole, out)),
                false => socket.answer(core, packet, peer, out),
            }
        }
        if !is_alone {
            socket.send_exchange(core);
        }
    }
}

/// For how long to wait until `at`, but not longer than any peer is waited for. Whole milliseconds: a socket whose
/// limit is another than before has to be told.
fn limit_until(at: Instant, now: Instant) -> Duration {
    let left = at.saturating_duration_since(now).min(LINGER);
    let millis = left.as_micros().div_ceil(1000).max(1);
    Duration::from_millis(millis as u64)
}

impl Socket {
    /// Answers a message of ONC RPC, or has it answered. `out` is empty.
    fn answer(self: &Arc<Self>, core: &Core, message: &[u8], peer: SocketAddr, out: &mut Buffer) {
        let asked = lock(&self.duplicates).judge(core, message, peer, out);
        match asked {
            Wanted::Nothing => {}
            Wanted::Answered => self.send(core, record::message(out), peer),
            Wanted::Call(key, call) => match core.services.execution(&call) {
                Execution::Inline => self.execute(core, &call, &key, peer, out),
                Execution::Workers => self.hand_to_workers(core, message, key, peer),
            },
        }
    }

    fn hand_to_workers(
        self: &Arc<Self>,
        core: &Core,
        message: &[u8],
        key: CallKey<SocketAddr>,
        peer: SocketAddr,
    ) {
        let reply_to = ReplyTo::Datagram(Arc::clone(self), key, peer);
        let job = core.workers.job(message, reply_to);
        if core.workers.submit(job).is_some() {
            lock(&self.duplicates).drop_call(core, &key);
        }
    }

    /// Executes a call that was let through, remembers its reply and sends it. `out` is empty.
    pub(super) fn execute(
        &self,
        core: &Core,
        call: &Call<'_>,
        key: &CallKey<SocketAddr>,
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        let origin = Origin {
            transport: self.carrier.transport(),
            peer: Some(peer),
        };
        let _ = core.services.execute(call, origin, out, &core.tally);
        lock(&self.duplicates).finish(core, key, call.xid, peer, out);
        self.send(core, record::message(out), peer);
    }

    fn send(&self, core: &Core, message: &[u8], peer: SocketAddr) {
        note(core, self.send_patiently(message, peer), peer);
    }

    fn send_patiently(&self, message: &[u8], peer: SocketAddr) -> io::Result<()> {
        match self.try_send(message, peer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let deadline = Instant::now() + SEND_PATIENCE;
                self.carrier.wait(Ready::WRITABLE, deadline)?;
                self.try_send(message, peer)
            }
            sent => sent,
        }
    }

    fn try_send(&self, message: &[u8], peer: SocketAddr) -> io::Result<()> {
        let sent = self.carrier.try_send_to(Train::one(message), peer);
        sent.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_sleeps_beyond_the_time_of_an_answer_or_for_ever() {
        let now = Instant::now();
        let limit = |micros| limit_until(now + Duration::from_micros(micros), now);
        assert_eq!(limit(10_001), Duration::from_millis(11));
        assert_eq!(limit(3_000_000), LINGER);
        // A socket takes a limit of nothing for none.
        assert_eq!(limit(0), Duration::from_millis(1));
        assert_eq!(limit_until(now, now + LINGER), Duration::from_millis(1));
    }
}
