//! Stubs for Tenon's own run time: a header and a source file that need `tenon.h` and C's library alone.
//!
//! Types are those that C programmers know from rpcgen, with the numbers of `stdint.h`. What moves them is
//! printed from the plans of both representations by one printer, so that a program speaks ONC RPC and the
//! lean protocol; what functions share stands in `runtime.c`.

mod boxes;
mod chunks;
mod codec;
mod decode;
mod encode;
mod errors;
mod free;
mod header;
mod library;
mod lists;
mod macros;
mod messages;
mod procedures;
mod refused;
mod reserved;
mod source;
mod streams;

use std::collections::BTreeSet;

use tenon_plan::{BoxedArms, Fingerprints, Pass, Plans, Representation};
use tenon_schema::Schema;
use tenon_schema::written::{Item, Written};

pub use refused::{Refusal, StubErrorKind};

use super::procedures::procedures as all_procedures;
use super::{Dialect, Interface, rename};
use messages::StubProcedure;
use streams::{StreamTypes, StubStreams};

/// The two files of stubs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stubs {
    /// The text of the header.
    pub header: String,
    /// The text of the source file.
    pub source: String,
}

/// Prints the two files of stubs.
struct StubPrinter<'a> {
    of: Interface<'a>,
    /// The name of the interface file.
    interface: &'a str,
    /// The name without its extension.
    stem: &'a str,
    /// The plans in each representation.
    plans: &'a [Plans; 2],
    /// Arms that are pointers though the interface has none there.
    boxed: &'a BoxedArms,
    fingerprints: &'a Fingerprints<'a>,
    versions: Vec<StubVersion<'a>>,
    /// The name of the type of each procedure's result, which is used if it needs one.
    result_names: &'a [String],
}

/// A version of a program.
struct StubVersion<'a> {
    program: &'a tenon_schema::Program,
    version: &'a tenon_schema::Version,
    /// The same with its streams, which fingerprints know.
    declared: &'a tenon_schema::Version,
    /// The spelling of the numbers in the interface file.
    program_number: &'a str,
    version_number: &'a str,
    /// The name that its functions and tables are called after: `store_program_1`.
    name: String,
    /// Its procedures by number, with their positions among all.
    calls: Vec<(usize, StubProcedure<'a>)>,
}

/// Writes stubs for the interface in the file `name`, such as `nfs3.x`.
///
/// # Errors
/// C has no word for something, or two things would have one name.
pub fn generate(schema: &Schema, written: &Written, name: &str) -> Result<Stubs, Refusal> {
    // Fingerprints are those of the interface, not of the names in C.
    let fingerprints = Fingerprints::new(schema);
    let is_reserved = |what, name: &str| reserved::is_reserved(schema, what, name);
    let renamed = rename::for_c_without(schema, written, &is_reserved);
    let (renamed, written) =
        renamed.map_err(|error| refusal(schema, StubErrorKind::SameName(error)))?;
    let made = stubs(&renamed, &written, &fingerprints, name);
    made.map_err(|why| refusal(&renamed, why))
}

fn refusal(schema: &Schema, why: StubErrorKind) -> Refusal {
    let origin = why.origin(schema);
    Refusal { why, origin }
}

/// Writes stubs of an interface with names that C can have.
fn stubs(
    schema: &Schema,
    written: &Written,
    fingerprints: &Fingerprints<'_>,
    name: &str,
) -> Result<Stubs, StubErrorKind> {
    refused::check(schema)?;
    let plan = |representation| {
        let plans = Plans::new(schema, representation, Pass::ALL).map_err(StubErrorKind::Plan)?;
        Ok(plans.stripped())
    };
    let plans = [plan(Representation::XDR)?, plan(Representation::LEAN)?];
    let boxed = BoxedArms::of(schema);
    let declared = boxes::behind_pointers(schema, &boxed)?;
    let whole = Interface {
        schema: &declared,
        written,
        dialect: Dialect::Plain,
    };
    let streamed: Vec<StreamTypes> = all_procedures(whole)
        .map(|procedure| StreamTypes::of(&procedure))
        .collect();
    let (without, written) = streams::left_out(&declared, written);
    let of = Interface {
        schema: &without,
        written: &written,
        dialect: Dialect::Plain,
    };
    let result_names: Vec<String> = all_procedures(of)
        .map(|procedure| format!("{}_result", procedure.c_name()))
        .collect();
    let file = StubPrinter {
        of,
        interface: name,
        stem: name.rsplit_once('.').map_or(name, |(stem, _)| stem),
        plans: &plans,
        boxed: &boxed,
        fingerprints,
        versions: versions(of, &declared, &plans, &streamed),
        result_names: &result_names,
    };
    refused::check_made(schema, &file.made())?;
    let stubs = Stubs {
        header: file.header(),
        source: file.source(),
    };
    refused::check_defined(schema, &stubs, &file.passed())?;
    Ok(stubs)
}

