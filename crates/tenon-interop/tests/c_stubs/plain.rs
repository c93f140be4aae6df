//! Stubs in C for Tenon's own run time: they compile without a warning, and their codecs, the interpreter and
//! Rust's stubs have the same bytes, in both representations and both orders of bytes, and refuse the same bytes at
//! the same place. The library is not needed for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use tenon::wire::{
    Buffer, DecodeErrorKind, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits, Native,
    Representation, Swapped, Xdr,
};
use tenon_exec::random::Random;
use tenon_exec::{Interface, Procedure};
use tenon_interop::compiled::{self, INTERFACES, RANDOM, Recode, Recoders};
use tenon_interop::{XdrdumpRecoder, root};
use tenon_plan::Representation as Form;
use tenon_schema::{Schema, Type, TypeId, TypeKind};

/// Those whose bytes are compared: every constructor; every kind of number in memory that is no array; lists.
const SUBJECTS: [&str; 3] = ["torture", "nlm_prot", "yp"];

/// An interface of values that take no bytes.
const EMPTY: &str = "empty";

/// Values per type.
const VALUES: usize = 300;

/// Of them, those of which every prefix is tried.
const CUT: usize = 20;

/// Wrong bytes per type.
const WRONG: usize = 600;

/// Parts of a value, about.
const ITEMS: usize = 30;

/// Every warning there is, but for those about the lines that interfaces bring along.
const STRICT: [&str; 6] = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Wno-unknown-pragmas",
];

/// What finds bytes that are not ours, memory that is lost, and what C does not define.
const SANITIZED: [&str; 4] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
];

/// A folder for what is built, and none of another test's.
fn folder(name: &str) -> PathBuf {
    let folder = root().join("target/peers-c/plain").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs a compiler in `folder`; it has to succeed and to say nothing.
fn compile(compiler: &str, folder: &Path, arguments: &[&str]) {
    let include = root().join("crates/tenon-c/include");
    let output = Command::new(compiler)
        .current_dir(folder)
        .arg(format!("-I{}", include.display()))
        .arg("-I.")
        .args(arguments)
        .output()
        .expect("./test setup installs the compilers");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{compiler} in {}: {arguments:?}: {said}",
        folder.display()
    );
}

/// Writes the stubs of the interface `path` into `folder`; its schema.
fn generate(path: &Path, folder: &Path) -> Schema {
    let parsed = tenon_idl::parse_file(path, &tenon_idl::Options::default());
    let schema = parsed.schema.expect("an interface");
    let written = parsed.written.expect("beside the schema");
    let name = path.file_name().expect("a name").to_string_lossy();
    let stubs = tenon_gen::c::stubs::generate(&schema, &written, &name).expect("stubs");
    let write = |ending: &str, text: &str| {
        let file = folder.join(&*name).with_extension(ending);
        std::fs::write(file, text).expect("a file");
    };
    write("h", &stubs.header);
    write("c", &stubs.source);
    schema
}

#[test]
fn stubs_compile_without_a_warning() {
    let corpus = root().join("crates/tenon-gen/tests/corpus");
    let own = [
        "c_names",
        "directions",
        "in_place",
        "lists",
        "namespaces",
        "raises",
        "recursion",
        "results",
        "service",
        "streams",
        "unions",
    ];
    let own = own.map(|name| corpus.join(format!("{name}.x")));
    let subjects = SUBJECTS.map(|name| path_of(name).to_owned());
    for path in own.iter().chain(&subjects) {
        let name = path.file_stem().expect("a name").to_string_lossy();
        let folder = folder(&format!("warnings/{name}"));
        generate(path, &folder);
        let source = format!("{name}.c");
        // The torture is compiled by gcc below, with the same warnings.
        let gcc = (name != "torture").then_some(("gcc", ["-O2", "-c"]));
        for (compiler, flags) in gcc.into_iter().chain([("clang", ["-O0", "-fsyntax-only"])]) {
            let mut arguments = Vec::from(STRICT);
            arguments.extend(flags);
            arguments.push(&source);
            compile(compiler, &folder, &arguments);
        }
        // The torture has a member that is called `operator`.
        if name != "torture" {
            std::fs::write(folder.join("header.cc"), format!("#include \"{name}.h\"\n"))
                .expect("a file");
            compile(
                "g++",
                &folder,
                &[
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pedantic",
                    "-fsyntax-only",
                    "header.cc",
                ],
            );
        }
    }
}

