//! Errors that procedures raise, in stubs of C and of Rust for the same interface: each raises what the other gets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon::wire::BString;
use tenon::{CallErrorKind, CallInfo, Refusal, Server};

use super::{Installed, SANITIZED, Serving, succeeds};

#[path = "../../../tenon-gen/tests/golden/raises.rs"]
mod keys;

use keys::{
    Closed, Conflict, KeysV1, KeysV1Client, KeysV1CloseError, KeysV1FindError, KeysV1GetError,
    KeysV1Service, NoSuchKey, Other, Place,
};

/// Compiles the program with the stubs that the generator is held to.
fn program(installed: &Installed) -> PathBuf {
    let stubs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenon-gen/tests/golden/c/stubs");
    let include = format!("-I{}", stubs.display());
    let source = stubs.join("raises.c").display().to_string();
    let options = [&SANITIZED[..], &[include.as_str(), source.as_str()]].concat();
    installed.compile("gcc", "raises", &options, false)
}

#[test]
fn procedures_raise_errors_in_both_languages() {
    let installed = Installed::shared();
    let program = program(installed);
    let folder = installed.prefix.join("raises");
    fs::create_dir_all(&folder).expect("a folder");
    let mut serve = Command::new(&program);
    serve.arg("serve");
    let server = Serving::spawn(serve, &folder);
    let addresses = server.reachable();
    assert_eq!(addresses.len(), 7, "{addresses:?}");
    let said = succeeds(Command::new(&program).arg("call").args(&addresses));
    assert_eq!(said, "fine\n");
    for address in &addresses {
        rust_gets_errors(address);
    }
    assert_eq!(server.stop(), "stopped\n");

    for (service, mode) in [(Shelf::Honest, "call"), (Shelf::Liar, "lies")] {
        let (server, addresses) = start(service);
        let said = succeeds(Command::new(&program).arg(mode).args(addresses));
        assert_eq!(said, "fine\n");
        drop(server);
    }
}

/// Starts a server in Rust, and returns its addresses by both protocols.
fn start(shelf: Shelf) -> (Server, Vec<String>) {
    let builder = Server::builder().service(KeysV1Service(shelf));
    let builder = builder.listen("tcp://127.0.0.1:0").expect("an address");
    let server = builder.start().expect("it serves");
    let plain = server.addresses().iter().map(ToString::to_string);
    let mut addresses: Vec<String> = plain.collect();
    let lean = format!("lean+{}", addresses[0]);
    match shelf {
        Shelf::Honest => addresses.push(lean),
        Shelf::Liar => addresses = vec![lean],
    }
    (server, addresses)
}

fn rust_gets_errors(address: &str) {
    let client = KeysV1Client::connect(address).expect("it listens");
    let get = |key: &str| client.get(BString::from(key)).expect_err(key);
    let is_onc = !address.starts_with("lean") && !address.starts_with("shm");
    if is_onc {
        return assert_eq!(get("nothing").kind(), CallErrorKind::Failed, "{address}");
    }
    let error = get("nothing");
    assert!(
        matches!(&error, KeysV1GetError::NoSuchKey(it) if it.key == "nothing"),
        "{error}"
    );
    let error = get("conflict");
    let is_it = |it: &Conflict| it.version == 1 << 40 && it.holder == "somebody else";
    assert!(
        matches!(&error, KeysV1GetError::Conflict(it) if is_it(it)),
        "{error}"
    );
    let error = get("closed");
    assert!(
        matches!(error, KeysV1GetError::Closed(Closed::Good)),
        "{error}"
    );
    let error = get("other");
    assert!(
        matches!(&error, KeysV1GetError::Other_(Other::Text(it)) if it == "why"),
        "{error}"
    );
    assert_eq!(get("null").kind(), CallErrorKind::Failed);
    let error = client.close().expect_err("it is closed");
    assert!(
        matches!(error, KeysV1CloseError::Closed(Closed::Now)),
        "{error}"
    );
}

/// A server whose errors C gets.
#[derive(Clone, Copy)]
enum Shelf {
    Honest,
    /// What it raises are no errors of the interface.
    Liar,
}

fn no_such_key(key: &BString) -> NoSuchKey {
    NoSuchKey { key: key.clone() }
}

/// Details that begin with a position and go on with these words.
fn raised(words: &[u32]) -> KeysV1GetError<Refusal> {
    let details = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let message = "not what it seems".to_owned();
    KeysV1GetError::Other(Refusal::Raised { message, details })
}

impl KeysV1 for Shelf {
    fn get(&self, _: &CallInfo<'_>, key: BString) -> Result<BString, KeysV1GetError<Refusal>> {
        match (self, &**key) {
            (Self::Liar, b"cut off") => Err(raised(&[1, 0, 7, 7, 1000])),
            (Self::Liar, b"too long") => Err(raised(&[2, 1, 1])),
            (Self::Liar, b"unknown member") => Err(raised(&[2, 77])),
            (Self::Liar, _) => Err(raised(&[])),
            (Self::Honest, b"nothing") => {
                let refusal = Refusal::raise(0, "there is no such key", &no_such_key(&key));
                Err(KeysV1GetError::Other(refusal))
            }
            (Self::Honest, b"conflict") => Err(Conflict {
                version: 1 << 40,
                holder: "somebody else".into(),
            }
            .into()),
            (Self::Honest, b"closed") => Err(Closed::Good.into()),
            (Self::Honest, b"other") => Err(Other::Text("why".into()).into()),
            (Self::Honest, b"null" | b"unknown" | b"long") => {
                Err(Refusal::SystemError("it cannot be sent".to_owned()).into())
            }
            (Self::Honest, _) => Ok(key),
        }
    }

    fn close(&self, _: &CallInfo<'_>) -> Result<(), KeysV1CloseError<Refusal>> {
        Err(Closed::Now.into())
    }

    fn find(
        &self,
        _: &CallInfo<'_>,
        key: BString,
        reply: &mut Place,
    ) -> Result<(), KeysV1FindError<Refusal>> {
        *reply = Place { x: 7, y: -7 };
        Err(no_such_key(&key).into())
    }

    fn count(&self, _: &CallInfo<'_>) -> Result<i32, Refusal> {
        Ok(7)
    }
}
