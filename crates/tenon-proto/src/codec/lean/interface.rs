//! Agreement of both ends before a call: the version of a program and what it looks like.

use std::collections::HashMap;
use std::fmt;

use tenon_wire::{BString, Buffer};

use super::fault::{Fault, Violation};
use super::kind::Kind;
use super::message::{Message, plain, put_message};
use super::order::{ByteOrder, FieldReader, pad};
use super::text::EscapedText;
use crate::sorted::sort_numbers;

/// A version of a program as one end was built from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// The hash of what decides the bytes and the meaning of its messages; 0 if it is not known, and then it is not
    /// compared.
    pub fingerprint: u64,
    /// The same for each of its procedures, in ascending order of their numbers, and for each of its types, component
    /// types first. Where the fingerprints of two versions differ, procedures with equal fingerprints of their own can
    /// be called, and the error of the others names what differs.
    pub parts: Vec<Part>,
}

/// A type or a procedure of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name in errors.
    pub name: BString,
    /// Its fingerprint; 0 if it is not known, and then it is not compared.
    pub fingerprint: u64,
    /// Its fingerprint without the names in it; 0 if it is not known. Where it is equal and the other is not, something
    /// is renamed or swapped.
    pub layout: u64,
    /// The number of a procedure; 0 for a type.
    pub procedure: u32,
}

/// A procedure as a bind names it: its number and its fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundProcedure {
    pub(crate) number: u32,
    pub(crate) fingerprint: u64,
}

impl Interface {
    /// Makes a version of a program of which no more is known.
    pub fn unknown(program: u32, version: u32) -> Self {
        Self {
            program,
            version,
            fingerprint: 0,
            parts: Vec::new(),
        }
    }

    /// Returns whether an end that was built from this interface grants `bind`: the versions agree as a whole, or
    /// every procedure that it names does.
    pub(crate) fn grants(&self, bind: &BindRequest) -> bool {
        if bind.procedures.is_empty() {
            return are_equal(self.fingerprint, bind.fingerprint);
        }
        bind.procedures.iter().all(|asked| {
            self.procedure(asked.number)
                .is_some_and(|own| are_equal(own.fingerprint, asked.fingerprint))
        })
    }

    /// Returns the part that is the procedure of a number.
    pub(crate) fn procedure(&self, number: u32) -> Option<&Part> {
        find_procedure(&self.parts, number)
    }

    /// Returns whether procedures of this interface may be compared one by one.
    pub(crate) fn has_procedures(&self) -> bool {
        self.fingerprint != 0 && self.parts.iter().any(Part::is_procedure)
    }
}

impl Part {
    fn is_procedure(&self) -> bool {
        self.procedure != 0
    }

    /// Returns whether it is known to lie as `other` does.
    fn has_layout_of(&self, other: &Self) -> bool {
        self.layout == other.layout && self.layout != 0
    }

    /// Returns whether it is a type that goes by another name among `others`, which is the same type.
    fn is_type_among(&self, others: &[Self]) -> bool {
        let mut types = others.iter().filter(|other| !other.is_procedure());
        !self.is_procedure() && types.any(|other| other.fingerprint == self.fingerprint)
    }

    /// Returns whether it is a procedure that `others` have under another name.
    fn is_renamed_among(&self, others: &[Self]) -> bool {
        let other = find_procedure(others, self.procedure);
        self.is_procedure() && other.is_some_and(|other| self.has_layout_of(other))
    }
}

fn find_procedure(parts: &[Part], number: u32) -> Option<&Part> {
    let mut procedures = parts.iter().filter(|part| part.is_procedure());
    procedures.find(|part| part.procedure == number)
}

/// Returns whether two fingerprints are equal, as far as both are known.
fn are_equal(one: u64, other: u64) -> bool {
    one == other || one == 0 || other == 0
}

/// A client's request to bind a service.
#[derive(Debug)]
pub(crate) struct BindRequest {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) fingerprint: u64,
    /// The procedures that are to be called; empty for all of a version that agrees as a whole.
    pub(crate) procedures: Vec<BoundProcedure>,
}

impl BindRequest {
    /// Makes the request of a client that was built from `interface`.
    pub(crate) fn of(interface: &Interface) -> Self {
        Self {
            program: interface.program,
            version: interface.version,
            fingerprint: interface.fingerprint,
            procedures: Vec::new(),
        }
    }

