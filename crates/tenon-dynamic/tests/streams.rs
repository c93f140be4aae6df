//! A service with streams whose interface is known only at run time, and clients that know no more.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenon::{CallErrorKind, Client, Protocol, Refusal, Server};
use tenon_dynamic::{
    DynamicCall, DynamicHandler, DynamicInterface, DynamicService, DynamicStreams, OpenedCall,
    StreamedProcedure, lean_interface, open,
};
use tenon_exec::Value;

const TEXT: &str = r#"
    struct odd { int number; };
    program NUMBERS {
        version NUMBERS_V1 {
            int SUM(int start, int number) = 1; /*@ stream arguments */
            int COUNT(int to) = 2; /*@ stream result; raises odd */
            hyper DOUBLE(int number) = 3; /*@ stream arguments, result */
            int PLAIN(int) = 4;
        } = 1;
    } = 0x20000001;
"#;

struct Numbers;

impl DynamicHandler for Numbers {
    fn handle(&self, _: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal> {
        let Value::Struct(mut arguments) = arguments else {
            panic!("the arguments are a struct");
        };
        Ok(arguments.remove(0))
    }

    fn handle_streams(
        &self,
        call: &DynamicCall<'_>,
        arguments: Value,
        streams: &mut DynamicStreams<'_>,
    ) -> Result<Value, Refusal> {
        let Value::Struct(arguments) = arguments else {
            panic!("the arguments are a struct");
        };
        let number = |value: &Value| match value {
            Value::Int(number) => *number,
            other => panic!("{other:?} is no int"),
        };
        match (
            call.procedure().name(),
            &mut streams.arguments,
            &mut streams.results,
        ) {
            ("SUM", Some(items), None) => {
                let mut sum = number(&arguments[0]);
                for item in items {
                    sum += number(&item?);
                }
                Ok(Value::Int(sum))
            }
            ("COUNT", None, Some(results)) => {
                let to = number(&arguments[0]);
                for at in 0..to {
                    results.feed(&Value::Int(at))?;
                }
                match to % 2 {
                    0 => Ok(Value::Void),
                    _ => Err(call.raise("odd", &Value::Struct(vec![Value::Int(to)]))),
                }
            }
            ("DOUBLE", Some(items), Some(results)) => {
                for item in items {
                    results.send(&Value::Hyper(2 * i64::from(number(&item?))))?;
                }
                Ok(Value::Void)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

fn serve() -> (Server, Client, Arc<DynamicInterface>) {
    let parsed = tenon_idl::parse_text("numbers.x", TEXT, &tenon_idl::Options::default());
    let interface = Arc::new(DynamicInterface::new(parsed.schema.unwrap()).unwrap());
    let mut builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    for service in DynamicService::of_all(&interface, Numbers) {
        builder = builder.service(service);
    }
    let server = builder.start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let client = Client::connect(&address, 0x2000_0001, 1).unwrap();
    let schema = interface.schema();
    let (program, version) = (&schema.programs[0], &schema.programs[0].versions[0]);
    let client = client.with_interface(lean_interface(schema, program, version));
    (server, client, interface)
}

fn opened(
    (client, interface): (&Client, &DynamicInterface),
    name: &str,
    arguments: Vec<Value>,
) -> OpenedCall {
    let lean = interface.of(Protocol::Lean);
    let procedure = lean.procedure(name, None).unwrap();
    let streamed = StreamedProcedure::new(lean.schema(), procedure);
    let streamed = streamed.unwrap().expect("it has streams");
    open(client, &streamed, &Value::Struct(arguments)).unwrap()
}

#[test]
fn items_of_arguments_are_values() {
    let (_server, client, interface) = serve();
    let OpenedCall::Argument(mut sum) = opened((&client, &interface), "SUM", vec![Value::Int(7)])
    else {
        panic!("the argument is a stream");
    };
    for number in 1..=100 {
        sum.feed(&Value::Int(number)).unwrap();
    }
    assert_eq!(sum.finish().unwrap(), Value::Int(5057));
}

#[test]
fn items_of_results_are_values_and_an_error_comes_behind_them() {
    let (_server, client, interface) = serve();
    for to in [4, 5] {
        let OpenedCall::Result(items) =
            opened((&client, &interface), "COUNT", vec![Value::Int(to)])
        else {
            panic!("the result is a stream");
        };
        let mut counted = 0;
        let mut raised = None;
        for item in items {
            match item {
                Ok(item) => {
                    assert_eq!(item, Value::Int(counted));
                    counted += 1;
                }
                Err(error) => raised = Some(error.kind()),
            }
        }
        assert_eq!(counted, to);
        assert_eq!(raised, (to == 5).then_some(CallErrorKind::Raised));
    }
}

#[test]
fn both_may_be_streams() {
    let (_server, client, interface) = serve();
    let OpenedCall::Both((mut numbers, mut doubled)) =
        opened((&client, &interface), "DOUBLE", Vec::new())
    else {
        panic!("both are streams");
    };
    for number in 0..10 {
        numbers.send(&Value::Int(number)).unwrap();
        let double = doubled.next().unwrap().unwrap();
        assert_eq!(double, Value::Hyper(2 * i64::from(number)));
    }
    numbers.finish().unwrap();
    assert!(doubled.next().is_none());
}

#[test]
fn a_call_without_streams_of_a_procedure_that_has_some_is_refused() {
    let (server, client, _) = serve();
    let refused = client.lean().call(
        2,
        |out| {
            out.put(1);
            Ok(())
        },
        |_| Ok(()),
    );
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::InvalidArguments, "{refused}");
    let onc = Client::connect(&server.addresses()[0].to_string(), 0x2000_0001, 1).unwrap();
    let refused = onc.onc().call(
        2,
        |out| {
            out.put(1);
            Ok(())
        },
        |_| Ok(()),
    );
    assert_eq!(refused.unwrap_err().kind(), CallErrorKind::NoProcedure);
}
