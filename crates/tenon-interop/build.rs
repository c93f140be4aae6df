//! Generates stubs for the tests: those of the shared interfaces as a user would, and, for every interface with bytes
//! that are compared with rpcgen's, stubs in which each type can be found by name. Beside the interfaces that people
//! wrote there are random ones, always the same.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tenon_exec::random::{Random, schemas, text};
use tenon_gen::rust::{self, Form};
use tenon_idl::Style;
use tenon_plan::{Pass, Plans, Representation, lower};
use tenon_schema::{
    Field, FieldAnnotations, Origin, Schema, Type, TypeAnnotations, TypeDef, TypeId, TypeKind,
};

/// Interfaces of this repository.
const OWN: [&str; 4] = ["hprpc", "torture", "nfs3", "mount3"];

/// Interfaces of `/usr/include/rpcsvc` that Debian's rpcgen compiles.
const RPCSVC: [&str; 15] = [
    "bootparam_prot",
    "key_prot",
    "klm_prot",
    "mount",
    "nfs_prot",
    "nis_object",
    "nlm_prot",
    "rex",
    "rquota",
    "rstat",
    "rusers",
    "sm_inter",
    "spray",
    "yp",
    "yppasswd",
];

/// An interface beside them that no rpcgen here gets through.
const BEYOND: &str = "nis";

/// Number of random interfaces, of a dozen types each.
const RANDOM: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = OWN.map(|name| root.join(format!("interfaces/{name}.x")));
    let of_rpcsvc = |name: &str| PathBuf::from(format!("/usr/include/rpcsvc/{name}.x"));
    let rpcsvc = RPCSVC.map(of_rpcsvc);
    let written = own.iter().chain(&rpcsvc).filter(|file| is_there(file));
    let mut modules = Modules::default();
    modules.list("INTERFACES", "people", written)?;
    modules.list("RANDOM", "chance", &write_random()?)?;
    let beyond = [of_rpcsvc(BEYOND)];
    let beyond = beyond.iter().filter(|file| is_there(file));
    modules.list("BEYOND_RPCGEN", "people with other compilers", beyond)?;
    let empty = [root.join("tests/peers/c/empty.x")];
    modules.list(
        "EMPTY",
        "people who need no bytes",
        empty.iter().filter(|file| is_there(file)),
    )?;
    let in_place = [root.join("crates/tenon-gen/tests/corpus/in_place.x")];
    modules.list(
        "IN_PLACE",
        "people whose unions contain themselves",
        in_place.iter().filter(|file| is_there(file)),
    )?;
    write_changed(&own[0])?;
    modules.text += "/// Stubs of `hprpc.x` whose record begins with another member.\n\
        #[allow(missing_docs)]\npub mod changed_hprpc \
        { include!(concat!(env!(\"OUT_DIR\"), \"/changed_hprpc.rs\")); }\n";
    fs::write(out("interfaces.rs")?, modules.text)?;
    Ok(())
}

/// Returns whether the machine has this interface; if not, says so.
fn is_there(file: &Path) -> bool {
    println!("cargo::rerun-if-changed={}", file.display());
    if !file.exists() {
        println!("cargo::warning={} is missing: ./test setup", file.display());
    }
    file.exists()
}

/// A module for each interface, and lists of them.
#[derive(Default)]
struct Modules {
    text: String,
}

impl Modules {
    fn list<'a>(
        &mut self,
        list: &str,
        author: &str,
        files: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<(), Box<dyn Error>> {
        let mut index = format!(
            "/// Every interface by {author} whose bytes are compared.\npub const {list}: &[Interface] = &[\n"
        );
        for file in files {
            let name = file_stem(file);
            write_findable(file)?;
            writeln!(
                self.text,
                "/// Stubs of `{name}.x`.\n#[allow(missing_docs, clippy::doc_lazy_continuation)]\npub mod {name} {{ include!(concat!(env!(\"OUT_DIR\"), \"/findable_{name}.rs\")); }}"
            )?;
            writeln!(
                index,
                "Interface {{ name: {name:?}, path: {path:?}, types: {name}::TYPES }},",
                path = file.display().to_string()
            )?;
        }
        self.text += &(index + "];\n");
        Ok(())
    }
}

