//! Reads files from disk or memory, up to a limit of bytes.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::options::FileSource;

/// Reads the text of `path`, if there is such a file; the error is a message for the user. Bytes that
/// are not UTF-8 are replaced; the preprocessor warns of them where it matters: outside of comments.
pub(crate) fn read(
    path: &Path,
    files: &FileSource,
    bytes_max: usize,
) -> Result<Option<String>, String> {
    match files {
        FileSource::Memory(texts) => Ok(texts.get(path).cloned()),
        FileSource::Disk => read_disk(path, bytes_max),
    }
}

fn read_disk(path: &Path, bytes_max: usize) -> Result<Option<String>, String> {
    let shown = path.display();
    let cannot = |error| format!("cannot read `{shown}`: {error}");
    // Checked before the file is opened: opening a named pipe would wait for a writer.
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(format!("`{shown}` is not a file")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    }
    let file = File::open(path).map_err(cannot)?;
    read_input(&shown.to_string(), file, bytes_max).map(Some)
}

/// Reads `input` to its end; the error is a message for the user, in which the input is called `name`.
pub(crate) fn read_input(name: &str, input: impl Read, bytes_max: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let limit = bytes_max as u64 + 1;
    let done = input.take(limit).read_to_end(&mut bytes);
    done.map_err(|error| format!("cannot read `{name}`: {error}"))?;
    if bytes.len() > bytes_max {
        return Err(format!("`{name}` is too long: more than {bytes_max} bytes"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
