//! Files in chunks.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use clap::Subcommand;
use tenon::{CallError, CallErrorKind};
use tenon_example_system::uploads::{UploadPosition, UploadsV1Client};

use crate::Target;

/// Bytes of a chunk. Larger ones cost the server more memory and are not quicker.
const CHUNK: usize = 64 << 10;

#[derive(Subcommand)]
pub enum Command {
    /// Sends a file
    Put { file: PathBuf, name: String },
    /// Fetches a file
    Get { name: String, file: PathBuf },
    /// Removes a file
    Remove { name: String },
}

pub fn run(target: &Target, command: Command) -> Result<(), Box<dyn Error>> {
    let address = target.address("lean+tcp://127.0.0.1:4723");
    let client = UploadsV1Client::connect_with(address, target.options.clone())?;
    let client = client.with_timeout(target.timeout);
    match command {
        Command::Put { file, name } => put(&client, &mut File::open(file)?, &name),
        Command::Get { name, file } => get(&client, &name, &mut File::create(file)?),
        Command::Remove { name } => {
            if client.remove(&name)? {
                Ok(())
            } else {
                Err("there is no such file".into())
            }
        }
    }
}

fn put(client: &UploadsV1Client, file: &mut File, name: &str) -> Result<(), Box<dyn Error>> {
    let id = client.begin(name)?;
    let (mut next, mut chunk) = (0, Vec::new());
    loop {
        chunk.clear();
        file.seek(SeekFrom::Start(next))?;
        Read::by_ref(file)
            .take(CHUNK as u64)
            .read_to_end(&mut chunk)?;
        let is_end = chunk.is_empty();
        let position = if is_end {
            client.finish(id, next)
        } else {
            client.write(id, next, &chunk)
        };
        next = match position {
            Ok(UploadPosition::Ok(_)) if is_end => return Ok(()),
            Ok(position) => offset_of(&position)?,
            // It may have arrived, or not: where to go on the server knows.
            Err(error) if is_gone(&error) => match client.position(id)? {
                UploadPosition::Unknown if is_end => return Ok(()),
                position => offset_of(&position)?,
            },
            Err(error) => return Err(error.into()),
        };
    }
}

/// Returns where the next chunk belongs.
fn offset_of(position: &UploadPosition) -> Result<u64, &'static str> {
    match position {
        UploadPosition::Ok(next) | UploadPosition::Offset(next) => Ok(*next),
        UploadPosition::Unknown => Err("the server does not know the upload"),
        UploadPosition::Full => Err("the file is larger than the server takes"),
    }
}

/// Returns whether the server is gone and may be back soon.
fn is_gone(error: &CallError) -> bool {
    matches!(
        error.kind(),
        CallErrorKind::Disconnected | CallErrorKind::Stopping | CallErrorKind::Unreachable
    )
}

fn get(client: &UploadsV1Client, name: &str, file: &mut File) -> Result<(), Box<dyn Error>> {
    let mut offset = 0;
    loop {
        let piece = client.read(name, offset, CHUNK as u32)?;
        let piece = piece.ok_or("there is no such file")?;
        file.write_all(&piece.bytes)?;
        offset += piece.bytes.len() as u64;
        if offset >= piece.size {
            return Ok(());
        }
        if piece.bytes.is_empty() {
            return Err("the file has changed".into());
        }
    }
}
