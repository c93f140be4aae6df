//! Texts in messages of the protocol's own. What the peer has written ends in logs and on terminals.

use std::fmt::{self, Write};

use tenon_wire::{BStr, Buffer, ByteSlice};

use super::fault::Fault;
use super::order::{ByteOrder, FieldReader, pad};

/// Bytes of a text; what is longer is cut.
const TEXT_MAX: usize = 4096;

/// Appends the length of a text, the text and zeros up to a multiple of 8; the length stands 4 bytes
/// before such a multiple.
pub(super) fn put_text(buffer: &mut Buffer, order: ByteOrder, text: &BStr) {
    let text = &text[..text.len().min(TEXT_MAX)];
    buffer.extend(&order.bytes_of_u32(text.len() as u32));
    buffer.extend(text);
    pad(buffer, text.len());
}

pub(super) fn get_text<'m>(input: &mut FieldReader<'m>) -> Result<&'m BStr, Fault> {
    let length = input.u32()?;
    input.bytes(length).map(BStr::new)
}

/// A text of the peer's as it may be shown: what moves the cursor, begins another line, or turns the order of
/// letters round is escaped.
pub(super) struct EscapedText<'t>(pub(super) &'t BStr);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match is_harmless(char) {
            true => f.write_char(char),
            false => write!(f, "{}", char.escape_default()),
        })
    }
}

fn is_harmless(char: char) -> bool {
    let is_invisible = matches!(char,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !char.is_control() && !is_invisible
}