/// The file of an interface.
fn path_of(name: &str) -> &'static Path {
    Path::new(listed(name).path)
}

fn listed(name: &str) -> &'static compiled::Interface {
    let mut all = INTERFACES.iter().chain(RANDOM);
    all.find(|listed| listed.name == name)
        .expect("./test setup installs it")
}

/// An interface in three codecs: the interpreter's, Rust's and C's.
struct Subject {
    schema: Schema,
    xdr: Interface,
    lean: Interface,
    types: &'static [(&'static str, Recoders)],
    c: XdrdumpRecoder,
}

impl Subject {
    /// Of an interface that is listed.
    fn new(name: &str) -> Self {
        let listed = listed(name);
        Self::of(name, Path::new(listed.path), listed.types)
    }

    fn of(name: &str, path: &Path, types: &'static [(&'static str, Recoders)]) -> Self {
        let folder = folder(name);
        let schema = generate(path, &folder);
        let defined = |kind: &TypeKind| *kind != TypeKind::External;
        let with_table = schema.types.iter().filter(|def| defined(&def.kind));
        let table: String = with_table
            .map(|def| format!("TYPE({})\n", def.name))
            .collect();
        std::fs::write(folder.join("types.inc"), table).expect("a file");
        let interface = format!("-DINTERFACE_H=\"{name}.h\"");
        let driver = root()
            .join("tests/peers/c/stub_codec.c")
            .display()
            .to_string();
        let source = format!("{name}.c");
        let mut arguments = vec![interface.as_str(), "-DSTUB_TYPES=\"types.inc\""];
        arguments.extend(STRICT);
        if name == EMPTY {
            // Arrays of no elements are no ISO C.
            arguments.push("-Wno-pedantic");
        }
        arguments.extend(SANITIZED);
        let version = version_table(&schema);
        arguments.extend(version.as_deref());
        arguments.extend(["-o", "codec", &driver, &source]);
        compile("cc", &folder, &arguments);
        let made = |form| Interface::with_representation(schema.clone(), form).expect("plans");
        Self {
            xdr: made(Form::XDR),
            lean: made(Form::LEAN),
            schema,
            types,
            c: XdrdumpRecoder::start(Command::new(folder.join("codec"))),
        }
    }

    /// The types that are compared, and how Rust's stubs move them.
    fn types(&self) -> Vec<(TypeId, String, Recoders)> {
        let types = self.schema.types.iter().enumerate();
        let types = types.filter_map(|(index, def)| {
            let mut all = self.types.iter();
            let (_, rust) = all.find(|(name, _)| *name == def.name)?;
            Some((TypeId(index as u32), def.name.clone(), *rust))
        });
        types.collect()
    }
}

/// What tells the driver of the first version of an interface.
fn version_table(schema: &Schema) -> Option<String> {
    let program = schema.programs.first()?;
    let version = program.versions.first()?.number;
    let name = program.name.to_lowercase();
    Some(format!("-DSTUB_INTERFACE={name}_{version}_interface"))
}

fn encoded<R: Representation>(
    interface: &Interface,
    id: TypeId,
    value: &tenon_exec::Value,
) -> Vec<u8> {
    written::<R>(|out| interface.encode(id, value, out))
}

/// What the interpreter makes of bytes: how many it read, or what is wrong and where.
fn judged<R: Representation>(
    interface: &Interface,
    id: TypeId,
    bytes: &[u8],
) -> Result<usize, String> {
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Lenient, Limits::default());
    let message = interface.message(id).expect("a layout");
    match message.decode_by_interpreter(&mut input) {
        Ok(_) => Ok(input.position()),
        Err(error) => Err(format!("{} at byte {}", number(&error.kind), error.offset)),
    }
}