    /// Makes the request for calls of procedures of these numbers only.
    pub(crate) fn of_procedures(interface: &Interface, numbers: &[u16]) -> Self {
        let procedures = numbers.iter().filter_map(|number| {
            let part = interface.procedure((*number).into())?;
            Some(BoundProcedure {
                number: part.procedure,
                fingerprint: part.fingerprint,
            })
        });
        Self {
            procedures: procedures.collect(),
            ..Self::of(interface)
        }
    }

    pub(crate) fn encode(
        &self,
        buffer: &mut Buffer,
        order: ByteOrder,
        service: u16,
        reverse: bool,
    ) {
        let header = plain(Kind::Bind, 0, service).reversed(reverse);
        put_message(buffer, order, header, |buffer| {
            buffer.extend(&order.bytes_of_u32(self.program));
            buffer.extend(&order.bytes_of_u32(self.version));
            buffer.extend(&order.bytes_of_u64(self.fingerprint));
            for procedure in &self.procedures {
                buffer.extend(&order.bytes_of_u32(procedure.number));
                buffer.extend(&order.bytes_of_u32(0));
                buffer.extend(&order.bytes_of_u64(procedure.fingerprint));
            }
        });
    }

    pub(crate) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        message.read(|input: &mut FieldReader<'_>| {
            let mut bind = Self {
                program: input.u32()?,
                version: input.u32()?,
                fingerprint: input.u64()?,
                procedures: Vec::new(),
            };
            while !input.rest.is_empty() {
                bind.procedures.push(BoundProcedure::decode(input)?);
            }
            Ok(bind)
        })
    }
}

impl BoundProcedure {
    fn decode(input: &mut FieldReader<'_>) -> Result<Self, Fault> {
        let number = input.u32()?;
        expect_zero(input.u32()?)?;
        let fingerprint = input.u64()?;
        Ok(Self {
            number,
            fingerprint,
        })
    }
}

fn expect_zero(word: u32) -> Result<(), Fault> {
    match word {
        0 => Ok(()),
        other => Err(Fault::NotZero(other.into())),
    }
}

/// Appends the answer that a service is bound.
pub(crate) fn put_bound(
    buffer: &mut Buffer,
    order: ByteOrder,
    service: u16,
    fingerprint: u64,
    reverse: bool,
) {
    let header = plain(Kind::Bound, 0, service).reversed(reverse);
    put_message(buffer, order, header, |buffer| {
        buffer.extend(&order.bytes_of_u64(fingerprint));
    });
}

/// The reason for which a server does not bind a service. It carried out no call of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindRefusal {
    /// It does not have the program.
    #[error("the server does not have program {program}")]
    NoProgram {
        /// Program number.
        program: u32,
    },
    /// It has other versions of the program.
    #[error("the server has versions {low} to {high} of program {program}, not {version}")]
    NoVersion {
        /// Program number.
        program: u32,
        /// The version that was asked for.
        version: u32,
        /// The lowest that there is.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// It was built from another interface.
    #[error("the server was built from another interface: {}", DifferenceList(.differences))]
    OtherInterface {
        /// The server's fingerprint.
        theirs: u64,
        /// The client's.
        ours: u64,
        /// The parts that differ: types, those that others are made of first, then procedures. Empty if one of the two
        /// does not know its parts.
        differences: Vec<Difference>,
    },
    /// This connection has too many services.
    #[error("this connection has more services than the server takes")]
    TooMany,
    /// For a reason that is not known here.
    #[error("the server does not bind the service, for reason {0}")]
    Unknown(u32),
}

/// A difference of two interfaces in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Both have a part of this name, and it differs.
    Differs(BString),
    /// Both have this part, and it differs in names alone: its own or those within it.
    NamesDiffer(BString),
    /// Only the client has it.
    OnlyOurs(BString),
    /// Only the server has it.
    OnlyTheirs(BString),
}

impl Difference {
    fn name(&self) -> &BString {
        match self {
            Self::Differs(name)
            | Self::NamesDiffer(name)
            | Self::OnlyOurs(name)
            | Self::OnlyTheirs(name) => name,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(name) => write!(f, "{name} differs"),
            Self::NamesDiffer(name) => write!(f, "{name} differs in names alone"),
            Self::OnlyOurs(name) => write!(f, "it lacks {name}"),
            Self::OnlyTheirs(name) => write!(f, "it has {} beside", EscapedText(name.as_ref())),
        }
    }
}

