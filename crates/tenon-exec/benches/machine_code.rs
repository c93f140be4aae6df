//! Machine code against the interpreter: how long it takes to make, and what a message costs.
//! Prints a table; `cargo bench -p tenon-exec --bench machine_code`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_idl::Options;
use tenon_schema::{Type, TypeId};
use tenon_wire::{Buffer, Decoder, Encoder};

/// Messages of the kinds that cost something.
const MESSAGES: &str = "
    struct ints2000 { int numbers[2000]; };
    struct counted2000 { int numbers<2000>; };
    struct structure { int id; hyper time; bool alive; double weight; int kinds[8];
                       opaque key[16]; string name<64>; unsigned int flags; };
    typedef structure structures[100];
    struct point { float x; float y; float z; };
    struct entry { int id; string name<255>; point at; entry *next; };
";

fn interface(text: &str) -> Interface {
    let parsed = tenon_idl::parse_text("bench.x", text, &Options::default());
    Interface::new(parsed.schema.expect("an interface")).expect("types that end")
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

fn making(name: &str, text: &str) {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let interface = interface(text);
        let before = Instant::now();
        assert!(interface.compile(), "machine code is made here");
        best = best.min(before.elapsed());
    }
    println!("making machine code of {name}: {best:?}");
}

fn message(interface: &Interface, id: TypeId) {
    let name = &interface.schema().type_def(id).name;
    let value = Random::new(5).value(interface.schema(), &Type::Named(id), 4000);
    let message = interface.message(id).expect("a layout");
    let frame = message.frame(&value).expect("a value of the type");
    let mut buffer = Buffer::default();
    let interpret = best(|| {
        buffer.clear();
        let done = interface.encode(id, black_box(&value), &mut Encoder::new(&mut buffer));
        done.expect("a value of the type");
    });
    let machine = best(|| {
        buffer.clear();
        assert!(black_box(&frame).encode_by_machine(&mut Encoder::new(&mut buffer)));
    });
    println!(
        "{name:>12} {:>6} bytes  encode {interpret:>10?} {machine:>10?}",
        buffer.len()
    );
    let bytes = buffer.as_slice();
    let interpret = best(|| {
        black_box(interface.decode(id, &mut Decoder::new(black_box(bytes)))).expect("good");
    });
    let machine = best(|| {
        black_box(message.decode_by_machine(&mut Decoder::new(black_box(bytes)))).expect("good");
    });
    println!(
        "{name:>12} {:>6} bytes  decode {interpret:>10?} {machine:>10?}",
        bytes.len()
    );
}

fn main() {
    making("nfs3.x", include_str!("../../../interfaces/nfs3.x"));
    making("torture.x", include_str!("../../../interfaces/torture.x"));
    let interface = interface(MESSAGES);
    making("this benchmark", MESSAGES);
    println!(
        "{:>12} {:>12}         {:>10} {:>10}",
        "", "", "interpreter", "machine"
    );
    for id in (0..interface.schema().types.len() as u32).map(TypeId) {
        message(&interface, id);
    }
}
