//! Clients and servers: for each version of a program its numbers, the trait of its [`calls`], a [`client`] with a method
//! per procedure, a trait for the [`server`], the adapter between that and the run time, and the one for callers
//! [of the same process](in_process); if it is asked for the same for [`tasks`]. Of one interface both speak ONC RPC, and
//! the lean protocol too if it is made for that representation.

mod call;
mod calls;
mod client;
mod errors;
mod in_process;
mod interface;
mod lent;
mod reserved;
mod server;
mod streams;
mod tasks;

use std::borrow::Cow;

use tenon_plan::{Fingerprints, Plans, ProcedurePlan};
use tenon_schema::{Field, Procedure, Program, Version};

use self::calls::CallTrait;
use self::streams::{MethodStreams, StreamFlavor};
use super::RustFile;
use super::marshal::MarshalGenerator;
use super::names::{ProcedureNames, ProgramNames, VersionNames};
use super::shape::TypeShape;
use super::types::write_deprecated;
use crate::rust::code::{BlockExpr, Expr};
use crate::writer::{SourceWriter, literal};

/// The protocols that clients and servers speak.
#[derive(Clone, Copy)]
pub struct ProtocolSet<'a> {
    /// ONC RPC, always.
    pub onc: MarshalGenerator<'a>,
    /// The lean protocol.
    pub lean: Option<LeanMarshalling<'a>>,
}

/// The marshalling code and the fingerprints for the lean protocol.
#[derive(Clone, Copy)]
pub struct LeanMarshalling<'a> {
    /// The generator of the marshalling code.
    pub with: MarshalGenerator<'a>,
    /// The fingerprints that both ends compare.
    pub fingerprints: &'a Fingerprints<'a>,
}

/// A version of a program with its names.
struct ServiceVersion<'a> {
    version: &'a Version,
    program: &'a ProgramNames,
    names: &'a VersionNames,
    methods: Vec<ServiceMethod<'a>>,
    /// The procedures with streams; none if the lean protocol is not spoken.
    streamed: Vec<ServiceMethod<'a>>,
}

impl ServiceVersion<'_> {
    /// Returns all procedures.
    fn all(&self) -> impl Iterator<Item = &ServiceMethod<'_>> {
        self.methods.iter().chain(&self.streamed)
    }

    /// Returns the procedures without streams that a server carries out: procedure 0 every server answers by itself.
    fn served(&self) -> Vec<&ServiceMethod<'_>> {
        let methods = self.methods.iter();
        methods.filter(|of| of.procedure.number != 0).collect()
    }

    /// Writes the method of a service that returns what the interface says of a procedure.
    fn write_procedure(&self, w: &mut SourceWriter, rust: &RustFile<'_>) {
        if self.all().next().is_none() {
            return;
        }
        rust.uses(&["ProcedureInfo"]);
        let arms = self.all().map(|method| {
            let info = Expr::text(format!("Some({}::INFO)", method.names.call));
            (method.names.number.clone(), BlockExpr::value(info))
        });
        let otherwise = ("_".to_owned(), BlockExpr::value(Expr::text("None")));
        let arms = arms.chain([otherwise]).collect();
        let found = Expr::Match(Box::new(Expr::text("number")), arms);
        w.gap();
        w.braces(
            "fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>>",
            |w| BlockExpr::value(found).write(w),
        );
    }

    /// Returns what the interface says of a procedure.
    fn info(&self, method: &ServiceMethod<'_>) -> Expr {
        let constructor = match method.procedure.annotations.idempotent {
            true => "ProcedureInfo::idempotent",
            false => "ProcedureInfo::new",
        };
        let [service, name] =
            [&self.version.name, &method.procedure.name].map(|name| literal(name));
        let arguments = [&service, &name, &method.names.number];
        Expr::call(constructor, arguments.map(Expr::text))
    }
}

