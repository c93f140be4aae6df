//! What values look like as JSON, and which JSON is read.

use crate::support::{encoded, interface};
use expect_test::{Expect, expect};
use serde_json::{Value as Json, json};
use tenon_exec::{Interface, Value, json};
use tenon_schema::Type;
use tenon_wire::Decoder;

const INTERFACE: &str = "
    enum color { RED = 0, GREEN = 1, VERT = 1 };
    struct numbers {
        int i; unsigned int u; hyper h; unsigned hyper uh; short s; unsigned char c;
        float f; double d; bool b; color ink;
    };
    struct bytes { opaque sum[3]; opaque data<4>; string name<8>; };
    union choice switch (color ink) {
    case RED: int depth;
    case GREEN: void;
    };
    union same switch (unsigned int it) { case 1: string it<>; default: void; };
    union by_bool switch (bool yes) { case TRUE: hyper when; case FALSE: void; };
    struct entry { int id; entry *next; };
    typedef int *maybe;
    typedef maybe *maybe_maybe;
    struct nested { maybe one; maybe_maybe two; entry *list; choice arms<2>; };
    typedef float single;
    typedef double real;
    typedef quadruple wide;
    typedef hyper big;
    typedef string name<>;";

fn ty(interface: &Interface, name: &str) -> Type {
    Type::Named(
        interface
            .schema()
            .find_type(name)
            .expect("a type of this name"),
    )
}

fn read(name: &str, json: &Json) -> Result<Value, String> {
    let interface = interface(INTERFACE);
    let value = json::read(interface.schema(), &ty(&interface, name), json);
    value.map_err(|error| error.to_string())
}

fn write(name: &str, value: &Value) -> Json {
    let interface = interface(INTERFACE);
    json::write(interface.schema(), &ty(&interface, name), value).expect("a value of this type")
}

/// JSON that is read, sent, received and written as `expect`.
fn check(name: &str, json: Json, expect: Expect) {
    let interface = interface(INTERFACE);
    let id = interface
        .schema()
        .find_type(name)
        .expect("a type of this name");
    let value = read(name, &json).expect("a value of this type");
    let bytes = encoded(&interface, id, &value);
    let received = interface
        .decode(id, &mut Decoder::new(&bytes))
        .expect("what was sent");
    let written = write(name, &received);
    assert_eq!(read(name, &written), Ok(value));
    expect.assert_eq(&format!("{written:#}"));
}

