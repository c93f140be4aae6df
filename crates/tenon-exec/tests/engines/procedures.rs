//! Procedures found by name, their arguments from JSON and their results as JSON.

use crate::support;
use crate::support::interface;
use serde_json::{Value as Json, json};
use tenon_exec::{Interface, Procedure};
use tenon_wire::{Buffer, Decoder, Encoder};

fn sample() -> Interface {
    interface(
        "struct entry { int id; entry *next; };
         program FIRST {
             version ONE { void NOTHING(void) = 0; int ADD(int, int) = 1; } = 1;
             version THREE { hyper ADD(hyper a, hyper b) = 7; entry LIST(entry) = 2; } = 3;
         } = 1000;
         program SECOND { version ONLY { void NOTHING(void) = 0; } = 9; } = 1001;",
    )
}

/// The bytes of JSON arguments.
fn arguments(procedure: Procedure<'_>, json: Option<Json>) -> Result<Vec<u8>, String> {
    let value = procedure
        .read_arguments(json.as_ref())
        .map_err(|error| error.to_string())?;
    let mut buffer = Buffer::default();
    let done = procedure.encode_arguments(&value, &mut Encoder::new(&mut buffer));
    done.map_err(|error| error.to_string())?;
    let read = procedure.decode_arguments(&mut Decoder::new(buffer.as_slice()));
    assert_eq!(read, Ok(value));
    Ok(buffer.as_slice().to_vec())
}

#[test]
fn the_highest_version_is_found_unless_one_is_asked_for() {
    let interface = sample();
    let add = interface.procedure("ADD", None).unwrap();
    assert_eq!(
        (add.program().number, add.version().number, add.number()),
        (1000, 3, 7)
    );
    let add = interface.procedure("ADD", Some(1)).unwrap();
    assert_eq!(
        (add.version().number, add.number(), add.parameters().len()),
        (1, 1, 2)
    );
}

#[test]
fn what_cannot_be_found_is_explained() {
    let interface = sample();
    let refusal = |name, version| interface.procedure(name, version).unwrap_err().to_string();
    assert_eq!(
        refusal("SUB", None),
        "no procedure is called `SUB`; the interface has: NOTHING, ADD, LIST"
    );
    assert_eq!(
        refusal("ADD", Some(2)),
        "`ADD` is not in version 2; it is in: 1, 3"
    );
    assert_eq!(
        refusal("NOTHING", None),
        "`NOTHING` is in several programs; say which: FIRST.NOTHING, SECOND.NOTHING"
    );
    let program = |name, version| {
        let found = interface.procedure(name, version);
        found.map(|procedure| procedure.program().number)
    };
    assert_eq!(program("NOTHING", Some(9)), Ok(1001));
    assert_eq!(program("FIRST.NOTHING", None), Ok(1000));
    assert!(program("SECOND.ADD", None).is_err());
}

#[test]
fn arguments_come_by_name_by_position_alone_or_not_at_all() {
    let interface = sample();
    let add = interface.procedure("ADD", None).unwrap();
    let expected = Ok([[0, 0, 0, 0, 0, 0, 0, 1], [0xff; 8]].concat());
    assert_eq!(arguments(add, Some(json!([1, -1]))), expected);
    assert_eq!(arguments(add, Some(json!({"b": -1, "a": 1}))), expected);
    assert_eq!(
        arguments(add, Some(json!([1]))).unwrap_err(),
        "$: expected 2 arguments, an array of 2 or an object with `a`, `b`, found an array of 1"
    );
    let list = interface.procedure("LIST", None).unwrap();
    let expected = Ok(vec![0, 0, 0, 5, 0, 0, 0, 0]);
    assert_eq!(arguments(list, Some(json!([{"id": 5}]))), expected);
    let nothing = interface.procedure("NOTHING", Some(1)).unwrap();
    assert_eq!(arguments(nothing, None), Ok(vec![]));
    assert_eq!(arguments(nothing, Some(Json::Null)), Ok(vec![]));
    assert_eq!(
        arguments(nothing, Some(json!(1))).unwrap_err(),
        "$: expected no arguments, found 1"
    );
}

#[test]
fn results_become_json() {
    let interface = sample();
    let list = interface.procedure("LIST", None).unwrap();
    let bytes = [0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0];
    let result = list.decode_result(&mut Decoder::new(&bytes)).unwrap();
    assert_eq!(
        list.write_result(&result),
        Ok(json!([{"id": 5}, {"id": 6}]))
    );
    let mut buffer = Buffer::default();
    list.encode_result(&result, &mut Encoder::new(&mut buffer))
        .unwrap();
    assert_eq!(buffer.as_slice(), bytes);

    let nothing = interface.procedure("NOTHING", Some(1)).unwrap();
    let result = nothing.decode_result(&mut Decoder::new(&[])).unwrap();
    assert_eq!(nothing.write_result(&result), Ok(Json::Null));
}

