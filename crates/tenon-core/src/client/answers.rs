//! Finding the answers to the calls of a channel in what was received.

use std::io;
use std::sync::Arc;

use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    AbandonedCall, Answer, Connection, DeferredId, PeerClosing, PlainAnswer, Received,
    ReceivedCall, ReplyError, ServiceTable, UnsentCall,
};
use tenon_proto::lean::{Close, CloseReason};

use super::calls::{CallId, Calls, DatagramCalls};
use super::datagram_input::DatagramInput;
use super::input::{Input, ReplyExtensions, ReplyPlace};
use crate::error::{CallError, ConnectionFailure};
use crate::streams::StreamPipes;

/// A call that is answered.
#[derive(Debug)]
pub struct Answered<W> {
    /// The caller that waits for it.
    pub waiter: W,
    /// Place of the results in the message, or the error that the answer is instead.
    pub outcome: Result<ReplyPlace, Box<CallError>>,
}

/// Message that was taken out of what was received.
#[derive(Debug)]
pub enum NextMessage<W> {
    /// There is no whole message.
    Nothing,
    /// An answer.
    Answered(Answered<W>),
    /// The peer begins nothing any more, and has not begun the calls of these waiters, which end with this error.
    Closing(CallError, Vec<W>),
    /// The peer has not begun the call of this waiter, which can be started again.
    Unbegun(Box<UnsentCall>, W),
    /// An item for the call of this waiter.
    Item(W),
    /// A call of the peer, which is to be carried out.
    Called(Box<ReceivedCall>),
    /// The peer does not wait for a call any more that is carried out.
    Cancelled(DeferredId),
    /// A message that says nothing to a caller.
    Other,
}

impl Input {
    /// Takes the next message out of what was received, and finds the call that it answers. `own` is the call of the
    /// caller that reads, which is looked for first. Items go to their calls in `pipes`; `services` are those that this
    /// end serves.
    ///
    /// # Errors
    /// The connection has failed.
    #[inline]
    pub fn take_next<'s, W: Copy + PartialEq>(
        &mut self,
        calls: &mut Calls<W>,
        pipes: &StreamPipes<W>,
        services: impl FnOnce() -> &'s ServiceTable,
        own: Option<(W, CallId)>,
    ) -> Result<NextMessage<W>, ConnectionFailure> {
        match (self, calls) {
            (Self::Stream(receiver), Calls::Stream(connection)) => {
                next_message(connection, receiver, pipes, services)
            }
            (Self::Datagram(input), Calls::Datagram(calls)) => {
                if !input.advance() {
                    return Ok(NextMessage::Nothing);
                }
                Ok(
                    next_answer(calls, input, own)
                        .map_or(NextMessage::Other, NextMessage::Answered),
                )
            }
            _ => Ok(NextMessage::Nothing),
        }
    }
}

/// Takes the next message of a stream in.
#[inline]
fn next_message<'s, W: Copy + PartialEq>(
    connection: &mut Connection<W>,
    receiver: &mut Receiver,
    pipes: &StreamPipes<W>,
    services: impl FnOnce() -> &'s ServiceTable,
) -> Result<NextMessage<W>, ConnectionFailure> {
    if let Some(answer) = connection.next_plain_reply(receiver) {
        let PlainAnswer {
            waiter,
            order,
            place,
        } = answer;
        return Ok(NextMessage::Answered(Answered {
            waiter,
            outcome: Ok(ReplyPlace {
                place,
                order,
                extensions: None,
            }),
        }));
    }
    if receiver.is_between_frames() {
        return Ok(NextMessage::Nothing);
    }
    next_rare_message(connection, receiver, pipes, services())
}

/// Takes a message in that is more than a successful reply.
#[inline(never)]
fn next_rare_message<W: Copy + PartialEq>(
    connection: &mut Connection<W>,
    receiver: &mut Receiver,
    pipes: &StreamPipes<W>,
    services: &ServiceTable,
) -> Result<NextMessage<W>, ConnectionFailure> {
    Ok(match connection.next_uncommon(receiver, services)? {
        Received::Nothing => NextMessage::Nothing,
        Received::Call(call) => NextMessage::Called(Box::new(call)),
        Received::Cancelled(id) => NextMessage::Cancelled(id),
        Received::Answered(answer) => {
            let length = answer.outcome.as_ref().map_or(0, |results| results.len());
            let mut answered = Answered::of(answer);
            if let Ok(reply) = &mut answered.outcome {
                // The results end the message.
                let end = receiver.last_content().len();
                reply.place = end - length..end;
            }
            NextMessage::Answered(answered)
        }
        Received::PeerClosing(closing) => closing_event(closing)?,
        Received::Item(item) => match pipes.push(&item) {
            Some(waiter) => NextMessage::Item(waiter),
            None => {
                connection.give_back(item.id, item.size);
                NextMessage::Other
            }
        },
        Received::Unbegun(AbandonedCall {
            waiter,
            unsent: Some(unsent),
            ..
        }) => NextMessage::Unbegun(Box::new(unsent), waiter),
        _ => NextMessage::Other,
    })
}

