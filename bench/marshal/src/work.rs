//! What is marshalled, and by whom.

use std::error::Error;
use std::rc::Rc;

use tenon_exec::Value;

use crate::codecs::{
    Bincode, Bitcode, Compiled, Interpreted, Postcard, Prost, Rkyv, Wincode, libtirpc, memcpy,
};
use crate::entrant::{Codec, Entrant};
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
    work::<_, stubs::Number, messages::Number>("int".to_owned(), names, values::int(), narrow)
}

fn ints(count: usize) -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Ints",
        c: "ints",
    };
    let name = format!("ints{count}");
    work::<_, stubs::Ints, messages::Ints>(name, names, values::ints(count), narrow)
}

fn structure() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Structure",
        c: "structure",
    };
    let value = values::Structure::sample();
    work::<_, stubs::Structure, messages::Structure>("structure".to_owned(), names, value, narrow)
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
        too_wide,
    )
}

fn mesh() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Mesh",
        c: "mesh",
    };
    let value = values::Mesh::sample();
    work::<_, stubs::Mesh, messages::Mesh>("mesh".to_owned(), names, value, narrow)
}

fn log() -> Result<Work, Box<dyn Error>> {
    let names = Names {
        interface: "Log",
        c: "log",
    };
    let value = values::Log::sample();
    work::<_, stubs::Log, messages::Log>("log".to_owned(), names, value, narrow)
}

/// A work with the value in the peers' type `T`, in Tenon's `S` and in prost's `M`.
fn work<T, S, M>(
    name: String,
    names: Names,
    value: T,
    further: fn(&Rc<T>) -> Vec<Result<Entrant, String>>,
) -> Result<Work, Box<dyn Error>>
where
    T: PartialEq + 'static,
    S: for<'a> From<&'a T> + PartialEq + 'static,
    M: for<'a> From<&'a T> + PartialEq + 'static,
    Compiled: Codec<S>,
    Rkyv: Codec<T>,
    Bincode: Codec<T>,
    Prost: Codec<M>,
{
    let value = Rc::new(value);
    let stub = Rc::new(S::from(&value));
    let message = Rc::new(M::from(&value));
    let bytes = Compiled::default().encode(&stub).to_vec();
    let mut outcomes = vec![
        Entrant::of(Compiled::default, &stub),
        interpreted(names.interface, &bytes)?,
    ];
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

fn too_wide<T>(_: &Rc<T>) -> Vec<Result<Entrant, String>> {
    let names = ["wincode", "bitcode", "postcard"];
    names
        .map(|name| {
            Err(format!(
                "{name}, over whose code for 1000 members rustc takes minutes"
            ))
        })
        .into()
}

/// The interpreter, which has to read and write the very `bytes` that the stubs write.
fn interpreted(name: &str, bytes: &[u8]) -> Result<Result<Entrant, String>, Box<dyn Error>> {
    let mut interpreter = Interpreted::new(name)?;
    let value: Rc<Value> = Rc::new(interpreter.decode(bytes));
    Ok(match interpreter.encode(&value) == bytes {
        true => Entrant::of(|| interpreter.clone(), &value),
        false => Err("the interpreter writes other bytes than the stubs".to_owned()),
    })
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