/// A few differences, and how many more there are.
struct DifferenceList<'d>(&'d [Difference]);

impl fmt::Display for DifferenceList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        if self.0.is_empty() {
            return f.write_str("the fingerprints differ");
        }
        for (index, difference) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{difference}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => {}
            more => write!(f, ", and {more} more")?,
        }
        let is_of_names =
            |difference: &Difference| matches!(difference, Difference::NamesDiffer(_));
        match self.0.iter().all(is_of_names) {
            true => f.write_str(" (renamed or swapped)"),
            false => Ok(()),
        }
    }
}

const NO_PROGRAM: u32 = 1;
const NO_VERSION: u32 = 2;
const OTHER_INTERFACE: u32 = 3;
const TOO_MANY: u32 = 4;

/// Bytes of the parts that a refusal names; what is more is left out.
const PARTS_MAX: usize = 48 << 10;

/// The reason for which a server does not bind a service, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnboundReason<'i> {
    NoProgram,
    NoVersion { low: u32, high: u32 },
    OtherInterface(&'i Interface),
    TooMany,
}

impl UnboundReason<'_> {
    pub(crate) fn encode(
        &self,
        buffer: &mut Buffer,
        order: ByteOrder,
        service: u16,
        reverse: bool,
    ) {
        let [reason, low, high] = match *self {
            Self::NoProgram => [NO_PROGRAM, 0, 0],
            Self::NoVersion { low, high } => [NO_VERSION, low, high],
            Self::OtherInterface(_) => [OTHER_INTERFACE, 0, 0],
            Self::TooMany => [TOO_MANY, 0, 0],
        };
        let (fingerprint, parts) = match self {
            Self::OtherInterface(ours) => (ours.fingerprint, &ours.parts[..]),
            _ => (0, &[][..]),
        };
        let header = plain(Kind::Unbound, 0, service).reversed(reverse);
        put_message(buffer, order, header, |buffer| {
            let total = u32::try_from(parts.len()).unwrap_or(u32::MAX);
            for word in [reason, low, high, total] {
                buffer.extend(&order.bytes_of_u32(word));
            }
            buffer.extend(&order.bytes_of_u64(fingerprint));
            let end = buffer.len() + PARTS_MAX;
            for part in parts {
                if buffer.len() + part.name.len() > end {
                    break;
                }
                put_part(part, buffer, order);
            }
        });
    }
}

fn put_part(part: &Part, buffer: &mut Buffer, order: ByteOrder) {
    buffer.extend(&order.bytes_of_u64(part.fingerprint));
    buffer.extend(&order.bytes_of_u64(part.layout));
    buffer.extend(&order.bytes_of_u32(part.procedure));
    buffer.extend(&order.bytes_of_u32(part.name.len() as u32));
    buffer.extend(&part.name);
    pad(buffer, part.name.len());
}

fn get_part(input: &mut FieldReader<'_>) -> Result<Part, Fault> {
    let (fingerprint, layout) = (input.u64()?, input.u64()?);
    let procedure = input.u32()?;
    let length = input.u32()?;
    let name = input.bytes(length)?.into();
    Ok(Part {
        name,
        fingerprint,
        layout,
        procedure,
    })
}

/// A peer's answer to a bind that it does not grant.
#[derive(Debug)]
pub(crate) struct BindAnswer {
    pub(crate) refusal: BindRefusal,
    /// Numbers of the procedures that are the same at both ends, in ascending order.
    pub(crate) agreed: Vec<u16>,
}

