//! `merge_checks`, before and after.

use crate::support::{sample, schema};
use expect_test::expect;
use tenon_plan::{Op, Pass, Plans, Representation, explain, lower, specialize};
use tenon_schema::Schema;

fn merged(schema: &Schema) -> Plans {
    let mut plans = lower(schema, Representation::XDR).expect("types that end");
    let done = specialize(schema, &mut plans, &[Pass::MergeArrays, Pass::MergeChecks]);
    assert_eq!(done, Ok(()));
    plans
}

/// Bytes of the reserved blocks of the last type.
fn blocks(definitions: &str) -> Vec<u32> {
    let schema = schema(definitions);
    let plans = merged(&schema);
    let body = plans.types.last().map(|plan| plan.body.iter());
    let bytes = body.into_iter().flatten().filter_map(|op| match op {
        Op::Reserve(block) => Some(block.bytes),
        _ => None,
    });
    bytes.collect()
}

#[test]
fn a_run_of_fixed_items_has_one_check() {
    let schema = sample();
    let text = |plans: &Plans| explain(&schema, plans, Some("record")).expect("a type");
    let before = text(&lower(&schema, Representation::XDR).expect("types that end"));
    expect![[r#"
        struct record: 76 bytes or more
            reserve 8
                put id: i64 @0
            reserve 4
                put small: i16 @0
            reserve 4
                put set: bool @0
            reserve 4
                put ink: color @0
            reserve 8
                copy sum: opaque[6] @0
            loop numbers: [3] of 4 bytes
                reserve 4
                    put it: i32 @0
            copy data: opaque<16>
            copy name: string<>
            loop reals: <4> of 8 bytes
                reserve 8
                    put it: f64 @0
            loop corners: [2] of 8 bytes
                call it: point
            loop path: <> of 8 bytes
                call it: point
            loop rows: <7> of 12 bytes
                loop it: [3] of 4 bytes
                    reserve 4
                        put it: i32 @0
    "#]]
    .assert_eq(&before);
    expect![[r#"
        struct record: 76 bytes or more
            reserve 40
                put id: i64 @0
                put small: i16 @8
                put set: bool @12
                put ink: color @16
                copy sum: opaque[6] @20
                put numbers: i32[3] @28
            copy data: opaque<16>
            copy name: string<>
            put reals: f64<4>
            loop corners: [2] of 8 bytes
                call it: point
            loop path: <> of 8 bytes
                call it: point
            loop rows: <7> of 12 bytes
                reserve 12
                    put it: i32[3] @0
    "#]]
    .assert_eq(&text(&merged(&schema)));
}

#[test]
fn checks_inside_loops_and_arms_are_merged_too() {
    let schema = schema(
        "typedef opaque sum[4];
         struct point { int x; int y; };
         union u switch (int d) { case 0: point a; default: sum b[3]; };",
    );
    let text = explain(&schema, &merged(&schema), None).expect("all of them");
    expect![[r#"
        typedef sum: 4 bytes
            reserve 4
                copy it: opaque[4] @0

        struct point: 8 bytes
            reserve 8
                put x: i32 @0
                put y: i32 @4

        union u: 12 to 16 bytes
            switch it: i32
                case 0: a
                    call it: point
                default: b
                    loop it: [3] of 4 bytes
                        reserve 4
                            copy it: opaque[4] @0
    "#]]
    .assert_eq(&text);
}

#[test]
fn eight_thousand_members_have_one_check() {
    let members: String = (0..8192).map(|at| format!("int m{at};")).collect();
    assert_eq!(blocks(&format!("struct large {{ {members} }};")), [32768]);
}

#[test]
fn a_block_is_no_larger_than_64_kib_unless_an_item_is() {
    assert_eq!(
        blocks("struct s { opaque a[65532]; int b; int c; };"),
        [65536, 4]
    );
    assert_eq!(
        blocks("struct s { int a; opaque b[65536]; int c; };"),
        [4, 65536, 4]
    );
}
