//! Keys and their values.

use std::error::Error;
use std::io::Write;

use clap::Subcommand;
use tenon_example_system::kv::{ChangeResult, KvV1Client};

use crate::Target;

#[derive(Subcommand)]
pub enum Command {
    /// Prints the value of a key
    Get { key: String },
    /// Sets a key, and prints the revision
    Put {
        key: String,
        value: String,
        /// Set it only if its revision is this one; 0 is that of a key without a value
        #[arg(long, value_name = "REVISION")]
        expect: Option<u64>,
    },
    /// Removes a key
    Remove { key: String },
    /// Prints all keys
    List,
}

pub fn run(target: &Target, command: Command) -> Result<(), Box<dyn Error>> {
    let address = target.address("lean+tcp://127.0.0.1:4721");
    let client = KvV1Client::connect_with(address, target.options.clone())?;
    let client = client.with_timeout(target.timeout);
    match command {
        Command::Get { key } => {
            let entry = client.get(&key)?.ok_or("there is no such key")?;
            std::io::stdout().write_all(&entry.value)?;
            println!();
        }
        Command::Put {
            key,
            value,
            expect: None,
        } => println!("revision {}", client.put(&key, &value)?),
        Command::Put {
            key,
            value,
            expect: Some(expected),
        } => match client.put_if(&key, &value, expected)? {
            ChangeResult::Changed(revision) => println!("revision {revision}"),
            ChangeResult::Conflict(current) => {
                return Err(format!("the key has revision {current}").into());
            }
        },
        Command::Remove { key } => {
            if !client.remove(&key)? {
                return Err("there is no such key".into());
            }
        }
        Command::List => list(&client)?,
    }
    Ok(())
}

/// Prints all keys, page by page.
fn list(client: &KvV1Client) -> Result<(), Box<dyn Error>> {
    let mut last = String::new();
    loop {
        let keys = client.list(&last)?;
        for key in &keys {
            println!("{key}");
        }
        match keys.into_iter().next_back() {
            Some(key) => last = key,
            None => return Ok(()),
        }
    }
}
