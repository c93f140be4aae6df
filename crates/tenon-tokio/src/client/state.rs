//! The state that the futures of a channel and its driver share, under its one lock. Nothing here waits.

mod deadlines;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use tenon_core::back_off::BackOff;
use tenon_core::callbacks::{ReceivedCallback, RunningCallbacks};
use tenon_core::client::buffers::Buffers;
use tenon_core::client::{CallId, Input, Outcome, Outgoing, ResultBytes};
use tenon_core::error::{CallError, ConnectError, ConnectionFailure, SendFailure};
use tenon_core::options::ChannelOptions;
use tenon_core::streams::StreamPipes;
use tenon_core::timer::CallTimer;
use tenon_core::wait::Waiter;
use tenon_net::{Address, PacketTrain};
use tenon_proto::connection::{CallDraft, StartError, TransmitBatch, UnsentCall};
use tenon_wire::Buffer;

use super::waiters::{CallStage, QueuedCall, WaiterId, WaiterSlab};
use crate::server::CallbackHost;
use crate::watch::WatchedSocket;

/// The calls of a channel.
pub(super) type Calls = tenon_core::client::Calls<WaiterId>;

/// The phase of a channel: it takes calls, or does not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelPhase {
    Open,
    /// Those that it has are still answered.
    Closing,
    Closed,
}

#[derive(Debug)]
pub(super) struct ChannelState {
    /// The address at which the peer was found last.
    pub(super) located: Address,
    /// Bytes of the largest call that is sent.
    pub(super) send_max: usize,
    /// Calls of which nothing else is said wait for a peer that is not ready.
    waits_for_ready: bool,
    pub(super) calls: Calls,
    pub(super) link: Option<ChannelConnection>,
    pub(super) waiters: WaiterSlab,
    /// Calls that wait for a connection or for the peer to take them, in their order.
    pub(super) queue: VecDeque<WaiterId>,
    pub(super) buffers: Buffers,
    /// Calls with streams.
    pub(super) pipes: StreamPipes<WaiterId>,
    pub(super) back_off: BackOff,
    /// The error that ended the last connection, until an answer comes over another.
    lost: Option<Arc<io::Error>>,
    /// The time at which there is something to do even if nothing comes, or a later one.
    pub(super) alarm: Option<Instant>,
    pub(super) phase: ChannelPhase,
    pub(super) connections: u64,
    /// True if the driver is to receive whatever the system says.
    pub(super) must_receive: bool,
    /// Calls of the server that the driver is to have carried out.
    pub(super) called: Vec<ReceivedCallback>,
    /// The calls of the server that are carried out.
    pub(super) running: RunningCallbacks,
    /// True if the driver was to read while another task did.
    pub(super) wants_reader: bool,
    /// True if the system tells the driver of what comes, as the peer was told that no task looks.
    pub(super) is_parked: bool,
    /// The driver, while it was not woken since its last poll.
    pub(super) driver: Option<Waker>,
    /// The task that has called last, as its waker tells it from others.
    pub(super) last_caller: Option<usize>,
    /// Tasks that are to be woken when the lock is free.
    pub(super) woken: Vec<Waker>,
    /// Tasks that wait for the server to be heard.
    pub(super) greeters: Vec<Waker>,
    /// Tasks that wait for the end.
    pub(super) closers: Vec<Waker>,
}

/// The connection of a channel.
#[derive(Debug)]
pub(super) struct ChannelConnection {
    pub(super) socket: Arc<WatchedSocket>,
    /// The state of its reader; `None` while a task reads.
    pub(super) reader: Option<Box<ReaderState>>,
    /// The messages for its sender; `None` while a task sends.
    pub(super) outgoing: Option<Outgoing>,
    pub(super) used_at: Instant,
    /// The failure of the connection, while a task still sends over it.
    failure: Option<ConnectionFailure>,
    /// The reason why nothing can be sent over it any more, while what the peer sent before is received.
    send_failure: Option<SendFailure>,
}

/// The socket of a connection and the state of its reader.
#[derive(Debug)]
pub(super) struct ReaderState {
    pub(super) socket: Arc<WatchedSocket>,
    pub(super) input: Input,
    pub(super) waiter: Waiter,
    /// Since when the driver waits for a reply for which a task has looked in vain.
    pub(super) slept_since: Option<Instant>,
}

