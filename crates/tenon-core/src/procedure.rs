//! Traits and data by which generated code describes a procedure and its version.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tenon_proto::lean::{Interface, Part};
use tenon_wire::{
    DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Lean, Representation, Swapped, Xdr,
};

use crate::error::CallError;
use crate::lean_input::LeanInput;

/// A procedure, for which a call of it stands.
pub trait CalledProcedure {
    /// The procedure's number. The lean protocol carries those of 16 bits.
    const PROCEDURE: u32;

    /// True if the interface was made for the lean protocol, too. If not, a client of a lean channel refuses the call.
    const HAS_LEAN: bool = true;

    /// What the interface says of the procedure; by default no more than its number.
    const INFO: ProcedureInfo<'static> = ProcedureInfo::new("", "", Self::PROCEDURE);

    /// Result of the procedure.
    type Result;

    /// Error of a call that has no result.
    type Error: ProcedureError;
}

/// Error of the calls of a procedure, which a [`CallError`] becomes.
pub trait ProcedureError: From<CallError> {
    /// Returns the error of the call; `None` if the procedure raised an error that its interface declares.
    fn call_error(&self) -> Option<&CallError>;
}

impl ProcedureError for CallError {
    #[inline]
    fn call_error(&self) -> Option<&CallError> {
        Some(self)
    }
}

/// What an interface says of a procedure, for those that see its calls without being compiled for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcedureInfo<'a> {
    /// The name of the version of a program, as the interface has it.
    pub service: &'a str,
    /// The name of the procedure, as the interface has it.
    pub name: &'a str,
    /// The number of the procedure.
    pub number: u32,
    /// True if the interface declares that it does no harm to carry a call out twice.
    pub is_idempotent: bool,
}

impl<'a> ProcedureInfo<'a> {
    /// A procedure of which it is not declared that its calls may be carried out twice.
    pub const fn new(service: &'a str, name: &'a str, number: u32) -> Self {
        Self {
            service,
            name,
            number,
            is_idempotent: false,
        }
    }

    /// A procedure of which it is declared.
    pub const fn idempotent(service: &'a str, name: &'a str, number: u32) -> Self {
        Self {
            is_idempotent: true,
            ..Self::new(service, name, number)
        }
    }
}

/// Writes the names of the version and of the procedure, or the number where there are none.
impl fmt::Display for ProcedureInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.is_empty() {
            true => self.number.fmt(f),
            false => write!(f, "{}.{}", self.service, self.name),
        }
    }
}

/// Codec of the messages of a call in one representation.
pub trait CallCodec<R: Representation>: CalledProcedure {
    /// Appends the arguments; none by default.
    ///
    /// # Errors
    /// An argument breaks a bound of the interface.
    #[inline]
    fn encode(&self, _out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        Ok(())
    }

    /// Reads the result.
    ///
    /// # Errors
    /// The bytes are not a result of this procedure; by default, as the procedure has no messages in this
    /// representation.
    #[inline]
    fn decode(input: &mut Decoder<'_, R>) -> Result<Self::Result, DecodeError> {
        Err(input.error(DecodeErrorKind::External))
    }
}

/// A call of one procedure with its arguments, which either protocol carries: lean results come in the server's order of
/// bytes. Everything is one that is a [`CalledProcedure`] and has a [`CallCodec`] of each representation. Generated code
/// has a type for every procedure.
pub trait ProcedureCall: CallCodec<Xdr> + CallCodec<Lean> + CallCodec<Lean<Swapped>> {}

impl<C: CallCodec<Xdr> + CallCodec<Lean> + CallCodec<Lean<Swapped>>> ProcedureCall for C {}

/// A call of procedure 0, which every server answers by itself: it takes nothing, returns nothing, and shows that the
/// server has the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ping;

impl CalledProcedure for Ping {
    const PROCEDURE: u32 = 0;

    const INFO: ProcedureInfo<'static> = ProcedureInfo::idempotent("", "NULL", 0);

    type Result = ();

    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for Ping {
    #[inline]
    fn decode(_input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Reads the result of a lean call in either order of bytes.
pub fn decode_in_order<C: ProcedureCall>(
    input: &mut LeanInput<'_>,
) -> Result<C::Result, DecodeError> {
    match input {
        LeanInput::Native(input) => <C as CallCodec<Lean>>::decode(input),
        LeanInput::Swapped(input) => <C as CallCodec<Lean<Swapped>>>::decode(input),
    }
}

/// Description of the interface that a version of a program was built from, for the other end to compare: constant data
/// of generated code.
#[derive(Debug)]
pub struct LeanInterface {
    program: u32,
    version: u32,
    fingerprint: u64,
    parts: &'static [(&'static str, u64, u64, u32)],
    shared: OnceLock<Arc<Interface>>,
}

impl LeanInterface {
    /// A version of a program, its fingerprint, and its parts: of each the name, the fingerprint, the same without
    /// names, and the number of a procedure or 0 for a type, as `docs/lean-protocol.md` specifies them.
    pub const fn new(
        program: u32,
        version: u32,
        fingerprint: u64,
        parts: &'static [(&'static str, u64, u64, u32)],
    ) -> Self {
        Self {
            program,
            version,
            fingerprint,
            parts,
            shared: OnceLock::new(),
        }
    }

    /// Returns the same object for all clients and services: they find their bindings by it, and without comparing
    /// more than a pointer.
    pub fn shared(&self) -> Arc<Interface> {
        Arc::clone(self.shared.get_or_init(|| Arc::new(self.interface())))
    }

    fn interface(&self) -> Interface {
        let parts = self
            .parts
            .iter()
            .map(|(name, fingerprint, layout, procedure)| Part {
                name: match procedure {
                    0 => (*name).into(),
                    _ => format!("procedure {name}").into(),
                },
                fingerprint: *fingerprint,
                layout: *layout,
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
