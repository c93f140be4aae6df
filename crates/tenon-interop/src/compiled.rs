//! Compiled stubs whose types can be found by name.

use tenon::wire::{Buffer, Decoder, Encoder, Marshal};

/// Decodes a value and encodes it again; the error says which of both failed, and why.
pub type Recode = fn(&[u8]) -> Result<Vec<u8>, String>;

/// An interface and its types.
#[derive(Debug, Clone, Copy)]
pub struct Interface {
    /// The name of its file, without `.x`.
    pub name: &'static str,
    /// The file.
    pub path: &'static str,
    /// Every type that is not declared elsewhere.
    pub types: &'static [(&'static str, Recode)],
}

fn recode<T: Marshal>(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut input = Decoder::new(bytes);
    let value = T::decode(&mut input).map_err(|error| format!("decoding: {error}"))?;
    if input.left() > 0 {
        return Err(format!("{} bytes are left", input.left()));
    }
    let mut buffer = Buffer::with_capacity(bytes.len());
    value
        .encode(&mut Encoder::new(&mut buffer))
        .map_err(|error| format!("encoding: {error}"))?;
    Ok(buffer.as_slice().to_vec())
}

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
