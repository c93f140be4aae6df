//! What is marshalled, and by whom.

use std::error::Error;
use std::rc::Rc;

use tenon::wire::{Lean, Native, Swapped, Xdr};

use crate::codecs::{
    Bincode, Bitcode, Called, Compiled, Interpreted, Lent, Machine, Named, Postcard, Prost,
    Reusing, Rkyv, Viewed, Wincode, libtirpc, memcpy, message,
};
use crate::entrant::{Codec, Entrant};
use crate::places::elsewhere;
use crate::{messages, stubs, values};

/// A work and those who have shown that they can do it.
pub struct Work {
    /// Its name in tables and ratios.
    pub name: String,
    /// In the order of the tables' columns.
    pub entrants: Vec<Entrant>,
    /// Who cannot, and why.
    pub left_out: Vec<String>,
}

/// How a work is called in an interface and in C.
struct Names {
    interface: &'static str,
    c: &'static str,
}

/// Makes a work ready.
pub type Make = Box<dyn Fn() -> Result<Work, Box<dyn Error>>>;

/// All works by name.
pub fn all() -> Vec<(String, Make)> {
    let mut all: Vec<(String, Make)> = vec![("int".to_owned(), Box::new(int))];
    for count in [20, 100, 250, 256, 500, 1000, 2000] {
        all.push((format!("ints{count}"), Box::new(move || ints(count))));
    }
    all.push(("structure".to_owned(), Box::new(structure)));
    all.push(("members1000".to_owned(), Box::new(members1000)));
    all.push(("mesh".to_owned(), Box::new(mesh)));
    all.push(("log".to_owned(), Box::new(log)));
    all
}

fn int() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Number",
        c: "int",
    };
    work::<_, stubs::Number, messages::Number>(
        "int".to_owned(),
        names,
        values::int(),
        (copied, narrow),
    )
}

fn ints(count: usize) -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Ints",
        c: "ints",
    };
    let name = format!("ints{count}");
    work::<_, stubs::Ints, messages::Ints>(name, names, values::ints(count), (lent, narrow))
}

fn structure() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Structure",
        c: "structure",
    };
    let value = values::Structure::sample();
    work::<_, stubs::Structure, messages::Structure>(
        "structure".to_owned(),
        names,
        value,
        (lent, narrow),
    )
}

fn members1000() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Members1000",
        c: "members1000",
    };
    let value = values::Members1000::sample();
    work::<_, stubs::Members1000, messages::Members1000>(
        "members1000".to_owned(),
        names,
        value,
        (copied, wide),
    )
}

fn mesh() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Mesh",
        c: "mesh",
    };
    let value = values::Mesh::sample();
    work::<_, stubs::Mesh, messages::Mesh>("mesh".to_owned(), names, value, (lent, narrow))
}

fn log() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Log",
        c: "log",
    };
    let value = values::Log::sample();
    work::<_, stubs::Log, messages::Log>("log".to_owned(), names, value, (lent, narrow))
}

/// The compiled stubs of the lean representation, with views or without.
type Lends<S> = fn(&Rc<S>) -> Result<Entrant, String>;

/// Peers who do not manage every work.
type Further<T> = fn(&Rc<T>) -> Vec<Result<Entrant, String>>;

fn lent<S>(value: &Rc<S>) -> Result<Entrant, String>
where
    S: Lent + PartialEq,
    Viewed<S>: Codec<S>,
{
    Entrant::of(Viewed::<S>::default, value)
}

/// There is nothing in it to be borrowed.
fn copied<S>(value: &Rc<S>) -> Result<Entrant, String>
where
    S: PartialEq + 'static,
    Compiled<Lean<Native>>: Codec<S>,
{
    Entrant::of(Compiled::<Lean<Native>>::default, value)
}