#[cold]
fn closing_event<W>(closing: PeerClosing<'_, W>) -> Result<NextMessage<W>, ConnectionFailure> {
    // What the peer takes for a violation ends everything.
    if closing.close.reason == CloseReason::VIOLATION {
        return Err(closing_cause(&closing.close).into());
    }
    let unbegun = closing.unbegun.into_iter().map(|call| call.waiter);
    let error = closing_error(&closing.close);
    Ok(NextMessage::Closing(error, unbegun.collect()))
}

fn closing_cause(close: &Close<'_>) -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        format!("the peer closed the connection: {close}"),
    )
}

/// Returns the error of a call that a peer which closes the connection has not begun.
pub(crate) fn closing_error(close: &Close<'_>) -> CallError {
    CallError::Disconnected {
        cause: Arc::new(closing_cause(close)),
        may_have_executed: false,
    }
}

/// Returns the waiter of an answer, and what the peer says beside the results, or the error that the answer is instead.
pub(crate) fn result_of<W>(
    answer: Answer<'_, W>,
) -> (W, Result<Option<Box<ReplyExtensions>>, Box<CallError>>) {
    let extensions = match answer.extensions.is_empty() {
        true => None,
        false => Some(ReplyExtensions::of(answer.extensions)),
    };
    let outcome = match answer.outcome {
        Ok(_) => Ok(extensions),
        Err(error) => Err(answer_error(error, extensions)),
    };
    (answer.waiter, outcome)
}

/// Takes in the datagram that was handed out last; returns the answer, if that makes one whole.
fn next_answer<W: Copy + PartialEq>(
    calls: &mut DatagramCalls<W>,
    input: &mut DatagramInput,
    own: Option<(W, CallId)>,
) -> Option<Answered<W>> {
    calls.fault = None;
    let now = input.received_at();
    let (datagram, whole) = input.last_datagram();
    if let Some((waiter, CallId::Datagram(id))) = own
        && let Some(place) = calls.endpoint.take_common(now, datagram, id)
    {
        return Some(Answered {
            waiter,
            outcome: Ok(ReplyPlace {
                place,
                ..ReplyPlace::default()
            }),
        });
    }
    let datagram_start = datagram.as_ptr() as usize;
    let answer = calls.endpoint.handle_datagram(now, datagram, whole)?;
    let results = answer.outcome.as_ref().map_or(&[][..], |results| results);
    let (start, length) = (results.as_ptr() as usize, results.len());
    let mut answered = Answered::of(answer);
    let message = input.message();
    // What was joined lies elsewhere than the datagram.
    let begin = match message.as_ptr() as usize {
        joined if joined != datagram_start && length > 0 => start - joined,
        _ if length > 0 => start - datagram_start,
        _ => 0,
    };
    if let Ok(reply) = &mut answered.outcome {
        reply.place = begin..begin + length;
    }
    Some(answered)
}

/// Returns the error of an answer without a result, with the metadata that came with it.
#[cold]
fn answer_error(error: ReplyError<'_>, extensions: Option<Box<ReplyExtensions>>) -> Box<CallError> {
    let mut error = CallError::from(error);
    if let (CallError::Exception(exception), Some(extensions)) = (&mut error, extensions) {
        exception.metadata = extensions.metadata;
    }
    Box::new(error)
}

impl<W> Answered<W> {
    /// The same without what lies in the message. The place of the results in it is to be filled in.
    #[inline]
    fn of(answer: Answer<'_, W>) -> Self {
        let order = answer.order;
        let (waiter, outcome) = result_of(answer);
        let outcome = outcome.map(|extensions| ReplyPlace {
            place: 0..0,
            order,
            extensions,
        });
        Self { waiter, outcome }
    }
}
