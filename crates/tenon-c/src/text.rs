//! Words for C: bytes that end in a NUL.

use std::ffi::CString;
use std::fmt::{self, Write};

/// Writes `words` and a NUL into `room`, as much as fits of them; cut between characters. What is a NUL
/// itself becomes a space.
pub fn write_words(room: &mut [u8], words: &dyn fmt::Display) {
    let Some(last) = room.len().checked_sub(1) else {
        return;
    };
    let mut cut = BoundedText {
        room: &mut room[..last],
        used: 0,
    };
    // What does not fit is an error here, and means nothing.
    let _ = write!(cut, "{words}");
    let used = cut.used;
    room[used] = 0;
}

struct BoundedText<'r> {
    room: &'r mut [u8],
    used: usize,
}

impl Write for BoundedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.room.len() - self.used;
        let most = left.min(text.len());
        let is_between = |end: &usize| text.is_char_boundary(*end);
        let fits = (0..=most).rev().find(is_between).unwrap_or_default();
        let to = &mut self.room[self.used..][..fits];
        to.copy_from_slice(&text.as_bytes()[..fits]);
        for byte in to.iter_mut().filter(|byte| **byte == 0) {
            *byte = b' ';
        }
        self.used += fits;
        match fits == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

/// A text of C's; what lies behind a NUL is not part of it.
pub fn c_text(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0);
    CString::new(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(room: usize, words: &str) -> Vec<u8> {
        let mut bytes = vec![b'?'; room];
        write_words(&mut bytes, &words);
        bytes
    }

    #[test]
    fn words_are_cut_between_characters_and_end_in_a_nul() {
        assert_eq!(written(0, "abc"), b"");
        assert_eq!(written(1, "abc"), b"\0");
        assert_eq!(written(4, "abc"), b"abc\0");
        assert_eq!(written(3, "abc"), b"ab\0");
        assert_eq!(written(6, "a\0c"), b"a c\0??");
        assert_eq!(written(4, "ab\u{e4}"), b"ab\0?");
    }

    #[test]
    fn a_text_ends_at_its_first_nul() {
        assert_eq!(c_text(b"abc").as_bytes(), b"abc");
        assert_eq!(c_text(b"a\0c").as_bytes(), b"a");
    }
}