impl ChannelConnection {
    /// Returns whether it takes no calls any more, as it or sending over it has failed.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some() || self.send_failure.is_some()
    }
}

impl ChannelState {
    pub(super) fn new(
        address: &Address,
        is_datagram: bool,
        options: &ChannelOptions,
        callbacks: Option<&CallbackHost>,
    ) -> Self {
        let callbacks_max = callbacks.map_or(0, |host| host.calls_max);
        Self {
            called: Vec::new(),
            running: RunningCallbacks::default(),
            located: address.clone(),
            send_max: options.send_max,
            waits_for_ready: options.wait_for_ready,
            calls: Calls::new(address, is_datagram, options, callbacks_max),
            link: None,
            waiters: WaiterSlab::default(),
            queue: VecDeque::new(),
            buffers: Buffers::default(),
            pipes: StreamPipes::default(),
            back_off: BackOff::default(),
            lost: None,
            alarm: None,
            phase: ChannelPhase::Open,
            connections: 0,
            must_receive: false,
            wants_reader: false,
            is_parked: false,
            driver: None,
            last_caller: None,
            woken: Vec::new(),
            greeters: Vec::new(),
            closers: Vec::new(),
        }
    }

    /// Goes on over a new connection to a peer that was found at `located`.
    pub(super) fn handle_connected(
        &mut self,
        socket: Arc<WatchedSocket>,
        located: Address,
        options: &ChannelOptions,
    ) {
        self.connections += 1;
        self.located = located;
        let receiver = self.calls.renew(socket.get_ref());
        let reader = ReaderState {
            socket: Arc::clone(&socket),
            input: Input::new(receiver, &options.connection_config()),
            waiter: Waiter::new(options.waiting),
            slept_since: None,
        };
        self.link = Some(ChannelConnection {
            outgoing: Some(Outgoing::new(socket.get_ref())),
            socket,
            reader: Some(Box::new(reader)),
            used_at: Instant::now(),
            failure: None,
            send_failure: None,
        });
        (self.must_receive, self.wants_reader, self.is_parked) = (false, false, false);
        self.expect_silence();
    }

    /// Returns the link, if it is over this socket and has not failed.
    #[inline]
    pub(super) fn link_over(
        &mut self,
        socket: &Arc<WatchedSocket>,
    ) -> Option<&mut ChannelConnection> {
        let link = self.link.as_mut();
        link.filter(|link| Arc::ptr_eq(&link.socket, socket) && link.failure.is_none())
    }

    /// Returns whether something waits that the driver is to send.
    #[inline]
    pub(super) fn needs_sender(&self) -> bool {
        self.link.as_ref().is_some_and(|link| {
            let has_rest = link.outgoing.as_ref().is_some_and(Outgoing::has_rest);
            (has_rest || self.calls.has_transmit()) && !link.has_failed()
        })
    }

    /// Has the driver look after the calls at `at` at the latest; returns whether it was to do so later.
    #[inline]
    pub(super) fn expect(&mut self, at: Instant) -> bool {
        let is_earlier = self.alarm.is_none_or(|alarm| at < alarm);
        if is_earlier {
            self.alarm = Some(at);
        }
        is_earlier
    }

    /// Takes the driver, which is to be woken, and the other tasks that are.
    pub(super) fn wake_driver(&mut self) {
        self.woken.extend(self.driver.take());
    }

    // ---- Calls ----

    /// Starts the calls of the queue that the peer takes; returns whether the connection takes none any more and has
    /// answered all it took.
    pub(super) fn start_queue(&mut self) -> bool {
        if self
            .link
            .as_ref()
            .is_some_and(ChannelConnection::has_failed)
        {
            return false;
        }
        // Calls that are passed over, as the peer takes no more with streams.
        let mut passed = 0;
        while let Some(waiter) = self.queue.get(passed).copied() {
            match self.start_queued(waiter) {
                Ok(()) => {
                    self.queue.remove(passed);
                }
                Err(StartError::TooManyStreams { .. }) => passed += 1,
                Err(
                    StartError::AwaitsPreamble { .. }
                    | StartError::AwaitsBinding { .. }
                    | StartError::TooManyCalls { .. },
                ) => break,
                Err(error) => match final_error(error, &self.located, self.send_max) {
                    Some(error) => {
                        self.queue.remove(passed);
                        self.end(waiter, Outcome::Answered(Err(Box::new(error))));
                    }
                    None => return self.calls.in_flight() == 0,
                },
            }
        }
        false
    }

