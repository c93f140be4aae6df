//! A service without generated code: one handler over values for all procedures.

use std::fmt;
use std::sync::Arc;

use tenon::lean;
use tenon::wire::{Buffer, Decoder, Encoder, Lean, Representation};
use tenon::{CallInfo, LeanInput, LeanService, ProcedureInfo, Protocol, Refusal, Service};
use tenon_exec::{Procedure, Value};
use tenon_schema::{Program, Version};

use crate::interface::{DynamicInterface, lean_interface};

/// Carries out the calls of a [`DynamicService`]. Closures of the same parameters are handlers.
pub trait DynamicHandler: Send + Sync + 'static {
    /// Carries a call out. The arguments are a [`Value::Struct`] of the procedure's; the result is a value of its type,
    /// or [`Value::Void`]. One that is neither is told to the caller as a failure, and why to the server's log.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn handle(&self, call: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal>;
}

impl<F> DynamicHandler for F
where
    F: Fn(&DynamicCall<'_>, Value) -> Result<Value, Refusal> + Send + Sync + 'static,
{
    fn handle(&self, call: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal> {
        self(call, arguments)
    }
}

/// A call, to be carried out by a handler.
#[derive(Debug, Clone, Copy)]
pub struct DynamicCall<'a> {
    info: &'a CallInfo<'a>,
    interface: &'a DynamicInterface,
    procedure: Procedure<'a>,
}

impl<'a> DynamicCall<'a> {
    /// What is known of the call and its caller.
    pub fn info(&self) -> &'a CallInfo<'a> {
        self.info
    }

    /// The procedure that is called.
    pub fn procedure(&self) -> Procedure<'a> {
        self.procedure
    }

    /// Returns the refusal by which the procedure raises an error that the interface declares for it, by the name of its
    /// type. What is not declared, or is no value of the type, is a [`Refusal::SystemError`] that says so.
    pub fn raise(&self, name: &str, error: &Value) -> Refusal {
        let (program, version) = (self.procedure.program(), self.procedure.version());
        let lean = self.interface.of(Protocol::Lean);
        let number = self.procedure.number();
        let procedure = lean.numbered(program.number, version.number, number);
        let raised = procedure.and_then(|procedure| {
            let raised = procedure.raised(name, error.clone())?;
            Some((procedure, raised))
        });
        let Some((procedure, raised)) = raised else {
            let procedure = self.procedure.name();
            return Refusal::SystemError(format!("{procedure} raises no `{name}`"));
        };
        let mut details = Buffer::default();
        let mut out = Encoder::<Lean>::over(&mut details);
        match procedure.encode_raised(&raised, &mut out) {
            Ok(()) => Refusal::Raised {
                message: name.to_owned(),
                details: details.as_slice().to_vec(),
            },
            Err(error) => Refusal::SystemError(format!("`{name}` cannot be raised: {error}")),
        }
    }
}

/// Serves a version of a program of an interface that is known only at run time, by both protocols.
pub struct DynamicService<H> {
    interface: Arc<DynamicInterface>,
    /// The positions of the program in the interface, and of the version in the program.
    program: usize,
    version: usize,
    lean: Arc<lean::Interface>,
    handler: Arc<H>,
}

impl<H: DynamicHandler> DynamicService<H> {
    /// Makes a service for each version of each program of the interface. They share the handler.
    pub fn of_all(interface: &Arc<DynamicInterface>, handler: H) -> Vec<Self> {
        let handler = Arc::new(handler);
        let schema = interface.schema();
        let programs = schema.programs.iter().enumerate();
        let versions = programs.flat_map(|(at, program)| {
            let versions = program.versions.iter().enumerate();
            versions.map(move |(version_at, version)| (at, version_at, program, version))
        });
        let services = versions.map(|(at, version_at, program, version)| Self {
            interface: Arc::clone(interface),
            program: at,
            version: version_at,
            lean: lean_interface(schema, program, version),
            handler: Arc::clone(&handler),
        });
        services.collect()
    }

    fn definition(&self) -> (&Program, &Version) {
        let program = &self.interface.schema().programs[self.program];
        (program, &program.versions[self.version])
    }

    /// Carries a call out whose messages lie as the plans for `protocol` say.
    fn serve(
        &self,
        protocol: Protocol,
        info: &CallInfo<'_>,
        input: &mut Decoder<'_, impl Representation>,
        out: &mut Encoder<'_, impl Representation>,
    ) -> Result<(), Refusal> {
        let (program, version) = self.definition();
        let interface = self.interface.of(protocol);
        let procedure = interface.numbered(program.number, version.number, info.procedure());
        let procedure = procedure.ok_or(Refusal::ProcedureUnavailable)?;
        let arguments = procedure.decode_arguments(input)?;
        input.finish()?;
        let call = DynamicCall {
            info,
            interface: &self.interface,
            procedure,
        };
        let result = self.handler.handle(&call, arguments)?;
        Ok(procedure.encode_result(&result, out)?)
    }
}

impl<H: DynamicHandler> Service for DynamicService<H> {
    fn program(&self) -> u32 {
        self.definition().0.number
    }

    fn version(&self) -> u32 {
        self.definition().1.number
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        let version = self.definition().1;
        let mut procedures = version.procedures.iter();
        let procedure = procedures.find(|procedure| procedure.number == number)?;
        Some(match procedure.annotations.idempotent {
            true => ProcedureInfo::idempotent(&version.name, &procedure.name, number),
            false => ProcedureInfo::new(&version.name, &procedure.name, number),
        })
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.serve(Protocol::Onc, call, arguments, result)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl<H: DynamicHandler> LeanService for DynamicService<H> {
    fn interface(&self) -> Arc<lean::Interface> {
        Arc::clone(&self.lean)
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        match arguments {
            LeanInput::Native(mut input) => self.serve(Protocol::Lean, call, &mut input, result),
            LeanInput::Swapped(mut input) => self.serve(Protocol::Lean, call, &mut input, result),
        }
    }
}

impl<H> fmt::Debug for DynamicService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.interface.schema().programs[self.program];
        let version = &program.versions[self.version];
        write!(f, "DynamicService({}, {})", program.name, version.name)
    }
}
