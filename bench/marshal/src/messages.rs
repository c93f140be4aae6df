//! The same as messages of prost, and the peers' values in their types. Integers that use all
//! their bits are `sfixed32`, as protobuf's documentation advises.

use prost::Message;

use crate::values;

include!(concat!(env!("OUT_DIR"), "/members.rs"));

/// An int.
#[derive(Clone, PartialEq, Message)]
pub struct Number {
    #[prost(sfixed32, tag = "1")]
    pub value: i32,
}

/// An array of ints.
#[derive(Clone, PartialEq, Message)]
pub struct Ints {
    #[prost(sfixed32, repeated, tag = "1")]
    pub value: Vec<i32>,
}

/// Three ints.
#[derive(Clone, PartialEq, Message)]
pub struct Triple {
    #[prost(sfixed32, tag = "1")]
    pub a: i32,
    #[prost(sfixed32, tag = "2")]
    pub b: i32,
    #[prost(sfixed32, tag = "3")]
    pub c: i32,
}

/// An int and a text.
#[derive(Clone, PartialEq, Message)]
pub struct Text {
    #[prost(sfixed32, tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// The structure of the HRPC study.
#[derive(Clone, PartialEq, Message)]
pub struct Structure {
    #[prost(sfixed32, tag = "1")]
    pub first: i32,
    #[prost(sfixed32, tag = "2")]
    pub second: i32,
    #[prost(sfixed32, tag = "3")]
    pub third: i32,
    #[prost(sfixed32, repeated, tag = "4")]
    pub numbers: Vec<i32>,
    #[prost(message, repeated, tag = "5")]
    pub triples: Vec<Triple>,
    #[prost(message, optional, tag = "6")]
    pub text: Option<Text>,
}

/// Three floats.
#[derive(Clone, PartialEq, Message)]
pub struct Vector {
    #[prost(float, tag = "1")]
    pub x: f32,
    #[prost(float, tag = "2")]
    pub y: f32,
    #[prost(float, tag = "3")]
    pub z: f32,
}

/// A triangle of a mesh.
#[derive(Clone, PartialEq, Message)]
pub struct Triangle {
    #[prost(message, optional, tag = "1")]
    pub v0: Option<Vector>,
    #[prost(message, optional, tag = "2")]
    pub v1: Option<Vector>,
    #[prost(message, optional, tag = "3")]
    pub v2: Option<Vector>,
    #[prost(message, optional, tag = "4")]
    pub normal: Option<Vector>,
}

/// A mesh.
#[derive(Clone, PartialEq, Message)]
pub struct Mesh {
    #[prost(message, repeated, tag = "1")]
    pub triangles: Vec<Triangle>,
}

/// An address of a host.
#[derive(Clone, PartialEq, Message)]
pub struct Address {
    #[prost(uint32, tag = "1")]
    pub x0: u32,
    #[prost(uint32, tag = "2")]
    pub x1: u32,
    #[prost(uint32, tag = "3")]
    pub x2: u32,
    #[prost(uint32, tag = "4")]
    pub x3: u32,
}

/// A line of a log.
#[derive(Clone, PartialEq, Message)]
pub struct Record {
    #[prost(message, optional, tag = "1")]
    pub address: Option<Address>,
    #[prost(string, tag = "2")]
    pub identity: String,
    #[prost(string, tag = "3")]
    pub userid: String,
    #[prost(string, tag = "4")]
    pub date: String,
    #[prost(string, tag = "5")]
    pub request: String,
    #[prost(uint32, tag = "6")]
    pub code: u32,
    #[prost(fixed64, tag = "7")]
    pub size: u64,
}

/// A log.
#[derive(Clone, PartialEq, Message)]
pub struct Log {
    #[prost(message, repeated, tag = "1")]
    pub records: Vec<Record>,
}

macro_rules! declare_members {
    ($($member:ident)*) => {
        /// A record of 1000 members.
        #[derive(Clone, PartialEq, Message)]
        pub struct Members1000 { $(#[prost(sfixed32)] pub $member: i32,)* }

        impl From<&values::Members1000> for Members1000 {
            fn from(value: &values::Members1000) -> Self {
                Self { $($member: value.$member,)* }
            }
        }
    };
}
with_members!(declare_members);

impl From<&i32> for Number {
    fn from(&value: &i32) -> Self {
        Self { value }
    }
}

impl From<&Vec<i32>> for Ints {
    fn from(value: &Vec<i32>) -> Self {
        Self {
            value: value.clone(),
        }
    }
}

impl From<&values::Structure> for Structure {
    fn from(value: &values::Structure) -> Self {
        let triples = value.triples.iter().map(|it| Triple {
            a: it.a,
            b: it.b,
            c: it.c,
        });
        Self {
            first: value.first,
            second: value.second,
            third: value.third,
            numbers: value.numbers.to_vec(),
            triples: triples.collect(),
            text: Some(Text {
                kind: value.text.kind,
                text: value.text.text.clone(),
            }),
        }
    }
}

impl From<&values::Mesh> for Mesh {
    fn from(value: &values::Mesh) -> Self {
        let vector = |it: values::Vector| {
            Some(Vector {
                x: it.x,
                y: it.y,
                z: it.z,
            })
        };
        let triangles = value.triangles.iter().map(|it| Triangle {
            v0: vector(it.v0),
            v1: vector(it.v1),
            v2: vector(it.v2),
            normal: vector(it.normal),
        });
        Self {
            triangles: triangles.collect(),
        }
    }
}

impl From<&values::Log> for Log {
    fn from(value: &values::Log) -> Self {
        let records = value.records.iter().map(|it| Record {
            address: Some(Address {
                x0: it.address.x0.into(),
                x1: it.address.x1.into(),
                x2: it.address.x2.into(),
                x3: it.address.x3.into(),
            }),
            identity: it.identity.clone(),
            userid: it.userid.clone(),
            date: it.date.clone(),
            request: it.request.clone(),
            code: it.code.into(),
            size: it.size,
        });
        Self {
            records: records.collect(),
        }
    }
}
