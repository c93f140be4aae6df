//! Metadata: pairs of keys and values that travel with a call and with its answer, beside arguments and result.

use std::fmt;

use super::order::{ByteOrder, FieldReader, padding_of};

/// Bytes of the lengths in front of a pair.
const LENGTHS: usize = 4;

/// The end of the keys of values that may be any bytes.
const BINARY: &str = "-bin";

/// Pairs of keys and values that a call or its answer carries beside its arguments or result: request numbers, the
/// context of a trace, a token. They are kept in their order, and a key may be there several times.
///
/// A key has 1 to 255 of the characters `a` to `z`, `0` to `9`, `_`, `.` and `-`. A value is printable ASCII, or any
/// bytes if its key ends in `-bin`.
///
/// ```
/// use tenon_proto::lean::Metadata;
///
/// let mut metadata = Metadata::new();
/// metadata.append("request-id", "7f3a")?;
/// metadata.append("checksum-bin", [0xd0, 0x7e])?;
/// assert_eq!(metadata.get("request-id"), Some("7f3a"));
/// assert_eq!(metadata.get_bytes("checksum-bin"), Some(&[0xd0, 0x7e][..]));
/// assert!(metadata.append("Request-ID", "7f3a").is_err());
/// # Ok::<(), tenon_proto::lean::MetadataError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// As it travels, in the order of this machine.
    bytes: Vec<u8>,
}

impl Metadata {
    /// Bytes of metadata that every end accepts and that a server accepts by default: of each pair key, value and 4
    /// more. An answer never has more.
    pub const ACCEPTED: usize = 8 << 10;

    /// Most bytes of metadata that there can be.
    pub const BYTES_MAX: usize = u16::MAX as usize;

    /// Longest key, in bytes.
    pub const KEY_MAX: usize = 255;

    /// No pairs.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Adds a pair behind those that there are.
    ///
    /// # Errors
    /// The key or the value has a character that it may not have, or there would be more than
    /// [`BYTES_MAX`](Self::BYTES_MAX) bytes. Nothing is added then.
    pub fn append(&mut self, key: &str, value: impl AsRef<[u8]>) -> Result<(), MetadataError> {
        let value = value.as_ref();
        check_pair(key.as_bytes(), value)?;
        let size = self.bytes.len() + LENGTHS + key.len() + value.len();
        check_size(size, Self::BYTES_MAX)?;
        for length in [key.len(), value.len()] {
            (self.bytes).extend(ByteOrder::NATIVE.bytes_of_u16(length as u16));
        }
        self.bytes.extend(key.as_bytes());
        self.bytes.extend(value);
        Ok(())
    }

    /// Gives a key one value, in place of all that it has.
    ///
    /// # Errors
    /// As [`append`](Self::append). Nothing is changed then.
    pub fn set(&mut self, key: &str, value: impl AsRef<[u8]>) -> Result<(), MetadataError> {
        let mut changed = Self::new();
        for (other, value) in self.iter().filter(|(other, _)| *other != key) {
            changed.append(other, value)?;
        }
        changed.append(key, value)?;
        *self = changed;
        Ok(())
    }

    /// Adds the pairs of `other` behind those that there are.
    ///
    /// # Errors
    /// There would be more than [`BYTES_MAX`](Self::BYTES_MAX) bytes. Nothing is added then.
    pub fn append_all(&mut self, other: MetadataView<'_>) -> Result<(), MetadataError> {
        check_size(self.bytes.len() + other.bytes.len(), Self::BYTES_MAX)?;
        let start = self.bytes.len();
        self.bytes.extend(other.bytes);
        if other.order.is_swapped() {
            swap_lengths(&mut self.bytes[start..], other.order);
        }
        Ok(())
    }

