//! A file to which a server appends a record for each change, and from which the next process restores them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tenon::wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Limits, Marshal, Xdr,
};

/// Bytes in front of each record: its length, in the order of the network.
const HEADER: usize = 4;

/// Records of changes, each a value of an interface in XDR.
///
/// A record is written by one system call before the change is acknowledged, so it survives the death of the process.
/// With `sync` it also survives that of the machine, at the cost of waiting for the disk.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// The offset of the next record.
    end: u64,
    /// Set if a part of a record may be behind the end.
    is_torn: bool,
    sync: bool,
    record: Buffer,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be opened or read.
    #[error("cannot read the journal {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// Another process has the journal.
    #[error("another server uses the journal {path}; stop it first")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A record is not one of this interface.
    #[error("the journal is damaged at byte {offset}")]
    Damaged {
        /// The offset of the record.
        offset: usize,
        /// The defect of the record.
        source: DecodeError,
    },
    /// A record breaks a bound of the interface.
    #[error("cannot encode a record of the journal")]
    Encode(#[from] EncodeError),
    /// A record cannot be written.
    #[error("cannot write to the journal")]
    Write(#[source] io::Error),
}

impl Journal {
    /// Opens the journal at `path`, or makes it, and hands every record in it to `replay`, oldest first. With `sync`
    /// a record is on the disk before [`append`](Self::append) returns.
    ///
    /// # Errors
    /// The file cannot be read, is used by another process, or is damaged. The last record may be incomplete, as the
    /// process that wrote it may have been killed: it was never acknowledged, and the next one takes its place.
    pub fn open<R: Marshal<Xdr>>(
        path: &Path,
        sync: bool,
        replay: impl FnMut(R),
    ) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Read {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::InUse {
                    path: path.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let end = replay_records(&bytes, replay)?;
        Ok(Self {
            file,
            end: end as u64,
            is_torn: end < bytes.len(),
            sync,
            record: Buffer::default(),
        })
    }

    /// Appends a record. The change may be acknowledged afterwards.
    ///
    /// # Errors
    /// The record is not in the journal; the next one takes its place.
    pub fn append<R: Marshal<Xdr>>(&mut self, record: &R) -> Result<(), JournalError> {
        self.record.clear();
        self.record.extend(&[0; HEADER]);
        record.encode(&mut Encoder::new(&mut self.record))?;
        let bytes = self.record.as_mut_slice();
        let length = (bytes.len() - HEADER) as u32;
        bytes[..HEADER].copy_from_slice(&length.to_be_bytes());
        if self.is_torn {
            self.file.set_len(self.end).map_err(JournalError::Write)?;
        }
        self.is_torn = true;
        let written = self.file.write_all_at(bytes, self.end);
        written.map_err(JournalError::Write)?;
        if self.sync {
            self.file.sync_data().map_err(JournalError::Write)?;
        }
        self.is_torn = false;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// Returns the records of the journal at `path`, which a server may be appending to.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read_records<R: Marshal<Xdr>>(path: &Path) -> Result<Vec<R>, JournalError> {
    let bytes = std::fs::read(path).map_err(|source| JournalError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut records = Vec::new();
    replay_records(&bytes, |record| records.push(record))?;
    Ok(records)
}

/// Hands the records in `bytes` to `replay`, and returns where the last complete one ends.
fn replay_records<R: Marshal<Xdr>>(
    bytes: &[u8],
    mut replay: impl FnMut(R),
) -> Result<usize, JournalError> {
    let mut end = 0;
    while let Some((header, rest)) = bytes[end..].split_first_chunk() {
        let length = u32::from_be_bytes(*header) as usize;
        // No record is empty: zeros are what a file system leaves of one that did not reach the disk.
        if length == 0 || length > rest.len() {
            break;
        }
        let record = &rest[..length];
        let mut input = Decoder::with(record, DecodeMode::Strict, Limits::default());
        let decoded = R::decode(&mut input).and_then(|value| input.finish().map(|()| value));
        replay(decoded.map_err(|source| JournalError::Damaged {
            offset: end,
            source,
        })?);
        end += HEADER + length;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::{Journal, JournalError, read_records};
    use crate::kv::Change;

    /// A record whose length depends on the revision.
    fn change(revision: u64) -> Change {
        Change {
            key: "key".to_owned(),
            revision,
            value: Some(vec![7; 20 / revision as usize]),
        }
    }

    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tenon-{}-{name}", std::process::id()));
            let _ = std::fs::remove_file(&path);
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_record_that_was_cut_off_is_replaced_by_the_next() {
        let place = Place::new("cut");
        let mut journal = Journal::open(&place.0, true, |_: Change| {}).expect("a journal");
        journal.append(&change(1)).expect("it can be written");
        journal.append(&change(2)).expect("it can be written");
        drop(journal);
        let bytes = std::fs::read(&place.0).expect("it is there");
        for cut in 1..20 {
            std::fs::write(&place.0, &bytes[..bytes.len() - cut]).expect("it is ours");
            let mut found = Vec::new();
            let opened = Journal::open(&place.0, false, |record: Change| found.push(record));
            let mut journal = opened.expect("one record and a half");
            assert_eq!(found, [change(1)]);
            journal.append(&change(3)).expect("it can be written");
            let records = read_records::<Change>(&place.0).expect("two records");
            assert_eq!(records, [change(1), change(3)], "{cut}");
        }
    }

    #[test]
    fn a_damaged_record_and_a_second_server_are_errors() {
        let place = Place::new("damaged");
        let mut journal = Journal::open(&place.0, false, |_: Change| {}).expect("a journal");
        journal.append(&change(1)).expect("it can be written");
        let second = Journal::open(&place.0, false, |_: Change| {});
        assert!(matches!(second, Err(JournalError::InUse { .. })));
        drop(journal);
        let mut bytes = std::fs::read(&place.0).expect("it is there");
        bytes[7] = 200; // the key's length
        std::fs::write(&place.0, &bytes).expect("it is ours");
        let opened = Journal::open(&place.0, false, |_: Change| {});
        assert!(matches!(
            opened,
            Err(JournalError::Damaged { offset: 0, .. })
        ));
    }
}