/// [`judged`], of any representation.
type Judge = fn(&Interface, TypeId, &[u8]) -> Result<usize, String>;

/// What `tenon.h` calls it.
fn number(kind: &DecodeErrorKind) -> u32 {
    match kind {
        DecodeErrorKind::Truncated { .. } => 1,
        DecodeErrorKind::TooLong { .. } => 2,
        DecodeErrorKind::UnknownValue(_) => 3,
        DecodeErrorKind::TooDeep => 6,
        DecodeErrorKind::TooMuchMemory => 7,
        DecodeErrorKind::BadList => 8,
        other => unreachable!("a lenient decoder says no such thing: {other:?}"),
    }
}

#[test]
fn codecs_have_the_same_bytes_and_refuse_the_same() {
    let random = RANDOM.iter().map(|listed| listed.name);
    let subjects: Vec<&str> = SUBJECTS.into_iter().chain(random).collect();
    let run = |names: &[&str]| {
        let mut seen = (0, 0);
        for name in names {
            let mut subject = Subject::new(name);
            for (id, ty, rust) in subject.types() {
                same_bytes(&mut subject, id, &ty, rust);
                seen.0 += 1;
                seen.1 += same_refusals(&mut subject, id, &ty, rust);
            }
            same_messages(&mut subject);
        }
        seen
    };
    let (one, other) = subjects.split_at(4);
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| run(other));
        (run(one), other.join().expect("its types agree"))
    });
    let (types, refused) = (one.0 + other.0, one.1 + other.1);
    assert!(types > 250, "only {types} types were compared");
    assert!(refused > 10_000, "only {refused} were refused");
}

/// A union that contains itself in place has a pointer there in memory, and nothing of it on the wire.
#[test]
fn unions_that_contain_themselves_have_the_same_bytes() {
    let [listed] = compiled::IN_PLACE else {
        panic!("one interface is listed")
    };
    let mut subject = Subject::of(listed.name, Path::new(listed.path), listed.types);
    let types = subject.types();
    assert_eq!(types.len(), subject.schema.types.len());
    let mut refused = 0;
    for (id, name, rust) in types {
        same_bytes(&mut subject, id, &name, rust);
        refused += same_refusals(&mut subject, id, &name, rust);
    }
    assert!(refused > 1000, "only {refused} were refused");
    same_messages(&mut subject);
}

fn same_bytes(subject: &mut Subject, id: TypeId, ty: &str, rust: Recoders) {
    let mut random = Random::new(u64::from(id.0) + 11);
    let named = Type::Named(id);
    let values: Vec<_> = (0..VALUES)
        .map(|_| random.value(&subject.schema, &named, ITEMS))
        .collect();
    let xdr: Vec<Vec<u8>> = values
        .iter()
        .map(|value| encoded::<Xdr>(&subject.xdr, id, value))
        .collect();
    let lean: Vec<Vec<u8>> = values
        .iter()
        .map(|value| encoded::<Lean<Native>>(&subject.lean, id, value))
        .collect();
    let swapped: Vec<Vec<u8>> = lean
        .iter()
        .map(|bytes| (rust.to_swapped)(bytes).expect("Rust's stubs move it"))
        .collect();
    for (form, sent, expected) in [
        ("x", &xdr, &xdr),
        ("l", &lean, &lean),
        ("s", &swapped, &lean),
    ] {
        for (form, range) in [
            (form.to_uppercase(), 0..CUT),
            (form.to_owned(), CUT..VALUES),
        ] {
            let name = format!("{form}:{ty}");
            let answers = subject.c.recode(&name, &sent[range.clone()]);
            for (answer, expected) in answers.iter().zip(&expected[range]) {
                assert_eq!(answer.as_ref(), Ok(expected), "{name}");
            }
        }
    }
    for (bytes, recode) in [
        (&xdr, rust.xdr),
        (&lean, rust.lean),
        (&swapped, rust.swapped),
    ] {
        for bytes in bytes {
            assert_eq!(recode(bytes).as_ref(), Ok(bytes), "{ty} in Rust");
        }
    }
}