    /// Starts a call that waits in the queue.
    fn start_queued(&mut self, waiter: WaiterId) -> Result<(), StartError> {
        let slot = self.waiters.get(waiter);
        let started = match (&mut slot.stage, &mut self.calls) {
            (CallStage::Queued(QueuedCall::Fresh { message, draft }), calls) => {
                slot.timer.look();
                let draft = draft.draft();
                if let tenon_proto::connection::CallDraft::Lean(call) = &draft {
                    call.draft.set_time_left(message, slot.timer.left());
                }
                let started = calls.start(&draft, message, &slot.timer, waiter)?;
                self.buffers.put(std::mem::take(message));
                if Self::has_streams(&draft) {
                    slot.stage = CallStage::InFlight(started);
                    self.open_streams(waiter, &started);
                    return Ok(());
                }
                started
            }
            (CallStage::Queued(QueuedCall::Unsent(call)), Calls::Stream(connection)) => {
                CallId::Stream(connection.restart_call(call, waiter)?)
            }
            // The queue names only calls that wait in it.
            _ => return Ok(()),
        };
        slot.stage = CallStage::InFlight(started);
        Ok(())
    }

    /// Has the driver start a call again that the peer did not begin.
    #[cold]
    pub(super) fn queue_again(&mut self, unsent: UnsentCall, waiter: WaiterId) {
        self.waiters.get(waiter).stage = CallStage::Queued(QueuedCall::Unsent(unsent));
        self.queue.push_back(waiter);
        self.wake_driver();
    }

    /// Returns whether a call has streams.
    #[inline]
    pub(super) fn has_streams(draft: &CallDraft<'_>) -> bool {
        matches!(draft, CallDraft::Lean(call) if call.draft.streams().any())
    }

    /// Leaves an outcome for a waiter, and has its task woken.
    pub(super) fn end(&mut self, waiter: WaiterId, outcome: Outcome) {
        let (before, task) = self.waiters.deliver(waiter, outcome);
        self.woken.extend(task);
        if !self.pipes.is_empty() {
            self.end_streams(waiter);
        }
        self.recycle(before);
    }

    /// Gives up a call after its future was dropped, whatever it waits for.
    #[cold]
    pub(super) fn give_up(&mut self, waiter: WaiterId) {
        let stage = self.waiters.release(waiter);
        match &stage {
            CallStage::Queued(_) => self.queue.retain(|queued| *queued != waiter),
            CallStage::InFlight(call) => self.calls.cancel(*call),
            CallStage::Free | CallStage::Over(_) => {}
        }
        if !self.pipes.is_empty() {
            self.close_streams(waiter);
        }
        self.recycle(stage);
    }

    fn recycle(&mut self, stage: CallStage) {
        match stage {
            CallStage::Queued(QueuedCall::Fresh { message, .. }) => self.buffers.put(message),
            CallStage::Over(Outcome::Answered(Ok(results))) => {
                if let ResultBytes::Copied(bytes) = results.bytes {
                    self.buffers.put(bytes);
                }
            }
            _ => {}
        }
    }

    /// The peer has answered, so it is there.
    #[inline]
    pub(super) fn note_answer(&mut self) {
        self.back_off.reset();
        self.lost = None;
    }

    /// Ends calls over datagrams that have ended without an answer.
    pub(super) fn end_failed_calls(&mut self) {
        while let Some((waiter, outcome)) = self.calls.poll_failure() {
            self.end(waiter, outcome);
        }
        self.woken.append(&mut self.greeters);
    }

