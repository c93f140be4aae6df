//! Machine code against the interpreter: the same bytes, the same values, the same verdict on
//! bytes that lie.
#![cfg(feature = "jit")]

use std::path::Path;
use std::sync::LazyLock;

use crate::support::{ids, interface, interfaces, parsed, torture};
use tenon_exec::random::schemas::schema;
use tenon_exec::{Interface, Message, Procedure, Value, random::Random};
use tenon_plan::{Representation, lower};
use tenon_schema::{Schema, Type, TypeId, TypeKind};
use tenon_wire::{Buffer, DecodeError, DecodeMode, Decoder, Encoder, Limits};

const MODES: [DecodeMode; 2] = [DecodeMode::Lenient, DecodeMode::Strict];

/// Its machine code is made once.
static TORTURE: LazyLock<Interface> = LazyLock::new(torture);

/// One message, and what to move.
struct MessageCase<'a> {
    message: Message<'a>,
    random: Box<dyn Fn(u64) -> Value + 'a>,
}

/// Every type and procedure of an interface, but for those that hold an external type, of which the values are
/// unknown here.
fn cases(interface: &Interface) -> Vec<MessageCase<'_>> {
    assert!(interface.compile(), "machine code is made here");
    let schema = interface.schema();
    let is_known = |ty: &Type| !holds_external(schema, ty, &mut Vec::new());
    let known = ids(interface).filter(|id| is_known(&Type::Named(*id)));
    let types = known.map(|id| MessageCase {
        message: interface.message(id).expect("a layout"),
        random: Box::new(move |seed| Random::new(seed).value(schema, &Type::Named(id), 40)),
    });
    let are_known = |procedure: &Procedure<'_>| {
        let mut parameters = procedure.parameters().iter();
        parameters.all(|field| is_known(&field.ty))
    };
    let arguments = interface.procedures().filter(are_known);
    let arguments = arguments.map(|procedure| MessageCase {
        message: procedure.arguments_message().expect("a layout"),
        random: Box::new(move |seed| {
            Random::new(seed).arguments(schema, procedure.parameters(), 40)
        }),
    });
    let results = interface.procedures();
    let results = results.filter(|procedure| procedure.result().is_none_or(is_known));
    let results = results.map(|procedure| MessageCase {
        message: procedure.result_message().expect("a layout"),
        random: Box::new(move |seed| match procedure.result() {
            Some(ty) => Random::new(seed).value(schema, ty, 40),
            None => Value::Void,
        }),
    });
    types.chain(arguments).chain(results).collect()
}

/// Returns whether values of `ty` may hold some of an external type; `seen` are types that are being visited.
fn holds_external(schema: &Schema, ty: &Type, seen: &mut Vec<TypeId>) -> bool {
    let id = match ty {
        Type::Array(item, _) | Type::Optional(item) => return holds_external(schema, item, seen),
        Type::Named(id) if !seen.contains(id) => *id,
        _ => return false,
    };
    seen.push(id);
    let kind = &schema.type_def(id).kind;
    let mut types = kind.types().into_iter();
    *kind == TypeKind::External || types.any(|ty| holds_external(schema, ty, seen))
}

