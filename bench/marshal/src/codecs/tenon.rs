//! Tenon: in each representation, by compiled stubs, by machine code and by the interpreter.

use std::error::Error;
use std::hint::black_box;
use std::marker::PhantomData;

use tenon::wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits, Marshal, Native,
    Representation, Swapped, View, Xdr,
};
use tenon_exec::{Frame, Interface, Message, Slot};

use crate::entrant::{self, Codec, good};

const INTERFACE: &str = include_str!(concat!(env!("OUT_DIR"), "/marshal.x"));

/// A representation, and the names of the contestants who write it.
pub trait Named: Representation {
    /// Of compiled stubs.
    const COMPILED: &'static str;
    /// Of compiled stubs that are called as machine code is.
    const BY_POINTER: &'static str;
    /// Of machine code.
    const MACHINE: &'static str;
    /// Of machine code that decodes into memory that is there already.
    const REUSING: &'static str;
    /// Of the interpreter.
    const INTERPRETER: &'static str;
    /// The representation as a plan has it.
    const OF_PLANS: tenon_plan::Representation;
}

impl Named for Xdr {
    const COMPILED: &'static str = "xdr";
    const BY_POINTER: &'static str = "xdr called";
    const MACHINE: &'static str = "xdr jit";
    const REUSING: &'static str = "xdr jit reused";
    const INTERPRETER: &'static str = "xdr interp";
    const OF_PLANS: tenon_plan::Representation = tenon_plan::Representation::XDR;
}

impl Named for Lean<Native> {
    const COMPILED: &'static str = "lean";
    const BY_POINTER: &'static str = "lean called";
    const MACHINE: &'static str = "lean jit";
    const REUSING: &'static str = "lean jit reused";
    const INTERPRETER: &'static str = "lean interp";
    const OF_PLANS: tenon_plan::Representation = tenon_plan::Representation::LEAN;
}

impl Named for Lean<Swapped> {
    const COMPILED: &'static str = "lean swapped";
    const BY_POINTER: &'static str = "lean swapped called";
    const MACHINE: &'static str = "lean swapped jit";
    const REUSING: &'static str = "lean swapped jit reused";
    const INTERPRETER: &'static str = "lean swapped interp";
    const OF_PLANS: tenon_plan::Representation = tenon_plan::Representation::LEAN;
}

/// Compiled stubs.
pub struct Compiled<R>(Buffer, PhantomData<R>);

impl<R> Default for Compiled<R> {
    fn default() -> Self {
        Self(Buffer::default(), PhantomData)
    }
}

impl<R: Named, T: Marshal<R>> Codec<T> for Compiled<R>
where
    Self: 'static,
{
    const NAME: &'static str = R::COMPILED;

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.clear();
        let done = value.encode(&mut Encoder::over(&mut self.0));
        good(done);
        self.0.as_slice()
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(T::decode(&mut decoder(bytes)))
    }
}

type Encode<R, T> = fn(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>;
type Decode<R, T> = fn(&mut Decoder<'_, R>) -> Result<T, DecodeError>;

/// Compiled stubs, called as machine code is: through pointers that nobody looks behind. So they are no
/// part of their caller.
pub struct Called<R: Representation, T> {
    buffer: Buffer,
    encode: Encode<R, T>,
    decode: Decode<R, T>,
}

impl<R: Representation, T: Marshal<R>> Default for Called<R, T> {
    fn default() -> Self {
        Self {
            buffer: Buffer::default(),
            encode: black_box(T::encode),
            decode: black_box(T::decode),
        }
    }
}

impl<R: Named, T: Marshal<R> + 'static> Codec<T> for Called<R, T>
where
    Self: 'static,
{
    const NAME: &'static str = R::BY_POINTER;

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.buffer.clear();
        let done = (self.encode)(value, &mut Encoder::over(&mut self.buffer));
        good(done);
        self.buffer.as_slice()
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good((self.decode)(&mut decoder(bytes)))
    }
}

/// Compiled stubs of the lean representation, whose view of a value is a `V`.
pub struct Viewed<V>(Compiled<Lean<Native>>, PhantomData<V>);

impl<V> Default for Viewed<V> {
    fn default() -> Self {
        Self(Compiled::default(), PhantomData)
    }
}

/// What has views.
pub trait Lent: 'static {
    /// The view.
    type View<'a>: View<'a, Lean<Native>>;
}

impl<V: Lent, T: Marshal<Lean<Native>>> Codec<T> for Viewed<V> {
    const NAME: &'static str = <Lean<Native> as Named>::COMPILED;

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.encode(value)
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        self.0.decode(bytes)
    }

    const VIEW: Option<entrant::View> = Some(|bytes| {
        let view = V::View::view(&mut decoder(bytes));
        black_box(good(view));
    });
}

