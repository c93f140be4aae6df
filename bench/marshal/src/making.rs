//! How long it takes to make machine code: of all types and procedures of an interface at once, both ways.

use std::error::Error;
use std::time::Instant;

use tenon_bench::stats::Summary;
use tenon_exec::Interface;
use tenon_plan::Representation;
use tenon_schema::TypeId;

/// How often it is made.
const TIMES: usize = 21;

/// The structure of the study, alone.
const STRUCTURE: &str = "
    struct triple { int a; int b; int c; };
    struct text { int kind; string text<1024>; };
    struct structure { int first; int second; int third; int numbers[256]; triple triples[86];
                       text text; };
";

/// Interfaces, what they are called, and their text.
const INTERFACES: [(&str, &str); 2] = [
    ("nfs3.x", include_str!("../../../interfaces/nfs3.x")),
    ("the structure", STRUCTURE),
];

/// The code of an interface.
pub struct Made {
    /// The interface.
    pub of: &'static str,
    /// How its messages lie on the wire.
    pub representation: &'static str,
    /// How long it took, in nanoseconds.
    pub time: Summary,
}

/// Makes the code of each interface in each representation.
pub fn measure() -> Result<Vec<Made>, Box<dyn Error>> {
    let representations = [Representation::XDR, Representation::LEAN];
    let each = INTERFACES
        .iter()
        .flat_map(|(of, text)| representations.map(|representation| (*of, *text, representation)));
    let made = each.map(|(of, text, representation)| {
        let times = (0..TIMES).map(|_| make(text, representation));
        let times = times.collect::<Result<Vec<f64>, _>>()?;
        Ok(Made {
            of,
            representation: representation.name,
            time: Summary::of(times),
        })
    });
    made.collect()
}

/// Makes the code once; nanoseconds. What a program reads and plans before that is not counted.
fn make(text: &str, representation: Representation) -> Result<f64, Box<dyn Error>> {
    let parsed = tenon_idl::parse_text("making.x", text, &tenon_idl::Options::default());
    let schema = parsed.schema.ok_or("no interface")?;
    let interface = Interface::with_representation(schema, representation)?;
    interface.message(TypeId(0))?;
    let before = Instant::now();
    let is_made = interface.compile();
    let nanoseconds = before.elapsed().as_nanos() as f64;
    match is_made {
        true => Ok(nanoseconds),
        false => Err("no machine code is made here".into()),
    }
}
