//! The record of 8192 members by its compiled stubs, each in a function of its own so that its code
//! can be found.

use std::error::Error;
use std::hint::black_box;

use tenon::wire::{Buffer, DecodeError, Decoder, EncodeError, Encoder, Marshal};
use tenon_bench_wide::LargeData8192;

/// Shows that the stubs work, and keeps their code in the program.
///
/// # Errors
/// They do not.
pub fn try_out() -> Result<(), Box<dyn Error>> {
    let bytes: Vec<u8> = (0..8192_u32).flat_map(u32::to_be_bytes).collect();
    let mut buffer = Buffer::default();
    encode_wide(&decode_wide(black_box(&bytes))?, &mut buffer)?;
    match buffer.as_slice() == bytes {
        true => Ok(()),
        false => Err("the wide record does not come back".into()),
    }
}

#[inline(never)]
fn encode_wide(value: &LargeData8192, buffer: &mut Buffer) -> Result<(), EncodeError> {
    value.encode(&mut Encoder::new(buffer))
}

#[inline(never)]
fn decode_wide(bytes: &[u8]) -> Result<LargeData8192, DecodeError> {
    LargeData8192::decode(&mut Decoder::new(bytes))
}
