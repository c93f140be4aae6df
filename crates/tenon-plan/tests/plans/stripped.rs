//! Plans that are stripped of what moves nothing.

use crate::support::{sample, schema};
use expect_test::{Expect, expect};
use tenon_plan::{Pass, Plans, Representation, explain};

/// Every kind of value without bytes, alone, in arrays and among others.
const NOTHING: &str = "
typedef string text<>;
struct fieldless {};
struct numbers { int x[0]; };
struct flags { bool x[0]; };
struct pair { fieldless a; flags b; };
struct all {
    int first; fieldless a; fieldless b[9]; numbers c[9]; flags d[9]; pair e[9]; text f[0];
    fieldless g<>; numbers h<7>; flags i<>; pair j<>; pair *k; int last;
};
union choice switch (int d) { case 0: fieldless a; case 1: flags b[9]; case 2: pair c<>; };
";

fn check(name: &str, expect: Expect) {
    let schema = schema(NOTHING);
    let plans = Plans::new(&schema, Representation::XDR, Pass::ALL).expect("types that end");
    let stripped = plans.stripped();
    assert_eq!(stripped.stripped(), stripped);
    expect.assert_eq(&explain(&schema, &stripped, Some(name)).expect("a type"));
}

#[test]
fn nobody_goes_through_elements_without_bytes() {
    check(
        "all",
        expect![[r#"
        struct all: 28 bytes or more
            reserve 4
                put first: i32 @0
            reserve 0
                blit c: [9] 0 of 4 @0
            loop g: <> of 0 bytes
            loop h: <7> of 0 bytes
            loop i: <> of 0 bytes
            loop j: <> of 0 bytes
            optional k
            reserve 4
                put last: i32 @0
    "#]],
    );
}

#[test]
fn an_arm_without_bytes_does_nothing() {
    check(
        "choice",
        expect![[r#"
        union choice: 4 bytes or more
            switch it: i32
                case 0: a
                case 1: b
                case 2: c
                    loop it: <> of 0 bytes
    "#]],
    );
}

#[test]
fn what_takes_bytes_stays() {
    for representation in [Representation::XDR, Representation::LEAN] {
        let plans = Plans::new(&sample(), representation, Pass::ALL).expect("types that end");
        assert_eq!(plans.stripped(), plans);
    }
}
