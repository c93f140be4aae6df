//! Directories: read by READDIRPLUS, a reply at a time.

use tenon::wire::BStr;

use super::{ClientError, Remote, refused, senseless};
use crate::protocol::nfs3::*;

impl Remote {
    /// The entries of the directory at `path`, without `.` and `..`, in the server's order.
    ///
    /// # Errors
    /// A call fails, or the server refuses.
    pub fn list(&self, path: &BStr) -> Result<Vec<Entryplus3>, ClientError> {
        let mut next = Readdirplus3Args {
            dir: self.find(path)?,
            cookie: 0,
            cookieverf: [0; 8],
            dircount: self.sizes.list,
            maxcount: self.sizes.list,
        };
        let mut entries = Vec::new();
        loop {
            let read = self.list_on(&next)?;
            let last = read.reply.entries.last().map(|entry| entry.cookie);
            entries.extend(read.reply.entries);
            match last {
                _ if read.reply.eof => break,
                Some(cookie) if cookie != next.cookie => next.cookie = cookie,
                _ => return Err(senseless("READDIRPLUS", "the directory has no end")),
            }
            next.cookieverf = read.cookieverf;
        }
        entries.retain(|entry| entry.name != "." && entry.name != "..");
        Ok(entries)
    }

    fn list_on(&self, args: &Readdirplus3Args) -> Result<Readdirplus3Resok, ClientError> {
        match self.nfs.readdirplus(args)? {
            Readdirplus3Res::Ok(read) => Ok(read),
            Readdirplus3Res::Default(status, _) => Err(refused("READDIRPLUS", status)),
        }
    }
}
