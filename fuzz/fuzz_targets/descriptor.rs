//! Any bytes as a descriptor: nothing panics, and what is read as an interface is described by the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_descriptor::{Descriptor, MAGIC};

fuzz_target!(|bytes: &[u8]| {
    // Most inputs are to get past the beginning.
    let begun = [&MAGIC[..], &[0, 0, 0, 1], bytes].concat();
    for bytes in [bytes, &begun] {
        if let Ok(descriptor) = Descriptor::parse(bytes) {
            let again = Descriptor::new(descriptor.schema()).expect("it was described before");
            assert_eq!(again.bytes(), bytes);
        }
    }
});
