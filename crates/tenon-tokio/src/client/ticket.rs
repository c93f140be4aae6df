//! The future of one call.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tenon_core::ReplyMetadata;
use tenon_core::caller::{DecodeBy, Decoding};
use tenon_core::client::buffers::keep_spare;
use tenon_core::client::{Outcome, ResultBytes, Results};
use tenon_core::error::CallError;
use tenon_core::profile::{Followed, Step};
use tenon_core::timer::CallTimer;
use tenon_proto::connection::CallDraft;
use tenon_wire::Buffer;
use tokio::task::coop;

use super::channel::{Channel, SharedChannel};
use super::look::ReplyPoll;
use super::start::CallStart;
use super::waiters::{CallStage, WaiterId};
use crate::watch::yield_to_others;

/// A call, started when it is polled first. Dropping it gives the call up.
pub(super) struct ReplyFuture<'c> {
    channel: &'c Channel,
    timer: CallTimer,
    followed: Option<Arc<Followed>>,
    progress: ReplyFutureState<'c>,
}

enum ReplyFutureState<'c> {
    Written(Buffer, CallDraft<'c>),
    /// It is one of the channel's calls.
    Started(WaiterId),
    /// The same, and its future looks for its reply.
    Looks(WaiterId),
    Over,
}

impl<'c> ReplyFuture<'c> {
    pub(super) fn new(
        channel: &'c Channel,
        (message, draft): (Buffer, CallDraft<'c>),
        timer: CallTimer,
        followed: Option<Arc<Followed>>,
    ) -> Self {
        Self {
            channel,
            timer,
            followed,
            progress: ReplyFutureState::Written(message, draft),
        }
    }

    fn at(&self, step: Step) {
        if let Some(followed) = &self.followed {
            followed.at(step);
        }
    }

    /// Starts the call; returns the reader's role, too, if the future is to look for its reply.
    #[inline]
    fn start(
        &mut self,
        mut message: Buffer,
        draft: &CallDraft<'_>,
        cx: &Context<'_>,
    ) -> Result<CallStart, CallError> {
        let shared = self.channel.shared();
        self.at(Step::Sending);
        let started = shared.start(&mut message, draft, &self.timer, Some(cx.waker()))?;
        self.at(Step::Sent);
        self.progress = ReplyFutureState::Started(started.waiter);
        Ok(started)
    }
}

impl Future for ReplyFuture<'_> {
    type Output = Result<Results, CallError>;

    // Not inline: kilobytes that programs would have in the future of each call that they make.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A peer that always answers within a look must not keep other tasks waiting for ever.
        let coop = ready!(coop::poll_proceed(cx));
        let shared = self.channel.shared();
        let CallStart { waiter, reader } =
            match std::mem::replace(&mut self.progress, ReplyFutureState::Over) {
                ReplyFutureState::Written(message, draft) => self.start(message, &draft, cx)?,
                ReplyFutureState::Looks(waiter) => CallStart {
                    waiter,
                    reader: shared.reader_to_look_on(),
                },
                ReplyFutureState::Started(waiter) => CallStart {
                    waiter,
                    reader: None,
                },
                ReplyFutureState::Over => unreachable!("a call is over once"),
            };
        let looked = reader.map(|half| shared.look(half, Some(waiter)));
        let fetched = shared.fetch(waiter, cx);
        if let Some(outcome) = fetched {
            coop.made_progress();
            self.progress = ReplyFutureState::Over;
            let fault = || shared.lock().calls.fault();
            return Poll::Ready(outcome.into_results(&self.timer, fault));
        }
        self.progress = if looked == Some(ReplyPoll::Yields) {
            yield_to_others(cx);
            ReplyFutureState::Looks(waiter)
        } else {
            ReplyFutureState::Started(waiter)
        };
        Poll::Pending
    }
}

impl Drop for ReplyFuture<'_> {
    fn drop(&mut self) {
        if let ReplyFutureState::Started(waiter) | ReplyFutureState::Looks(waiter) = self.progress {
            self.channel.shared().give_up(waiter);
        }
    }
}

