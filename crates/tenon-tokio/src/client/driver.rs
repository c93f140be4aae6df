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

use super::channel::SharedChannel;
use super::connect::{self, ConnectedSocket};
use super::look::{ReplyPoll, tells_all};
use super::receive::ReceiveProgress;
use super::send::SendProgress;
use super::state::{Calls, ChannelPhase};
use crate::erased;
use crate::watch::{WatchedSocket, yield_to_others};
use tenon_proto::lean::CloseReason;

/// Receives at a time; then other tasks have their turn.
const RECEIVES_MAX: usize = 16;

type ConnectFuture = Pin<Box<dyn Future<Output = Result<ConnectedSocket, ConnectError>> + Send>>;

/// The state of the connection.
enum LinkState {
    /// There is none, and none is needed.
    Down,
    /// It is being made.
    Connecting(ConnectFuture),
    Up(Arc<WatchedSocket>),
}

/// The next step of the driver.
enum DriverStep {
    Again,
    Wait,
    End,
}

/// The task behind a channel.
pub(super) struct ChannelDriver {
    shared: Arc<SharedChannel>,
    link_state: LinkState,
    alarm: Pin<Box<Sleep>>,
    /// The time at which the alarm goes off, if it does.
    is_set_for: Option<Instant>,
    /// Waits for what the system reports of datagrams.
    errors: Option<AbortHandle>,
    /// True if something was sent or received in this poll.
    has_moved: bool,
    /// True if the next poll is to look for replies, as the tasks that were ready have run since the last one.
    looks: bool,
}

impl ChannelDriver {
    /// The driver of a channel that has this connection, or none yet.
    pub(super) fn new(shared: Arc<SharedChannel>, socket: Option<Arc<WatchedSocket>>) -> Self {
        Self {
            errors: socket
                .as_ref()
                .and_then(|socket| watch_errors(&shared, socket)),
            shared,
            link_state: socket.map_or(LinkState::Down, LinkState::Up),
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
            let step = match &self.link_state {
                LinkState::Up(socket) => self.drive(&Arc::clone(socket), cx),
                LinkState::Down | LinkState::Connecting(_) => self.connect(cx),
            };
            let went_off = self.mind_time(cx);
            self.shared.wake(self.shared.lock());
            match step {
                DriverStep::End => return Poll::Ready(()),
                DriverStep::Wait if !went_off => {
                    self.look(cx);
                    return Poll::Pending;
                }
                DriverStep::Wait | DriverStep::Again => {}
            }
        }
    }

