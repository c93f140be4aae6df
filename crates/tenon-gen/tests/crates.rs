//! Stubs as crates of their own, compiled by cargo as a user's would be: those of the interfaces
//! that come with the system, and a message of 8192 members.

mod common;

use std::fmt::Write;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_gen::rust::Options;
use tenon_plan::Representation;

/// The representations that the stubs of a user are made for by default.
const BOTH: [Representation; 2] = [Representation::XDR, Representation::LEAN];

/// The folder of the system's interfaces.
const SYSTEM: &str = "/usr/include/rpcsvc";

/// A crate called `name` with `source`.
fn write_crate(name: &str, source: &str) -> PathBuf {
    write_crate_beside(name, source, "")
}

/// The same with further dependencies.
fn write_crate_beside(name: &str, source: &str, dependencies: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let tenon = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon");
    let manifest = format!(
        "[package]\nname = {name:?}\nedition = \"2024\"\n[workspace]\n[dependencies]\ntenon-rpc.path = {tenon:?}\n{dependencies}"
    );
    std::fs::create_dir_all(folder.join("src")).expect("the folder can be made");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest can be written");
    std::fs::write(folder.join("src/lib.rs"), source).expect("the source can be written");
    folder
}

/// Runs cargo in `folder`, and lets it use what the present build has compiled already.
fn cargo(folder: &Path, arguments: &[&str]) {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    std::fs::copy(lock, folder.join("Cargo.lock")).expect("the workspace has a lock file");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).arg("--offline").current_dir(folder);
    cargo.env(
        "CARGO_TARGET_DIR",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."),
    );
    // A user's cargo knows nothing of the one that runs this test.
    cargo.env_remove("RUSTFLAGS").env_remove("RUST_MIN_STACK");
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn stubs_of_the_systems_interfaces_compile() {
    // Nobody uses any of it, and little is documented.
    let mut source =
        String::from("//! Stubs.\n#![deny(warnings, missing_docs, unreachable_pub)]\n");
    let interfaces = common::interfaces(Path::new(SYSTEM));
    for interface in &interfaces {
        let name = common::file_name(interface).replace(".x", "");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system/src");
        std::fs::create_dir_all(&path).expect("the folder can be made");
        let path = path.join(&name).with_extension("rs");
        let stubs = common::stubs_in(interface, &BOTH);
        std::fs::write(path, stubs).expect("the stubs can be written");
        let _ = writeln!(source, "mod {name};");
    }
    match interfaces.is_empty() {
        // Not by `eprintln!`: what it says of a test that passes is kept back.
        true => {
            let _ = writeln!(io::stderr(), "\nSKIPPED: {SYSTEM} has no interfaces\n");
        }
        // The types that nis_callback.x leaves to the module around it.
        false => source.push_str("pub use nis::{NisError, NisObject};\n"),
    }
    cargo(&write_crate("system", &source), &["check"]);
}

/// A user cannot mend in Rust the names of an interface and the structure of its types.
#[test]
fn neither_rustc_nor_clippy_warns_of_stubs() {
    let interface = "
        enum foo { FOO_A = 1, FOO_B = 2 };
        struct baz { baz *left; baz *right; struct { int quux[3]; opaque data[700]; } foo; };
        union large switch (int k) { case 0: opaque small[4]; case 1: opaque big[4000]; };
        typedef string names<>;
        namespace blob_store { typedef baz *maybe; typedef maybe bazes<4>; struct bazStruct { bazes all; }; }
        program BlobStore { version BlobStoreV1 {
            void NEW(void) = 1; int LEN(void) = 2; baz FROM_IT(baz) = 3; string TO_STRING(void) = 4;
            int ADD(int) = 5; void DEFAULT(void) = 6; bool EQ(int) = 7; int NEXT(void) = 8; int INTO_X(void) = 9;
            large MANY(int, int, int, int, int, int, names, baz, large, blob_store::bazStruct) = 10;
        } = 1; } = 0x20000123;";
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("BlobStore.x");
    std::fs::write(&path, interface).expect("the interface can be written");
    let folder = write_crate(
        "warnings",
        "//! Stubs.\n#![deny(warnings)]\nmod blob_store;\n",
    );
    let file = tenon_gen::rust::file_name(&path);
    assert_eq!(file, "blob_store.rs");
    let stubs = common::stubs_in(&path, &BOTH);
    std::fs::write(folder.join("src").join(file), stubs).expect("the stubs can be written");
    cargo(&folder, &["clippy"]);
}

#[test]
fn stubs_with_every_choice_compile() {
    let options = Options {
        views: true,
        reserved: true,
        utf8_strings: true,
        tokio: Some("::tenon_tokio".to_owned()),
        ..Options::default()
    };
    let tokio = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-tokio");
    let tokio = format!("tenon-rpc-tokio.path = {tokio:?}\n");
    let folder = write_crate_beside("choices", "", &tokio);
    let modules = write_stubs(&folder, &usual(), &options);
    let source = String::from("//! Stubs.\n#![deny(warnings, missing_docs)]\n") + &modules;
    std::fs::write(folder.join("src/lib.rs"), source).expect("a file");
    cargo(&folder, &["check"]);
}