/// A work with the value in the peers' type `T`, in Tenon's `S` and in prost's `M`.
fn work<T, S, M>(
    name: String,
    names: Names,
    value: T,
    (lean, further): (Lends<S>, Further<T>),
) -> Result<Work, Box<dyn Error>>
where
    T: PartialEq + 'static,
    S: for<'a> From<&'a T> + PartialEq + 'static,
    M: for<'a> From<&'a T> + PartialEq + 'static,
    Compiled<Xdr>: Codec<S>,
    Compiled<Lean<Native>>: Codec<S>,
    Compiled<Lean<Swapped>>: Codec<S>,
    Called<Xdr, S>: Codec<S> + Default,
    Called<Lean<Native>, S>: Codec<S> + Default,
    Rkyv: Codec<T>,
    Bincode: Codec<T>,
    Prost: Codec<M>,
{
    let value = Rc::new(value);
    elsewhere();
    let stub = Rc::new(S::from(&value));
    let message = Rc::new(M::from(&value));
    let mut outcomes = vec![
        Entrant::of(Compiled::<Xdr>::default, &stub),
        lean(&stub),
        Entrant::of(Compiled::<Lean<Swapped>>::default, &stub),
        Entrant::of(Called::<Xdr, S>::default, &stub),
        Entrant::of(Called::<Lean<Native>, S>::default, &stub),
    ];
    let bytes = Compiled::<Xdr>::default().encode(&stub).to_vec();
    outcomes.extend(dynamic::<Xdr>(names.interface, &bytes)?);
    let bytes_lean = Compiled::<Lean<Native>>::default().encode(&stub).to_vec();
    outcomes.extend(dynamic::<Lean<Native>>(names.interface, &bytes_lean)?);
    elsewhere();
    outcomes.extend(libtirpc(names.c, &bytes)?.map(Ok));
    outcomes.extend([
        Entrant::of(Rkyv::default, &value),
        Entrant::of(Bincode::default, &value),
        Entrant::of(Prost::default, &message),
        Ok(memcpy(&bytes)),
    ]);
    outcomes.extend(further(&value));
    Ok(sorted(name, outcomes))
}

/// The peers that do not manage a record of 1000 members.
fn narrow<T: PartialEq + 'static>(value: &Rc<T>) -> Vec<Result<Entrant, String>>
where
    Wincode: Codec<T>,
    Bitcode: Codec<T>,
    Postcard: Codec<T>,
{
    vec![
        Entrant::of(Wincode::default, value),
        Entrant::of(Bitcode::default, value),
        Entrant::of(Postcard::default, value),
    ]
}

/// Of the peers over whose code for 1000 members rustc takes minutes, only the fastest.
fn wide(value: &Rc<values::Members1000>) -> Vec<Result<Entrant, String>> {
    let names = ["bitcode", "postcard"];
    let left_out = names.map(|name| {
        Err(format!(
            "{name}, over whose code for 1000 members rustc takes minutes"
        ))
    });
    let wincode = crate::codecs::wide_wincode(value);
    left_out.into_iter().chain([wincode]).collect()
}

/// Machine code and the interpreter, which have to read and write the very `bytes` that the stubs
/// write.
fn dynamic<R: Named>(
    name: &str,
    bytes: &[u8],
) -> Result<[Result<Entrant, String>; 3], Box<dyn Error>> {
    let message = message::<R>(name)?;
    let reusing = same_bytes(|| Reusing::<R>::new(message), bytes);
    Ok([
        same_bytes(|| Interpreted::<R>::new(message), bytes),
        same_bytes(|| Machine::<R>::new(message), bytes),
        reusing.map(|entrant| Entrant {
            encode: None,
            ..entrant
        }),
    ])
}

fn same_bytes<T, C>(make: impl Fn() -> C, bytes: &[u8]) -> Result<Entrant, String>
where
    T: PartialEq + 'static,
    C: Codec<T>,
{
    elsewhere();
    let mut codec = make();
    let value = Rc::new(codec.decode(bytes));
    match codec.encode(&value) == bytes {
        true => Entrant::of(make, &value),
        false => Err(format!("{} writes other bytes than the stubs", C::NAME)),
    }
}

fn sorted(name: String, outcomes: Vec<Result<Entrant, String>>) -> Work {
    let mut work = Work {
        name,
        entrants: Vec::new(),
        left_out: Vec::new(),
    };
    for outcome in outcomes {
        match outcome {
            Ok(entrant) => work.entrants.push(entrant),
            Err(why) => work.left_out.push(why),
        }
    }
    work
}