/// A procedure with all that is known about it.
struct ServiceMethod<'a> {
    procedure: &'a Procedure,
    names: Cow<'a, ProcedureNames>,
    /// Its streams, if it has some. Neither the parameters nor the result have them.
    streams: Option<MethodStreams<'a>>,
    plan: &'a ProcedurePlan,
    /// Its plan for the lean protocol, if that is spoken.
    lean: Option<&'a ProcedurePlan>,
    /// The generator of the code that moves the messages of both protocols, if they share it.
    shared: Option<MarshalGenerator<'a>>,
    parameters: Vec<TypeShape>,
    result: Option<TypeShape>,
}

impl ServiceMethod<'_> {
    fn result_text(&self, rust: &RustFile<'_>) -> String {
        let result = self.result.as_ref();
        result.map_or("()".to_owned(), |shape| rust.type_text(shape))
    }

    fn write_doc(&self, w: &mut SourceWriter) {
        match self.procedure.doc.trim().is_empty() {
            true => w.line(format!("/// The procedure `{}`.", self.procedure.name)),
            false => w.doc("///", &self.procedure.doc),
        }
    }

    /// Writes that callers are advised against it, if they are.
    fn write_deprecated(&self, w: &mut SourceWriter) {
        write_deprecated(w, self.procedure.annotations.deprecated.as_ref());
    }
}

/// Writes the programs that belong into the module that is being written.
pub fn write(w: &mut SourceWriter, protocols: ProtocolSet<'_>) {
    let rust = protocols.onc.rust;
    for position in rust.here().programs.iter().copied() {
        let (program, names) = (
            &rust.schema.programs[position],
            &rust.names.programs[position],
        );
        let plans = protocols.onc.form.plans.procedures.iter().enumerate();
        let mut plans = plans.filter(|(_, plan)| plan.program == position);
        let lean = protocols.lean.into_iter();
        let mut lean_plans = lean.flat_map(|lean| plans_of(lean.with.form.plans, position));
        write_program_number(w, program, names);
        for (version, version_names) in program.versions.iter().zip(&names.versions) {
            let procedures = version.procedures.iter().zip(&version_names.procedures);
            let methods = procedures.zip(&mut plans);
            let methods = methods.map(|((procedure, names), (index, plan))| {
                let lean = lean_plans.next();
                match streamed(rust, procedure, names, (plan, lean)) {
                    Some(method) => method,
                    None => ServiceMethod {
                        procedure,
                        names: Cow::Borrowed(names),
                        streams: None,
                        plan,
                        lean,
                        shared: shared(rust, index),
                        parameters: shapes_of(rust, &procedure.arguments),
                        result: procedure.result.as_ref().map(|ty| rust.shapes.of(ty)),
                    },
                }
            });
            let has_streams = |method: &ServiceMethod<'_>| method.plan.streams.is_some();
            let (streamed, methods): (Vec<_>, Vec<_>) = methods
                .filter(|method| method.streams.is_some() || !has_streams(method))
                .partition(|method| method.streams.is_some());
            let versioned = ServiceVersion {
                version,
                program: names,
                names: version_names,
                methods,
                streamed,
            };
            write_version(w, protocols, &versioned);
        }
    }
}

fn shapes_of(rust: &RustFile<'_>, fields: &[Field]) -> Vec<TypeShape> {
    let shapes = fields.iter().map(|field| rust.shapes.of(&field.ty));
    shapes.collect()
}

/// Returns a procedure that has streams, of which the lean protocol has a plan: ONC RPC carries none.
fn streamed<'a>(
    rust: &'a RustFile<'a>,
    procedure: &'a Procedure,
    names: &'a ProcedureNames,
    (plan, lean): (&'a ProcedurePlan, Option<&'a ProcedurePlan>),
) -> Option<ServiceMethod<'a>> {
    let lean = lean?.streams.as_deref()?;
    let streams = MethodStreams::of(rust, procedure, lean, &names.parameters);
    let mut names = names.clone();
    names.parameters.truncate(procedure.call_arguments().len());
    Some(ServiceMethod {
        procedure,
        names: Cow::Owned(names),
        streams: Some(streams),
        plan: &plan.streams.as_deref()?.call,
        lean: Some(&lean.call),
        shared: None,
        parameters: shapes_of(rust, procedure.call_arguments()),
        result: procedure.call_result().map(|ty| rust.shapes.of(ty)),
    })
}

