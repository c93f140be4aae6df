//! `tenon account` against a server in another process.

use std::fs;
use std::sync::Arc;

use crate::common::{DemoServer, tenon, tenon_reading};
use roxmltree::Document;
use serde_json::Value as Json;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, Server, Service};

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
    for address in [&server.tcp, &server.udp, &server.unix, &server.shm] {
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
        check_sums(&account);
    }
}

/// The steps add up to the round trip, and what a clock around the calls says beyond is said.
fn check_sums(account: &Json) {
    let typical = |json: &Json| number(&json["typical_us"]);
    let each = account["parts"].as_array().expect("parts");
    let sum: f64 = each.iter().map(typical).sum();
    let round_trip = typical(&account["round_trip"]);
    assert!((sum - round_trip).abs() < 1e-6, "{sum} {round_trip}");
    let shares: f64 = each.iter().map(|part| number(&part["share"])).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    // The clock around the calls is another one. It cannot say less than the clock within, but for the error of the rate
    // of the processor's counter, which is measured for a moment only.
    let measured = typical(&account["measured"]);
    let (left, share) = (&account["unaccounted"], &account["unaccounted"]["share"]);
    assert!(typical(left) > -1e-3 * measured, "{account}");
    assert!((sum + typical(left) - measured).abs() < 1e-6, "{account}");
    assert!((number(share) - typical(left) / measured).abs() < 1e-6);
    assert!(number(share) < 1.0, "{account}");
    // So many calls are made without an account, too.
    let without = &account["without_account"];
    assert!(typical(without) > 0.0, "{account}");
    assert!(number(&without["median_us"]) <= number(&without["p99_us"]));
}