    /// Ends the link if calls in datagrams were not answered, so that the next one looks for the peer anew.
    #[cold]
    fn leave_lost_peer(&mut self) {
        if let (Err(failure), Some(link)) = (self.calls.check_peer(), &self.link) {
            let socket = Arc::clone(&link.socket);
            self.break_link(&socket, &failure);
        }
    }

    // ---- Failed attempts to connect ----

    /// An attempt to connect has failed: calls end that do not wait for another, and all if that is hopeless.
    pub(super) fn handle_not_connected(&mut self, error: ConnectError, options: &ChannelOptions) {
        tracing::debug!(%error, "not connected");
        let is_hopeless = self.back_off.failed(Instant::now(), error);
        if let Some(error) = self.back_off.error() {
            if is_hopeless {
                self.end_queued(|_| true, &error);
            } else {
                self.end_fail_fast_calls(options, &error);
            }
        }
        self.end_late_queued(Instant::now());
    }

    /// Returns whether a call of the queue does not wait for its peer to be ready.
    pub(super) fn has_fail_fast_call(&mut self, options: &ChannelOptions) -> bool {
        let mut queue = self.queue.iter();
        queue.any(|waiter| !self.waiters.get(*waiter).timer.waits_for_ready(options))
    }

    /// Ends the calls of the queue that do not wait for their peer to be ready.
    pub(super) fn end_fail_fast_calls(&mut self, options: &ChannelOptions, error: &CallError) {
        self.end_queued(|timer| !timer.waits_for_ready(options), error);
    }

    /// Ends the calls of the queue with timers that are meant.
    fn end_queued(&mut self, is_meant: impl Fn(&CallTimer) -> bool, error: &CallError) {
        for waiter in std::mem::take(&mut self.queue) {
            if is_meant(&self.waiters.get(waiter).timer) {
                self.end(waiter, Outcome::Answered(Err(Box::new(error.clone()))));
            } else {
                self.queue.push_back(waiter);
            }
        }
    }

    // ---- The end of a connection ----

    /// Ends the link over `socket`, unless that has been done. A task that sends over it notices that, and
    /// [ends its calls](Self::end_link): it knows which of them it has sent.
    #[cold]
    pub(super) fn break_link(&mut self, socket: &Arc<WatchedSocket>, failure: &ConnectionFailure) {
        let Some(link) = self.link_over(socket) else {
            return;
        };
        let failure = match link.send_failure.take() {
            Some(sending) => sending.failure().clone().after_receiving(failure.clone()),
            None => failure.clone(),
        };
        link.failure = Some(failure);
        socket.get_ref().shutdown();
        if link.outgoing.is_some() {
            self.end_link(socket, None);
        }
    }

    /// Nothing can be sent over `socket` any more. What the peer has sent before is received first: replies, and
    /// perhaps a message that says which calls it did not begin. The driver comes to the end of it, and ends the link.
    #[cold]
    pub(super) fn handle_send_failed(
        &mut self,
        socket: &Arc<WatchedSocket>,
        failure: ConnectionFailure,
    ) {
        let Some(link) = self.link_over(socket) else {
            return;
        };
        let failure = SendFailure::new(failure, Instant::now());
        let until = failure.until();
        link.send_failure = Some(failure);
        self.expect(until);
        self.must_receive = true;
        self.wake_driver();
    }

