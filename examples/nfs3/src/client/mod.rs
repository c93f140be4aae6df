//! The client: mounts an export, finds paths in it, lists, reads, writes and removes.
//!
//! * [`Remote`] is a mounted export; its methods take paths below it.
//! * `transfer` moves the bytes of files with several calls in flight.
//! * `list` reads directories.
//!
//! Symbolic links are not followed.

mod error;
mod list;
mod transfer;

use tenon::Transport;
use tenon::wire::{BStr, BString, ByteSlice};

pub use error::ClientError;
use error::{refused, senseless};

use crate::protocol::mount3::{MountV3Client, Mountres3};
use crate::protocol::nfs3::*;

/// Most bytes that a READ, WRITE or READDIRPLUS moves, whatever the server would allow.
const PIECE_MAX: u32 = 1 << 20;
/// The same in datagrams, of which a receiver's queue must hold all that are in flight.
const PIECE_MAX_DATAGRAM: u32 = 8 << 10;

/// A mounted export of a server.
#[derive(Debug)]
pub struct Remote {
    nfs: NfsV3Client,
    mount: MountV3Client,
    export: BString,
    root: NfsFh3,
    sizes: Sizes,
}

/// Bytes that one call may move (FSINFO, RFC 1813 section 3.3.19).
#[derive(Debug, Clone, Copy)]
struct Sizes {
    read: u32,
    write: u32,
    list: u32,
}

impl Remote {
    /// Mounts `export`.
    ///
    /// # Errors
    /// A call fails, or the server does not export such a directory to this caller.
    pub fn mount(
        nfs: NfsV3Client,
        mount: MountV3Client,
        export: BString,
    ) -> Result<Self, ClientError> {
        let root = match mount.mnt(&export)? {
            Mountres3::Ok(mounted) => NfsFh3 {
                data: mounted.fhandle,
            },
            Mountres3::Default(status) => return Err(ClientError::Mount { export, status }),
        };
        let sizes = sizes(&nfs, &root)?;
        Ok(Self {
            nfs,
            mount,
            export,
            root,
            sizes,
        })
    }

    /// Tells the server that the export is not used any more.
    ///
    /// # Errors
    /// The call fails.
    pub fn unmount(self) -> Result<(), ClientError> {
        Ok(self.mount.umnt(&self.export)?)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// A call fails, or the server refuses.
    pub fn remove(&self, path: &BStr) -> Result<(), ClientError> {
        let object = self.place(path)?;
        match self.nfs.remove(&Remove3Args { object })? {
            Remove3Res::Ok(_) => Ok(()),
            Remove3Res::Default(status, _) => Err(refused("REMOVE", status)),
        }
    }

    /// The handle of the file at `path`.
    fn find(&self, path: &BStr) -> Result<NfsFh3, ClientError> {
        let mut found = self.root.clone();
        for name in names(path) {
            found = self.step(found, name)?;
        }
        Ok(found)
    }

    fn step(&self, dir: NfsFh3, name: &[u8]) -> Result<NfsFh3, ClientError> {
        let what = Diropargs3 {
            dir,
            name: name.into(),
        };
        match self.nfs.lookup(&Lookup3Args { what })? {
            Lookup3Res::Ok(found) => Ok(found.object),
            Lookup3Res::Default(status, _) => Err(refused("LOOKUP", status)),
        }
    }

    /// The directory that holds `path`, and the name in it.
    fn place(&self, path: &BStr) -> Result<Diropargs3, ClientError> {
        let name = names(path).next_back();
        let name = name.ok_or_else(|| ClientError::NoName(path.to_owned()))?;
        let above = path.trim_end_with(|char| char == '/');
        let above = &above[..above.len() - name.len()];
        Ok(Diropargs3 {
            dir: self.find(above.as_bstr())?,
            name: name.into(),
        })
    }
}

/// The components of a path.
fn names(path: &BStr) -> impl DoubleEndedIterator<Item = &[u8]> {
    let parts = path.split(|byte| *byte == b'/');
    parts.filter(|name| !name.is_empty())
}

fn sizes(nfs: &NfsV3Client, root: &NfsFh3) -> Result<Sizes, ClientError> {
    let fsroot = root.clone();
    let info = match nfs.fsinfo(&Fsinfo3Args { fsroot })? {
        Fsinfo3Res::Ok(info) => info,
        Fsinfo3Res::Default(status, _) => return Err(refused("FSINFO", status)),
    };
    if [info.rtmax, info.wtmax, info.dtpref].contains(&0) {
        return Err(senseless("FSINFO", "a size is 0"));
    }
    let most = match nfs.0.channel().address().transport() {
        Transport::Udp => PIECE_MAX_DATAGRAM,
        _ => PIECE_MAX,
    };
    Ok(Sizes {
        read: info.rtmax.min(most),
        write: info.wtmax.min(most),
        list: info.dtpref.min(most),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_at_slashes() {
        for (path, expected) in [
            ("", &[][..]),
            ("/", &[]),
            ("a", &["a"]),
            ("//a//b.c/", &["a", "b.c"]),
        ] {
            let found: Vec<_> = names(path.into()).collect();
            let expected: Vec<_> = expected.iter().map(|name| name.as_bytes()).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