#[test]
fn numbers() {
    check(
        "numbers",
        json!({
            "i": -5, "u": "0xffffffff", "h": i64::MIN, "uh": u64::MAX, "s": "-7", "c": 255,
            "f": 0.1, "d": 1e300, "b": true, "ink": "VERT",
        }),
        expect![[r#"
            {
              "i": -5,
              "u": 4294967295,
              "h": -9223372036854775808,
              "uh": 18446744073709551615,
              "s": -7,
              "c": 255,
              "f": 0.1,
              "d": 1e+300,
              "b": true,
              "ink": "GREEN"
            }"#]],
    );
}

#[test]
fn bytes_and_text() {
    let hexadecimal = json!({"sum": "00fF10", "data": "", "name": "\u{e9}\u{0}"});
    check(
        "bytes",
        hexadecimal,
        expect![[r#"
        {
          "sum": "00ff10",
          "data": "",
          "name": "é\u0000"
        }"#]],
    );
    let others = json!({
        "sum": {"base64": "AQID"}, "data": {"text": "(x)"}, "name": {"hex": "ff00"},
    });
    check(
        "bytes",
        others,
        expect![[r#"
        {
          "sum": "010203",
          "data": "287829",
          "name": {
            "hex": "ff00"
          }
        }"#]],
    );
}

#[test]
fn base64_is_read_as_rfc_4648_has_it() {
    let read = |text: &str| read("name", &json!({ "base64": text }));
    let text = |text: &str| Ok(Value::String(text.into()));
    assert_eq!(read("Zm9vYmFy"), text("foobar"));
    assert_eq!(read("Zm9vYmE="), text("fooba"));
    assert_eq!(read("Zm9vYg=="), text("foob"));
    assert_eq!(read("Zm9vYg"), text("foob"));
    for wrong in ["Zm9vY", "Zm9vYh==", "Zm9v====", "Zm9v!", "Zm9=", "Z=m9"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn unions_optionals_and_lists() {
    check(
        "nested",
        json!({
            "one": 1, "two": [null], "list": [{"id": 1}, {"id": 2}],
            "arms": [{"ink": "RED", "depth": 3}, {"ink": 1}],
        }),
        expect![[r#"
            {
              "one": 1,
              "two": [
                null
              ],
              "list": [
                {
                  "id": 1
                },
                {
                  "id": 2
                }
              ],
              "arms": [
                {
                  "ink": "RED",
                  "depth": 3
                },
                {
                  "ink": "GREEN"
                }
              ]
            }"#]],
    );
    check(
        "nested",
        json!({"two": null, "list": null, "arms": []}),
        expect![[r#"
            {
              "one": null,
              "two": null,
              "list": [],
              "arms": []
            }"#]],
    );
    check(
        "same",
        json!({"it": 1, "it_": "x"}),
        expect![[r#"
        {
          "it": 1,
          "it_": "x"
        }"#]],
    );
    check(
        "same",
        json!({"it": 4294967295_u32}),
        expect![[r#"
        {
          "it": 4294967295
        }"#]],
    );
    check(
        "by_bool",
        json!({"yes": true, "when": "9"}),
        expect![[r#"
        {
          "yes": true,
          "when": 9
        }"#]],
    );
}

#[test]
fn numbers_that_json_has_no_digits_for() {
    let single = |bits| write("single", &Value::Float(f32::from_bits(bits)));
    assert_eq!(single(0x7fc0_0000), json!("NaN"));
    assert_eq!(single(0x7f80_0000), json!("Infinity"));
    assert_eq!(single(0xff80_0000), json!("-Infinity"));
    assert_eq!(single(0x7fc0_0001), json!({"hex": "7fc00001"}));
    assert_eq!(single(0x8000_0000).to_string(), "-0.0");
    let real = |json| read("real", &json);
    assert_eq!(
        real(json!("-Infinity")),
        Ok(Value::Double(f64::NEG_INFINITY))
    );
    let nan = f64::from_bits(0xfff0_0000_0000_0001);
    assert_eq!(
        real(json!({"hex": "fff0000000000001"})),
        Ok(Value::Double(nan))
    );
    assert_eq!(real(json!("2.5")), Ok(Value::Double(2.5)));
    assert!(real(serde_json::from_str("1e999").unwrap()).is_err());
    let wide = json!("3fff0000000000000000000000000000");
    assert_eq!(write("wide", &read("wide", &wide).unwrap()), wide);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let refusal = |name, json: Json| read(name, &json).unwrap_err();
    let nested = |arm: Json| json!({"two": null, "list": null, "arms": [{"ink": 1}, arm]});
    let messages = [
        refusal("big", json!(1.5)),
        refusal("big", json!("9223372036854775808")),
        refusal("big", json!("+1")),
        refusal("big", json!("-0x+1")),
        refusal("single", json!("one")),
        refusal("nested", nested(json!({"ink": "BLUE"}))),
        refusal("nested", nested(json!({"ink": "RED"}))),
        refusal("nested", nested(json!({"ink": "RED", "depth": null}))),
        refusal("nested", nested(json!({"ink": "GREEN", "depth": 1}))),
        refusal(
            "nested",
            json!({"two": null, "list": [{"id": 1, "next": null}], "arms": []}),
        ),
        refusal("nested", json!({"two": 1, "list": [], "arms": []})),
        refusal(
            "nested",
            json!({"list": [], "arms": [{"ink": 1}, {"ink": 1}, {"ink": 1}]}),
        ),
        refusal("nested", json!([])),
        refusal("nested", json!({"list": []})),
        refusal("bytes", json!({"sum": "0001", "data": "", "name": ""})),
        refusal("bytes", json!({"sum": "xyz", "data": "", "name": ""})),
        refusal(
            "bytes",
            json!({"sum": "000102", "data": {"hexa": ""}, "name": ""}),
        ),
        refusal(
            "bytes",
            json!({"sum": "000102", "data": "", "name": "nine char"}),
        ),
        refusal("name", json!({"hex": "0"})),
        refusal("name", json!({"base64": "Zm9vY"})),
        refusal("by_bool", json!({"yes": 1})),
        refusal("by_bool", json!({"when": 9})),
        refusal("same", json!({"it": -1})),
        refusal("entry", json!([])),
    ];
    expect![[r#"
        $: expected a hyper (-2^63 to 2^63 - 1), found 1.5
        $: expected a hyper (-2^63 to 2^63 - 1), found the string "9223372036854775808"
        $: expected a hyper (-2^63 to 2^63 - 1), found the string "+1"
        $: expected a hyper (-2^63 to 2^63 - 1), found the string "-0x+1"
        $: expected a float, found the string "one"
        $.arms[1].ink: expected one of RED, GREEN, VERT, found the string "BLUE"
        $.arms[1].depth: this field is missing
        $.arms[1].depth: expected an int (-2^31 to 2^31 - 1), found null
        $.arms[1].depth: there is no such field here; there are: ink
        $.list[0].next: there is no such field here; there are: id
        $.two: expected null or an array of one, found 1
        $.arms: expected at most 2 elements, found 3
        $: expected an object (nested), found an array of 0
        $.arms: this field is missing
        $.sum: expected exactly 3 bytes, found 2
        $.sum: expected bytes: a string of hexadecimal digits, {"hex": ..}, {"base64": ..} or {"text": ..}, found the string "xyz"
        $.data: expected bytes: a string of hexadecimal digits, {"hex": ..}, {"base64": ..} or {"text": ..}, found an object with `hexa`
        $.name: expected at most 8 bytes, found 9
        $: expected pairs of hexadecimal digits, found the string "0"
        $: expected base64, found the string "Zm9vY"
        $.yes: expected true or false, found 1
        $.yes: this field is missing
        $.it: expected an unsigned int (0 to 2^32 - 1), found -1
        $: expected at least one element, found an array of 0"#]].assert_eq(&messages.join("\n"));
}

/// `serde_json` alone would keep the last of the two.
#[test]
fn a_member_that_is_given_twice_is_refused() {
    let refusal = |text: &str| {
        let error = json::parse(text).expect_err(text);
        assert!(error.is_data(), "{error}");
        error.to_string()
    };
    let messages = [
        refusal(r#"{"id": 1, "id": 1}"#),
        refusal(r#"{"id": 1, "\u0069d": 2}"#),
        refusal(r#"[0, {"list": [{"id": 1}, {"id": 2, "id": 3}]}]"#),
        refusal("{\n  \"ink\": \"RED\",\n  \"depth\": 3,\n  \"depth\": 4\n}"),
        refusal(r#"{"": {}, "a": null, "": {}}"#),
    ];
    expect![[r#"
        $.id is given twice at line 1 column 14
        $.id is given twice at line 1 column 19
        $[1].list[1].id is given twice at line 1 column 39
        $.depth is given twice at line 4 column 9
        $. is given twice at line 1 column 22"#]]
    .assert_eq(&messages.join("\n"));
}

#[test]
fn all_other_text_is_parsed_as_serde_json_does() {
    for text in [
        r#"{"id": 1, "list": [{"id": 1}, {"id": 1}], "Id": {"id": -2.50e3}}"#,
        "18446744073709551616",
        "[1e999, -0, 0.10, \"\\ud83d\\ude00\", true, false, null]",
        "\u{feff}1",
        "{\"id\": 1, \"name\"",
        "[1, 2] 3",
        "[1,]",
        "{\"id\": 1,}",
        "01",
        "1.",
        "nul",
        "\"\\ud800\"",
        "\"\n\"",
        "",
        " ",
    ] {
        let ours = json::parse(text).map_err(|error| error.to_string());
        let theirs = serde_json::from_str::<Json>(text).map_err(|error| error.to_string());
        assert_eq!(ours, theirs, "{text}");
    }
    let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
    assert!(json::parse(&deep(127)).is_ok());
    let too_deep = json::parse(&deep(128)).expect_err("deeper than serde_json goes");
    assert!(!too_deep.is_data(), "{too_deep}");
}
