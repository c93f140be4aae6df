//! Sending what waits. One caller at a time does that for all: while it is in a system call others put their calls
//! behind, and it takes them along the next time. A peer that does not read what it is sent, because it has replies to
//! get rid of first, is read meanwhile.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tenon_core::client::Outgoing;
use tenon_core::error::{ConnectionFailure, SendFailure};
use tenon_core::trains::PacketTrains;
use tenon_core::wait::YieldingLook;
use tenon_net::{Ready, Transport, is_deadline};
use tenon_proto::connection::TransmitBatch;

use super::channel::Channel;
use super::link::{ConnectionSocket, SenderState};
use super::state::{Calls, ChannelState};
use super::wait_handle::WakeHandle;

/// Time after which a sender that cannot read for itself looks whether it can.
const RECHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Time that datagrams wait for room in the socket before they count as lost.
const DATAGRAM_PATIENCE: Duration = Duration::from_millis(100);

/// Times that a caller lets others run before it sleeps between two looks at whether a direct sender is done.
const YIELDS: u32 = 64;

/// The reason why something was not sent.
enum SendError {
    /// There was no room until the deadline.
    Late,
    Failed(ConnectionFailure),
}

/// The sender of a link.
struct ConnectionSender {
    socket: Arc<ConnectionSocket>,
    outgoing: Outgoing,
    room_look: YieldingLook,
}

impl Channel {
    /// Sends what waits, unless another caller does, until nothing does or `deadline` has passed.
    pub(super) fn transmit<'s>(
        &'s self,
        state: MutexGuard<'s, ChannelState>,
        deadline: Instant,
    ) -> MutexGuard<'s, ChannelState> {
        let mut state = self.wait_for_direct(state);
        let Some(mut sender) = state.begin_sending() else {
            return state;
        };
        if state.waiters.has_woken_many() {
            // Those that were woken have their next calls ready in a moment: then all go out together.
            drop(state);
            thread::yield_now();
            state = self.lock();
        }
        while state.next_transmission(&mut sender) {
            drop(state);
            let sent = self.send(&mut sender, deadline);
            state = self.lock();
            match sent {
                Ok(()) => state.handle_transmitted(&mut sender),
                Err(SendError::Late) => {
                    state.leave_rest(sender);
                    return state;
                }
                Err(SendError::Failed(failure)) => {
                    state.handle_send_failed(sender, failure);
                    return state;
                }
            }
        }
        state.end_sending(sender);
        state
    }

    /// Waits until a caller is done that sends its own call directly. That takes one system call that does not wait.
    #[inline]
    fn wait_for_direct<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
    ) -> MutexGuard<'s, ChannelState> {
        let mut looks = 0;
        while state
            .link
            .as_ref()
            .is_some_and(|link| !link.is_direct_over())
        {
            drop(state);
            looks += 1;
            if looks < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(Duration::from_micros(50));
            }
            state = self.lock();
        }
        state
    }

    fn send(&self, sender: &mut ConnectionSender, deadline: Instant) -> Result<(), SendError> {
        let ConnectionSender {
            socket,
            outgoing,
            room_look,
        } = sender;
        match outgoing {
            Outgoing::Stream(batch) => self.send_batch(socket, batch, room_look, deadline),
            Outgoing::Datagram(trains) => {
                self.send_train(socket, trains);
                Ok(())
            }
        }
    }

    #[inline]
    fn send_batch(
        &self,
        socket: &Arc<ConnectionSocket>,
        batch: &mut TransmitBatch,
        room_look: &mut YieldingLook,
        deadline: Instant,
    ) -> Result<(), SendError> {
        while !socket.try_send(batch)? {
            // A program that steps never waits.
            let may_look = Instant::now() < deadline;
            if !(may_look && socket.look_for_room(batch, room_look)?) {
                self.wait_for_room(socket, deadline)?;
            }
        }
        Ok(())
    }

    /// Waits until more can be sent. Meanwhile it takes in what the peer sends: the peer may not read before it got
    /// rid of that.
    #[cold]
    fn wait_for_room(
        &self,
        socket: &Arc<ConnectionSocket>,
        deadline: Instant,
    ) -> Result<(), SendError> {
        loop {
            let mut state = self.lock();
            let silent_at = state.silence_timeout();
            let until = silent_at.map_or(deadline, |at| at.min(deadline));
            let reader = self.read_over(&mut state, socket);
            drop(state);
            let waited = match &reader {
                Some(_) => socket.socket.wait(Ready::EITHER, until),
                None => wait_at_most(socket, RECHECK_INTERVAL, until),
            };
            let ready = match waited {
                Ok(ready) => ready,
                Err(error) if is_deadline(&error) && until < deadline => {
                    drop(reader);
                    self.handle_silence_while_sending(socket)?;
                    continue;
                }
                Err(error) if is_deadline(&error) => return Err(SendError::Late),
                Err(error) => return Err(SendError::Failed(error.into())),
            };
            if ready.readable
                && let Some(mut reader) = reader
            {
                reader.receive_now().map_err(SendError::Failed)?;
            }
            if ready.writable {
                // A peer that takes something is there, whatever else it says.
                self.lock().calls.note_heard();
                return Ok(());
            }
        }
    }

    /// Looks whether the peer is to be given up that takes nothing.
    #[cold]
    fn handle_silence_while_sending(
        &self,
        socket: &Arc<ConnectionSocket>,
    ) -> Result<(), SendError> {
        let mut state = self.lock();
        state.handle_silence(Instant::now());
        if state.is_linked(socket) {
            return Ok(());
        }
        let given_up = io::Error::from(io::ErrorKind::TimedOut);
        Err(SendError::Failed(given_up.into()))
    }

    /// Sends a train of datagrams. What finds no room for too long is lost, as it may be anywhere on its way.
    fn send_train(&self, socket: &ConnectionSocket, trains: &PacketTrains<()>) {
        let mut left = trains.train();
        let until = Instant::now() + DATAGRAM_PATIENCE;
        let mut was_refused = false;
        let fault = loop {
            match socket.socket.try_send_train(left) {
                Ok(sent) if sent >= left.bytes.len() => return,
                Ok(sent) => left = left.behind(sent),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        if let Err(error) = socket.socket.wait(Ready::WRITABLE, until) {
                            break error;
                        }
                    }
                    // An earlier datagram met a closed port; this one was not sent.
                    io::ErrorKind::ConnectionRefused if !was_refused => was_refused = true,
                    _ => break error,
                },
            }
        };
        self.lock().calls.note_fault(fault);
    }
}

