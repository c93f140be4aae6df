//! However single numbers are moved, by procedures or byte by byte, the bytes are the same.

use crate::support::{encoded, ids, torture};
use tenon_exec::{Interface, random::Random};
use tenon_plan::{Mover, Moves, Order, Pass, Representation, Unit, lower, specialize};
use tenon_schema::{Schema, Type};
use tenon_wire::Decoder;

const MOVES: [Moves; 4] = [
    moves(Mover::Inline, Unit::Item),
    moves(Mover::Inline, Unit::Byte),
    moves(Mover::Procedure, Unit::Item),
    moves(Mover::Procedure, Unit::Byte),
];

const fn moves(by: Mover, unit: Unit) -> Moves {
    Moves { by, unit }
}

fn interface(
    schema: &Schema,
    representation: Representation,
    passes: &[Pass],
    moves: Moves,
) -> Interface {
    let mut plans = lower(schema, representation).expect("types that end");
    specialize(schema, &mut plans, passes).expect("plans that fit");
    plans.moves = moves;
    Interface::with_plans(schema.clone(), plans).expect("plans that fit")
}

fn check(representation: Representation) {
    let schema = torture().schema().clone();
    let expected = Interface::with_representation(schema.clone(), representation);
    let expected = expected.expect("types that end");
    for passes in [&[][..], Pass::ALL] {
        for moves in MOVES {
            let moved = interface(&schema, representation, passes, moves);
            for id in ids(&moved) {
                for seed in 0..8 {
                    let value = Random::new(seed).value(&schema, &Type::Named(id), 60);
                    let bytes = encoded(&moved, id, &value);
                    assert_eq!(bytes, encoded(&expected, id, &value), "{moves:?}");
                    let read = moved.decode(id, &mut Decoder::new(&bytes));
                    assert_eq!(read, Ok(value), "{moves:?}");
                }
            }
        }
    }
}

#[test]
fn numbers_move_as_one_likes_in_xdr() {
    check(Representation::XDR);
}

#[test]
fn numbers_move_as_one_likes_in_memory_order() {
    let order = match cfg!(target_endian = "little") {
        true => Order::Little,
        false => Order::Big,
    };
    check(Representation {
        order,
        ..Representation::LEAN
    });
}
