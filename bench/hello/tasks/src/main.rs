//! A server and its client in one program, by tasks of tokio.

use tenon::{CallInfo, Refusal};

tenon::stubs!(
    mod hello;
);
use hello::{HelloV1, HelloV1AsyncClient, HelloV1Service};

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

async fn greet() -> Result<(), Box<dyn std::error::Error>> {
    let builder = tenon_tokio::Server::builder().listen("tcp://127.0.0.1:0")?;
    let server = builder.sync_service(HelloV1Service(Host)).start().await?;
    let address = format!("lean+{}", server.addresses()[0]);
    let client = HelloV1AsyncClient::connect(&address).await?;
    println!("{}", client.greet("world").await?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(greet())
}
