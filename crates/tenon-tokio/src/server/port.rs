//! The task of a port for datagrams: it receives, carries calls out and sends. One socket serves all clients.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tenon_core::serve::{
    DATAGRAM_SEND_PATIENCE, FoundCall, PORT_RECEIVES_PER_TURN, PacketFollower, ServedPort,
};
use tenon_core::service::{CancelFlag, Origin};
use tenon_net::Carrier;
use tenon_proto::endpoint::DatagramCallKey;
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::exchange::server::CloseRecipients;
use tenon_wire::Buffer;
use tokio::time::{Sleep, sleep_until};

use super::call::CallMessage;
use super::dispatch::{HandlerClock, InlineOutcome, OffloadedCall};
use super::mailbox::{ReplyMailbox, ReplyTarget};
use super::port_host::PortHost;
use super::running::CallHandler;
use super::state::ServerState;
use crate::watch::{AsyncSocket, is_for_now, yield_to_others};

/// The task of a port.
pub(super) struct PortTask {
    state: Arc<ServerState>,
    mailbox: Arc<ReplyMailbox>,
    socket: Arc<AsyncSocket<Carrier>>,
    served: ServedPort,
    /// Set while clients ask when the kernel had packets.
    follower: Option<Box<PacketFollower>>,
    reply: Buffer,
    answers: Vec<(ReplyTarget, Buffer)>,
    /// Calls that are carried out elsewhere, to be told when they are cancelled.
    running: Vec<(DatagramCallKey<SocketAddr>, CancelFlag)>,
    /// A call of a service that keeps order is carried out elsewhere: others of such services wait behind it.
    ordered: Option<DatagramCallKey<SocketAddr>>,
    waiting: VecDeque<OrderedCall>,
    /// Since when replies wait for room.
    blocked_since: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
    is_set_for: Option<Instant>,
    is_closing: bool,
    /// The last that is dropped: a server that has stopped has no socket any more.
    _place: PortPlace,
}

/// The place of a port among those of its server, as long as it has its socket.
struct PortPlace {
    state: Arc<ServerState>,
    id: usize,
}

impl Drop for PortPlace {
    fn drop(&mut self) {
        self.state.remove_port(self.id);
    }
}

/// A call of a service that keeps order, which waits for the one before it.
type OrderedCall = (OffloadedCall, CallMessage);

impl PortTask {
    /// A port that is still to be [served](Self::run).
    ///
    /// # Errors
    /// The system cannot wait for one more.
    pub(super) fn new(
        state: &Arc<ServerState>,
        mailbox: Arc<ReplyMailbox>,
        carrier: Carrier,
        duplicates: DuplicateLimits,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let place = PortPlace {
            state: Arc::clone(state),
            id: mailbox.id,
        };
        Ok(Self {
            served: ServedPort::new(&state.shared, &carrier, duplicates, now),
            socket: Arc::new(AsyncSocket::new(carrier)?),
            follower: None,
            state: Arc::clone(state),
            mailbox,
            reply: Buffer::default(),
            answers: Vec::new(),
            running: Vec::new(),
            ordered: None,
            waiting: VecDeque::new(),
            blocked_since: None,
            alarm: Box::pin(sleep_until(now.into())),
            is_set_for: None,
            is_closing: false,
            _place: place,
        })
    }