#[test]
fn every_kind_of_parameter_is_passed_on() {
    let path = root().join("tests/peers/c/parameters.x");
    let mut subject = Subject::of("parameters", &path, &[]);
    assert!(same_messages(&mut subject) > 35);
    memory_is_paid_for(&mut subject);
    nobody_chooses_how_deep_a_decoder_goes(&mut subject);
    let folder = folder("parameters");
    let source = root()
        .join("tests/peers/c/stub_calls.c")
        .display()
        .to_string();
    let mut arguments = Vec::from(STRICT);
    arguments.extend(SANITIZED);
    arguments.extend(["-o", "calls", &source, "parameters.c"]);
    compile("clang", &folder, &arguments);
    let said = tenon_interop::run(Command::new(folder.join("calls")));
    assert_eq!(said, "every answer is right\n");
}

/// Elements of 4 bytes that take 4004 in memory: the message pays for a few of them, and not for more.
fn memory_is_paid_for(subject: &mut Subject) {
    let id = subject.schema.find_type("fats").expect("it is there");
    let messages = (0..40_u32).map(|count| {
        let words = std::iter::once(count).chain((0..count).map(|_| 0));
        words.flat_map(u32::to_ne_bytes).collect()
    });
    let messages: Vec<Vec<u8>> = messages.collect();
    let answers = subject.c.recode("l:fats", &messages);
    let mut refused = 0;
    for (answer, bytes) in answers.into_iter().zip(&messages) {
        let expected = judged::<Lean<Native>>(&subject.lean, id, bytes);
        refused += usize::from(expected.is_err());
        assert_eq!(answer.map(|bytes| bytes.len()), expected, "{bytes:x?}");
    }
    assert_eq!(refused, 22, "18 elements are too many");
}

/// What a representation is called, how it writes a count, and who moves its values.
type Counting<'a> = (
    &'static str,
    fn(u32) -> [u8; 4],
    &'a Interface,
    Judge,
    Recode,
);

/// What has no bytes, in messages or in memory: a count of it costs its receiver time, and is paid for. C, Rust's
/// stubs and the interpreter take the same and refuse the rest for the same reason.
#[test]
fn elements_without_bytes_are_paid_for() {
    let [listed] = compiled::EMPTY else {
        panic!("one interface is listed")
    };
    let mut subject = Subject::of(listed.name, Path::new(listed.path), listed.types);
    let types = subject.types();
    assert_eq!(types.len(), subject.schema.types.len());
    let (mut accepted, mut refused) = (0, 0);
    for (id, name, rust) in types {
        let order_of_others = |count: u32| count.swap_bytes().to_ne_bytes();
        let forms: [Counting<'_>; 3] = [
            ("x", u32::to_be_bytes, &subject.xdr, judged::<Xdr>, rust.xdr),
            (
                "l",
                u32::to_ne_bytes,
                &subject.lean,
                judged::<Lean<Native>>,
                rust.lean,
            ),
            (
                "s",
                order_of_others,
                &subject.lean,
                judged::<Lean<Swapped>>,
                rust.swapped,
            ),
        ];
        for (form, order, interface, judge, recode) in forms {
            // A hole, or the count, and what may be behind it.
            let counts = [0, 1, 2, 3, 100, 65_000, 70_000, u32::MAX].map(order);
            let words = counts.iter().map(|count| vec![order(0), *count]);
            let messages = counts.iter().map(|count| vec![*count]).chain(words);
            let messages: Vec<Vec<u8>> = messages
                .chain([vec![], vec![order(0); 8]])
                .map(|words| words.concat())
                .collect();
            let answers = subject.c.recode(&format!("{form}:{name}"), &messages);
            for (answer, bytes) in answers.into_iter().zip(&messages) {
                let expected = judge(interface, id, bytes);
                let read = expected.as_ref().map_or(bytes.len(), |read| *read);
                let in_rust = recode(&bytes[..read]);
                assert_eq!(
                    in_rust.is_ok(),
                    expected.is_ok(),
                    "{form}:{name}: {bytes:x?}: {in_rust:?}"
                );
                let in_c = match &expected {
                    Ok(_) if read < bytes.len() => {
                        Err(format!("{read} bytes were read of {}", bytes.len()))
                    }
                    expected => expected.clone(),
                };
                let what = format!("{form}:{name}: {bytes:x?}");
                assert_eq!(answer.map(|bytes| bytes.len()), in_c, "{what}");
                accepted += usize::from(expected.is_ok());
                refused += usize::from(expected.is_err());
            }
        }
    }
    assert!(accepted > 450 && refused > 150, "{accepted} {refused}");
}

