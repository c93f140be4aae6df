//! The task behind a channel: it receives, sends what calls have left, minds the time and connects again.
//!
//! There is one for a channel, whatever the number of calls, and no task or timer for a call.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tenon_core::back_off::NextAttempt;
use tenon_core::error::{ConnectError, ConnectionFailure};
use tenon_net::Address;
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep_until};

use super::channel::Shared;
use super::connect::{self, Connected};
use super::look::{Looked, tells_all};
use super::receive::Received;
use super::send::Sending;
use super::state::{Calls, Phase};
use crate::watch::{WatchedSocket, yield_to_others};
use tenon_proto::lean::CloseReason;

/// Receives at a time; then other tasks have their turn.
const RECEIVES_MAX: usize = 16;

type Connecting = Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + Send>>;

/// How there is a connection.
enum Way {
    /// There is none, and none is needed.
    Down,
    /// It is being made.
    Connecting(Connecting),
    Up(Arc<WatchedSocket>),
}

/// What the driver does next.
enum Step {
    Again,
    Wait,
    End,
}

/// The task behind a channel.
pub(super) struct Driver {
    shared: Arc<Shared>,
    way: Way,
    alarm: Pin<Box<Sleep>>,
    /// When the alarm goes off, if it does.
    is_set_for: Option<Instant>,
    /// Waits for what the system reports of datagrams.
    errors: Option<AbortHandle>,
    /// Whether something was sent or received in this poll.
    has_moved: bool,
    /// Whether the next poll is to look for replies, as the tasks that were ready have run since the last one.
    looks: bool,
}

impl Driver {
    /// The driver of a channel that has this connection, or none yet.
    pub(super) fn new(shared: Arc<Shared>, socket: Option<Arc<WatchedSocket>>) -> Self {
        Self {
            errors: socket
                .as_ref()
                .and_then(|socket| watch_errors(&shared, socket)),
            shared,
            way: socket.map_or(Way::Down, Way::Up),
            alarm: Box::pin(sleep_until(tokio::time::Instant::now())),
            is_set_for: None,
            has_moved: false,
            looks: false,
        }
    }

    /// Drives the channel until it is closed.
    pub(super) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.shared.lock();
            match &mut state.driver {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        loop {
            let step = match &self.way {
                Way::Up(socket) => self.attend(&Arc::clone(socket), cx),
                Way::Down | Way::Connecting(_) => self.connect(cx),
            };
            let went_off = self.mind_time(cx);
            self.shared.wake(self.shared.lock());
            match step {
                Step::End => return Poll::Ready(()),
                Step::Wait if !went_off => {
                    self.look(cx);
                    return Poll::Pending;
                }
                Step::Wait | Step::Again => {}
            }
        }
    }

    /// Receives and sends.
    fn attend(&mut self, socket: &Arc<WatchedSocket>, cx: &mut Context<'_>) -> Step {
        if let Err(failure) = self.receive(socket, cx) {
            self.shared.lock().break_link(socket, &failure);
        }
        if self.shared.lock().link_over(socket).is_none() {
            return self.lose();
        }
        if let Err(error) = self.send(socket, cx) {
            self.shared.lock().break_link(socket, &error.into());
        }
        if self.shared.lock().link_over(socket).is_none() {
            return self.lose();
        }
        self.close_if_done(socket)
    }

    /// Looks for replies a moment before the task waits for the system to tell of them. Tasks that are ready run first:
    /// their calls go out together, and then their replies are looked for together.
    fn look(&mut self, cx: &mut Context<'_>) {
        let has_moved = std::mem::take(&mut self.has_moved);
        let is_to_look = std::mem::take(&mut self.looks) || has_moved;
        let Way::Up(socket) = &self.way else {
            return;
        };
        if !is_to_look {
            return;
        }
        let Some(half) = self.shared.reader_for_driver(socket) else {
            return;
        };
        let yields_first = has_moved && half.waiter.is_to_look();
        let looked = if yields_first {
            self.shared.lock().put_reader(half);
            Looked::Yields
        } else {
            self.shared.look(half, None)
        };
        if looked != Looked::Sleeps {
            self.looks = true;
            yield_to_others(cx);
        }
    }

