//! A server and its client in one program, by tonic.

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

#[allow(missing_docs)]
mod hello {
    tonic::include_proto!("hello");
}
use hello::Text;
use hello::hello_client::HelloClient;
use hello::hello_server::{Hello, HelloServer};

struct Host;

#[tonic::async_trait]
impl Hello for Host {
    async fn greet(&self, name: Request<Text>) -> Result<Response<Text>, Status> {
        let text = format!("Hello, {}", name.into_inner().text);
        Ok(Response::new(Text { text }))
    }
}

async fn greet() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let server = Server::builder().add_service(HelloServer::new(Host));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let mut client = HelloClient::connect(address).await?;
    let text = "world".to_owned();
    println!("{}", client.greet(Text { text }).await?.into_inner().text);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(greet())
}
