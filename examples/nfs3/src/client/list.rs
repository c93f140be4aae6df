//! Directories: read by READDIRPLUS, a reply at a time, or by READDIR and LOOKUP where a server does not have that.

use tenon::CallErrorKind;
use tenon::wire::{BStr, BString};

use super::{ClientError, Remote, refused, senseless};
use crate::protocol::nfs3::*;

/// What is read of a directory by one call, whichever procedure was called.
struct Page {
    entries: Vec<Entryplus3>,
    eof: bool,
    cookieverf: Cookieverf3,
}

/// Where reading goes on.
struct Position {
    dir: NfsFh3,
    cookie: Cookie3,
    cookieverf: Cookieverf3,
}

impl Remote {
    /// The entries of the directory at `path`, without `.` and `..`, in the server's order.
    ///
    /// # Errors
    /// A call fails, or the server refuses.
    pub fn list(&self, path: &BStr) -> Result<Vec<Entryplus3>, ClientError> {
        let dir = self.find(path)?;
        match self.list_by(&dir, "READDIRPLUS", |at| self.page_with_attributes(at)) {
            Err(error) if is_unsupported(&error) => {
                let mut entries = self.list_by(&dir, "READDIR", |at| self.plain_page(at))?;
                for entry in &mut entries {
                    self.look_up(&dir, entry)?;
                }
                Ok(entries)
            }
            listed => listed,
        }
    }

    /// Reads a directory page by page.
    fn list_by(
        &self,
        dir: &NfsFh3,
        procedure: &'static str,
        page: impl Fn(&Position) -> Result<Page, ClientError>,
    ) -> Result<Vec<Entryplus3>, ClientError> {
        let mut next = Position {
            dir: dir.clone(),
            cookie: 0,
            cookieverf: [0; 8],
        };
        let mut entries = Vec::new();
        loop {
            let read = page(&next)?;
            let last = read.entries.last().map(|entry| entry.cookie);
            entries.extend(read.entries);
            match last {
                _ if read.eof => break,
                Some(cookie) if cookie != next.cookie => next.cookie = cookie,
                _ => return Err(senseless(procedure, "the directory has no end")),
            }
            next.cookieverf = read.cookieverf;
        }
        entries.retain(|entry| entry.name != "." && entry.name != "..");
        Ok(entries)
    }

    fn page_with_attributes(&self, at: &Position) -> Result<Page, ClientError> {
        let args = Readdirplus3Args {
            dir: at.dir.clone(),
            cookie: at.cookie,
            cookieverf: at.cookieverf,
            dircount: self.sizes.list,
            maxcount: self.sizes.list,
        };
        match self.nfs.readdirplus(&args)? {
            Readdirplus3Res::Ok(read) => Ok(Page {
                entries: read.reply.entries,
                eof: read.reply.eof,
                cookieverf: read.cookieverf,
            }),
            Readdirplus3Res::Default(status, _) => Err(refused("READDIRPLUS", status)),
        }
    }

    fn plain_page(&self, at: &Position) -> Result<Page, ClientError> {
        let args = Readdir3Args {
            dir: at.dir.clone(),
            cookie: at.cookie,
            cookieverf: at.cookieverf,
            count: self.sizes.list,
        };
        match self.nfs.readdir(&args)? {
            Readdir3Res::Ok(read) => Ok(Page {
                entries: read
                    .reply
                    .entries
                    .into_iter()
                    .map(without_attributes)
                    .collect(),
                eof: read.reply.eof,
                cookieverf: read.cookieverf,
            }),
            Readdir3Res::Default(status, _) => Err(refused("READDIR", status)),
        }
    }

    /// Finds the attributes of an entry. One that is gone by now, or that this caller may not look up, has none.
    fn look_up(&self, dir: &NfsFh3, entry: &mut Entryplus3) -> Result<(), ClientError> {
        let what = Diropargs3 {
            dir: dir.clone(),
            name: BString::clone(&entry.name),
        };
        if let Lookup3Res::Ok(found) = self.nfs.lookup(&Lookup3Args { what })? {
            entry.name_attributes = found.obj_attributes;
            entry.name_handle = PostOpFh3::Handle(found.object);
        }
        Ok(())
    }
}

/// Whether a server does not have a procedure: it says so by a status of NFS, as unfs3 does, or by one of ONC RPC.
fn is_unsupported(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { status, .. } => *status == Nfsstat3::ErrNotsupp,
        ClientError::Call(error) => error.kind() == CallErrorKind::NoProcedure,
        _ => false,
    }
}

fn without_attributes(entry: Entry3) -> Entryplus3 {
    Entryplus3 {
        fileid: entry.fileid,
        name: entry.name,
        cookie: entry.cookie,
        name_attributes: PostOpAttr::Void,
        name_handle: PostOpFh3::Void,
    }
}
