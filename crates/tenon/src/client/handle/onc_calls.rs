//! Calls by ONC RPC without stubs: closures move the arguments and the result.

use tenon_core::caller::DecodeBy;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::profile::{NoProbe, Probe, Step};
use tenon_proto::connection::CallDraft;
use tenon_wire::{Buffer, DecodeError, Decoder, EncodeError, Encoder};

use super::{Client, ClientView};
use crate::client::pending::PendingCall;

/// Calls by ONC RPC with arguments and results that are moved by hand.
#[derive(Debug, Clone, Copy)]
pub struct OncCalls<'c>(ClientView<'c>);

impl Client {
    /// Returns the calls by ONC RPC with arguments and results that are moved by hand.
    #[inline]
    pub fn onc(&self) -> OncCalls<'_> {
        self.with_options(CallOptions::new()).onc()
    }
}

impl<'c> ClientView<'c> {
    /// As [`Client::onc`].
    #[inline]
    pub fn onc(self) -> OncCalls<'c> {
        OncCalls(self)
    }
}

impl<'c> OncCalls<'c> {
    /// Calls a procedure and waits for its result, which `decode` reads where it was received: other callers of the
    /// channel may have to wait meanwhile.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
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
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
        probe: impl Probe,
    ) -> Result<T, CallError> {
        let write = |message: &mut Buffer| self.write(message, procedure, encode, probe);
        let mut reply = self.0.call_written(procedure, write, probe)?;
        let (results, _) = reply.results();
        let value = self.0.client.caller.decoding().decode(results, decode);
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
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let decode = DecodeBy::Onc(decode);
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

    #[inline]
    fn write(
        &self,
        message: &mut Buffer,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        probe: impl Probe,
    ) -> Result<CallDraft<'c>, CallError> {
        (self.0.client.caller).begin(message, procedure, &self.0.options)?;
        encode(&mut Encoder::new(message))?;
        probe.at(Step::Encoded);
        Ok(CallDraft::Onc)
    }
}
