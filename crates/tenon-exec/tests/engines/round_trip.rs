//! Random values of every type survive the way to bytes and back, and to JSON and back.

use crate::support::{encoded, ids, torture};
use tenon_exec::Interface;
use tenon_exec::{json, random::Random};
use tenon_plan::{Representation, lower};
use tenon_schema::Type;
use tenon_wire::{DecodeMode, Decoder, Limits};

/// Number of values of each type.
const VALUES: u64 = 200;

/// About how many parts each has.
const ITEMS: usize = 60;

#[test]
fn values_survive_the_wire() {
    let interface = torture();
    for id in ids(&interface) {
        for seed in 0..VALUES {
            let value = Random::new(seed).value(interface.schema(), &Type::Named(id), ITEMS);
            let bytes = encoded(&interface, id, &value);
            for mode in [DecodeMode::Strict, DecodeMode::Lenient] {
                let mut input = Decoder::with(&bytes, mode, Limits::default());
                assert_eq!(
                    interface.decode(id, &mut input),
                    Ok(value.clone()),
                    "seed {seed}"
                );
                assert_eq!(input.left(), 0);
            }
        }
    }
}

#[test]
fn values_survive_json() {
    let interface = torture();
    for id in ids(&interface) {
        let ty = Type::Named(id);
        for seed in 0..VALUES {
            let value = Random::new(seed).value(interface.schema(), &ty, ITEMS);
            let written = json::write(interface.schema(), &ty, &value).unwrap();
            let text = serde_json::to_string(&written).unwrap();
            let parsed = serde_json::from_str(&text).unwrap();
            let read = json::read(interface.schema(), &ty, &parsed);
            assert_eq!(read, Ok(value), "seed {seed}: {text}");
        }
    }
}

#[test]
fn passes_do_not_change_a_byte() {
    let good = torture();
    let plans = lower(good.schema(), Representation::XDR).unwrap();
    let naive = Interface::with_plans(good.schema().clone(), plans).unwrap();
    for id in ids(&good) {
        for seed in 0..VALUES {
            let value = Random::new(seed).value(good.schema(), &Type::Named(id), ITEMS);
            assert_eq!(encoded(&good, id, &value), encoded(&naive, id, &value));
        }
    }
}

#[test]
fn sizes_of_plans_hold() {
    let interface = torture();
    for id in ids(&interface) {
        let ty = Type::Named(id);
        let size = tenon_plan::Sizes::new(interface.schema(), Representation::XDR).of(&ty);
        for seed in 0..VALUES {
            let value = Random::new(seed).value(interface.schema(), &ty, ITEMS);
            let bytes = encoded(&interface, id, &value).len() as u64;
            assert!(size.min <= bytes && size.max.is_none_or(|max| bytes <= max));
        }
    }
}
