//! The future of one call.

use std::pin::Pin;
use std::task::{Context, Poll};

use tenon::CallError;
use tenon::runtime::{Results, SlotId, Timer};

use super::Channel;
use super::written::Written;

/// A call, sent when it is polled first. Dropping it gives the call up.
pub(crate) struct Ticket<'c> {
    channel: &'c Channel,
    progress: Progress,
}

enum Progress {
    Written(Written, Timer),
    /// It is one of the channel's calls.
    Given(SlotId),
    Over,
}

impl<'c> Ticket<'c> {
    pub(crate) fn new(channel: &'c Channel, written: Written, timer: Timer) -> Self {
        Self {
            channel,
            progress: Progress::Written(written, timer),
        }
    }
}

impl Future for Ticket<'_> {
    type Output = Result<Results, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let progress = match std::mem::replace(&mut self.progress, Progress::Over) {
            Progress::Written(written, timer) => {
                let slot = self.channel.send(written, timer, cx.waker())?;
                Progress::Given(slot)
            }
            Progress::Given(slot) => match self.channel.fetch(slot, cx.waker()) {
                Some(outcome) => return Poll::Ready(outcome),
                None => Progress::Given(slot),
            },
            Progress::Over => unreachable!("a call is over once"),
        };
        self.progress = progress;
        Poll::Pending
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Progress::Given(slot) = self.progress {
            self.channel.give_up(slot);
        }
    }
}
