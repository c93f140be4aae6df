//! What `derive` of serde's traits is told of a field: serde knows no arrays of more than [`ARRAY_MAX`] elements.

use super::Rust;
use super::shape::Shape;

/// Most elements of an array that serde has implementations for.
const ARRAY_MAX: u32 = 32;

/// What writes and reads an item instead of its own implementation.
enum Marker {
    /// What holds others, and how they are written; `None` by their own implementation.
    Of(Option<Box<Marker>>),
    /// A box of something that is no array.
    Boxed(Box<Marker>),
}

/// The attribute of a field of this shape, if it needs one.
pub fn attribute(rust: &Rust<'_>, shape: &Shape) -> Option<String> {
    let mut derives = rust.options.derives.iter();
    if !derives.any(|derive| is_of_serde(derive)) {
        return None;
    }
    let module = format!("{}::wire::serde", rust.options.tenon);
    let path = marker(shape)?.text(&module, "::");
    Some(format!("#[serde(with = \"{path}\")]"))
}

/// Whether one of the traits is serde's: `Serialize` or `Deserialize`, of no other crate.
fn is_of_serde(derives: &str) -> bool {
    derives.split(',').any(|path| {
        let mut words = path.rsplit("::").map(str::trim);
        let is_trait = matches!(words.next(), Some("Serialize" | "Deserialize"));
        is_trait && matches!(words.next(), None | Some("serde" | "serde_derive"))
    })
}

fn marker(shape: &Shape) -> Option<Marker> {
    let held = |to| marker(to).map(Box::new);
    match shape.real() {
        Shape::Bytes(count) => (*count > ARRAY_MAX).then_some(Marker::Of(None)),
        Shape::Array(element, count) => {
            let element = held(element);
            (*count > ARRAY_MAX || element.is_some()).then_some(Marker::Of(element))
        }
        Shape::Vec(to) | Shape::Option(to) => Some(Marker::Of(Some(held(to)?))),
        Shape::Boxed(to) => match to.real() {
            // An array is put together in its box.
            Shape::Bytes(_) | Shape::Array(..) => marker(to),
            _ => Some(Marker::Boxed(held(to)?)),
        },
        _ => None,
    }
}

impl Marker {
    /// Its path. `before` stands before what it holds.
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
