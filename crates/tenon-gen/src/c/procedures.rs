//! Procedures in C: their names, parameters and results.

use tenon_schema::written::{Spelling, WrittenProcedure};
use tenon_schema::{self as schema, Type};

use super::declare::spaced;
use super::names::VersionSuffix;
use super::{Interface, Options, names};

/// A procedure of a version of a program.
#[derive(Debug, Clone, Copy)]
pub struct VersionedProcedure<'a> {
    /// The position of its program.
    pub program: usize,
    /// The position of its version.
    pub version: usize,
    /// The suffix of its name.
    pub version_suffix: VersionSuffix<'a>,
    /// The procedure.
    pub definition: &'a schema::Procedure,
    /// Its spelling in the interface file.
    pub written: &'a WrittenProcedure,
}

/// The side of a call that a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StubSide {
    /// The stub, which sends the call.
    Client,
    /// The user's function, which carries it out.
    Server,
}

/// The procedures of an interface, in order.
pub fn procedures(of: Interface<'_>) -> impl Iterator<Item = VersionedProcedure<'_>> {
    let programs = of.schema.programs.iter().enumerate();
    let places = programs.flat_map(|(program, definition)| {
        let versions = definition.versions.iter().enumerate();
        versions.flat_map(move |(version, definition)| {
            let of_version = definition.procedures.iter();
            of_version.map(move |procedure| (program, version, procedure))
        })
    });
    let each = places.zip(&of.written.procedures);
    each.map(
        move |((program, version, definition), written)| VersionedProcedure {
            program,
            version,
            version_suffix: of.version_suffix(program, version),
            definition,
            written,
        },
    )
}

/// Returns whether a struct holds the arguments of `procedure`: with `-N`, of several.
pub fn has_record(procedure: &VersionedProcedure<'_>, options: &Options) -> bool {
    options.by_value && procedure.definition.arguments.len() > 1
}

impl<'a> VersionedProcedure<'a> {
    /// Its name in C; with `_svc` behind it, that of the function that carries it out.
    pub fn c_name(&self) -> String {
        names::procedure(&self.definition.name, self.version_suffix)
    }

    /// The name of the struct that holds its arguments.
    pub fn record_name(&self) -> String {
        format!("{}_argument", self.c_name())
    }

    /// The routine that moves its arguments.
    pub fn argument_routine(&self, options: &Options) -> String {
        match self.written.arguments.as_slice() {
            _ if has_record(self, options) => format!("xdr_{}", self.record_name()),
            [] => "xdr_void".to_owned(),
            [first, ..] => names::routine(first),
        }
    }

    /// The routine that moves its result.
    pub fn result_routine(&self) -> String {
        let result = self.written.result.as_ref();
        result.map_or_else(|| "xdr_void".to_owned(), names::routine)
    }

    /// Its arguments: type and spelling of each.
    pub fn arguments(&self) -> impl Iterator<Item = (&'a Type, &'a Spelling)> + use<'a> {
        let types = self.definition.arguments.iter().map(|field| &field.ty);
        types.zip(&self.written.arguments)
    }

    /// Its result: type and spelling; `None` is `void`.
    pub fn result(&self) -> Option<(&'a Type, &'a Spelling)> {
        self.definition
            .result
            .as_ref()
            .zip(self.written.result.as_ref())
    }

    /// The result as a pointer leads to it: `int *`. That of an array leads to its first element.
    pub fn result_pointer(&self, of: Interface<'_>) -> String {
        let to = self
            .result()
            .map(|(ty, spelling)| pointed_at(of, ty, spelling));
        format!("{}*", spaced(to.as_deref().unwrap_or("void")))
    }

    /// Returns the type that it returns: a pointer to the result, or with `-M` the status of the call.
    pub fn returns(&self, of: Interface<'_>, options: &Options, side: StubSide) -> String {
        match (options.reentrant, side) {
            (false, _) => self.result_pointer(of),
            (true, StubSide::Client) => "enum clnt_stat".to_owned(),
            (true, StubSide::Server) => "bool_t".to_owned(),
        }
    }

    /// The types of its parameters.
    fn parameters(&self, of: Interface<'_>, options: &Options, side: StubSide) -> Vec<String> {
        let mut types: Vec<String> = match options.by_value {
            true => self
                .arguments()
                .map(|(_, spelling)| spaced(&names::c_type(spelling)))
                .collect(),
            false => vec![self.argument_pointer(of)],
        };
        if options.reentrant {
            types.push(self.result_pointer(of));
        }
        types.push(match side {
            StubSide::Client => "CLIENT *".to_owned(),
            StubSide::Server => "struct svc_req *".to_owned(),
        });
        types
    }

    /// The argument as a pointer leads to it.
    pub fn argument_pointer(&self, of: Interface<'_>) -> String {
        let first = self.arguments().next();
        let to = first.map(|(ty, spelling)| pointed_at(of, ty, spelling));
        format!("{}*", spaced(to.as_deref().unwrap_or("void")))
    }

    /// The parameters with their names, as a definition has them.
    pub fn named_parameters(
        &self,
        of: Interface<'_>,
        options: &Options,
        side: StubSide,
        result: &str,
    ) -> String {
        let mut parameters: Vec<String> = match options.by_value {
            true => self
                .arguments()
                .zip(&self.definition.arguments)
                .map(|((_, spelling), field)| {
                    format!("{}{}", spaced(&names::c_type(spelling)), field.name)
                })
                .collect(),
            false => vec![format!("{}argp", self.argument_pointer(of))],
        };
        if options.reentrant {
            parameters.push(format!("{}{result}", self.result_pointer(of)));
        }
        parameters.push(match side {
            StubSide::Client => "CLIENT *clnt".to_owned(),
            StubSide::Server => "struct svc_req *rqstp".to_owned(),
        });
        parameters.join(", ")
    }

    /// Its prototype.
    pub fn prototype(&self, of: Interface<'_>, options: &Options, side: StubSide) -> String {
        let parameters = self.parameters(of, options, side).join(", ");
        format!("{}({parameters});", self.declarator(of, options, side))
    }

    /// Its prototype for compilers from before ANSI C.
    pub fn old_prototype(&self, of: Interface<'_>, options: &Options, side: StubSide) -> String {
        format!("{}();", self.declarator(of, options, side))
    }

    fn declarator(&self, of: Interface<'_>, options: &Options, side: StubSide) -> String {
        let suffix = match side {
            StubSide::Client => "",
            StubSide::Server => "_svc",
        };
        let returns = self.returns(of, options, side);
        format!("extern  {returns} {}{suffix}", self.c_name())
    }
}

/// Returns the C type of the target of a pointer to a value of the type.
fn pointed_at<'a>(of: Interface<'a>, ty: &'a Type, spelling: &'a Spelling) -> String {
    let spelling = of.vector(ty).map_or(spelling, |(_, elements)| elements);
    names::c_type(spelling)
}
