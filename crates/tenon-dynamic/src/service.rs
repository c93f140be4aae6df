//! A service without generated code: one handler over values for all procedures.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tenon::lean;
use tenon::wire::{Buffer, Decoder, Encoder, Lean, Representation};
use tenon::{
    CallInfo, ItemReader, ItemWriter, LeanInput, LeanService, ProcedureInfo, Protocol, Refusal,
    ServedStreams, Service,
};
use tenon_exec::{Procedure, Value};
use tenon_schema::{Program, Version};

use crate::interface::{DynamicInterface, lean_interface};
use crate::streams::StreamedProcedure;

/// Carries out the calls of a [`DynamicService`]. Closures of the same parameters are handlers.
pub trait DynamicHandler: Send + Sync + 'static {
    /// Carries a call out. The arguments are a [`Value::Struct`] of the procedure's; the result is a value of its type,
    /// or [`Value::Void`]. One that is neither is told to the caller as a failure, and why to the server's log.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn handle(&self, call: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal>;

    /// Carries out a call of a procedure with streams. The arguments are a [`Value::Struct`] of those but the stream; the
    /// result is a value of the procedure's type, or [`Value::Void`] if that is a stream, and follows the items. By default
    /// there is no such procedure.
    ///
    /// # Errors
    /// Why the call is not carried out, or not to its end; the caller is told so behind the items.
    fn handle_streams(
        &self,
        _call: &DynamicCall<'_>,
        _arguments: Value,
        _streams: &mut DynamicStreams<'_>,
    ) -> Result<Value, Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
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

/// The streams of a call, as its handler has them.
#[derive(Debug)]
pub struct DynamicStreams<'a> {
    procedure: &'a StreamedProcedure,
    /// The items of the last argument, if that is a stream.
    pub arguments: Option<ItemReader<Value>>,
    /// Takes the items of the result, if that is a stream.
    pub results: Option<ItemWriter<Value>>,
}

impl<'a> DynamicStreams<'a> {
    /// The procedure, and the types of its items.
    pub fn procedure(&self) -> &'a StreamedProcedure {
        self.procedure
    }
}

/// Serves a version of a program of an interface that is known only at run time, by both protocols.
pub struct DynamicService<H> {
    interface: Arc<DynamicInterface>,
    /// The positions of the program in the interface, and of the version in the program.
    program: usize,
    version: usize,
    lean: Arc<lean::Interface>,
    /// The procedures with streams, by their numbers.
    streamed: HashMap<u32, StreamedProcedure>,
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
            streamed: streamed(interface, program, version),
            handler: Arc::clone(&handler),
        });
        services.collect()
    }

    fn definition(&self) -> (&Program, &Version) {
        let program = &self.interface.schema().programs[self.program];
        (program, &program.versions[self.version])
    }

    /// Carries out a call with streams.
    fn serve_streams(
        &self,
        info: &CallInfo<'_>,
        input: &mut Decoder<'_, impl Representation>,
        streams: &ServedStreams,
        out: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let streamed = self.streamed.get(&info.procedure());
        let streamed = streamed.ok_or(Refusal::ProcedureUnavailable)?;
        streams.expect(streamed.streams())?;
        let procedure = streamed.call();
        let arguments = procedure.decode_arguments(input)?;
        input.finish()?;
        let call = DynamicCall {
            info,
            interface: &self.interface,
            procedure,
        };
        let mut items = DynamicStreams {
            procedure: streamed,
            arguments: streamed.argument_reader(streams),
            results: streamed.result_writer(streams),
        };
        let handled = self.handler.handle_streams(&call, arguments, &mut items);
        // What was fed before a failure is sent before it is told.
        let flushed = items.results.as_mut().map_or(Ok(()), ItemWriter::flush);
        let result = handled?;
        flushed?;
        Ok(procedure.encode_result(&result, out)?)
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
        if self.streamed.contains_key(&info.procedure()) {
            return Err(match protocol {
                // ONC RPC has nothing of the kind.
                Protocol::Onc => Refusal::ProcedureUnavailable,
                Protocol::Lean => Refusal::InvalidArguments(
                    "the procedure has streams, and the call none".to_owned(),
                ),
            });
        }
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

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        match arguments {
            LeanInput::Native(mut input) => self.serve_streams(call, &mut input, streams, result),
            LeanInput::Swapped(mut input) => self.serve_streams(call, &mut input, streams, result),
        }
    }
}

/// Returns the procedures of a version that have streams, by their numbers.
fn streamed(
    interface: &DynamicInterface,
    program: &Program,
    version: &Version,
) -> HashMap<u32, StreamedProcedure> {
    let lean = interface.of(Protocol::Lean);
    let numbers = version.procedures.iter().map(|procedure| procedure.number);
    let streamed = numbers.filter_map(|number| {
        let procedure = lean.numbered(program.number, version.number, number)?;
        // Its interface has plans, and so has a part of it.
        let streamed = StreamedProcedure::new(lean.schema(), procedure).ok()??;
        Some((number, streamed))
    });
    streamed.collect()
}

impl<H> fmt::Debug for DynamicService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.interface.schema().programs[self.program];
        let version = &program.versions[self.version];
        write!(f, "DynamicService({}, {})", program.name, version.name)
    }
}