    /// Returns a view of the pairs.
    #[inline]
    pub fn view(&self) -> MetadataView<'_> {
        MetadataView {
            bytes: &self.bytes,
            order: ByteOrder::NATIVE,
        }
    }

    /// Returns the first value of a key; `None` if there is none, or if the key is one of bytes.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.view().get(key)
    }

    /// Returns the bytes of the first value of a key.
    pub fn get_bytes(&self, key: &str) -> Option<&[u8]> {
        self.view().get_bytes(key)
    }

    /// Returns the pairs in their order.
    pub fn iter(&self) -> MetadataIter<'_> {
        self.view().iter()
    }

    /// Returns whether there are no pairs.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes that the pairs take in a message.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the pairs as a message in this machine's order of bytes carries them.
    pub(super) fn content(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the pairs into `place`, which has room for them and their padding, as an end writes them whose messages
    /// have this order.
    pub(super) fn put(&self, place: &mut [u8], order: ByteOrder) {
        let (content, padding) = place.split_at_mut(self.bytes.len());
        content.copy_from_slice(&self.bytes);
        if order.is_swapped() {
            swap_lengths(content, ByteOrder::NATIVE);
        }
        padding.fill(0);
    }

    /// Bytes of the pairs and their padding.
    pub(super) fn padded_size(&self) -> usize {
        self.bytes.len() + padding_of(self.bytes.len())
    }
}

/// Turns the lengths of pairs, which are in `from`, into the other order of bytes.
fn swap_lengths(mut pairs: &mut [u8], from: ByteOrder) {
    while let Some((lengths, rest)) = pairs.split_first_chunk_mut::<LENGTHS>() {
        let [a, b, c, d] = *lengths;
        *lengths = [b, a, d, c];
        let length = usize::from(from.u16_of([a, b])) + usize::from(from.u16_of([c, d]));
        pairs = rest.get_mut(length..).unwrap_or_default();
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// The metadata of a message, where it was received.
#[derive(Clone, Copy)]
pub struct MetadataView<'m> {
    /// Pairs that were found to be in order.
    bytes: &'m [u8],
    order: ByteOrder,
}

impl<'m> MetadataView<'m> {
    /// No pairs.
    pub const NONE: MetadataView<'static> = MetadataView {
        bytes: &[],
        order: ByteOrder::NATIVE,
    };

    /// Reads the pairs that `bytes` are, at most so many bytes.
    ///
    /// # Errors
    /// They break a rule of the protocol, or there are too many.
    pub(crate) fn check(
        bytes: &'m [u8],
        order: ByteOrder,
        bytes_max: usize,
    ) -> Result<Self, MetadataError> {
        check_size(bytes.len(), bytes_max)?;
        let mut input = FieldReader::new(bytes, order);
        while !input.rest.is_empty() {
            let at = input.position();
            let (key, value) = next_pair(&mut input).ok_or(MetadataError::Truncated { at })?;
            check_pair(key, value)?;
        }
        Ok(Self { bytes, order })
    }

    /// Returns pairs that were [checked](Self::check) before.
    pub(crate) fn checked(bytes: &'m [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// Returns the first value of a key; `None` if there is none, or if the key is one of bytes.
    pub fn get(self, key: &str) -> Option<&'m str> {
        match key.ends_with(BINARY) {
            true => None,
            false => std::str::from_utf8(self.get_bytes(key)?).ok(),
        }
    }

    /// Returns the bytes of the first value of a key.
    pub fn get_bytes(self, key: &str) -> Option<&'m [u8]> {
        let mut pairs = self.iter();
        pairs.find(|(of, _)| *of == key).map(|(_, value)| value)
    }

    /// Returns the pairs in their order.
    pub fn iter(self) -> MetadataIter<'m> {
        MetadataIter(FieldReader::new(self.bytes, self.order))
    }

    /// Returns whether there are no pairs.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns a copy of the pairs.
    pub fn to_owned(self) -> Metadata {
        let mut bytes = self.bytes.to_vec();
        if self.order.is_swapped() {
            swap_lengths(&mut bytes, self.order);
        }
        Metadata { bytes }
    }
}

impl Default for MetadataView<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for MetadataView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for MetadataView<'_> {
    /// Shows keys, and values that are text. What may be a token is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (key, value) in self.iter() {
            match std::str::from_utf8(value) {
                _ if key == Metadata::AUTHORIZATION => map.entry(&key, &format_args!("...")),
                Ok(text) if !key.ends_with(BINARY) => map.entry(&key, &text),
                _ => map.entry(&key, &format_args!("{} bytes", value.len())),
            };
        }
        map.finish()
    }
}

