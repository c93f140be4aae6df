//! Names of interfaces that become macros in C: none of them changes what stubs for Tenon's own run time mean. The
//! library is not needed for it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tenon_gen::c::stubs::{self, Refusal, Stubs};
use tenon_interop::{root, run};

/// An interface whose stubs have parts of every kind.
const INTERFACE: &str = "
enum hue { RED = 1, BLUE = 2 };
union choice switch (hue chosen) { case RED: int digit; case BLUE: string words_of_it<20>; default: void; };
struct link { opaque ring<>; link *following; };
struct everything {
    int numeral; short few; hyper many; double real; bool truth; hue shade; string writing<>;
    opaque block[7]; opaque blob<100>; int row[3]; int list<>; hyper wide<9>; string lines<>; choice choices<>;
    link *chain; unsigned char letters<>; bool answers<>;
};
program ITS_PROGRAM {
    version ITS_VERSION {
        everything EXCHANGE(everything, int, link) = 1;
        string GREET(string) = 2;
        string RELAY(int, everything) = 3; /*@ stream arguments, result */
    } = 1;
} = 0x20005252;
";

/// The stubs of the interface with these constants beside; `None` if it is no interface.
fn stubs_beside<'a>(
    constants: impl IntoIterator<Item = &'a str>,
) -> Option<Result<Stubs, Refusal>> {
    let constants = constants.into_iter();
    let mut text: String = constants
        .map(|name| format!("const {name} = 5;\n"))
        .collect();
    text += INTERFACE;
    let parsed = tenon_idl::parse_text("names.x", &text, &tenon_idl::Options::default());
    let (schema, written) = parsed.schema.zip(parsed.written)?;
    Some(stubs::generate(&schema, &written, "names.x"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with(|char: char| char.is_ascii_alphabetic()))
}

/// Every word of the stubs, of what they share and of Tenon's header is tried as the name of a constant; the
/// compiler takes the stubs beside all those that are not refused.
#[test]
fn constants_are_refused_or_harmless() {
    let plain = stubs_beside([]).expect("an interface").expect("stubs");
    let read = |path| fs::read_to_string(root().join(path)).expect("a source");
    let texts = [
        read("crates/tenon-gen/src/c/stubs/runtime.c"),
        read("crates/tenon-c/include/tenon.h"),
        plain.header,
        plain.source,
    ];
    let tried: BTreeSet<&str> = texts.iter().flat_map(|text| words(text)).collect();
    let mut accepted = Vec::new();
    let mut refused = BTreeSet::new();
    for name in tried {
        match stubs_beside([name]) {
            Some(Ok(_)) => accepted.push(name),
            Some(Err(_)) => drop(refused.insert(name)),
            // A word of the language of interfaces, or a name that this one has.
            None => {}
        }
    }
    for name in [
        "it", "value", "context", "result", "numeral", "list_len", "swapped",
    ] {
        assert!(refused.contains(name), "{name}");
    }
    // Of comments alone, and of what is read before there are macros.
    for name in ["everywhere", "end", "payable"] {
        assert!(accepted.contains(&name), "{name}");
    }
    let stubs = stubs_beside(accepted)
        .expect("an interface")
        .expect("stubs");
    let folder = root().join("target/peers-c/names");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("names.h"), stubs.header).expect("a file");
    fs::write(folder.join("names.c"), stubs.source).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.current_dir(&folder);
    compiler.arg(format!(
        "-I{}",
        root().join("crates/tenon-c/include").display()
    ));
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        "names.c",
    ]);
    run(compiler);
}
