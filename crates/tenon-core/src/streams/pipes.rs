//! The calls of a channel that have streams.

use std::sync::Arc;

use tenon_proto::connection::ItemMessage;

use super::pipe::StreamPipe;

/// The calls of a channel that have streams, and what lies between each and its connection. `W` names the caller that
/// waits for one.
#[derive(Debug)]
pub struct StreamPipes<W> {
    calls: Vec<PipesOfCall<W>>,
}

#[derive(Debug)]
struct PipesOfCall<W> {
    number: u32,
    pipe: Arc<StreamPipe>,
    reader: W,
    writer: Option<W>,
}

impl<W> Default for StreamPipes<W> {
    fn default() -> Self {
        Self { calls: Vec::new() }
    }
}

impl<W: Copy> StreamPipes<W> {
    /// Adds the call `number`.
    pub fn open(&mut self, number: u32, reader: W) {
        self.calls.push(PipesOfCall {
            number,
            pipe: Arc::default(),
            reader,
            writer: None,
        });
    }

    /// Forgets a call.
    pub fn close(&mut self, number: u32) {
        self.calls.retain(|call| call.number != number);
    }

    /// Returns whether no call has streams.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns what lies between a call and its connection.
    pub fn pipe(&self, number: u32) -> Option<&Arc<StreamPipe>> {
        self.find(number).map(|call| &call.pipe)
    }

    /// Returns the number of the call that a caller waits for, and what lies between the call and its connection.
    pub fn of_reader(&self, reader: W) -> Option<(u32, &Arc<StreamPipe>)>
    where
        W: PartialEq,
    {
        let call = self.calls.iter().find(|call| call.reader == reader)?;
        Some((call.number, &call.pipe))
    }

    fn find(&self, number: u32) -> Option<&PipesOfCall<W>> {
        self.calls.iter().find(|call| call.number == number)
    }

    /// Hands an item that was received to the call that it is of; returns the caller that waits for it. `None` if the
    /// call is not there any more.
    pub fn push(&self, item: &ItemMessage<'_>) -> Option<W> {
        let call = self.find(item.id.number)?;
        call.pipe.push(item);
        Some(call.reader)
    }

    /// Notes that a caller waits until items of a call may be handed over; no caller does if it is `None`.
    pub fn set_writer(&mut self, number: u32, writer: Option<W>) {
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|call| call.number == number) {
            call.writer = writer;
        }
    }

    /// Returns the caller that waits until items of a call may be handed over.
    pub fn writer(&self, number: u32) -> Option<W> {
        self.find(number)?.writer
    }
}
