//! Makes an interface of a thousand message types, and its stubs.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// How many message types there are.
const TYPES: usize = 1000;

/// What the messages have in common, as those of an interface do.
const COMMON: &str = "\
enum status { OK = 0, PERMISSION = 1, NO_ENTRY = 2, BROKEN = 5, TOO_LARGE = 27 };
struct moment { unsigned int seconds; unsigned int nanoseconds; };
struct handle { opaque data<64>; };
struct attributes {
    status kind; unsigned int mode; unsigned int owner; unsigned hyper bytes;
    moment accessed; moment modified; bool hidden;
};
union found switch (bool is) { case TRUE: attributes them; case FALSE: void; };
";

/// What a member may be: text before and behind its name.
const MEMBERS: [(&str, &str); 14] = [
    ("int", ""),
    ("unsigned int", ""),
    ("unsigned hyper", ""),
    ("double", ""),
    ("bool", ""),
    ("status", ""),
    ("moment", ""),
    ("handle", ""),
    ("attributes", ""),
    ("found", ""),
    ("string", "<40>"),
    ("opaque", "[16]"),
    ("int", "<8>"),
    ("moment", "<3>"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut seed = 0x7e40;
    let mut interface = COMMON.to_owned();
    for number in 0..TYPES {
        write!(interface, "struct message{number} {{")?;
        for member in 0..4 + next(&mut seed) % 9 {
            let (before, behind) = MEMBERS[next(&mut seed) as usize % MEMBERS.len()];
            write!(interface, " {before} m{member}{behind};")?;
        }
        interface += " };\n";
    }
    let file = out.join("messages.x");
    fs::write(&file, interface)?;
    tenon_build::Builder::new().lean(false).compile(file)?;
    let names: Vec<String> = (0..TYPES)
        .map(|number| format!("Message{number}"))
        .collect();
    let list = format!(
        "macro_rules! with_messages {{ ($then:ident) => {{ $then! {{ {} }} }}; }}\n",
        names.join(" ")
    );
    fs::write(out.join("list.rs"), list)?;
    Ok(())
}

/// SplitMix64.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
