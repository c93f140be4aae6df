//! For every type of every interface that rpcgen compiles, and of random ones: random values have the
//! same bytes whether our interpreter, our machine code, our compiled stubs or rpcgen's routines on
//! libtirpc write them, and each reads what the others wrote; of an interface that rpcgen does not get through, ours
//! alone. In the lean representation, in both
//! orders of bytes, our three have to agree among themselves. No message that is cut short is read, nor
//! one whose count is too large, and nobody reads a byte behind the end of one: it cannot be read.

use std::cell::Cell;
use std::thread;

use tenon::wire::{
    Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Representation, Swapped, Xdr,
};
use tenon_exec::random::Random;
use tenon_exec::{Interface, Value};
use tenon_interop::compiled::{self, BEYOND_RPCGEN, INTERFACES, RANDOM, Recode, Recoders};
use tenon_interop::{GuardedBuffer, XdrdumpRecoder, xdrdump};
use tenon_schema::{Length, Type, TypeId};

/// Values per type.
const VALUES: usize = 1000;

/// Values per type of a random interface: what is tried there is the types.
const VALUES_OF_RANDOM: usize = 200;

/// Parts of a value, about.
const ITEMS: usize = 30;

/// Values per type that are cut short at every byte.
const CUT: usize = 4;

/// Of them, those in which every word is made a lie.
const LIES: usize = 2;

/// No message is larger.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// What a complete machine has: four interfaces of ours and fifteen of rpcsvc.
const INTERFACES_MIN: usize = 19;

#[test]
fn rpcgen_and_tenon_write_and_read_the_same_bytes() {
    assert_eq!(INTERFACES.len(), INTERFACES_MIN, "./test setup");
    let done = compare_each(INTERFACES, VALUES);
    assert!(done.types > 250 && done.refused_counts > 500, "{done:?}");
}

#[test]
fn of_random_interfaces_too() {
    let done = compare_each(RANDOM, VALUES_OF_RANDOM);
    assert!(done.types > 180 && done.refused_counts > 200, "{done:?}");
}

#[test]
fn ours_agree_where_rpcgen_has_nothing_to_say() {
    let [listed] = BEYOND_RPCGEN else {
        panic!("./test setup installs it")
    };
    let done = compare_all(listed, VALUES, None);
    assert!(done.types > 30 && done.refused_counts > 20, "{done:?}");
}

/// What was compared.
#[derive(Debug, Default)]
struct Done {
    types: usize,
    /// Counts of more items than there are that nobody believed.
    refused_counts: usize,
}

/// Compares every type of some interfaces.
fn compare_each(interfaces: &[compiled::Interface], values: usize) -> Done {
    thread::scope(|scope| {
        let each = interfaces
            .iter()
            .map(|listed| scope.spawn(move || compare_all(listed, values, Some(listed.name))));
        let running: Vec<_> = each.collect();
        let mut all = Done::default();
        for one in running {
            let done = one.join().expect("its types agree");
            all.types += done.types;
            all.refused_counts += done.refused_counts;
        }
        all
    })
}

/// Compares every type of an interface, with the routines of rpcgen's that have a name, if there are any.
fn compare_all(listed: &compiled::Interface, values: usize, theirs: Option<&str>) -> Done {
    let subject = Subject::new(listed, values);
    let mut theirs = theirs.map(|name| XdrdumpRecoder::start(xdrdump(name)));
    for (name, recoders) in listed.types {
        subject.compare(name, *recoders, theirs.as_mut());
    }
    Done {
        types: listed.types.len(),
        refused_counts: subject.refused_counts.get(),
    }
}

/// An interface of which types are compared.
struct Subject {
    name: &'static str,
    xdr: Interface,
    lean: Interface,
    /// Values per type.
    values: usize,
    refused_counts: Cell<usize>,
}

