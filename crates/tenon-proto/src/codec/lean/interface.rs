//! What both ends have to agree on before a call: the version of a program and what it looks like.

use std::collections::HashMap;
use std::fmt;

use tenon_wire::{BString, Buffer};

use super::fault::{Fault, Violation};
use super::kind::Kind;
use super::message::{Message, plain, put_message};
use super::order::{ByteOrder, Input, pad};
use super::text::Shown;

/// A version of a program as one end was built from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// What decides the bytes of its messages, hashed; 0 if it is not known, and then nobody
    /// compares it.
    pub fingerprint: u64,
    /// The same for each of its types and procedures, those that others are made of first. For the
    /// error that names what differs.
    pub parts: Vec<Part>,
}

/// A type or a procedure of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// How an error names it.
    pub name: BString,
    /// Its fingerprint.
    pub fingerprint: u64,
}

impl Interface {
    /// A version of a program of which no more is known.
    pub fn unknown(program: u32, version: u32) -> Self {
        Self {
            program,
            version,
            fingerprint: 0,
            parts: Vec::new(),
        }
    }

    /// Whether ends that were built from the two understand each other.
    pub(crate) fn agrees_with(&self, fingerprint: u64) -> bool {
        self.fingerprint == fingerprint || self.fingerprint == 0 || fingerprint == 0
    }
}

/// What a client asks for when it binds a service.
#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) fingerprint: u64,
}

impl Bind {
    /// What a client asks for that was built from `interface`.
    pub(crate) fn of(interface: &Interface) -> Self {
        Self {
            program: interface.program,
            version: interface.version,
            fingerprint: interface.fingerprint,
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
        });
    }

    pub(crate) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        message.read(|input: &mut Input<'_>| {
            Ok(Self {
                program: input.u32()?,
                version: input.u32()?,
                fingerprint: input.u64()?,
            })
        })
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

/// Why a server does not bind a service. It carried out no call of it.
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
    #[error("the server was built from another interface: {}", Listed(.differences))]
    OtherInterface {
        /// The server's fingerprint.
        theirs: u64,
        /// The client's.
        ours: u64,
        /// What differs, what others are made of first. Empty if one of the two does not know its
        /// parts.
        differences: Vec<Difference>,
    },
    /// This connection has too many services.
    #[error("this connection has more services than the server takes")]
    TooMany,
    /// For a reason that is not known here.
    #[error("the server does not bind the service, for reason {0}")]
    Unknown(u32),
}

/// How two interfaces differ in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Both have a part of this name, and it differs.
    Differs(BString),
    /// Only the client has it.
    OnlyOurs(BString),
    /// Only the server has it.
    OnlyTheirs(BString),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(name) => write!(f, "{name} differs"),
            Self::OnlyOurs(name) => write!(f, "it lacks {name}"),
            Self::OnlyTheirs(name) => write!(f, "it has {} beside", Shown(name.as_ref())),
        }
    }
}

/// A few differences, and how many more there are.
struct Listed<'d>(&'d [Difference]);

impl fmt::Display for Listed<'_> {
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
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

const NO_PROGRAM: u32 = 1;
const NO_VERSION: u32 = 2;
const OTHER_INTERFACE: u32 = 3;
const TOO_MANY: u32 = 4;

/// Bytes of the parts that a refusal names; what is more is left out.
const PARTS_MAX: usize = 48 << 10;

/// Why a server does not bind a service, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unbound<'i> {
    NoProgram,
    NoVersion { low: u32, high: u32 },
    OtherInterface(&'i Interface),
    TooMany,
}

impl Unbound<'_> {
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
    buffer.extend(&order.bytes_of_u32(0));
    buffer.extend(&order.bytes_of_u32(part.name.len() as u32));
    buffer.extend(&part.name);
    pad(buffer, part.name.len());
}

fn get_part(input: &mut Input<'_>) -> Result<Part, Fault> {
    let fingerprint = input.u64()?;
    match input.u32()? {
        0 => {}
        other => return Err(Fault::NotZero(other.into())),
    }
    let length = input.u32()?;
    let name = input.bytes(length)?.into();
    Ok(Part { name, fingerprint })
}

impl BindRefusal {
    /// Reads the refusal of what a client asked for, `ours`.
    pub(crate) fn decode(message: &Message<'_>, ours: &Interface) -> Result<Self, Violation> {
        message.read(|input: &mut Input<'_>| {
            let [reason, low, high, total] =
                [input.u32()?, input.u32()?, input.u32()?, input.u32()?];
            let theirs = input.u64()?;
            let mut parts = Vec::new();
            while !input.rest.is_empty() {
                parts.push(get_part(input)?);
            }
            let (program, version) = (ours.program, ours.version);
            Ok(match reason {
                NO_PROGRAM => Self::NoProgram { program },
                NO_VERSION => Self::NoVersion {
                    program,
                    version,
                    low,
                    high,
                },
                OTHER_INTERFACE => Self::OtherInterface {
                    theirs,
                    ours: ours.fingerprint,
                    differences: differences(&ours.parts, &parts, parts.len() == total as usize),
                },
                TOO_MANY => Self::TooMany,
                other => Self::Unknown(other),
            })
        })
    }
}

/// What differs between the parts of two interfaces. If those of the other are not all there,
/// nothing can be said of what is missing.
fn differences(ours: &[Part], theirs: &[Part], is_complete: bool) -> Vec<Difference> {
    let by_name = |parts: &[Part]| -> HashMap<BString, u64> {
        let entries = parts.iter();
        entries
            .map(|part| (part.name.clone(), part.fingerprint))
            .collect()
    };
    if ours.is_empty() || theirs.is_empty() {
        return Vec::new();
    }
    let (our_names, their_names) = (by_name(ours), by_name(theirs));
    let in_ours = ours.iter().filter_map(|part| {
        let name = part.name.clone();
        match their_names.get(&part.name) {
            Some(theirs) if *theirs == part.fingerprint => None,
            Some(_) => Some(Difference::Differs(name)),
            None if is_complete => Some(Difference::OnlyOurs(name)),
            None => None,
        }
    });
    let in_theirs = theirs
        .iter()
        .filter(|part| !our_names.contains_key(&part.name))
        .map(|part| Difference::OnlyTheirs(part.name.clone()));
    in_ours.chain(in_theirs).collect()
}
