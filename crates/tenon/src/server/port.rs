//! A UDP port: one socket for all peers, with the duplicate request cache in front of the services for
//! calls of ONC RPC. Packets of the packet exchange are told by their first bytes.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenon_net::{Came, Carrier, Datagram, Ready, Train, Transport};
use tenon_proto::exchange::is_packet;
use tenon_proto::onc::duplicates::{CallKey, DuplicateCache, DuplicateLimits, Verdict};
use tenon_proto::onc::message::Refused;
use tenon_proto::onc::record;
use tenon_proto::onc::server::{Call, Received, Reply};
use tenon_wire::Buffer;

use super::core::Core;
use super::exchange::Exchange;
use super::limits::ServerLimits;
use super::lock;
use super::services::Execution;
use super::services::Origin;
use super::workers::ReplyTo;
use crate::waiting::{LOOKS, Looking, Waiter};

/// How long a reply waits for room in the socket before it is dropped; the peer repeats its call.
const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// The receiving side of a UDP port. Whoever has it attends it; nobody else touches it.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) id: usize,
    pub(super) socket: Arc<Socket>,
    request: Vec<u8>,
    reply: Buffer,
    waiter: Waiter,
}

/// The sending side, shared with the workers.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) carrier: Carrier,
    duplicates: Mutex<DuplicateCache<SocketAddr>>,
    pub(super) exchange: Exchange,
}

impl Port {
    pub(super) fn new(
        id: usize,
        carrier: Carrier,
        duplicates: DuplicateLimits,
        limits: &ServerLimits,
        waiter: Waiter,
    ) -> Self {
        let duplicates = Mutex::new(DuplicateCache::new(duplicates));
        Self {
            id,
            socket: Arc::new(Socket {
                carrier,
                duplicates,
                exchange: Exchange::new(limits),
            }),
            request: vec![0; Carrier::RECEIVE_MAX],
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
        if self.socket.exchange.next_timeout().is_some() {
            core.parking.wake();
        }
    }

    fn receive(&mut self, core: &Core) -> io::Result<(Came, SocketAddr)> {
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
        core.linger(&mut self.waiter, looking, false, receive)
    }

    /// Answers packets that have come together.
    fn answer_all(&mut self, core: &Core, came: Came, peer: SocketAddr) {
        let length = came.length.min(self.request.len());
        if came.size >= length {
            return self.answer(core, 0..length, true, peer);
        }
        let mut start = 0;
        while start < length {
            let end = length.min(start + came.size);
            self.answer(core, start..end, false, peer);
            start = end;
        }
        self.socket.send_exchange(core);
    }

    fn answer(&mut self, core: &Core, place: Range<usize>, is_alone: bool, peer: SocketAddr) {
        let message = &self.request[place];
        let (socket, out) = (&self.socket, &mut self.reply);
        out.clear();
        if is_packet(message) {
            return socket.take_packet(core, message, is_alone, peer, out);
        }
        if !carries_onc(socket.carrier.transport()) {
            tracing::debug!(%peer, "dropping a datagram that is no packet");
            return core.tally.datagrams_dropped.up();
        }
        match core.services.receive(message, &core.tally) {
            Received::Ping(xid) => {
                let _ = Reply::begin(out, xid);
            }
            Received::Refuse(xid, refused) => {
                let _ = Reply::begin(out, xid).refuse(out, refused);
            }
            Received::Unanswerable(violation) => {
                tracing::debug!(%peer, %violation, "dropping a datagram");
                return;
            }
            Received::Call(call) => return socket.judge(core, message, &call, peer, out),
        }
        socket.send(core, record::message(out), peer);
    }
}

impl Socket {
    /// Lets a call through that is new; answers or drops one that is not.
    fn judge(
        self: &Arc<Self>,
        core: &Core,
        message: &[u8],
        call: &Call<'_>,
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        let key = CallKey::new(peer, call);
        let mut duplicates = lock(&self.duplicates);
        match duplicates.check(key, Instant::now()) {
            Verdict::New => {}
            Verdict::Done(reply) => {
                core.tally.duplicates_answered.up();
                // Nobody may wait here: the cache is locked, and all need it.
                return note(core, self.try_send(reply, peer), peer);
            }
            Verdict::InProgress | Verdict::Full => return core.tally.datagrams_dropped.up(),
        }
        drop(duplicates);
        match core.services.execution(call) {
            Execution::Inline => self.execute(core, call, &key, peer, out),
            Execution::Workers => self.hand_to_workers(core, message, key, peer),
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
            core.tally.datagrams_dropped.up();
            lock(&self.duplicates).forget(&key);
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
        let reply = core.services.execute(call, origin, out, &core.tally);
        if record::message(out).len() > Datagram::SIZE_MAX {
            core.tally.replies_too_large.up();
            tracing::warn!(%peer, bytes = record::message(out).len(), "a reply does not fit into a datagram");
            let _ = reply.refuse(out, Refused::SystemError);
        }
        let message = record::message(out);
        lock(&self.duplicates).finish(key, message, Instant::now());
        self.send(core, message, peer);
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

/// Whether datagrams of ONC RPC are taken that come through a transport. They have no check of their own.
fn carries_onc(transport: Transport) -> bool {
    match transport {
        Transport::Tcp | Transport::Unix | Transport::Udp | Transport::Shm => true,
        Transport::Xdp => false,
    }
}

/// Counts a reply that could not be sent. The peer repeats its call.
pub(super) fn note(core: &Core, sent: io::Result<()>, peer: SocketAddr) {
    if let Err(error) = sent {
        core.tally.datagrams_dropped.up();
        tracing::debug!(%peer, %error, "a reply could not be sent");
    }
}
