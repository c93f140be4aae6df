//! Any bytes as a value of every type of the torture interface: nothing panics, and what strict
//! mode accepts is written as the bytes it was read from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::{TORTURE, torture_types};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

fuzz_target!(|bytes: &[u8]| {
    for id in torture_types() {
        let _ = TORTURE.decode(id, &mut Decoder::new(bytes));
        let mut input = Decoder::with(bytes, DecodeMode::Strict, Limits::default());
        if let Ok(value) = TORTURE.decode(id, &mut input) {
            let mut written = Buffer::default();
            let done = TORTURE.encode(id, &value, &mut Encoder::new(&mut written));
            assert_eq!(done, Ok(()), "{value:?}");
            assert_eq!(written.as_slice(), &bytes[..input.position()]);
        }
    }
});