impl Metadata {
    /// The key of tokens: `Bearer` and a token, mostly (RFC 6750 section 2.1).
    pub const AUTHORIZATION: &str = "authorization";

    /// The key of the trace that a call is part of (W3C Trace Context).
    pub const TRACEPARENT: &str = "traceparent";

    /// The key of what systems of tracing add to that (W3C Trace Context).
    pub const TRACESTATE: &str = "tracestate";

    /// The key of a reply under which a server says after how many milliseconds, a decimal number, a call that it has
    /// refused may be tried again.
    pub const RETRY_AFTER: &str = "retry-after-ms";
}

impl<'m> IntoIterator for MetadataView<'m> {
    type Item = (&'m str, &'m [u8]);
    type IntoIter = MetadataIter<'m>;

    fn into_iter(self) -> MetadataIter<'m> {
        self.iter()
    }
}

impl<'m> IntoIterator for &'m Metadata {
    type Item = (&'m str, &'m [u8]);
    type IntoIter = MetadataIter<'m>;

    fn into_iter(self) -> MetadataIter<'m> {
        self.iter()
    }
}

/// The pairs of metadata, each its key and the bytes of its value.
#[derive(Debug, Clone)]
pub struct MetadataIter<'m>(FieldReader<'m>);

impl<'m> Iterator for MetadataIter<'m> {
    type Item = (&'m str, &'m [u8]);

    fn next(&mut self) -> Option<(&'m str, &'m [u8])> {
        let (key, value) = next_pair(&mut self.0)?;
        Some((std::str::from_utf8(key).ok()?, value))
    }
}

fn next_pair<'m>(input: &mut FieldReader<'m>) -> Option<(&'m [u8], &'m [u8])> {
    let (key, value) = (input.u16().ok()?, input.u16().ok()?);
    let pair = input.rest.split_at_checked(key.into());
    let (key, rest) = pair?;
    let (value, rest) = rest.split_at_checked(value.into())?;
    input.rest = rest;
    Some((key, value))
}

fn check_size(size: usize, limit: usize) -> Result<(), MetadataError> {
    match size > limit {
        true => Err(MetadataError::TooLarge { size, limit }),
        false => Ok(()),
    }
}

fn check_pair(key: &[u8], value: &[u8]) -> Result<(), MetadataError> {
    let name = || String::from_utf8_lossy(key).escape_debug().to_string();
    let is_allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
    if key.is_empty() || key.len() > Metadata::KEY_MAX {
        return Err(MetadataError::KeyLength { length: key.len() });
    }
    if !key.iter().all(is_allowed) {
        return Err(MetadataError::Key { key: name() });
    }
    let is_text = !key.ends_with(BINARY.as_bytes());
    match value.iter().position(|byte| !matches!(byte, b' '..=b'~')) {
        Some(at) if is_text => Err(MetadataError::Value { key: name(), at }),
        _ => Ok(()),
    }
}

