//! What wincode makes of a record of 1000 members. The functions are no generic ones, so that the
//! code is made here, and only once.
#![allow(missing_docs)]

use wincode::{SchemaRead, SchemaWrite};

include!(concat!(env!("OUT_DIR"), "/members.rs"));

macro_rules! declare_members {
    ($($member:ident)*) => {
        #[derive(Debug, Clone, PartialEq, SchemaRead, SchemaWrite)]
        #[repr(C)]
        pub struct Members1000 { $(pub $member: i32,)* }

        impl Members1000 {
            /// With the members' values in their order.
            pub fn from_values(mut values: impl FnMut() -> i32) -> Self {
                Self { $($member: values(),)* }
            }
        }
    };
}
with_members!(declare_members);

impl Members1000 {
    /// Appends the value.
    pub fn encode(&self, out: &mut Vec<u8>) {
        wincode::serialize_into(out, self).expect("wincode encodes the value");
    }

    /// Makes an owned value of the bytes.
    pub fn decode(bytes: &[u8]) -> Self {
        wincode::deserialize(bytes).expect("wincode decodes its bytes")
    }
}
