//! Tenon's stubs for the same, and the peers' values in their types.

use crate::codecs::Lent;
use crate::values;

include!(concat!(env!("OUT_DIR"), "/marshal.rs"));
include!(concat!(env!("OUT_DIR"), "/members.rs"));

impl From<&i32> for Number {
    fn from(&value: &i32) -> Self {
        Self { value }
    }
}

impl From<&Vec<i32>> for Ints {
    fn from(value: &Vec<i32>) -> Self {
        Self {
            values: value.clone(),
        }
    }
}

impl From<&values::Structure> for Structure {
    fn from(value: &values::Structure) -> Self {
        Self {
            first: value.first,
            second: value.second,
            third: value.third,
            numbers: value.numbers,
            triples: value.triples.clone().map(|it| Triple {
                a: it.a,
                b: it.b,
                c: it.c,
            }),
            text: Text {
                kind: value.text.kind,
                text: value.text.text.as_str().into(),
            },
        }
    }
}

macro_rules! convert_members {
    ($($member:ident)*) => {
        impl From<&values::Members1000> for Members1000 {
            fn from(value: &values::Members1000) -> Self {
                Self { $($member: value.$member,)* }
            }
        }
    };
}
with_members!(convert_members);

impl From<&values::Mesh> for Mesh {
    fn from(value: &values::Mesh) -> Self {
        let vector = |it: values::Vector| Vector {
            x: it.x,
            y: it.y,
            z: it.z,
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
            address: Address {
                x0: it.address.x0,
                x1: it.address.x1,
                x2: it.address.x2,
                x3: it.address.x3,
            },
            identity: it.identity.as_str().into(),
            userid: it.userid.as_str().into(),
            date: it.date.as_str().into(),
            request: it.request.as_str().into(),
            code: it.code,
            size: it.size,
        });
        Self {
            records: records.collect(),
        }
    }
}

macro_rules! lend {
    ($($owned:ident as $view:ident,)*) => {
        $(impl Lent for $owned {
            type View<'a> = $view<'a>;
        })*
    };
}
lend! { Ints as IntsView, Structure as StructureView, Mesh as MeshView, Log as LogView, }
