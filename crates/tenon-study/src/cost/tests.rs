//! Equations against real messages: what they say of bytes is so, whatever the time.

use tenon_exec::Value;
use tenon_exec::random::Random;
use tenon_plan::Representation;
use tenon_plan::cost::{Direction, Engine, Symbol};
use tenon_plan::links::is_link;
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use super::corpus;
use super::entrant::EncodedMessage;
use super::planned::{PlannedInterface, usual_design};
use crate::measure::MeasurementEffort;

const NFS: &str = include_str!("../../../../interfaces/nfs3.x");

fn schema(text: &str) -> Schema {
    let parsed = tenon_idl::parse_text("test.x", text, &tenon_idl::Options::default());
    parsed.schema.expect("an interface")
}

fn check(text: &str, values: impl Fn(&Schema) -> Vec<(TypeId, Value)>) {
    let schema = schema(text);
    let design = usual_design(Engine::Interpreter);
    for representation in [Representation::XDR, Representation::LEAN] {
        let planned = PlannedInterface::new(&schema, representation, design).expect("plans");
        for (id, value) in values(&schema) {
            let tallies = Direction::ALL.map(|direction| planned.tally(direction, id, &value));
            let message = EncodedMessage::new(&planned, id, value).expect("a value of the type");
            for tally in tallies {
                let name = planned.name_of(id);
                let bytes = message.bytes.len() as u64;
                assert_eq!(tally.wire_bytes(), bytes, "{name}, {}", representation.name);
                let begun = [Symbol::Begin, Symbol::Whole].map(|symbol| tally.times(symbol));
                assert_eq!(begun.iter().sum::<f64>(), 1.0, "{name}");
            }
        }
    }
}

#[test]
fn the_bytes_of_exercises_are_foreseen() {
    let values = |exercises: Vec<corpus::ValueShape>| {
        move |schema: &Schema| {
            let value = |exercise: &corpus::ValueShape| {
                let id = schema.find_type(exercise.name).expect("a type");
                (id, exercise.value(schema, id))
            };
            exercises.iter().map(value).collect()
        }
    };
    check(corpus::TEXT, values(corpus::exercises(&[1000, 10_000])));
    check(corpus::MOVES, values(corpus::moves()));
}

#[test]
fn the_bytes_of_random_values_are_foreseen() {
    check(NFS, |schema| {
        let ids = (0..schema.types.len() as u32).map(TypeId);
        let messages = ids.filter(|id| {
            let kind = &schema.type_def(*id).kind;
            !matches!(kind, TypeKind::Typedef(_)) && !is_link(schema, *id)
        });
        let values = messages.flat_map(|id| {
            (0..20).map(move |seed| {
                let value = Random::new(seed).value(schema, &Type::Named(id), 60);
                (id, value)
            })
        });
        values.collect()
    });
}

#[test]
fn every_engine_moves_every_exercise() {
    for engine in Engine::ALL {
        for representation in [Representation::XDR, Representation::LEAN] {
            let found = super::calibrate(engine, representation, MeasurementEffort::QUICK, |_| {});
            let found = found.unwrap_or_else(|error| panic!("{engine}: {error}"));
            assert!(found[0].errors.count >= 120, "{engine}");
        }
    }
}
