//! Interfaces that become known at run time, spoken by whichever protocol an address asks for.

use std::sync::Arc;

use tenon::lean::{self, Part};
use tenon::{CallError, Client, LeanInput, Protocol};
use tenon_exec::{Procedure, Value};
use tenon_plan::{Fingerprints, Representation};
use tenon_schema::{Program, Schema, Version};

/// Returns the representation of a protocol's messages on the wire.
pub fn representation(protocol: Protocol) -> Representation {
    match protocol {
        Protocol::Onc => Representation::XDR,
        Protocol::Lean => Representation::LEAN,
    }
}

/// Returns the fingerprints of what a version of a program was made from, for the other end of a lean connection to
/// compare.
pub fn made_from(schema: &Schema, program: &Program, version: &Version) -> Arc<lean::Interface> {
    let fingerprints = Fingerprints::new(schema);
    let parts = fingerprints.parts(version).into_iter();
    let parts = parts.map(|part| Part {
        name: part.name.into(),
        fingerprint: part.fingerprint,
        layout: part.layout,
        procedure: part.procedure,
    });
    Arc::new(lean::Interface {
        program: program.number,
        version: version.number,
        fingerprint: fingerprints.of_version(version),
        parts: parts.collect(),
    })
}

/// Calls a procedure of an interface that was made for the protocol of the client's channel.
pub fn call(
    client: &Client,
    procedure: Procedure<'_>,
    arguments: &Value,
) -> Result<Value, CallError> {
    match client.protocol() {
        Protocol::Onc => client.onc().call(
            procedure.number(),
            |out| procedure.encode_arguments(arguments, out),
            |input| procedure.decode_result(input),
        ),
        Protocol::Lean => client.lean().call(
            procedure.number(),
            |out| procedure.encode_arguments(arguments, out),
            |input| match input {
                LeanInput::Native(input) => procedure.decode_result(input),
                LeanInput::Swapped(input) => procedure.decode_result(input),
            },
        ),
    }
}
