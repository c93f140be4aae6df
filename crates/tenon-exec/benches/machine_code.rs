//! What a message costs by machine code. Prints a table; `cargo bench -p tenon-rpc-exec --bench machine_code`.
//! How long the code takes to make, `bench/run marshal` says.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_idl::Options;
use tenon_plan::{Pass, Representation, lower, specialize};
use tenon_schema::{Type, TypeId};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Lean, Limits};

const MODE: DecodeMode = DecodeMode::Lenient;

/// Messages of the kinds that cost something.
const MESSAGES: &str = "
    struct number { int value; };
    struct ints20 { int numbers[20]; };
    struct ints250 { int numbers[250]; };
    struct ints2000 { int numbers[2000]; };
    struct triple { int a; int b; int c; };
    struct text { int kind; string text<1024>; };
    struct structure { int first; int second; int third; int numbers[256]; triple triples[86];
                       text text; };
    struct counted2000 { int numbers<2000>; };
    struct mixed { int id; hyper time; bool alive; double weight; int kinds[8];
                   opaque key[16]; string name<64>; unsigned int flags; };
    typedef mixed mixeds[100];
    struct entry { int id; string name<255>; text at; entry *next; };
";

fn interface(text: &str, representation: Representation) -> Interface {
    let parsed = tenon_idl::parse_text("bench.x", text, &Options::default());
    let schema = parsed.schema.expect("an interface");
    let mut plans = lower(&schema, representation).expect("types that end");
    specialize(&schema, &mut plans, Pass::ALL).expect("good passes");
    Interface::with_plans(schema, plans).expect("plans that fit")
}

/// The best of many runs.
fn best(mut run: impl FnMut()) -> Duration {
    let started = Instant::now();
    let mut best = Duration::MAX;
    while started.elapsed() < Duration::from_millis(300) {
        let before = Instant::now();
        (0..50).for_each(|_| run());
        best = best.min(before.elapsed() / 50);
    }
    best
}

fn message(interface: &Interface, id: TypeId) {
    let name = &interface.schema().type_def(id).name;
    let value = Random::new(5).value(interface.schema(), &Type::Named(id), 4000);
    let message = interface.message(id).expect("a layout");
    let frame = message.frame(&value).expect("a value of the type");
    let mut buffer = Buffer::default();
    let encode = best(|| {
        buffer.clear();
        assert!(black_box(&frame).encode_by_machine(&mut Encoder::new(&mut buffer)));
    });
    let bytes = buffer.as_slice();
    let decode = best(|| {
        // Only the order of a sender is not known to a plan.
        let mut input = Decoder::<Lean>::over(black_box(bytes), MODE, Limits::default());
        black_box(message.decode_by_machine(&mut input)).expect("good bytes");
    });
    println!(
        "{name:>12} {:>6} bytes  {encode:>10?} {decode:>10?}",
        bytes.len()
    );
}

fn main() {
    for representation in [Representation::XDR, Representation::LEAN] {
        let interface = interface(MESSAGES, representation);
        println!(
            "{:>12} {:>12}  {:>10} {:>10}",
            representation.name, "", "encode", "decode"
        );
        for id in (0..interface.schema().types.len() as u32).map(TypeId) {
            message(&interface, id);
        }
    }
}
