//! What tonic's compiler makes of the interface.
#![allow(missing_docs)]

pub mod accepted;

include!(concat!(env!("OUT_DIR"), "/bench.rs"));
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
                    #[inline(never)]
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
large1024!(declare);
large4096!(declare);
large8192!(declare);