    /// Serves the port until the server stops.
    pub(super) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        self.served.close(CloseRecipients::ToAll);
        self.send_now();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.mailbox.is_abandoned() {
            return Poll::Ready(());
        }
        if self.state.is_stopping() && !std::mem::replace(&mut self.is_closing, true) {
            self.served.close(CloseRecipients::ToIdle);
        }
        self.take_answers(cx);
        self.served.handle_timeout(Instant::now());
        self.cancel();
        let mut is_idle = false;
        for _ in 0..PORT_RECEIVES_PER_TURN {
            self.carry_out();
            self.send(cx);
            if !self.receive(cx) {
                is_idle = true;
                break;
            }
        }
        (self.mailbox.tally).publish_endpoint(&self.served.counters());
        let is_done = self.running.is_empty() && self.waiting.is_empty();
        if self.is_closing && is_done && !self.served.has_unarrived() {
            return Poll::Ready(());
        }
        if !is_idle || self.set_alarm(cx) {
            yield_to_others(cx);
        }
        Poll::Pending
    }

    /// Takes the answers to calls that were carried out elsewhere.
    fn take_answers(&mut self, cx: &Context<'_>) {
        let mut answers = std::mem::take(&mut self.answers);
        self.mailbox.take_answers(cx.waker(), &mut answers);
        for (to, mut reply) in answers.drain(..) {
            let ReplyTarget::Datagram(key) = to else {
                continue;
            };
            self.running.retain(|(running, _)| *running != key);
            let registry = &self.state.shared.registry;
            self.served.answer(registry, key, &mut reply);
            if self.ordered == Some(key) {
                self.ordered = None;
                self.begin_next();
            }
        }
        self.answers = answers;
    }

    /// Tells the calls that are not waited for any more.
    fn cancel(&mut self) {
        while let Some(key) = self.served.poll_cancelled() {
            let running = self.running.iter().find(|(running, _)| *running == key);
            if let Some((_, cancelled)) = running {
                cancelled.set();
            }
        }
    }

    // ---- Calls ----

    /// Takes in the datagrams that were received, and carries their calls out.
    fn carry_out(&mut self) {
        let state = Arc::clone(&self.state);
        loop {
            let (carrier, socket) = (self.socket.get_ref(), &self.socket);
            let mailbox = &self.mailbox;
            let next = self.served.next_call(
                &state.shared,
                |size| carrier.expect_train(size),
                || PortHost::shared(&state, mailbox, socket),
            );
            match next {
                None => return,
                Some((None, _)) => {}
                Some((Some(found), _)) => self.begin(&state, found),
            }
        }
    }

    /// Carries a call out, here or elsewhere.
    fn begin(&mut self, state: &Arc<ServerState>, found: FoundCall) {
        let call = found.call;
        let origin = Origin {
            peer: Some(found.from),
            ..self.mailbox.origin
        };
        let keeps_order = state.shared.registry.keeps_order(call.service);
        let is_sync = matches!(state.handlers[call.service], CallHandler::Sync);
        let is_tried = !state.is_slow(&call) && !keeps_order;
        if call.procedure == 0 || is_tried && is_sync {
            let (message, arguments) = found.copy();
            let message = CallMessage::Datagram(message, arguments);
            if let InlineOutcome::Finished(mut finished) = state.try_call(
                call,
                (&self.mailbox, origin),
                message,
                &mut self.reply,
                &mut HandlerClock::default(),
            ) {
                self.answer(state, &found, &mut finished.reply);
                self.reply = finished.reply;
                self.reply.clear();
            }
            return self.served.give_back(found);
        }
        let Some(room) = state.room_now(found.message_bytes()) else {
            return self.served.drop_call(&found);
        };
        let (message, arguments) = found.copy();
        let message = CallMessage::Datagram(message, arguments);
        let cancelled = CancelFlag::default();
        let elsewhere = || {
            let to = (&self.mailbox, ReplyTarget::Datagram(found.key));
            OffloadedCall::new(state, to, (call, origin), cancelled.clone(), room)
        };
        if is_tried {
            match state.try_call(
                call,
                (&self.mailbox, origin),
                message,
                &mut self.reply,
                &mut HandlerClock::default(),
            ) {
                InlineOutcome::Finished(mut finished) => {
                    self.answer(state, &found, &mut finished.reply);
                    return self.served.give_back(found);
                }
                InlineOutcome::Waits(future) => elsewhere().carry_on(future),
            }
        } else if keeps_order {
            let call = elsewhere();
            self.waiting.push_back((call, message));
        } else {
            elsewhere().carry_out(message);
        }
        self.running.push((found.key, cancelled));
        self.served.give_back(found);
        self.begin_next();
    }

    /// Answers a call that was carried out here.
    fn answer(&mut self, state: &ServerState, found: &FoundCall, reply: &mut Buffer) {
        let carrier = self.socket.get_ref();
        PacketFollower::note_reply(&mut self.follower, carrier, found, reply);
        self.served.answer(&state.shared.registry, found.key, reply);
    }

    /// Carries out the next call of services that keep order, if none is carried out.
    fn begin_next(&mut self) {
        while self.ordered.is_none()
            && let Some((elsewhere, message)) = self.waiting.pop_front()
        {
            if elsewhere.is_given_up() {
                continue;
            }
            if let ReplyTarget::Datagram(key) = elsewhere.to() {
                self.ordered = Some(key);
            }
            elsewhere.carry_out(message);
        }
    }

    // ---- Sending and receiving ----

    /// Sends what there is to say, as far as there is room. What waits for room for too long is dropped.
    fn send(&mut self, cx: &mut Context<'_>) {
        let socket = Arc::clone(&self.socket);
        while self.served.has_transmit() {
            let Poll::Ready(Ok(mut ready)) = socket.poll_write_ready(cx) else {
                return;
            };
            if self.send_now() {
                self.blocked_since = None;
                return;
            }
            let since = *self.blocked_since.get_or_insert_with(Instant::now);
            if since.elapsed() > DATAGRAM_SEND_PATIENCE {
                self.drop_train();
            }
            ready.clear_ready();
        }
    }

    /// Sends what there is to say; returns whether there was room for all.
    fn send_now(&mut self) -> bool {
        (self.mailbox.tally).publish_endpoint(&self.served.counters());
        let carrier = self.socket.get_ref();
        while let Some((train, to)) = self.served.next_train() {
            let length = train.bytes.len();
            let began = PacketFollower::begin_send(&mut self.follower, carrier, to);
            let sent = carrier.try_send_to(train, to);
            if let Some(began) = began {
                PacketFollower::end_send(&mut self.follower, carrier, began);
            }
            match sent {
                Ok(sent) if sent >= length => {}
                Ok(sent) => self.served.keep_train(to, sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.served.keep_train(to, 0);
                    return false;
                }
                Err(error) => {
                    self.state.shared.tally.datagrams_dropped.up();
                    tracing::debug!(peer = %to, %error, "a reply could not be sent");
                }
            }
        }
        PacketFollower::end_replies(&mut self.follower);
        true
    }

    /// Drops what has waited for room for too long.
    #[cold]
    fn drop_train(&mut self) {
        self.blocked_since = None;
        if let Some((_, to)) = self.served.next_train() {
            self.state.shared.tally.datagrams_dropped.up();
            tracing::debug!(peer = %to, "a reply found no room");
        }
    }

    /// Receives what is there; returns whether there was anything. If not, the task is woken when there is. While the
    /// port closes its clients still say what has arrived, and ask whether the server is there.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        while let Poll::Ready(Ok(mut ready)) = self.socket.poll_read_ready(cx) {
            match self.socket.get_ref().try_recv_from(self.served.room()) {
                Ok((came, from)) => {
                    self.served.handle_received(came, from);
                    return true;
                }
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                // An earlier reply met a closed port, or the like: the error is consumed.
                Err(error) => tracing::debug!(%error, "receiving a datagram failed"),
            }
        }
        false
    }

    /// Has the task woken when something is due; returns whether something is.
    fn set_alarm(&mut self, cx: &mut Context<'_>) -> bool {
        let next = self.served.next_timeout();
        if next != self.is_set_for {
            self.is_set_for = next;
            if let Some(at) = next {
                self.alarm.as_mut().reset(at.into());
            }
        }
        if next.is_none() || self.alarm.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.is_set_for = None;
        true
    }
}
