//! What generated code knows of a procedure and of its version.

use std::sync::{Arc, OnceLock};

use tenon_proto::lean::{Interface, Part};
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Lean, Order};

use crate::error::CallError;
use crate::lean_input::LeanInput;

/// A call of one procedure with its arguments, in both protocols or in ONC RPC alone. Generated code implements it for
/// every procedure.
pub trait ProcedureCall {
    /// The procedure's number. The lean protocol carries those of 16 bits.
    const PROCEDURE: u32;

    /// Whether the interface was made for the lean protocol, too. If not, [`encode_lean`](Self::encode_lean) and
    /// [`decode_lean`](Self::decode_lean) are left out, and a client of a lean channel refuses the call.
    const HAS_LEAN: bool = true;

    /// What the procedure returns.
    type Result;

    /// Why there is no result.
    type Error: From<CallError>;

    /// Appends the arguments of a call by ONC RPC; none if nothing else is said.
    ///
    /// # Errors
    /// An argument breaks a bound of the interface.
    #[inline]
    fn encode(&self, _out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        Ok(())
    }

    /// Reads the result of a call by ONC RPC.
    ///
    /// # Errors
    /// The bytes are not a result of this procedure.
    fn decode(input: &mut Decoder<'_>) -> Result<Self::Result, DecodeError>;

    /// Appends the arguments of a lean call; none if nothing else is said.
    ///
    /// # Errors
    /// An argument breaks a bound of the interface.
    #[inline]
    fn encode_lean(&self, _out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
        Ok(())
    }

    /// Reads the result of a lean call, in the server's order of bytes.
    ///
    /// # Errors
    /// The bytes are not a result of this procedure; the procedure [has no lean form](Self::HAS_LEAN).
    #[inline]
    fn decode_lean<O: Order>(
        input: &mut Decoder<'_, Lean<O>>,
    ) -> Result<Self::Result, DecodeError> {
        Err(input.error(DecodeErrorKind::External))
    }
}

/// A call of procedure 0, which every server answers by itself: it takes nothing, returns nothing, and shows that the
/// server has the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ping;

impl ProcedureCall for Ping {
    const PROCEDURE: u32 = 0;

    type Result = ();

    type Error = CallError;

    #[inline]
    fn decode(_input: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Ok(())
    }

    #[inline]
    fn decode_lean<O: Order>(_input: &mut Decoder<'_, Lean<O>>) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Reads the result of a lean call in either order of bytes.
pub fn decode_in_order<C: ProcedureCall>(
    input: &mut LeanInput<'_>,
) -> Result<C::Result, DecodeError> {
    match input {
        LeanInput::Native(input) => C::decode_lean(input),
        LeanInput::Swapped(input) => C::decode_lean(input),
    }
}

/// What a version of a program was built from, for the other end to compare: constant data of
/// generated code.
#[derive(Debug)]
pub struct LeanInterface {
    program: u32,
    version: u32,
    fingerprint: u64,
    parts: &'static [(&'static str, u64, u32)],
    shared: OnceLock<Arc<Interface>>,
}

impl LeanInterface {
    /// A version of a program, its fingerprint, and its parts: the name and the fingerprint of each, and the number of
    /// a procedure or 0 for a type, as `docs/lean-protocol.md` specifies them.
    pub const fn new(
        program: u32,
        version: u32,
        fingerprint: u64,
        parts: &'static [(&'static str, u64, u32)],
    ) -> Self {
        Self {
            program,
            version,
            fingerprint,
            parts,
            shared: OnceLock::new(),
        }
    }

    /// The same for all clients and services: they find their bindings by it, and without comparing
    /// more than a pointer.
    pub fn shared(&self) -> Arc<Interface> {
        Arc::clone(self.shared.get_or_init(|| Arc::new(self.interface())))
    }

    fn interface(&self) -> Interface {
        let parts = self
            .parts
            .iter()
            .map(|(name, fingerprint, procedure)| Part {
                name: (*name).into(),
                fingerprint: *fingerprint,
                procedure: *procedure,
            });
        Interface {
            program: self.program,
            version: self.version,
            fingerprint: self.fingerprint,
            parts: parts.collect(),
        }
    }
}
