//! Streams of the section `stream` by Tenon, with threads.
//!
//! usage: `tenon_stream server tcp|unix=PATH|shm=PATH`, or
//! `tenon_stream client bytes|argument_bytes|items ADDRESS...`

use std::io::{self, Read, Write};

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
            results.write_all(piece)?;
        }
        Ok(())
    }

    fn put(&self, _: &CallInfo<'_>, amount: u64, part: ItemReader<Chunk>) -> Result<u64, Refusal> {
        Ok(check_bytes(amount, part)?)
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

/// Reads so many bytes into a buffer of the size of pieces, and checks them.
fn check_bytes(amount: u64, mut bytes: impl Read) -> io::Result<u64> {
    let mut checker = Checker::of_bytes(amount, CHUNK_BYTES);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match bytes.read(&mut buffer[filled..])? {
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
            check_bytes(amount, client.get(amount)?)?;
            Ok(())
        }),
        Content::ArgumentBytes => serve_transfers(|amount| {
            let mut pieces = Pieces::of_bytes(amount, CHUNK_BYTES);
            let mut put = client.put(amount)?;
            while let Some(piece) = pieces.next_piece() {
                put.write_all(piece)?;
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
