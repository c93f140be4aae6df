//! The calls of a connection that have streams, while their handlers run.

use std::collections::VecDeque;
use std::sync::Arc;

use tenon_proto::connection::{DeferredId, ItemMessage, PushError, StreamId};
use tenon_wire::Buffer;

use super::awaited_writers::AwaitedWriters;
use super::item_memory::ItemMemory;
use super::waiting_callbacks::ServedConnection;
use crate::serve::registry::CallToServe;
use crate::streams::StreamPipe;

/// The calls of a connection that have streams.
#[derive(Debug, Default)]
pub(super) struct PipedCalls {
    calls: Vec<PipedCall>,
    /// Handlers that may hand over further items, and are to be woken.
    writers: AwaitedWriters,
}

/// A call that has streams, while its handler runs.
#[derive(Debug)]
struct PipedCall {
    number: u32,
    call: CallToServe,
    pipe: Arc<StreamPipe>,
    /// Items that the handler has handed over, and for which the connection has had no room.
    backlog: VecDeque<Buffer>,
    /// The reply, which waits for them.
    reply: Option<(DeferredId, Buffer)>,
}

impl PipedCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the number of those calls.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether a handler has waited for items, and may again.
    pub(super) fn expect_items(&self) -> bool {
        self.calls.iter().any(|call| call.pipe.expects_items())
    }

    /// Adds a call that begins; returns what lies between the connection and its handler.
    pub(super) fn open(&mut self, call: &CallToServe) -> Arc<StreamPipe> {
        let pipe = Arc::<StreamPipe>::default();
        self.calls.push(PipedCall {
            number: call.caller.number(),
            call: *call,
            pipe: Arc::clone(&pipe),
            backlog: VecDeque::new(),
            reply: None,
        });
        pipe
    }

    fn find(&mut self, number: u32) -> Option<&mut PipedCall> {
        find(&mut self.calls, number)
    }

    /// Takes the handlers that may hand over further items, and are to be woken.
    #[inline]
    pub(super) fn take_writers(&mut self) -> AwaitedWriters {
        std::mem::take(&mut self.writers)
    }

    /// Has handlers woken [later](Self::take_writers).
    pub(super) fn keep_writers(&mut self, writers: AwaitedWriters) {
        self.writers = writers;
    }

    /// Hands an item to its handler, or drops it if that is gone, and lets windows grow. It stays out of the road of calls
    /// without streams.
    #[cold]
    pub(super) fn receive(
        &mut self,
        connection: &mut ServedConnection,
        items: &mut ItemMemory,
        item: &ItemMessage<'_>,
    ) {
        match self.find(item.id.number) {
            Some(call) => call.pipe.push(item),
            None => connection.give_back(item.id, item.size),
        }
        items.let_grow(connection);
    }

    /// Tells a handler that no further items come.
    pub(super) fn end(&mut self, id: StreamId) {
        if let Some(call) = self.find(id.number) {
            call.pipe.end();
        }
    }

    /// Tells a handler that its call is over, and drops the items that it has handed over.
    pub(super) fn close(&mut self, number: u32) {
        if let Some(call) = self.find(number) {
            call.backlog.clear();
            call.pipe.close();
        }
    }

    /// Returns a call if its handler has not answered it.
    pub(super) fn unanswered(&self, number: u32) -> Option<&CallToServe> {
        let mut calls = self.calls.iter();
        let call = calls.find(|call| call.number == number && call.reply.is_none());
        call.map(|call| &call.call)
    }

    /// Keeps the reply to a call as long as items wait that the handler has handed over before; returns whether it does.
    /// A handler that was given up hands over no more.
    pub(super) fn hold_reply(&mut self, id: DeferredId, reply: &mut Buffer) -> bool {
        match self.find(id.number()) {
            Some(call) if !call.backlog.is_empty() => {
                call.pipe.close();
                call.reply = Some((id, std::mem::take(reply)));
                true
            }
            _ => false,
        }
    }

    /// Takes a reply for which no items wait any more.
    pub(super) fn take_reply(&mut self) -> Option<(DeferredId, Buffer)> {
        let mut calls = self.calls.iter_mut();
        calls.find_map(|call| call.reply.take_if(|_| call.backlog.is_empty()))
    }

    /// Takes in items that a handler has handed over, unless its call is answered.
    pub(super) fn push_items(
        &mut self,
        connection: &mut ServedConnection,
        number: u32,
        messages: Buffer,
    ) {
        if let Some(call) = find(&mut self.calls, number)
            && call.reply.is_none()
        {
            call.backlog.push_back(messages);
            call.push_backlog(connection, &mut self.writers);
        }
    }

    /// Hands items for which there was no room to the connection, as far as there is some.
    pub(super) fn push_backlogs(&mut self, connection: &mut ServedConnection) {
        while let Some(id) = connection.poll_writable() {
            if let Some(call) = find(&mut self.calls, id.number) {
                call.push_backlog(connection, &mut self.writers);
            }
        }
    }

    /// Notes that a handler has taken items of so many bytes of credit; returns how many are to be given back.
    pub(super) fn note_returned(&mut self, number: u32, bytes: u64) -> u64 {
        let call = self.find(number);
        call.map_or(0, |call| call.pipe.note_returned(bytes))
    }

    /// Returns the bytes of credit that are to be given back, as a handler reads no further; `None` if its call is over.
    pub(super) fn stop_receiving(&mut self, number: u32) -> Option<u64> {
        Some(self.find(number)?.pipe.take_unreturned())
    }

    /// Tells all handlers that their calls are over.
    pub(super) fn close_all(&self) {
        for call in &self.calls {
            call.pipe.close();
        }
    }

    /// Forgets a call that is answered; returns the bytes of credit of its items that were not given back.
    pub(super) fn remove(&mut self, number: u32) -> u64 {
        self.close(number);
        let mut removed = self.calls.extract_if(.., |call| call.number == number);
        removed.next().map_or(0, |call| call.pipe.take_unreturned())
    }
}

fn find(calls: &mut [PipedCall], number: u32) -> Option<&mut PipedCall> {
    calls.iter_mut().find(|call| call.number == number)
}

impl PipedCall {
    /// Hands items to the connection, as far as it has room for them. The handler is one of `writers` then, if it may
    /// hand over others.
    fn push_backlog(&mut self, connection: &mut ServedConnection, writers: &mut AwaitedWriters) {
        let id = StreamId::of_peer(self.number);
        while let Some(mut messages) = self.backlog.pop_front() {
            let length = messages.len();
            match connection.push_item(id, &mut messages) {
                Ok(()) => {
                    if self.pipe.note_accepted(length, messages) {
                        writers.push(&self.pipe);
                    }
                }
                Err(PushError::Full) => return self.backlog.push_front(messages),
                Err(PushError::Over) => {
                    self.backlog.clear();
                    return self.pipe.close();
                }
            }
        }
    }
}
