//! Fingerprints: equal where bytes and names are, different where they or what is accepted are not.

use crate::support::schema;
use tenon_plan::Fingerprints;
use tenon_schema::Schema;

/// FNV-1a, as the specification has it.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf29ce484222325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3)
    })
}

/// A type where it is used.
fn used(text: &str) -> String {
    format!("#{:016x}", fnv(text))
}

fn of_type(interface: &str, name: &str) -> u64 {
    let schema = schema(interface);
    Fingerprints::new(&schema).of_type(schema.find_type(name).expect(name))
}

fn of_version(schema: &Schema) -> u64 {
    Fingerprints::new(schema).of_version(&schema.programs[0].versions[0])
}

#[test]
fn the_hash_is_fnv_1a() {
    assert_eq!(fnv(""), 0xcbf29ce484222325);
    assert_eq!(fnv("a"), 0xaf63dc4c8601ec8c);
    assert_eq!(fnv("foobar"), 0x85944171f73967e8);
}

#[test]
fn every_type_has_the_text_that_the_specification_says() {
    let point = used("struct(x int,y int)");
    let color = used("enum(R=-1,G=0,B=7)");
    let cases: [(&str, String); 15] = [
        (
            "struct t { int a; unsigned int b; hyper c; unsigned hyper d; };",
            "struct(a int,b uint,c hyper,d uhyper)".to_owned(),
        ),
        (
            "struct t { short a; unsigned short b; char c; unsigned char d; };",
            "struct(a short,b ushort,c char,d uchar)".to_owned(),
        ),
        (
            "struct t { float a; double b; quadruple c; bool d; };",
            "struct(a float,b double,c quadruple,d bool)".to_owned(),
        ),
        (
            "struct t { opaque a[3]; opaque b<4>; opaque c<>; string d<5>; string e<>; };",
            "struct(a opaque[3],b opaque<4>,c opaque<4294967295>,d string<5>,e string<4294967295>)"
                .to_owned(),
        ),
        (
            "struct t { int a[3]; int b<4>; int *c; };",
            format!(
                "struct(a {},b {},c {})",
                used("int[3]"),
                used("int<4>"),
                used("*int")
            ),
        ),
        (
            "typedef int row[3]; struct t { row rows<2>; };",
            format!("struct(rows {})", used(&format!("{}<2>", used("int[3]")))),
        ),
        (
            "enum t { B = 7, A = -1, C = 0, D = 7 };",
            "enum(A=-1,C=0,B=7,D=7)".to_owned(),
        ),
        (
            "struct point { int x; int y; }; struct t { point a; point *b; };",
            format!("struct(a {point},b {})", used(&format!("*{point}"))),
        ),
        (
            "enum color { R = -1, G = 0, B = 7 };
             union t switch (color c) { case B: int b; case R: case G: void; };",
            format!("union({color},-1:void,0:void,7:b int)"),
        ),
        (
            "union t switch (int i) { case 5: int b; default: string c<>; };",
            "union(int,5:b int,default:c string<4294967295>)".to_owned(),
        ),
        (
            "union t switch (bool b) { case TRUE: int x; default: void; };",
            "union(bool,1:x int,default:void)".to_owned(),
        ),
        ("struct t { int x; t *next; };", "link(x int)".to_owned()),
        (
            "struct l { int x; l *next; }; struct t { l *a; l b; };",
            format!(
                "struct(a {},b {})",
                used(&format!("list({})", used("link(x int)"))),
                used(&format!("list+({})", used("link(x int)")))
            ),
        ),
        (
            "struct t { t *left; int x; t *right; int y; };",
            format!("struct(left {0},x int,right {0},y int)", used("*^0")),
        ),
        (
            "struct t { b *down; int x; }; struct b { t up<>; b *same; int y; };",
            format!(
                "struct(down {},x int);struct(up {},same {},y int)",
                used("*^1"),
                used("^0<4294967295>"),
                used("*^1")
            ),
        ),
    ];
    for (interface, text) in cases {
        assert_eq!(of_type(interface, "t"), fnv(&text), "{interface}\n{text}");
    }
}

