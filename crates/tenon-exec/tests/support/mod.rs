//! What the tests of this crate share. Each uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use tenon_exec::random::Random;
use tenon_exec::{Interface, Value};
use tenon_idl::{Options, Parsed, Undeclared};
use tenon_schema::{Schema, TypeId};
use tenon_wire::{Buffer, Encoder};

/// The interface with every type constructor.
pub fn torture() -> Interface {
    interface(include_str!("../../../../interfaces/torture.x"))
}

/// The interface that `text` describes.
pub fn interface(text: &str) -> Interface {
    Interface::new(schema(text)).expect("types that end")
}

/// Returns what `text` describes, in which types may be missing: only values of them are refused.
pub fn schema(text: &str) -> Schema {
    let options = Options {
        undeclared: Undeclared::Allowed,
        ..Options::default()
    };
    described(tenon_idl::parse_text("test.x", text, &options))
}

fn described(parsed: Parsed) -> Schema {
    let errors = parsed.render(tenon_idl::Style::Plain);
    parsed.schema.unwrap_or_else(|| panic!("{errors}"))
}

pub fn parsed(parsed: Parsed) -> Interface {
    Interface::new(described(parsed)).expect("types that end")
}

/// Returns bytes with one bit changed, and often cut off.
pub fn damaged(bytes: &[u8], chance: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    let bit = chance.below(8 * bytes.len() as u64) as usize;
    if let Some(byte) = damaged.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    damaged.truncate(chance.below(2 * bytes.len() as u64 + 1) as usize);
    damaged
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

/// All interfaces of this repository, and those of the system's RPC services where it has them.
pub fn interfaces() -> Vec<Interface> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interfaces");
    let folders = [own, PathBuf::from("/usr/include/rpcsvc")];
    let entries = folders
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let paths = entries
        .flatten()
        .map(|entry| entry.expect("an entry").path());
    let described = paths.filter(|path| path.extension().is_some_and(|end| end == "x"));
    let parse = |path: PathBuf| parsed(tenon_idl::parse_file(&path, &Options::default()));
    described.map(parse).collect()
}
