//! Puts, gets and watches objects from the command line.

mod progress;

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use progress::Progress;
use tenon::health::{HealthStatus, HealthV1Client};
use tenon::{CallError, ChannelOptions};
use tenon_example_store::exit_code;
use tenon_example_store::server_options::tokens_of;
use tenon_example_store::store::{
    Object, STORE_CHUNK_MAX, StoreEvent, StoreV1Client, StoreV1GetError, StoreV1PutError,
    StoreV1RemoveError, StoreV1WatchError,
};

/// Calls an object store
#[derive(Parser)]
struct Options {
    /// Address of the server: lean+tcp://HOST:PORT, lean+unix:///PATH or shm:///PATH
    #[arg(
        long,
        default_value = "lean+tcp://127.0.0.1:4731",
        value_name = "ADDRESS"
    )]
    at: String,

    /// File with the token, which put and remove need if the server checks it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Send the token over TCP, too, where others may read along
    #[arg(long)]
    insecure: bool,

    /// Seconds that a call without a stream may take
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    timeout: u64,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Puts a file, or stdin if it is `-`, as an object
    Put {
        /// The file
        file: PathBuf,
        /// The name of the object
        name: String,
    },
    /// Gets an object into a file, or to stdout if it is `-`
    Get {
        /// The name of the object
        name: String,
        /// The file
        file: PathBuf,
        /// Begin behind so many bytes of the object
        #[arg(long, default_value_t = 0, value_name = "BYTES")]
        offset: u64,
    },
    /// Lists objects: size, revision and name
    List {
        /// Only those whose names begin so
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Shows what happens to objects, a line for each event
    Watch {
        /// Only of those whose names begin so
        #[arg(default_value = "")]
        prefix: String,
        /// Begin behind this revision, and not with the present state
        #[arg(long, value_name = "REVISION")]
        after: Option<u64>,
        /// End after so many events
        #[arg(long)]
        count: Option<usize>,
    },
    /// Removes an object
    Remove {
        /// The name of the object
        name: String,
    },
    /// Says whether the server serves
    Health,
}

fn main() -> ExitCode {
    exit_code(run(Options::parse()))
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let channel = ChannelOptions::default().allow_insecure(options.insecure);
    let timeout = Duration::from_secs(options.timeout);
    if let Command::Health = options.command {
        let client = HealthV1Client::connect_with(&options.at, channel)?;
        return health(&client.with_timeout(timeout));
    }
    let mut store = StoreV1Client::connect_with(&options.at, channel)?;
    if let Some(path) = &options.token_file {
        let token = tokens_of(path)?.swap_remove(0);
        store = StoreV1Client(store.0.with_bearer_token(&token)?);
    }
    // Not for put, get and watch: their time depends on what they transfer.
    let hurried = store.with_timeout(timeout);
    match options.command {
        Command::Put { file, name } => put(&store, &file, &name),
        Command::Get { name, file, offset } => get(&store, &name, &file, offset),
        Command::List { prefix } => list(&hurried, &prefix),
        Command::Watch {
            prefix,
            after,
            count,
        } => watch(&store, &prefix, after, count),
        Command::Remove { name } => remove(&hurried, &name),
        Command::Health => Ok(()),
    }
}

fn put(store: &StoreV1Client, file: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let failed = |error| format!("cannot read {}: {error}", file.display());
    let (mut input, size): (Box<dyn Read>, _) = if file == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let input = File::open(file).map_err(failed)?;
        let size = input.metadata().map_err(failed)?.len();
        (Box::new(input), Some(size))
    };
    let mut progress = Progress::new("put", size);
    // Until it is finished, an early return drops it, which gives the put up.
    let mut put = store.put(name).map_err(put_error)?;
    let mut chunk = Vec::new();
    loop {
        chunk.clear();
        let part = &mut (&mut input).take(STORE_CHUNK_MAX.into());
        part.read_to_end(&mut chunk).map_err(failed)?;
        if chunk.is_empty() {
            break;
        }
        match put.send(&chunk) {
            Ok(()) => progress.add(chunk.len()),
            // The server has answered already: `finish` says why.
            Err(StoreV1PutError::Other(CallError::StreamClosed)) => break,
            Err(error) => return Err(put_error(error)),
        }
    }
    let object = put.finish();
    drop(progress);
    let Object { size, revision, .. } = object.map_err(put_error)?;
    println!("{size} bytes, revision {revision}");
    Ok(())
}

