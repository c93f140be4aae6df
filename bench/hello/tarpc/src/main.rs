//! A server and its client in one program, by tarpc.

use futures_util::StreamExt;
use tarpc::context::{self, Context};
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::{client, serde_transport::tcp};

/// The interface as tarpc has it: a trait.
#[tarpc::service]
pub trait Hello {
    /// Greets by name.
    async fn greet(name: String) -> String;
}

#[derive(Clone)]
struct Host;

impl Hello for Host {
    async fn greet(self, _: Context, name: String) -> String {
        format!("Hello, {name}")
    }
}

async fn greet() -> Result<(), Box<dyn std::error::Error>> {
    let mut listener = tcp::listen("127.0.0.1:0", Bincode::default).await?;
    let address = listener.local_addr();
    tokio::spawn(async move {
        while let Some(Ok(transport)) = listener.next().await {
            let calls = BaseChannel::with_defaults(transport).execute(Host.serve());
            tokio::spawn(calls.for_each(async |call| {
                tokio::spawn(call);
            }));
        }
    });
    let transport = tcp::connect(address, Bincode::default).await?;
    let client = HelloClient::new(client::Config::default(), transport).spawn();
    println!(
        "{}",
        client.greet(context::current(), "world".into()).await?
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(greet())
}
