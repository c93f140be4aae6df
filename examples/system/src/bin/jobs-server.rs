//! Jobs and their workers, served by tasks.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tenon_example_system::exit_code;
use tenon_example_system::job_service::Jobs;
use tenon_example_system::jobs::{JobsV1AsyncService, WORK_MAX};
use tenon_example_system::queue::Queue;
use tenon_example_system::server_options::{ServerOptions, limits};
use tenon_tokio::Server;
use tokio::signal::unix::{SignalKind, signal};

/// Serves jobs until SIGTERM or Ctrl-C
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,

    /// Seconds that a worker has for a job before another one gets it
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    lease: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Options::parse()).await)
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let Options {
        server: options,
        lease,
    } = options;
    let lease = Duration::from_secs(lease);
    let jobs = Jobs::new(Queue::open(
        &options.data("jobs.journal")?,
        lease,
        options.sync,
    )?);

    let mut builder = Server::builder().limits(limits(WORK_MAX));
    for address in options.addresses("tcp://127.0.0.1:4722") {
        builder = builder.listen(&address)?;
    }
    let service = JobsV1AsyncService(Arc::clone(&jobs));
    let server = builder.service(service).start().await?;
    for address in server.addresses() {
        println!("listening at {address}");
    }

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Long polls are answered first: otherwise the shutdown waits for them.
    jobs.stop_waiting();
    server.shutdown(options.drain()).await;
    println!("stopped after {} calls", server.counters().calls);
    Ok(())
}
