//! Every procedure of the interfaces of this repository: random arguments survive the wire and
//! JSON.

use std::fs;
use std::path::Path;

use crate::support::interface;
use serde_json::Value as Json;
use tenon_exec::{Interface, Procedure, random::Random};
use tenon_wire::{Buffer, Decoder, Encoder};

/// Number of calls of each procedure.
const CALLS: u64 = 30;

fn interfaces() -> impl Iterator<Item = Interface> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interfaces");
    let entries = fs::read_dir(folder).expect("the folder of the interfaces");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.map(|path| fs::read_to_string(path).expect("a text"));
    texts.map(|text| interface(&text))
}

fn check(interface: &Interface, procedure: Procedure<'_>, seed: u64) {
    let parameters = procedure.parameters();
    let sent = Random::new(seed).arguments(interface.schema(), parameters, 50);
    let mut buffer = Buffer::default();
    let encoded = procedure.encode_arguments(&sent, &mut Encoder::new(&mut buffer));
    assert_eq!(encoded, Ok(()), "{} {seed}", procedure.name());
    let received = procedure.decode_arguments(&mut Decoder::new(buffer.as_slice()));
    assert_eq!(received, Ok(sent.clone()), "{} {seed}", procedure.name());
    let json = procedure
        .write_arguments(&sent)
        .expect("arguments of the procedure");
    let json = Some(json).filter(|json| *json != Json::Null);
    assert_eq!(
        procedure.read_arguments(json.as_ref()),
        Ok(sent),
        "{} {seed}",
        procedure.name()
    );
}

#[test]
fn arguments_survive_the_wire_and_json() {
    let mut procedures = 0;
    for interface in interfaces() {
        for procedure in interface.procedures() {
            procedures += 1;
            (0..CALLS).for_each(|seed| check(&interface, procedure, seed));
        }
    }
    assert!(procedures > 70, "only {procedures}");
}
