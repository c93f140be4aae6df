//! Memory that machine code lies in: at no time can it be both written and executed.
#![cfg(all(feature = "jit", target_os = "linux"))]

mod support;

use std::fs;

use support::{ids, torture};
use tenon_wire::Decoder;

/// A part of this process's address space.
#[derive(Debug)]
struct Mapping {
    /// As in `r-xp`.
    access: String,
    /// Whether it is neither a file's nor the kernel's.
    is_anonymous: bool,
}

/// All parts, as the system says.
fn mappings() -> Vec<Mapping> {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let mapping = |line: &str| {
        // Addresses, access, offset, device, inode and maybe a name.
        let words: Vec<&str> = line.split_whitespace().collect();
        Mapping {
            access: words[1].to_owned(),
            is_anonymous: words.len() == 5,
        }
    };
    maps.lines().map(mapping).collect()
}

/// How many parts have code that this process made; none may be writable.
fn parts_with_code() -> usize {
    let executable = mappings()
        .into_iter()
        .filter(|mapping| mapping.access.contains('x'))
        .inspect(|mapping| assert!(!mapping.access.contains('w'), "{mapping:?}"));
    executable.filter(|mapping| mapping.is_anonymous).count()
}

#[test]
fn code_is_never_writable() {
    assert_eq!(parts_with_code(), 0);
    let interface = torture();
    for id in ids(&interface) {
        // Made message by message, so beside code that is there already.
        let message = interface.message(id).expect("a layout");
        let _ = message.decode_by_machine(&mut Decoder::new(&[]));
        assert!(parts_with_code() > 0, "machine code is made here");
    }
    assert!(interface.compile());
    assert!(parts_with_code() > 0);
    drop(interface);
    assert_eq!(parts_with_code(), 0);
}
