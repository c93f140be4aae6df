// The parts that examples of the documentation share: the greeter of the tutorial, and a server of it.

#[allow(dead_code, missing_docs, unreachable_pub)]
pub mod greeter {
    include!("greeter.rs");
}

use greeter::{GreeterV1, GreeterV1Service, Greeting, Visitor};
use tenon::{CallInfo, Refusal, Server};

pub struct Host;

impl GreeterV1 for Host {
    fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
        Ok(match visitor.visits {
            0 => Greeting::Void,
            _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
        })
    }
}

/// Starts a greeter, and returns it and its address.
pub fn start_server() -> (Server, String) {
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("an address");
    let server = builder
        .service(GreeterV1Service(Host))
        .start()
        .expect("a free port");
    let address = server.addresses()[0].to_string();
    (server, address)
}
