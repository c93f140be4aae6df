//! The task of a UDP port: it receives, executes what answers at once, gives tasks to what waits, and sends. Which
//! packet of the exchange is sent when is the engine's to say, and which message of ONC RPC is carried out that of
//! the memory of those that were, as at a port that threads attend.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tenon::DuplicateLimits;
use tenon::lean::server::Call as LeanCall;
use tenon::runtime::{
    Duplicates, Exchange, LeanJob, Origin, Wanted, execute_inline, note_sent, preamble,
    refuse_for_number, stamp_replies,
};
use tenon::wire::Buffer;
use tenon_net::{Came, Carrier};
use tenon_proto::exchange::server::{CallKey as ExchangeKey, Farewell};
use tenon_proto::exchange::{Whole, is_packet};
use tenon_proto::onc::duplicates::CallKey;
use tenon_proto::onc::record;
use tenon_proto::onc::server::Call as OncCall;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::OwnedSemaphorePermit;

use super::alarm::Alarm;
use super::begin::Errand;
use super::line::{Letter, Line, To};
use super::outgoing::Outgoing;
use super::service::Asked;
use super::shared::{Handler, Shared};
use super::tasks::Tasks;
use crate::watch::{is_for_now, watch};

/// Receives at a time, before what there is to say is sent.
const RECEIVES_MAX: usize = 16;

pub(super) struct Port {
    shared: Arc<Shared>,
    line: Arc<Line>,
    carrier: AsyncFd<Carrier>,
    exchange: Exchange,
    duplicates: Duplicates,
    /// Where packets are received.
    room: Vec<u8>,
    /// Where requests of the packet exchange are put together.
    whole: Whole,
    reply: Buffer,
    outgoing: Outgoing,
    tasks: Tasks,
    /// Answers that were left. Its storage and that of the line are used by turns.
    letters: Vec<Letter>,
    alarm: Alarm,
    /// Whether nothing new is begun any more.
    is_leaving: bool,
}

impl Port {
    /// A port that is still to be served.
    ///
    /// # Errors
    /// The system cannot wait for one more.
    pub(super) fn new(
        shared: &Arc<Shared>,
        line: Arc<Line>,
        carrier: Carrier,
        duplicates: DuplicateLimits,
    ) -> io::Result<Self> {
        Ok(Self {
            exchange: Exchange::new(&shared.offer.limits),
            duplicates: Duplicates::new(carrier.transport(), duplicates),
            carrier: watch(carrier, Interest::READABLE)?,
            shared: Arc::clone(shared),
            line,
            room: vec![0; Carrier::RECEIVE_MAX],
            whole: Whole::new(&preamble(&shared.offer.limits)),
            reply: Buffer::default(),
            outgoing: Outgoing::default(),
            tasks: Tasks::default(),
            letters: Vec::new(),
            alarm: Alarm::new(),
            is_leaving: false,
        })
    }

    /// Serves the port until the server has stopped, and every call that was begun is answered.
    pub(super) async fn serve(mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.line.attend(cx.waker());
        if self.line.is_abandoned() {
            return Poll::Ready(());
        }
        if self.shared.is_stopping() && !self.is_leaving {
            self.is_leaving = true;
            self.exchange.say_goodbye(Farewell::ToIdle);
        }
        loop {
            let received = self.receive_some(cx);
            self.collect();
            self.give_up_cancelled();
            self.exchange
                .send(&self.shared.offer, self.carrier.get_ref());
            if self.is_over() {
                return Poll::Ready(());
            }
            let is_time = self.mind_time(cx);
            if received == 0 && !is_time {
                return Poll::Pending;
            }
        }
    }

    /// Whether everything that was begun is answered, and the answers have arrived as far as clients say so.
    fn is_over(&self) -> bool {
        self.is_leaving
            && self.line.is_quiet()
            && self.outgoing.is_empty()
            && !self.exchange.has_unarrived()
    }

    /// Takes in what is there, up to a limit; says of how many receives.
    fn receive_some(&mut self, cx: &mut Context<'_>) -> usize {
        let mut received = 0;
        // Whoever has no room to answer takes nothing in.
        while received < RECEIVES_MAX && self.outgoing.is_empty() {
            let Some((came, peer)) = self.receive(cx) else {
                break;
            };
            self.take_in(came, peer);
            received += 1;
        }
        received
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Came, SocketAddr)> {
        loop {
            let Poll::Ready(Ok(mut ready)) = self.carrier.poll_read_ready(cx) else {
                return None;
            };
            match ready.get_inner().try_recv_ready_from(&mut self.room) {
                Ok(received) => return Some(received),
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                // An earlier reply met a closed port, or the like: the error is consumed.
                Err(error) => tracing::debug!(%error, "receiving a datagram failed"),
            }
        }
    }

    /// Takes in packets that have come together.
    fn take_in(&mut self, came: Came, peer: SocketAddr) {
        let room = std::mem::take(&mut self.room);
        for packet in came.packets(&room) {
            self.reply.clear();
            match is_packet(packet) {
                true => self.take_packet(packet, peer),
                // The exchange hears to the end what has become of its packets; nobody else is heard any more.
                false if self.is_leaving => {}
                false => self.take_message(packet, peer),
            }
        }
        self.room = room;
    }

    fn origin(&self, peer: SocketAddr) -> Origin {
        Origin {
            peer: Some(peer),
            ..self.line.origin
        }
    }

