//! Files in chunks: methods that block, called by tokio's threads for that.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tenon_example_system::exit_code;
use tenon_example_system::folder::Folder;
use tenon_example_system::server_options::{ServerOptions, limits};
use tenon_example_system::uploads::{CHUNK_MAX, UploadsV1Service};
use tenon_tokio::Server;
use tokio::signal::unix::{SignalKind, signal};

/// Serves uploads until SIGTERM or Ctrl-C
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,

    /// Most bytes of a file
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    upload_max: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Options::parse()).await)
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let Options {
        server: options,
        upload_max,
    } = options;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let folder: PathBuf = options.data("uploads")?;
    std::fs::create_dir_all(&folder)?;
    let folder = Folder::open(folder, upload_max, options.sync)?;

    let mut builder = Server::builder().limits(limits(CHUNK_MAX));
    for address in options.addresses("tcp://127.0.0.1:4723") {
        builder = builder.listen(&address)?;
    }
    let server = builder
        .sync_service(UploadsV1Service(folder))
        .start()
        .await?;
    for address in server.addresses() {
        println!("listening at {address}");
    }

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.shutdown(options.drain()).await;
    println!("stopped after {} calls", server.counters().calls);
    Ok(())
}