impl Subject {
    fn new(listed: &compiled::Interface, values: usize) -> Subject {
        let parsed = tenon_idl::parse_file(listed.path.as_ref(), &tenon_idl::Options::default());
        let schema = parsed.schema.expect("the build has read it already");
        let interface = |representation| {
            let made = Interface::with_representation(schema.clone(), representation);
            let made = made.expect("the build has lowered it already");
            assert!(made.compile(), "machine code is made here");
            made
        };
        Subject {
            name: listed.name,
            xdr: interface(tenon_plan::Representation::XDR),
            lean: interface(tenon_plan::Representation::LEAN),
            values,
            refused_counts: Cell::default(),
        }
    }

    fn compare(&self, name: &str, recoders: Recoders, theirs: Option<&mut XdrdumpRecoder>) {
        let id = self.xdr.schema().find_type(name).expect("a type");
        let values = self.random_values(id);
        let ours = self.encode_all::<Xdr>(&self.xdr, id, &values);
        let answers = theirs.map_or_else(Vec::new, |theirs| theirs.recode(name, &ours));
        for ((value, bytes), answer) in values.iter().zip(&ours).zip(answers) {
            let name = self.name;
            assert_eq!(answer.as_ref(), Ok(bytes), "{name}.x: rpcgen: {value:?}");
        }
        self.read_all::<Xdr>(&self.xdr, id, (&values, &ours), recoders.xdr);
        let lean = self.encode_all::<Lean<Native>>(&self.lean, id, &values);
        self.read_all::<Lean<Native>>(&self.lean, id, (&values, &lean), recoders.lean);
        let swapped = lean.iter().map(|bytes| (recoders.to_swapped)(bytes));
        let swapped: Vec<_> = swapped.collect::<Result<_, _>>().expect("a value");
        self.read_all::<Lean<Swapped>>(&self.lean, id, (&values, &swapped), recoders.swapped);
    }