impl BindAnswer {
    /// Reads the refusal of what a client asked for, `ours`.
    pub(crate) fn decode(message: &Message<'_>, ours: &Interface) -> Result<Self, Violation> {
        message.read(|input: &mut FieldReader<'_>| {
            let [reason, low, high, total] =
                [input.u32()?, input.u32()?, input.u32()?, input.u32()?];
            let theirs = input.u64()?;
            let mut parts = Vec::new();
            while !input.rest.is_empty() {
                parts.push(get_part(input)?);
            }
            let (program, version) = (ours.program, ours.version);
            let mut agreed = Vec::new();
            let refusal = match reason {
                NO_PROGRAM => BindRefusal::NoProgram { program },
                NO_VERSION => BindRefusal::NoVersion {
                    program,
                    version,
                    low,
                    high,
                },
                OTHER_INTERFACE => {
                    agreed = agreed_procedures(&ours.parts, &parts);
                    let is_complete = parts.len() == total as usize;
                    BindRefusal::OtherInterface {
                        theirs,
                        ours: ours.fingerprint,
                        differences: differences(&ours.parts, &parts, is_complete),
                    }
                }
                TOO_MANY => BindRefusal::TooMany,
                other => BindRefusal::Unknown(other),
            };
            Ok(Self { refusal, agreed })
        })
    }
}

impl BindRefusal {
    /// Returns the refusal as the caller of one procedure is told it: of the procedures, the difference of that one is
    /// named, and first.
    pub(crate) fn of_procedure(&self, ours: &Interface, number: u16) -> Self {
        let mut refusal = self.clone();
        if let Self::OtherInterface { differences, .. } = &mut refusal {
            let name = ours.procedure(number.into()).map(|part| &part.name);
            let is_called = |difference: &Difference| Some(difference.name()) == name;
            let is_procedure = |name: &BString| {
                let mut procedures = ours.parts.iter().filter(|part| part.is_procedure());
                procedures.any(|part| part.name == *name)
            };
            differences.retain(|difference| match difference {
                Difference::OnlyTheirs(_) => false,
                _ => is_called(difference) || !is_procedure(difference.name()),
            });
            let (mut ordered, others): (Vec<_>, Vec<_>) =
                differences.drain(..).partition(is_called);
            ordered.extend(others);
            *differences = ordered;
        }
        refusal
    }
}

/// Numbers of the procedures that are the same in the parts of two interfaces.
fn agreed_procedures(ours: &[Part], theirs: &[Part]) -> Vec<u16> {
    let theirs: HashMap<u32, u64> = theirs
        .iter()
        .filter(|part| part.is_procedure())
        .map(|part| (part.procedure, part.fingerprint))
        .collect();
    let agreed = ours.iter().filter(|part| {
        let theirs = theirs.get(&part.procedure);
        part.is_procedure() && theirs.is_some_and(|theirs| are_equal(part.fingerprint, *theirs))
    });
    let mut numbers: Vec<u32> = agreed.map(|part| part.procedure).collect();
    sort_numbers(&mut numbers);
    numbers.dedup();
    let numbers = numbers.into_iter();
    numbers
        .filter_map(|number| u16::try_from(number).ok())
        .collect()
}

/// Returns what differs between the parts of two interfaces. If those of the other are not all there, nothing can be
/// said of what is missing.
fn differences(ours: &[Part], theirs: &[Part], is_complete: bool) -> Vec<Difference> {
    if ours.is_empty() || theirs.is_empty() {
        return Vec::new();
    }
    let (our_names, their_names) = (by_name(ours), by_name(theirs));
    let types = ours.iter().filter(|part| !part.is_procedure());
    let procedures = ours.iter().filter(|part| part.is_procedure());
    let in_ours = types.chain(procedures).filter_map(|part| {
        let name = part.name.clone();
        match their_names.get(&part.name) {
            Some(other) if other.fingerprint == part.fingerprint => None,
            Some(other) if part.has_layout_of(other) => Some(Difference::NamesDiffer(name)),
            Some(_) => Some(Difference::Differs(name)),
            None if part.is_type_among(theirs) => None,
            None if part.is_renamed_among(theirs) => Some(Difference::NamesDiffer(name)),
            None if is_complete => Some(Difference::OnlyOurs(name)),
            None => None,
        }
    });
    let in_theirs = theirs.iter().filter(|part| {
        let has_ours = part.is_type_among(ours) || part.is_renamed_among(ours);
        !our_names.contains_key(&part.name) && !has_ours
    });
    let in_theirs = in_theirs.map(|part| Difference::OnlyTheirs(part.name.clone()));
    in_ours.chain(in_theirs).collect()
}

fn by_name(parts: &[Part]) -> HashMap<&BString, &Part> {
    parts.iter().map(|part| (&part.name, part)).collect()
}
