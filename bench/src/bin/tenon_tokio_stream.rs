//! Streams of the section `stream` by Tenon on tokio: one thread at each end.
//!
//! usage: `tenon_tokio_stream server tcp|unix=PATH|shm=PATH`, or
//! `tenon_tokio_stream client bytes|argument_bytes|items ADDRESS...`

use std::future::pending;
use std::io;

use tenon::{CallInfo, Refusal};
use tenon_bench::operations::{as_arguments, listen_url};
use tenon_bench::stream_stubs::{
    Chunk, Item, StreamVersionAsync, StreamVersionAsyncClient, StreamVersionAsyncService,
};
use tenon_bench_asynchronous::{Outcome, block_on, run};
use tenon_bench_common::address::Address;
use tenon_bench_common::protocol::Protocol;
use tenon_bench_common::task::check;
use tenon_bench_common::transfer::{CHUNK_BYTES, Checker, Content, Pieces, serve_transfers_async};
use tenon_tokio::{ItemSink, ItemStream, Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

fn main() -> Outcome {
    run(serve, call)
}

struct Streams;

impl StreamVersionAsync for Streams {
    async fn get(
        &self,
        _: &CallInfo<'_>,
        amount: u64,
        results: &mut ItemSink<Chunk>,
    ) -> Result<(), Refusal> {
        let mut pieces = Pieces::of_bytes(amount, CHUNK_BYTES);
        while let Some(piece) = pieces.next_piece() {
            results.write_all(piece).await?;
        }
        Ok(())
    }

    async fn put(
        &self,
        _: &CallInfo<'_>,
        amount: u64,
        part: ItemStream<Chunk>,
    ) -> Result<u64, Refusal> {
        Ok(check_bytes(amount, part).await?)
    }

    async fn list(
        &self,
        _: &CallInfo<'_>,
        amount: u64,
        results: &mut ItemSink<Item>,
    ) -> Result<(), Refusal> {
        let mut items = Pieces::of_items(amount);
        while let Some(item) = items.next_piece() {
            results.feed(item.first_chunk().unwrap_or(&[0; 64])).await?;
        }
        Ok(())
    }
}

/// Reads so many bytes into a buffer of the size of pieces, and checks them.
async fn check_bytes(amount: u64, mut bytes: impl AsyncRead + Unpin) -> io::Result<u64> {
    let mut checker = Checker::of_bytes(amount, CHUNK_BYTES);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match bytes.read(&mut buffer[filled..]).await? {
                0 => break,
                read => filled += read,
            }
        }
        match filled {
            0 => return checker.finish().map_err(io::Error::other),
            _ => checker.check(&buffer[..filled]).map_err(io::Error::other)?,
        }
    }
}

fn serve(arguments: &[String]) -> Outcome {
    let [transport] = arguments else {
        return Err("usage: tenon_tokio_stream server tcp|unix=PATH|shm=PATH".into());
    };
    block_on(async {
        let builder = Server::builder().listen(&listen_url(transport))?;
        let builder = builder.service(StreamVersionAsyncService(Streams));
        let server = builder.start().await?;
        let address = server.addresses()[0].to_string();
        println!("{}\nready", as_arguments(&address));
        pending().await
    })
}

fn call(arguments: &[String]) -> Outcome {
    let [content, address @ ..] = arguments else {
        return Err("usage: tenon_tokio_stream client CONTENT ADDRESS...".into());
    };
    let content: Content = content.parse()?;
    let url = Protocol::Lean.url(&Address::from_arguments(address)?);
    block_on(async {
        let client = StreamVersionAsyncClient::connect(&url).await?;
        let transfer = async |amount| transfer(&client, content, amount).await;
        serve_transfers_async(transfer).await
    })
}

async fn transfer(client: &StreamVersionAsyncClient, content: Content, amount: u64) -> Outcome {
    match content {
        Content::Bytes => {
            check_bytes(amount, client.get(amount).await?).await?;
        }
        Content::ArgumentBytes => {
            let mut pieces = Pieces::of_bytes(amount, CHUNK_BYTES);
            let mut put = client.put(amount).await?;
            while let Some(piece) = pieces.next_piece() {
                put.write_all(piece).await?;
            }
            check(put.finish().await? == amount)?;
        }
        Content::Items => {
            let mut checker = Checker::of_items(amount);
            let mut items = client.list(amount).await?;
            while let Some(item) = items.next().await {
                checker.check(&item?)?;
            }
            checker.finish()?;
        }
    }
    Ok(())
}