/// Writes the random interfaces, in a folder of their own: those of the first seeds that have values that
/// end and that rpcgen has words for.
fn write_random() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = out("random")?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir(&folder)?;
    let texts = (0..).filter_map(|seed| {
        let schema = schemas::schema_for_c(&mut Random::new(seed));
        lower(&schema, Representation::XDR).ok()?;
        Some((seed, text(&schema)?))
    });
    let write = |(seed, text): (u64, String)| {
        let file = folder.join(format!("random{seed}.x"));
        fs::write(&file, text)?;
        Ok(file)
    };
    texts.take(RANDOM).map(write).collect()
}

/// Writes the stubs of `hprpc.x` as it might look after a change.
fn write_changed(hprpc: &Path) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(hprpc)?.replace("int member1;", "hyper member1;");
    let parsed = tenon_idl::parse_text("changed_hprpc.x", &text, &tenon_idl::Options::default());
    let said = parsed.render(Style::Plain);
    let stubs = stubs(&parsed.schema.ok_or(said)?, "changed_hprpc.x")?;
    fs::write(out("changed_hprpc.rs")?, stubs)?;
    Ok(())
}

/// Stubs that speak both protocols.
fn stubs(schema: &Schema, source: &str) -> Result<String, Box<dyn Error>> {
    let plans = [Representation::XDR, Representation::LEAN]
        .map(|representation| Plans::new(schema, representation, Pass::ALL));
    let plans = plans.into_iter().collect::<Result<Vec<_>, _>>()?;
    let options = rust::Options {
        source: source.to_owned(),
        for_include: true,
        ..rust::Options::default()
    };
    let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
    Ok(rust::generate(schema, &forms, &options)?)
}

fn out(name: &str) -> Result<PathBuf, env::VarError> {
    Ok(Path::new(&env::var("OUT_DIR")?).join(name))
}

fn file_stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Writes the stubs of an interface with a table of its types by name.
fn write_findable(file: &Path) -> Result<(), Box<dyn Error>> {
    let parsed = tenon_idl::parse_file(file, &tenon_idl::Options::default());
    let said = parsed.render(Style::Plain);
    let mut schema = parsed.schema.ok_or(said)?;
    let table = wrap_types(&mut schema);
    let stubs = stubs(&schema, &(file_stem(file) + ".x"))?;
    fs::write(
        out(&format!("findable_{}.rs", file_stem(file)))?,
        stubs + &table,
    )?;
    Ok(())
}

/// Adds a struct around each type, which has the bytes of the type, and returns a table that
/// leads from the types' names to these structs. What a typedef becomes in Rust need not have a
/// representation of its own; a struct always does.
fn wrap_types(schema: &mut Schema) -> String {
    let mut table =
        String::from("/// Each type by name.\npub const TYPES: &[(&str, super::Recoders)] = &[\n");
    for index in 0..schema.types.len() {
        let wrapped = &schema.types[index];
        if wrapped.kind == TypeKind::External {
            continue;
        }
        let _ = writeln!(
            table,
            "({:?}, super::recoders::<Wrapped{index}>()),",
            wrapped.name
        );
        schema.types.push(TypeDef {
            name: format!("Wrapped{index}"),
            doc: String::new(),
            origin: Origin::default(),
            annotations: TypeAnnotations::default(),
            kind: TypeKind::Struct(vec![Field {
                name: "value".to_owned(),
                doc: String::new(),
                annotations: FieldAnnotations::default(),
                ty: Type::Named(TypeId(index as u32)),
            }]),
        });
    }
    table + "];\n"
}
