//! Tenon: the xdr representation by compiled stubs and by the interpreter.

use std::error::Error;
use std::rc::Rc;

use tenon::wire::{Buffer, Decoder, Encoder, Marshal};
use tenon_exec::{Interface, Value};
use tenon_schema::TypeId;

use crate::entrant::Codec;

const INTERFACE: &str = include_str!(concat!(env!("OUT_DIR"), "/marshal.x"));

/// Compiled stubs.
#[derive(Default)]
pub struct Compiled(Buffer);

impl<T: Marshal> Codec<T> for Compiled
where
    Self: 'static,
{
    const NAME: &'static str = "tenon";

    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.clear();
        let done = value.encode(&mut Encoder::new(&mut self.0));
        done.expect("the value fits its interface");
        self.0.as_slice()
    }

    fn decode(&mut self, bytes: &[u8]) -> T {
        T::decode(&mut Decoder::new(bytes)).expect("the bytes are a value")
    }
}

/// The interpreter, for one type.
#[derive(Clone)]
pub struct Interpreted {
    interface: Rc<Interface>,
    id: TypeId,
    buffer: Buffer,
}

impl Interpreted {
    /// For the type of this name in the section's interface.
    pub fn new(name: &str) -> Result<Self, Box<dyn Error>> {
        let parsed = tenon_idl::parse_text("marshal.x", INTERFACE, &tenon_idl::Options::default());
        let schema = parsed.schema.ok_or("the interface has no meaning")?;
        let id = schema
            .find_type(name)
            .ok_or("the interface has no such type")?;
        Ok(Self {
            interface: Rc::new(Interface::new(schema)?),
            id,
            buffer: Buffer::default(),
        })
    }
}

impl Codec<Value> for Interpreted {
    const NAME: &'static str = "tenon interp";

    fn encode(&mut self, value: &Value) -> &[u8] {
        self.buffer.clear();
        let mut out = Encoder::new(&mut self.buffer);
        let done = self.interface.encode(self.id, value, &mut out);
        done.expect("the value fits its interface");
        self.buffer.as_slice()
    }

    fn decode(&mut self, bytes: &[u8]) -> Value {
        let value = self.interface.decode(self.id, &mut Decoder::new(bytes));
        value.expect("the bytes are a value")
    }
}
