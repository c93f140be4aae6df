//! The demonstration's server: procedures over values that are known only at run time.

use std::path::Path;
use std::sync::Arc;

use tenon::health::Health;
use tenon::wire::BString;
use tenon::{Protocol, Refusal, Server, Waiting};
use tenon_descriptor::Descriptor;
use tenon_dynamic::{DynamicCall, DynamicInterface, DynamicService};
use tenon_exec::Value;
use tenon_reflection::Reflection;

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

/// Serves the interface at these addresses, and tells of it and of the server's health.
pub fn start(
    interface: DynamicInterface,
    addresses: &[String],
    waiting: Waiting,
) -> Result<Server, CommandFailure> {
    let mut builder = Server::builder().waiting(waiting);
    for address in addresses {
        builder = builder.listen(address).map_err(CommandFailure::new)?;
    }
    let descriptor = Descriptor::new(interface.of(Protocol::Onc).schema());
    let reflection = Reflection::new().with(descriptor.map_err(CommandFailure::new)?);
    builder = builder
        .health(&Health::new())
        .service(reflection.map_err(CommandFailure::new)?.service());
    let handler = |call: &DynamicCall<'_>, arguments: Value| {
        answer(call.procedure().name(), &arguments).ok_or(Refusal::ProcedureUnavailable)
    };
    for service in DynamicService::of_all(&Arc::new(interface), handler) {
        builder = builder.service(service);
    }
    builder.start().map_err(CommandFailure::new)
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
