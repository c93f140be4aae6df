//! Attributes of fields for `derive` of serde's traits: serde knows no arrays of more than [`ARRAY_MAX`] elements.

use super::RustFile;
use super::shape::TypeShape;

/// Most elements of an array that serde has implementations for.
const ARRAY_MAX: u32 = 32;

/// An adapter that serialises and deserialises an item instead of its own implementation.
enum SerdeAdapter {
    /// The adapter of a container, and that of its items; `None` is their own implementation.
    Of(Option<Box<SerdeAdapter>>),
    /// A box of something that is no array.
    Boxed(Box<SerdeAdapter>),
}

/// The attribute of a field of this shape, if it needs one.
pub fn attribute(rust: &RustFile<'_>, shape: &TypeShape) -> Option<String> {
    let mut derives = rust.options.derives.iter();
    if !derives.any(|derive| is_of_serde(derive)) {
        return None;
    }
    let module = format!("{}::wire::serde", rust.options.tenon);
    let path = marker(shape)?.text(&module, "::");
    Some(format!("#[serde(with = \"{path}\")]"))
}

/// Returns whether one of the traits is serde's: `Serialize` or `Deserialize`, of no other crate.
fn is_of_serde(derives: &str) -> bool {
    derives.split(',').any(|path| {
        let mut words = path.rsplit("::").map(str::trim);
        let is_trait = matches!(words.next(), Some("Serialize" | "Deserialize"));
        is_trait && matches!(words.next(), None | Some("serde" | "serde_derive"))
    })
}

fn marker(shape: &TypeShape) -> Option<SerdeAdapter> {
    let held = |to| marker(to).map(Box::new);
    match shape.real() {
        TypeShape::Bytes(count) => (*count > ARRAY_MAX).then_some(SerdeAdapter::Of(None)),
        TypeShape::Array(element, count) => {
            let element = held(element);
            (*count > ARRAY_MAX || element.is_some()).then_some(SerdeAdapter::Of(element))
        }
        TypeShape::Vec(to) | TypeShape::Option(to) => Some(SerdeAdapter::Of(Some(held(to)?))),
        TypeShape::Boxed(to) => match to.real() {
            // An array is put together in its box.
            TypeShape::Bytes(_) | TypeShape::Array(..) => marker(to),
            _ => Some(SerdeAdapter::Boxed(held(to)?)),
        },
        _ => None,
    }
}

impl SerdeAdapter {
    /// Its path. `before` stands before the adapters inside.
    fn text(&self, module: &str, before: &str) -> String {
        let (name, held) = match self {
            Self::Of(held) => ("Of", held.as_ref()),
            Self::Boxed(held) => ("Boxed", Some(held)),
        };
        let held = match held {
            Some(held) => held.text(module, ""),
            None => format!("{module}::Plain"),
        };
        format!("{module}::{name}{before}<{held}>")
    }
}
