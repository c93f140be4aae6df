//! What the calls of a handler carry on of the call that it carries out, of threads and of tasks.

use std::sync::Arc;
use std::time::Duration;

use crate::common::place::fresh_path;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{
    CallError, CallInfo, CallOptions, ChannelOptions, LeanInput, LeanService, Metadata,
    PropagatedContext, Propagation, Refusal, Service,
};
use tenon_tokio::{Answer, AsyncService, Call};

const PROGRAM: u32 = 0x2000_0d19;

/// Returns what its call carries, or what the call of its own carried.
const REPORT: u32 = 1;
/// The same from a thread or task of its own, which has the context only if it is given it.
const DETACHED: u32 = 2;
const GIVEN: u32 = 3;

const LIMIT: Duration = Duration::from_secs(3600);

/// What a call carries, in words.
fn report(call: &CallInfo<'_>) -> String {
    let deadline = match call.deadline() {
        Some(_) => "limited",
        None => "unlimited",
    };
    let keys = call.metadata().iter().map(|(key, _)| format!(" {key}"));
    format!("{deadline}{}", keys.collect::<String>())
}

fn text(input: &mut LeanInput<'_>) -> Result<String, tenon::wire::DecodeError> {
    let bytes = match input {
        LeanInput::Native(input) => input.take(input.left())?,
        LeanInput::Swapped(input) => input.take(input.left())?,
    };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn put(text: &str, out: &mut Encoder<'_, Lean>) {
    out.room(text.len()).copy_from_slice(text.as_bytes());
}

/// Asks another server what its call carries; without one it says what came.
struct Asking(Option<tenon::Client>);

fn ask(client: &tenon::Client) -> Result<String, CallError> {
    client.lean().call(REPORT, |_| Ok(()), text)
}

impl Service for Asking {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Asking {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let told = match &self.0 {
            None => report(call),
            Some(client) => {
                let client = client.clone();
                match call.procedure() {
                    DETACHED => std::thread::spawn(move || ask(&client)).join().unwrap()?,
                    GIVEN => {
                        let context = call.context();
                        let asking = move || {
                            let _entered = context.enter();
                            ask(&client)
                        };
                        std::thread::spawn(asking).join().unwrap()?
                    }
                    _ => ask(&client)?,
                }
            }
        };
        put(&told, result);
        Ok(())
    }
}

/// The same for tasks. It waits before it asks, so that another poll does.
struct AskingTask(tenon_tokio::Client);

async fn ask_in_task(client: tenon_tokio::Client) -> Result<String, CallError> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    client.lean().call(REPORT, |_| Ok(()), text).await
}

impl AsyncService for AskingTask {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(Interface::unknown(PROGRAM, 1)))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let asking = ask_in_task(self.0.clone());
        let told = match call.procedure() {
            DETACHED => tokio::spawn(asking).await?,
            GIVEN => tokio::spawn(PropagatedContext::current().scope(asking)).await?,
            _ => asking.await,
        }?;
        call.answer_lean(|out| {
            put(&told, out);
            Ok(())
        })
    }
}

fn metadata() -> Metadata {
    let mut metadata = Metadata::new();
    let pairs = [
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("tracestate", "vendor=1"),
        ("tenant", "blue"),
        ("authorization", "Bearer secret"),
    ];
    for (key, value) in pairs {
        metadata.append(key, value).unwrap();
    }
    metadata
}

fn insecure() -> ChannelOptions {
    ChannelOptions::default().allow_insecure(true)
}

fn last() -> (tenon::Server, String) {
    let builder = tenon::Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let server = builder.service(Asking(None)).start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    (server, address)
}

/// Calls procedures of a server, with a deadline and metadata or without, and checks what the server behind it was told.
fn check(address: &str, carried: &str, deadline: &str) {
    let address = format!("lean+{address}");
    let client = tenon::Client::connect_with(&address, PROGRAM, 1, insecure()).unwrap();
    let metadata = metadata();
    let options = CallOptions::new().timeout(LIMIT).metadata(&metadata);
    let with_context = client.with_options(options).lean();
    let ask = |procedure| with_context.call(procedure, |_| Ok(()), text).unwrap();
    for _ in 0..3 {
        assert_eq!(ask(REPORT), format!("{deadline}{carried}"));
        assert_eq!(ask(GIVEN), format!("{deadline}{carried}"));
        assert_eq!(ask(DETACHED), "unlimited");
        // The context ends with its call.
        let told = client.lean().call(REPORT, |_| Ok(()), text).unwrap();
        assert_eq!(told, "unlimited");
    }
}

