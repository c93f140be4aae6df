//! What the tests of this crate share. Each uses a part of it.
#![allow(dead_code)]

use tenon_exec::{Interface, Value};
use tenon_schema::TypeId;
use tenon_wire::{Buffer, Encoder};

/// The interface with every type constructor.
pub fn torture() -> Interface {
    interface(include_str!("../../../../interfaces/torture.x"))
}

/// The interface that `text` describes.
pub fn interface(text: &str) -> Interface {
    let parsed = tenon_idl::parse_text("test.x", text, &tenon_idl::Options::default());
    let errors = parsed.render(tenon_idl::Style::Plain);
    let schema = parsed.schema.unwrap_or_else(|| panic!("{errors}"));
    Interface::new(schema).expect("types that end")
}

/// The bytes of a value.
pub fn encoded(interface: &Interface, id: TypeId, value: &Value) -> Vec<u8> {
    let mut buffer = Buffer::default();
    let done = interface.encode(id, value, &mut Encoder::new(&mut buffer));
    done.unwrap_or_else(|error| panic!("{error}: {value:?}"));
    buffer.as_slice().to_vec()
}

/// The ids of all types.
pub fn ids(interface: &Interface) -> impl Iterator<Item = TypeId> {
    (0..interface.schema().types.len() as u32).map(TypeId)
}
