//! Calls with streams of values.

use std::sync::Arc;

use tenon::lean::CallStreams;
use tenon::wire::{Encoder, Lean};
use tenon::{
    ArgumentWriter, CallError, ClientView, DecodeItem, EncodeItem, ItemReader, ItemWriter,
    LeanInput, Protocol, ServedStreams, StreamPair,
};
use tenon_exec::{Interface, Procedure, Value};
use tenon_plan::{PlanError, Representation};
use tenon_schema::{Field, Procedure as Definition, ProcedureAnnotations, Schema, Streams, Type};

/// A procedure with streams, of which the items are values of their own.
#[derive(Debug, Clone)]
pub struct StreamedProcedure(Arc<StreamedPlans>);

/// An interface of its own, which has the call without its streams and an item of each as the results of procedures.
#[derive(Debug)]
struct StreamedPlans {
    interface: Interface,
    /// The number of the procedure, and those of procedures that return an item of its argument and of its result.
    number: u32,
    argument: Option<u32>,
    result: Option<u32>,
}

impl StreamedProcedure {
    /// Makes the plans for the messages of a procedure of `schema` by the lean protocol; `None` if it has no streams.
    ///
    /// # Errors
    /// An item is of a type that no message can hold.
    pub fn new(schema: &Schema, procedure: Procedure<'_>) -> Result<Option<Self>, PlanError> {
        let definition = procedure.definition();
        let (argument, result) = (definition.argument_item(), definition.result_item());
        if argument.is_none() && result.is_none() {
            return Ok(None);
        }
        let number = definition.number;
        let [of_argument, of_result] = [number.wrapping_add(1), number.wrapping_add(2)];
        let call = Definition {
            annotations: ProcedureAnnotations {
                streams: Streams::default(),
                ..definition.annotations.clone()
            },
            arguments: definition.call_arguments().to_vec(),
            result: definition.call_result().cloned(),
            ..definition.clone()
        };
        let item = |number, ty: &Type| Definition {
            number,
            arguments: Vec::new(),
            result: Some(ty.clone()),
            ..call.clone()
        };
        let argument_item = argument.map(|field: &Field| item(of_argument, &field.ty));
        let result_item = result.map(|ty| item(of_result, ty));
        let mut schema = schema.clone();
        let mut version = procedure.version().clone();
        let mut program = procedure.program().clone();
        let items = argument_item.into_iter().chain(result_item);
        version.procedures = [call].into_iter().chain(items).collect();
        program.versions = vec![version];
        schema.programs = vec![program];
        Ok(Some(Self(Arc::new(StreamedPlans {
            interface: Interface::with_representation(schema, Representation::LEAN)?,
            number,
            argument: argument.map(|_| of_argument),
            result: result.map(|_| of_result),
        }))))
    }

    fn part(&self, number: u32) -> Option<Procedure<'_>> {
        let mut procedures = self.0.interface.procedures();
        procedures.find(|procedure| procedure.number() == number)
    }

    /// The procedure without its streams: its other arguments, and its result if that is none.
    ///
    /// # Panics
    /// Never: it is there.
    pub fn call(&self) -> Procedure<'_> {
        match self.part(self.0.number) {
            Some(call) => call,
            None => unreachable!("it was put there"),
        }
    }

    /// A procedure of which the result is an item of the last argument, if that is a stream.
    pub fn argument_item(&self) -> Option<Procedure<'_>> {
        self.part(self.0.argument?)
    }

    /// A procedure of which the result is an item of the result, if that is a stream.
    pub fn result_item(&self) -> Option<Procedure<'_>> {
        self.part(self.0.result?)
    }

    /// Returns which streams it has.
    pub fn streams(&self) -> CallStreams {
        CallStreams {
            argument: self.0.argument.is_some(),
            result: self.0.result.is_some(),
        }
    }

    /// Reads the items of the argument of a call in its handler, if that is a stream.
    pub(crate) fn argument_reader(&self, streams: &ServedStreams) -> Option<ItemReader<Value>> {
        let decode = self.decode_item(Some(self.0.argument?));
        Some(ItemReader::of_handler(streams, decode))
    }

    /// Writes the items of the result of a call in its handler, if that is a stream.
    pub(crate) fn result_writer(&self, streams: &ServedStreams) -> Option<ItemWriter<Value>> {
        let encode = self.encode_item(Some(self.0.result?));
        Some(ItemWriter::of_handler(streams, encode))
    }

    fn encode_item(&self, number: Option<u32>) -> impl EncodeItem<Value> + use<> {
        let parts = self.clone();
        move |item: &Value, out: &mut Encoder<'_, Lean>| {
            let procedure = number.and_then(|number| parts.part(number));
            procedure.map_or(Ok(()), |procedure| procedure.encode_result(item, out))
        }
    }

    fn decode_item(&self, number: Option<u32>) -> impl DecodeItem<Value> + use<> {
        let parts = self.clone();
        move |input: &mut LeanInput<'_>| {
            let procedure = number.and_then(|number| parts.part(number));
            procedure.map_or(Ok(Value::Void), |procedure| match input {
                LeanInput::Native(input) => procedure.decode_result(input),
                LeanInput::Swapped(input) => procedure.decode_result(input),
            })
        }
    }
}

/// A call with streams that was opened.
#[derive(Debug)]
pub enum OpenedCall {
    /// The last argument is a stream.
    Argument(ArgumentWriter<Value, Value>),
    /// The result is a stream.
    Result(ItemReader<Value>),
    /// Both are.
    Both(StreamPair<Value, Value>),
}

/// Makes a call of a procedure with streams, with a [`Value::Struct`] of its other arguments. The client, which must be
/// one of the lean protocol, is a [`&Client`](tenon::Client), or one [with options](tenon::Client::with_options).
///
/// # Errors
/// The call cannot be sent; see [`CallError`].
pub fn open<'c>(
    client: impl Into<ClientView<'c>>,
    procedure: &StreamedProcedure,
    arguments: &Value,
) -> Result<OpenedCall, CallError> {
    let client = client.into();
    if client.protocol() == Protocol::Onc {
        let reason = "ONC RPC has none; connect to lean+tcp:// or another lean address";
        return Err(CallError::NoStreams { reason });
    }
    let (call, number) = (procedure.call(), procedure.0.number);
    let StreamedPlans {
        argument, result, ..
    } = &*procedure.0;
    let write = |out: &mut Encoder<'_, Lean>| call.encode_arguments(arguments, out);
    let lean = client.lean();
    Ok(match (argument, result) {
        (Some(_), Some(_)) => OpenedCall::Both(lean.open_both(
            number,
            write,
            procedure.encode_item(*argument),
            procedure.decode_item(*result),
        )?),
        (None, _) => {
            OpenedCall::Result(lean.open_result(number, write, procedure.decode_item(*result))?)
        }
        (Some(_), None) => OpenedCall::Argument(lean.open_argument(
            number,
            write,
            procedure.encode_item(*argument),
            procedure.decode_item(Some(number)),
        )?),
    })
}
