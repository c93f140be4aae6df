//! Calls of a procedure that is known when a service is compiled.

use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean, Order};
use tenon::{LeanInput, Protocol, Refusal};

use super::{Answer, Call};

/// The arguments of a procedure as a service of tasks receives them, and how its messages are moved by
/// either protocol. Generated code implements it.
pub trait Request: Sized {
    /// What the procedure returns.
    type Result;

    /// Reads the arguments of a call by ONC RPC.
    ///
    /// # Errors
    /// The bytes are not the arguments.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Appends the result of a call by ONC RPC.
    ///
    /// # Errors
    /// The result breaks a bound of the interface.
    fn encode(result: &Self::Result, out: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Reads the arguments of a call by the lean protocol, in the caller's order of bytes.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_lean<O: Order>(input: &mut Decoder<'_, Lean<O>>) -> Result<Self, DecodeError>;

    /// Appends the result of a call by the lean protocol.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_lean(result: &Self::Result, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError>;
}

impl Call {
    /// Reads the arguments, all of them, by whichever protocol the call came.
    ///
    /// # Errors
    /// They cannot be decoded.
    pub fn read<R: Request>(&self) -> Result<R, Refusal> {
        match self.protocol() {
            Protocol::Onc => self.decode(R::decode),
            Protocol::Lean => self.decode_lean(|input| match input {
                LeanInput::Native(input) => R::decode_lean(input),
                LeanInput::Swapped(input) => R::decode_lean(input),
            }),
        }
    }

    /// Answers with a result, by whichever protocol the call came.
    ///
    /// # Errors
    /// The result cannot be encoded.
    pub fn reply<R: Request>(self, result: &R::Result) -> Result<Answer, Refusal> {
        match self.protocol() {
            Protocol::Onc => self.answer(|out| R::encode(result, out)),
            Protocol::Lean => self.answer_lean(|out| R::encode_lean(result, out)),
        }
    }
}