impl MessageCase<'_> {
    fn interpreted(&self, value: &Value) -> Vec<u8> {
        let mut buffer = Buffer::default();
        let frame = self.message.frame(value).expect("a value of the type");
        let done = frame.encode_by_interpreter(&mut Encoder::new(&mut buffer));
        done.unwrap_or_else(|error| panic!("{error}: {value:?}"));
        buffer.as_slice().to_vec()
    }

    /// Reads a value by the interpreter.
    fn decode(&self, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
        let frame = self.message.decode_by_interpreter(input)?;
        Ok(frame.value())
    }

    /// The same value both ways.
    fn check(&self, value: &Value) -> Vec<u8> {
        let bytes = self.interpreted(value);
        let frame = self.message.frame(value).expect("a value of the type");
        assert_eq!(frame.value(), *value);
        let mut buffer = Buffer::default();
        buffer.extend(b"before");
        assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
        assert_eq!(buffer.as_slice()[6..], bytes);
        for mode in MODES {
            let mut input = Decoder::with(&bytes, mode, Limits::default());
            let frame = self.message.decode_by_machine(&mut input);
            assert_eq!(frame.expect("good bytes").value(), *value);
            assert_eq!(input.position(), bytes.len());
        }
        bytes
    }

    /// Machine code takes no more memory than the interpreter does.
    fn judge_memory(&self, bytes: &[u8], limits: Limits) {
        let mut input = Decoder::with(bytes, DecodeMode::Strict, limits);
        let expected = self.decode(&mut input.clone());
        if let Some(frame) = self.message.decode_by_machine(&mut input) {
            assert_eq!(Ok(frame.value()), expected);
        }
        let both = self
            .message
            .decode(&mut Decoder::with(bytes, DecodeMode::Strict, limits));
        assert_eq!(both.map(|frame| frame.value()), expected);
    }

    /// The same verdict on any bytes: value, error, place and account.
    fn judge(&self, bytes: &[u8], limits: Limits) -> bool {
        let verdicts = MODES.map(|mode| {
            let mut by_interpreter = Decoder::with(bytes, mode, limits);
            let mut by_machine = by_interpreter.clone();
            let mut by_either = by_interpreter.clone();
            let expected = self.decode(&mut by_interpreter);
            let frame = self.message.decode_by_machine(&mut by_machine);
            let value = frame.map(|frame| frame.value());
            assert_eq!(value.as_ref(), expected.as_ref().ok(), "{mode:?} {bytes:?}");
            if expected.is_ok() {
                assert_eq!(by_machine.position(), by_interpreter.position());
                assert_eq!(by_machine.memory_left(), by_interpreter.memory_left());
                assert_eq!(by_machine.depth_left(), by_interpreter.depth_left());
            } else {
                assert_eq!(by_machine.position(), 0);
            }
            let both = self.message.decode(&mut by_either);
            assert_eq!(both.map(|frame| frame.value()), expected);
            value.is_some()
        });
        verdicts[0]
    }
}

#[test]
fn random_interfaces_hold_together() {
    let mut values = 0;
    for seed in 0..40 {
        let schema = schema(&mut Random::new(seed));
        if lower(&schema, Representation::XDR).is_err() {
            continue;
        }
        let interface = Interface::new(schema).expect("plans that fit");
        for case in cases(&interface) {
            for round in 0..4 {
                case.check(&(case.random)(seed * 7 + round));
                values += 1;
            }
        }
    }
    assert!(values > 800, "{values}");
}

/// Unions that contain themselves with no pointer between.
fn in_place() -> Interface {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-gen/tests/corpus/in_place.x");
    parsed(tenon_idl::parse_file(&path, &Default::default()))
}

#[test]
fn values_within_themselves_are_judged_alike() {
    let interface = in_place();
    for case in cases(&interface) {
        for seed in 0..10 {
            let mut bytes = case.interpreted(&(case.random)(seed));
            for length in 0..bytes.len() {
                assert!(!case.judge(&bytes[..length], Limits::default()));
            }
            for bit in 0..bytes.len().min(60) * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                case.judge(&bytes, Limits::default());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            for memory_base in (0..2000).step_by(8) {
                let limits = Limits {
                    memory_per_byte: 0,
                    memory_base,
                    ..Limits::default()
                };
                case.judge_memory(&bytes, limits);
            }
            for depth in 0..8 {
                let limits = Limits {
                    depth,
                    ..Limits::default()
                };
                case.judge(&bytes, limits);
            }
        }
    }
}