impl ConnectionSocket {
    /// Sends as much of a batch as finds room; returns whether that is all.
    #[inline]
    fn try_send(&self, batch: &mut TransmitBatch) -> Result<bool, SendError> {
        while !batch.is_sent() {
            match self.socket.try_send_batch(batch) {
                Ok(sent) => batch.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(SendError::Failed(error.into())),
            }
        }
        Ok(true)
    }

    /// Looks in shared memory for room for a moment, and sends what finds some; returns whether something has. A peer that
    /// takes what was sent need not wake this end then. At a socket a look is a system call, and takes as long.
    #[cold]
    fn look_for_room(
        &self,
        batch: &mut TransmitBatch,
        room_look: &mut YieldingLook,
    ) -> Result<bool, SendError> {
        if self.socket.transport() != Transport::Shm {
            return Ok(false);
        }
        let left = batch.remaining();
        room_look.look(&self.wait_context(), || {
            let is_all = self.try_send(batch)?;
            Ok(is_all || batch.remaining() < left)
        })
    }
}

/// Waits until there is room, or for as long as `limit`.
fn wait_at_most(
    socket: &ConnectionSocket,
    limit: Duration,
    deadline: Instant,
) -> io::Result<Ready> {
    let until = deadline.min(Instant::now() + limit);
    match socket.socket.wait(Ready::WRITABLE, until) {
        Err(error) if is_deadline(&error) && until < deadline => Ok(Ready::default()),
        waited => waited,
    }
}