/// A rule for metadata that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// A key is empty or too long.
    #[error("a key of {length} bytes, where 1 to {max} are allowed", max = Metadata::KEY_MAX)]
    KeyLength {
        /// Bytes of the key.
        length: usize,
    },
    /// A key has a character that is not allowed.
    #[error("the key \"{key}\" has other characters than a-z, 0-9, \"_\", \".\" and \"-\"")]
    Key {
        /// The key, with its special characters escaped.
        key: String,
    },
    /// A value has a character that is not allowed.
    #[error(
        "byte {at} of the value of \"{key}\" is not printable ASCII, as it must be unless the key ends in \"-bin\""
    )]
    Value {
        /// The key.
        key: String,
        /// Offset of the first such character, in bytes.
        at: usize,
    },
    /// There are too many pairs, or too long ones.
    #[error("metadata of {size} bytes, where {limit} are the most")]
    TooLarge {
        /// Bytes of all pairs.
        size: usize,
        /// Most bytes.
        limit: usize,
    },
    /// The bytes of a message end inside of a pair.
    #[error("the metadata ends inside of the pair at byte {at}")]
    Truncated {
        /// Offset of the pair in the metadata, in bytes.
        at: usize,
    },
    /// A message has metadata twice.
    #[error("the message has metadata twice")]
    Repeated,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = Metadata::ACCEPTED;

    fn other_order() -> ByteOrder {
        match ByteOrder::NATIVE {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        }
    }

    fn sample() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.append("request-id", "7f3a").unwrap();
        metadata.append("empty", "").unwrap();
        metadata.append("request-id", "second").unwrap();
        let long = "x".repeat(300);
        metadata.append("long", &long).unwrap();
        metadata.append("sum-bin", [0, 255]).unwrap();
        metadata
    }

    #[test]
    fn pairs_keep_their_order_and_repeats() {
        let metadata = sample();
        assert_eq!(metadata.get("request-id"), Some("7f3a"));
        assert_eq!(metadata.get("empty"), Some(""));
        assert_eq!(metadata.get("absent"), None);
        assert_eq!(metadata.get("sum-bin"), None);
        assert_eq!(metadata.get_bytes("sum-bin"), Some(&[0, 255][..]));
        let mut changed = metadata.clone();
        changed.set("request-id", "third").unwrap();
        assert_eq!(changed.get("request-id"), Some("third"));
        assert_eq!(changed.iter().count(), metadata.iter().count() - 1);
        let keys: Vec<_> = metadata.iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            ["request-id", "empty", "request-id", "long", "sum-bin"]
        );
    }

    #[test]
    fn either_order_of_bytes_says_the_same() {
        let metadata = sample();
        let mut place = vec![1; metadata.padded_size()];
        metadata.put(&mut place, other_order());
        let bytes = &place[..metadata.size()];
        assert_ne!(bytes, &metadata.bytes[..]);
        let view = MetadataView::check(bytes, other_order(), LIMIT).unwrap();
        assert_eq!(view, metadata.view());
        assert_eq!(view.to_owned(), metadata);
        let mut both = sample();
        both.append_all(view).unwrap();
        assert_eq!(both.iter().count(), 2 * metadata.iter().count());
        assert_eq!(both.size(), 2 * metadata.size());
        assert!(place[metadata.size()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn bad_pairs_are_refused_and_nothing_is_added() {
        let mut metadata = Metadata::new();
        let long = "k".repeat(256);
        for (key, value) in [
            ("", ""),
            (&long, ""),
            ("Key", ""),
            ("a b", ""),
            ("key", "a\n"),
        ] {
            assert!(metadata.append(key, value).is_err(), "{key:?} {value:?}");
        }
        let huge = vec![b' '; Metadata::BYTES_MAX];
        assert!(metadata.append("k", &huge).is_err());
        assert!(metadata.is_empty());
        metadata.append("key", "old").unwrap();
        assert!(metadata.set("key", "a\n").is_err());
        assert_eq!(metadata.get("key"), Some("old"));
        let error = metadata.append("key", "ok\u{7f}").unwrap_err();
        assert_eq!(
            error,
            MetadataError::Value {
                key: "key".into(),
                at: 2
            }
        );
    }

    #[test]
    fn every_cut_of_received_pairs_is_an_error_or_a_shorter_list() {
        let metadata = sample();
        let whole = metadata.iter().count();
        for end in 0..metadata.size() {
            let cut = &metadata.bytes[..end];
            match MetadataView::check(cut, ByteOrder::NATIVE, LIMIT) {
                Ok(view) => assert!(view.iter().count() < whole),
                Err(error) => assert!(matches!(error, MetadataError::Truncated { .. })),
            }
        }
        let size = metadata.size();
        let limit = size - 1;
        let error = MetadataView::check(&metadata.bytes[..], ByteOrder::NATIVE, limit).unwrap_err();
        assert_eq!(error, MetadataError::TooLarge { size, limit });
    }

    #[test]
    fn tokens_are_not_shown() {
        let mut metadata = sample();
        metadata
            .append(Metadata::AUTHORIZATION, "Bearer secret")
            .unwrap();
        let shown = format!("{metadata:?}");
        assert!(
            !shown.contains("secret") && shown.contains("7f3a"),
            "{shown}"
        );
    }
}
