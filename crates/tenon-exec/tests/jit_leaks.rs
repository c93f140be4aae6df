//! Nothing is left behind: neither by frames, whole or given up halfway, nor by machine code.
#![cfg(feature = "jit")]

mod support;

use std::alloc::System;
use std::fs;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::{ids, interface};
use tenon_exec::{Interface, random::Random};
use tenon_schema::Type;
use tenon_wire::{Buffer, Decoder, Encoder};

/// Everything that memory is taken for.
const INTERFACE: &str = "
    enum kind { FILE = 1, LINK = 5 };
    struct chain { chain *inner; hyper id; };
    union node switch (kind what) { case FILE: opaque data<>; case LINK: string to<>; };
    struct entry { int id; node nodes<>; unsigned int numbers<>; short small<4>; entry *next; };
    struct all { entry *entries; chain top; opaque key[70]; node *maybe; };";

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Moves a value of every type both ways, and each message cut off in the middle.
fn move_all(interface: &Interface, seed: u64) {
    assert!(interface.compile(), "machine code is made here");
    for id in ids(interface) {
        let value = Random::new(seed).value(interface.schema(), &Type::Named(id), 60);
        let message = interface.message(id).expect("a layout");
        let frame = message.frame(&value).expect("a value of the type");
        let mut buffer = Buffer::default();
        assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
        let bytes = buffer.as_slice();
        assert!(message.decode(&mut Decoder::new(bytes)).is_ok());
        let cut = &bytes[..bytes.len() / 2];
        assert!(message.decode_by_machine(&mut Decoder::new(cut)).is_none());
    }
}

/// Kilobytes of address space that this process has, where the system says so.
fn address_space() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmSize:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn nothing_is_left_behind() {
    move_all(&interface(INTERFACE), 1);
    let before = address_space();
    let is_left = |seed| {
        let region = Region::new(COUNTED);
        move_all(&interface(INTERFACE), seed);
        let change = region.change();
        change.bytes_allocated != change.bytes_deallocated
    };
    for seed in 0..6 {
        // What the harness takes on a busy machine it takes once.
        assert!((0..3).any(|_| !is_left(seed)), "{seed}");
    }
    if let (Some(before), Some(after)) = (before, address_space()) {
        // Each of the six reserves as much for its code.
        assert!(after.saturating_sub(before) < 64 << 10, "{before} {after}");
    }
}