#[test]
fn names_of_types_comments_typedefs_and_what_is_not_used_do_not_count() {
    let one = "struct point { int x; int y; };
        typedef point *point_or_none;
        struct t { point at; opaque sum[6]; point_or_none more<3>; };
        program P { version V { t MOVE(int, t) = 1; void STOP(void) = 2; } = 1; } = 300;";
    let other = "/* Others. */ typedef opaque digest[6]; typedef int number;
        struct unused { int x; };
        struct place { number x; number y; };
        struct again { number x; number y; };
        typedef again *maybe;
        typedef maybe maybes<3>;
        struct figure { place at; digest sum; maybes more; };
        typedef figure shape;
        program Q { version W { void NIL(void) = 0; void STOP(void) = 2;
            shape MOVE(number, shape) = 1; } = 7; } = 800;";
    assert_eq!(of_version(&schema(one)), of_version(&schema(other)));
}

#[test]
fn whatever_decides_the_bytes_and_what_they_mean_counts() {
    let original = "enum color { RED = 0, BLUE = 1 };
        union u switch (color c) { case RED: int i; case BLUE: void; };
        struct node { int value; string name<9>; int rank; node *next; };
        struct tree { tree *left; tree *right; u what; };
        program P { version V { node GET(int a, hyper b) = 1; void PUT(tree) = 2; } = 1; } = 300;";
    let fingerprint = of_version(&schema(original));
    let changes = [
        ("BLUE = 1", "BLUE = 2"),
        ("BLUE = 1 }", "BLUE = 1, GREEN = 2 }"),
        ("case RED: int i;", "case RED: unsigned int i;"),
        (
            "case RED: int i; case BLUE: void;",
            "case RED: int i; default: void;",
        ),
        (
            "case RED: int i; case BLUE: void;",
            "case RED: case BLUE: int i;",
        ),
        (
            "int value; string name<9>; int rank;",
            "int rank; string name<9>; int value;",
        ),
        ("RED = 0, BLUE = 1", "BLUE = 0, RED = 1"),
        ("case RED: int i", "case RED: int j"),
        ("(int a, hyper b)", "(int c, hyper b)"),
        ("node GET", "node FETCH"),
        ("name<9>", "name<10>"),
        ("string name", "opaque name"),
        ("int value; string name<9>;", "string name<9>; int value;"),
        ("node *next;", "node *next; int more;"),
        ("node *next;", "node next<1>;"),
        ("tree *left; tree *right;", "tree *left; tree right<1>;"),
        ("tree *left; tree *right;", "tree *left;"),
        ("node GET", "node *GET"),
        ("(int a, hyper b)", "(hyper b, int a)"),
        ("(int a, hyper b)", "(int a)"),
        ("(int a, hyper b) = 1", "(int a, hyper b) = 3"),
        ("void PUT(tree) = 2;", ""),
        ("void PUT", "int PUT"),
        ("void PUT(tree)", "void PUT(tree *)"),
    ];
    let mut seen = vec![fingerprint];
    for (from, to) in changes {
        assert!(original.contains(from), "{from}");
        let changed = of_version(&schema(&original.replace(from, to)));
        assert!(!seen.contains(&changed), "{from} -> {to}");
        seen.push(changed);
    }
}

/// The fingerprint and the layout fingerprint of the only procedure of an interface.
fn of_get(interface: &str) -> (u64, u64) {
    let schema = schema(interface);
    let parts = Fingerprints::new(&schema).parts(&schema.programs[0].versions[0]);
    (parts[0].fingerprint, parts[0].layout)
}

