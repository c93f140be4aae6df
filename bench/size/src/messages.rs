//! The thousand message types, by compiled stubs and by the engines that learn types at run time.

use std::error::Error;
use std::hint::black_box;

use tenon::wire::{Buffer, DecodeMode, Decoder, Encoder, Limits, Marshal, Xdr};
use tenon_exec::random::Random;
use tenon_exec::{Frame, Interface, Message as Known};
use tenon_schema::Type;

use stubs::with_messages;

mod stubs {
    #![allow(missing_docs, dead_code)]

    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
    include!(concat!(env!("OUT_DIR"), "/list.rs"));
    pub(super) use with_messages;
}

const INTERFACE: &str = include_str!(concat!(env!("OUT_DIR"), "/messages.x"));

/// About how many parts a value has.
const PARTS: usize = 20;

/// A value of one of the types in the hands of each engine.
pub struct Message {
    bytes: Vec<u8>,
    stub: Box<dyn Stub>,
    frame: Frame<'static>,
    known: Known<'static>,
}

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Stubs in Rust, compiled together with this program.
    Compiled,
    /// Machine code made when the program runs.
    Machine,
    /// The interpreter.
    Interpreter,
}

impl Engine {
    /// In the order of their turns.
    pub const ALL: [Self; 3] = [Self::Compiled, Self::Machine, Self::Interpreter];

    /// Its name in tables and ratios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Machine => "jit",
            Self::Interpreter => "interp",
        }
    }
}

impl Message {
    /// One of each type, with a random value.
    ///
    /// # Errors
    /// The interface or an engine is broken.
    pub fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        let parsed = tenon_idl::parse_text("messages.x", INTERFACE, &tenon_idl::Options::default());
        let schema = parsed.schema.ok_or("the interface has no meaning")?;
        let interface: &'static Interface = Box::leak(Box::new(Interface::new(schema)?));
        if !interface.compile() {
            return Err("no machine code can be made here".into());
        }
        let one = |(name, read): &(String, Read)| {
            let schema = interface.schema();
            let id = schema.find_type(name).ok_or("a type without a name")?;
            let mut random = Random::new(u64::from(id.0));
            let value = random.value(schema, &Type::Named(id), PARTS);
            let known = interface.message(id)?;
            let mut buffer = Buffer::default();
            interface.encode(id, &value, &mut Encoder::new(&mut buffer))?;
            let bytes = buffer.as_slice().to_vec();
            Ok(Self {
                stub: read(&bytes),
                frame: known.frame(&value)?,
                known,
                bytes,
            })
        };
        kinds().iter().map(one).collect()
    }

    /// Bytes on the wire.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Encodes into a buffer that is used again.
    #[inline]
    pub fn encode(&self, engine: Engine, buffer: &mut Buffer) {
        buffer.clear();
        let done = match engine {
            Engine::Compiled => self.stub.write(buffer),
            Engine::Machine => self
                .frame
                .encode_by_machine(&mut Encoder::<Xdr>::over(buffer)),
            Engine::Interpreter => {
                let mut out = Encoder::<Xdr>::over(buffer);
                self.frame.encode_by_interpreter(&mut out).is_ok()
            }
        };
        assert!(done, "a value that fits its interface");
        black_box(buffer.as_slice());
    }

    /// Decodes to an owned value, and drops it.
    #[inline]
    pub fn decode(&self, engine: Engine) {
        let mut input: Decoder<'_, Xdr> =
            Decoder::over(&self.bytes, DecodeMode::Lenient, Limits::default());
        let done = match engine {
            Engine::Compiled => self.stub.read_and_drop(&self.bytes),
            Engine::Machine => black_box(self.known.decode_by_machine(&mut input)).is_some(),
            Engine::Interpreter => black_box(self.known.decode_by_interpreter(&mut input)).is_ok(),
        };
        assert!(done, "bytes that are a value");
    }
}

/// A value of a compiled type. Which type is known only by the table of functions behind it, as in
/// a program that is told by a message what it is.
trait Stub {
    fn write(&self, buffer: &mut Buffer) -> bool;

    /// Reads another value of the type from bytes.
    fn read_and_drop(&self, bytes: &[u8]) -> bool;
}

impl<T: Marshal> Stub for T {
    fn write(&self, buffer: &mut Buffer) -> bool {
        self.encode(&mut Encoder::new(buffer)).is_ok()
    }

    fn read_and_drop(&self, bytes: &[u8]) -> bool {
        let mut input = Decoder::new(bytes);
        black_box(T::decode(&mut input)).is_ok()
    }
}

type Read = fn(&[u8]) -> Box<dyn Stub>;

fn read<T: Marshal + 'static>(bytes: &[u8]) -> Box<dyn Stub> {
    let value = T::decode(&mut Decoder::new(bytes));
    Box::new(value.expect("bytes that the interpreter wrote"))
}

/// All types, by their names in the interface.
fn kinds() -> Vec<(String, Read)> {
    macro_rules! kinds {
        ($($message:ident)*) => {
            vec![$((stringify!($message).to_lowercase(), read::<stubs::$message> as Read),)*]
        };
    }
    with_messages!(kinds)
}
