//! The task of a connection: it receives, executes what answers at once, gives tasks to what waits, and
//! sends the replies that are there together.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tenon::lean::Reason as Farewell;
use tenon::runtime::{
    Arrival, Grace, LeanJob, Reason, Reception, Request, Share, execute_inline, refuse_for_number,
    stamp_replies,
};
use tenon::wire::Buffer;
use tenon_net::Stream;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use super::alarm::Alarm;
use super::begin::Errand;
use super::line::{Line, To, lock};
use super::service::Asked;
use super::shared::{Handler, Shared};
use crate::watch::{Watched, is_for_now};

/// Bytes of replies that are sent before further calls are executed.
const REPLIES_MAX: usize = 64 << 10;

/// Receives at a time; then other tasks have their turn. The system's poller would give it to them, but of shared
/// memory, into which a peer may write for ever, it knows nothing.
const RECEIVES_MAX: usize = 16;

/// Silence after which a connection gives back the memory that it does not need.
const LINGER: Duration = Duration::from_millis(100);

/// Waiting for room among the calls of the server.
type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A call that waits for room.
struct Held {
    /// By the number of the service.
    handler: usize,
    asked: Asked,
    /// The message of an ONC call, the arguments of a lean one.
    received: Vec<u8>,
    room: Waiting,
}

pub(super) struct Connection {
    shared: Arc<Shared>,
    line: Arc<Line>,
    socket: Watched<Stream>,
    reception: Reception,
    /// The memory that the reader has beyond its first.
    share: Share,
    replies: Buffer,
    /// Bytes of the replies that are sent.
    sent: usize,
    /// Whether the client has asked for stamps, so that there may be some among the replies.
    gives_stamps: bool,
    /// For a peer that does not make room for the replies.
    grace: Grace,
    /// Since when no complete request has come.
    silent_since: Instant,
    /// Of a request that takes memory of all.
    arrival: Arrival,
    has_memory: bool,
    /// Whether no call is begun before those that were are answered.
    is_in_order: bool,
    /// A call for which there is no room yet.
    held: Option<Held>,
    alarm: Alarm,
    /// Why the connection ends once everything is answered.
    ending: Option<Reason>,
}

