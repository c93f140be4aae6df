//! Descriptors of real interfaces: they bring back what they were made of, are what `interfaces/descriptor.x` says, do not
//! depend on the order of definitions, and hostile ones are refused.

use std::fs;
use std::path::{Path, PathBuf};

use tenon_descriptor::{Descriptor, DescriptorError, MAGIC, is_descriptor};
use tenon_exec::Interface;
use tenon_plan::{Fingerprints, Representation};
use tenon_schema::{ConstantValue, Schema};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn parse(path: &Path) -> Option<Schema> {
    tenon_idl::parse_file(path, &tenon_idl::Options::default()).schema
}

fn text(text: &str) -> Schema {
    let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
    let Some(schema) = parsed.schema.clone() else {
        panic!("{}", parsed.render(tenon_idl::Style::Plain));
    };
    schema
}

fn described(of: &str) -> Descriptor {
    Descriptor::new(&text(of)).unwrap_or_else(|error| panic!("{error}: {of}"))
}

/// The interfaces of the repository that have plans.
fn interfaces() -> Vec<(PathBuf, Schema)> {
    let folders = ["interfaces", "crates/tenon-gen/tests/corpus"];
    let files = folders.map(|folder| fs::read_dir(root().join(folder)).expect("a folder"));
    let files = files.into_iter().flatten();
    let paths = files.map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "x"));
    let schemas = paths.filter_map(|path| parse(&path).map(|schema| (path, schema)));
    let has_plans = |schema: &Schema| {
        let forms = [Representation::XDR, Representation::LEAN];
        forms.map(|form| tenon_plan::lower(schema, form).is_ok()) == [true, true]
    };
    schemas.filter(|(_, schema)| has_plans(schema)).collect()
}

