//! `tenon account` against a server in another process.

mod common;

use std::fs;

use common::{DemoServer, tenon, tenon_reading};
use roxmltree::Document;
use serde_json::Value as Json;

const DEMO: &str = "interfaces/demo.x";

fn account(address: &str, more: &[&str]) -> Json {
    let arguments = ["account", address, DEMO, "AVERAGE", "[1, 2, 6]", "--json"];
    let text = tenon(&[&arguments, more].concat()).ok();
    serde_json::from_str(&text).expect("JSON")
}

fn number(json: &Json) -> f64 {
    json.as_f64()
        .unwrap_or_else(|| panic!("{json} is no number"))
}

/// The keys of the parts with their owners.
fn parts(account: &Json) -> Vec<(&str, &str)> {
    let parts = account["parts"].as_array().expect("parts");
    parts
        .iter()
        .map(|part| {
            let key = part["part"].as_str().expect("a key");
            (key, part["owner"].as_str().expect("an owner"))
        })
        .collect()
}

#[test]
fn the_steps_of_a_lean_call_are_known_at_both_ends_and_add_up() {
    let server = DemoServer::start();
    for address in [&server.tcp, &server.unix, &server.shm] {
        let address = match address.starts_with("shm") {
            true => address.clone(),
            false => format!("lean+{address}"),
        };
        let account = account(&address, &["--calls", "200"]);
        assert_eq!(account["address"], address.as_str());
        assert_eq!(
            (&account["way"], &account["calls"]),
            (&"whole".into(), &200.into())
        );
        let expected = [
            ("encode", "client"),
            ("turn", "client"),
            ("call_away", "kernel"),
            ("dispatch", "server"),
            ("serve", "server"),
            ("finish", "server"),
            ("reply_away", "kernel"),
            ("find", "client"),
            ("decode", "client"),
            ("leave", "client"),
        ];
        assert_eq!(parts(&account), expected);
        let typical = |json: &Json| number(&json["typical_us"]);
        let each = account["parts"].as_array().expect("parts");
        let sum: f64 = each.iter().map(typical).sum();
        let round_trip = typical(&account["round_trip"]);
        assert!(
            (sum - round_trip).abs() <= 0.02 * round_trip,
            "{sum} {round_trip}"
        );
        let shares: f64 = each.iter().map(|part| number(&part["share"])).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{shares}");
        // A clock around the calls cannot say less than the clock within.
        assert!(typical(&account["measured"]) >= round_trip, "{account}");
    }
}

#[test]
fn by_onc_the_client_side_is_known_and_the_tables_say_so() {
    let server = DemoServer::start();
    for address in [&server.tcp, &server.udp, &server.unix] {
        let account = account(address, &["--calls", "20"]);
        assert_eq!(account["way"], "client");
        let keys: Vec<&str> = parts(&account).iter().map(|(key, _)| *key).collect();
        let expected = ["encode", "turn", "send", "wait", "find", "decode", "leave"];
        assert_eq!(keys, expected);
    }
    let arguments = [
        "account",
        &server.tcp,
        DEMO,
        "SAY_HELLO",
        "\"Ada\"",
        "--calls",
        "1",
    ];
    let text = tenon(&arguments).ok();
    assert!(text.contains("only the client's side is known"), "{text}");
}

#[test]
fn the_tables_show_every_step() {
    let server = DemoServer::start();
    let address = format!("lean+{}", server.tcp);
    let arguments = ["account", &address, DEMO, "COUNT_TO", "-", "--calls", "50"];
    let text = tenon_reading(&arguments, "3").ok();
    let mut lines = text.lines();
    let heading = format!("COUNT_TO at {address}, 50 calls, in us");
    assert_eq!(lines.next(), Some(&heading[..]));
    for shown in [
        "whose time       typical",
        "client",
        "kernel and wire",
        "server",
        "decode, execute, encode the result",
        "round trip",
        "Typical is the mean",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    // No service sees procedure 0, but the server does.
    let procedure_0 = ["account", &address, DEMO, "DEMO_NULL", "--calls", "20"];
    let text = tenon(&procedure_0).ok();
    assert!(text.contains("make the reply ready"), "{text}");
}

#[test]
fn the_time_line_is_well_formed_and_shows_every_step() {
    let server = DemoServer::start();
    let file = std::env::temp_dir().join(format!("tenon-account-{}.svg", std::process::id()));
    let name = file.to_str().expect("the path is UTF-8");
    let address = format!("lean+{}", server.tcp);
    let account = account(&address, &["--calls", "50", "--svg", name]);
    let svg = fs::read_to_string(&file).expect("the time line is written");
    fs::remove_file(&file).expect("the file is ours");
    let document = Document::parse(&svg).expect("a picture is XML");
    let texts = document.descendants().filter_map(|node| node.text());
    let texts: Vec<&str> = texts.collect();
    for shown in ["write header and arguments", "find the service", "server"] {
        assert!(texts.contains(&shown), "{shown}: {texts:?}");
    }
    let bars = document
        .descendants()
        .filter(|node| node.has_tag_name("rect"));
    // The background, the steps, the key.
    assert_eq!(bars.count(), 1 + parts(&account).len() + 3);
}

#[test]
fn what_cannot_be_called_is_said() {
    let server = DemoServer::start();
    let address = format!("lean+{}", server.tcp);
    let stderr = tenon(&["account", &address, DEMO, "NOTHING"]).fails_with(1);
    assert!(stderr.contains("NOTHING"), "{stderr}");
    let stderr = tenon(&["account", &address, DEMO, "AVERAGE", "\"x\""]).fails_with(1);
    assert!(stderr.contains("the arguments do not fit"), "{stderr}");
    tenon(&["account", &address, DEMO, "AVERAGE", "[1]", "--calls", "0"]).fails_with(2);
}