/// The interfaces of the corpus, but for one: the types that it leaves to its user are not at hand.
fn usual() -> Vec<PathBuf> {
    let mut interfaces = common::corpus();
    interfaces.retain(|interface| !interface.ends_with("external.x"));
    interfaces
}

/// Writes the stubs of interfaces into a crate. Returns the declarations of their modules.
fn write_stubs(folder: &Path, interfaces: &[PathBuf], options: &Options) -> String {
    let mut modules = String::new();
    for interface in interfaces {
        let stubs = common::stubs_with(interface, &BOTH, options.clone());
        let name = common::file_name(interface).replace(".x", "");
        let path = folder.join("src").join(&name).with_extension("rs");
        std::fs::write(path, stubs).expect("the stubs can be written");
        let _ = writeln!(modules, "pub mod {name};");
    }
    modules
}

/// Whatever an interface holds derives serde's traits, and is the same when it comes back.
#[test]
fn serdes_traits_are_derived() {
    let text = "
        struct point { int x; int y; };
        typedef opaque page[4096];
        typedef page pages[2];
        typedef tree *maybe_tree;
        typedef maybe_tree grove[40];
        struct tree { string name<>; grove *young; };
        struct wide { opaque key[33]; int row[40]; point place[40]; };
        struct held { opaque id[64]; opaque many<8>; page *maybe; page all<>; pages both; point *none; int few[3]; };
        union either switch (bool is_long) { case TRUE: hyper row[50]; case FALSE: string said<>; };
        struct everything { wide one; held two; either three[2]; tree four; };
    ";
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serde_fields.x");
    std::fs::write(&path, text).expect("the interface can be written");
    let mut interfaces = usual();
    interfaces.push(path);
    let options = Options {
        derives: vec!["serde::Serialize, ::serde::Deserialize".to_owned()],
        views: true,
        ..Options::default()
    };
    let folder = write_crate_beside("serde_user", "", &serde());
    let modules = write_stubs(&folder, &interfaces, &options);
    let source = String::from("//! Stubs.\n") + &modules + ROUND_TRIP;
    std::fs::write(folder.join("src/lib.rs"), source).expect("a file");
    cargo(&folder, &["test"]);
}

/// The crates that a user of serde names.
fn serde() -> String {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-wire");
    format!(
        "tenon-rpc-wire = {{ path = {wire:?}, features = [\"serde\"] }}
         serde = {{ version = \"1\", features = [\"derive\"] }}
         serde_json = \"1\"\n"
    )
}

const ROUND_TRIP: &str = r#"
#[test]
fn values_come_back() {
    use serde_fields::*;
    let mut value = Everything::default();
    value.one.key = [7; 33];
    value.one.place[39] = Point { x: 1, y: -1 };
    value.two.maybe = Some([3; 4096].into());
    value.two.all = vec![[4; 4096].into()];
    value.two.both[1][4095] = 9;
    value.three[0] = Either::Row([-5; 50]);
    value.three[1] = Either::Said("said".into());
    let mut young: [Option<Box<Tree>>; 40] = std::array::from_fn(|_| None);
    young[39] = Some(Box::new(Tree { name: "twig".into(), young: None }));
    value.four.young = Some(young.into());
    let text = serde_json::to_string(&value).expect("it is data");
    let back: Everything = serde_json::from_str(&text).expect("it was data");
    assert!(back == value);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["one"]["key"].as_array().map(Vec::len), Some(33));
    let short = text.replacen("7,7,", "7,", 1);
    let error = serde_json::from_str::<Everything>(&short).expect_err("32 are too few");
    assert!(error.to_string().contains("an array of 33 elements"), "{error}");
}
"#;

#[test]
fn a_message_of_8192_members_compiles() {
    let members: String = (0..8192).fold(String::new(), |mut text, member| {
        let _ = writeln!(text, "    int member{member};");
        text
    });
    let interface = format!(
        "struct large {{\n{members}}};\n\
         program LARGE {{ version LARGE_V1 {{ large ECHO(large) = 1; }} = 1; }} = 0x20000009;\n"
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large.x");
    std::fs::write(&path, interface).expect("the interface can be written");
    let test = "
#[test]
fn it_comes_back() {
    use ::tenon::wire::{Buffer, Decoder, Encoder, Marshal};
    let value = Large { member0: 1, member127: 2, member128: 3, member8191: 4, ..Large::default() };
    let mut buffer = Buffer::default();
    assert!(value.encode(&mut Encoder::new(&mut buffer)).is_ok());
    assert_eq!(buffer.as_slice()[..4], [0, 0, 0, 1]);
    assert_eq!(buffer.as_slice()[4 * 128 - 1..][..5], [2, 0, 0, 0, 3]);
    let mut input = Decoder::new(buffer.as_slice());
    assert_eq!(Large::decode(&mut input), Ok(value.clone()));
    assert_eq!((input.left(), Large { member8190: 5, ..value.clone() } == value), (0, false));
}
";
    let crate_ = write_crate("large", &(common::stubs(&path) + test));
    // Optimised as a user's are; what they stand on need not be.
    let plain = r#"profile.release.package."*".opt-level=0"#;
    cargo(&crate_, &["test", "--release", "--config", plain]);
}
