//! Any text as the JSON of a value of every type of the torture interface: nothing panics, what
//! is read can be encoded, and written and read again it is the same value. What names a member
//! twice alone is refused that serde_json parses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;
use tenon_exec::json;
use tenon_fuzz::{TORTURE, torture_types};
use tenon_schema::Type;
use tenon_wire::{Buffer, Encoder};

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let parsed = serde_json::from_str::<Json>(text);
    let text = match json::parse(text) {
        Ok(text) => {
            assert_eq!(parsed.ok().as_ref(), Some(&text));
            text
        }
        // Only what names a member twice is JSON all the same.
        Err(error) => return assert!(error.is_data() || parsed.is_err(), "{error}"),
    };
    for id in torture_types() {
        let (schema, ty) = (TORTURE.schema(), Type::Named(id));
        if let Ok(value) = json::read(schema, &ty, &text) {
            let done = TORTURE.encode(id, &value, &mut Encoder::new(&mut Buffer::default()));
            assert_eq!(done, Ok(()), "{value:?}");
            let written = json::write(schema, &ty, &value).expect("it is of this type");
            let parsed = json::parse(&written.to_string()).expect("it is JSON");
            assert_eq!(json::read(schema, &ty, &parsed), Ok(value), "{written}");
        }
    }
});
