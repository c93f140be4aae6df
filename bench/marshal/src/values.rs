//! What is marshalled, as the peers' users would declare it.
//!
//! Every value comes from a seed; integers use all their bits, so that no representation gains by
//! leaving out leading zeroes.

use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;
use wincode::{SchemaRead, SchemaWrite};

include!(concat!(env!("OUT_DIR"), "/members.rs"));

/// A declaration with what all the peers derive that manage a record of 1000 members. rustc takes
/// minutes over what wincode derives for one, and LLVM over serde's and bitcode's.
macro_rules! declare {
    ($($(#[$attribute:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$attribute])*
        #[derive(
            Debug, Clone, PartialEq,
            bincode::Encode, bincode::Decode,
            rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
        )]
        #[repr(C)]
        pub struct $name { $($(#[$of_field])* pub $field: $type,)* }
    )*};
}

declare! {
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Triple {
        a: i32,
        b: i32,
        c: i32,
    }
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Text {
        kind: i32,
        text: String,
    }
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Structure {
        first: i32,
        second: i32,
        third: i32,
        #[serde(with = "BigArray")]
        numbers: [i32; 256],
        #[serde(with = "BigArray")]
        triples: [Triple; 86],
        text: Text,
    }
    #[derive(Copy, Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Vector {
        x: f32,
        y: f32,
        z: f32,
    }
    #[derive(Copy, Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Triangle {
        v0: Vector,
        v1: Vector,
        v2: Vector,
        normal: Vector,
    }
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Mesh {
        triangles: Vec<Triangle>,
    }
    #[derive(Copy, Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Address {
        x0: u8,
        x1: u8,
        x2: u8,
        x3: u8,
    }
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Record {
        address: Address,
        identity: String,
        userid: String,
        date: String,
        request: String,
        code: u16,
        size: u64,
    }
    #[derive(Serialize, Deserialize, bitcode::Encode, bitcode::Decode, SchemaRead, SchemaWrite)]
    pub struct Log {
        records: Vec<Record>,
    }
}

macro_rules! declare_members {
    ($($member:ident)*) => {
        declare! { pub struct Members1000 { $($member: i32,)* } }

        impl Members1000 {
            /// All of it.
            pub fn sample() -> Self {
                let mut seed = Seed::new();
                Self { $($member: seed.int(),)* }
            }

            /// The members in their order.
            pub fn members(&self) -> Vec<i32> {
                vec![$(self.$member),*]
            }
        }
    };
}
with_members!(declare_members);

/// An int.
pub fn int() -> i32 {
    Seed::new().int()
}

/// An array of `count` ints.
pub fn ints(count: usize) -> Vec<i32> {
    let mut seed = Seed::new();
    (0..count).map(|_| seed.int()).collect()
}

impl Structure {
    /// All of it, with the longest text.
    pub fn sample() -> Self {
        let mut seed = Seed::new();
        Self {
            first: seed.int(),
            second: seed.int(),
            third: seed.int(),
            numbers: std::array::from_fn(|_| seed.int()),
            triples: std::array::from_fn(|_| Triple {
                a: seed.int(),
                b: seed.int(),
                c: seed.int(),
            }),
            text: Text {
                kind: seed.int(),
                text: seed.text(1024..1025),
            },
        }
    }
}

impl Mesh {
    /// 125,000 triangles.
    pub fn sample() -> Self {
        let mut seed = Seed::new();
        let triangles = (0..125_000).map(|_| Triangle {
            v0: seed.vector(),
            v1: seed.vector(),
            v2: seed.vector(),
            normal: seed.vector(),
        });
        Self {
            triangles: triangles.collect(),
        }
    }
}

impl Log {
    /// 10,000 records.
    pub fn sample() -> Self {
        let mut seed = Seed::new();
        let records = (0..10_000).map(|_| Record {
            address: Address {
                x0: seed.next() as u8,
                x1: seed.next() as u8,
                x2: seed.next() as u8,
                x3: seed.next() as u8,
            },
            identity: "-".to_owned(),
            userid: seed.text(4..12),
            date: seed.text(26..27),
            request: seed.text(20..60),
            code: seed.next() as u16,
            size: seed.next(),
        });
        Self {
            records: records.collect(),
        }
    }
}

/// Pseudo-random numbers (SplitMix64), the same in every run.
struct Seed(u64);

impl Seed {
    fn new() -> Self {
        Self(0x7e40)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn int(&mut self) -> i32 {
        self.next() as i32
    }

    fn vector(&mut self) -> Vector {
        let mut float = || (self.next() >> 40) as f32 / 1024.0;
        Vector {
            x: float(),
            y: float(),
            z: float(),
        }
    }

    fn text(&mut self, lengths: std::ops::Range<u64>) -> String {
        let length = lengths.start + self.next() % (lengths.end - lengths.start);
        let letters = (0..length).map(|_| char::from(b'a' + (self.next() % 26) as u8));
        letters.collect()
    }
}
