//! For every type of every interface that rpcgen compiles: random values have the same bytes
//! whether our interpreter, our compiled stubs or rpcgen's routines on libtirpc write them, and
//! each reads what the others wrote. In the lean representation, in both orders of bytes, our
//! interpreter and our stubs have to agree among themselves. No message that is cut short is read.

use std::thread;

use tenon::wire::{
    Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Representation, Swapped, Xdr,
};
use tenon_exec::random::Random;
use tenon_exec::{Interface, Value};
use tenon_interop::compiled::{self, INTERFACES, Recode, Recoders};
use tenon_interop::{Recoder, xdrdump};
use tenon_schema::{Type, TypeId};

/// Values per type.
const VALUES: usize = 1000;

/// Parts of a value, about.
const ITEMS: usize = 30;

/// Values per type that are cut short at every byte.
const CUT: usize = 4;

/// What a complete machine has: four interfaces of ours and fifteen of rpcsvc.
const INTERFACES_MIN: usize = 19;

#[test]
fn rpcgen_and_tenon_write_and_read_the_same_bytes() {
    assert_eq!(INTERFACES.len(), INTERFACES_MIN, "./test setup");
    let types: usize = thread::scope(|scope| {
        let each = INTERFACES
            .iter()
            .map(|listed| scope.spawn(|| compare_all(listed)));
        let running: Vec<_> = each.collect();
        let counts = running
            .into_iter()
            .map(|one| one.join().expect("its types agree"));
        counts.sum()
    });
    println!("{types} types, {VALUES} values each");
    assert!(types > 250, "only {types} types were compared");
}

/// Compares every type of an interface and returns how many there are.
fn compare_all(listed: &compiled::Interface) -> usize {
    let subject = Subject::new(listed);
    let mut theirs = Recoder::start(xdrdump(listed.name));
    for (name, recoders) in listed.types {
        subject.compare(name, *recoders, &mut theirs);
    }
    listed.types.len()
}

/// An interface of which types are compared.
struct Subject {
    name: &'static str,
    xdr: Interface,
    lean: Interface,
}

impl Subject {
    fn new(listed: &compiled::Interface) -> Subject {
        let parsed = tenon_idl::parse_file(listed.path.as_ref(), &tenon_idl::Options::default());
        let schema = parsed.schema.expect("the build has read it already");
        let interface = |representation| {
            let made = Interface::with_representation(schema.clone(), representation);
            made.expect("the build has lowered it already")
        };
        Subject {
            name: listed.name,
            xdr: interface(tenon_plan::Representation::XDR),
            lean: interface(tenon_plan::Representation::LEAN),
        }
    }

    fn compare(&self, name: &str, recoders: Recoders, theirs: &mut Recoder) {
        let id = self.xdr.schema().find_type(name).expect("a type");
        let values = self.random_values(id);
        let ours = self.encode_all::<Xdr>(&self.xdr, id, &values);
        let answers = theirs.recode(name, &ours);
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

    /// What the interpreter writes.
    fn encode_all<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        values: &[Value],
    ) -> Vec<Vec<u8>> {
        let encode = |value| self.encode::<R>(interface, id, value);
        values.iter().map(encode).collect()
    }

    /// Interpreter and stubs read values out of bytes, and the stubs write the same again. Of bytes
    /// that are cut short nobody reads a value.
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
            let decoded = decode::<R>(interface, id, bytes);
            assert_eq!(decoded.as_ref(), Some(value), "interpreter: {}", what());
            assert_eq!(recode(bytes).as_ref(), Ok(bytes), "compiled: {}", what());
        }
        for bytes in encodings.iter().take(CUT) {
            for cut in (0..bytes.len()).map(|length| &bytes[..length]) {
                let what = || format!("{}.x: {cut:02x?} of {bytes:02x?}", self.name);
                let read = decode::<R>(interface, id, cut);
                assert_eq!(read, None, "interpreter: {}", what());
                assert!(recode(cut).is_err(), "compiled: {}", what());
            }
        }
    }

    fn random_values(&self, id: TypeId) -> Vec<Value> {
        let mut random = Random::new(u64::from(id.0) + 1);
        let ty = Type::Named(id);
        let value = |_| random.value(self.xdr.schema(), &ty, ITEMS);
        (0..VALUES).map(value).collect()
    }

    fn encode<R: Representation>(
        &self,
        interface: &Interface,
        id: TypeId,
        value: &Value,
    ) -> Vec<u8> {
        let mut buffer = Buffer::with_capacity(256);
        interface
            .encode(id, value, &mut Encoder::<R>::over(&mut buffer))
            .unwrap_or_else(|error| panic!("{}.x: {value:?}: {error}", self.name));
        buffer.as_slice().to_vec()
    }
}

/// The value that the interpreter reads, and nothing behind it.
fn decode<R: Representation>(interface: &Interface, id: TypeId, bytes: &[u8]) -> Option<Value> {
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, Limits::default());
    let value = interface.decode(id, &mut input).ok()?;
    (input.left() == 0).then_some(value)
}
