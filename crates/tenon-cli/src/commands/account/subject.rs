//! What is called: the procedures of the command line, or Null and the largest result that can be had
//! for nothing, as Firefly's authors took Null and MaxResult.

use tenon::wire::{Buffer, EncodeError, Encoder};
use tenon::{Address, CallError, Client, Protocol};
use tenon_exec::{Interface, Procedure, Value};
use tenon_plan::{Representation, Sizes};
use tenon_schema::{Program, Version};

use crate::args::AccountArgs;
use crate::commands::call::InterfaceSource;
use crate::commands::{call, connect};
use crate::failure::CommandFailure;

/// Name of procedure 0, whatever the interface calls it.
const NULL: &str = "NULL";

/// A procedure and its arguments.
pub struct ProfiledProcedure<'a> {
    /// As it is shown.
    pub name: String,
    program: &'a Program,
    version: &'a Version,
    /// None is procedure 0 of an interface that does not mention it.
    procedure: Option<Procedure<'a>>,
    arguments: Value,
}

/// Bytes of the encoded values of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSizes {
    pub arguments: usize,
    pub result: usize,
}

impl MessageSizes {
    pub fn both(self) -> usize {
        self.arguments + self.result
    }
}

/// Finds the procedures that the command line asks for: one, or two to be shown side by side.
pub fn find<'a>(
    args: &AccountArgs,
    interface: &'a Interface,
    representation: Representation,
) -> Result<Vec<ProfiledProcedure<'a>>, CommandFailure> {
    let find = |name: &str, json: Option<&str>| named(args, interface, name, json);
    let beside = match &args.beside {
        None => None,
        Some(text) => {
            let text = text.trim();
            let (name, json) = match text.split_once(char::is_whitespace) {
                None => (text, None),
                Some((name, json)) => (name, Some(json.trim())),
            };
            Some(find(name, json)?)
        }
    };
    let first = match (&args.procedure, &beside) {
        (Some(name), _) => Some(find(name, args.arguments.as_deref())?),
        (None, Some(_)) => None,
        (None, None) => Some(largest(args, interface, representation)?),
    };
    // Null goes first when nothing else is said.
    Ok(match (first, beside) {
        (Some(first), Some(beside)) => vec![first, beside],
        (Some(only), None) if args.procedure.is_some() => vec![only],
        (Some(other), None) | (None, Some(other)) => {
            vec![null(other.program, other.version), other]
        }
        (None, None) => vec![],
    })
}

/// Returns the version of a program that all are of: they are called over one connection.
pub fn common<'a>(
    subjects: &[ProfiledProcedure<'a>],
) -> Result<(&'a Program, &'a Version), CommandFailure> {
    let of = |subject: &ProfiledProcedure<'a>| (subject.program, subject.version);
    let number = |(program, version): (&Program, &Version)| (program.number, version.number);
    let mut all = subjects.iter().map(of);
    let first = all.next().ok_or_else(CommandFailure::explained)?;
    match all.all(|other| number(other) == number(first)) {
        true => Ok(first),
        false => Err(CommandFailure::new(
            "the two procedures are not of one version of a program",
        )),
    }
}

fn named<'a>(
    args: &AccountArgs,
    interface: &'a Interface,
    name: &str,
    json: Option<&str>,
) -> Result<ProfiledProcedure<'a>, CommandFailure> {
    let procedure = match interface.procedure(name, args.version) {
        Ok(procedure) => procedure,
        Err(_) if name.eq_ignore_ascii_case(NULL) => return only_null(args, interface),
        Err(error) => return Err(CommandFailure::new(error)),
    };
    let arguments = call::arguments(json, InterfaceSource::File(&args.file), procedure)?;
    Ok(of_procedure(procedure, arguments))
}

