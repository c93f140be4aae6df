//! A service whose interface is known only at run time, and clients that know no more.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenon::wire::{Encoder, Lean};
use tenon::{CallError, CallErrorKind, Client, Protocol, Refusal, Server};
use tenon_dynamic::{DynamicCall, DynamicInterface, DynamicService, call, lean_interface, raised};
use tenon_exec::Value;

const TEXT: &str = r#"
    struct missing { unsigned hyper number; string name<>; };
    program SHELF {
        version SHELF_V1 {
            /*@ raises missing */
            string SHELF_TAKE(int, bool) = 1;
            void SHELF_CLEAR(void) = 2;
            int SHELF_MISFIT(void) = 3;
            string SHELF_FAR(int) = 70000;
        } = 1;
        version SHELF_V2 {
            hyper SHELF_TAKE(int) = 1;
        } = 2;
    } = 0x20000001;
    program OTHER {
        version OTHER_V1 {
            string OTHER_WHO(void) = 1;
        } = 1;
    } = 0x20000002;
"#;

fn interface(text: &str) -> Arc<DynamicInterface> {
    let parsed = tenon_idl::parse_text("shelf.x", text, &tenon_idl::Options::default());
    let problems = parsed.render(tenon_idl::Style::Plain);
    let schema = parsed.schema.unwrap_or_else(|| panic!("{problems}"));
    Arc::new(DynamicInterface::new(schema).unwrap())
}

fn missing(number: u64) -> Value {
    Value::Struct(vec![Value::Uhyper(number), Value::String("it".into())])
}

fn handle(call: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal> {
    let Value::Struct(arguments) = arguments else {
        panic!("the arguments are a struct");
    };
    let version = call.procedure().version().number;
    match (call.procedure().name(), version, &arguments[..]) {
        ("SHELF_TAKE", 1, [Value::Int(number), Value::Bool(is_there)]) => match is_there {
            true => Ok(Value::String(number.to_string().into())),
            false => Err(call.raise("missing", &missing(1 << 40))),
        },
        ("SHELF_TAKE", 2, [Value::Int(number)]) => Ok(Value::Hyper(i64::from(*number))),
        ("SHELF_CLEAR", 1, []) => Err(call.raise("missing", &missing(1))),
        ("SHELF_MISFIT", 1, []) => Ok(Value::Void),
        ("OTHER_WHO", 1, []) => {
            let transport = call.info().transport().expect("it came over a connection");
            Ok(Value::String(transport.to_string().into()))
        }
        _ => Err(Refusal::ProcedureUnavailable),
    }
}

fn server() -> (Server, [String; 2]) {
    let mut builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let services = DynamicService::of_all(&interface(TEXT), handle);
    assert_eq!(
        format!("{:?}", services[1]),
        "DynamicService(SHELF, SHELF_V2)"
    );
    for service in services {
        builder = builder.service(service);
    }
    let server = builder.start().unwrap();
    let onc = server.addresses()[0].to_string();
    let lean = format!("lean+{onc}");
    (server, [onc, lean])
}

/// Calls the procedure of that name in that version.
fn call_by_name(
    interface: &DynamicInterface,
    address: &str,
    (name, version): (&str, u32),
    arguments: &[Value],
) -> Result<Value, CallError> {
    let protocol = match address.starts_with("lean+") {
        true => Protocol::Lean,
        false => Protocol::Onc,
    };
    let procedure = interface.of(protocol).procedure(name, Some(version));
    let procedure = procedure.unwrap();
    let (program, version) = (procedure.program(), procedure.version());
    let client = Client::connect(address, program.number, version.number).unwrap();
    let client = client.with_interface(lean_interface(interface.schema(), program, version));
    let result = call(&client, procedure, &Value::Struct(arguments.to_vec()));
    if let Err(error) = &result
        && let Some(error) = raised(procedure, error)
    {
        assert_eq!(procedure.error_name(&error), "missing");
        assert_eq!(error.value, missing(1 << 40));
    }
    result
}

#[test]
fn one_handler_serves_every_procedure_by_both_protocols() {
    let (interface, (_server, addresses)) = (interface(TEXT), server());
    for address in &addresses {
        let call = |name, arguments: &[Value]| call_by_name(&interface, address, name, arguments);
        let there = [Value::Int(-7), Value::Bool(true)];
        assert_eq!(
            call(("SHELF_TAKE", 1), &there).unwrap(),
            Value::String("-7".into())
        );
        assert_eq!(
            call(("SHELF_TAKE", 2), &there[..1]).unwrap(),
            Value::Hyper(-7)
        );
        assert_eq!(
            call(("OTHER_WHO", 1), &[]).unwrap(),
            Value::String("tcp".into())
        );
    }
}

#[test]
fn what_a_handler_does_not_carry_out_is_told() {
    let (interface, (_server, addresses)) = (interface(TEXT), server());
    for (address, is_lean) in addresses.iter().zip([false, true]) {
        let kind = |name, arguments: &[Value]| {
            let error = call_by_name(&interface, address, name, arguments).unwrap_err();
            error.kind()
        };
        let raised = kind(("SHELF_TAKE", 1), &[Value::Int(1), Value::Bool(false)]);
        let failed = CallErrorKind::Failed;
        let expected = if is_lean {
            CallErrorKind::Raised
        } else {
            failed
        };
        assert_eq!(raised, expected);
        // An error that the interface does not declare for the procedure, and a result that is none of its.
        assert_eq!(kind(("SHELF_CLEAR", 1), &[]), failed);
        assert_eq!(kind(("SHELF_MISFIT", 1), &[]), failed);
        // Arguments that are none of the procedure's do not leave the client.
        assert_eq!(kind(("SHELF_TAKE", 2), &[]), CallErrorKind::InvalidCall);
    }
    let far = call_by_name(
        &interface,
        &addresses[0],
        ("SHELF_FAR", 1),
        &[Value::Int(1)],
    );
    assert_eq!(far.unwrap_err().kind(), CallErrorKind::NoProcedure);
}

/// Half of the arguments, and none of them, is refused as stubs do.
#[test]
fn arguments_that_are_none_of_the_procedure_are_refused() {
    let (_server, [onc, lean]) = server();
    for bytes in [&[0; 2][..], &[]] {
        let onc = Client::connect(&onc, 0x2000_0001, 2).unwrap();
        let put = |out: &mut Encoder<'_>| {
            out.room(bytes.len()).copy_from_slice(bytes);
            Ok(())
        };
        let error = onc.onc().call(1, put, |input| input.get::<i64>());
        assert_eq!(error.unwrap_err().kind(), CallErrorKind::InvalidArguments);
        let lean = Client::connect(&lean, 0x2000_0001, 2).unwrap();
        let put = |out: &mut Encoder<'_, Lean>| {
            out.room(bytes.len()).copy_from_slice(bytes);
            Ok(())
        };
        let error = lean.lean().call(1, put, |_| Ok(()));
        assert_eq!(error.unwrap_err().kind(), CallErrorKind::InvalidArguments);
    }
}

#[test]
fn another_interface_is_not_misread() {
    let (_server, [_, lean]) = server();
    let other = interface(&TEXT.replace("hyper SHELF_TAKE", "double SHELF_TAKE"));
    let error = call_by_name(&other, &lean, ("SHELF_TAKE", 2), &[Value::Int(1)]).unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::OtherInterface);
    // Of what is the same, calls go through.
    let here = [Value::Int(1), Value::Bool(true)];
    let same = call_by_name(&other, &lean, ("SHELF_TAKE", 1), &here).unwrap();
    assert_eq!(same, Value::String("1".into()));
}