fn put_error(error: StoreV1PutError) -> Box<dyn Error> {
    match error {
        StoreV1PutError::InvalidName(error) => error.reason.into(),
        StoreV1PutError::ObjectTooLarge(error) => {
            let size_max = error.size_max;
            format!("the server takes objects of up to {size_max} bytes").into()
        }
        StoreV1PutError::Other(error) => error.into(),
    }
}

fn get(store: &StoreV1Client, name: &str, file: &Path, offset: u64) -> Result<(), Box<dyn Error>> {
    let chunks = store.get(name, offset).map_err(get_error)?;
    let mut chunks = chunks.peekable();
    // A file is not overwritten by nothing.
    if let Some(Err(error)) = chunks.next_if(Result::is_err) {
        return Err(get_error(error));
    }
    let failed = |error| format!("cannot write {}: {error}", file.display());
    let mut output: Box<dyn Write> = if file == Path::new("-") {
        Box::new(io::stdout().lock())
    } else {
        Box::new(File::create(file).map_err(failed)?)
    };
    let mut progress = Progress::new("got", None);
    for chunk in chunks {
        let chunk = chunk.map_err(get_error)?;
        output.write_all(&chunk).map_err(failed)?;
        progress.add(chunk.len());
    }
    Ok(output.flush().map_err(failed)?)
}

fn get_error(error: StoreV1GetError) -> Box<dyn Error> {
    match error {
        StoreV1GetError::NoSuchObject(_) => "there is no such object".into(),
        StoreV1GetError::InvalidOffset(error) => {
            format!("the object has only {} bytes", error.size).into()
        }
        StoreV1GetError::Other(error) => error.into(),
    }
}

fn list(store: &StoreV1Client, prefix: &str) -> Result<(), Box<dyn Error>> {
    let mut cursor: Option<String> = None;
    loop {
        let page = store.list(prefix, cursor.as_deref())?;
        for Object {
            name,
            size,
            revision,
        } in page.objects
        {
            println!("{size:>12} {revision:>8} {name}");
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn watch(
    store: &StoreV1Client,
    prefix: &str,
    after: Option<u64>,
    count: Option<usize>,
) -> Result<(), Box<dyn Error>> {
    let events = store.watch(prefix, after).map_err(watch_error)?;
    // What is behind the last wanted event gives the call up, as the stream is dropped.
    for event in events.take(count.unwrap_or(usize::MAX)) {
        match event.map_err(watch_error)? {
            StoreEvent::Present(object) => show("present", &object),
            StoreEvent::Put(object) => show("put", &object),
            StoreEvent::Removed(removal) => {
                println!("removed {}, revision {}", removal.name, removal.revision);
            }
            StoreEvent::UpToDate(revision) => println!("up to date, revision {revision}"),
        }
    }
    Ok(())
}

fn show(what: &str, object: &Object) {
    let Object {
        name,
        size,
        revision,
    } = object;
    println!("{what} {name}, {size} bytes, revision {revision}");
}

fn watch_error(error: StoreV1WatchError) -> Box<dyn Error> {
    match error {
        StoreV1WatchError::RevisionTooOld(error) => {
            let oldest = error.oldest;
            format!("events are kept behind revision {oldest} only").into()
        }
        StoreV1WatchError::StoreStopping(error) => {
            format!("the server stops; watch --after {}", error.revision).into()
        }
        StoreV1WatchError::Other(error) => error.into(),
    }
}

fn remove(store: &StoreV1Client, name: &str) -> Result<(), Box<dyn Error>> {
    let revision = store.remove(name).map_err(|error| -> Box<dyn Error> {
        match error {
            StoreV1RemoveError::NoSuchObject(_) => "there is no such object".into(),
            StoreV1RemoveError::Other(error) => error.into(),
        }
    })?;
    println!("revision {revision}");
    Ok(())
}

fn health(client: &HealthV1Client) -> Result<(), Box<dyn Error>> {
    match client.check("")? {
        HealthStatus::Serving => {
            println!("serving");
            Ok(())
        }
        status => Err(format!("not serving: {status:?}").into()),
    }
}