#[test]
fn by_onc_the_client_side_is_known_and_the_tables_say_so() {
    let server = DemoServer::start();
    for address in [&server.tcp, &server.udp, &server.unix] {
        let account = account(address, &["--calls", "20"]);
        assert_eq!(account["way"], "client");
        check_sums(&account);
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
        " % of the round trip\nunaccounted",
        "calls without an account\ntook ",
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

/// What Firefly's authors measured: a server whose interface does not mention procedure 0.
struct Packets;

const PACKETS: &str = "
    typedef opaque packet[1440];
    program PACKETS { version V { int LITTLE(void) = 1; packet MAX_RESULT(void) = 2; void TAKE(packet) = 3; } = 1; }
        = 0x2000d3aa;
";

impl Service for Packets {
    fn program(&self) -> u32 {
        0x2000_d3aa
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        match call.procedure() {
            2 => {
                result.room(1440).fill(7);
                Ok(())
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Packets {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(self.program(), self.version()))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        match call.procedure() {
            2 => {
                result.room(1440).fill(7);
                Ok(())
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

#[test]
fn null_stands_beside_the_largest_result_that_takes_nothing() {
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("an address");
    let server = builder.service(Packets).start().expect("a server");
    let file = std::env::temp_dir().join(format!("tenon-packets-{}.x", std::process::id()));
    fs::write(&file, PACKETS).expect("a file");
    let name = file.to_str().expect("the path is UTF-8");
    let onc = server.addresses()[0].to_string();
    for (address, way, parts) in [(format!("lean+{onc}"), "whole", 10), (onc, "client", 7)] {
        let pair = ["account", &address, name, "--json", "--calls", "60"];
        let json: Json = serde_json::from_str(&tenon(&pair).ok()).expect("JSON");
        let accounts = json["accounts"].as_array().expect("two accounts");
        let shown: Vec<_> = accounts
            .iter()
            .map(|account| {
                (
                    account["procedure"].as_str().expect("a name"),
                    number(&account["argument_bytes"]) + number(&account["result_bytes"]),
                    account["way"].as_str().expect("a way"),
                )
            })
            .collect();
        assert_eq!(shown, [("NULL", 0.0, way), ("MAX_RESULT", 1440.0, way)]);
        let difference = &json["difference"];
        assert_eq!(difference["bytes"], 1440);
        let rows = difference["parts"].as_array().expect("parts");
        assert_eq!(rows.len(), parts);
        let more: f64 = rows.iter().map(|row| number(&row["more_us"])).sum();
        let whole = &difference["round_trip"];
        assert!(
            (more - number(&whole["more_us"])).abs() < 1e-6,
            "{difference}"
        );
        let per_byte = number(&whole["more_us"]) * 1e3 / 1440.0;
        assert!(
            (number(&whole["ns_per_byte"]) - per_byte).abs() < 1e-6,
            "{whole}"
        );
        // By itself, and under the name that it does not have.
        let null = ["account", &address, name, "null", "--json", "--calls", "20"];
        let json: Json = serde_json::from_str(&tenon(&null).ok()).expect("JSON");
        assert_eq!(
            (&json["procedure"], &json["way"]),
            (&"NULL".into(), &way.into())
        );
    }
    fs::remove_file(&file).expect("the file is ours");
}

#[test]
fn two_procedures_are_shown_side_by_side() {
    let server = DemoServer::start();
    let address = format!("lean+{}", server.unix);
    let svg = std::env::temp_dir().join(format!("tenon-pair-{}.svg", std::process::id()));
    let name = svg.to_str().expect("the path is UTF-8");
    let pair = [
        "account",
        &address,
        DEMO,
        "--beside",
        "COUNT_TO 360",
        "--calls",
        "60",
        "--svg",
        name,
    ];
    let text = tenon(&pair).ok();
    let heading = format!(
        "DEMO_NULL (0 + 0 bytes) and COUNT_TO (4 + 1444 bytes) at {address}, 60 calls of each, in us"
    );
    assert_eq!(text.lines().next(), Some(&heading[..]));
    for shown in [
        " % of the round\ntrips unaccounted.",
        "DEMO_NULL  COUNT_TO",
        "decode, execute, encode the result",
        "round trip",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let picture = fs::read_to_string(&svg).expect("the time lines are written");
    fs::remove_file(&svg).expect("the file is ours");
    let document = Document::parse(&picture).expect("a picture is XML");
    let bars = document.descendants();
    let bars = bars.filter(|node| node.has_tag_name("rect"));
    assert_eq!(bars.count(), 1 + 2 * 10 + 3);
    // Which is first is as it is said.
    let pair = [
        "account",
        &address,
        DEMO,
        "COUNT_TO",
        "9",
        "--beside",
        "AVERAGE [1]",
        "--calls",
        "9",
    ];
    let text = tenon(&pair).ok();
    assert!(
        text.starts_with("COUNT_TO (4 + 40 bytes) and AVERAGE ("),
        "{text}"
    );
    assert!(text.contains("ns a byte\n"), "{text}");
    // The second carries less: there is no byte that it has more, and so no price of one.
    let pair = ["account", &address, DEMO, "COUNT_TO", "900", "--beside"];
    let pair = [&pair[..], &["COUNT_TO 9", "--calls", "9"]].concat();
    let text = tenon(&pair).ok();
    let says_so = "COUNT_TO carries no more bytes than COUNT_TO";
    assert!(text.contains(says_so), "{text}");
    let json = tenon(&[&pair[..], &["--json"]].concat()).ok();
    let json: Json = serde_json::from_str(&json).expect("JSON");
    let difference = &json["difference"];
    assert!(number(&difference["bytes"]) < 0.0, "{difference}");
    let parts = difference["parts"].as_array().expect("parts");
    for price in parts.iter().chain([&difference["round_trip"]]) {
        assert_eq!(price["ns_per_byte"], Json::Null, "{price}");
    }
    let none = tenon(&["account", &address, DEMO]).fails_with(1);
    assert!(none.contains("--beside 'PROCEDURE JSON'"), "{none}");
    let bad = ["account", &address, DEMO, "--beside", "COUNT_TO x"];
    let bad = tenon(&bad).fails_with(1);
    assert!(bad.contains("not JSON"), "{bad}");
}

#[test]
fn the_command_has_a_second_name() {
    let help = tenon(&["profile", "--help"]).ok();
    assert_eq!(help, tenon(&["account", "--help"]).ok());
    let commands = tenon(&["--help"]).ok();
    assert!(commands.contains("\n  account "), "{commands}");
    assert!(commands.contains("[alias: profile]"), "{commands}");
}

/// The steps of a packet whose sender and receiver both say when their kernels had it.
#[cfg(all(target_os = "linux", not(tenon_portable)))]
const PACKET: [&str; 6] = [
    "headers",
    "system_call",
    "kernel_out",
    "wire",
    "kernel_in",
    "wake_up",
];

#[cfg(all(target_os = "linux", not(tenon_portable)))]
#[test]
fn the_packets_of_a_lean_call_are_known_at_both_ends_and_add_up() {
    let server = DemoServer::start();
    let address = format!("lean+{}", server.udp);
    let account = account(&address, &["--packets", "--calls", "100"]);
    check_sums(&account);
    assert_eq!(account["way"], "whole");
    let of = |leg: &str| PACKET.map(|step| format!("{leg}_{step}"));
    let server_steps = ["dispatch", "serve", "finish"].map(str::to_owned);
    let expected = [&of("call")[..], &server_steps, &of("reply")].concat();
    let keys: Vec<&str> = parts(&account).iter().map(|(key, _)| *key).collect();
    assert_eq!(keys[..2], ["encode", "turn"]);
    assert_eq!(keys[2..keys.len() - 3], expected);
    let packets = &account["packets"];
    assert_eq!(packets["known"], "both");
    let typical = |key: &str| {
        let mut parts = account["parts"].as_array().expect("parts").iter();
        let part = parts.find(|part| part["part"] == key);
        number(&part.expect(key)["typical_us"])
    };
    for leg in ["call", "reply"] {
        let shares = &packets[leg];
        let wire = typical(&format!("{leg}_wire"));
        let sum: f64 = of(leg).iter().map(|key| typical(key)).sum();
        let (hardware, software) = (
            number(&shares["hardware_us"]),
            number(&shares["software_us"]),
        );
        assert!((hardware - wire).abs() < 1e-6, "{packets}");
        assert!((hardware + software - sum).abs() < 1e-6, "{packets}");
    }
    let whole = &packets["round_trip"];
    let (hardware, software) = (number(&whole["hardware_us"]), number(&whole["software_us"]));
    assert!(
        (hardware - typical("call_wire") - typical("reply_wire")).abs() < 1e-6,
        "{packets}"
    );
    let round_trip = number(&account["round_trip"]["typical_us"]);
    assert!((hardware + software - round_trip).abs() < 1e-6, "{packets}");
    let measured_beside = number(&packets["system_call_us"]);
    assert!(
        typical("call_system_call") <= measured_beside + 1e-6,
        "{packets}"
    );
}

#[cfg(all(target_os = "linux", not(tenon_portable)))]
#[test]
fn by_onc_the_packets_of_the_client_are_known() {
    let server = DemoServer::start();
    let account = account(&server.udp, &["--packets", "--calls", "60"]);
    check_sums(&account);
    let keys: Vec<&str> = parts(&account).iter().map(|(key, _)| *key).collect();
    let expected = [
        "encode",
        "turn",
        "call_headers",
        "call_system_call",
        "call_kernel_out",
        "beyond",
        "reply_kernel_in",
        "reply_wake_up",
        "find",
        "decode",
        "leave",
    ];
    assert_eq!(keys, expected);
    assert_eq!(account["packets"]["known"], "client");
    assert_eq!(account["packets"]["round_trip"], Json::Null);
}

#[cfg(all(target_os = "linux", not(tenon_portable)))]
#[test]
fn the_tables_of_packets_show_shares_of_hardware_and_projections() {
    let server = DemoServer::start();
    let address = format!("lean+{}", server.udp);
    let first = [
        "account",
        &address,
        DEMO,
        "NULL",
        "--packets",
        "--calls",
        "60",
    ];
    let factors = ["--what-if", "cpu=10,wire=10", "--what-if", "wakeup=0"];
    let text = tenon(&[&first[..], &factors].concat()).ok();
    for shown in [
        "call: headers, checksum, copy",
        "reply: wake-up",
        "step of a packet",
        "hardware: the wire",
        "real-time clock, and compared with the account's within",
        "no hardware takes part",
        "all software 10 times as fast",
        "the wire 10 times as fast",
        "both ends look instead of sleeping",
        "all of these",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let pair = [
        "--beside",
        "COUNT_TO 99",
        "--what-if",
        "headers=0",
        "--json",
    ];
    let json = tenon(&[&first[..], &pair].concat()).ok();
    let json: Json = serde_json::from_str(&json).expect("JSON");
    for account in json["accounts"].as_array().expect("two accounts") {
        let what_if = &account["what_if"];
        let parts = account["parts"].as_array().expect("parts");
        let headers = parts.iter().filter(|part| {
            let key = part["part"].as_str().expect("a key");
            key.ends_with("_headers")
        });
        let headers: f64 = headers.map(|part| number(&part["typical_us"])).sum();
        assert!(
            (number(&what_if["all"]["saved_us"]) - headers).abs() < 1e-6,
            "{what_if}"
        );
        assert_eq!(what_if["each"][0]["name"], "headers");
    }
}

#[test]
fn packets_are_refused_where_there_are_none() {
    let server = DemoServer::start();
    for (address, why) in [
        (format!("lean+{}", server.tcp), "not of a stream's segments"),
        (server.unix.clone(), "no packets go there"),
        (server.shm.clone(), "no packets go there"),
        ("xdp://192.0.2.1:9".to_owned(), "past the kernel"),
    ] {
        let stderr = tenon(&["account", &address, DEMO, "NULL", "--packets"]).fails_with(2);
        assert!(stderr.contains(why), "{stderr}");
        assert!(
            stderr.contains("lean+udp:// has packets with time stamps at both ends"),
            "{stderr}"
        );
    }
}

#[test]
fn projections_need_what_the_account_divides() {
    let server = DemoServer::start();
    let lean = format!("lean+{}", server.tcp);
    let run = |address: &str, factor: &str| {
        let first = ["account", address, DEMO, "NULL", "--calls", "20"];
        tenon(&[&first[..], &["--what-if", factor]].concat())
    };
    let text = run(&lean, "stubs=2").ok();
    assert!(
        text.contains("client's and server's code 2 times as fast"),
        "{text}"
    );
    for factor in ["cpu=10", "wire=10", "wakeup=0", "headers=0"] {
        let stderr = run(&lean, factor).fails_with(1);
        assert!(
            stderr.contains("\"send, carry and receive the call\""),
            "{stderr}"
        );
        assert!(stderr.contains("--packets at lean+udp://"), "{stderr}");
    }
    let stderr = run(&format!("lean+{}", server.udp), "cpu=10").fails_with(1);
    assert!(stderr.contains("--packets divides it"), "{stderr}");
    // No network is between the ends.
    let text = run(&format!("lean+{}", server.unix), "cpu=10,wire=10").ok();
    assert!(text.contains("all software 10 times as fast"), "{text}");
    let stderr = run(&lean, "disk=2").fails_with(2);
    assert!(
        stderr.contains("there are cpu, wire, wakeup, headers, stubs"),
        "{stderr}"
    );
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