    fn receive(
        &mut self,
        socket: &Arc<WatchedSocket>,
        cx: &mut Context<'_>,
    ) -> Result<(), ConnectionFailure> {
        let mut half = {
            let mut state = self.shared.lock();
            let Some(link) = state.link_over(socket) else {
                return Ok(());
            };
            match link.reader.take() {
                Some(half) => half,
                // The one that has it says when it has not.
                None => {
                    state.wants_reader = true;
                    return Ok(());
                }
            }
        };
        let received = self.receive_over(&mut half, socket, cx);
        let mut state = self.shared.lock();
        state.wants_reader = false;
        state.put_reader(half);
        received
    }

    fn receive_over(
        &mut self,
        half: &mut super::state::ReadHalf,
        socket: &Arc<WatchedSocket>,
        cx: &mut Context<'_>,
    ) -> Result<(), ConnectionFailure> {
        if std::mem::take(&mut self.shared.lock().must_receive) {
            socket.get_ref().refresh();
            self.shared.receive(half)?;
        }
        for _ in 0..RECEIVES_MAX {
            let Poll::Ready(ready) = socket.poll_read_ready(cx) else {
                self.shared.lock().is_parked = true;
                return Ok(());
            };
            let mut ready = ready?;
            let received = self.shared.receive(half)?;
            if received != Received::Nothing {
                half.note_come(&self.shared.waits);
                self.has_moved = true;
            }
            if received != Received::MayHaveMore {
                ready.clear_ready();
            }
        }
        self.shared.lock().is_parked = tells_all(socket);
        yield_to_others(cx);
        Ok(())
    }

