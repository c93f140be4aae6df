//! The state that the callers of a channel share, under its one lock.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::back_off::BackOff;
use tenon_core::callbacks::RunningCallbacks;
use tenon_core::client::buffers::Buffers;
use tenon_core::client::{CallId, Outcome, Outgoing, ResultBytes};
use tenon_core::error::{CallError, ConnectionFailure};
use tenon_core::options::ChannelOptions;
use tenon_core::streams::StreamPipes;
use tenon_net::Address;
use tenon_proto::connection::{StartError, TransmitBatch, UnsentCall};

use super::callback_pool::CallbackPool;
use super::link::{ActiveConnection, ConnectionSocket, ReadHalf, SenderState};
use super::wait_handle::WakeHandle;
use super::waiters::{WaiterId, WaiterQueue};

/// The calls of a channel.
pub(super) type Calls = tenon_core::client::Calls<WaiterId>;

pub(super) struct ChannelState {
    pub(super) calls: Calls,
    /// What is served of calls of the server, if anything is.
    pub(super) services: Option<Arc<CallbackPool>>,
    /// The calls of the server that are carried out.
    pub(super) callbacks: RunningCallbacks,
    /// Bytes of the largest call that is sent.
    send_max: usize,
    pub(super) link: Option<ActiveConnection>,
    /// The address at which the peer was found last.
    pub(super) located: Address,
    pub(super) waiters: WaiterQueue,
    pub(super) buffers: Buffers,
    /// Calls with streams.
    pub(super) pipes: StreamPipes<WaiterId>,
    /// Callers that wait until the peer takes another call, in their order.
    pub(super) blocked: VecDeque<WaiterId>,
    /// Callers that wait until the peer takes another call with streams.
    pub(super) awaiting_streams: Vec<WaiterId>,
    /// Calls that were not sent whole when their connection was lost.
    pub(super) unsent: VecDeque<(UnsentCall, WaiterId)>,
    /// True while a caller makes a connection.
    pub(super) is_connecting: bool,
    pub(super) back_off: BackOff,
    pub(super) connections: u64,
    /// Batches that are open.
    pub(super) open_batches: usize,
    /// True if an event loop [steps](super::stepper): what finds no room waits for the next step.
    pub(super) is_stepped: bool,
}

impl ChannelState {
    pub(super) fn new(
        address: &Address,
        is_datagram: bool,
        options: &ChannelOptions,
        services: Option<&Arc<CallbackPool>>,
    ) -> Self {
        let callbacks_max = services.map_or(0, |pool| pool.calls_max);
        Self {
            calls: Calls::new(address, is_datagram, options, callbacks_max),
            services: services.cloned(),
            callbacks: RunningCallbacks::default(),
            send_max: options.send_max,
            link: None,
            located: address.clone(),
            waiters: WaiterQueue::new(options.waiting),
            buffers: Buffers::default(),
            pipes: StreamPipes::default(),
            blocked: VecDeque::new(),
            awaiting_streams: Vec::new(),
            unsent: VecDeque::new(),
            is_connecting: false,
            back_off: BackOff::default(),
            connections: 0,
            open_batches: 0,
            is_stepped: false,
        }
    }

    /// Goes on over a new connection to a peer that was found at `located`.
    pub(super) fn handle_connected(
        &mut self,
        socket: ConnectionSocket,
        located: Address,
        options: &ChannelOptions,
    ) {
        self.connections += 1;
        self.located = located;
        let receiver = self.calls.renew(&socket.socket);
        self.link = Some(ActiveConnection::new(Arc::new(socket), receiver, options));
        self.start_unsent();
    }

    /// Starts the calls again that were not sent when their connection was lost, as far as the peer takes them.
    pub(super) fn start_unsent(&mut self) {
        let Calls::Stream(connection) = &mut self.calls else {
            return;
        };
        while let Some((mut call, waiter)) = self.unsent.pop_front() {
            match connection.restart_call(&mut call, waiter) {
                Ok(started) => self.waiters.set_call(waiter, CallId::Stream(started)),
                Err(StartError::Bind(error)) => {
                    let error = Box::new(CallError::Unbound(error));
                    let wake = self.waiters.deliver(waiter, Outcome::Answered(Err(error)));
                    wake.inspect(WakeHandle::wake);
                }
                Err(_) => {
                    self.unsent.push_front((call, waiter));
                    return;
                }
            }
        }
    }

