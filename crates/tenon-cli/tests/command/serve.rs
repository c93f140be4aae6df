//! `tenon serve`, called by `tenon call` and stopped by a signal.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common;
use crate::common::tenon;

/// An interface with typed errors.
const KEYS: &str = "crates/tenon-gen/tests/corpus/raises.x";
const DEMO: &str = "interfaces/demo.x";

/// A running `tenon serve`.
struct MockServer {
    child: Child,
    address: String,
}

impl MockServer {
    fn start(arguments: &[&str]) -> Self {
        // Who runs these tests in the background may have Ctrl-C ignored, which is handed down.
        let mut child = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tenon"), "serve"])
            .args(arguments)
            .current_dir(common::root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let output = child.stdout.take().expect("stdout is a pipe");
        let mut lines = BufReader::new(output).lines();
        let address = lines.next().expect("an address is printed");
        Self {
            child,
            address: address.expect("the address is UTF-8"),
        }
    }

    /// Calls by both protocols, which get the same result.
    fn call(&self, file: &str, procedure: &str, arguments: &str) -> String {
        let lean = format!("lean+{}", self.address);
        let both = [&self.address, &lean]
            .map(|address| tenon(&["call", "--compact", address, file, procedure, arguments]).ok());
        assert_eq!(both[0], both[1]);
        both[0].trim_end().to_owned()
    }

    /// Calls by the lean protocol what has no result.
    fn fails(&self, file: &str, procedure: &str, arguments: &str) -> String {
        let lean = format!("lean+{}", self.address);
        tenon(&["call", &lean, file, procedure, arguments]).fails_with(1)
    }

    /// Ends it as Ctrl-C does, and returns what it said of the calls.
    fn interrupt(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it is ours");
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("stderr is a pipe");
        stderr.read_to_string(&mut said).expect("it is text");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        said
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        // Of a test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the file can be written");
    path.display().to_string()
}

#[test]
fn an_interface_alone_answers_with_examples() {
    let server = MockServer::start(&[DEMO]);
    assert_eq!(server.call(DEMO, "SAY_HELLO", r#""Ada""#), r#""text""#);
    assert_eq!(server.call(DEMO, "AVERAGE", "[1]"), "0.5");
    assert_eq!(server.call(DEMO, "COUNT_TO", "3"), "[0]");
    let said = server.interrupt();
    assert_eq!(said.lines().count(), 6, "{said}");
    assert!(said.contains("SAY_HELLO \"Ada\" -> \"text\"\n"), "{said}");
}

#[test]
fn a_file_answers_by_procedure_and_arguments() {
    let answers = r#"{
        "KEYS_GET": [
            {"arguments": "nothing", "raise": {"no_such_key": {"key": "nothing"}}},
            {"arguments": "held", "raise": {"conflict": {"version": 1099511627776, "holder": "me"}}},
            {"arguments": "slow", "delay": "300ms", "result": "at last"},
            {"arguments": "broken", "fail": "the disk"},
            {"result": "any other"}
        ],
        "KEYS_V1.KEYS_CLOSE": {"delay": "1ms"},
        "KEYS.KEYS_FIND": {"arguments": "here", "result": {"x": 7, "y": -7}}
    }"#;
    let answers = file("answers.json", answers);
    let server = MockServer::start(&[KEYS, "--answers", &answers]);
    assert_eq!(server.call(KEYS, "KEYS_GET", r#""a""#), r#""any other""#);
    assert_eq!(server.call(KEYS, "KEYS_GET", r#""slow""#), r#""at last""#);
    assert_eq!(
        server.call(KEYS, "KEYS_FIND", r#""here""#),
        r#"{"x":7,"y":-7}"#
    );
    assert_eq!(server.call(KEYS, "KEYS_CLOSE", "null"), "null");
    let held = server.fails(KEYS, "KEYS_GET", r#""held""#);
    let expected = r#"the procedure raised {"conflict":{"version":1099511627776,"holder":"me"}}"#;
    assert!(held.contains(expected), "{held}");
    let nothing = server.fails(KEYS, "KEYS_GET", r#""nothing""#);
    assert!(
        nothing.contains(r#"{"no_such_key":{"key":"nothing"}}"#),
        "{nothing}"
    );
    // Why it failed stays at the server.
    let broken = server.fails(KEYS, "KEYS_GET", r#""broken""#);
    assert!(
        broken.contains("the service failed") && !broken.contains("disk"),
        "{broken}"
    );
    let other = server.fails(KEYS, "KEYS_FIND", r#""there""#);
    assert!(
        other.contains("there is no answer for these arguments"),
        "{other}"
    );
    let none = server.fails(KEYS, "KEYS_COUNT", "null");
    assert!(none.contains("does not have the procedure"), "{none}");
    let said = server.interrupt();
    for line in [
        r#"KEYS_GET "held" -> raises conflict"#,
        r#"KEYS_GET "broken" -> fails: the disk"#,
        "KEYS_COUNT -> no such procedure: it has no answer",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_script_answers_line_by_line() {
    // It says what it was asked, and ends when it is asked for nothing.
    let script = r#"while read -r line; do
        case $line in
            *'"procedure":"KEYS_COUNT"'*) echo '{"result": 7}' ;;
            *'"arguments":"nothing"'*) echo '{"raise": {"closed": "CLOSED_FOR_NOW"}}' ;;
            *'"arguments":"nonsense"'*) echo 'what?' ;;
            *'"arguments":"misfit"'*) echo '{"result": 7}' ;;
            *'"arguments":"end"'*) exit ;;
            *) echo '{"result": "as you like"}' ;;
        esac
    done"#;
    let server = MockServer::start(&[KEYS, "--script", script, "--quiet"]);
    assert_eq!(server.call(KEYS, "KEYS_COUNT", "null"), "7");
    assert_eq!(server.call(KEYS, "KEYS_GET", r#""a""#), r#""as you like""#);
    let raised = server.fails(KEYS, "KEYS_GET", r#""nothing""#);
    assert!(
        raised.contains(r#"raised {"closed":"CLOSED_FOR_NOW"}"#),
        "{raised}"
    );
    for arguments in [r#""nonsense""#, r#""misfit""#, r#""end""#, r#""a""#] {
        let failed = server.fails(KEYS, "KEYS_GET", arguments);
        assert!(failed.contains("the service failed"), "{failed}");
    }
    // Calls are not shown, and what is wrong with the script is.
    let said = server.interrupt();
    let expected = [
        "tenon: the script answered what is not JSON: expected value at line 1 column 1: what?",
        r#"tenon: the script answered {"result": 7}: `result` does not fit: $: expected text"#,
        "tenon: the script has ended",
        "tenon: the script has ended",
    ];
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{said}");
    }
}

#[test]
fn answers_that_do_not_fit_the_interface_are_told_before_it_serves() {
    for (answers, problem) in [
        ("[]", "is no object of JSON"),
        ("{", "is not JSON"),
        (
            r#"{"GET": {"result": "a"}}"#,
            "no procedure is called `GET`; there are: KEYS_GET,",
        ),
        (
            r#"{"KEYS_GET": "a"}"#,
            "KEYS_GET: write an answer as {\"result\": ...}",
        ),
        (
            r#"{"KEYS_GET": ["a"]}"#,
            "KEYS_GET: answer 1: an answer is an object",
        ),
        (
            r#"{"KEYS_GET": {}}"#,
            "KEYS_GET: it lacks a `result`, `raise`, `fail` or `invalid`",
        ),
        (
            r#"{"KEYS_GET": {"reslt": "a"}}"#,
            "an answer has no member `reslt`; there are: result,",
        ),
        (
            r#"{"KEYS_GET": {"result": 7}}"#,
            "KEYS_GET: `result` does not fit: $: expected",
        ),
        (
            r#"{"KEYS_CLOSE": {"result": 7}}"#,
            "expected null, as there is no result",
        ),
        (
            r#"{"KEYS_GET": {"result": "a", "fail": "b"}}"#,
            "exclude each other",
        ),
        (
            r#"{"KEYS_GET": {"fail": 7}}"#,
            "`fail` is a text that says why",
        ),
        (
            r#"{"KEYS_GET": {"delay": 7, "result": "a"}}"#,
            "write a `delay` as \"200ms\"",
        ),
        (
            r#"{"KEYS_GET": {"delay": "7 years", "result": "a"}}"#,
            "is not a unit",
        ),
        (
            r#"{"KEYS_GET": {"arguments": 7, "result": "a"}}"#,
            "`arguments` do not fit",
        ),
        (
            r#"{"KEYS_FIND": {"raise": {"closed": "CLOSED_FOR_NOW"}}}"#,
            "write `raise` as {\"no_such_key\": ...}; KEYS_FIND raises: no_such_key",
        ),
        (
            r#"{"KEYS_COUNT": {"raise": {"closed": "CLOSED_FOR_NOW"}}}"#,
            "KEYS_COUNT raises nothing in the interface",
        ),
        (
            r#"{"KEYS_GET": {"raise": {"closed": "SHUT"}}}"#,
            "KEYS_GET: `raise` does not fit",
        ),
    ] {
        let name = file("misfit.json", answers);
        let stderr = tenon(&["serve", KEYS, "--answers", &name]).fails_with(1);
        assert!(stderr.contains(problem), "{answers}: {stderr}");
    }
    let missing = tenon(&["serve", KEYS, "--answers", "/nowhere"]).fails_with(1);
    assert!(missing.contains("cannot read /nowhere"), "{missing}");
    let address = tenon(&["serve", KEYS, "--listen", "tcp:/here"]).fails_with(2);
    assert!(address.contains("tcp:/here"), "{address}");
    let types = file("types.x", "struct a { int b; };");
    let types = tenon(&["serve", &types]).fails_with(1);
    assert!(types.contains("no program to serve"), "{types}");
}

const NUMBERS: &str = r#"
    struct odd { int number; };
    program NUMBERS {
        version NUMBERS_V1 {
            int SUM(int start, int number) = 1; /*@ stream arguments */
            int COUNT(int to) = 2; /*@ stream result; raises odd */
            hyper DOUBLE(int number) = 3; /*@ stream arguments, result */
        } = 1;
    } = 0x20000001;
"#;

/// Calls a procedure with streams, and returns what was printed and the error.
fn stream(server: &MockServer, file: &str, procedure: &str, input: &str) -> (String, String) {
    let lean = format!("lean+{}", server.address);
    let items = self::file(&format!("{procedure}.items"), input);
    let arguments = match procedure {
        "SUM" => "7",
        "COUNT" => "3",
        _ => "null",
    };
    let mut command = vec!["call", "--compact", &lean, file, procedure, arguments];
    if procedure != "COUNT" {
        command.extend(["--input", &items]);
    }
    let called = tenon(&command);
    (called.stdout, called.stderr)
}

#[test]
fn streams_are_answered_with_examples_with_items_and_by_a_script() {
    let interface = file("numbers.x", NUMBERS);
    let server = MockServer::start(&[&interface]);
    assert_eq!(
        stream(&server, &interface, "COUNT", "").0.lines().count(),
        1
    );
    assert_eq!(
        stream(&server, &interface, "DOUBLE", "1\n2\n")
            .0
            .lines()
            .count(),
        1
    );
    let said = server.interrupt();
    assert!(said.contains("COUNT 3 -> 1 item"), "{said}");
    assert!(said.contains("DOUBLE and 2 items -> 1 item"), "{said}");

    let answers = file(
        "numbers.json",
        r#"{
            "SUM": {"result": 42},
            "COUNT": {"items": [0, 1, 2], "raise": {"odd": {"number": 3}}},
            "DOUBLE": {"items": [2, 4]}
        }"#,
    );
    let server = MockServer::start(&[&interface, "--answers", &answers]);
    assert_eq!(stream(&server, &interface, "SUM", "1\n2\n3\n").0, "42\n");
    let (items, error) = stream(&server, &interface, "COUNT", "");
    assert_eq!(items, "0\n1\n2\n");
    assert!(error.contains("odd"), "{error}");
    assert_eq!(stream(&server, &interface, "DOUBLE", "").0, "2\n4\n");
    let said = server.interrupt();
    assert!(said.contains("SUM 7 and 3 items -> 42"), "{said}");
    assert!(said.contains("COUNT 3 -> 3 items -> raises odd"), "{said}");

    let script = file(
        "numbers.py",
        "import json, sys\n\
         for line in sys.stdin:\n    \
             call = json.loads(line)\n    \
             items = call.get('items', [])\n    \
             if call['procedure'] == 'SUM':\n        \
                 answer = {'result': call['arguments'] + sum(items)}\n    \
             else:\n        \
                 answer = {'items': [2 * item for item in items]}\n    \
             print(json.dumps(answer), flush=True)\n",
    );
    let command = format!("python3 {script}");
    let server = MockServer::start(&[&interface, "--script", &command]);
    assert_eq!(stream(&server, &interface, "SUM", "1\n2\n3\n").0, "13\n");
    assert_eq!(stream(&server, &interface, "DOUBLE", "1\n2\n").0, "2\n4\n");
}

#[test]
fn items_that_do_not_fit_are_told_before_it_serves() {
    let interface = file("unfit.x", NUMBERS);
    for (answers, problem) in [
        (
            r#"{"COUNT": {"items": [1, "two"]}}"#,
            "COUNT: item 2 does not fit",
        ),
        (r#"{"COUNT": {"items": 1}}"#, "write `items` as an array"),
        (
            r#"{"COUNT": {"result": 1}}"#,
            "the result is a stream: write its `items`",
        ),
        (
            r#"{"SUM": {"items": [1], "result": 1}}"#,
            "`items` are those of a result",
        ),
    ] {
        let answers = file("unfit.json", answers);
        let said = tenon(&["serve", &interface, "--answers", &answers]).fails_with(1);
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn items_that_are_sent_and_do_not_fit_are_told_by_their_numbers() {
    let interface = file("misfit.x", NUMBERS);
    let server = MockServer::start(&[&interface]);
    for (items, problem) in [
        ("1\ntwo\n", "item 2 is not JSON"),
        ("1\n\n\"two\"\n", "item 2 does not fit: $: expected"),
    ] {
        let items = file("misfit.items", items);
        let lean = format!("lean+{}", server.address);
        let command = ["call", &lean, &interface, "SUM", "7", "--input", &items];
        let said = tenon(&command).fails_with(1);
        assert!(said.contains(problem), "{said}");
        assert!(
            said.contains("hint: write an item of JSON on each line, such as 0"),
            "{said}"
        );
    }
}
