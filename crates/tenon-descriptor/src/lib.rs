//! Descriptors: interfaces as bytes, which programs hand over, store and compare.
//!
//! A descriptor is a value of the struct `descriptor` of `interfaces/descriptor.x` in XDR. It has the names, numbers,
//! types, constants and annotations of an interface, but not its comments, and does not depend on the order of its
//! definitions: equal interfaces have equal bytes, and so one [identity](Descriptor::identity). `docs/descriptor.md`
//! specifies it.
//!
//! ```
//! use tenon_descriptor::Descriptor;
//!
//! let text = "program GREETER { version V1 { string GREET(string) = 1; } = 1; } = 0x20001234;";
//! let parsed = tenon_idl::parse_text("greeter.x", text, &Default::default());
//! let descriptor = Descriptor::new(&parsed.schema.ok_or("no interface")?)?;
//!
//! // A reader of the bytes has the interface, and knows it by the same identity.
//! let read = Descriptor::parse(descriptor.bytes())?;
//! assert_eq!(read.schema().programs[0].versions[0].procedures[0].name, "GREET");
//! assert_eq!(read.identity(), descriptor.identity());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annotations;
mod canonical;
mod codec;
mod error;
mod programs;
mod types;
mod verify;

use std::fmt;

use sha2::{Digest, Sha256};
use tenon_schema::Schema;
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

use codec::Described;
pub use error::DescriptorError;

/// The bytes that every descriptor begins with.
pub const MAGIC: [u8; 8] = *b"tenonIDL";

/// The format of descriptors that this crate reads and writes, the number behind the [`MAGIC`].
pub const FORMAT: u32 = 1;

/// The most bytes that a descriptor may have: 16 MiB.
pub const BYTES_MAX: usize = 16 << 20;

/// An interface as bytes, with what they mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Descriptor {
    bytes: Vec<u8>,
    schema: Schema,
}

/// The SHA-256 of a descriptor, by which equal interfaces are found to be equal. It shows 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DescriptorIdentity(pub [u8; 32]);

impl Descriptor {
    /// Describes an interface.
    ///
    /// # Errors
    /// It has no plan for its calls, uses what a descriptor has no room for, or has more than [`BYTES_MAX`] bytes.
    pub fn new(schema: &Schema) -> Result<Self, DescriptorError> {
        verify::check_ids(schema)?;
        let schema = canonical::canonical(schema);
        let mut buffer = Buffer::default();
        let mut out = Encoder::new(&mut buffer);
        out.room(MAGIC.len()).copy_from_slice(&MAGIC);
        out.put(FORMAT);
        schema.put(&mut out).map_err(DescriptorError::Encode)?;
        Self::parse(buffer.as_slice())
    }

    /// Reads a descriptor and checks that its parts fit together, that all of its calls can be carried, and that no
    /// other bytes describe the same interface.
    ///
    /// # Errors
    /// It is no descriptor, is of another format or too large; or the parts that do not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorError> {
        let count = bytes.len();
        if count > BYTES_MAX {
            return Err(DescriptorError::TooLarge { bytes: count });
        }
        if !is_descriptor(bytes) {
            return Err(DescriptorError::NotOne);
        }
        // Offsets of errors count from the beginning, where a hex dump shows them.
        let mut input = Decoder::with(bytes, DecodeMode::Strict, Limits::default());
        input.take(MAGIC.len()).map_err(DescriptorError::Decode)?;
        match input.get::<u32>().map_err(DescriptorError::Decode)? {
            FORMAT => {}
            other => return Err(DescriptorError::Format(other)),
        }
        let schema = Schema::get(&mut input).map_err(DescriptorError::Decode)?;
        input.finish().map_err(DescriptorError::Decode)?;
        verify::check(&schema)?;
        Ok(Self {
            bytes: bytes.to_vec(),
            schema,
        })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the interface, its definitions in the order of the descriptor and without comments and places in files.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the interface as [`schema`](Self::schema) does, for good.
    pub fn into_schema(self) -> Schema {
        self.schema
    }

    /// Computes the SHA-256 of the bytes.
    pub fn identity(&self) -> DescriptorIdentity {
        DescriptorIdentity(Sha256::digest(&self.bytes).into())
    }
}

/// Returns whether bytes begin as a descriptor does; so many as [`MAGIC`] are enough.
pub fn is_descriptor(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl fmt::Display for DescriptorIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DescriptorIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DescriptorIdentity({self})")
    }
}