/// Why no further request is looked at.
enum Pause {
    /// There is none.
    Nothing,
    /// Replies are to be sent first.
    Replies,
    /// Other calls are to be answered first; the task is called when one is.
    Calls,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, line: Arc<Line>, socket: Watched<Stream>) -> Self {
        let offer = &shared.offer;
        Self {
            reception: Reception::new(offer.limits.record_bytes),
            share: Share::new(&offer.memory),
            shared,
            line,
            socket,
            replies: Buffer::default(),
            sent: 0,
            gives_stamps: false,
            grace: Grace::default(),
            silent_since: Instant::now(),
            arrival: Arrival::default(),
            has_memory: true,
            is_in_order: false,
            held: None,
            alarm: Alarm::new(),
            ending: None,
        }
    }

    /// Serves the connection until it ends.
    pub(super) async fn serve(mut self) {
        let reason = std::future::poll_fn(|cx| self.poll(cx)).await;
        reason.report(
            self.line.id,
            self.line.origin.peer,
            &self.shared.offer.tally,
        );
        let _ = self.socket.get_ref().shutdown();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        self.line.attend(cx.waker());
        if self.line.is_abandoned() {
            return Poll::Ready(Reason::Stopping);
        }
        match self.turn(cx) {
            Err(reason) => Poll::Ready(reason),
            Ok(()) => match self.is_over() {
                true => Poll::Ready(self.ending.take().unwrap_or(Reason::PeerClosed)),
                false => Poll::Pending,
            },
        }
    }

    fn is_over(&self) -> bool {
        self.ending.is_some() && self.replies.is_empty() && self.line.is_quiet()
    }

    /// Does what can be done now.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<(), Reason> {
        let mut received = 0;
        loop {
            let pause = self.execute_what_came(cx);
            // All answers that were there before the task looks whether it is over.
            self.collect();
            let has_room = self.send(cx)?;
            self.mind_time(cx)?;
            match pause {
                _ if self.ending.is_some() || !has_room => break,
                Pause::Replies => {}
                Pause::Calls => break,
                Pause::Nothing => match self.receive(cx) {
                    Ok(true) if received == RECEIVES_MAX => {
                        cx.waker().wake_by_ref();
                        return Ok(());
                    }
                    Ok(true) => received += 1,
                    Ok(false) => return self.wait_for_more(cx),
                    Err(reason) => self.ending = Some(reason),
                },
            }
        }
        // Nothing is waited for.
        self.arrival.clear();
        Ok(())
    }

    /// A large request that has begun to come has its time.
    fn wait_for_more(&mut self, cx: &mut Context<'_>) -> Result<(), Reason> {
        if self.share.is_empty() {
            self.arrival.clear();
            return Ok(());
        }
        let limit = self.shared.offer.limits.receive;
        self.arrival.note_waiting(self.reception.kept(), limit);
        self.mind_time(cx)
    }

    /// Takes the answers that tasks have left.
    fn collect(&mut self) {
        self.line.collect(&mut self.replies);
    }

    /// Answers requests that are complete, or begins to. Those before one that breaks the protocol are
    /// answered, too.
    fn execute_what_came(&mut self, cx: &mut Context<'_>) -> Pause {
        loop {
            // A call that is held was accepted.
            if self.shared.is_stopping() && self.ending.is_none() && self.held.is_none() {
                self.reception
                    .goodbye(Farewell::STOPPING, &mut self.replies);
                self.ending = Some(Reason::Stopping);
            }
            if self.ending.is_some() {
                return Pause::Nothing;
            }
            if !self.may_begin() || !self.begin_held(cx) {
                return Pause::Calls;
            }
            // What is sent of the replies is kept until all are: a peer that reads but a part at a time must not
            // have them grow without end.
            if self.grace.end().is_some() || self.replies.len() > REPLIES_MAX {
                return Pause::Replies;
            }
            match self.next_request() {
                Ok(true) => self.note_request(),
                Ok(false) => return Pause::Nothing,
                Err(reason) => self.ending = Some(reason),
            }
        }
    }

    fn note_request(&mut self) {
        self.silent_since = Instant::now();
        self.arrival.clear();
        self.has_memory = true;
    }

    /// Whether a further call may be begun beside those that have tasks.
    fn may_begin(&mut self) -> bool {
        if !self.shared.has_tasks {
            return true;
        }
        let in_flight = self.line.in_flight();
        self.is_in_order &= in_flight > 0;
        let is_full = match &self.reception {
            // Such a client is told the limit, and what goes beyond is refused.
            Reception::Lean(_) => false,
            Reception::Onc(_) | Reception::Unknown(_) => {
                in_flight >= self.shared.offer.limits.connection_calls_in_flight.max(1)
            }
        };
        !self.is_in_order && !is_full
    }

    /// Begins the call that is held, if there is one and there is room for it by now. Whether none is held.
    fn begin_held(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(held) = &mut self.held else {
            return true;
        };
        let Poll::Ready(acquired) = held.room.as_mut().poll(cx) else {
            return false;
        };
        // The semaphore is never closed.
        if let (Some(held), Ok(room)) = (self.held.take(), acquired) {
            let (shared, line) = (&self.shared, &self.line);
            let call = (held.handler, held.asked);
            begin(shared, line, call, &held.received, room, &mut self.replies);
            self.is_in_order |= shared.handlers[held.handler].is_in_order();
            self.note_request();
        }
        true
    }

    /// Answers the next request, or begins to; says whether there was one.
    fn next_request(&mut self) -> Result<bool, Reason> {
        let (shared, line, replies) = (&self.shared, &self.line, &mut self.replies);
        let offer = &shared.offer;
        let (handler, asked, received) = match self.reception.next_request(offer, replies)? {
            Request::None => return Ok(false),
            Request::Handled => return Ok(true),
            Request::HandledStamped => {
                self.gives_stamps = true;
                return Ok(true);
            }
            Request::Cancel(id) => {
                line.cancel(id);
                return Ok(true);
            }
            Request::Onc(call, record) => {
                if let Handler::Inline = &shared.handlers[call.service] {
                    let services = &offer.services;
                    let reply = services.execute(&call, line.origin, replies, &offer.tally);
                    reply.seal(replies, offer.fragment_max);
                    return Ok(true);
                }
                (call.service, Asked::Onc(call.xid, call.procedure), record)
            }
            Request::Lean(call) => {
                self.gives_stamps |= call.wants_stamps;
                let handler = offer.services.lean_service(call.service);
                if let Handler::Inline = &shared.handlers[handler] {
                    execute_inline(&call, offer, line.origin, replies);
                    return Ok(true);
                }
                let asked = Asked::Lean(LeanJob::received_now(&call));
                (handler, asked, call.arguments)
            }
        };
        match shared.room_at_once() {
            Some(room) => begin(shared, line, (handler, asked), received, room, replies),
            None => {
                self.held = Some(Held {
                    handler,
                    asked,
                    received: received.to_vec(),
                    room: Box::pin(Arc::clone(&shared.room).acquire_owned()),
                });
            }
        }
        self.is_in_order |= shared.handlers[handler].is_in_order();
        Ok(true)
    }

    /// Sends what there is room for; says whether that was all.
    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, Reason> {
        // What comes behind replies that are sent in part keeps the time at which it was done.
        if self.gives_stamps && self.sent == 0 && !self.replies.is_empty() {
            stamp_replies(&mut self.replies);
        }
        while self.sent < self.replies.len() {
            let Poll::Ready(ready) = self.socket.poll_write_ready(cx) else {
                self.grace.note_blocked(self.shared.offer.limits.send);
                return Ok(false);
            };
            let mut ready = ready.map_err(Reason::Socket)?;
            let bytes = self.replies.as_slice();
            match self.socket.get_ref().try_send(&bytes[self.sent..]) {
                Ok(sent) => {
                    self.sent += sent;
                    self.grace.note_sent(sent);
                }
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                Err(error) => return Err(Reason::of_sending(error)),
            }
        }
        self.replies.clear();
        (self.sent, self.grace) = (0, Grace::default());
        Ok(true)
    }

    /// Receives what is there; says whether something was.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Reason> {
        loop {
            let Poll::Ready(ready) = self.socket.poll_read_ready(cx) else {
                return Ok(false);
            };
            let mut ready = ready.map_err(Reason::Socket)?;
            let share = &mut self.share;
            let Some(room) = self.reception.room_within(|bytes| share.fit(bytes)) else {
                self.reception.goodbye(Farewell::LIMITS, &mut self.replies);
                return Err(Reason::Memory);
            };
            let most = room.len();
            match self.socket.get_ref().try_recv(room) {
                Ok(0) => {
                    return Err(match self.reception.may_end() {
                        true => Reason::PeerClosed,
                        false => Reason::CutOff,
                    });
                }
                Ok(bytes) => {
                    if bytes < most {
                        ready.clear_ready();
                    }
                    self.reception.filled(bytes, &self.shared.offer.limits)?;
                    self.has_memory = true;
                    return Ok(true);
                }
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                Err(error) => return Err(Reason::Socket(error)),
            }
        }
    }

    /// Ends a connection whose peer is silent or does not read, and sets the timer for when that is to
    /// be looked at again.
    fn mind_time(&mut self, cx: &mut Context<'_>) -> Result<(), Reason> {
        while self.alarm.poll(self.next_duty(), cx).is_ready() {
            self.do_duties(Instant::now())?;
        }
        Ok(())
    }

    /// When something is to be done even if nothing happens.
    fn next_duty(&self) -> Option<Instant> {
        let limits = &self.shared.offer.limits;
        let linger = self.has_memory.then(|| self.silent_since + LINGER);
        let idle = (!limits.idle.is_zero()).then(|| self.silent_since + limits.idle);
        let has_tasks = self.shared.has_tasks;
        let expiry = has_tasks.then(|| self.line.next_expiry()).flatten();
        [self.grace.end(), self.arrival.end(), linger, idle, expiry]
            .into_iter()
            .flatten()
            .min()
    }

    fn do_duties(&mut self, now: Instant) -> Result<(), Reason> {
        let limits = &self.shared.offer.limits;
        if self.grace.end().is_some_and(|end| now >= end) {
            return Err(Reason::SlowReader);
        }
        if self.arrival.end().is_some_and(|end| now >= end) {
            self.arrival.clear();
            // Whoever does not read has a time for that.
            if self.replies.is_empty() {
                return Err(self.farewell(Reason::SlowSender));
            }
        }
        self.line.give_up_expired(now);
        let silence = now.saturating_duration_since(self.silent_since);
        if silence < LINGER {
            return Ok(());
        }
        // What is held takes as much as it took there, and is counted there.
        if self.held.is_none() {
            self.reception.shrink_to(0);
            self.share.fit(self.reception.capacity());
        }
        if self.replies.is_empty() {
            self.replies.shrink_to(0);
        }
        self.has_memory = false;
        if limits.idle.is_zero() || silence < limits.idle {
            return Ok(());
        }
        if self.line.in_flight() > 0 || self.held.is_some() || !self.replies.is_empty() {
            self.silent_since = now;
            return Ok(());
        }
        Err(self.farewell(Reason::Idle))
    }

    /// Tells a peer that can be told why nothing further is accepted. What does not fit at once is
    /// not said.
    fn farewell(&mut self, reason: Reason) -> Reason {
        self.reception.goodbye(reason.farewell(), &mut self.replies);
        // Whoever has gone need not be told.
        let _ = self.socket.get_ref().try_send(self.replies.as_slice());
        self.replies.clear();
        reason
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // First: whoever finds the connection gone finds its memory there again.
        self.share.clear();
        self.shared.left(self.line.id);
    }
}

/// Gives a call of the service of a handler a task or a thread; a lean one not if there are too many.
fn begin(
    shared: &Shared,
    line: &Arc<Line>,
    (handler, asked): (usize, Asked),
    received: &[u8],
    room: OwnedSemaphorePermit,
    replies: &mut Buffer,
) {
    let lean = match &asked {
        Asked::Onc(..) => None,
        Asked::Lean(job) => Some(*job),
    };
    if let Some(job) = lean {
        let (id, deadline) = (job.caller.id, job.deadline);
        if lock(&line.lean_calls).begin(id, deadline, None).is_err() {
            return refuse_for_number(job.caller, &line.offer, replies);
        }
    }
    let errand = Errand {
        origin: line.origin,
        asked,
        received,
        to: To::Stream,
        room,
    };
    // Not under the lock: a run time that ends drops the task where it would have been begun, and so answers
    // the call, which takes the lock.
    let task = errand.begin(&shared.handlers[handler], line);
    if let Some(job) = lean
        && let Some(begun) = lock(&line.lean_calls).worker(job.caller.id)
    {
        *begun = Some(task);
    }
}
