//! Calls of a procedure that is known when a service is compiled.

use tenon::wire::{
    DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder, Lean,
    Representation, Swapped, Xdr,
};
use tenon::{LeanInput, Protocol, Refusal};

use super::{Answer, Call};

/// The arguments of a procedure as a service of tasks receives them.
pub trait RequestedProcedure: Sized {
    /// The result of the procedure.
    type Result;
}

/// The codec of a procedure's messages in one representation.
pub trait RequestCodec<R: Representation>: RequestedProcedure {
    /// Whether the result lies on the wire as in memory, but for the order of the bytes of its numbers, so that a handler
    /// can [write it](Call::reserve) into the reply.
    const RESULT_IS_BLITTED: bool = false;

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The bytes are not the arguments; by default, as the procedure has no messages in this representation.
    fn decode(input: &mut Decoder<'_, R>) -> Result<Self, DecodeError> {
        Err(input.error(DecodeErrorKind::External))
    }

    /// Appends the result of a call.
    ///
    /// # Errors
    /// The result breaks a bound of the interface; by default, as the procedure has no messages in this representation.
    fn encode(_result: &Self::Result, _out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        Err(EncodeError::new(EncodeErrorKind::External))
    }
}

/// The arguments of a procedure that is called by either protocol, lean ones in the caller's order of bytes. Everything is
/// one that has a [`RequestCodec`] of each representation. Generated code has a type for every procedure.
pub trait Request: RequestCodec<Xdr> + RequestCodec<Lean> + RequestCodec<Lean<Swapped>> {}

impl<T: RequestCodec<Xdr> + RequestCodec<Lean> + RequestCodec<Lean<Swapped>>> Request for T {}

impl Call {
    /// Reads the arguments, all of them, by whichever protocol the call came.
    ///
    /// # Errors
    /// They cannot be decoded.
    pub fn read<R: Request>(&self) -> Result<R, Refusal> {
        match self.protocol() {
            Protocol::Onc => self.decode(<R as RequestCodec<Xdr>>::decode),
            Protocol::Lean => self.decode_lean(|input| match input {
                LeanInput::Native(input) => <R as RequestCodec<Lean>>::decode(input),
                LeanInput::Swapped(input) => <R as RequestCodec<Lean<Swapped>>>::decode(input),
            }),
        }
    }

    /// Answers with a handler's result or refusal, by whichever protocol the call came. A result that cannot be encoded
    /// is refused, too.
    ///
    /// # Errors
    /// None: the type is that of [`AsyncService::call`](super::AsyncService::call).
    pub fn respond<R: Request>(
        self,
        outcome: Result<R::Result, Refusal>,
    ) -> Result<Answer, Refusal> {
        match (outcome, self.protocol()) {
            (Err(refusal), _) => Ok(self.refuse(refusal)),
            (Ok(result), Protocol::Onc) => {
                self.answer(|out| <R as RequestCodec<Xdr>>::encode(&result, out))
            }
            (Ok(result), Protocol::Lean) => {
                self.answer_lean(|out| <R as RequestCodec<Lean>>::encode(&result, out))
            }
        }
    }
}
