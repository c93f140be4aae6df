//! The equations that follow from plans, and what they come to.

use crate::support::schema;
use expect_test::{Expect, expect};
use tenon_plan::cost::{
    Assumed, Assumptions, Deriving, Direction, Engine, Equation, Equations, Level, Levels, Mover,
    Moves, Parameters, Symbol, Tally, Unit,
};
use tenon_plan::{Pass, Plans, Representation};
use tenon_schema::{Schema, TypeId};

const NFS: &str = include_str!("../../../../interfaces/nfs3.x");
const DEMO: &str = include_str!("../../../../interfaces/demo.x");

/// The workload of the paper.
const PAPER: &str = "
    typedef int ints<256>;
    typedef int array[256];
    struct pair { int a; int b; };
    struct structure { int a; int b; int c; int numbers<256>; pair pairs[86]; int n; string s<1024>; };
";

fn plans(schema: &Schema, representation: Representation, passes: &[Pass]) -> Plans {
    Plans::new(schema, representation, passes).expect("passes that are right")
}

/// All equations of `name`, a type or a procedure.
fn equations(schema: &Schema, plans: &Plans, engine: Engine, name: &str) -> String {
    equations_by(Moves::default(), schema, plans, engine, name)
}

/// The same with single numbers moved in some way.
fn equations_by(
    moves: Moves,
    schema: &Schema,
    plans: &Plans,
    engine: Engine,
    name: &str,
) -> String {
    let directions = Direction::ALL.map(|direction| {
        let deriving = Deriving {
            schema,
            plans,
            engine,
            direction,
            moves,
        };
        let equations = deriving.equations();
        let texts = messages(&deriving, &equations, name);
        let texts = texts.iter().map(|equation| equations.text(equation));
        format!("-- {direction}\n{}", texts.collect::<String>())
    });
    directions.concat()
}

fn messages(deriving: &Deriving<'_>, equations: &Equations, name: &str) -> Vec<Equation> {
    let types = deriving.schema.types.iter().zip((0..).map(TypeId));
    let types = types.filter(|(def, _)| def.name == name);
    let types = types.map(|(_, id)| deriving.message(id));
    let procedures = equations.procedures.iter().flatten();
    let procedures = procedures.filter(|equation| equation.owner == name);
    types.chain(procedures.cloned()).collect()
}

fn check(text: &str, passes: &[Pass], moves: Moves, name: &str, expect: Expect) {
    let schema = schema(text);
    let plans = plans(&schema, Representation::XDR, passes);
    expect.assert_eq(&equations_by(
        moves,
        &schema,
        &plans,
        Engine::Compiled,
        name,
    ));
}

