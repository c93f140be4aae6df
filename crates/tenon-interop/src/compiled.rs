//! Compiled stubs with types that can be found by name.

use tenon::wire::{
    Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Marshal, Native, Representation, Swapped,
    Xdr,
};

/// Decodes a value and encodes it again; the error says which of both failed, and why.
pub type Recode = fn(&[u8]) -> Result<Vec<u8>, String>;

/// The recoding functions of a type, by representation.
#[derive(Debug, Clone, Copy)]
pub struct Recoders {
    /// XDR.
    pub xdr: Recode,
    /// Lean, from and for a machine of this one's order of bytes.
    pub lean: Recode,
    /// Lean, from and for one of the other order.
    pub swapped: Recode,
    /// Lean, from a machine of this one's order and for one of the other, which the interpreter cannot pose as the
    /// sender of.
    pub to_swapped: Recode,
}

/// An interface and its types.
#[derive(Debug, Clone, Copy)]
pub struct Interface {
    /// The name of its file, without `.x`.
    pub name: &'static str,
    /// The file.
    pub path: &'static str,
    /// Every type that is not declared elsewhere.
    pub types: &'static [(&'static str, Recoders)],
}

const fn recoders<T>() -> Recoders
where
    T: Marshal<Xdr> + Marshal<Lean<Native>> + Marshal<Lean<Swapped>>,
{
    Recoders {
        xdr: recode::<Xdr, Xdr, T>,
        lean: recode::<Lean<Native>, Lean<Native>, T>,
        swapped: recode::<Lean<Swapped>, Lean<Swapped>, T>,
        to_swapped: recode::<Lean<Native>, Lean<Swapped>, T>,
    }
}

fn recode<From, To, T>(bytes: &[u8]) -> Result<Vec<u8>, String>
where
    From: Representation,
    To: Representation,
    T: Marshal<From> + Marshal<To>,
{
    let mut input = Decoder::<From>::over(bytes, DecodeMode::Strict, Limits::default());
    let value = T::decode(&mut input).map_err(|error| format!("decoding: {error}"))?;
    if input.left() > 0 {
        return Err(format!("{} bytes are left", input.left()));
    }
    let mut buffer = Buffer::with_capacity(bytes.len());
    value
        .encode(&mut Encoder::<To>::over(&mut buffer))
        .map_err(|error| format!("encoding: {error}"))?;
    Ok(buffer.as_slice().to_vec())
}

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
