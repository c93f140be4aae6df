//! Streams of the section `stream` by Tenon, with threads.
//!
//! usage: `tenon_stream server tcp|unix=PATH|shm=PATH`, or
//! `tenon_stream client bytes|argument_bytes|items ADDRESS...`

use tenon::{CallInfo, ItemReader, ItemWriter, Refusal, Server};
use tenon_bench::operations::{as_arguments, listen_url};
use tenon_bench::stream_stubs::{
    Chunk, Item, StreamVersion, StreamVersionClient, StreamVersionService,
};
use tenon_bench_asynchronous::{Outcome, run};
use tenon_bench_common::address::Address;
use tenon_bench_common::protocol::Protocol;
use tenon_bench_common::task::check;
use tenon_bench_common::transfer::{CHUNK_BYTES, Checker, Content, Pieces, serve_transfers};

fn main() -> Outcome {
    run(serve, call)
}

struct Streams;

impl StreamVersion for Streams {
    fn get(
        &self,
        _: &CallInfo<'_>,
        amount: u64,
        results: &mut ItemWriter<Chunk>,
    ) -> Result<(), Refusal> {
        let mut pieces = Pieces::of_bytes(amount, CHUNK_BYTES);
        while let Some(piece) = pieces.next_piece() {
            results.send(piece)?;
        }
        Ok(())
    }

    fn put(&self, _: &CallInfo<'_>, amount: u64, part: ItemReader<Chunk>) -> Result<u64, Refusal> {
        let mut checker = Checker::of_bytes(amount, CHUNK_BYTES);
        for piece in part {
            checker.check(&piece?)?;
        }
        Ok(checker.finish()?)
    }

    fn list(
        &self,
        _: &CallInfo<'_>,
        amount: u64,
        results: &mut ItemWriter<Item>,
    ) -> Result<(), Refusal> {
        let mut items = Pieces::of_items(amount);
        while let Some(item) = items.next_piece() {
            results.feed(item.first_chunk().unwrap_or(&[0; 64]))?;
        }
        Ok(())
    }
}

fn serve(arguments: &[String]) -> Outcome {
    let [transport] = arguments else {
        return Err("usage: tenon_stream server tcp|unix=PATH|shm=PATH".into());
    };
    let builder = Server::builder().listen(&listen_url(transport))?;
    let server = builder.service(StreamVersionService(Streams)).start()?;
    let address = server.addresses()[0].to_string();
    println!("{}\nready", as_arguments(&address));
    server.wait();
    Ok(())
}

fn call(arguments: &[String]) -> Outcome {
    let [content, address @ ..] = arguments else {
        return Err("usage: tenon_stream client CONTENT ADDRESS...".into());
    };
    let url = Protocol::Lean.url(&Address::from_arguments(address)?);
    let client = StreamVersionClient::connect(&url)?;
    match content.parse()? {
        Content::Bytes => serve_transfers(|amount| {
            let mut checker = Checker::of_bytes(amount, CHUNK_BYTES);
            for piece in client.get(amount)? {
                checker.check(&piece?)?;
            }
            checker.finish()?;
            Ok(())
        }),
        Content::ArgumentBytes => serve_transfers(|amount| {
            let mut pieces = Pieces::of_bytes(amount, CHUNK_BYTES);
            let mut put = client.put(amount)?;
            while let Some(piece) = pieces.next_piece() {
                put.send(piece)?;
            }
            Ok(check(put.finish()? == amount)?)
        }),
        Content::Items => serve_transfers(|amount| {
            let mut checker = Checker::of_items(amount);
            for item in client.list(amount)? {
                checker.check(&item?)?;
            }
            checker.finish()?;
            Ok(())
        }),
    }
}