#[test]
fn example_arguments_show_what_is_asked_for() {
    let interface = interface(
        "enum color { RED = 2, GREEN = 3 };
         union choice switch (color ink) { case RED: void; case GREEN: opaque sum[3]; };
         union rest switch (unsigned int n) { case 0: case 1: void; default: double much; };
         union end switch (bool more) { case TRUE: node *deeper; case FALSE: void; };
         struct node { short s; end down; };
         struct entry { int id; entry *next; };
         struct tree { tree *other; tree children<>; bool leaf; };
         struct all {
             color ink; choice pick; rest left; node one; entry *list; entry first; tree top;
             string name<3>; string none<0>; opaque data<>; hyper pair[2]; int *maybe; float few<2>;
         };
         typedef int many[100]; typedef opaque big[100];
         program P { version V {
             void ALL(all) = 1; void TWO(int a, color) = 2; void MANY(many) = 3; void BIG(big) = 4;
             void FOREIGN(other) = 5; void NOTHING(void) = 6;
         } = 1; } = 1000;",
    );
    let shown = |name| {
        let procedure = interface.procedure(name, None).unwrap();
        let example = procedure.example_arguments()?;
        let json = procedure.write_arguments(&example).expect("it fits");
        assert_eq!(procedure.read_arguments(Some(&json)), Ok(example));
        arguments(procedure, Some(json.clone())).expect("it can be sent");
        Some(json.to_string())
    };
    let all = r#"{"ink":"RED","pick":{"ink":"GREEN","sum":"000000"},"left":{"n":2,"much":0.5},"#
        .to_owned()
        + r#""one":{"s":0,"down":{"more":true,"deeper":null}},"list":[{"id":0}],"first":[{"id":0}],"#
        + r#""top":{"other":null,"children":[],"leaf":false},"name":"tex","none":"","data":"0000","#
        + r#""pair":[0,0],"maybe":0,"few":[0.5]}"#;
    assert_eq!(shown("ALL"), Some(all));
    assert_eq!(shown("TWO").as_deref(), Some(r#"{"a":0,"arg2":"RED"}"#));
    assert_eq!(shown("NOTHING").as_deref(), Some("null"));
    for large in ["MANY", "BIG", "FOREIGN"] {
        assert_eq!(shown(large), None, "{large}");
    }
}

/// The only argument may be given by its name, too, unless that object is already a way to write the value.
#[test]
fn a_single_argument_may_be_given_by_name() {
    let interface = support::interface(
        "struct one { int a; };
         struct two { int a; int b; };
         struct maybe { int a; int *b; };
         union choice switch (int a) { case 0: void; default: int held; };
         typedef one *present;
         program P { version V {
             void NUMBER(int a) = 1; void UNNAMED(int) = 2; void LIST(one a<>) = 3;
             void ONE(one a) = 4; void TWO(two a) = 5; void MAYBE(maybe a) = 6; void CHOICE(choice a) = 7;
             void PRESENT(present a) = 8; void TEXT(string text<9>) = 9; void NAME(string name<9>) = 10;
             void BLOB(opaque hex<9>) = 11;
         } = 1; } = 1000;",
    );
    let read = |name: &str, json: Json| {
        let procedure = interface.procedure(name, None).unwrap();
        procedure
            .read_arguments(Some(&json))
            .map_err(|error| error.to_string())
    };
    // The name, and then the value, are the same arguments.
    for (name, by_name, value) in [
        ("NUMBER", json!({"a": 7}), json!(7)),
        ("UNNAMED", json!({"arg1": 7}), json!(7)),
        ("LIST", json!({"a": [{"a": 1}]}), json!([{"a": 1}])),
        (
            "TWO",
            json!({"a": {"a": 1, "b": 2}}),
            json!({"a": 1, "b": 2}),
        ),
        ("NAME", json!({"name": "Ada"}), json!("Ada")),
        ("NAME", json!({"name": {"hex": "ff"}}), json!({"hex": "ff"})),
    ] {
        let expected = read(name, value);
        assert!(expected.is_ok(), "{name}: {expected:?}");
        assert_eq!(read(name, by_name), expected, "{name}");
    }
    // These objects are values, and nothing else.
    for (name, value, by_name) in [
        ("ONE", json!({"a": 1}), json!({"a": {"a": 1}})),
        ("MAYBE", json!({"a": 1}), json!({"a": {"a": 1}})),
        ("CHOICE", json!({"a": 0}), json!({"a": {"a": 0}})),
        ("PRESENT", json!({"a": 1}), json!({"a": {"a": 1}})),
        (
            "TEXT",
            json!({"text": "Ada"}),
            json!({"text": {"text": "Ada"}}),
        ),
        (
            "BLOB",
            json!({"hex": "00ff"}),
            json!({"hex": {"hex": "00ff"}}),
        ),
    ] {
        assert!(read(name, value).is_ok(), "{name}");
        assert!(read(name, by_name).is_err(), "{name}");
    }
    // An error says where it is, and one of a name that is none speaks of the value.
    assert_eq!(
        read("NUMBER", json!({"a": "x"})).unwrap_err(),
        "$.a: expected an int (-2^31 to 2^31 - 1), found the string \"x\""
    );
    let wrong = read("NUMBER", json!({"b": 7})).unwrap_err();
    assert!(wrong.contains("expected an int"), "{wrong}");
}

/// Most procedures there are take little enough to be shown.
#[test]
fn examples_fit_the_interfaces_there_are() {
    let (mut shown, mut all) = (0, 0);
    for interface in support::interfaces() {
        for procedure in interface.procedures() {
            all += 1;
            let Some(example) = procedure.example_arguments() else {
                continue;
            };
            shown += 1;
            let json = procedure.write_arguments(&example).expect("it fits");
            assert_eq!(procedure.read_arguments(Some(&json)), Ok(example), "{json}");
            arguments(procedure, Some(json)).expect("it can be sent");
        }
    }
    assert!(shown * 10 > all * 9, "{shown} of {all}");
}
