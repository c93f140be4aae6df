//! Calls procedures of interfaces that become known when the program runs, with JSON or with typed
//! values, by whichever protocol an address asks for.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use serde_json::Value as Json;
use tenon::{CallError, Channel, Client};
use tenon_exec::{Interface, Procedure, Value};
use tenon_idl::{Options, Style};

/// A server, and the interface that it is said to have.
#[derive(Debug)]
pub struct Remote {
    interface: Interface,
    /// One for each version, by the numbers of its program and its own. They share a connection.
    clients: HashMap<(u32, u32), Client>,
}

impl Remote {
    /// Reads an interface file and connects. The file and all that it includes are read now; plans are
    /// made for the protocol of the address.
    ///
    /// # Errors
    /// The file is no interface, and the words are those of `tenon check`; its types have no end; the
    /// address is none; or nobody is there.
    pub fn open(address: &str, file: &Path) -> Result<Self, Box<dyn Error>> {
        let parsed = tenon_idl::parse_file(file, &Options::default());
        let said = parsed.render(Style::Plain);
        let schema = parsed.schema.ok_or(said)?;
        let channel = Channel::connect(address)?;
        let protocol = channel.address().protocol();
        let representation = tenon_dynamic::representation(protocol);
        let programs = schema.programs.iter();
        let versions = programs.flat_map(|of| of.versions.iter().map(move |version| (of, version)));
        let clients = versions.map(|(program, version)| {
            let client = Client::over(channel.clone(), program.number, version.number);
            // A server that was built from another interface refuses a lean call instead of misreading it.
            let known = tenon_dynamic::lean_interface(&schema, program, version);
            (
                (program.number, version.number),
                client.with_interface(known),
            )
        });
        Ok(Self {
            clients: clients.collect(),
            interface: Interface::with_representation(schema, representation)?,
        })
    }

    /// What the file says: [`Interface::procedures`] are all that can be called.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Calls a procedure by its name, or as `PROGRAM.NAME`. Its arguments are an array of JSON, or the
    /// only argument alone.
    ///
    /// # Errors
    /// There is no such procedure, the arguments are not of its types, or the call fails.
    pub fn call_json(&self, name: &str, arguments: &Json) -> Result<Json, Box<dyn Error>> {
        let procedure = self.interface.procedure(name, None)?;
        let arguments = procedure.read_arguments(Some(arguments))?;
        let result = self.call(procedure, &arguments)?;
        Ok(procedure.write_result(&result)?)
    }

    /// Calls a procedure with values of its types: a struct of its arguments.
    ///
    /// # Errors
    /// The arguments are not of its types, or the call fails.
    ///
    /// # Panics
    /// If the procedure is not of this interface.
    pub fn call(&self, procedure: Procedure<'_>, arguments: &Value) -> Result<Value, CallError> {
        let (program, version) = (procedure.program().number, procedure.version().number);
        tenon_dynamic::call(&self.clients[&(program, version)], procedure, arguments)
    }
}
