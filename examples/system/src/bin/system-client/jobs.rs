//! Jobs and their workers.

use std::error::Error;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use clap::Subcommand;
use tenon::CallOptions;
use tenon_example_system::jobs::{Job, JobStatus, JobsV1Client};

use crate::Target;

/// Milliseconds that a poll waits for a job, unless its server has one earlier. The call has this time beside its own.
const POLL_MS: u32 = 10_000;

#[derive(Subcommand)]
pub enum Command {
    /// Adds a job, and prints its number
    Submit { work: String },
    /// Waits for a job to finish, and prints its result
    Watch { id: u64 },
    /// Takes jobs, and has a program do each: it reads the work from stdin and writes the result to stdout
    Work {
        /// End after so many jobs
        #[arg(long, value_name = "JOBS")]
        count: Option<u64>,
        program: String,
    },
}

pub fn run(target: &Target, command: Command) -> Result<(), Box<dyn Error>> {
    let address = target.address("lean+tcp://127.0.0.1:4722");
    let client = JobsV1Client::connect_with(address, target.options.clone())?;
    let client = client.with_timeout(target.timeout);
    let patience = target.timeout + Duration::from_millis(POLL_MS.into());
    let poll = CallOptions::new().timeout(patience);
    match command {
        Command::Submit { work } => println!("job {}", client.submit(&work)?),
        Command::Watch { id } => loop {
            match client.with_options(poll).watch(id, POLL_MS)? {
                JobStatus::Finished(result) => return Ok(std::io::stdout().write_all(&result)?),
                JobStatus::Unknown => return Err("there is no such job".into()),
                JobStatus::Waiting | JobStatus::Running => {}
            }
        },
        Command::Work { count, program } => {
            let mut done = 0;
            while count.is_none_or(|count| done < count) {
                if let Some(job) = client.with_options(poll).take(POLL_MS)? {
                    let result = work(&program, &job)?;
                    client.finish(job.id, &result)?;
                    done += 1;
                }
            }
        }
    }
    Ok(())
}

/// Has `program` do a job, and returns its result.
fn work(program: &str, job: &Job) -> std::io::Result<Vec<u8>> {
    let mut command = std::process::Command::new(program);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn()?;
    let stdin = process.stdin.take();
    // Beside the reading: a program may write before it has read all.
    std::thread::scope(|scope| {
        let feeding = scope.spawn(move || stdin.map_or(Ok(()), |mut to| to.write_all(&job.work)));
        let output = process.wait_with_output()?;
        // A program need not read what it does not want.
        let _ = feeding.join();
        Ok(output.stdout)
    })
}
