//! The demonstration's server: procedures over values that are known only at run time.

use std::path::Path;
use std::sync::Arc;

use tenon::lean;
use tenon::wire::{BString, Decoder, Encoder, Lean, Representation};
use tenon::{CallInfo, LeanInput, LeanService, Protocol, Refusal, Server, Service, Waiting};
use tenon_exec::{Interface, Value};

use super::DemoInterfaces;
use crate::commands::dynamic;
use crate::failure::CommandFailure;

/// `enum kind` of the interface.
const PERSON: i32 = 1;
const MACHINE: i32 = 2;

/// Returns the addresses at which the interface is served by default, by both protocols: over TCP and UDP, and on Linux
/// over a Unix socket in `directory` and in shared memory beside it.
pub fn addresses(directory: &Path) -> Vec<String> {
    let of_host = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"].map(str::to_owned);
    let of_directory = [("unix", "demo.sock"), ("shm", "demo.shm")]
        .map(|(scheme, name)| format!("{scheme}://{}", directory.join(name).display()));
    let mut addresses = Vec::from(of_host);
    if cfg!(target_os = "linux") {
        addresses.extend(of_directory);
    }
    addresses
}

/// Serves the interface at these addresses.
pub fn start(
    interfaces: DemoInterfaces,
    addresses: &[String],
    waiting: Waiting,
) -> Result<Server, CommandFailure> {
    let mut builder = Server::builder().waiting(waiting);
    for address in addresses {
        builder = builder.listen(address).map_err(CommandFailure::new)?;
    }
    builder
        .service(DemoService { interfaces })
        .start()
        .map_err(CommandFailure::new)
}

struct DemoService {
    interfaces: DemoInterfaces,
}

impl Service for DemoService {
    fn program(&self) -> u32 {
        self.interfaces.onc.schema().programs[0].number
    }

    fn version(&self) -> u32 {
        self.interfaces.onc.schema().programs[0].versions[0].number
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        serve(self.interfaces.of(Protocol::Onc), call, arguments, result)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for DemoService {
    fn interface(&self) -> Arc<lean::Interface> {
        let schema = self.interfaces.lean.schema();
        let program = &schema.programs[0];
        dynamic::made_from(schema, program, &program.versions[0])
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let interface = self.interfaces.of(Protocol::Lean);
        match arguments {
            LeanInput::Native(mut arguments) => serve(interface, call, &mut arguments, result),
            LeanInput::Swapped(mut arguments) => serve(interface, call, &mut arguments, result),
        }
    }
}

/// Carries out a call with arguments and a result that lie as `interface` was planned for.
fn serve(
    interface: &Interface,
    call: &CallInfo<'_>,
    arguments: &mut Decoder<'_, impl Representation>,
    result: &mut Encoder<'_, impl Representation>,
) -> Result<(), Refusal> {
    let mut procedures = interface.procedures();
    let procedure = procedures
        .find(|procedure| procedure.number() == call.procedure())
        .ok_or(Refusal::ProcedureUnavailable)?;
    let arguments = procedure.decode_arguments(arguments)?;
    let value = answer(procedure.name(), &arguments).ok_or(Refusal::ProcedureUnavailable)?;
    Ok(procedure.encode_result(&value, result)?)
}

/// Returns the result of the procedure `name`; `None` for one that is not implemented.
pub fn answer(name: &str, arguments: &Value) -> Option<Value> {
    let Value::Struct(arguments) = arguments else {
        return None;
    };
    match (name, arguments.as_slice()) {
        ("SAY_HELLO", [Value::String(name)]) => Some(say_hello(name)),
        ("AVERAGE", [Value::Array(numbers)]) => Some(average(numbers)),
        ("COUNT_TO", [Value::Int(last)]) => Some(count_to(*last)),
        ("LOOK_UP", [Value::String(name)]) => Some(look_up(name)),
        _ => None,
    }
}

fn say_hello(name: &BString) -> Value {
    let mut greeting = BString::from("Hello, ");
    greeting.extend_from_slice(name);
    Value::String(greeting)
}

fn average(numbers: &[Value]) -> Value {
    let number = |value: &Value| match value {
        Value::Int(number) => f64::from(*number),
        _ => 0.0,
    };
    let sum: f64 = numbers.iter().map(number).sum();
    Value::Double(sum / numbers.len().max(1) as f64)
}

fn count_to(last: i32) -> Value {
    const NUMBERS_MAX: i32 = 100_000;
    Value::Array((1..=last.min(NUMBERS_MAX)).map(Value::Int).collect())
}

fn look_up(name: &BString) -> Value {
    match name.as_slice() {
        b"Ada" => Value::some(Value::union(PERSON, Value::Int(42))),
        b"printer" => {
            let address = Value::Opaque(vec![0x02, 0x00, 0x5e, 0x10, 0x00, 0x01]);
            Value::some(Value::union(MACHINE, address))
        }
        _ => Value::Optional(None),
    }
}
