//! Streams of the section `stream` by tonic.
//!
//! usage: `peer_tonic_stream server tcp`, or `peer_tonic_stream client bytes|items tcp HOST PORT`

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use stubs::streams_client::StreamsClient;
use stubs::streams_server::{Streams, StreamsServer};
use stubs::{Amount, Chunk, Item};
use tenon_bench_asynchronous::{Address, Outcome, block_on, run};
use tenon_bench_common::transfer::{Checker, Content, PIECE_BYTES, Pieces, serve_transfers_async};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

/// Bytes of a stream, and of all streams of a connection, that may be under way: as many as Tenon's windows grow to.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// What tonic's compiler makes of the interface.
#[allow(missing_docs)]
mod stubs {
    tonic::include_proto!("stream");
}

fn main() -> Outcome {
    run(serve, call)
}

struct Operations;

/// The pieces of a stream as messages, all of which are there already.
fn messages<M>(
    mut pieces: Pieces,
    message: impl Fn(Bytes) -> M,
) -> impl Stream<Item = Result<M, Status>> {
    let pieces =
        std::iter::from_fn(move || pieces.next_piece().map(|it| Bytes::copy_from_slice(it)));
    stream::iter(pieces.map(move |data| Ok(message(data))))
}

#[tonic::async_trait]
impl Streams for Operations {
    type GetStream = stream::BoxStream<'static, Result<Chunk, Status>>;
    type ListStream = stream::BoxStream<'static, Result<Item, Status>>;

    async fn get(&self, request: Request<Amount>) -> Result<Response<Self::GetStream>, Status> {
        let pieces = Pieces::of_bytes(request.into_inner().amount, PIECE_BYTES);
        let chunks = messages(pieces, |data| Chunk { data });
        Ok(Response::new(Box::pin(chunks)))
    }

    async fn list(&self, request: Request<Amount>) -> Result<Response<Self::ListStream>, Status> {
        let pieces = Pieces::of_items(request.into_inner().amount);
        let items = messages(pieces, |data| Item { data });
        Ok(Response::new(Box::pin(items)))
    }
}

fn serve(arguments: &[String]) -> Outcome {
    if arguments != ["tcp"] {
        return Err("usage: peer_tonic_stream server tcp".into());
    }
    block_on(async {
        let listener = TcpIncoming::bind(([127, 0, 0, 1], 0).into())?;
        println!("tcp 127.0.0.1 {}\nready", listener.local_addr()?.port());
        Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .add_service(StreamsServer::new(Operations))
            .serve_with_incoming(listener.with_nodelay(Some(true)))
            .await?;
        Ok(())
    })
}

fn call(arguments: &[String]) -> Outcome {
    let [content, address @ ..] = arguments else {
        return Err("usage: peer_tonic_stream client bytes|items tcp HOST PORT".into());
    };
    let content: Content = content.parse()?;
    let Address::Tcp(socket) = Address::from_arguments(address)? else {
        return Err("streams of tonic go over TCP here".into());
    };
    block_on(async {
        let endpoint = Endpoint::from_shared(format!("http://{socket}"))?
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .tcp_nodelay(true);
        let client = StreamsClient::new(endpoint.connect().await?);
        let transfer = async |amount| transfer(client.clone(), content, amount).await;
        serve_transfers_async(transfer).await
    })
}

async fn transfer(mut client: StreamsClient<Channel>, content: Content, amount: u64) -> Outcome {
    let request = Amount { amount };
    let mut checker;
    match content {
        Content::Bytes => {
            checker = Checker::of_bytes(amount, PIECE_BYTES);
            let mut chunks = client.get(request).await?.into_inner();
            while let Some(chunk) = chunks.message().await? {
                checker.check(&chunk.data)?;
            }
        }
        Content::Items => {
            checker = Checker::of_items(amount);
            let mut items = client.list(request).await?.into_inner();
            while let Some(item) = items.message().await? {
                checker.check(&item.data)?;
            }
        }
        Content::ArgumentBytes => return Err("tonic is compared where results are streams".into()),
    }
    checker.finish()?;
    Ok(())
}