fn decoder<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Lenient, Limits::default())
}

/// Something of a type that is known only at run time: in memory as C has it.
pub struct Held(Frame<'static>);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.0.value() == other.0.value()
    }
}

/// The type called `name` of the section's interface. It lives as long as the program.
pub fn message<R: Named>(name: &str) -> Result<Message<'static>, Box<dyn Error>> {
    let parsed = tenon_idl::parse_text("marshal.x", INTERFACE, &tenon_idl::Options::default());
    let schema = parsed.schema.ok_or("the interface has no meaning")?;
    let id = schema
        .find_type(name)
        .ok_or("the interface has no such type")?;
    let interface = Interface::with_representation(schema, R::OF_PLANS)?;
    interface.compile();
    Ok(Box::leak(Box::new(interface)).message(id)?)
}

/// A type, and a place for values of it. The place of the value itself stays from one to the next,
/// as the stack frame does that a stub returns a value to; what a value points to is freed, if it
/// is not to be used again.
struct Place<R> {
    message: Message<'static>,
    slot: Slot<'static>,
    buffer: Buffer,
    representation: PhantomData<R>,
}

impl<R> Place<R> {
    fn new(message: Message<'static>) -> Self {
        Self {
            message,
            slot: message.slot(),
            buffer: Buffer::default(),
            representation: PhantomData,
        }
    }
}

/// The interpreter, for one type.
pub struct Interpreted<R>(Place<R>);

impl<R> Interpreted<R> {
    /// For this type.
    pub fn new(message: Message<'static>) -> Self {
        Self(Place::new(message))
    }
}

impl<R: Named> Codec<Held> for Interpreted<R> {
    const NAME: &'static str = R::INTERPRETER;

    #[inline]
    fn encode(&mut self, value: &Held) -> &[u8] {
        self.0.buffer.clear();
        let mut out = Encoder::<R>::over(&mut self.0.buffer);
        let done = value.0.encode_by_interpreter(&mut out);
        good(done);
        self.0.buffer.as_slice()
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> Held {
        let message = self.0.message;
        let frame = message.decode_by_interpreter(&mut decoder::<R>(bytes));
        Held(good(frame))
    }

    #[inline]
    fn spend(&mut self, bytes: &[u8]) {
        let slot = &mut self.0.slot;
        let frame = slot.decode_by_interpreter(&mut decoder::<R>(bytes));
        black_box(good(frame));
        slot.clear();
    }
}

/// Machine code, for one type.
pub struct Machine<R>(Place<R>);

impl<R> Machine<R> {
    /// For this type.
    pub fn new(message: Message<'static>) -> Self {
        Self(Place::new(message))
    }
}

impl<R: Named> Machine<R> {
    #[inline(always)]
    fn fill(&mut self, bytes: &[u8]) {
        let frame = self.0.slot.decode_by_machine(&mut decoder::<R>(bytes));
        black_box(frame.expect("there is machine code, and the bytes are a value"));
    }
}

impl<R: Named> Codec<Held> for Machine<R> {
    const NAME: &'static str = R::MACHINE;

    #[inline]
    fn encode(&mut self, value: &Held) -> &[u8] {
        self.0.buffer.clear();
        let mut out = Encoder::<R>::over(&mut self.0.buffer);
        assert!(value.0.encode_by_machine(&mut out), "there is machine code");
        self.0.buffer.as_slice()
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> Held {
        let frame = self.0.message.decode_by_machine(&mut decoder::<R>(bytes));
        Held(frame.expect("there is machine code, and the bytes are a value"))
    }

    #[inline]
    fn spend(&mut self, bytes: &[u8]) {
        self.fill(bytes);
        self.0.slot.clear();
    }
}

/// Machine code, for one type, decoding into memory that is there already.
pub struct Reusing<R>(Machine<R>);

impl<R> Reusing<R> {
    /// For this type.
    pub fn new(message: Message<'static>) -> Self {
        Self(Machine::new(message))
    }
}

impl<R: Named> Codec<Held> for Reusing<R> {
    const NAME: &'static str = R::REUSING;

    fn encode(&mut self, value: &Held) -> &[u8] {
        self.0.encode(value)
    }

    fn decode(&mut self, bytes: &[u8]) -> Held {
        self.0.decode(bytes)
    }

    #[inline]
    fn spend(&mut self, bytes: &[u8]) {
        self.0.fill(bytes);
    }
}
