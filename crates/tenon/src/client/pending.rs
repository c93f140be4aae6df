//! A started call, of which the reply is fetched later.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tenon_core::caller::{DecodeBy, Decoding};
use tenon_core::error::CallError;
use tenon_core::profile::{Followed, NoProbe, Probe, Step};
use tenon_core::{LeanInput, PendingReply};
use tenon_proto::lean::ByteOrder;
use tenon_wire::{DecodeError, Decoder};

use super::call::{CallHandle, CopiedResults};

/// A call that has been sent. Dropping it gives the call up: the peer may still carry it out, its reply is ignored. On
/// UDP a lost call is sent again only while a caller of the channel waits.
///
/// Its result is a `T`, or an `E` says why there is none.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Greeting, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::time::Duration;
///
/// let greeter = GreeterV1Client::connect(&address)?;
/// let ada = Visitor { name: "Ada".into(), visits: 1 };
/// let mut first = greeter.start_greet(&ada)?;
/// let second = greeter.start_greet(&Visitor::default())?;
/// // Both are in flight. Replies are fetched in any order, and need not be waited for at once.
/// assert_eq!(second.wait()?, Greeting::Void);
/// while !first.wait_for(Duration::from_millis(100)) {
///     println!("not yet");
/// }
/// assert_eq!(first.wait()?, Greeting::Text("Welcome back, Ada".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping a pending call gives it up"]
pub struct PendingCall<T, E = CallError> {
    ticket: CallHandle,
    decoding: Decoding,
    decode: DecodeBy<T>,
    /// A result that came before the call was waited for to the end. Most calls have none, and are moved several times.
    early: Option<Box<Result<CopiedResults, CallError>>>,
    /// The account that follows it.
    followed: Option<Box<Followed>>,
    error: PhantomData<fn() -> E>,
}

impl<T, E: From<CallError>> PendingCall<T, E> {
    #[inline]
    pub(super) fn new(ticket: CallHandle, decoding: Decoding, decode: DecodeBy<T>) -> Self {
        Self {
            ticket,
            decoding,
            decode,
            early: None,
            followed: None,
            error: PhantomData,
        }
    }

    /// Returns the same call, which an account follows.
    pub(super) fn followed_by(self, followed: Box<Followed>) -> Self {
        Self {
            followed: Some(followed),
            ..self
        }
    }

    /// Waits for the reply until the call's deadline and decodes its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub fn wait(self) -> Result<T, E> {
        self.wait_and(DecodeBy::decode)
    }

    /// Waits as [`wait`](Self::wait) does, and decodes the result by what is said only now: where it goes to may not be
    /// known when the call is started.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn wait_with<U>(
        self,
        onc: impl FnOnce(&mut Decoder<'_>) -> Result<U, DecodeError>,
        lean: impl FnOnce(&mut LeanInput<'_>) -> Result<U, DecodeError>,
    ) -> Result<U, E> {
        self.wait_and(|by, results, order, decoding| match by {
            DecodeBy::Onc(_) => decoding.decode(results, onc),
            DecodeBy::Lean(_) => decoding.decode_lean(results, order, lean),
        })
    }

    fn wait_and<U>(
        mut self,
        decode: impl FnOnce(&DecodeBy<T>, &[u8], ByteOrder, Decoding) -> Result<U, E>,
    ) -> Result<U, E> {
        match self.followed.take() {
            None => self.result(decode, NoProbe),
            Some(followed) => {
                let value = self.result(decode, followed.steps())?;
                // The channel is left to others before the call is over.
                drop(self);
                followed.keep();
                Ok(value)
            }
        }
    }

    fn result<U>(
        &mut self,
        decode: impl FnOnce(&DecodeBy<T>, &[u8], ByteOrder, Decoding) -> Result<U, E>,
        probe: impl Probe,
    ) -> Result<U, E> {
        let Some(early) = self.early.take() else {
            let mut reply = self.ticket.wait(probe)?;
            let (results, order) = reply.results();
            let value = decode(&self.decode, results, order, self.decoding);
            probe.at(Step::Decoded);
            return value;
        };
        let CopiedResults { bytes, order } = (*early)?;
        probe.at(Step::Fetched);
        let value = decode(&self.decode, bytes.as_slice(), order, self.decoding);
        probe.at(Step::Decoded);
        self.ticket.recycle(bytes);
        value
    }

    /// Returns whether [`wait`](Self::wait) would return at once. Looks, and does not wait.
    pub fn is_ready(&mut self) -> bool {
        self.wait_for(Duration::ZERO)
    }

    /// Waits no longer than `limit`, and says whether [`wait`](Self::wait) would return at once.
    pub fn wait_for(&mut self, limit: Duration) -> bool {
        if self.early.is_none() {
            let early = match &self.followed {
                None => self.ticket.wait_for(limit, NoProbe),
                Some(followed) => self.ticket.wait_for(limit, followed.steps()),
            };
            self.early = early.transpose().map(Box::new);
        }
        self.early.is_some()
    }
}

impl<T, E: From<CallError>> PendingReply<T, E> for PendingCall<T, E> {
    fn wait(self) -> Result<T, E> {
        Self::wait(self)
    }

    fn wait_for(&mut self, limit: Duration) -> bool {
        Self::wait_for(self, limit)
    }
}

impl<T, E> fmt::Debug for PendingCall<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall")
            .field("is_ready", &self.early.is_some())
            .finish_non_exhaustive()
    }
}
