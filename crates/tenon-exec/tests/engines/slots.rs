//! Slots hold what was decoded last, whatever was decoded or refused before.

use crate::support::{encoded, ids, interface, torture};
use tenon_exec::{Interface, Slot, Value, random::Random};
use tenon_schema::{Type, TypeId};
use tenon_wire::{DecodeError, Decoder};

/// A method of filling a slot.
type Decode = fn(&mut Slot<'_>, &mut Decoder<'_>) -> Result<Value, DecodeError>;

/// By the interpreter, and by whatever is worth it: machine code, if it was made.
const WAYS: [Decode; 2] = [
    |slot, input| slot.decode_by_interpreter(input).map(|frame| frame.value()),
    |slot, input| slot.decode(input).map(|frame| frame.value()),
];

/// Values of very different sizes, one after the other, with truncated ones between them.
fn fill_again_and_again(interface: &Interface, id: TypeId, decode: Decode, clears: bool) {
    let message = interface.message(id).expect("a layout");
    let mut slot = message.slot();
    for (seed, items) in [(1, 40), (2, 3), (3, 400), (4, 0), (5, 60), (6, 400)] {
        let value = Random::new(seed).value(interface.schema(), &Type::Named(id), items);
        let bytes = encoded(interface, id, &value);
        for length in [bytes.len() / 2, bytes.len().saturating_sub(4)] {
            let truncated = &bytes[..length];
            let expected = message.decode_by_interpreter(&mut Decoder::new(truncated));
            let expected = expected.map(|frame| frame.value());
            assert_eq!(decode(&mut slot, &mut Decoder::new(truncated)), expected);
        }
        for _ in 0..3 {
            let mut input = Decoder::new(&bytes);
            assert_eq!(decode(&mut slot, &mut input), Ok(value.clone()));
            assert_eq!(input.left(), 0);
            if clears {
                slot.clear();
            }
        }
    }
}

#[test]
fn a_slot_holds_what_was_decoded_last() {
    let interface = torture();
    let compiled = torture();
    #[cfg(feature = "jit")]
    assert!(compiled.compile());
    for id in ids(&interface) {
        for decode in WAYS {
            for clears in [false, true] {
                fill_again_and_again(&interface, id, decode, clears);
                fill_again_and_again(&compiled, id, decode, clears);
            }
        }
    }
}

/// A decoded value can be encoded again, and lies where the slot is after it was moved.
#[test]
fn a_slot_may_be_moved() {
    let interface = interface("struct small { int number; string name<>; };");
    let message = interface.message(TypeId(0)).expect("a layout");
    let values = (0..4).map(|seed| {
        let ty = Type::Named(TypeId(0));
        Random::new(seed).value(interface.schema(), &ty, 9)
    });
    for value in values {
        let bytes = encoded(&interface, TypeId(0), &value);
        let mut slots = vec![message.slot()];
        let decoded = slots[0].decode(&mut Decoder::new(&bytes));
        assert_eq!(decoded.expect("good bytes").value(), value);
        slots.push(message.slot());
        slots.rotate_left(1);
        let decoded = slots[1].decode(&mut Decoder::new(&bytes));
        assert_eq!(decoded.expect("good bytes").value(), value);
    }
}
