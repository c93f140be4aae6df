//! The demonstration's client: calls every procedure, checks every answer, takes the times.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tenon::{Address, Client, Protocol, Transport};
use tenon_exec::{Interface, Procedure};

use super::Interfaces;
use crate::commands::dynamic;
use crate::commands::table::percentile;
use crate::failure::Failure;

/// What the calls of one procedure took, over one transport and by one protocol.
pub struct Figure {
    pub procedure: String,
    pub transport: Transport,
    pub protocol: Protocol,
    pub calls: u32,
    pub median: Duration,
    pub p99: Duration,
}

/// The calls of the demonstration: procedure, what to show it as, argument, expected answer.
fn cases() -> Vec<(&'static str, &'static str, Json, Json)> {
    let numbers: Vec<i32> = (1..=1000).collect();
    vec![
        ("DEMO_NULL", "DEMO_NULL()", Json::Null, Json::Null),
        (
            "SAY_HELLO",
            "SAY_HELLO(\"Ada\")",
            json!("Ada"),
            json!("Hello, Ada"),
        ),
        (
            "AVERAGE",
            "AVERAGE(1000 numbers)",
            json!(numbers),
            json!(500.5),
        ),
        ("COUNT_TO", "COUNT_TO(1000)", json!(1000), json!(numbers)),
        (
            "LOOK_UP",
            "LOOK_UP(\"printer\")",
            json!("printer"),
            json!({"what": "MACHINE", "address": "02005e100001"}),
        ),
        (
            "LOOK_UP",
            "LOOK_UP(\"nobody\")",
            json!("nobody"),
            Json::Null,
        ),
    ]
}

/// Makes `calls` calls of every case to `address`, by the protocol that it says.
pub fn measure(
    interfaces: &Interfaces,
    address: &Address,
    calls: u32,
) -> Result<Vec<Figure>, Failure> {
    let interface = interfaces.of(address.protocol());
    let mut figures = Vec::new();
    for (name, shown, argument, expected) in cases() {
        let procedure = interface.procedure(name, None).map_err(Failure::new)?;
        let client = client(interface, procedure, address)?;
        let times = times(&client, procedure, &argument, &expected, calls)?;
        figures.push(Figure {
            procedure: shown.to_owned(),
            transport: address.transport(),
            protocol: address.protocol(),
            calls,
            median: percentile(&times, 50),
            p99: percentile(&times, 99),
        });
    }
    Ok(figures)
}

fn client(
    interface: &Interface,
    procedure: Procedure<'_>,
    address: &Address,
) -> Result<Client, Failure> {
    let (program, version) = (procedure.program(), procedure.version());
    let client = Client::connect(&address.to_string(), program.number, version.number);
    let made_from = dynamic::made_from(interface.schema(), program, version);
    Ok(client.map_err(Failure::new)?.with_interface(made_from))
}

/// How long each call took, sorted. From the value to the value: marshalling is part of it, JSON
/// is not.
fn times(
    client: &Client,
    procedure: Procedure<'_>,
    argument: &Json,
    expected: &Json,
    calls: u32,
) -> Result<Vec<Duration>, Failure> {
    let argument = (!argument.is_null()).then_some(argument);
    let arguments = procedure.read_arguments(argument).map_err(Failure::new)?;
    let mut times = Vec::new();
    let mut first = None;
    for _ in 0..calls {
        let start = Instant::now();
        let result = dynamic::call(client, procedure, &arguments);
        times.push(start.elapsed());
        let result = result.map_err(Failure::new)?;
        if *first.get_or_insert_with(|| result.clone()) != result {
            return Err(Failure::new(format!(
                "{}: answers differ",
                procedure.name()
            )));
        }
    }
    check(procedure, first, expected)?;
    times.sort_unstable();
    Ok(times)
}

fn check(
    procedure: Procedure<'_>,
    result: Option<tenon_exec::Value>,
    expected: &Json,
) -> Result<(), Failure> {
    let result = result.unwrap_or_default();
    let json = procedure.write_result(&result).map_err(Failure::new)?;
    match json == *expected {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} answered {json}, not {expected}",
            procedure.name()
        ))),
    }
}
