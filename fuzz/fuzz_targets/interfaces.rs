//! Machine code and the interpreter make the same of any bytes, of every type of random interfaces, in every
//! representation and both modes; what strict mode accepts is written as the bytes it was read from.
//!
//! The first byte of an input chooses the interface, the second the type, the third the mode and the
//! representation.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tenon_exec::Interface;
use tenon_exec::random::{Random, schemas};
use tenon_fuzz::engines;
use tenon_plan::Representation;
use tenon_schema::TypeId;
use tenon_wire::{Lean, Native, Swapped, Xdr};

/// How many there are.
const INTERFACES: usize = 64;

/// Interfaces of which every type ends, in xdr and in lean.
static ALL: LazyLock<Vec<[Interface; 2]>> = LazyLock::new(|| {
    let each = (0..).filter_map(|seed| {
        let schema = schemas::schema(&mut Random::new(seed));
        let xdr = Interface::new(schema.clone()).ok()?;
        let lean = Interface::with_representation(schema, Representation::LEAN).ok()?;
        Some([xdr, lean])
    });
    each.take(INTERFACES).collect()
});

// The interfaces are made before the first input, and are no part of its time.
fuzz_target!(init: { LazyLock::force(&ALL); }, |input: &[u8]| {
    let [interface, id, how, bytes @ ..] = input else {
        return;
    };
    let [xdr, lean] = &ALL[usize::from(*interface) % INTERFACES];
    let id = TypeId(u32::from(*id) % xdr.schema().types.len() as u32);
    let (mode, how) = engines::mode(*how);
    let _ = match how % 3 {
        0 => engines::agreed::<Xdr>(xdr, id, (mode, bytes)),
        1 => engines::agreed::<Lean<Native>>(lean, id, (mode, bytes)),
        _ => engines::agreed::<Lean<Swapped>>(lean, id, (mode, bytes)),
    };
});