impl ChannelState {
    /// Becomes the sender, unless a caller is.
    #[inline]
    fn begin_sending(&mut self) -> Option<ConnectionSender> {
        let link = self.link.as_mut()?;
        if !link.is_send_free() {
            return None;
        }
        link.sending = SenderState::Queue;
        Some(ConnectionSender {
            socket: Arc::clone(&link.socket),
            outgoing: link.outgoing.take()?,
            room_look: link.room_look,
        })
    }

    /// Makes out what is to be sent next; returns whether there is anything.
    #[inline]
    fn next_transmission(&mut self, sender: &mut ConnectionSender) -> bool {
        if !self.is_linked(&sender.socket) {
            return false;
        }
        let has_next = sender.outgoing.advance(&mut self.calls);
        if !self.pipes.is_empty() {
            self.wake_writers();
        }
        has_next
    }

    /// Wakes the callers that have waited for room for items of streams, and for which there is some now.
    #[cold]
    fn wake_writers(&mut self) {
        let Calls::Stream(connection) = &mut self.calls else {
            return;
        };
        while let Some(id) = connection.poll_writable() {
            if let Some(writer) = self.pipes.writer(id.number) {
                self.waiters.wake(writer).inspect(WakeHandle::wake);
            }
        }
    }

    /// Everything was sent.
    #[inline]
    fn handle_transmitted(&mut self, sender: &mut ConnectionSender) {
        sender.outgoing.handle_transmitted(&mut self.calls);
    }

    /// The sender's role is free again.
    #[inline]
    fn end_sending(&mut self, sender: ConnectionSender) {
        match self.link_over(&sender.socket) {
            Some(link) => {
                link.sending = SenderState::Idle;
                link.outgoing = Some(sender.outgoing);
                link.room_look = sender.room_look;
                link.used_at = Instant::now();
            }
            None => self.end_failed(sender),
        }
    }

    /// The reader has found meanwhile that the connection failed.
    #[cold]
    fn end_failed(&mut self, mut sender: ConnectionSender) {
        self.end_link(&sender.socket, sender.outgoing.batch_mut());
    }

    /// The sender's time is over before everything was sent: another caller goes on.
    #[cold]
    fn leave_rest(&mut self, mut sender: ConnectionSender) {
        if !self.is_linked(&sender.socket) {
            return self.end_failed(sender);
        }
        if let (Outgoing::Stream(batch), Calls::Stream(connection)) =
            (&mut sender.outgoing, &mut self.calls)
            && !connection.put_back(batch)
            && connection.in_flight() <= 1
            && connection
                .next_call_deadline()
                .is_none_or(|at| at <= Instant::now())
            && !self.is_stepped
        {
            // The peer has a part of a call that is not waited for any more: nothing else can be sent behind it.
            let failure = io::Error::from(io::ErrorKind::TimedOut).into();
            return self.handle_failed(sender, &failure);
        }
        self.end_sending(sender);
        self.waiters.wake_next().inspect(WakeHandle::wake);
    }

    /// Nothing can be sent over the connection any more. What the peer has sent before is received first: replies,
    /// and perhaps a message that says which calls it did not begin. The reader that comes to the end of it ends the
    /// calls that are left.
    #[cold]
    fn handle_send_failed(&mut self, sender: ConnectionSender, failure: ConnectionFailure) {
        let Some(link) = self.link_over(&sender.socket) else {
            return self.end_failed(sender);
        };
        link.sending = SenderState::Failed;
        link.outgoing = Some(sender.outgoing);
        link.send_failure = Some(SendFailure::new(failure, Instant::now()));
        self.waiters.wake_next().inspect(WakeHandle::wake);
    }

    /// The connection has failed, and its sender ends its calls.
    #[cold]
    fn handle_failed(&mut self, sender: ConnectionSender, failure: &ConnectionFailure) {
        self.break_link(&sender.socket, failure);
        self.end_failed(sender);
    }
}
