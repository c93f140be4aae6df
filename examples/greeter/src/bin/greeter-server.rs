//! Greets the people that it knows, over TCP, UDP and a Unix socket at once, and at the addresses that are given.

use tenon::{CallInfo, Refusal, Server};
use tenon_example_greeter::greeter::{GreeterV1, GreeterV1Service, Greeting, Visitor};

struct Host;

impl GreeterV1 for Host {
    fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
        Ok(match visitor.visits {
            0 => Greeting::Void,
            _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Server::builder()
        .listen("tcp://127.0.0.1:4711")?
        .listen("udp://127.0.0.1:4711")?
        .listen("unix:///tmp/greeter.sock")?;
    for address in std::env::args().skip(1) {
        builder = builder.listen(&address)?;
    }
    let server = builder.service(GreeterV1Service(Host)).start()?;
    println!("serving until it is killed");
    server.wait();
    Ok(())
}