    fn send(&mut self, socket: &Arc<WatchedSocket>, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let mut state = self.shared.lock();
            if state.start_queue() {
                // The connection takes no calls any more, and has answered all it took.
                let failure = io::Error::from(io::ErrorKind::ConnectionAborted).into();
                state.break_link(socket, &failure);
                return Ok(());
            }
            if !state.needs_sender() {
                return Ok(());
            }
            drop(state);
            let Poll::Ready(ready) = socket.poll_write_ready(cx) else {
                return Ok(());
            };
            let mut ready = ready?;
            self.has_moved = true;
            let (state, sending) = self.shared.transmit(self.shared.lock());
            // Another task sends, and looks whether more waits when it is done.
            let is_sent_elsewhere = state
                .link
                .as_ref()
                .is_some_and(|link| link.outgoing.is_none());
            drop(state);
            match sending {
                Sending::Blocked => ready.clear_ready(),
                Sending::Done if is_sent_elsewhere => return Ok(()),
                Sending::Done => {}
            }
        }
    }

    /// Closes the connection if it is not needed any more.
    fn close_if_done(&mut self, socket: &Arc<WatchedSocket>) -> Step {
        let mut state = self.shared.lock();
        let is_done = state.calls.in_flight() == 0 && state.queue.is_empty();
        if state.phase == Phase::Open || !is_done || state.needs_sender() {
            return Step::Wait;
        }
        match &mut state.calls {
            Calls::Stream(connection) => connection.close(CloseReason::DONE, ""),
            Calls::Datagram(_) => state.say_goodbye(),
        }
        // A peer that has no room for it sees that the connection ends.
        let (state, _) = self.shared.transmit(state);
        drop(state);
        socket.get_ref().shutdown();
        self.way = Way::Down;
        Step::End
    }

    fn lose(&mut self) -> Step {
        self.way = Way::Down;
        self.errors.take().inspect(AbortHandle::abort);
        Step::Again
    }

    /// Makes one attempt to connect after the other for as long as a call waits for it.
    fn connect(&mut self, cx: &mut Context<'_>) -> Step {
        let Way::Connecting(attempt) = &mut self.way else {
            return self.begin_to_connect();
        };
        let connected = match attempt.as_mut().poll(cx) {
            Poll::Ready(connected) => connected.and_then(watch),
            Poll::Pending => return Step::Wait,
        };
        let mut state = self.shared.lock();
        state.back_off.attempt(Instant::now());
        self.way = match connected {
            Ok((socket, located)) => {
                tracing::debug!(address = %located, "connected again");
                state.back_off.succeeded();
                state.handle_connected(Arc::clone(&socket), located, &self.shared.options);
                drop(state);
                self.errors = watch_errors(&self.shared, &socket);
                Way::Up(socket)
            }
            Err(error) => {
                state.handle_not_connected(error, &self.shared.options);
                Way::Down
            }
        };
        Step::Again
    }

    fn begin_to_connect(&mut self) -> Step {
        let mut state = self.shared.lock();
        let Some(deadline) = state.last_deadline() else {
            return match state.phase {
                Phase::Open => Step::Wait,
                Phase::Closing | Phase::Closed => Step::End,
            };
        };
        let waits_for_ready = !state.has_fail_fast_call(&self.shared.options);
        match state.back_off.next_attempt(Instant::now(), waits_for_ready) {
            NextAttempt::Now => {}
            NextAttempt::At(at) => {
                state.expect(at);
                return Step::Wait;
            }
            NextAttempt::Fail(error) => {
                state.end_fail_fast_calls(&self.shared.options, &error);
                return Step::Again;
            }
        }
        let Some(destination) = &self.shared.destination else {
            let address = self.shared.address.clone();
            let error = ConnectError::NotReconnected { address };
            state.handle_not_connected(error, &self.shared.options);
            return Step::Again;
        };
        drop(state);
        let (destination, options) = (destination.clone(), self.shared.options.clone());
        let attempt = connect::socket(destination, deadline, options);
        self.way = Way::Connecting(Box::pin(attempt));
        Step::Again
    }

    /// Sets the alarm; returns whether it went off.
    fn mind_time(&mut self, cx: &mut Context<'_>) -> bool {
        let mut state = self.shared.lock();
        if state.alarm != self.is_set_for {
            state.expect_silence();
        }
        let alarm = state.alarm;
        drop(state);
        if alarm != self.is_set_for {
            self.is_set_for = alarm;
            if let Some(at) = alarm {
                self.alarm.as_mut().reset(at.into());
            }
        }
        if alarm.is_none() || self.alarm.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.is_set_for = None;
        let mut state = self.shared.lock();
        let is_stuck = state.handle_timeout(Instant::now());
        if is_stuck && let Way::Up(socket) = &self.way {
            let failure = io::Error::from(io::ErrorKind::TimedOut).into();
            state.break_link(socket, &failure);
        }
        true
    }
}

impl Drop for Driver {
    /// Without its driver, because the run time has ended for example, a channel answers nothing any more.
    fn drop(&mut self) {
        self.errors.take().inspect(AbortHandle::abort);
        let mut state = self.shared.lock();
        state.end_all();
        self.shared.wake(state);
    }
}

/// Has the run time watch the socket of a connection.
fn watch((socket, located): Connected) -> Result<(Arc<WatchedSocket>, Address), ConnectError> {
    match connect::watch(socket) {
        Ok(socket) => Ok((socket, located)),
        Err(error) => Err(ConnectError::unreachable(&located, error)),
    }
}

/// Has a task wake the driver when the system reports what has become of datagrams: that nothing listens where they
/// went, of which a task that waits to receive is not told.
fn watch_errors(shared: &Arc<Shared>, socket: &Arc<WatchedSocket>) -> Option<AbortHandle> {
    if socket.get_ref().stream().is_some() {
        return None;
    }
    let (shared, socket) = (Arc::clone(shared), Arc::clone(socket));
    let task = tokio::spawn(async move {
        while socket.next_error().await.is_ok() {
            let mut state = shared.lock();
            state.must_receive = true;
            state.wake_driver();
            shared.wake(state);
        }
    });
    Some(task.abort_handle())
}