/// What is carried on by each of the rules.
fn rules() -> [(Propagation, &'static str, &'static str); 4] {
    let tokens = Propagation::none().key("authorization").key("absent");
    [
        (Propagation::default(), " traceparent tracestate", "limited"),
        (
            Propagation::default().deadline(false).key("tenant"),
            " traceparent tracestate tenant",
            "unlimited",
        ),
        (Propagation::none(), "", "unlimited"),
        (tokens, " authorization", "unlimited"),
    ]
}

#[test]
fn handlers_of_threads_carry_the_deadline_and_the_trace_on() {
    let (_last, address) = last();
    for (rules, carried, deadline) in rules() {
        let onward = tenon::Client::connect_with(&address, PROGRAM, 1, insecure()).unwrap();
        let onward = onward.with_propagation(rules);
        let builder = tenon::Server::builder()
            .listen("tcp://127.0.0.1:0")
            .unwrap();
        let server = builder.service(Asking(Some(onward))).start().unwrap();
        check(&server.addresses()[0].to_string(), carried, deadline);
    }
}

#[test]
fn handlers_of_tasks_carry_the_deadline_and_the_trace_on() {
    let (_last, address) = last();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for (rules, carried, deadline) in rules() {
        let connect = tenon_tokio::Client::connect_with(&address, PROGRAM, 1, insecure());
        let onward = runtime.block_on(connect).unwrap().with_propagation(rules);
        let builder = tenon_tokio::Server::builder().listen("tcp://127.0.0.1:0");
        let builder = builder.unwrap().service(AskingTask(onward));
        let server = runtime.block_on(builder.start()).unwrap();
        check(&server.addresses()[0].to_string(), carried, deadline);
    }
}

/// A call that a handler makes when its own time is over fails at once, and is not sent.
#[test]
fn calls_have_no_more_time_than_that_of_the_handler() {
    let (last, address) = last();
    let onward = tenon::Client::connect(&address, PROGRAM, 1).unwrap();
    let received = std::time::Instant::now();
    let over = CallInfo::new(REPORT, tenon::Credential::None, tenon::Transport::Tcp)
        .with_deadline(received);
    let entered = over.context().enter();
    let error = ask(&onward).unwrap_err();
    assert_eq!(error.kind(), tenon::CallErrorKind::TimedOut, "{error}");
    drop(entered);
    assert_eq!(ask(&onward).unwrap(), "unlimited");
    assert_eq!(last.counters().calls, 1);
}

#[test]
fn a_token_is_an_error_where_others_could_read_it() {
    let (_last, address) = last();
    let client = tenon::Client::connect(&address, PROGRAM, 1).unwrap();
    let client = client.with_bearer_token("secret").unwrap();
    let error = ask(&client).unwrap_err();
    assert!(matches!(error, CallError::InsecureToken), "{error}");
    assert_eq!(error.kind(), tenon::CallErrorKind::InvalidCall);
    assert!(!error.may_have_executed());

    let client = tenon::Client::connect_with(&address, PROGRAM, 1, insecure()).unwrap();
    let client = client.with_bearer_token("secret").unwrap();
    assert_eq!(ask(&client).unwrap(), "unlimited authorization");
    assert!(client.with_bearer_token("sec\nret").is_err());
    // A new token takes the place of the old one, and a value of one call goes before that of the client.
    let renewed = client.with_bearer_token("other").unwrap();
    assert_eq!(ask(&renewed).unwrap(), "unlimited authorization");
    let mut own = Metadata::new();
    own.append("tenant", "blue").unwrap();
    let renewed = renewed.with_options(CallOptions::new().metadata(&own));
    let told = renewed.lean().call(REPORT, |_| Ok(()), text).unwrap();
    assert_eq!(told, "unlimited tenant authorization");

    let path = fresh_path();
    let builder = tenon::Server::builder().listen(&format!("unix://{}", path.display()));
    let server = builder.unwrap().service(Asking(None)).start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let client = tenon::Client::connect(&address, PROGRAM, 1).unwrap();
    let client = client.with_bearer_token("secret").unwrap();
    assert_eq!(ask(&client).unwrap(), "unlimited authorization");
}
