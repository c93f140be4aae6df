//! Extensions: what a message carries beside its body, so that later versions can say more to receivers that understand
//! it.

use tenon_wire::Buffer;

use super::fault::Fault;
use super::metadata::{Metadata, MetadataError, MetadataView};
use super::order::{ByteOrder, FieldReader, pad};
use crate::codec::onc::auth::Credential;

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

impl<'m> Extension<'m> {
    /// Time stamps.
    pub const STAMPS: u16 = 1;
    /// Metadata.
    pub const METADATA: u16 = 2;
    /// The user that the caller claims to be, as the body of an AUTH_SYS credential (RFC 5531 appendix A).
    pub const CREDENTIAL: u16 = 3;
    /// Times of packets.
    pub const PACKET_TIMES: u16 = 4;

    /// The extension of a message in this machine's order of bytes that carries metadata.
    pub fn of_metadata(metadata: &'m Metadata) -> Self {
        Self {
            kind: Self::METADATA,
            content: metadata.content(),
        }
    }

    /// Bytes of an extension in front of its content.
    pub(super) const HEADER: usize = 8;

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

    /// Extensions that are these bytes, which were found to be in order when their message was received.
    pub fn checked(bytes: &'m [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// Returns how many bytes they take in their message, in front of the body.
    #[inline]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the offset of the last of them; 0 if there are none.
    pub(super) fn offset_of_last(self) -> usize {
        let mut left = self;
        let mut offset = 0;
        while left.next().is_some() && !left.is_empty() {
            offset = self.size() - left.size();
        }
        offset
    }

    /// Returns the content of an extension of this kind.
    fn content_of(mut self, kind: u16) -> Option<&'m [u8]> {
        let found = self.find(|extension| extension.kind == kind)?;
        Some(found.content)
    }

    /// Returns whether there is more than one extension of this kind.
    pub(super) fn repeats(self, kind: u16) -> bool {
        let of_kind = self.filter(|extension| extension.kind == kind);
        of_kind.count() > 1
    }

    /// Checks metadata of a call, at most so many bytes of it.
    ///
    /// # Errors
    /// It breaks a rule, or is there twice.
    pub(super) fn check_metadata(self, bytes_max: usize) -> Result<(), MetadataError> {
        if self.repeats(Extension::METADATA) {
            return Err(MetadataError::Repeated);
        }
        let content = self.content_of(Extension::METADATA).unwrap_or_default();
        MetadataView::check(content, self.order, bytes_max).map(drop)
    }

    /// Returns the metadata of a call, which was checked when the call was received.
    pub fn metadata(self) -> MetadataView<'m> {
        match self.content_of(Extension::METADATA) {
            Some(content) => MetadataView::checked(content, self.order),
            None => MetadataView::NONE,
        }
    }

    /// Returns the metadata of an answer. What breaks the rules is none.
    pub fn answer_metadata(self) -> MetadataView<'m> {
        let content = self.content_of(Extension::METADATA).unwrap_or_default();
        MetadataView::check(content, self.order, Metadata::ACCEPTED).unwrap_or_default()
    }

    /// Returns the user that the caller of a call claims to be.
    ///
    /// # Errors
    /// The claim is none.
    pub(super) fn check_credential(self) -> Result<Credential<'m>, tenon_wire::DecodeError> {
        match self.content_of(Extension::CREDENTIAL) {
            Some(body) => Credential::of_sys_body(body),
            None => Ok(Credential::None),
        }
    }

    /// Returns the user that the caller of a call claims to be, which was checked when the call was received.
    pub fn credential(self) -> Credential<'m> {
        self.check_credential().unwrap_or_default()
    }

    /// Finds the end of the extensions that `content` begins with; says how far it came.
    pub(super) fn parse(
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
