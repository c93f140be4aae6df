//! What volo's compiler makes of the interface. Records are behind `Arc`, as its annotation
//! `pilota.rust_wrapper_arc` has them: requests would be as large as the largest of them.

#[allow(missing_docs, warnings, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/volo_gen.rs"));
}

pub use generated::volo_gen::bench;

use bench::LargeData128;

include!(concat!(env!("OUT_DIR"), "/records.rs"));

macro_rules! declare {
    (
        $record:ident $module:ident $count:literal
        $({ $($member:ident $get:ident $set:ident,)* })*
    ) => {
        impl From<[i32; $count]> for $record {
            fn from(values: [i32; $count]) -> Self {
                let mut record = Self::default();
                let mut values = values.into_iter();
                $({
                    fn fill(record: &mut $record, values: &mut impl Iterator<Item = i32>) {
                        $(record.$member = values.next().unwrap_or_default();)*
                    }
                    fill(&mut record, &mut values);
                })*
                record
            }
        }
    };
}
large128!(declare);