#[test]
fn names_are_in_the_fingerprint_and_not_in_the_one_of_the_layout() {
    let original = "enum color { RED = 0, BLUE = 1 };
        union u switch (color c) { case RED: int i; case BLUE: void; };
        struct node { u what; int value; int rank; node *next; };
        program P { version V { node GET(color c, int a) = 1; } = 1; } = 300;";
    let (fingerprint, layout) = of_get(original);
    assert!(fingerprint != 0 && layout != 0 && layout != fingerprint);
    for (from, to) in [
        ("int value; int rank;", "int rank; int value;"),
        ("int value;", "int weight;"),
        ("RED", "PINK"),
        ("int i;", "int j;"),
        ("int a)", "int b)"),
        ("node GET", "node FETCH"),
    ] {
        let changed = of_get(&original.replace(from, to));
        assert_ne!(changed.0, fingerprint, "{from} -> {to}");
        assert_eq!(changed.1, layout, "{from} -> {to}");
    }
    for (from, to) in [
        ("int value;", "unsigned value;"),
        ("BLUE = 1 }", "BLUE = 2 }"),
        ("case RED: int i;", "case RED: hyper i;"),
        ("int a)", "int a, int b)"),
        ("node GET", "node *GET"),
        ("= 1; } = 1;", "= 2; } = 1;"),
    ] {
        assert_ne!(
            of_get(&original.replace(from, to)).1,
            layout,
            "{from} -> {to}"
        );
    }
}

/// The text of `struct { int x; int *y; }` without names.
#[test]
fn a_layout_fingerprint_is_that_of_the_text_without_names() {
    let schema =
        schema("struct t { int x; int *y; }; program P { version V { t G(t) = 1; } = 1; } = 300;");
    let parts = Fingerprints::new(&schema).parts(&schema.programs[0].versions[0]);
    let found = parts.iter().find(|part| part.name == "t").unwrap();
    assert_eq!(found.layout, fnv("struct(int,#feaf4ac630d6dd86)"));
    let of_t = format!("#{:016x}", found.layout);
    assert_eq!(parts[0].layout, fnv(&format!("1 ({of_t}){of_t}")));
}

#[test]
fn the_parts_of_a_version_are_its_procedures_and_then_types_in_the_order_of_use() {
    let interface = schema(
        "struct outer { struct { int x; } in; color c; };
         enum color { RED };
         struct unused { int x; };
         union u switch (color c) { case RED: outer o; };
         struct list { u what; list *next; };
         typedef list *lists;
         program P { version V { void NIL(void) = 0; lists ALL(void) = 2; void ONE(void) = 1; } = 1; } = 300;",
    );
    let fingerprints = Fingerprints::new(&interface);
    let parts = fingerprints.parts(&interface.programs[0].versions[0]);
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let position = |name: &str| names.iter().position(|found| *found == name);
    assert_eq!(names.len(), 7, "{names:?}");
    assert_eq!(position("unused"), None);
    assert_eq!(names[..2], ["procedure ONE", "procedure ALL"]);
    let order = ["procedure ALL", "outer_in", "outer", "u", "list"].map(position);
    assert!(order.is_sorted() && order[0].is_some(), "{names:?}");
    assert!(position("color") < position("outer"));
    let numbers: Vec<u32> = parts.iter().map(|part| part.procedure).collect();
    assert_eq!(numbers, [1, 2, 0, 0, 0, 0, 0]);
    for part in &parts {
        if let Some(id) = interface.find_type(&part.name) {
            assert_eq!(part.fingerprint, fingerprints.of_type(id));
        }
        assert_ne!(part.fingerprint, 0, "{}", part.name);
    }
}

/// Fingerprints of the procedures of an interface, by their names.
fn of_procedures(interface: &str) -> Vec<(String, u64)> {
    let schema = schema(interface);
    let fingerprints = Fingerprints::new(&schema);
    let procedures = schema.programs[0].versions[0].procedures.iter();
    procedures
        .map(|procedure| (procedure.name.clone(), fingerprints.of_procedure(procedure)))
        .collect()
}

#[test]
fn a_procedure_has_the_text_that_the_specification_says() {
    let found = of_procedures(
        "struct t { int x; };
         program P { version V { void STOP(void) = 4; t MOVE(t to, int, int arg2) = 7; } = 1; } = 300;",
    );
    let t = used("struct(x int)");
    assert_eq!(found[0].1, fnv("4 STOP()void"));
    assert_eq!(found[1].1, fnv(&format!("7 MOVE(to {t},int,arg2 int){t}")));
}

