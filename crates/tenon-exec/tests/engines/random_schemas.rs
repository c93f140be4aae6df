//! Random interfaces: whatever types they nest in each other, their plans pass the verifier,
//! the passes keep the bytes, and values survive the wire and JSON.

use crate::support;
use crate::support::{damaged, encoded, ids};
use tenon_exec::random::schemas::{schema, schema_for_c};
use tenon_exec::random::text;
use tenon_exec::{Interface, json, random::Random};
use tenon_plan::{Representation, lower};
use tenon_schema::{Schema, Type, TypeId};
use tenon_wire::{DecodeMode, Decoder, Limits};

/// Sends values of every type, with all passes and with none.
fn check(schema: Schema, seed: u64) {
    let plans = lower(&schema, Representation::XDR).expect("types that end");
    let naive = Interface::with_plans(schema.clone(), plans).expect("plans that fit");
    let interface = Interface::new(schema).expect("plans that fit");
    for id in ids(&interface) {
        let ty = Type::Named(id);
        let value = Random::new(seed).value(interface.schema(), &ty, 30);
        let bytes = encoded(&interface, id, &value);
        assert_eq!(bytes, encoded(&naive, id, &value), "seed {seed}");
        let mut input = Decoder::with(&bytes, DecodeMode::Strict, Limits::default());
        assert_eq!(
            interface.decode(id, &mut input),
            Ok(value.clone()),
            "seed {seed}"
        );
        assert_eq!(input.finish(), Ok(()), "seed {seed}");
        agree_on_damage([&naive, &interface], id, &bytes, seed);
        let written = json::write(interface.schema(), &ty, &value).expect("a value of the type");
        assert_eq!(
            json::read(interface.schema(), &ty, &written),
            Ok(value),
            "seed {seed}"
        );
    }
}

/// Bytes that are cut off or changed mean the same to both, or nothing.
fn agree_on_damage(interfaces: [&Interface; 2], id: TypeId, bytes: &[u8], seed: u64) {
    let mut chance = Random::new(seed);
    for _ in 0..4 {
        let damaged = damaged(bytes, &mut chance);
        let decoded = interfaces.map(|interface| {
            let mut input = Decoder::with(&damaged, DecodeMode::Lenient, Limits::default());
            let value = interface.decode(id, &mut input).ok()?;
            Some((value, input.position()))
        });
        assert_eq!(
            format!("{:?}", decoded[0]),
            format!("{:?}", decoded[1]),
            "seed {seed}"
        );
    }
}

#[test]
fn random_interfaces_hold_together() {
    let mut lowered = 0;
    for seed in 0..1500 {
        let schema = schema(&mut Random::new(seed));
        if lower(&schema, Representation::XDR).is_ok() {
            lowered += 1;
            check(schema, seed);
        }
    }
    assert!(lowered > 700, "{lowered}");
}

#[test]
fn what_is_written_as_text_is_the_same_interface_again() {
    let mut written = 0;
    for seed in 0..300 {
        let schema = schema_for_c(&mut Random::new(seed));
        let (Some(text), Ok(_)) = (text(&schema), lower(&schema, Representation::XDR)) else {
            continue;
        };
        let read = Interface::new(support::schema(&text)).expect("plans that fit");
        let interface = Interface::new(schema).expect("plans that fit");
        for id in ids(&interface) {
            let name = &interface.schema().type_def(id).name;
            let same = read.schema().find_type(name).expect("a type");
            let ty = Type::Named(id);
            let value = Random::new(seed).value(interface.schema(), &ty, 30);
            let bytes = encoded(&interface, id, &value);
            assert_eq!(encoded(&read, same, &value), bytes, "{text}");
        }
        written += 1;
    }
    assert!(written > 60, "{written}");
}