impl SharedChannel {
    /// Returns what has become of a call. If it is not over its task is woken when it is.
    #[inline]
    fn fetch(&self, waiter: WaiterId, cx: &Context<'_>) -> Option<Outcome> {
        let mut state = self.lock();
        if !state.waiters.is_over(waiter) {
            state.waiters.set_task(waiter, cx.waker());
            return None;
        }
        match state.waiters.release(waiter) {
            CallStage::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Gives a call up after its future was dropped.
    fn give_up(&self, waiter: WaiterId) {
        let mut state = self.lock();
        state.give_up(waiter);
        state.wake_driver();
        self.wake(state);
    }
}

/// A call that was started. It is a future of its result, a `T`, or of an `E` that says why there is none; dropping it
/// gives the call up.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1AsyncClient, Greeting, Visitor}, start_server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (server, address) = start_server().await;
/// let greeter = GreeterV1AsyncClient::connect(&address).await?;
/// let ada = Visitor { name: "Ada".into(), visits: 1 };
/// let (first, second) = (greeter.start_greet(&ada)?, greeter.start_greet(&Visitor::default())?);
/// // Both are in flight, whichever is awaited first.
/// assert_eq!(second.await?, Greeting::Void);
/// assert_eq!(first.await?, Greeting::Text("Welcome back, Ada".into()));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a call gives it up"]
pub struct PendingCall<T, E = CallError> {
    channel: Channel,
    waiter: Option<WaiterId>,
    timer: CallTimer,
    decoding: Decoding,
    decode: DecodeBy<T>,
    /// Place for the metadata of its reply, if that is wanted.
    reply_metadata: Option<Arc<ReplyMetadata>>,
    error: PhantomData<fn() -> E>,
}

impl<T, E: From<CallError>> PendingCall<T, E> {
    /// Starts a call after its room was taken.
    pub(super) fn start(
        channel: &Channel,
        (mut message, draft): (Buffer, CallDraft<'_>),
        timer: CallTimer,
        (decoding, decode): (Decoding, DecodeBy<T>),
    ) -> Result<Self, CallError> {
        let mut call = Self {
            channel: channel.clone(),
            waiter: None,
            timer,
            decoding,
            decode,
            reply_metadata: None,
            error: PhantomData,
        };
        let shared = channel.shared();
        let started = shared.start(&mut message, &draft, &timer, None)?;
        call.waiter = Some(started.waiter);
        if let Some(half) = started.reader {
            shared.leave_reader(half);
        }
        Ok(call)
    }

    /// Has the metadata of the reply put there, too.
    pub(super) fn want_metadata(&mut self, place: Option<&Arc<ReplyMetadata>>) {
        self.reply_metadata = place.cloned();
    }
}

/// Puts the metadata of a reply, or of the exception in its place, where it is wanted.
#[cold]
pub(super) fn keep_metadata(replied: &Result<Results, CallError>, place: &ReplyMetadata) {
    place.set_of(match replied {
        Ok(results) => Ok(results.extensions.as_deref()),
        Err(error) => Err(error),
    });
}

impl SharedChannel {
    /// Gives the reader's role back that is not used: the driver reads.
    pub(super) fn leave_reader(&self, half: Box<super::state::ReaderState>) {
        let mut state = self.lock();
        state.put_reader(half);
        if !state.is_parked {
            state.wake_driver();
        }
        self.wake(state);
    }
}

impl<T, E: From<CallError>> Future for PendingCall<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let coop = ready!(coop::poll_proceed(cx));
        let Some(waiter) = self.waiter else {
            unreachable!("a call is over once");
        };
        let shared = Arc::clone(self.channel.shared());
        let Some(outcome) = shared.fetch(waiter, cx) else {
            return Poll::Pending;
        };
        coop.made_progress();
        self.waiter = None;
        self.channel.release_room();
        let fault = || shared.lock().calls.fault();
        let replied = outcome.into_results(&self.timer, fault);
        if let Some(place) = &self.reply_metadata {
            keep_metadata(&replied, place);
        }
        let results = replied?;
        let bytes = results.bytes.as_slice();
        let value = self.decode.decode(bytes, results.order, self.decoding);
        self.channel.recycle(results);
        Poll::Ready(value)
    }
}

impl Channel {
    /// Keeps the memory of results: for the next call of this thread, or of any.
    #[inline]
    pub(super) fn recycle(&self, results: Results) {
        if let ResultBytes::Copied(bytes) = results.bytes
            && let Some(spare) = keep_spare(bytes)
        {
            self.shared().lock().buffers.put(spare);
        }
    }
}

impl<T, E> Drop for PendingCall<T, E> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.channel.shared().give_up(waiter);
            self.channel.release_room();
        }
    }
}

impl<T, E> fmt::Debug for PendingCall<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall")
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}