fn nobody_chooses_how_deep_a_decoder_goes(subject: &mut Subject) {
    let id = subject.schema.find_type("tree").expect("it is there");
    let messages = (120..140).map(|levels| {
        let downwards = (1..levels).flat_map(|_| [7, 1]);
        let upwards = (0..levels).map(|_| 9);
        let words = downwards.chain([7, 0]).chain(upwards);
        words.flat_map(u32::to_be_bytes).collect()
    });
    let messages: Vec<Vec<u8>> = messages.collect();
    let answers = subject.c.recode("x:tree", &messages);
    let mut refused = 0;
    for (answer, bytes) in answers.into_iter().zip(&messages) {
        let expected = judged::<Xdr>(&subject.xdr, id, bytes);
        refused += usize::from(expected.is_err());
        assert_eq!(answer.map(|bytes| bytes.len()), expected);
    }
    assert_eq!(refused, 11, "129 levels are too many");
}

/// Compares the arguments and the results of the procedures of the first version. How many messages there
/// are that are not empty.
fn same_messages(subject: &mut Subject) -> usize {
    let mut compared = 0;
    let (xdr, lean) = (subject.xdr.clone(), subject.lean.clone());
    let first = xdr.procedures().next().map(version_of);
    let mut random = Random::new(17);
    for (xdr, lean) in xdr.procedures().zip(lean.procedures()) {
        if Some(version_of(xdr)) != first {
            continue;
        }
        let mut messages: [Vec<Vec<u8>>; 4] = Default::default();
        for _ in 0..VALUES / 10 {
            let schema = &subject.schema;
            let arguments = random.arguments(schema, xdr.parameters(), ITEMS);
            messages[0].push(written::<Xdr>(|out| xdr.encode_arguments(&arguments, out)));
            messages[1].push(written::<Lean<Native>>(|out| {
                lean.encode_arguments(&arguments, out)
            }));
            if let Some(ty) = xdr.result() {
                let result = random.value(schema, ty, ITEMS);
                messages[2].push(written::<Xdr>(|out| xdr.encode_result(&result, out)));
                messages[3].push(written::<Lean<Native>>(|out| {
                    lean.encode_result(&result, out)
                }));
            }
        }
        if xdr.parameters().is_empty() {
            messages[0].clear();
            messages[1].clear();
        }
        for (form, messages) in ["X:(", "L:(", "X:)", "L:)"].into_iter().zip(&messages) {
            let name = format!("{form}{}", xdr.name());
            for (answer, bytes) in subject.c.recode(&name, messages).iter().zip(messages) {
                assert_eq!(answer.as_ref(), Ok(bytes), "{name}");
            }
            compared += usize::from(!messages.is_empty());
        }
    }
    compared
}

/// The numbers of a procedure's program and version.
fn version_of(procedure: Procedure<'_>) -> (u32, u32) {
    (procedure.program().number, procedure.version().number)
}