    fn take_packet(&mut self, packet: &[u8], peer: SocketAddr) {
        let origin = self.origin(peer);
        let (shared, line, tasks) = (&self.shared, &self.line, &mut self.tasks);
        let (offer, carrier) = (&shared.offer, self.carrier.get_ref());
        let execute = |key, call: &LeanCall<'_>, out: &mut Buffer| {
            let handler = &shared.handlers[offer.services.lean_service(call.service)];
            if let Handler::Inline = handler {
                return execute_inline(call, offer, origin, out);
            }
            match shared.room_at_once() {
                Some(room) => tasks.begin(errand_of(key, call, origin, room), handler, line),
                None => refuse_for_number(call.caller, offer, out),
            }
        };
        let room = (&mut self.whole, &mut self.reply);
        self.exchange
            .take_in_and_carry_out(offer, carrier, packet, peer, room, execute);
    }

    fn take_message(&mut self, message: &[u8], peer: SocketAddr) {
        let offer = &self.shared.offer;
        let wanted = self.duplicates.judge(offer, message, peer, &mut self.reply);
        match wanted {
            Wanted::Nothing => {}
            Wanted::Answered => self.send_reply(peer),
            Wanted::Call(key, call) => self.execute(message, &key, &call, peer),
        }
    }

    fn execute(
        &mut self,
        message: &[u8],
        key: &CallKey<SocketAddr>,
        call: &OncCall<'_>,
        peer: SocketAddr,
    ) {
        let (shared, origin) = (&self.shared, self.origin(peer));
        let offer = &shared.offer;
        let handler = &shared.handlers[call.service];
        if let Handler::Inline = handler {
            let services = &offer.services;
            let _ = services.execute(call, origin, &mut self.reply, &offer.tally);
            let reply = &mut self.reply;
            self.duplicates.finish(offer, key, call.xid, peer, reply);
            return self.send_reply(peer);
        }
        let Some(room) = shared.room_at_once() else {
            return self.duplicates.drop_call(offer, key);
        };
        let errand = Errand {
            origin,
            asked: Asked::Onc(call.xid, call.procedure),
            received: message,
            to: To::Datagram(*key, call.xid, peer),
            room,
        };
        self.tasks.begin(errand, handler, &self.line);
    }

    fn send_reply(&mut self, peer: SocketAddr) {
        let reply = std::mem::take(&mut self.reply);
        self.reply = self.send(reply, peer);
    }

    /// Sends a message of ONC RPC, now or soon; a buffer that can be used again.
    fn send(&mut self, reply: Buffer, peer: SocketAddr) -> Buffer {
        let (offer, carrier) = (&self.shared.offer, self.carrier.get_ref());
        let message = record::message(&reply);
        match self.outgoing.try_send(carrier, message, peer) {
            Err(error) if is_for_now(&error) => {
                self.outgoing.put_off(reply, peer, Instant::now());
                Buffer::default()
            }
            sent => {
                note_sent(offer, sent, peer);
                reply
            }
        }
    }

    /// Answers with what tasks have left.
    fn collect(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.line.collect_letters(&mut letters);
        for letter in letters.drain(..) {
            self.tasks.ended(&letter.to);
            let used = self.answer(letter);
            self.line.give_back(used);
        }
        self.letters = letters;
    }

    fn answer(&mut self, letter: Letter) -> Buffer {
        let mut answer = letter.answer;
        match letter.to {
            To::Stream => unreachable!("a port is no stream"),
            To::Packet(key, gives_stamps) => {
                if gives_stamps {
                    stamp_replies(&mut answer);
                }
                self.exchange.reply(key, &mut answer);
                answer
            }
            To::Datagram(key, xid, peer) => {
                let offer = &self.shared.offer;
                self.duplicates.finish(offer, &key, xid, peer, &mut answer);
                self.send(answer, peer)
            }
        }
    }

    /// Drops calls where they wait if nobody waits for them any more.
    fn give_up_cancelled(&mut self) {
        while let Some(key) = self.exchange.next_cancelled() {
            self.tasks.cancel(key);
        }
    }

    /// Does what is due; says whether anything was.
    fn mind_time(&mut self, cx: &mut Context<'_>) -> bool {
        let duties = [self.exchange.next_timeout(), self.outgoing.next_attempt()];
        let wanted = duties.into_iter().flatten().min();
        if self.alarm.poll(wanted, cx).is_pending() {
            return false;
        }
        let now = Instant::now();
        self.exchange.look_at_time(now);
        self.outgoing
            .try_again(&self.shared.offer, self.carrier.get_ref(), now);
        true
    }
}

impl Drop for Port {
    /// No call will be answered any more.
    fn drop(&mut self) {
        let (offer, carrier) = (&self.shared.offer, self.carrier.get_ref());
        self.exchange.say_goodbye(Farewell::ToAll);
        self.exchange.send(offer, carrier);
        self.shared.closed(self.line.id);
    }
}

fn errand_of<'m>(
    key: ExchangeKey,
    call: &LeanCall<'m>,
    origin: Origin,
    room: OwnedSemaphorePermit,
) -> Errand<'m> {
    let job = LeanJob::received_now(call);
    Errand {
        origin,
        asked: Asked::Lean(job),
        received: call.arguments,
        to: To::Packet(key, job.found_at.is_some()),
        room,
    }
}