#[test]
fn real_interfaces_hold_together() {
    let mut messages = 0;
    for interface in interfaces().into_iter().chain([in_place()]) {
        let cases = cases(&interface);
        messages += cases.len();
        for case in cases {
            for seed in 0..25 {
                case.check(&(case.random)(seed));
            }
        }
    }
    assert!(messages > 160, "{messages}");
}

#[test]
fn every_truncation_is_judged_alike() {
    for case in cases(&TORTURE) {
        let bytes = case.interpreted(&(case.random)(1));
        for length in 0..bytes.len().min(400) {
            assert!(!case.judge(&bytes[..length], Limits::default()));
        }
    }
}

#[test]
fn every_flipped_bit_is_judged_alike() {
    let (mut accepted, mut refused) = (0, 0);
    for case in cases(&TORTURE) {
        let mut bytes = case.interpreted(&(case.random)(2));
        for bit in 0..bytes.len().min(100) * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            match case.judge(&bytes, Limits::default()) {
                true => accepted += 1,
                false => refused += 1,
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}

#[test]
fn random_damage_to_random_interfaces_is_judged_alike() {
    let mut chance = Random::new(3);
    for seed in 0..20 {
        let schema = schema(&mut Random::new(seed));
        if lower(&schema, Representation::XDR).is_err() {
            continue;
        }
        let interface = Interface::new(schema).expect("plans that fit");
        for case in cases(&interface) {
            let mut bytes = case.interpreted(&(case.random)(seed));
            for _ in 0..8 {
                let at = chance.below(bytes.len() as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << chance.below(8);
                }
                let keep = match chance.below(4) {
                    0 => chance.below(bytes.len() as u64 + 1) as usize,
                    _ => bytes.len(),
                };
                case.judge(&bytes[..keep], Limits::default());
            }
        }
    }
}

#[test]
fn limits_of_memory_are_judged_alike() {
    let interface = interface(
        "struct pair { hyper a; hyper b; };
         union u switch (int d) { case 0: pair p; default: void; };
         struct l { opaque o<>; pair *p; u arms<>; int n[2]; pair in; l *next; };
         struct all { l *list; unsigned int numbers<>; bool truths<>; string s<>; };",
    );
    for case in cases(&interface) {
        let bytes = case.interpreted(&(case.random)(9));
        for memory_base in (0..6000).step_by(8) {
            let limits = Limits {
                memory_per_byte: 0,
                memory_base,
                ..Limits::default()
            };
            case.judge_memory(&bytes, limits);
        }
    }
}

#[test]
fn limits_of_depth_are_judged_alike() {
    for case in cases(&TORTURE) {
        for seed in 0..6 {
            let bytes = case.interpreted(&(case.random)(seed));
            for depth in 0..4 {
                let limits = Limits {
                    depth,
                    ..Limits::default()
                };
                case.judge(&bytes, limits);
            }
        }
    }
}

#[test]
fn arrays_of_structs_of_any_length_hold_together() {
    for count in [1, 2, 4, 5, 8, 9, 3000_u32] {
        let interface = interface(&format!(
            "struct p {{ hyper a; int b; int c; }};
             struct all {{ int before; p one; p ps[{count}]; int behind; p last; }};"
        ));
        for case in cases(&interface) {
            let bytes = case.check(&(case.random)(u64::from(count)));
            case.judge(&bytes[..bytes.len() - 1], Limits::default());
        }
    }
}

/// An element of such a list is an array and no more; as a whole message, one kernel would move it.
#[test]
fn lists_of_arrays_are_no_arrays() {
    let types = ["int n<>", "int n<5>", "hyper n<>", "opaque n<>", "bool n<>"];
    for ty in types {
        let interface = interface(&format!("struct l {{ {ty}; l *next; }};"));
        for case in cases(&interface) {
            for seed in 0..20 {
                let bytes = case.check(&(case.random)(seed));
                for length in 0..bytes.len() {
                    case.judge(&bytes[..length], Limits::default());
                }
            }
        }
    }
}
