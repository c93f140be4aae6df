//! What the fuzz targets share.

pub mod connection;
pub mod engines;
pub mod exchange;

use std::sync::LazyLock;

use tenon_exec::Interface;
use tenon_plan::Representation;
use tenon_schema::{Schema, TypeId};

/// The torture interface, to be interpreted.
pub static TORTURE: LazyLock<Interface> =
    LazyLock::new(|| Interface::new(torture()).expect("its types end"));

/// The torture interface in the lean representation.
pub static TORTURE_LEAN: LazyLock<Interface> = LazyLock::new(|| {
    let interface = Interface::with_representation(torture(), Representation::LEAN);
    interface.expect("its types end")
});

fn torture() -> Schema {
    let text = include_str!("../../interfaces/torture.x");
    let parsed = tenon_idl::parse_text("torture.x", text, &tenon_idl::Options::default());
    parsed.schema.expect("the interface has no errors")
}

/// Every type of the torture interface.
pub fn torture_types() -> impl Iterator<Item = TypeId> {
    (0..TORTURE.schema().types.len() as u32).map(TypeId)
}
