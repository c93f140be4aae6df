//! Any bytes as a value of every type of the torture interface: nothing panics, and what strict
//! mode accepts is written as the bytes it was read from.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tenon_exec::Interface;
use tenon_schema::TypeId;
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

static INTERFACE: LazyLock<Interface> = LazyLock::new(|| {
    let text = include_str!("../../interfaces/torture.x");
    let parsed = tenon_idl::parse_text("torture.x", text, &tenon_idl::Options::default());
    let schema = parsed.schema.expect("the interface has no errors");
    Interface::new(schema).expect("its types end")
});

fuzz_target!(|bytes: &[u8]| {
    for id in (0..INTERFACE.schema().types.len() as u32).map(TypeId) {
        let _ = INTERFACE.decode(id, &mut Decoder::new(bytes));
        let mut input = Decoder::with(bytes, DecodeMode::Strict, Limits::default());
        if let Ok(value) = INTERFACE.decode(id, &mut input) {
            let mut written = Buffer::default();
            let done = INTERFACE.encode(id, &value, &mut Encoder::new(&mut written));
            assert_eq!(done, Ok(()), "{value:?}");
            assert_eq!(written.as_slice(), &bytes[..input.position()]);
        }
    }
});
