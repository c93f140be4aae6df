//! Directories in replies of limited size (RFC 1813 sections 3.3.16 and 3.3.17).
//!
//! The caller says how many bytes a result may have. An entry is added while it fits; where the
//! next call goes on, its cookie says.

use tenon::wire::{BStr, Representation, Xdr};

use super::convert::{handle, post_op_attr, verifier};
use crate::fs::{Entry, FileId, FileSystem, FsError, HANDLE_BYTES};
use crate::protocol::nfs3::*;

/// Bytes of `post_op_attr` with attributes.
const ATTRIBUTES: usize = 4 + 84;
/// Bytes of `post_op_fh3` with a handle.
const HANDLE: usize = 4 + 4 + HANDLE_BYTES;
/// Bytes of a result without entries: attributes, verifier, end of the list, `eof`.
const EMPTY: usize = ATTRIBUTES + 8 + 4 + 4;

/// Bytes that are left in a result.
struct Budget(usize);

impl Budget {
    /// What is left of `bytes` behind an empty result.
    fn new(bytes: usize) -> Result<Self, Nfsstat3> {
        let left = bytes.checked_sub(EMPTY);
        left.map(Self).ok_or(Nfsstat3::ErrToosmall)
    }

    /// Takes `bytes` if they are left.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Bytes of what an entry says about its name: file id, name and cookie.
fn name_bytes(name: &BStr) -> usize {
    8 + 4 + Xdr::padded(name.len()) + 8
}

/// What READDIR returns, in at most `bytes`.
///
/// # Errors
/// How the procedure fails.
pub fn plain(
    fs: &FileSystem,
    dir: FileId,
    args: &Readdir3Args,
    bytes: usize,
) -> Result<Dirlist3, Nfsstat3> {
    let mut left = Budget::new(bytes)?;
    let fits = |entry: &Entry<'_>| left.take(4 + name_bytes(entry.name));
    let position = Position::new(args.cookie, args.cookieverf);
    let (entries, eof) = collect(fs, dir, position, fits, |entry| Entry3 {
        fileid: entry.id.0,
        name: entry.name.to_owned(),
        cookie: entry.cookie,
    })?;
    Ok(Dirlist3 { entries, eof })
}

/// What READDIRPLUS returns, in at most `bytes` of which `dircount` are about names.
///
/// # Errors
/// How the procedure fails.
pub fn with_attributes(
    fs: &FileSystem,
    dir: FileId,
    args: &Readdirplus3Args,
    bytes: usize,
) -> Result<Dirlistplus3, Nfsstat3> {
    let mut left = Budget::new(bytes)?;
    let mut left_for_names = Budget(args.dircount as usize);
    let fits = |entry: &Entry<'_>| {
        let name = name_bytes(entry.name);
        left_for_names.take(name) && left.take(4 + name + ATTRIBUTES + HANDLE)
    };
    let position = Position::new(args.cookie, args.cookieverf);
    let (entries, eof) = collect(fs, dir, position, fits, |entry| Entryplus3 {
        fileid: entry.id.0,
        name: entry.name.to_owned(),
        cookie: entry.cookie,
        name_attributes: post_op_attr(fs, Ok(entry.id)),
        name_handle: PostOpFh3::Handle(handle(fs, entry.id)),
    })?;
    Ok(Dirlistplus3 { entries, eof })
}

/// Where a caller goes on.
struct Position {
    cookie: u64,
    verifier: [u8; 8],
}

impl Position {
    fn new(cookie: u64, verifier: [u8; 8]) -> Self {
        Self { cookie, verifier }
    }

    /// A cookie counts in the file system that gave it.
    fn check(&self, fs: &FileSystem) -> Result<(), Nfsstat3> {
        match self.cookie == 0 || self.verifier == verifier(fs) {
            true => Ok(()),
            false => Err(Nfsstat3::ErrBadCookie),
        }
    }
}

/// The entries behind `position` while they fit, and whether they are the last.
fn collect<T>(
    fs: &FileSystem,
    dir: FileId,
    position: Position,
    mut fits: impl FnMut(&Entry<'_>) -> bool,
    convert: impl Fn(Entry<'_>) -> T,
) -> Result<(Vec<T>, bool), Nfsstat3> {
    position.check(fs)?;
    let failed = |error: FsError| super::convert::status(error);
    let mut entries = fs.list(dir, position.cookie).map_err(failed)?.peekable();
    let mut taken = Vec::new();
    while let Some(entry) = entries.next_if(&mut fits) {
        taken.push(convert(entry));
    }
    match entries.peek() {
        Some(_) if taken.is_empty() => Err(Nfsstat3::ErrToosmall),
        next => Ok((taken, next.is_none())),
    }
}
