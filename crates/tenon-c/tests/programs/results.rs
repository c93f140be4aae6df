//! Results of known size, which handlers in C write where they are sent from: clients in Rust see no difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon::CallError;

use super::{Installed, SANITIZED, Serving};

#[path = "../../../tenon-gen/tests/golden/results.rs"]
mod stubs;

use stubs::{ResultsV1Client, Shade};

/// A call with it is refused when the result is written.
const REFUSED: u32 = 0;

/// Compiles the program with the stubs that the generator is held to.
fn program(installed: &Installed) -> PathBuf {
    let stubs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-gen/tests/golden/c/stubs");
    let include = format!("-I{}", stubs.display());
    let source = stubs.join("results.c").display().to_string();
    let options = [&SANITIZED[..], &[include.as_str(), source.as_str()]].concat();
    installed.compile("gcc", "results", &options, false)
}

/// Starts a server in C.
fn start(mode: &str) -> Serving {
    let installed = Installed::shared();
    let folder = installed.prefix.join(format!("results-{mode}"));
    fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new(program(installed));
    command.arg(mode);
    Serving::spawn(command, &folder)
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Refused(_) | CallError::Exception(_)))
}

/// Calls what lies in every reply as in memory.
fn check_whole(client: &ResultsV1Client, seed: u32, address: &str) {
    let packet: [u8; 1440] = std::array::from_fn(|at| (at as u32 + seed) as u8 | 1);
    assert_eq!(client.packet(seed).expect(address), packet, "{address}");
    let counters: [i64; 33] = std::array::from_fn(|at| 0x0102_0304_0506_0708 + at as i64);
    assert_eq!(client.counters(seed).expect(address), counters, "{address}");
    assert_eq!(client.page(seed).expect(address)[..], [7; 8192]);
    let steps: [i32; 2000] = std::array::from_fn(|at| -(at as i32));
    assert_eq!(client.steps(seed).expect(address)[..], steps, "{address}");
    let both = client.both(seed).expect(address);
    assert_eq!((both.least, both.most), (seed, u32::MAX), "{address}");
}

/// Calls what lies in lean replies as in memory.
fn check_lean(client: &ResultsV1Client, seed: u32, address: &str) {
    assert_eq!(client.tag(seed).expect(address), [1, 2, 3, 4, 5]);
    let samples = client.samples(seed).expect(address);
    assert_eq!(samples, [-1, -2, -3, -4, -5, -6, -7], "{address}");
    let stamp = client.stamp(seed).expect(address);
    let numbers = (stamp.seconds, stamp.fraction, stamp.zone);
    let expected = (0x0102_0304_0506_0708, -(seed as i32), 0x0A0B);
    assert_eq!(numbers, expected, "{address}");
    assert_eq!(stamp.name, *b"ab", "{address}");
}

#[test]
fn clients_see_no_difference() {
    let server = start("serve");
    for address in server.reachable() {
        let client = ResultsV1Client::connect(&address).expect("it serves");
        for seed in [1, 200] {
            check_whole(&client, seed, &address);
            check_lean(&client, seed, &address);
            let vertex = client.vertex(seed, "there").expect(&address);
            assert_eq!((vertex.at, vertex.color), ([1.0, 2.0, seed as f32], seed));
            let lamp = client.lamp(seed).expect(&address);
            assert_eq!((lamp.of, lamp.at), (Shade::Light, seed as i32), "{address}");
            assert_eq!(client.number(seed).expect(&address), seed.into());
            assert_eq!(client.name(seed).expect(&address), "name", "{address}");
            assert!(is_refused(client.packet(REFUSED)), "{address}");
            assert!(is_refused(client.samples(REFUSED)), "{address}");
            assert!(is_refused(client.lamp(REFUSED)), "{address}");
        }
    }
    assert_eq!(server.stop(), "stopped\n");
}

/// No function encodes them: so they are written where they are sent from.
#[test]
fn results_are_written_where_they_are_sent_from() {
    let server = start("in-place");
    for address in server.reachable() {
        let client = ResultsV1Client::connect(&address).expect("it serves");
        check_whole(&client, 5, &address);
        if address.starts_with("lean+") || address.starts_with("shm") {
            check_lean(&client, 5, &address);
        } else {
            // What is encoded needs the function.
            assert!(is_refused(client.tag(5)), "{address}");
            assert!(is_refused(client.samples(5)), "{address}");
            assert!(is_refused(client.stamp(5)), "{address}");
        }
        assert!(is_refused(client.packet(REFUSED)), "{address}");
        check_whole(&client, 6, &address);
    }
    assert_eq!(server.stop(), "stopped\n");
}