    /// Returns whether calls are sent over this socket.
    #[inline]
    pub(super) fn is_linked(&self, socket: &Arc<ConnectionSocket>) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| Arc::ptr_eq(&link.socket, socket) && link.failure.is_none())
    }

    /// Returns the link, if it is over this socket and has not failed.
    #[inline]
    pub(super) fn link_over(
        &mut self,
        socket: &Arc<ConnectionSocket>,
    ) -> Option<&mut ActiveConnection> {
        let link = self.link.as_mut();
        link.filter(|link| Arc::ptr_eq(&link.socket, socket) && link.failure.is_none())
    }

    /// Takes what the reader works with, if no caller reads: the one that has it is the reader.
    #[inline]
    pub(super) fn take_read_half(&mut self) -> Option<Box<ReadHalf>> {
        self.link.as_mut()?.reader.take()
    }

    /// Puts that back, or returns it if its link has ended meanwhile.
    #[inline]
    pub(super) fn put_read_half(&mut self, half: Box<ReadHalf>) -> Option<Box<ReadHalf>> {
        match self.link_over(&half.socket) {
            Some(link) => {
                if link.sending == SenderState::Direct && link.socket.is_direct_done() {
                    link.sending = SenderState::Idle;
                }
                link.reader.replace(half)
            }
            None => Some(half),
        }
    }

    /// Returns whether something is to be sent, and no caller sends.
    #[inline]
    pub(super) fn needs_sender(&self) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| {
            link.is_send_free() && (self.calls.has_transmit() || link.has_rest())
        })
    }

    /// Ends the link over `socket`, unless that has been done. A caller that sends over it notices that, and
    /// [ends its calls](Self::end_link): it knows which of them it has sent.
    #[cold]
    pub(super) fn break_link(
        &mut self,
        socket: &Arc<ConnectionSocket>,
        failure: &ConnectionFailure,
    ) {
        let Some(link) = self.link_over(socket) else {
            return;
        };
        let failure = match link.send_failure.take() {
            Some(sending) => sending.failure().clone().after_receiving(failure.clone()),
            None => failure.clone(),
        };
        link.failure = Some(failure);
        socket.shutdown();
        if link.sending != SenderState::Queue {
            self.end_link(socket, None);
        }
    }

    /// Ends the link if calls in datagrams were not answered, so that the next one looks for the peer anew.
    #[cold]
    pub(super) fn leave_lost_peer(&mut self) {
        if let (Err(failure), Some(link)) = (self.calls.check_peer(), &self.link) {
            let socket = Arc::clone(&link.socket);
            self.break_link(&socket, &failure);
        }
    }

    /// Ends the link if nothing can be sent over it, and what the peer still sends was received for long enough.
    #[cold]
    pub(super) fn end_drained_link(&mut self, now: Instant) {
        let drained = self.link.as_ref().and_then(|link| {
            let failure = link.send_failure.as_ref()?;
            let is_over = failure.until() <= now;
            is_over.then(|| (Arc::clone(&link.socket), failure.failure().clone()))
        });
        if let Some((socket, failure)) = drained {
            self.break_link(&socket, &failure);
        }
    }

    /// Returns when the peer is to be asked whether it is there, or is to be given up.
    pub(super) fn silence_timeout(&self) -> Option<Instant> {
        match &self.calls {
            Calls::Stream(connection) => connection.silence_timeout(),
            Calls::Datagram(_) => None,
        }
    }

    /// Asks the peer whether it is there, if that is due at `now`, or gives it up as it has not answered.
    #[cold]
    pub(super) fn handle_silence(&mut self, now: Instant) {
        if let Some(link) = &self.link
            && let Err(silence) = self.calls.handle_silence(now)
        {
            let socket = Arc::clone(&link.socket);
            self.break_link(&socket, &silence);
        }
    }

    /// Ends all calls that are in flight on a link that has failed. `batch` is what was not sent whole. Calls that were
    /// not sent whole wait for the next connection.
    #[cold]
    pub(super) fn end_link(
        &mut self,
        socket: &Arc<ConnectionSocket>,
        batch: Option<&mut TransmitBatch>,
    ) {
        let is_meant = |link: &mut ActiveConnection| Arc::ptr_eq(&link.socket, socket);
        let Some(link) = self.link.take_if(is_meant) else {
            return;
        };
        let failure = link
            .failure
            .unwrap_or_else(|| io::Error::from(io::ErrorKind::Other).into());
        let in_flight = self.calls.in_flight();
        tracing::debug!(?failure, in_flight, "connection lost");
        let is_lost = matches!(failure, ConnectionFailure::Io(_));
        match &mut self.calls {
            Calls::Stream(connection) => {
                if !is_lost {
                    connection.count_violation();
                }
                let rest = link.outgoing.and_then(Outgoing::into_batch);
                if let Some(mut rest) = rest {
                    connection.handle_transmit_failed(&mut rest);
                }
                if let Some(batch) = batch {
                    connection.handle_transmit_failed(batch);
                }
                for call in connection.abandon_all() {
                    match call.unsent {
                        Some(unsent) if is_lost && !unsent.may_be_sent_again() => {
                            let error = failure.clone().into_cut_off(unsent.size(), self.send_max);
                            self.end(call.waiter, Outcome::Answered(Err(Box::new(error))));
                        }
                        Some(unsent) if is_lost => {
                            self.unsent.push_back((unsent, call.waiter));
                            self.waiters.wake(call.waiter).inspect(WakeHandle::wake);
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
        self.callbacks.cancel_all();
        if is_lost {
            self.wake_blocked();
        } else {
            self.end_blocked(&failure);
        }
    }

    /// Tells callers that wait for the peer to take their calls that it refuses, or breaks the protocol: another connection
    /// would end alike.
    fn end_blocked(&mut self, failure: &ConnectionFailure) {
        let blocked = self.blocked.iter().chain(&self.awaiting_streams);
        for waiter in blocked.copied().collect::<Vec<_>>() {
            self.end(waiter, Outcome::Lost(failure.clone(), false));
        }
    }

    /// Leaves an outcome for a waiter, and wakes it.
    #[cold]
    pub(super) fn end(&mut self, waiter: WaiterId, outcome: Outcome) {
        let wake = self.waiters.deliver(waiter, outcome);
        wake.inspect(WakeHandle::wake);
    }

    /// Lets the caller look again that has waited longest for the peer to take its call, and those that wait for streams.
    #[inline]
    pub(super) fn wake_blocked(&mut self) {
        let waiting = self
            .blocked
            .front()
            .into_iter()
            .chain(&self.awaiting_streams);
        for waiter in waiting {
            self.waiters.wake(*waiter).inspect(WakeHandle::wake);
        }
    }

    /// Gives up what a caller waits for, whatever that is.
    #[cold]
    pub(super) fn give_up(&mut self, waiter: WaiterId) {
        if let Some(index) = self.unsent.iter().position(|(_, of)| *of == waiter) {
            self.unsent.remove(index);
        } else if let Some(call) = self.waiters.call(waiter) {
            self.calls.cancel(call);
            self.close_pipe(call);
        }
        self.leave_blocked(waiter);
        self.release(waiter);
    }

    /// Forgets the streams of a call.
    fn close_pipe(&mut self, call: CallId) {
        if let CallId::Stream(call) = call
            && !self.pipes.is_empty()
        {
            self.pipes.close(call.number);
        }
    }

    /// A caller waits no longer for the peer to take its call.
    #[cold]
    pub(super) fn leave_blocked(&mut self, waiter: WaiterId) {
        self.awaiting_streams.retain(|of| *of != waiter);
        if let Some(index) = self.blocked.iter().position(|of| *of == waiter) {
            self.blocked.remove(index);
            self.wake_blocked();
        }
    }

    /// Ends the use of a waiter, and keeps the memory of what came for it and was not fetched.
    #[inline]
    pub(super) fn release(&mut self, waiter: WaiterId) {
        if let Some(outcome) = self.waiters.release(waiter) {
            self.recycle_outcome(outcome);
        }
    }

    #[cold]
    fn recycle_outcome(&mut self, outcome: Outcome) {
        if let Outcome::Answered(Ok(results)) = outcome
            && let ResultBytes::Copied(bytes) = results.bytes
        {
            self.buffers.put(bytes);
        }
    }
}