    /// Ends all calls that are in flight on a link that has failed. `batch` is what was not sent whole. Calls that were
    /// not sent whole wait for the next connection.
    #[cold]
    pub(super) fn end_link(
        &mut self,
        socket: &Arc<WatchedSocket>,
        batch: Option<&mut TransmitBatch>,
    ) {
        let is_meant = |link: &mut ChannelConnection| Arc::ptr_eq(&link.socket, socket);
        let Some(link) = self.link.take_if(is_meant) else {
            return;
        };
        let failure = link
            .failure
            .unwrap_or_else(|| io::Error::from(io::ErrorKind::Other).into());
        let in_flight = self.calls.in_flight();
        tracing::debug!(?failure, in_flight, "connection lost");
        let is_lost = match &failure {
            ConnectionFailure::Io(cause) => {
                self.lost = Some(Arc::clone(cause));
                true
            }
            _ => false,
        };
        match &mut self.calls {
            Calls::Stream(connection) => {
                if !is_lost {
                    connection.count_violation();
                }
                if let Some(mut rest) = link.outgoing.and_then(Outgoing::into_batch) {
                    connection.handle_transmit_failed(&mut rest);
                }
                if let Some(batch) = batch {
                    connection.handle_transmit_failed(batch);
                }
                let abandoned = connection.abandon_all();
                for call in abandoned.into_iter().rev() {
                    match call.unsent {
                        Some(unsent) if is_lost && !unsent.may_be_sent_again() => {
                            let error = failure.clone().into_cut_off(unsent.size(), self.send_max);
                            self.end(call.waiter, Outcome::Answered(Err(Box::new(error))));
                        }
                        Some(unsent) if is_lost && self.phase != ChannelPhase::Closed => {
                            let slot = self.waiters.get(call.waiter);
                            slot.stage = CallStage::Queued(QueuedCall::Unsent(unsent));
                            self.queue.push_front(call.waiter);
                        }
                        _ => {
                            let failure = failure.clone();
                            let failure = failure.of_long_call(call.long_size, self.send_max);
                            self.end(call.waiter, Outcome::Lost(failure, call.was_sent));
                        }
                    }
                }
            }
            Calls::Datagram(calls) => {
                for waiter in calls.endpoint.cancel_all() {
                    self.end(waiter, Outcome::Lost(failure.clone(), true));
                }
            }
        }
        if !is_lost {
            // Another connection would end alike: the peer refuses, or breaks the protocol.
            let waits_for_ready = self.waits_for_ready;
            let error = failure.into_error(false);
            self.end_queued(|timer| !timer.waits_for_ready_or(waits_for_ready), &error);
        }
        self.called.clear();
        self.running.cancel_all();
        self.wake_driver();
    }

    /// Tells a server of the packet exchange, which has no other way to notice, that there are no further calls.
    pub(super) fn send_close(&mut self) {
        if let (Calls::Datagram(calls), Some(link)) = (&mut self.calls, &self.link) {
            let mut goodbye = Buffer::default();
            if calls.endpoint.send_close(&mut goodbye) {
                // A server that does not hear of it forgets the conversation in time.
                let _ =
                    (link.socket.get_ref()).try_send_train(PacketTrain::one(goodbye.as_slice()));
            }
        }
    }

    /// Takes no call any more; those that are not over have failed.
    pub(super) fn end_all(&mut self) {
        self.phase = ChannelPhase::Closed;
        self.send_close();
        if let Some(socket) = self.link.as_ref().map(|link| Arc::clone(&link.socket)) {
            self.break_link(&socket, &closed_failure());
        }
        for waiter in std::mem::take(&mut self.queue) {
            let outcome = Outcome::Answered(Err(Box::new(closed_error())));
            self.end(waiter, outcome);
        }
        self.woken.append(&mut self.greeters);
        self.woken.append(&mut self.closers);
    }
}

/// Returns the error of a call that no connection to this peer takes, if it is one.
pub(super) fn final_error(
    error: StartError,
    address: &Address,
    send_max: usize,
) -> Option<CallError> {
    match error {
        StartError::TooLarge { size, limit } => Some(CallError::TooLargeForPeer {
            size,
            limit,
            own_limit: Some(send_max),
        }),
        StartError::TooLargeForDatagram { size, limit } => Some(CallError::TooLarge {
            size,
            limit,
            datagram: true,
        }),
        StartError::OtherProtocol => {
            let spoken = address.protocol();
            Some(CallError::OtherProtocol { spoken })
        }
        StartError::Bind(error) => Some(CallError::Unbound(error)),
        StartError::NoStreams => {
            let reason = "the peer takes no calls with streams";
            Some(CallError::NoStreams { reason })
        }
        // Of the reasons there may be one day all are of this connection.
        _ => None,
    }
}

fn not_connected() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the channel is closed")
}

fn closed_failure() -> ConnectionFailure {
    not_connected().into()
}

/// Returns the error of a call that comes too late.
pub(super) fn closed_error() -> CallError {
    CallError::Disconnected {
        cause: Arc::new(not_connected()),
        may_have_executed: false,
    }
}
