//! What the fuzz targets share.

use std::sync::LazyLock;

use tenon_exec::Interface;
use tenon_schema::TypeId;

/// The torture interface, to be interpreted.
pub static TORTURE: LazyLock<Interface> = LazyLock::new(|| {
    let text = include_str!("../../interfaces/torture.x");
    let parsed = tenon_idl::parse_text("torture.x", text, &tenon_idl::Options::default());
    let schema = parsed.schema.expect("the interface has no errors");
    Interface::new(schema).expect("its types end")
});

/// Every type of the torture interface.
pub fn torture_types() -> impl Iterator<Item = TypeId> {
    (0..TORTURE.schema().types.len() as u32).map(TypeId)
}
