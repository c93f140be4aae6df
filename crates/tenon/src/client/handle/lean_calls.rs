//! Calls by the lean protocol without stubs: closures move the arguments and the result.

use tenon_core::LeanInput;
use tenon_core::caller::DecodeBy;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::profile::{NoProbe, Probe, Step};
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::{ByteOrder, CallStreams};
use tenon_wire::{Buffer, DecodeError, EncodeError, Encoder, Lean};

use super::{Client, ClientView};
use crate::client::pending::PendingCall;
use crate::client::untyped::UntypedStreams;

/// Calls by the lean protocol with arguments and results that are moved by hand.
#[derive(Debug, Clone, Copy)]
pub struct LeanCalls<'c>(ClientView<'c>);

impl Client {
    /// Returns the calls by the lean protocol with arguments and results that are moved by hand.
    #[inline]
    pub fn lean(&self) -> LeanCalls<'_> {
        self.with_options(CallOptions::new()).lean()
    }
}

impl<'c> ClientView<'c> {
    /// As [`Client::lean`].
    #[inline]
    pub fn lean(self) -> LeanCalls<'c> {
        LeanCalls(self)
    }
}

impl<'c> LeanCalls<'c> {
    pub(in crate::client) fn view(&self) -> &ClientView<'c> {
        &self.0
    }

    /// Calls a procedure, which has a number of 16 bits, and waits for its result, as
    /// [`OncCalls::call`](super::OncCalls::call) does.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        match self.0.due_profile() {
            None => self.call_probed(procedure, encode, decode, NoProbe),
            Some(account) => {
                account.follow(|steps| self.call_probed(procedure, encode, decode, steps))
            }
        }
    }

    #[inline]
    fn call_probed<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
        probe: impl Probe,
    ) -> Result<T, CallError> {
        let write = |message: &mut Buffer| self.write(message, procedure, encode, probe);
        let mut reply = self.0.call_written(procedure, write, probe)?;
        let (results, order): (&[u8], ByteOrder) = reply.results();
        let decoding = self.0.client.caller.decoding();
        let value = decoding.decode_lean(results, order, decode);
        probe.at(Step::Decoded);
        value
    }

    /// Sends a call and returns at once, as [`Client::start`] does.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn start<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: fn(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let decode = DecodeBy::Lean(decode);
        match self.0.follow() {
            None => {
                let write = |message: &mut Buffer| self.write(message, procedure, encode, NoProbe);
                Ok(self
                    .0
                    .pending(self.0.start_written(write, NoProbe)?, decode))
            }
            Some(followed) => {
                let steps = followed.steps();
                let write = |message: &mut Buffer| self.write(message, procedure, encode, steps);
                let ticket = self.0.start_written(write, steps)?;
                Ok(self.0.pending(ticket, decode).followed_by(followed))
            }
        }
    }

    /// Makes a call with streams, without the types of stubs: `encode` appends the arguments but the stream. The run time
    /// of another language calls it.
    ///
    /// # Errors
    /// As [`OpenStreams::open_result`](crate::OpenStreams::open_result).
    #[doc(hidden)]
    pub fn open(
        self,
        procedure: u32,
        streams: CallStreams,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<UntypedStreams, CallError> {
        let write = |message: &mut Buffer| self.write(message, procedure, encode, NoProbe);
        let (call, _) = self.0.open_written(streams, write)?;
        Ok(UntypedStreams::of(call, streams, self.0.caller()))
    }

    #[inline]
    fn write(
        &self,
        message: &mut Buffer,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        probe: impl Probe,
    ) -> Result<CallDraft<'c>, CallError> {
        let client = self.0.client;
        let asks_stamps = client.asks_stamps(probe);
        let draft = client
            .caller
            .begin_lean(message, procedure, &self.0.options, asks_stamps)?;
        encode(&mut Encoder::over(message))?;
        probe.at(Step::Encoded);
        Ok(CallDraft::Lean(draft))
    }
}