#[test]
fn table_5_of_the_paper_is_derived() {
    let inline = [Pass::Inline, Pass::MergeChecks];
    let expected = [
        (
            Mover::Inline,
            Unit::Byte,
            expect![[r#"
            -- encode
            array = B + A + 256 × (c + L_b + f)
            -- decode
            array = B + A + 256 × (c + L_b + f)
        "#]],
        ),
        (
            Mover::Inline,
            Unit::Item,
            expect![[r#"
                -- encode
                array = B + A + 256 × (c + L_i + f)
                -- decode
                array = B + A + 256 × (i)
            "#]],
        ),
        (
            Mover::Procedure,
            Unit::Byte,
            expect![[r#"
            -- encode
            array = B + A + 256 × (c + L_b + p + f)
            -- decode
            array = B + A + 256 × (c + L_b + p + f)
        "#]],
        ),
        (
            Mover::Procedure,
            Unit::Item,
            expect![[r#"
            -- encode
            array = B + A + 256 × (c + L_i + p + f)
            -- decode
            array = B + A + 256 × (c + L_i + p + f)
        "#]],
        ),
    ];
    for (by, unit, expect) in expected {
        check(PAPER, &inline, Moves { by, unit }, "array", expect);
    }
    check(
        PAPER,
        Pass::ALL,
        Moves::default(),
        "array",
        expect![[r#"
        -- encode
        array = B + c + A + s(1024)
        -- decode
        array = B + c + A + s(1024)
    "#]],
    );
}

#[test]
fn the_structure_of_the_paper() {
    check(
        PAPER,
        &[],
        Moves::default(),
        "structure",
        expect![[r#"
            -- encode
            structure = B + 6 c + 6 L_i + A + 2 n + |numbers| × (c + L_i + f) + 86 × (r + pair) + b(|s|)
                pair = 2 c + 2 L_i
            -- decode
            structure = B + 6 c + 6 L_i + A + 2 n + a(4 |numbers|) + |numbers| × (c + L_i + f) + 86 × (2 s + r + pair) + a(|s|) + b(|s|) + 2 b(688)
                pair = 2 c + 2 L_i
        "#]],
    );
    check(
        PAPER,
        Pass::ALL,
        Moves::default(),
        "structure",
        expect![[r#"
            -- encode
            structure = B + 4 c + 6 L_i + A + 2 n + s(4 |numbers|) + s(688) + b(|s|)
            -- decode
            structure = B + 4 c + 6 L_i + A + 2 n + a(4 |numbers|) + s(4 |numbers|) + s(688) + a(|s|) + b(|s|) + b(688)
        "#]],
    );
}

#[test]
fn messages_of_nfs() {
    let moves = Moves::default();
    check(
        NFS,
        Pass::ALL,
        moves,
        "NFSPROC3_READ",
        expect![[r#"
            -- encode
            NFSPROC3_READ = B + READ3args
                READ3args = c + 2 L_i + nfs_fh3
                nfs_fh3 = c + L_i + n + b(|data|)
            NFSPROC3_READ = B + READ3res
                READ3res = M + u + {NFS3_OK: READ3resok | default: READ3resfail}
                READ3resok = 2 c + 3 L_i + v + n + k + post_op_attr + b(|data|)
                READ3resfail = k + post_op_attr
                post_op_attr = v + u + {TRUE: k + fattr3 | FALSE: 0}
                fattr3 = c + 17 L_i + m + 4 A
            -- decode
            NFSPROC3_READ = B + READ3args
                READ3args = c + 2 L_i + nfs_fh3
                nfs_fh3 = c + L_i + n + a(|data|) + b(|data|)
            NFSPROC3_READ = B + READ3res
                READ3res = M + u + {NFS3_OK: READ3resok | default: q + READ3resfail}
                READ3resok = 2 c + 3 L_i + v + n + k + q + post_op_attr + a(|data|) + b(|data|)
                READ3resfail = k + q + post_op_attr
                post_op_attr = v + u + {TRUE: k + q + fattr3 | FALSE: 0}
                fattr3 = c + 17 L_i + m + 4 A
        "#]],
    );
    check(
        NFS,
        Pass::ALL,
        moves,
        "NFSPROC3_READDIR",
        expect![[r#"
            -- encode
            NFSPROC3_READDIR = B + READDIR3args
                READDIR3args = c + 3 L_i + nfs_fh3
                nfs_fh3 = c + L_i + n + b(|data|)
            NFSPROC3_READDIR = B + READDIR3res
                READDIR3res = M + u + {NFS3_OK: READDIR3resok | default: READDIR3resfail}
                READDIR3resok = c + L_i + k + post_op_attr + dirlist3
                READDIR3resfail = k + post_op_attr
                post_op_attr = v + u + {TRUE: k + fattr3 | FALSE: 0}
                dirlist3 = c + L_i + v + j + |entries| × (l + entry3)
                fattr3 = c + 17 L_i + m + 4 A
                entry3 = 3 c + 3 L_i + n + b(|name|)
            -- decode
            NFSPROC3_READDIR = B + READDIR3args
                READDIR3args = c + 3 L_i + nfs_fh3
                nfs_fh3 = c + L_i + n + a(|data|) + b(|data|)
            NFSPROC3_READDIR = B + READDIR3res
                READDIR3res = M + u + {NFS3_OK: READDIR3resok | default: q + READDIR3resfail}
                READDIR3resok = c + L_i + k + q + post_op_attr + dirlist3
                READDIR3resfail = k + q + post_op_attr
                post_op_attr = v + u + {TRUE: k + q + fattr3 | FALSE: 0}
                dirlist3 = c + L_i + v + j + a(40 |entries|, doubling) + |entries| × (l + entry3)
                fattr3 = c + 17 L_i + m + 4 A
                entry3 = 3 c + 3 L_i + n + a(|name|) + b(|name|)
        "#]],
    );
    check(
        NFS,
        Pass::ALL,
        moves,
        "fattr3",
        expect![[r#"
        -- encode
        fattr3 = B + c + 17 L_i + m + 4 A
        -- decode
        fattr3 = B + c + 17 L_i + m + 4 A
    "#]],
    );
}

#[test]
fn the_demonstration() {
    let moves = Moves::default();
    check(
        DEMO,
        Pass::ALL,
        moves,
        "AVERAGE",
        expect![[r#"
            -- encode
            AVERAGE = B + c + L_i + n + s(4 |arg1|)
            AVERAGE = B + c + L_i
            -- decode
            AVERAGE = B + c + L_i + n + a(4 |arg1|) + s(4 |arg1|)
            AVERAGE = B + c + L_i
        "#]],
    );
    check(
        DEMO,
        Pass::ALL,
        moves,
        "LOOK_UP",
        expect![[r#"
            -- encode
            LOOK_UP = B + c + L_i + n + b(|arg1|)
            LOOK_UP = B + o + [LOOK_UP] × (k + entry)
                entry = m + u + {PERSON: c + L_i | MACHINE: c + L_i}
            -- decode
            LOOK_UP = B + c + L_i + n + a(|arg1|) + b(|arg1|)
            LOOK_UP = B + o + [LOOK_UP] × (k + entry)
                entry = m + u + {PERSON: c + L_i | MACHINE: c + L_i}
        "#]],
    );
}

#[test]
fn an_interpreter_finds_out_about_operations() {
    let schema = schema(NFS);
    let plans = plans(&schema, Representation::XDR, Pass::ALL);
    expect![[r#"
        -- encode
        wcc_data = B + 2 e + 2 k + pre_op_attr + post_op_attr
            pre_op_attr = e + v + u + {TRUE: 2 e + c + 5 L_i + A | FALSE: 0}
            post_op_attr = e + v + u + {TRUE: e + k + fattr3 | FALSE: 0}
            fattr3 = 14 e + c + 17 L_i + m + 4 A
        -- decode
        wcc_data = B + 2 e + 2 k + pre_op_attr + post_op_attr + a(128)
            pre_op_attr = e + v + u + {TRUE: 2 e + c + 5 L_i + A | FALSE: 0}
            post_op_attr = e + v + u + {TRUE: e + k + fattr3 | FALSE: 0}
            fattr3 = 14 e + c + 17 L_i + m + 4 A
    "#]]
    .assert_eq(&equations(&schema, &plans, Engine::Interpreter, "wcc_data"));
}

#[test]
fn an_interpreter_moves_a_message_that_is_an_array_at_once() {
    let text = "
        struct ints { int values<>; };
        struct mixed { int number; hyper far; };
        struct many { mixed all<>; };
        struct flags { bool all<>; };
        struct text { string all<>; };
        struct more { int values<>; int last; };
    ";
    let schema = schema(text);
    let names = ["ints", "many", "flags", "text", "more"];
    let plans = plans(&schema, Representation::XDR, Pass::ALL);
    let all = names.map(|name| equations(&schema, &plans, Engine::Interpreter, name));
    expect![[r#"
        -- encode
        ints = w + s(4 |values|)
        -- decode
        ints = w + a(4 |values|) + s(4 |values|)
        -- encode
        many = B + e + c + L_i + n + |all| × (2 e + 2 L_i + r)
        -- decode
        many = B + e + c + L_i + n + a(16 |all|) + |all| × (2 e + 2 L_i + r)
        -- encode
        flags = B + e + c + L_i + n + |all| × (L_i + v + f)
        -- decode
        flags = B + e + c + L_i + n + a(|all|) + |all| × (L_i + v + f)
        -- encode
        text = B + e + c + L_i + n + b(|all|)
        -- decode
        text = B + e + c + L_i + n + a(|all|) + b(|all|)
        -- encode
        more = B + 3 e + 2 c + 2 L_i + n + s(4 |values|)
        -- decode
        more = B + 3 e + 2 c + 2 L_i + n + a(4 |values|) + s(4 |values|)
    "#]]
    .assert_eq(&all.concat());
}

#[test]
fn lean_numbers_are_copied_and_not_swapped() {
    let schema = schema(PAPER);
    let plans = plans(&schema, Representation::LEAN, Pass::ALL);
    expect![[r#"
        -- encode
        structure = B + 4 c + 6 L_i + A + 2 n + b(4 |numbers|) + b(688) + b(|s|)
        -- decode
        structure = B + 4 c + 6 L_i + A + 2 n + a(4 |numbers|) + b(4 |numbers|) + b(688) + a(|s|) + b(|s|)
    "#]].assert_eq(&equations(&schema, &plans, Engine::Compiled, "structure"));
}

/// Returns the inputs to equations of compiled stubs that decode.
fn decoding<'a>(schema: &'a Schema, plans: &'a Plans) -> Deriving<'a> {
    Deriving {
        schema,
        plans,
        engine: Engine::Compiled,
        direction: Direction::Decode,
        moves: Moves::default(),
    }
}

fn tally(text: &str, representation: Representation, name: &str, assumed: &Assumptions) -> Tally {
    let schema = schema(text);
    let plans = plans(&schema, representation, Pass::ALL);
    let deriving = decoding(&schema, &plans);
    let equations = deriving.equations();
    let all = messages(&deriving, &equations, name);
    Tally::of(&equations, &all[all.len() - 1], Assumed::new(assumed))
}

#[test]
fn lengths_and_arms_are_assumed() {
    let mut assumed = Assumptions::default();
    let read = |assumed: &Assumptions| {
        let tally = tally(NFS, Representation::XDR, "NFSPROC3_READ", assumed);
        (
            tally.wire_bytes(),
            tally.allocations(),
            tally.allocated_bytes(),
        )
    };
    assert_eq!(read(&assumed), (4 + 88 + 8 + 4 + 16, 1, 16));
    assumed.lengths.push(("data".into(), 1001));
    assert_eq!(read(&assumed), (4 + 88 + 8 + 4 + 1004, 1, 1001));
    assumed.lengths.push(("READ3resok.data".into(), 0));
    assert_eq!(read(&assumed), (4 + 88 + 8 + 4, 0, 0));
    let arm = ("post_op_attr".to_owned(), "FALSE".to_owned());
    assumed.arms.push(arm);
    assert_eq!(read(&assumed), (4 + 4 + 8 + 4, 0, 0));
}

#[test]
fn a_list_is_as_long_as_assumed() {
    let assumed = Assumptions {
        length: 3,
        ..Assumptions::default()
    };
    let tally = tally(NFS, Representation::XDR, "NFSPROC3_READDIR", &assumed);
    let entry = 4 + 8 + (4 + 4) + 8;
    assert_eq!(tally.wire_bytes(), 4 + 88 + 8 + (3 * entry + 4) + 4);
    assert_eq!(tally.times(Symbol::Link), 3.0);
    let (name, part) = tally
        .parts()
        .find(|(name, _)| *name == "dirlist3.entries")
        .expect("a part");
    assert_eq!((name, part.times(Symbol::Link)), ("dirlist3.entries", 3.0));
    assert_eq!(part.allocations(), 1 + 3);
}

#[test]
fn recursive_types_end() {
    let text = "struct tree { int a; tree *left; tree *right; };
                union either switch (bool more) { case TRUE: both *b; case FALSE: int n; };
                struct both { either a[2]; either b<>; };";
    let assumed = Assumptions::default();
    for name in ["tree", "either", "both"] {
        let tally = tally(text, Representation::XDR, name, &assumed);
        assert!(
            tally.wire_bytes() < 100_000,
            "{name}: {}",
            tally.wire_bytes()
        );
        assert!(tally.times(Symbol::Level) > 1.0, "{name}");
        // Nor is a part that lies in itself more than the whole.
        for (part, of) in tally.parts() {
            let is_part = |symbol| of.times(symbol) <= tally.times(symbol);
            assert!(Symbol::ALL.into_iter().all(is_part), "{part} of {name}");
        }
    }
}

#[test]
fn what_is_used_twice_again_and_again_is_priced_once() {
    let mut text = "struct t0 { string s<>; };".to_owned();
    for level in 1..60 {
        let below = level - 1;
        text += &format!("struct t{level} {{ t{below} *a; t{below} *b; }};");
    }
    let assumed = Assumptions {
        length: 4,
        ..Assumptions::default()
    };
    let tally = tally(&text, Representation::XDR, "t59", &assumed);
    // Each of 2^59 - 1 structs but the last has two flags.
    assert_eq!(tally.wire_bytes(), (8 << 59) + 8 * ((1 << 59) - 1));
}

#[test]
fn no_length_is_too_large() {
    let text = "typedef string names<>; struct all { names a<>; all *next; hyper last; };";
    for representation in [Representation::XDR, Representation::LEAN] {
        let assumed = Assumptions {
            length: u64::MAX,
            ..Assumptions::default()
        };
        let tally = tally(text, representation, "all", &assumed);
        assert!(tally.wire_bytes() > 1 << 60);
    }
}

#[test]
fn lean_holes_are_bytes_too() {
    let text = "struct mixed { bool a; hyper b; short c; string d<>; double f<>; bool g; int h; };";
    let assumed = Assumptions {
        length: 3,
        ..Assumptions::default()
    };
    let tally = tally(text, Representation::LEAN, "mixed", &assumed);
    // d ends at 27, f's elements lie at 32.
    assert_eq!(tally.wire_bytes(), 32 + 24 + 4 + 4);
    assert!(tally.times(Symbol::Hole) > 0.0);
}

#[test]
fn what_the_interface_only_names_has_no_price() {
    let tally = tally(
        "struct s { other o; };",
        Representation::XDR,
        "s",
        &Assumptions::default(),
    );
    assert!(tally.has_unknown());
}

#[test]
fn a_price_is_a_sum_of_shares_by_level() {
    let levels = Levels {
        caches: vec![1000, 100_000],
    };
    assert_eq!(
        [400, 500, 501, 50_000, 50_001].map(|bytes| levels.of_message(bytes)),
        [0, 0, 1, 1, 2]
    );
    let assumed = |length| Assumptions {
        length,
        ..Assumptions::default()
    };
    let price = |length, of: &[(Symbol, usize, f64)]| {
        let tally = tally(
            "typedef opaque o<>;",
            Representation::XDR,
            "o",
            &assumed(length),
        );
        let of = of.iter().map(|(symbol, level, ns)| {
            let level = Level {
                symbol: *symbol,
                level: *level,
            };
            (level, *ns)
        });
        let parameters = Parameters {
            levels: levels.clone(),
            nanoseconds: of.collect(),
        };
        (
            parameters.price(&tally),
            parameters.shares(&tally)[0].symbol,
        )
    };
    let of = [
        (Symbol::Begin, 0, 7.0),
        (Symbol::CopyByte, 0, 0.1),
        (Symbol::CopyByte, 1, 0.5),
    ];
    assert_eq!(price(200, &of), (27.0, Symbol::CopyByte));
    assert_eq!(price(1000, &of), (507.0, Symbol::CopyByte));
}

#[test]
fn arrays_of_types_within_themselves_have_memory_of_their_own_sooner() {
    let text = "
        struct node { int array[100]; node *left; int tag; };
        struct flat { int array[100]; int tag; };
        typedef node nodes<>;
        typedef flat flats<>;";
    let schema = schema(text);
    let plans = plans(&schema, Representation::XDR, Pass::ALL);
    let texts_of = |name| {
        let deriving = decoding(&schema, &plans);
        let equations = deriving.equations();
        let texts = messages(&deriving, &equations, name);
        let texts = texts.iter().map(|equation| equations.text(equation));
        texts.collect::<String>()
    };
    expect![[r#"
        node = B + 2 c + L_i + A + o + s(400) + [left] × (k + a(24) + node)
            node = 2 c + L_i + A + d + o + s(400) + [left] × (k + a(24) + node)
    "#]]
    .assert_eq(&texts_of("node"));
    expect![[r#"
        flat = B + c + A + s(404)
    "#]]
    .assert_eq(&texts_of("flat"));
    expect![[r#"
        nodes = B + c + L_i + n + a(24 |nodes|) + |nodes| × (r + k + node)
            node = 2 c + L_i + A + d + o + s(400) + [left] × (k + a(24) + node)
    "#]]
    .assert_eq(&texts_of("nodes"));
    expect![[r#"
        flats = B + c + L_i + n + a(404 |flats|) + s(404 |flats|)
    "#]]
    .assert_eq(&texts_of("flats"));
}

#[test]
fn few_bytes_are_copied_in_ever_smaller_pieces() {
    let halvings = |bytes| {
        let assumptions = Assumptions {
            length: bytes,
            ..Assumptions::default()
        };
        let tally = tally(
            "typedef opaque o<>;",
            Representation::XDR,
            "o",
            &assumptions,
        );
        let of = [Symbol::Few, Symbol::Copy, Symbol::Halving];
        of.map(|symbol| tally.times(symbol))
    };
    for (bytes, expected) in [
        (128, 0.0),
        (65, 0.0),
        (64, 1.0),
        (32, 2.0),
        (16, 2.0),
        (15, 3.0),
    ] {
        assert_eq!(halvings(bytes), [1.0, 0.0, expected], "{bytes}");
    }
    assert_eq!(halvings(1), [1.0, 0.0, 6.0]);
    assert_eq!(halvings(0), [1.0, 0.0, 7.0]);
    assert_eq!(halvings(129), [0.0, 1.0, 0.0]);
}
