//! The preprocessor beside `cpp`, which rpcgen runs: macros, in `%` lines too, and those that C itself defines.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use tenon_idl::{Options, Style, parse_text};
use tenon_schema::{Constant, ConstantValue, Schema};

fn schema(text: &str) -> Schema {
    let parsed = parse_text("test.x", text, &Options::default());
    let said = parsed.render(Style::Plain);
    parsed.schema.unwrap_or_else(|| panic!("{said}"))
}

fn refusal(text: &str) -> String {
    let parsed = parse_text("test.x", text, &Options::default());
    assert!(parsed.schema.is_none(), "{text}");
    parsed.render(Style::Plain)
}

/// The constant with this name.
fn constant(text: &str, name: &str) -> i128 {
    let schema = schema(text);
    let is_wanted = |constant: &&Constant| constant.name == name;
    match schema.constants.iter().find(is_wanted) {
        Some(Constant {
            value: ConstantValue::Number(value),
            ..
        }) => *value,
        other => panic!("{other:?}"),
    }
}

/// What the system's preprocessor writes.
fn cpp(arguments: &[&str]) -> String {
    let output = Command::new("cpp").args(arguments).output();
    let output = output.expect("gcc brings it along");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Macros of every kind, and lines for C that use them.
const MACROS: &str = r##"
#define HDR 28
#define ADD(a, b) ((a) + (b))
#define CAT(a, b) a ## b
#define STR(x) #x
#define XSTR(x) STR(x)
#define LOG(format, ...) printf(format, ## __VA_ARGS__)
#define NAMED(first, rest...) first: rest
#define EMPTY
#define NOTHING() nothing
#define SELF SELF + HDR
#define f(x) x + g
#define g(x) x * f
#define NEG -1
#define GLUE HDR ## 7
#define PAIR(x) x ## x
#define AROUND(a, b, c) a ## b ## c
"##;

const LINES: &str = r##"
#define HEADER_SIZE HDR /* HDR */ "HDR" 'H' HDRX 0xHDR
int a = ADD(HDR, CAT(1, 2)); char *s = STR(a "b\n" +  HDR), *t = XSTR(HDR), *u = STR();
LOG("x"); LOG("y", 1, (2, 3)); NAMED(a); NAMED(a, b, c); SELF; f(1)(2)(3); x = -NEG-NEG; [EMPTY];
CAT(HD, R) CAT(, HDR) CAT(HDR, ) NOTHING() NOTHING HDR(HDR) GLUE ADD(ADD(1, 2), ADD(3, 4)) PAIR(HDR) PAIR()
p->HDR ... HDR.HDR 1.5e+3 AROUND(a, , b) AROUND(, , ) AROUND(x, y, z) CAT(+, =) STR(ADD(1, 2)) XSTR(ADD(1, 2))
/* HDR begins
 HDR goes on */ HDR /* and ends */
"##;

/// Without white space, which no preprocessor keeps: cpp puts some in where words would run together, too.
fn squeezed(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let words = lines.map(|line| {
        let is_white = |char: char| char.is_whitespace();
        line.replace(is_white, "") + "\n"
    });
    words.collect()
}

#[test]
fn macros_are_expanded_in_lines_for_c_as_cpp_does() {
    let ours: String = LINES.lines().map(|line| format!("%{line}\n")).collect();
    let ours = schema(&(MACROS.to_owned() + &ours)).passthrough;
    let ours: String = ours.into_iter().map(|line| line.text + "\n").collect();
    // To cpp, which is to see no directives in them, they begin with a mark.
    let theirs: String = LINES.lines().map(|line| format!("@{line}\n")).collect();
    let path = std::env::temp_dir().join(format!("tenon-idl-macros-{}.x", std::process::id()));
    fs::write(&path, MACROS.to_owned() + &theirs).expect("a file");
    let theirs = cpp(&["-C", "-P", &path.display().to_string()]);
    fs::remove_file(&path).expect("it is there");
    let theirs: Vec<&str> = theirs
        .lines()
        .filter_map(|line| line.strip_prefix('@'))
        .collect();
    assert_eq!(squeezed(&ours), squeezed(&theirs.join("\n")));
    assert!(ours.contains("#define HEADER_SIZE 28 /*"), "{ours}");
}

#[test]
fn macros_with_parameters_are_expanded_in_the_text() {
    let text = "#define AT_LEAST(n, bytes) opaque n<bytes>
        #define PAIR(name) struct name { int a; \\
            int b; }
        #define NAMED(prefix, rest) prefix ## _ ## rest
        PAIR(first);
        struct NAMED(more, of_it) { AT_LEAST(data, /* as many */ NAMED(0, ));
            AT_LEAST(others,
                8); };
        const PAIR = 3;";
    let text = text.replace("NAMED(0, )", "12");
    let schema = schema(&text);
    let names: Vec<&str> = schema.types.iter().map(|def| def.name.as_str()).collect();
    assert_eq!(names, ["first", "more_of_it"]);
    assert_eq!(
        constant(
            "#define TWICE(x) ((x) * 2)\nconst A = TWICE(TWICE(3)) + 1;",
            "A"
        ),
        13
    );
    assert_eq!(
        constant(
            "#define N(x) x\n#if N(1) + N(2) == 3 && defined N\nconst A = 5;\n#endif",
            "A"
        ),
        5
    );
}

