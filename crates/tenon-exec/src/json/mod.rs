//! Values as JSON, by the types of the interface, without loss.
//!
//! | XDR | JSON | also read |
//! | --- | --- | --- |
//! | integers, 64-bit ones too | `42` | `"42"`, `"0x2a"` |
//! | `float`, `double` | `0.5`; `"NaN"`, `"Infinity"`, `"-Infinity"`; any other NaN `{"hex": "7fc00001"}` | `"0.5"` |
//! | `quadruple` | its 16 bytes, `"3fff..."` | as opaque |
//! | `bool` | `true` | |
//! | enum | `"NAME"` | `2`, `"2"` |
//! | opaque | its bytes in hexadecimal, `"00ff"` | `{"hex": ..}`, `{"base64": ..}`, `{"text": ..}` |
//! | `string` | `"text"`; if it is not UTF-8 `{"hex": "ff"}` | `{"hex": ..}`, `{"base64": ..}`, `{"text": ..}` |
//! | arrays and linked lists | `[..]` | `null` for an empty list behind a pointer |
//! | struct | `{"field": ..}`, without the link of a linked list | optional fields may be absent |
//! | union | `{"discriminant": .., "arm": ..}`; a void arm is left out | |
//! | `T *` | `null` or the value; `[value]` if the value may itself be `null` | |
//!
//! An arm that has the name of its discriminant gets a `_` behind it. The arguments of a
//! procedure are nothing for none, the value for one, and for several an object by name or an
//! array by position.
//!
//! A member that is given twice is refused by [`parse`]; other parsers decide for themselves.
//!
//! Recursive types can nest deeper than the 128 levels at which `serde_json` stops parsing: such
//! values can be printed, but their text cannot be read again.

mod bytes;
mod error;
mod number;
mod parse;
mod read;
mod write;

pub use error::JsonError;
pub use parse::parse;
pub use read::{read, read_arguments};
pub use write::{write, write_arguments};

use tenon_plan::links::linked_list;
use tenon_schema::{Schema, Type, Union};

/// Returns whether some value of `ty` is written as `null`, so that `null` for a pointer to it would be ambiguous.
fn may_be_null(schema: &Schema, ty: &Type) -> bool {
    matches!(schema.resolve(ty), Type::Optional(_)) && linked_list(schema, ty).is_none()
}

/// The key of the value of an arm called `name`.
fn arm_key(union: &Union, name: &str) -> String {
    match name == union.discriminant {
        true => format!("{name}_"),
        false => name.to_owned(),
    }
}
