//! Receiving: everything that has come is taken in under one lock, and each task that waits for a part of it is woken
//! once.

use std::io;

use tenon_core::client::buffers::take_spare;
use tenon_core::client::{Answered, Input, NextMessage, Outcome};
use tenon_core::error::{ConnectionFailure, port_closed};
use tenon_net::ReceivedTrain;
use tenon_proto::connection::ServiceTable;

use super::channel::SharedChannel;
use super::state::{ChannelState, ReaderState};
use super::waiters::WaiterId;
use crate::watch::is_for_now;

impl ReaderState {
    /// Receives once what is there; returns whether there may be more.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; what the socket reports.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let room = self.input.room();
        let length = room.len();
        let came = self.socket.get_ref().try_recv(room);
        self.handle_received(came, length)
    }

    /// Takes in what a receive into a room of so many bytes has reported; returns whether there may be more.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub(super) fn handle_received(
        &mut self,
        came: io::Result<ReceivedTrain>,
        room: usize,
    ) -> io::Result<bool> {
        let received = came.as_ref().map_or(0, |came| came.length);
        self.input.handle_received(came)?;
        let transport = self.socket.get_ref().transport();
        Ok(tenon_core::client::may_have_more(transport, received, room))
    }
}

impl ChannelState {
    /// Takes in all messages that have come whole.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn take_all<'s>(
        &mut self,
        half: &mut ReaderState,
        services: impl Fn() -> &'s ServiceTable,
    ) -> Result<(), ConnectionFailure> {
        // What came over a connection that is given up says nothing of the one that follows it.
        if self.link_over(&half.socket).is_none() {
            return Ok(());
        }
        loop {
            let taken = half
                .input
                .take_next(&mut self.calls, &self.pipes, &services, None)?;
            if let Some(size) = half.input.likely_train() {
                half.socket.get_ref().expect_train(size);
            }
            match taken {
                NextMessage::Nothing => break,
                NextMessage::Answered(answered) => self.hand_out(&mut half.input, answered),
                NextMessage::Closing(error, unbegun) => {
                    for waiter in unbegun {
                        self.end(waiter, Outcome::Answered(Err(Box::new(error.clone()))));
                    }
                }
                NextMessage::Unbegun(_, waiter) if self.has_open_streams(waiter) => {
                    self.end_unbegun_streams(waiter);
                }
                NextMessage::Unbegun(unsent, waiter) => self.queue_again(*unsent, waiter),
                NextMessage::Item(waiter) => self.woken.extend(self.waiters.wake(waiter)),
                NextMessage::Called(call) => self.begin_callback(*call),
                NextMessage::Cancelled(id) => self.running.note_cancelled(id),
                NextMessage::Other => {}
            }
        }
        if !half.input.is_stream() {
            self.end_failed_calls();
        }
        Ok(())
    }

    fn hand_out(&mut self, input: &mut Input, answered: Answered<WaiterId>) {
        self.note_answer();
        let Answered { waiter, outcome } = answered;
        let outcome = match outcome {
            // The spare of this thread is that of the call itself, where a task looks for its reply.
            Ok(reply) => Outcome::of_reply(input, &reply, || {
                take_spare().unwrap_or_else(|| self.buffers.take())
            }),
            Err(error) => Outcome::Answered(Err(error)),
        };
        self.end(waiter, outcome);
    }
}

impl SharedChannel {
    /// Receives once over `half` and hands out what has come; returns whether there may be more.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn receive(
        &self,
        half: &mut ReaderState,
    ) -> Result<ReceiveProgress, ConnectionFailure> {
        let received = half.receive();
        self.handle_received(half, received)
    }

    /// Hands out what a receive has brought.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn handle_received(
        &self,
        half: &mut ReaderState,
        received: io::Result<bool>,
    ) -> Result<ReceiveProgress, ConnectionFailure> {
        match received {
            Ok(may_have_more) => {
                let mut state = self.lock();
                state.calls.note_heard();
                state.take_all(half, || self.services())?;
                drop(state);
                Ok(if may_have_more {
                    ReceiveProgress::MayHaveMore
                } else {
                    ReceiveProgress::All
                })
            }
            Err(error) if is_for_now(&error) => Ok(ReceiveProgress::Nothing),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let mut state = self.lock();
                let error = port_closed(&state.located, error);
                state
                    .calls
                    .handle_refusal(error, std::time::Instant::now())?;
                state.end_failed_calls();
                state.calls.check_peer()?;
                // Of what is behind the report nothing was said.
                Ok(ReceiveProgress::MayHaveMore)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The result of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiveProgress {
    /// There may be more to receive.
    MayHaveMore,
    /// That was all for now.
    All,
    /// There was nothing.
    Nothing,
}