/// Returns the generator for the messages of the procedure that has its plan at `index`, if both protocols share the
/// code.
fn shared<'a>(rust: &'a RustFile<'a>, index: usize) -> Option<MarshalGenerator<'a>> {
    let shared = rust.shared.as_ref();
    let shared = shared.filter(|shared| shared.alike.is_procedure(index))?;
    Some(MarshalGenerator::of(rust, &shared.form))
}

/// The plans of the procedures of the program at `position`: all plans are in the order of the interface.
fn plans_of(plans: &Plans, position: usize) -> std::slice::Iter<'_, ProcedurePlan> {
    let start = plans
        .procedures
        .partition_point(|plan| plan.program < position);
    let end = plans
        .procedures
        .partition_point(|plan| plan.program <= position);
    plans.procedures[start..end].iter()
}

fn write_program_number(w: &mut SourceWriter, program: &Program, names: &ProgramNames) {
    w.gap();
    w.line(format!("/// The number of the program `{}`.", program.name));
    write_further_doc(w, &program.doc);
    w.line(format!(
        "pub const {}: u32 = {};",
        names.number, program.number
    ));
}

fn write_further_doc(w: &mut SourceWriter, doc: &str) {
    if !doc.trim().is_empty() {
        w.line("///");
        w.doc("///", doc);
    }
}

fn write_version(w: &mut SourceWriter, protocols: ProtocolSet<'_>, of: &ServiceVersion<'_>) {
    let (version, names) = (of.version, of.names);
    w.gap();
    w.line(format!("/// The number of the version `{}`.", version.name));
    w.line(format!(
        "pub const {}: u32 = {};",
        names.number, version.number
    ));
    for method in of.all().filter(|of| !of.names.number_is_known) {
        let (name, number) = (&method.procedure.name, method.procedure.number);
        w.gap();
        w.line(format!("/// The number of the procedure `{name}`."));
        w.line(format!(
            "pub const {}: u32 = {number};",
            method.names.number
        ));
    }
    if let Some(lean) = protocols.lean {
        interface::write(w, lean, of);
    }
    let rust = protocols.onc.rust;
    for method in of.all() {
        errors::write(w, protocols, method);
    }
    let calls = CallTrait {
        name: &names.calls,
        client: &names.client,
        makes_calls: "MakeCalls",
        in_process: &names.in_process,
        is_async: false,
    };
    calls::write(w, rust, of, &calls);
    client::write(w, protocols, of);
    streams::write_client(w, rust, of, StreamFlavor::Threads);
    calls::write_client(w, rust, of, &calls);
    for method in of.all() {
        call::write(w, protocols, of, method);
        if let Some(lean) = protocols.lean {
            streams::write_items(w, lean.with, method);
        }
    }
    server::write(w, protocols, of);
    in_process::write(w, protocols, of, &calls, &names.server);
    if let Some(tokio) = &rust.options.tokio {
        write_tasks(w, protocols, of, tokio);
    }
}

/// Writes the client and the server of tasks, which need the crate at the path `tokio`.
fn write_tasks(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    tokio: &str,
) {
    let (rust, names) = (protocols.onc.rust, of.names);
    let calls = CallTrait {
        name: &names.async_calls,
        client: &names.async_client,
        makes_calls: &format!("{tokio}::MakeAsyncCalls"),
        in_process: &names.async_in_process,
        is_async: true,
    };
    calls::write(w, rust, of, &calls);
    client::write_async(w, protocols, of, tokio);
    streams::write_client(w, rust, of, StreamFlavor::Tasks(tokio));
    calls::write_client(w, rust, of, &calls);
    tasks::write(w, protocols, of, tokio);
    in_process::write(w, protocols, of, &calls, &names.async_server);
}
