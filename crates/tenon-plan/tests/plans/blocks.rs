//! Reports of where blocks are broken and why, and of the order of the fields that mends it.

use crate::support::schema;
use expect_test::{Expect, expect};
use tenon_plan::{ExplainError, Pass, Representation, explain_passes};

/// Returns the report about the blocks of `name` in XDR.
fn check(definitions: &str, name: &str, expect: Expect) {
    check_in(Representation::XDR, definitions, name, expect);
}

/// Returns the report about them in any representation.
fn check_in(representation: Representation, definitions: &str, name: &str, expect: Expect) {
    let text = explain_passes(&schema(definitions), representation, Pass::ALL, Some(name))
        .expect("a type");
    let blocks = text
        .split("\n\n")
        .find(|part| part.starts_with("== blocks"));
    expect.assert_eq(blocks.unwrap_or_default());
}

#[test]
fn each_pass_is_shown_and_those_that_change_nothing_are_named() {
    let schema = schema("struct point { int x; int y; };");
    let text =
        explain_passes(&schema, Representation::XDR, Pass::ALL, Some("point")).expect("a type");
    expect![[r#"
        == as lowered
        struct point: 8 bytes
            reserve 4
                put x: i32 @0
            reserve 4
                put y: i32 @0

        == fold_aligns changes nothing

        == merge_arrays changes nothing

        == after merge_blocks
        struct point: 8 bytes
            reserve 8
                blit it: 2 of 4 @0

        == inline changes nothing

        == merge_checks changes nothing

        == hoist_checks changes nothing

        == blocks of point
            x to y: a block of 2 x 4 bytes
    "#]]
    .assert_eq(&text);
    let unknown = explain_passes(&schema, Representation::XDR, Pass::ALL, Some("line"));
    assert!(matches!(unknown, Err(ExplainError::UnknownName(_))));
}

#[test]
fn items_of_one_width_are_one_block_through_structs_and_arrays() {
    check(
        "struct point { float x; float y; float z; };
         struct mesh { int id; point corners[4]; unsigned int more[2]; point free<>; };",
        "mesh",
        expect![[r#"
            == blocks of mesh
                id to more: a block of 15 x 4 bytes
                free: no block, a variable part: an array, as a block of its own of 4-byte items
        "#]],
    );
}

#[test]
fn holes_in_memory_and_another_width_break_a_block() {
    check(
        "struct s { int a; hyper b; int c; hyper d; int e; int f; double g; };",
        "s",
        expect![[r#"
            == blocks of s
                a: a block of 1 x 4 bytes
                b: a block of 1 x 8 bytes; broken off by a hole of 4 bytes in memory before it
                c: a block of 1 x 4 bytes; broken off by an order, for what precedes is swapped by 8 bytes
                d: a block of 1 x 8 bytes; broken off by a hole of 4 bytes in memory before it
                e to f: a block of 2 x 4 bytes; broken off by an order, for what precedes is swapped by 8 bytes
                g: a block of 1 x 8 bytes; broken off by an order, for what precedes is swapped by 4 bytes
                moved at once, without a hole, if a new version had the order: b, d, g, a, c, e, f
        "#]],
    );
}

#[test]
fn in_lean_another_width_breaks_a_block_for_a_peer_of_the_other_order() {
    // Between equals it is one block: `blit it: 1 of 8, 2 of 4`.
    check_in(
        Representation::LEAN,
        "struct s { hyper a; int b; int c; };",
        "s",
        expect![[r#"
            == blocks of s
                a: a block of 1 x 8 bytes
                b to c: a block of 2 x 4 bytes; broken off for a peer of the other order only, for which what precedes is swapped by 8 bytes
                all of it is moved at once for all that, as it has no hole
        "#]],
    );
    check_in(
        Representation::LEAN,
        "struct s { opaque key[8]; int a; hyper b; short c; bool d; short e; int f; hyper g<>; };",
        "s",
        expect![[r#"
            == blocks of s
                key: a block of 8 bytes
                a: a block of 1 x 4 bytes; broken off for a peer of the other order only, for which what precedes is not swapped
                b: a block of 1 x 8 bytes; broken off by a hole of 4 bytes in memory before it
                c: a block of 1 x 2 bytes; broken off for a peer of the other order only, for which what precedes is swapped by 8 bytes
                d: no block, its values are looked at one by one
                e: a block of 1 x 2 bytes
                f: a block of 1 x 4 bytes; broken off by a hole of 2 bytes in memory before it
                g: no block, a variable part: an array, as a block of its own of 8-byte items
                6 pieces, not 8, for a peer of the other order if a new version had the order: b, a, f, c, e, key, d, g
        "#]],
    );
}

#[test]
fn a_hole_behind_a_struct_breaks_a_block() {
    check(
        "struct pair { hyper a; int b; }; struct s { pair one; int more; };",
        "s",
        expect![[r#"
            == blocks of s
                one.a: a block of 1 x 8 bytes
                one.b: a block of 1 x 4 bytes; broken off by an order, for what precedes is swapped by 8 bytes
                more: a block of 1 x 4 bytes; broken off by a hole of 4 bytes in memory before it
                behind it a hole of 4 bytes in memory: no block with its like
        "#]],
    );
}

#[test]
fn an_order_without_a_hole_is_shown_though_it_has_as_many_pieces() {
    check(
        "struct s { opaque k[4]; hyper b; int a; };",
        "s",
        expect![[r#"
            == blocks of s
                k: a block of 4 bytes
                b: a block of 1 x 8 bytes; broken off by a hole of 4 bytes in memory before it
                a: a block of 1 x 4 bytes; broken off by an order, for what precedes is swapped by 8 bytes
                behind it a hole of 4 bytes in memory: no block with its like
                moved at once, without a hole, if a new version had the order: b, a, k
        "#]],
    );
    check(
        "struct s { hyper b; int a; opaque k[4]; };",
        "s",
        expect![[r#"
            == blocks of s
                b: a block of 1 x 8 bytes
                a: a block of 1 x 4 bytes; broken off by an order, for what precedes is swapped by 8 bytes
                k: a block of 4 bytes; broken off by an order, for what precedes is swapped by 4 bytes
                all of it is moved at once for all that, as it has no hole
        "#]],
    );
}

#[test]
fn large_arrays_and_arrays_of_unions_are_in_no_block() {
    check(
        "union u switch (int d) { case 0: void; };
         typedef hyper large[513];
         struct s { int a; int b[1025]; large c; int d[1024]; u e[2]; opaque f[4096]; opaque g[4100]; };",
        "s",
        expect![[r#"
            == blocks of s
                a: a block of 1 x 4 bytes
                b: no block, an array of more than 4096 bytes, as a block of its own of 4-byte items
                c: no block, an array of more than 4096 bytes, as a block of its own of 8-byte items
                d: a block of 1024 x 4 bytes
                e: no block, a variable part: unions
                f: a block of 4096 bytes
                g: no block, an array of more than 4096 bytes, as a block of its own of 1-byte items
                6 pieces, not 7, if a new version had the order: a, d, f, b, c, g, e
        "#]],
    );
    check(
        "typedef int large[2000];",
        "large",
        expect![[r#"
        == blocks of large
            it: a block of 2000 x 4 bytes
    "#]],
    );
}

/// Whatever fields there are, a version that has the order that is shown has what is promised of it.
#[test]
fn orders_that_are_shown_keep_their_promise() {
    let parts = [
        "int", "hyper", "opaque 4", "bool", "short", "behind", "inside", "both", "string",
        "hyper 2", "union", "both 3",
    ];
    let declare = |part: &str, name: char| match part.split_once(' ') {
        Some((ty, count)) => format!("{ty} {name}[{count}];"),
        None if part == "string" => format!("string {name}<>;"),
        None if part == "union" => format!("choice {name};"),
        None => format!("{part} {name};"),
    };
    let said = |representation, fields: &[String]| {
        let text = format!(
            "struct behind {{ hyper a; int b; }}; struct inside {{ int a; hyper b; }};
             struct both {{ hyper a; int b; float c; }};
             union choice switch (int d) {{ case 0: void; }}; struct s {{ {} }};",
            fields.concat()
        );
        let text = explain_passes(&schema(&text), representation, Pass::ALL, Some("s"));
        let text = text.expect("a type");
        let (_, blocks) = text.split_once("== blocks of s\n").expect("blocks");
        blocks.to_owned()
    };
    let is_piece = |line: &&str| line.contains(": a block") || line.contains(": no block, ");
    let pieces = |said: &str| said.lines().filter(is_piece).count();
    let mut promises = 0;
    for (number, representation) in (0..12_usize.pow(4)).step_by(17).flat_map(|number| {
        [Representation::XDR, Representation::LEAN].map(|representation| (number, representation))
    }) {
        let digits = [1, 12, 144, 1728].map(|digit| number / digit % 12);
        let fields = digits.iter().zip("wxyz".chars());
        let fields: Vec<_> = fields
            .map(|(part, name)| declare(parts[*part], name))
            .collect();
        let before = said(representation, &fields);
        let Some((promise, order)) = before.split_once(" if a new version had the order: ") else {
            continue;
        };
        let ordered = order.trim_end().split(", ").map(|name| {
            let position = "wxyz".find(name).expect("a field");
            fields[position].clone()
        });
        let after = said(representation, &ordered.collect::<Vec<_>>());
        let promise = promise.lines().last().expect("a line").trim();
        match promise.split_once(" pieces, not ") {
            Some((count, _)) => assert_eq!(Ok(pieces(&after)), count.parse(), "{before}{after}"),
            None => assert!(
                after.contains("it has no hole") || pieces(&after) == 1,
                "{before}{after}"
            ),
        }
        promises += 1;
    }
    assert!(promises > 300, "{promises}");
}

#[test]
fn what_the_wire_widens_pads_or_restricts_is_in_no_block() {
    check(
        "enum color { RED = 0 };
         struct s { short a; char b; bool c; color d; opaque e[5]; opaque f[8]; quadruple g; };",
        "s",
        expect![[r#"
            == blocks of s
                a: no block, a hole: 2 bytes of memory are 4 on the wire
                b: no block, a hole: 1 byte of memory is 4 on the wire
                c: no block, its values are looked at one by one
                d: no block, its values are looked at one by one
                e: no block, a hole: the wire pads it by 3
                f to g: a block of 24 bytes
        "#]],
    );
}

#[test]
fn variable_parts_break_a_block_and_are_better_last() {
    check(
        "struct pair { int a; hyper b; };
         union u switch (int d) { case 0: void; };
         struct s {
             int a; string b<>; int c; hyper d<>; int e; pair f[2]; int g; pair *h; int i; u j;
             int k; opaque l<>; pair m<>;
         };",
        "s",
        expect![[r#"
            == blocks of s
                a: a block of 1 x 4 bytes
                b: no block, a variable part: a string, as a block of its own
                c: a block of 1 x 4 bytes
                d: no block, a variable part: an array, as a block of its own of 8-byte items
                e: a block of 1 x 4 bytes
                f: no block, one is broken inside of pair
                g: a block of 1 x 4 bytes
                h: no block, a variable part: optional data
                i: a block of 1 x 4 bytes
                j: no block, a variable part: a union
                k: a block of 1 x 4 bytes
                l: no block, a variable part: opaque bytes, as a block of its own
                m: no block, a variable part: an array
                8 pieces, not 13, if a new version had the order: a, c, e, g, i, k, f, b, d, h, j, l, m
        "#]],
    );
}

#[test]
fn a_long_record_is_told_the_rule_and_not_every_name() {
    let fields: String = (0..20)
        .map(|at| format!("int i{at}; hyper h{at}; "))
        .collect();
    let definitions = format!("struct s {{ {fields} }};");
    let text = explain_passes(
        &schema(&definitions),
        Representation::XDR,
        Pass::ALL,
        Some("s"),
    )
    .expect("a type");
    assert!(text.ends_with(
        "    moved at once, without a hole, if a new version had the order: \
         of 8 bytes, of 4, opaque, of other fixed size, varying\n"
    ));
}

#[test]
fn enums_and_unions_have_nothing_to_say_and_arguments_have() {
    check("enum color { RED = 0 };", "color", expect![[r#""#]]);
    check(
        "union u switch (int d) { case 0: int a; };",
        "u",
        expect![[r#""#]],
    );
    check(
        "program P { version V { int ADD(int, hyper) = 1; } = 1; } = 0x20000001;",
        "ADD",
        expect![[r#"
            == blocks of the arguments of ADD
                arg1: a block of 1 x 4 bytes
                arg2: a block of 1 x 8 bytes; broken off by a hole of 4 bytes in memory before it
        "#]],
    );
}
