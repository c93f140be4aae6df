//! Memory that machine code lies in: at no time can it be both written and executed, and equal interfaces share it.
#![cfg(all(feature = "jit", target_os = "linux"))]

mod support;

use std::fs;

use support::{ids, torture};
use tenon_wire::Decoder;

/// A part of this process's address space.
#[derive(Debug)]
struct ProcessMapping {
    bytes: usize,
    /// As in `r-xp`.
    access: String,
    /// Set if it is neither of a file nor of the kernel.
    is_anonymous: bool,
}

/// All parts, as the system says.
fn mappings() -> Vec<ProcessMapping> {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let mapping = |line: &str| {
        // Addresses, access, offset, device, inode and maybe a name.
        let words: Vec<&str> = line.split_whitespace().collect();
        let (begin, end) = words[0].split_once('-').expect("two addresses");
        let [begin, end] = [begin, end].map(|address| usize::from_str_radix(address, 16));
        ProcessMapping {
            bytes: end.expect("an address") - begin.expect("an address"),
            access: words[1].to_owned(),
            is_anonymous: words.len() == 5,
        }
    };
    maps.lines().map(mapping).collect()
}

/// Bytes of the parts with code that this process made; none may be writable.
fn bytes_of_code() -> usize {
    let executable = mappings()
        .into_iter()
        .filter(|mapping| mapping.access.contains('x'))
        .inspect(|mapping| assert!(!mapping.access.contains('w'), "{mapping:?}"));
    let made = executable.filter(|mapping| mapping.is_anonymous);
    made.map(|mapping| mapping.bytes).sum()
}

#[test]
fn code_is_never_writable_and_there_once() {
    assert_eq!(bytes_of_code(), 0);
    let interface = torture();
    for id in ids(&interface) {
        // Made message by message, so beside code that is there already.
        let message = interface.message(id).expect("a layout");
        let _ = message.decode_by_machine(&mut Decoder::new(&[]));
        assert!(bytes_of_code() > 0, "machine code is made here");
    }
    assert!(interface.compile());
    let made = bytes_of_code();
    assert!(made > 0);
    // Read again, from the same text.
    let equal = torture();
    assert!(equal.compile());
    assert_eq!(bytes_of_code(), made);
    let other = support::interface("struct other { int a; string b<>; };");
    assert!(other.compile());
    assert!(bytes_of_code() > made);
    drop([interface, other]);
    assert_eq!(bytes_of_code(), made);
    drop(equal);
    assert_eq!(bytes_of_code(), 0);
}