fn of_procedure(procedure: Procedure<'_>, arguments: Value) -> ProfiledProcedure<'_> {
    ProfiledProcedure {
        name: procedure.name().to_owned(),
        program: procedure.program(),
        version: procedure.version(),
        procedure: Some(procedure),
        arguments,
    }
}

/// Returns procedure 0, which is there whatever the interface says.
pub fn null<'a>(program: &'a Program, version: &'a Version) -> ProfiledProcedure<'a> {
    let mut declared = version.procedures.iter();
    let declared = declared.find(|procedure| procedure.number == 0);
    ProfiledProcedure {
        name: declared.map_or_else(|| NULL.to_owned(), |procedure| procedure.name.clone()),
        program,
        version,
        procedure: None,
        arguments: Value::Void,
    }
}

/// Returns that of the highest version of the only program.
fn only_null<'a>(
    args: &AccountArgs,
    interface: &'a Interface,
) -> Result<ProfiledProcedure<'a>, CommandFailure> {
    let file = args.file.display();
    let [program] = &interface.schema().programs[..] else {
        return Err(CommandFailure::new(format!(
            "{file} has not one program: whose procedure 0 is meant?"
        )));
    };
    let versions = program.versions.iter();
    let versions = versions.filter(|version| args.version.is_none_or(|it| it == version.number));
    let version = versions.max_by_key(|version| version.number);
    let version =
        version.ok_or_else(|| CommandFailure::new(format!("{file} has no such version")))?;
    Ok(null(program, version))
}

/// Finds the procedure that takes nothing and has the largest result of those with a size that is known beforehand.
fn largest<'a>(
    args: &AccountArgs,
    interface: &'a Interface,
    representation: Representation,
) -> Result<ProfiledProcedure<'a>, CommandFailure> {
    let sizes = Sizes::new(interface.schema(), representation);
    let is_wanted = |procedure: &Procedure<'_>| {
        procedure.number() != 0
            && procedure.parameters().is_empty()
            && args
                .version
                .is_none_or(|it| it == procedure.version().number)
    };
    let known = interface.procedures().filter(is_wanted);
    let known = known.filter_map(|procedure| {
        let size = sizes.fixed(procedure.result()?)?;
        Some((size.bytes, procedure))
    });
    let largest = known.max_by_key(|(bytes, procedure)| (*bytes, procedure.version().number));
    let (_, procedure) = largest.ok_or_else(|| {
        let (address, file) = (&args.address, args.file.display());
        CommandFailure::new(format!(
            "{file} has no procedure without arguments whose result has a known size, to stand beside Null"
        ))
        .hint(format!(
            "say which: tenon account {address} {file} --beside 'PROCEDURE JSON'"
        ))
    })?;
    let nothing = procedure
        .read_arguments(None)
        .map_err(CommandFailure::new)?;
    Ok(of_procedure(procedure, nothing))
}

impl ProfiledProcedure<'_> {
    /// Makes one call.
    pub fn call(&self, client: &Client) -> Result<Value, CallError> {
        match (self.procedure, client.protocol()) {
            (Some(procedure), _) => tenon_dynamic::call(client, procedure, &self.arguments),
            (None, Protocol::Onc) => client.onc().call(0, |_| Ok(()), |_| Ok(Value::Void)),
            (None, Protocol::Lean) => client.lean().call(0, |_| Ok(()), |_| Ok(Value::Void)),
        }
    }

    /// Calls once and says how large the values were.
    pub fn bytes(
        &self,
        client: &Client,
        address: &Address,
    ) -> Result<MessageSizes, CommandFailure> {
        let result = self.call(client);
        let result = result.map_err(|error| connect::failure(address, &error))?;
        let Some(procedure) = self.procedure else {
            return Ok(MessageSizes {
                arguments: 0,
                result: 0,
            });
        };
        let mut buffer = Buffer::default();
        let sized = |encoded: Result<(), EncodeError>, buffer: &mut Buffer| {
            let bytes = buffer.len();
            buffer.clear();
            encoded.map(|()| bytes).map_err(CommandFailure::new)
        };
        let arguments = match client.protocol() {
            Protocol::Onc => {
                procedure.encode_arguments(&self.arguments, &mut Encoder::new(&mut buffer))
            }
            Protocol::Lean => {
                let out = &mut Encoder::<tenon::wire::Lean>::over(&mut buffer);
                procedure.encode_arguments(&self.arguments, out)
            }
        };
        let arguments = sized(arguments, &mut buffer)?;
        let result = match client.protocol() {
            Protocol::Onc => procedure.encode_result(&result, &mut Encoder::new(&mut buffer)),
            Protocol::Lean => {
                let out = &mut Encoder::<tenon::wire::Lean>::over(&mut buffer);
                procedure.encode_result(&result, out)
            }
        };
        let result = sized(result, &mut buffer)?;
        Ok(MessageSizes { arguments, result })
    }
}
