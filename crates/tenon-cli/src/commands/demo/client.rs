//! The demonstration's client: calls every procedure, checks every answer, takes the times.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tenon::{Address, ChannelOptions, Client, Protocol, Transport, Waiting};
use tenon_dynamic::DynamicInterface;
use tenon_exec::{Interface, Procedure, Value};

use crate::commands::table::percentile;
use crate::failure::CommandFailure;

/// Times of the calls of one procedure, over one transport and by one protocol.
pub struct LatencyFigure {
    pub procedure: String,
    pub transport: Transport,
    pub protocol: Protocol,
    pub calls: u32,
    pub median: Duration,
    pub p99: Duration,
}

/// A call of the demonstration.
struct DemoCase {
    procedure: &'static str,
    /// Text that it is shown as.
    shown: &'static str,
    argument: Json,
    expected: Json,
    /// Whether its argument or its result takes 4 KB.
    is_large: bool,
}

impl DemoCase {
    /// Returns whether `address` carries it: past the kernel a message of ONC RPC is a single frame.
    fn goes_to(&self, address: &Address) -> bool {
        !self.is_large
            || (address.transport(), address.protocol()) != (Transport::Xdp, Protocol::Onc)
    }
}

/// Returns the calls of the demonstration.
fn cases() -> Vec<DemoCase> {
    let numbers: Vec<i32> = (1..=1000).collect();
    let small = |procedure, shown, argument, expected| DemoCase {
        procedure,
        shown,
        argument,
        expected,
        is_large: false,
    };
    let large = |procedure, shown, argument, expected| DemoCase {
        is_large: true,
        ..small(procedure, shown, argument, expected)
    };
    let (ada, hello) = (json!("Ada"), json!("Hello, Ada"));
    let found = json!({"what": "MACHINE", "address": "02005e100001"});
    vec![
        small("DEMO_NULL", "DEMO_NULL()", Json::Null, Json::Null),
        small("SAY_HELLO", "SAY_HELLO(\"Ada\")", ada, hello),
        large(
            "AVERAGE",
            "AVERAGE(1000 numbers)",
            json!(numbers),
            json!(500.5),
        ),
        large("COUNT_TO", "COUNT_TO(1000)", json!(1000), json!(numbers)),
        small("LOOK_UP", "LOOK_UP(\"printer\")", json!("printer"), found),
        small(
            "LOOK_UP",
            "LOOK_UP(\"nobody\")",
            json!("nobody"),
            Json::Null,
        ),
    ]
}

/// Makes `calls` calls of every case to each of `addresses` that carries it, by the protocol that the address says. They
/// take turns, so that a machine that is slow for a while is slow for all of them.
pub fn measure(
    interface: &DynamicInterface,
    addresses: &[Address],
    calls: u32,
    waiting: Waiting,
) -> Result<Vec<LatencyFigure>, CommandFailure> {
    let mut figures = Vec::new();
    for case in cases() {
        let all = addresses.iter().filter(|address| case.goes_to(address));
        let all = all.map(|address| {
            CallSeries::of(interface, case.procedure, &case.argument, address, waiting)
        });
        let mut all = all.collect::<Result<Vec<_>, _>>()?;
        let mut left = calls;
        while left > 0 {
            let turn = left.min(TURN);
            for series in &mut all {
                series.call(turn)?;
            }
            left -= turn;
        }
        for series in all {
            figures.push(series.figure(case.shown, &case.expected)?);
        }
    }
    Ok(figures)
}

/// Calls until it is another protocol's turn.
const TURN: u32 = 100;

/// The calls of one procedure to one address.
struct CallSeries<'i> {
    address: Address,
    client: Client,
    procedure: Procedure<'i>,
    arguments: Value,
    /// The result of all of them.
    result: Option<Value>,
    times: Vec<Duration>,
}

impl<'i> CallSeries<'i> {
    fn of(
        interface: &'i DynamicInterface,
        name: &str,
        argument: &Json,
        address: &Address,
        waiting: Waiting,
    ) -> Result<Self, CommandFailure> {
        let interface = interface.of(address.protocol());
        let procedure = interface
            .procedure(name, None)
            .map_err(CommandFailure::new)?;
        let argument = (!argument.is_null()).then_some(argument);
        Ok(Self {
            address: address.clone(),
            client: client(interface, procedure, address, waiting)?,
            procedure,
            arguments: procedure
                .read_arguments(argument)
                .map_err(CommandFailure::new)?,
            result: None,
            times: Vec::new(),
        })
    }

    /// Takes the time of each call. From the value to the value: marshalling is part of it, JSON is
    /// not.
    fn call(&mut self, calls: u32) -> Result<(), CommandFailure> {
        for _ in 0..calls {
            let start = Instant::now();
            let result = tenon_dynamic::call(&self.client, self.procedure, &self.arguments);
            self.times.push(start.elapsed());
            let result = result.map_err(CommandFailure::new)?;
            if *self.result.get_or_insert_with(|| result.clone()) != result {
                let name = self.procedure.name();
                return Err(CommandFailure::new(format!("{name}: answers differ")));
            }
        }
        Ok(())
    }

    fn figure(mut self, shown: &str, expected: &Json) -> Result<LatencyFigure, CommandFailure> {
        check(self.procedure, self.result, expected)?;
        self.times.sort_unstable();
        Ok(LatencyFigure {
            procedure: shown.to_owned(),
            transport: self.address.transport(),
            protocol: self.address.protocol(),
            calls: self.times.len() as u32,
            median: percentile(&self.times, 50),
            p99: percentile(&self.times, 99),
        })
    }
}

/// Creates a client of the procedure's program.
pub fn client(
    interface: &Interface,
    procedure: Procedure<'_>,
    address: &Address,
    waiting: Waiting,
) -> Result<Client, CommandFailure> {
    let (program, version) = (procedure.program(), procedure.version());
    let (address, options) = (address.to_string(), ChannelOptions::default());
    let options = options.waiting(waiting);
    let client = Client::connect_with(&address, program.number, version.number, options);
    let made_from = tenon_dynamic::lean_interface(interface.schema(), program, version);
    Ok(client
        .map_err(CommandFailure::new)?
        .with_interface(made_from))
}

fn check(
    procedure: Procedure<'_>,
    result: Option<Value>,
    expected: &Json,
) -> Result<(), CommandFailure> {
    let result = result.unwrap_or_default();
    let json = procedure
        .write_result(&result)
        .map_err(CommandFailure::new)?;
    match json == *expected {
        true => Ok(()),
        false => Err(CommandFailure::new(format!(
            "{} answered {json}, not {expected}",
            procedure.name()
        ))),
    }
}
