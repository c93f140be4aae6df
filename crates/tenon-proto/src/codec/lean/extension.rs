//! Extensions: what a message carries beside its body, so that later versions can say more to receivers that understand
//! it.

use tenon_wire::Buffer;

use super::fault::Fault;
use super::order::{ByteOrder, FieldReader, pad};

/// Set in the kinds of extensions that a receiver must refuse the message for if it does not understand them.
const MUST_UNDERSTAND: u16 = 0x8000;

/// An extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'m> {
    /// The kind of the extension. If the highest bit is set, a receiver that does not know it refuses the message.
    pub kind: u16,
    /// The bytes of the extension.
    pub content: &'m [u8],
}

impl Extension<'_> {
    /// Time stamps.
    pub const STAMPS: u16 = 1;

    /// Appends it. `is_last` says whether no other follows.
    fn encode(&self, buffer: &mut Buffer, order: ByteOrder, is_last: bool) {
        buffer.extend(&order.bytes_of_u16(self.kind));
        buffer.extend(&order.bytes_of_u16(u16::from(!is_last)));
        buffer.extend(&order.bytes_of_u32(self.content.len() as u32));
        buffer.extend(self.content);
        pad(buffer, self.content.len());
    }
}

pub(super) fn encode(extensions: &[Extension<'_>], buffer: &mut Buffer, order: ByteOrder) {
    for (index, extension) in extensions.iter().enumerate() {
        extension.encode(buffer, order, index + 1 == extensions.len());
    }
}

/// The extensions of a message, in order.
#[derive(Debug, Clone, Copy)]
pub struct Extensions<'m> {
    /// None is left if it is empty. It was found to be in order.
    bytes: &'m [u8],
    order: ByteOrder,
}

/// A message with extensions, taken apart.
pub(super) struct ParsedExtensions<'m> {
    pub(super) extensions: Extensions<'m>,
    /// The first that the receiver must understand and does not.
    pub(super) unknown: Option<u16>,
    pub(super) body: &'m [u8],
}

impl<'m> Extensions<'m> {
    /// The order of the bytes of their contents.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(crate) fn none(order: ByteOrder) -> Self {
        Self { bytes: &[], order }
    }

    /// Finds the end of the extensions that `content` begins with; says how far it came.
    pub(super) fn find(
        content: &'m [u8],
        order: ByteOrder,
    ) -> Result<ParsedExtensions<'m>, (Fault, usize)> {
        let mut input = FieldReader::new(content, order);
        let mut unknown = None;
        loop {
            let (extension, more) = next(&mut input).map_err(|fault| (fault, input.position()))?;
            // There is none yet that must be understood.
            if extension.kind & MUST_UNDERSTAND != 0 {
                unknown = unknown.or(Some(extension.kind));
            }
            if !more {
                break;
            }
        }
        let bytes = &content[..input.position()];
        Ok(ParsedExtensions {
            extensions: Self { bytes, order },
            unknown,
            body: input.rest,
        })
    }
}

/// The next extension, and whether another follows.
fn next<'m>(input: &mut FieldReader<'m>) -> Result<(Extension<'m>, bool), Fault> {
    let kind = input.u16()?;
    let more = match input.u16()? {
        0 => false,
        1 => true,
        other => return Err(Fault::NotZero((other & !1).into())),
    };
    let length = input.u32()?;
    let content = input.bytes(length)?;
    Ok((Extension { kind, content }, more))
}

impl<'m> Iterator for Extensions<'m> {
    type Item = Extension<'m>;

    fn next(&mut self) -> Option<Extension<'m>> {
        let mut input = FieldReader::new(self.bytes, self.order);
        let (extension, _) = next(&mut input).ok()?;
        self.bytes = input.rest;
        Some(extension)
    }
}