    /// Receives and sends.
    fn drive(&mut self, socket: &Arc<WatchedSocket>, cx: &mut Context<'_>) -> DriverStep {
        if let Err(failure) = self.receive(socket, cx) {
            self.shared.lock().break_link(socket, &failure);
        }
        if self.shared.lock().link_over(socket).is_none() {
            return self.lose();
        }
        if let Some(host) = &self.shared.callbacks {
            self.shared.serve_callbacks(host, cx);
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
        let LinkState::Up(socket) = &self.link_state else {
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
            ReplyPoll::Yields
        } else {
            self.shared.look(half, None)
        };
        if looked != ReplyPoll::Sleeps {
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
        half: &mut super::state::ReaderState,
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
            if received != ReceiveProgress::Nothing {
                half.note_received(&self.shared.waits);
                self.has_moved = true;
            }
            if received != ReceiveProgress::MayHaveMore {
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
                SendProgress::Blocked => ready.clear_ready(),
                SendProgress::Done if is_sent_elsewhere => return Ok(()),
                SendProgress::Done => {}
            }
        }
    }

    /// Closes the connection if it is not needed any more.
    fn close_if_done(&mut self, socket: &Arc<WatchedSocket>) -> DriverStep {
        let mut state = self.shared.lock();
        let is_done = state.calls.in_flight() == 0 && state.queue.is_empty();
        if state.phase == ChannelPhase::Open || !is_done || state.needs_sender() {
            return DriverStep::Wait;
        }
        match &mut state.calls {
            Calls::Stream(connection) => connection.close(CloseReason::DONE, ""),
            Calls::Datagram(_) => state.send_close(),
        }
        // A peer that has no room for it sees that the connection ends.
        let (state, _) = self.shared.transmit(state);
        drop(state);
        socket.get_ref().shutdown();
        self.link_state = LinkState::Down;
        DriverStep::End
    }

    fn lose(&mut self) -> DriverStep {
        self.link_state = LinkState::Down;
        self.errors.take().inspect(AbortHandle::abort);
        DriverStep::Again
    }

    /// Makes one attempt to connect after the other for as long as a call waits for it.
    fn connect(&mut self, cx: &mut Context<'_>) -> DriverStep {
        let LinkState::Connecting(attempt) = &mut self.link_state else {
            return self.begin_to_connect();
        };
        let connected = match attempt.as_mut().poll(cx) {
            Poll::Ready(connected) => connected.and_then(watch),
            Poll::Pending => return DriverStep::Wait,
        };
        let mut state = self.shared.lock();
        state.back_off.attempt(Instant::now());
        self.link_state = match connected {
            Ok((socket, located)) => {
                tracing::debug!(address = %located, "connected again");
                state.back_off.succeeded();
                state.handle_connected(Arc::clone(&socket), located, &self.shared.options);
                drop(state);
                self.errors = watch_errors(&self.shared, &socket);
                LinkState::Up(socket)
            }
            Err(error) => {
                state.handle_not_connected(error, &self.shared.options);
                LinkState::Down
            }
        };
        DriverStep::Again
    }

    fn begin_to_connect(&mut self) -> DriverStep {
        let mut state = self.shared.lock();
        let Some(deadline) = state.last_deadline() else {
            return match state.phase {
                ChannelPhase::Open => DriverStep::Wait,
                ChannelPhase::Closing | ChannelPhase::Closed => DriverStep::End,
            };
        };
        let waits_for_ready = !state.has_fail_fast_call(&self.shared.options);
        match state.back_off.next_attempt(Instant::now(), waits_for_ready) {
            NextAttempt::Now => {}
            NextAttempt::At(at) => {
                state.expect(at);
                return DriverStep::Wait;
            }
            NextAttempt::Fail(error) => {
                state.end_fail_fast_calls(&self.shared.options, &error);
                return DriverStep::Again;
            }
        }
        let Some(destination) = &self.shared.destination else {
            let address = self.shared.address.clone();
            let error = ConnectError::NotReconnected { address };
            state.handle_not_connected(error, &self.shared.options);
            return DriverStep::Again;
        };
        drop(state);
        let (destination, options) = (destination.clone(), self.shared.options.clone());
        let attempt = connect::socket(destination, deadline, options);
        self.link_state = LinkState::Connecting(Box::pin(attempt));
        DriverStep::Again
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
        if is_stuck && let LinkState::Up(socket) = &self.link_state {
            let failure = io::Error::from(io::ErrorKind::TimedOut).into();
            state.break_link(socket, &failure);
        }
        true
    }
}

impl Drop for ChannelDriver {
    /// Without its driver, because the run time has ended for example, a channel answers nothing any more.
    fn drop(&mut self) {
        self.errors.take().inspect(AbortHandle::abort);
        let mut state = self.shared.lock();
        state.end_all();
        self.shared.wake(state);
    }
}

/// Has the run time watch the socket of a connection.
fn watch(
    (socket, located): ConnectedSocket,
) -> Result<(Arc<WatchedSocket>, Address), ConnectError> {
    match connect::watch(socket) {
        Ok(socket) => Ok((socket, located)),
        Err(error) => Err(ConnectError::unreachable(&located, error)),
    }
}

/// Has a task wake the driver when the system reports what has become of datagrams: that nothing listens where they
/// went, of which a task that waits to receive is not told.
fn watch_errors(shared: &Arc<SharedChannel>, socket: &Arc<WatchedSocket>) -> Option<AbortHandle> {
    if socket.get_ref().stream().is_some() {
        return None;
    }
    let (shared, socket) = (Arc::clone(shared), Arc::clone(socket));
    let task = erased::spawn(async move {
        while socket.next_error().await.is_ok() {
            let mut state = shared.lock();
            state.must_receive = true;
            state.wake_driver();
            shared.wake(state);
        }
    });
    Some(task.abort_handle())
}
