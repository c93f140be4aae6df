//! A server and its client in one program, by threads.

use tenon::{CallInfo, Refusal, Server};

tenon::stubs!(
    mod hello;
);
use hello::{HelloV1, HelloV1Client, HelloV1Service};

struct Host;

impl HelloV1 for Host {
    fn greet(
        &self,
        _call: &CallInfo<'_>,
        name: tenon::wire::BString,
    ) -> Result<tenon::wire::BString, Refusal> {
        Ok(format!("Hello, {name}").into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Server::builder().listen("tcp://127.0.0.1:0")?;
    let server = builder.service(HelloV1Service(Host)).start()?;
    let address = format!("lean+{}", server.addresses()[0]);
    let client = HelloV1Client::connect(&address)?;
    println!("{}", client.greet("world")?);
    Ok(())
}