    /// What the interpreter writes, and machine code.
    fn encode_all<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        values: &[Value],
    ) -> Vec<Vec<u8>> {
        let encode = |value| self.encode::<R>(interface, id, value);
        values.iter().map(encode).collect()
    }

    /// Interpreter, machine code and stubs read values out of bytes, and the stubs write the same
    /// again. Of bytes that are cut short nobody reads a value.
    fn read_all<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        (values, encodings): (&[Value], &[Vec<u8>]),
        recode: Recode,
    ) {
        for (value, bytes) in values.iter().zip(encodings) {
            let what = || {
                let representation = std::any::type_name::<R>();
                let name = self.name;
                format!("{name}.x, {representation}: {value:?}, as {bytes:02x?}")
            };
            for engine in Engine::ALL {
                let decoded = engine.decode::<R>(interface, id, bytes);
                assert_eq!(decoded.as_ref(), Some(value), "{engine:?}: {}", what());
            }
            assert_eq!(recode(bytes).as_ref(), Ok(bytes), "compiled: {}", what());
        }
        self.refuse_all::<R>(interface, id, (values, encodings), recode);
    }

    /// Of bytes that are cut short, or whose count is too large, nobody reads a value; and where a word
    /// is another one, all agree.
    fn refuse_all<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        (values, encodings): (&[Value], &[Vec<u8>]),
        recode: Recode,
    ) {
        let mut guarded = GuardedBuffer::new(MESSAGE_BYTES_MAX);
        let mut verdict = |bytes: &[u8]| {
            let bytes = guarded.ending(bytes);
            self.verdict::<R>(interface, id, bytes, recode)
        };
        for bytes in encodings.iter().take(CUT) {
            for cut in (0..bytes.len()).map(|length| &bytes[..length]) {
                assert_eq!(verdict(cut), None, "{}.x: {cut:02x?}", self.name);
            }
        }
        for (value, bytes) in values.iter().zip(encodings).take(LIES) {
            let count = self.leading_count::<R>(id, value, bytes);
            for at in (0..bytes.len().saturating_sub(3)).step_by(4) {
                for lie in [9, 4096, 0x0100_0000, i32::MAX as u32, u32::MAX] {
                    let mut lying = bytes.clone();
                    lying[at..at + 4].copy_from_slice(&word::<R>(lie));
                    let read = verdict(&lying);
                    // No value has so many items.
                    let is_too_many = count == Some(at) && lie >= 4096;
                    assert!(
                        read.is_none() || !is_too_many,
                        "{}.x: {lying:02x?}",
                        self.name
                    );
                    let refused = self.refused_counts.get() + usize::from(is_too_many);
                    self.refused_counts.set(refused);
                }
            }
        }
    }

    /// What all three read, if they read these bytes.
    fn verdict<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        bytes: &[u8],
        recode: Recode,
    ) -> Option<Value> {
        let [read, by_machine] = Engine::ALL.map(|engine| engine.decode::<R>(interface, id, bytes));
        assert_eq!(by_machine, read, "{}.x: {bytes:02x?}", self.name);
        let recoded = recode(bytes);
        assert_eq!(
            recoded.is_ok(),
            read.is_some(),
            "{}.x: {recoded:?} {read:?}",
            self.name
        );
        read
    }

    /// Where the count stands of a type that is nothing but a count and its items.
    fn leading_count<R: Representation>(
        &self,
        id: TypeId,
        value: &Value,
        bytes: &[u8],
    ) -> Option<usize> {
        let items = match (self.xdr.schema().resolve(&Type::Named(id)), value) {
            (Type::Opaque(Length::Counted(_)), Value::Opaque(bytes)) => bytes.len(),
            (Type::String(_), Value::String(text)) => text.len(),
            (Type::Array(_, Length::Counted(_)), Value::Array(items)) => items.len(),
            _ => return None,
        };
        // There may be a hole in front of it.
        let is_count = |at: &usize| bytes.get(*at..*at + 4) == Some(&word::<R>(items as u32));
        [0, 4].into_iter().find(is_count)
    }

    fn random_values(&self, id: TypeId) -> Vec<Value> {
        let mut random = Random::new(u64::from(id.0) + 1);
        let ty = Type::Named(id);
        let value = |_| random.value(self.xdr.schema(), &ty, ITEMS);
        (0..self.values).map(value).collect()
    }

    fn encode<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        value: &Value,
    ) -> Vec<u8> {
        let message = interface.message(id).expect("a layout");
        let what = || format!("{}.x: {value:?}", self.name);
        let [interpreted, compiled] = Engine::ALL.map(|engine| {
            let frame = message.frame(value).expect("a value of the type");
            let mut buffer = Buffer::with_capacity(256);
            let mut out = Encoder::<R>::over(&mut buffer);
            let is_done = match engine {
                Engine::Interpreter => frame.encode_by_interpreter(&mut out).is_ok(),
                Engine::MachineCode => frame.encode_by_machine(&mut out),
            };
            assert!(is_done, "{engine:?}: {}", what());
            buffer.as_slice().to_vec()
        });
        assert_eq!(compiled, interpreted, "{}", what());
        interpreted
    }
}

/// A number of four bytes as a sender of this representation writes it.
fn word<R: Representation>(value: u32) -> [u8; 4] {
    match R::SWAPPED {
        true => value.swap_bytes().to_ne_bytes(),
        false => value.to_ne_bytes(),
    }
}

/// What runs a plan.
#[derive(Debug, Clone, Copy)]
enum Engine {
    Interpreter,
    MachineCode,
}

impl Engine {
    const ALL: [Engine; 2] = [Engine::Interpreter, Engine::MachineCode];

    /// The value that it reads, and nothing behind it.
    fn decode<R: Representation>(
        self,
        interface: &Interface,
        id: TypeId,
        bytes: &[u8],
    ) -> Option<Value> {
        let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, Limits::default());
        let message = interface.message(id).expect("a layout");
        let frame = match self {
            Engine::Interpreter => message.decode_by_interpreter(&mut input).ok(),
            Engine::MachineCode => message.decode_by_machine(&mut input),
        };
        let value = frame?.value();
        (input.left() == 0).then_some(value)
    }
}