fn written<R: Representation>(
    write: impl FnOnce(&mut Encoder<'_, R>) -> Result<(), EncodeError>,
) -> Vec<u8> {
    let mut buffer = Buffer::with_capacity(256);
    write(&mut Encoder::<R>::over(&mut buffer)).expect("a value");
    buffer.as_slice().to_vec()
}

/// Spoils a word somewhere.
fn spoil(random: &mut Random, bytes: &mut [u8]) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(4) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = 0xff,
        2 => {
            let at = at & !3;
            let end = bytes.len().min(at + 4);
            bytes[at..end].fill(0xff);
        }
        _ => {
            let at = at & !3;
            let word = (random.below(40) as u32).to_ne_bytes();
            let end = bytes.len().min(at + 4);
            bytes[at..end].copy_from_slice(&word[..end - at]);
        }
    }
}

/// How many of the bytes are refused, by the interpreter and by C.
fn same_refusals(subject: &mut Subject, id: TypeId, ty: &str, rust: Recoders) -> usize {
    let mut random = Random::new(u64::from(id.0) + 13);
    let named = Type::Named(id);
    let mut refused = 0;
    let mut forms: [Vec<Vec<u8>>; 3] = Default::default();
    for _ in 0..WRONG {
        let value = random.value(&subject.schema, &named, ITEMS);
        let xdr = encoded::<Xdr>(&subject.xdr, id, &value);
        let lean = encoded::<Lean<Native>>(&subject.lean, id, &value);
        let swapped = (rust.to_swapped)(&lean).expect("Rust's stubs move it");
        for (mut bytes, form) in [xdr, lean, swapped].into_iter().zip(&mut forms) {
            spoil(&mut random, &mut bytes);
            form.push(bytes);
        }
    }
    let [xdr, lean, swapped] = &forms;
    let judges: [(&str, &Vec<Vec<u8>>, Judge); 3] = [
        ("x", xdr, judged::<Xdr>),
        ("l", lean, judged::<Lean<Native>>),
        ("s", swapped, judged::<Lean<Swapped>>),
    ];
    for (form, spoiled, judge) in judges {
        let interface = match form {
            "x" => &subject.xdr,
            _ => &subject.lean,
        };
        let expected: Vec<Result<usize, String>> = spoiled
            .iter()
            .map(|bytes| judge(interface, id, bytes))
            .collect();
        let name = format!("{form}:{ty}");
        let answers = subject.c.recode(&name, spoiled);
        for ((answer, expected), bytes) in answers.into_iter().zip(expected).zip(spoiled) {
            let answer = match answer {
                Ok(_) => Ok(bytes.len()),
                Err(said) => {
                    match said.strip_suffix(&format!(" bytes were read of {}", bytes.len())) {
                        Some(read) => Ok(read.parse().expect("a number")),
                        None => Err(said),
                    }
                }
            };
            refused += usize::from(expected.is_err());
            if let Some(at) = refused_for_a_nul(&answer) {
                assert!(is_string_with_nul(bytes, at, form), "{name}: {bytes:x?}");
                continue;
            }
            assert_eq!(answer, expected, "{name}: {bytes:x?}");
        }
    }
    refused
}

/// Where a string begins that was refused as it holds a NUL, which strings of other languages may.
fn refused_for_a_nul(answer: &Result<usize, String>) -> Option<usize> {
    let at = answer.as_ref().err()?.strip_prefix("12 at byte ")?;
    Some(at.parse().expect("a number"))
}

/// Whether the string that begins there holds a NUL. Its length stands in front of it.
fn is_string_with_nul(bytes: &[u8], at: usize, form: &str) -> bool {
    let count = bytes[at - 4..at].try_into().expect("four bytes");
    let count = match form {
        "x" => u32::from_be_bytes(count),
        "l" => u32::from_ne_bytes(count),
        _ => u32::from_ne_bytes(count).swap_bytes(),
    };
    bytes[at..at + count as usize].contains(&0)
}