#[test]
fn streams_and_errors_are_in_the_text_of_a_procedure_and_other_annotations_are_not() {
    let of = |annotation: &str| {
        let text = format!(
            "struct lost {{ int a; }}; struct late {{ int a; }}; \
             program P {{ version V {{ /*@ {annotation} */ int F(hyper) = 1; }} = 1; }} = 1;"
        );
        of_procedures(&text)[0].1
    };
    let lost = used("struct(a int)");
    for (annotation, behind) in [
        ("", String::new()),
        ("idempotent; deprecated \"now\"", String::new()),
        ("stream arguments", " stream(arguments)".to_owned()),
        ("stream result", " stream(result)".to_owned()),
        (
            "stream result, arguments",
            " stream(arguments,result)".to_owned(),
        ),
        ("raises lost", format!(" raises(lost {lost})")),
        (
            "raises late, lost; stream result",
            format!(" stream(result) raises(late {lost},lost {lost})"),
        ),
    ] {
        assert_eq!(
            of(annotation),
            fnv(&format!("1 F(hyper)int{behind}")),
            "{annotation}"
        );
    }
}

#[test]
fn errors_are_parts_of_a_version() {
    let schema = schema(
        "struct lost { int a; }; struct unused { int a; }; \
         program P { version V { /*@ raises lost */ int F(hyper) = 1; } = 1; } = 1;",
    );
    let parts = Fingerprints::new(&schema).parts(&schema.programs[0].versions[0]);
    let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
    assert_eq!(names, ["procedure F", "lost"]);
}

#[test]
fn a_change_concerns_the_procedures_that_use_what_is_changed() {
    let original = "struct point { int x; int y; }; struct note { string text<9>; };
        program P { version V { void MOVE(point) = 1; note SAY(note) = 2; } = 1; } = 300;";
    let before = of_procedures(original);
    let changed = of_procedures(&original.replace("int x; int y;", "int y; int x;"));
    assert_ne!(before[0], changed[0]);
    assert_eq!(before[1], changed[1]);
    let added = of_procedures(&original.replace("= 2;", "= 2; void MORE(int) = 3;"));
    assert_eq!(before, added[..2]);
}

#[test]
fn fingerprints_stay_what_they_are() {
    // Ends of different age must agree: a change of these numbers is a change of the protocol.
    let schema = schema(FINGERPRINTED);
    let fingerprints = Fingerprints::new(&schema);
    let types = ["color", "point", "record", "shape"]
        .map(|name| fingerprints.of_type(schema.find_type(name).expect(name)));
    assert_eq!(types.map(|found| format!("{found:016x}")), GOLDEN);
}

const FINGERPRINTED: &str = "
    enum color { RED = 0, GREEN = 1 };
    typedef opaque digest[6];
    typedef int row[3];
    struct point { int x; unsigned int y; };
    struct record {
        hyper id; short small; bool set; color ink; digest sum; row numbers; opaque data<16>;
        string name<>; double reals<4>; point corners[2]; point path<>; row rows<7>;
    };
    union shape switch (color ink) {
    case RED: point at;
    case GREEN: void;
    default: string note<>;
    };";

const GOLDEN: [&str; 4] = [
    "bba1b3db75eaeaae",
    "5a7c569223e015f1",
    "911c71eb097411ca",
    "0642402ae1c10b64",
];

#[test]
fn what_would_take_too_long_has_no_fingerprint() {
    let mut interface = String::new();
    for number in 0..1500 {
        let next = (number + 1) % 1500;
        interface += &format!("struct s{number} {{ s{next} *next; int x; }};\n");
    }
    assert_eq!(of_type(&interface, "s7"), 0);
    interface += "struct outer { s7 *inner; };
        program P { version V { outer GET(void) = 1; } = 1; } = 300;";
    assert_eq!(of_version(&schema(&interface)), 0);
    assert_eq!(of_type(&interface, "outer"), 0);
}

#[test]
fn typedefs_of_typedefs_nest_as_they_like() {
    let mut interface = "typedef int *t0;\n".to_owned();
    for number in 1..20_000 {
        interface += &format!("typedef t{} *t{number};\n", number - 1);
    }
    interface += "struct t { t19999 deep; };";
    let fingerprint = of_type(&interface, "t");
    assert_ne!(fingerprint, 0);
    assert_ne!(
        of_type(&interface.replace("int *t0", "hyper *t0"), "t"),
        fingerprint
    );
}
