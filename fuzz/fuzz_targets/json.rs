//! Any text as the JSON of a value of every type of the torture interface: nothing panics, what
//! is read can be encoded, and written and read again it is the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;
use tenon_exec::json;
use tenon_fuzz::{TORTURE, torture_types};
use tenon_schema::Type;
use tenon_wire::{Buffer, Encoder};

fuzz_target!(|text: &[u8]| {
    let Ok(text) = serde_json::from_slice::<Json>(text) else {
        return;
    };
    for id in torture_types() {
        let (schema, ty) = (TORTURE.schema(), Type::Named(id));
        if let Ok(value) = json::read(schema, &ty, &text) {
            let done = TORTURE.encode(id, &value, &mut Encoder::new(&mut Buffer::default()));
            assert_eq!(done, Ok(()), "{value:?}");
            let written = json::write(schema, &ty, &value).expect("it is of this type");
            let parsed = serde_json::from_str(&written.to_string()).expect("it is JSON");
            assert_eq!(json::read(schema, &ty, &parsed), Ok(value), "{written}");
        }
    }
});