/// The fingerprints of all versions, with the numbers of these.
fn fingerprints(schema: &Schema) -> Vec<(u32, u32, u64)> {
    let fingerprints = Fingerprints::new(schema);
    let programs = schema.programs.iter();
    let versions =
        programs.flat_map(|program| program.versions.iter().map(|it| (program.number, it)));
    let mut all: Vec<_> = versions
        .map(|(program, version)| (program, version.number, fingerprints.of_version(version)))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn interfaces_come_back_as_they_were() {
    let interfaces = interfaces();
    assert!(interfaces.len() > 30, "{}", interfaces.len());
    for (path, schema) in interfaces {
        let shown = path.display();
        let descriptor =
            Descriptor::new(&schema).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let read = Descriptor::parse(descriptor.bytes())
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(read, descriptor, "{shown}");
        let back = read.schema();
        let again = Descriptor::new(back).expect("it was described before");
        assert_eq!(again.bytes(), descriptor.bytes(), "{shown}");
        assert_eq!(fingerprints(back), fingerprints(&schema), "{shown}");
        assert_eq!(back.types.len(), schema.types.len(), "{shown}");
        for def in &schema.types {
            let id = back.find_type(&def.name).expect("it has the type");
            let found = back.type_def(id);
            assert_eq!(found.annotations, def.annotations, "{shown}: {}", def.name);
        }
        for constant in &schema.constants {
            let is_it = |it: &&tenon_schema::Constant| it.name == constant.name;
            let found = back.constants.iter().find(is_it).expect("the constant");
            assert_eq!(found.value, constant.value, "{shown}: {}", constant.name);
        }
    }
}

#[test]
fn interfaces_can_be_written_and_read_again() {
    for (path, schema) in interfaces() {
        let shown = path.display();
        let descriptor = Descriptor::new(&schema).expect("a descriptor");
        for schema in [&schema, descriptor.schema()] {
            let written = tenon_idl::write_interface(schema);
            // Types that are declared elsewhere are in a descriptor, too.
            let options = tenon_idl::Options {
                undeclared: tenon_idl::Undeclared::Allowed,
                ..Default::default()
            };
            let parsed = tenon_idl::parse_text("it.x", &written, &options);
            let diagnostics = parsed.render(tenon_idl::Style::Plain);
            let Some(again) = parsed.schema else {
                panic!("{shown}: {diagnostics}\n{written}");
            };
            let again = Descriptor::new(&again).expect("it was described before");
            if again != descriptor {
                let dumps = [descriptor.schema(), again.schema()].map(tenon_idl::dump);
                assert_eq!(dumps[0], dumps[1], "{shown}");
                panic!("{shown}: it is another interface\n{written}");
            }
        }
    }
}

/// The interpreter reads descriptors by the interface file that specifies them, strictly, and writes them again.
#[test]
fn descriptors_are_what_their_interface_file_says() {
    let schema = parse(&root().join("interfaces/descriptor.x")).expect("an interface");
    let interface = Interface::new(schema).expect("plans");
    let id = interface
        .schema()
        .find_type("descriptor")
        .expect("the type");
    for (path, schema) in interfaces() {
        let descriptor = Descriptor::new(&schema).expect("a descriptor");
        let mut input = Decoder::with(descriptor.bytes(), DecodeMode::Strict, Limits::default());
        let value = interface.decode(id, &mut input);
        let value = value.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        input.finish().expect("nothing is left");
        let mut buffer = Buffer::default();
        let encoded = interface.encode(id, &value, &mut Encoder::new(&mut buffer));
        encoded.expect("it was decoded");
        assert_eq!(buffer.as_slice(), descriptor.bytes(), "{}", path.display());
    }
}

#[test]
fn the_order_of_definitions_comments_and_files_are_no_part_of_it() {
    let one = described(
        "/* A comment. */ const B = 2; const A = 1;
        struct point { int x; int y; };
        enum hue { RED = 1, BLUE = 2 };
        program P { version V1 { point GET(hue) = 1; void PUT(point) = 2; } = 1; version V2 { void N(void) = 0; } = 2; } = 9;",
    );
    let other = described(
        "enum hue { RED = 1, BLUE = 2 };
        struct point { int x; int y; /* Up. */ };
        const A = 1; const B = 2;
        program P { version V2 { void N(void) = 0; } = 2; version V1 { void PUT(point) = 2; point GET(hue) = 1; } = 1; } = 9;",
    );
    assert_eq!(one.bytes(), other.bytes());
    assert_eq!(one.identity(), other.identity());
    // What callers see is part of it, and so is what the lean protocol does not compare.
    for changed in [
        "struct point { int x; int z; };",
        "struct point { int y; int x; };",
        "struct spot { int x; int y; };",
        "struct point { int x; int y; /*@ sensitive */ };",
        "/*@ deprecated */ struct point { int x; int y; };",
        "struct point { int x; int y; }; const C = 1;",
    ] {
        let other = described(changed).identity();
        assert_ne!(
            described("struct point { int x; int y; };").identity(),
            other,
            "{changed}"
        );
    }
}

/// The bytes of a small interface, which other implementations may be held against.
#[test]
fn a_descriptor_has_these_bytes() {
    let descriptor = described(
        "struct no_such_key { string key<64>; };
        program KEYS { version KEYS_V1 {
            /*@ idempotent; raises no_such_key */
            hyper GET(string key<64>) = 1;
        } = 1; } = 0x20000041;",
    );
    let words: Vec<String> = descriptor
        .bytes()
        .chunks(4)
        .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let expected = fs::read_to_string(root().join("crates/tenon-descriptor/tests/golden.txt"));
    let expected = expected.expect("the golden bytes");
    let expected: Vec<&str> = expected
        .lines()
        .filter_map(|line| line.split('#').next().map(str::trim))
        .flat_map(str::split_whitespace)
        .collect();
    assert_eq!(words, expected);
    assert_eq!(
        descriptor.identity().to_string(),
        "d2ad7164ae8c4c9119a0f67efa7247d94a4500b23e2eaaf90670426d4472ec1a"
    );
}

#[test]
fn prefixes_and_spoiled_bytes_are_refused_or_canonical() {
    let subjects = [
        parse(&root().join("interfaces/health.x")).expect("an interface"),
        parse(&root().join("crates/tenon-gen/tests/corpus/raises.x")).expect("an interface"),
        text("typedef a list<5>;
            /*@ alias old */ struct a { int x; /*@ default -7; alias y, z; deprecated \"why\" */ string s<>; };
            union u switch (unsigned n) { case 1: case 2: list next; default: void; };
            typedef u *next; typedef quadruple q[3];
            const N = -5; const M = 18446744073709551615;"),
    ];
    for schema in subjects {
        let bytes = Descriptor::new(&schema)
            .expect("a descriptor")
            .bytes()
            .to_vec();
        for end in 0..bytes.len() {
            assert!(
                Descriptor::parse(&bytes[..end]).is_err(),
                "a prefix of {end} bytes"
            );
        }
        let mut longer = bytes.clone();
        longer.extend([0; 4]);
        assert!(Descriptor::parse(&longer).is_err());
        for at in 0..bytes.len() {
            for bit in [0x01, 0x02, 0x20, 0x80] {
                let mut spoiled = bytes.clone();
                spoiled[at] ^= bit;
                // What is accepted is an interface of its own, which has these bytes and no other.
                if let Ok(read) = Descriptor::parse(&spoiled) {
                    let again = Descriptor::new(read.schema()).expect("it was read");
                    assert_eq!(again.bytes(), spoiled, "byte {at}");
                    assert_ne!(again.bytes(), bytes, "byte {at}");
                }
            }
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let bytes = described("struct point { int x; int y; };")
        .bytes()
        .to_vec();
    assert!(is_descriptor(&bytes) && is_descriptor(&MAGIC) && !is_descriptor(b"struct"));
    assert_eq!(
        Descriptor::parse(b"struct point"),
        Err(DescriptorError::NotOne)
    );
    let mut later = bytes.clone();
    later[11] = 2;
    let error = Descriptor::parse(&later).expect_err("format 2");
    assert_eq!(
        error.to_string(),
        "this is a descriptor of format 2, and format 1 is what can be read here"
    );
    let error = Descriptor::parse(&bytes[..20]).expect_err("a prefix");
    assert!(
        error
            .to_string()
            .starts_with("the descriptor cannot be decoded: "),
        "{error}"
    );
    let error = Descriptor::parse(&vec![0; (16 << 20) + 1]).expect_err("too large");
    assert!(matches!(error, DescriptorError::TooLarge { .. }), "{error}");

    let mut wide = text("const WIDE = 1;");
    wide.constants[0].value = ConstantValue::Number(1 << 64);
    let error = Descriptor::new(&wide).expect_err("more than 64 bits");
    assert!(matches!(error, DescriptorError::Encode(_)), "{error}");

    let long = "a".repeat(300);
    let error =
        Descriptor::new(&text(&format!("struct {long} {{ int x; }};"))).expect_err("too long");
    assert!(matches!(error, DescriptorError::Encode(_)), "{error}");
}

/// Interfaces that no file can have: the parts of a schema that the front end would refuse.
#[test]
fn parts_that_do_not_fit_together_are_refused() {
    type Change = fn(&mut Schema);
    let changes: [(&str, Change); 10] = [
        ("uses a type that is not there", |it| {
            it.types[0].kind = tenon_schema::TypeKind::Typedef(tenon_schema::Type::Named(
                tenon_schema::TypeId(99),
            ));
        }),
        ("uses a type that is not there", |it| {
            it.programs[0].versions[0].procedures[0].annotations.raises[0] =
                tenon_schema::TypeId(99);
        }),
        ("raises `no_such_key` twice", |it| {
            let raises = &mut it.programs[0].versions[0].procedures[0].annotations.raises;
            raises.push(raises[0]);
        }),
        ("is no name", |it| it.types[0].name = "a b".to_owned()),
        ("stands behind", |it| {
            it.types[1].name = it.types[0].name.clone()
        }),
        ("is there twice", |it| {
            let tenon_schema::TypeKind::Struct(fields) = &mut it.types[0].kind else {
                panic!("it is a struct");
            };
            fields.push(fields[0].clone());
        }),
        ("no argument that could be a stream", |it| {
            let procedure = &mut it.programs[0].versions[0].procedures[0];
            procedure.arguments.clear();
            procedure.annotations.streams.arguments = true;
        }),
        ("no result that could be a stream", |it| {
            let procedure = &mut it.programs[0].versions[0].procedures[0];
            procedure.result = None;
            procedure.annotations.streams.result = true;
        }),
        ("stands behind a number", |it| {
            let version = &mut it.programs[0].versions[0];
            version.procedures.push(version.procedures[0].clone());
        }),
        ("has no end", |it| {
            it.types[1].kind =
                tenon_schema::TypeKind::Typedef(tenon_schema::Type::Named(tenon_schema::TypeId(1)));
        }),
    ];
    let whole = text(
        "struct no_such_key { string key<64>; };
        typedef int place[2];
        program KEYS { version KEYS_V1 {
            /*@ raises no_such_key */
            place GET(string key<64>) = 1;
        } = 1; } = 7;",
    );
    for (expected, change) in changes {
        let mut spoiled = whole.clone();
        change(&mut spoiled);
        let error = Descriptor::new(&spoiled).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}: {expected}");
    }
}
