//! The streams of the calls of a connection, between the connection and the handlers.

use std::sync::Arc;
use std::time::Instant;

use tenon_proto::connection::{DeferredId, StreamId};
use tenon_proto::lean::{CallStreams, Status};
use tenon_wire::Buffer;

use super::ServedStream;
use super::awaited_writers::AwaitedWriters;
use crate::serve::registry::CallToServe;
use crate::streams::StreamPipe;

/// Text of the exception that ends a call with streams.
const END_TEXT: &str = "the server stops, or ends the connection";

impl ServedStream {
    /// Takes memory for the items that may come for a call with such streams, which is to begin; returns whether there is
    /// some.
    #[cold]
    pub fn reserve_items(&mut self, streams: CallStreams) -> bool {
        !streams.argument || self.items.reserve()
    }

    /// Returns what lies between the connection and the handler of a call with streams, which begins.
    pub fn open_streams(&mut self, call: &CallToServe) -> Arc<StreamPipe> {
        self.piped.open(call)
    }

    /// Takes in items that a handler has handed over.
    pub fn push_items(&mut self, number: u32, messages: Buffer) {
        (self.piped).push_items(&mut self.connection, number, messages);
    }

    /// Takes the handlers that may hand over further items, and are to be woken.
    #[inline]
    pub fn take_writers(&mut self) -> AwaitedWriters {
        self.piped.take_writers()
    }

    /// Has handlers woken [later](Self::take_writers).
    #[cold]
    pub fn keep_writers(&mut self, writers: AwaitedWriters) {
        self.piped.keep_writers(writers);
    }

    /// Notes that a handler has taken items of so many bytes of credit.
    pub fn give_back(&mut self, number: u32, bytes: u64) {
        let returned = self.piped.note_returned(number, bytes);
        if returned > 0 {
            let id = StreamId::of_peer(number);
            self.connection.give_back(id, returned);
        }
    }

    /// Notes that a handler reads no further.
    pub fn stop_receiving(&mut self, number: u32) {
        if let Some(unreturned) = self.piped.stop_receiving(number) {
            let id = StreamId::of_peer(number);
            self.connection.stop_receiving(id);
            if unreturned > 0 {
                self.connection.give_back(id, unreturned);
            }
        }
    }

    /// Forgets the streams of a call that is answered.
    #[cold]
    pub(super) fn close_streams(&mut self, number: u32) {
        let unreturned = self.piped.remove(number);
        if unreturned > 0 {
            let id = StreamId::of_peer(number);
            self.connection.stop_receiving(id);
            self.connection.give_back(id, unreturned);
        }
        if self.piped.is_empty() {
            self.items.release();
        }
    }

    /// Refuses a call with streams that is not begun: what comes of its items is dropped.
    pub fn refuse_streaming(&mut self, call: &CallToServe, reply: &mut Buffer) {
        match self.connection.defer(&call.caller, call.deadline) {
            Some(id) => self.answer_deferred(id, reply),
            None => self.push_reply(reply),
        }
        if self.piped.is_empty() {
            self.items.release();
        }
    }

    /// Answers the calls with streams whose handlers still run with the exception of a server that stops, behind the items
    /// that have found room. Their handlers find their callers gone. Returns whether there were any.
    #[cold]
    pub fn end_streaming_calls(&mut self) -> bool {
        let mut has_ended = false;
        let ids: Vec<_> = self.deferred.iter().map(|call| call.id).collect();
        for id in ids {
            if let Some(call) = self.piped.unanswered(id.number()) {
                let mut reply = Buffer::default();
                call.refuse(Status::STOPPING, END_TEXT, &mut reply);
                self.cut_off(id, &mut reply);
                has_ended = true;
            }
        }
        has_ended
    }

    /// Answers a call with streams whose handler still runs.
    fn cut_off(&mut self, id: DeferredId, reply: &mut Buffer) {
        // A handler that finds its streams closed may ask why.
        self.note_cancelled(id);
        self.forget_deferred(id);
        self.has_answered = true;
        self.connection.cut_off_deferred(id, reply);
    }

    /// Ends the calls with streams of a connection that [ends by its age](Self::look_at_age) and has had its grace by `now`;
    /// returns whether there were any.
    pub fn end_aged_streams(&mut self, now: Instant) -> bool {
        !self.piped.is_empty() && self.age.begin_last_items(now) && self.end_streaming_calls()
    }

    /// Returns whether what comes is needed to end what is carried out: a call with streams is, or its last items and its
    /// reply wait for credit, or a handler waits for a call back.
    #[inline]
    pub fn has_streams(&self) -> bool {
        !self.piped.is_empty() || self.connection.has_peer_streams() || self.has_callbacks()
    }

    /// Returns whether a handler has waited for items, and may again.
    pub fn expects_items(&self) -> bool {
        self.piped.expect_items()
    }

    /// Returns the number of calls with streams that are carried out.
    pub fn streaming(&self) -> usize {
        self.piped.len()
    }

    /// Goes on with the items for which there was no room.
    #[cold]
    pub(super) fn push_backlogs(&mut self) {
        self.piped.push_backlogs(&mut self.connection);
        self.answer_held();
    }

    /// Answers the calls of which all items have found room.
    pub(super) fn answer_held(&mut self) {
        while let Some((id, mut reply)) = self.piped.take_reply() {
            self.finish_deferred(id, &mut reply);
        }
    }
}