fn versions<'a>(
    of: Interface<'a>,
    declared: &'a Schema,
    plans: &'a [Plans; 2],
    streamed: &'a [StreamTypes],
) -> Vec<StubVersion<'a>> {
    let mut versions = Vec::new();
    for (position, program) in of.schema.programs.iter().enumerate() {
        let written = &of.written.programs[position];
        for (index, version) in program.versions.iter().enumerate() {
            versions.push(StubVersion {
                program,
                version,
                declared: &declared.programs[position].versions[index],
                program_number: &written.number,
                version_number: &written.versions[index],
                name: of.dispatcher(position, index),
                calls: calls(of, plans, streamed, (position, index)),
            });
        }
    }
    versions
}

/// The procedures of a version by number.
fn calls<'a>(
    of: Interface<'a>,
    plans: &'a [Plans; 2],
    streamed: &'a [StreamTypes],
    place: (usize, usize),
) -> Vec<(usize, StubProcedure<'a>)> {
    let each = all_procedures(of).enumerate();
    let mine = each.filter(|(_, it)| (it.program, it.version) == place);
    let mut calls: Vec<(usize, StubProcedure<'a>)> = mine
        .map(|(position, procedure)| {
            let plans = plans.each_ref().map(|plans| &plans.procedures[position]);
            let call = StubProcedure {
                procedure,
                // Streams are no part of the messages of a call.
                plans: plans.map(|plan| plan.streams.as_ref().map_or(plan, |plans| &plans.call)),
                streams: StubStreams::of(&streamed[position], plans),
                index: None,
            };
            (position, call)
        })
        .collect();
    calls.sort_by_key(|(_, call)| call.procedure.definition.number);
    let (mut next, mut next_streamed) = (0, 0);
    for (_, call) in &mut calls {
        let definition = call.procedure.definition;
        let is_null = definition.number == 0
            && definition.arguments.is_empty()
            && definition.result.is_none()
            && call.streams.is_none();
        let next = match call.streams {
            None => &mut next,
            Some(_) => &mut next_streamed,
        };
        if !is_null {
            call.index = Some(*next);
            *next += 1;
        }
    }
    calls
}

impl<'a> StubPrinter<'a> {
    /// The lines of the header that are the interface's own C.
    fn passed(&self) -> BTreeSet<&'a str> {
        let items = self.of.written.items.iter();
        let lines = items.filter_map(|item| match item {
            Item::Passthrough(line) => Some(line.text.lines()),
            Item::Constant { .. } | Item::Type(_) | Item::Program(_) => None,
        });
        lines.flatten().collect()
    }

    /// All names that other files get to see, beside those of the interface.
    fn made(&self) -> Vec<String> {
        let types = self.of.schema.types.iter();
        let messages = types.map(|def| messages::message_name(&def.name));
        let mut made: Vec<String> = messages.collect();
        for version in &self.versions {
            for what in ["interface", "service", "serve"] {
                made.push(format!("{}_{what}", version.name));
            }
            for (_, call) in &version.calls {
                let name = call.procedure.c_name();
                if call.has_record() {
                    made.push(call.procedure.record_name());
                }
                if call.has_own_result() {
                    made.push(call.result_name());
                }
                if call.streams.is_none() {
                    made.push(name.clone());
                    if call.index.is_some() {
                        made.push(format!("{name}_start"));
                    }
                }
                made.extend(self.made_for_streams(call));
                made.extend(self.made_for_errors(call));
            }
        }
        made
    }
}
