//! The interfaces that a server tells of: for commands without an interface file.

use std::collections::BTreeSet;

use tenon::{Address, CallErrorKind};
use tenon_descriptor::{Descriptor, DescriptorIdentity};
use tenon_exec::Interface;
use tenon_plan::Representation;
use tenon_reflection::{
    REFLECTION, REFLECTION_V1, ReflectedVersion, ReflectionClient, ReflectionError,
};

use crate::args::CallOptionArgs;
use crate::commands::connect;
use crate::failure::CommandFailure;

/// A server that is asked for its interfaces.
pub struct ReflectedServer<'a> {
    address: &'a Address,
    client: ReflectionClient,
}

impl<'a> ReflectedServer<'a> {
    pub fn connect(address: &'a Address, options: &CallOptionArgs) -> Result<Self, CommandFailure> {
        let client = connect::client(address, options, REFLECTION, REFLECTION_V1)?;
        let client = ReflectionClient::over(client);
        Ok(Self { address, client })
    }

    /// Asks for the versions that the server has.
    pub fn versions(&self) -> Result<Vec<ReflectedVersion>, CommandFailure> {
        self.client.versions().map_err(|error| self.failure(&error))
    }

    /// Asks for the descriptors of all versions, each once, in the order of their versions.
    pub fn descriptors(&self) -> Result<Vec<Descriptor>, CommandFailure> {
        let mut known: BTreeSet<DescriptorIdentity> = BTreeSet::new();
        let mut descriptors = Vec::new();
        for version in self.versions()? {
            if known.insert(version.identity) {
                let descriptor = self.client.descriptor(version.identity);
                descriptors.push(descriptor.map_err(|error| self.failure(&error))?);
            }
        }
        Ok(descriptors)
    }

    /// Asks for the interface that has a procedure.
    pub fn interface_of(
        &self,
        procedure: &str,
        version: Option<u32>,
        representation: Representation,
    ) -> Result<Interface, CommandFailure> {
        let mut found = Vec::new();
        let mut problems = Vec::new();
        for descriptor in self.descriptors()? {
            let schema = descriptor.into_schema();
            let interface = Interface::with_representation(schema, representation);
            let interface = interface.map_err(CommandFailure::new)?;
            match interface.procedure(procedure, version) {
                Ok(_) => found.push(interface),
                Err(problem) => problems.push(CommandFailure::new(problem)),
            }
        }
        let (how_many, among) = (found.len(), problems.len());
        match (found.pop(), problems.pop()) {
            (Some(interface), _) if how_many == 1 => Ok(interface),
            (Some(_), _) => {
                let message = format!("several programs of the server have a {procedure}");
                Err(CommandFailure::new(message).hint("write PROGRAM.NAME"))
            }
            (None, Some(problem)) if among == 1 => Err(problem),
            (None, _) => {
                let message = format!("the server tells of no procedure {procedure}");
                let hint = format!("`tenon describe {}` shows those that it has", self.address);
                Err(CommandFailure::new(message).hint(hint))
            }
        }
    }

    fn failure(&self, error: &ReflectionError) -> CommandFailure {
        match error {
            ReflectionError::Call(error) if error.kind() == CallErrorKind::NoService => {
                CommandFailure::new("the server has no reflection: its interfaces are not known")
                    .hint(
                        "name the interface file; servers of Tenon have reflection by the crate \
                         `tenon-reflection`, and `tenon serve` by --reflection",
                    )
            }
            ReflectionError::Call(error) => connect::failure(self.address, error),
            error => CommandFailure::new(error),
        }
    }
}
