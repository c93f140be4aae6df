//! What the run time has to know of an interface.

use std::sync::Arc;

use tenon::Protocol;
use tenon::lean::{self, Part};
use tenon_exec::Interface;
use tenon_plan::{Fingerprints, PlanError, Representation};
use tenon_schema::{Program, Schema, Version};

/// An interface that is ready for either protocol.
#[derive(Debug, Clone)]
pub struct DynamicInterface {
    onc: Interface,
    lean: Interface,
}

impl DynamicInterface {
    /// Makes the plans for the messages of both protocols.
    ///
    /// # Errors
    /// The schema has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(schema: Schema) -> Result<Self, PlanError> {
        let of =
            |protocol, schema| Interface::with_representation(schema, representation(protocol));
        Ok(Self {
            onc: of(Protocol::Onc, schema.clone())?,
            lean: of(Protocol::Lean, schema)?,
        })
    }

    /// The interface itself.
    pub fn schema(&self) -> &Schema {
        self.onc.schema()
    }

    /// The plans for the messages of a protocol.
    pub fn of(&self, protocol: Protocol) -> &Interface {
        match protocol {
            Protocol::Onc => &self.onc,
            Protocol::Lean => &self.lean,
        }
    }
}

/// Returns the representation of a protocol's messages.
pub fn representation(protocol: Protocol) -> Representation {
    match protocol {
        Protocol::Onc => Representation::XDR,
        Protocol::Lean => Representation::LEAN,
    }
}

/// Returns what the ends of a lean connection compare of a version of a program: fingerprints of it and of its parts
/// (`docs/lean-protocol.md`). A client is given it by `with_interface`.
pub fn lean_interface(
    schema: &Schema,
    program: &Program,
    version: &Version,
) -> Arc<lean::Interface> {
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