#[test]
fn calls_of_macros_are_checked() {
    for (text, wanted) in [
        (
            "#define N(x) x\nconst A = N(1, 2);",
            "`N` takes 1 argument, and here are 2",
        ),
        (
            "#define N(x, y) x\nconst A = N(1);",
            "`N` takes 2 arguments, and here are 1",
        ),
        (
            "#define N(x) x\nconst A = N(1;",
            "`N` has arguments that are not closed by `)`",
        ),
        (
            "#define N(x) x\n%int a = N(1;",
            "`N` has arguments that are not closed by `)`",
        ),
        ("#define N(x x\nconst A = 1;", "malformed parameters"),
        ("#define N(..., x) x\nconst A = 1;", "malformed parameters"),
        (
            "#define N(x) x ## +\nconst A = N(1);",
            "a macro makes `1+` by `#` or `##`, which is not one word",
        ),
    ] {
        let said = refusal(text);
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

/// A few lines that ask for more words, or more memory, than there are.
#[test]
fn macros_have_a_budget() {
    let twice: String = (1..40)
        .map(|n| format!("#define M{n}(x) M{}(x) M{}(x)\n", n - 1, n - 1))
        .collect();
    let nested = format!(
        "#define N(x) x\nconst A = {}1{};",
        "N(".repeat(500),
        ")".repeat(500)
    );
    let unused = format!("#define N(x)\nN({});", "1 ".repeat(600_000));
    let text: String = (1..40)
        .map(|n| format!("#define S{n}(x) S{}(x x)\n", n - 1))
        .collect();
    for (text, wanted) in [
        (
            format!("#define M0(x) x\n{twice}const A = M39(1);"),
            "too many words",
        ),
        (format!("#define M0(x) x\n{twice}%M39(1)"), "too many words"),
        (nested, "nested too deeply"),
        (unused, "too many words"),
        (
            format!("#define S0(x) #x\n{text}const A = S39(1);"),
            "too many words",
        ),
    ] {
        let said = refusal(&text);
        assert!(said.contains(wanted), "{said}");
    }
}

/// Every macro that is built in is one of cpp's, with the same value; but the version of GCC is anybody's.
#[test]
fn built_in_macros_are_those_of_cpp() {
    let theirs = cpp(&["-dM", "/dev/null"]);
    let theirs: HashMap<&str, &str> = theirs
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
        .collect();
    let mut found = 0;
    for (name, value) in &theirs {
        let text = format!(
            "#ifdef {name}\nconst FOUND = 1;\n#if {name} == {value}\nconst SAME = 1;\n#endif\n#endif"
        );
        let Some(schema) = parse_text("test.x", &text, &Options::default()).schema else {
            continue;
        };
        let has = |wanted: &str| schema.constants.iter().any(|it| it.name == wanted);
        assert!(
            !has("FOUND") || has("SAME") || name.starts_with("__GNUC_"),
            "{name}"
        );
        found += usize::from(has("FOUND"));
    }
    assert!(found > 30, "{found}");
    let ours = ["__linux__", "linux", "unix", "__BYTE_ORDER__", "__LP64__"];
    for name in ours
        .iter()
        .filter(|_| cfg!(all(target_os = "linux", target_pointer_width = "64")))
    {
        let text = format!("#ifdef {name}\nconst FOUND = 1;\n#endif");
        assert_eq!(constant(&text, "FOUND"), 1, "{name}");
        assert!(theirs.contains_key(name), "{name}");
    }
}

/// What the C compiler defines by itself is left to it: cpp's `#ifdef 1` is nothing that C takes. And `linux` is a name.
#[test]
fn built_in_macros_stay_as_they_are_where_c_knows_them() {
    let text = "%#ifdef __linux__\n%#include <linux/if.h>\n%#endif\nstruct unix { int linux; };
        #if defined __CHAR_BIT__\nconst A = __CHAR_BIT__;\n#endif";
    let parsed = schema(text);
    assert_eq!(parsed.passthrough[0].text, "#ifdef __linux__");
    assert_eq!(parsed.passthrough[1].text, "#include <linux/if.h>");
    assert_eq!(parsed.types[0].name, "unix");
    assert_eq!(constant(text, "A"), 8);
    let own = "#define linux 7\n%int a = linux;\nconst A = linux;";
    assert_eq!(schema(own).passthrough[0].text, "int a = 7;");
    assert_eq!(constant(own, "A"), 7);
}
