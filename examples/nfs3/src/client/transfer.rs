//! Files: read and written in pieces, with several calls in flight.
//!
//! What is written is unstable until COMMIT. If the server restarts before that, its write verifier
//! changes, and everything is written again (RFC 1813 section 3.3.21).

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{Read, Seek, Write};

use tenon::wire::BStr;
use tenon::{CallError, PendingCall};

use super::{ClientError, Remote, refused, senseless};
use crate::protocol::nfs3::*;

/// Calls in flight, at most.
const WINDOW: usize = 8;
/// How often a file is written before the server is given up.
const ATTEMPTS: u32 = 3;
/// The mode of new files.
const MODE: u32 = 0o644;

/// A write verifier.
type Verifier = [u8; 8];

/// A part of a file to be read.
#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: u64,
    count: u32,
}

/// What has become of a file that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    bytes: u64,
    verifier: Option<Verifier>,
    /// Whether all writes came back with the same verifier.
    is_whole: bool,
}

impl Remote {
    /// Copies the file at `path` to `sink` and says how many bytes it had.
    ///
    /// # Errors
    /// A call fails, the server refuses, or `sink` does.
    pub fn read_file(&self, path: &BStr, sink: &mut impl Write) -> Result<u64, ClientError> {
        let file = self.find(path)?;
        // The size is a promise of the server; the file may end earlier.
        let ended = Cell::new(false);
        let pieces = pieces(self.size(&file)?, self.sizes.read);
        let pieces = pieces.take_while(|_| !ended.get()).map(Ok);
        let start = |piece: &Piece| self.nfs.start_read(&read_args(&file, *piece));
        let mut bytes = 0;
        pipeline(pieces, start, |piece, result| {
            let received = self.receive(&file, piece, result, sink)?;
            ended.set(received < u64::from(piece.count));
            bytes += received;
            Ok(())
        })?;
        Ok(bytes)
    }

    fn size(&self, file: &NfsFh3) -> Result<u64, ClientError> {
        let object = file.clone();
        match self.nfs.getattr(&Getattr3Args { object })? {
            Getattr3Res::Ok(found) => Ok(found.obj_attributes.size),
            Getattr3Res::Default(status) => Err(refused("GETATTR", status)),
        }
    }

    /// Takes what was read, and reads on if the server gave less than it was asked for.
    fn receive(
        &self,
        file: &NfsFh3,
        piece: Piece,
        mut result: Read3Res,
        sink: &mut impl Write,
    ) -> Result<u64, ClientError> {
        let mut left = piece;
        loop {
            let read = data(result, left)?;
            sink.write_all(&read.data)?;
            left.offset += read.data.len() as u64;
            left.count -= read.data.len() as u32;
            if read.eof || left.count == 0 {
                return Ok(left.offset - piece.offset);
            }
            result = self.nfs.read(&read_args(file, left))?;
        }
    }

    /// Makes the file at `path`, or empties it, copies `source` into it and has it committed. Says
    /// how many bytes there were.
    ///
    /// # Errors
    /// A call fails, the server refuses, or `source` does.
    pub fn write_file(
        &self,
        path: &BStr,
        source: &mut (impl Read + Seek),
    ) -> Result<u64, ClientError> {
        let file = self.create(path)?;
        for _ in 0..ATTEMPTS {
            source.rewind()?;
            let sent = self.send(&file, source)?;
            let committed = self.commit(&file)?;
            if sent.is_whole && sent.verifier.is_none_or(|verifier| verifier == committed) {
                return Ok(sent.bytes);
            }
        }
        Err(ClientError::Restarts(ATTEMPTS))
    }

    fn create(&self, path: &BStr) -> Result<NfsFh3, ClientError> {
        let args = Create3Args {
            where_: self.place(path)?,
            how: Createhow3::Unchecked(empty_file()),
        };
        match self.nfs.create(&args)? {
            Create3Res::Ok(made) => match made.obj {
                PostOpFh3::Handle(file) => Ok(file),
                PostOpFh3::Void => self.find(path),
            },
            Create3Res::Default(status, _) => Err(refused("CREATE", status)),
        }
    }

    fn send(&self, file: &NfsFh3, source: &mut impl Read) -> Result<Sent, ClientError> {
        let mut sent = Sent {
            bytes: 0,
            verifier: None,
            is_whole: true,
        };
        let writes = writes(file, source, self.sizes.write);
        let start = |args: &Write3Args| self.nfs.start_write(args);
        pipeline(writes, start, |args, result| {
            self.finish_write(args, result, &mut sent)
        })?;
        Ok(sent)
    }

    /// Notes what was written, and writes the rest if the server took less than it was given.
    fn finish_write(
        &self,
        mut args: Write3Args,
        mut result: Write3Res,
        sent: &mut Sent,
    ) -> Result<(), ClientError> {
        loop {
            let written = taken(result, &args)?;
            sent.note(&written);
            args.data.drain(..written.count as usize);
            args.count -= written.count;
            args.offset += u64::from(written.count);
            if args.count == 0 {
                return Ok(());
            }
            result = self.nfs.write(&args)?;
        }
    }

    fn commit(&self, file: &NfsFh3) -> Result<Verifier, ClientError> {
        let args = Commit3Args {
            file: file.clone(),
            offset: 0,
            count: 0,
        };
        match self.nfs.commit(&args)? {
            Commit3Res::Ok(done) => Ok(done.verf),
            Commit3Res::Default(status, _) => Err(refused("COMMIT", status)),
        }
    }
}

impl Sent {
    fn note(&mut self, written: &Write3Resok) {
        self.bytes += u64::from(written.count);
        let first = *self.verifier.get_or_insert(written.verf);
        self.is_whole &= first == written.verf;
    }
}

/// Starts a call for each item, with at most [`WINDOW`] of them in flight, and finishes them in
/// order.
fn pipeline<P, T>(
    mut items: impl Iterator<Item = Result<P, ClientError>>,
    start: impl Fn(&P) -> Result<PendingCall<T>, CallError>,
    mut finish: impl FnMut(P, T) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let mut in_flight = VecDeque::with_capacity(WINDOW);
    loop {
        while in_flight.len() < WINDOW
            && let Some(item) = items.next().transpose()?
        {
            let call = start(&item)?;
            in_flight.push_back((item, call));
        }
        let Some((item, call)) = in_flight.pop_front() else {
            return Ok(());
        };
        finish(item, call.wait()?)?;
    }
}

/// The pieces of a file of `size` bytes.
fn pieces(size: u64, piece: u32) -> impl Iterator<Item = Piece> {
    let offsets = (0..size).step_by(piece as usize);
    offsets.map(move |offset| Piece {
        offset,
        count: (size - offset).min(u64::from(piece)) as u32,
    })
}

/// The calls that write what `source` holds.
fn writes(
    file: &NfsFh3,
    source: &mut impl Read,
    piece: u32,
) -> impl Iterator<Item = Result<Write3Args, ClientError>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let mut data = Vec::with_capacity(piece as usize);
        let read = source
            .by_ref()
            .take(u64::from(piece))
            .read_to_end(&mut data);
        if let Err(error) = read {
            return Some(Err(error.into()));
        }
        let args = Write3Args {
            file: file.clone(),
            offset,
            count: data.len() as u32,
            stable: StableHow::Unstable,
            data,
        };
        offset += u64::from(args.count);
        (args.count > 0).then_some(Ok(args))
    })
}

fn read_args(file: &NfsFh3, piece: Piece) -> Read3Args {
    Read3Args {
        file: file.clone(),
        offset: piece.offset,
        count: piece.count,
    }
}

/// What a READ of `piece` brought; never more than was asked for, and something unless the file
/// ends.
fn data(result: Read3Res, piece: Piece) -> Result<Read3Resok, ClientError> {
    let read = match result {
        Read3Res::Ok(read) => read,
        Read3Res::Default(status, _) => return Err(refused("READ", status)),
    };
    if read.data.len() > piece.count as usize {
        return Err(senseless("READ", "more data than was asked for"));
    }
    if read.data.is_empty() && !read.eof {
        return Err(senseless("READ", "no data, and not the end either"));
    }
    Ok(read)
}

/// What a WRITE took; never more than it was given, and something.
fn taken(result: Write3Res, args: &Write3Args) -> Result<Write3Resok, ClientError> {
    let written = match result {
        Write3Res::Ok(written) => written,
        Write3Res::Default(status, _) => return Err(refused("WRITE", status)),
    };
    if written.count == 0 || written.count > args.count {
        return Err(senseless(
            "WRITE",
            "it wrote nothing, or more than it was given",
        ));
    }
    Ok(written)
}

/// The attributes of a new file.
fn empty_file() -> Sattr3 {
    Sattr3 {
        mode: SetMode3::Mode(MODE),
        uid: SetUid3::Void,
        gid: SetGid3::Void,
        size: SetSize3::Size(0),
        atime: SetAtime::Default(TimeHow::DontChange),
        mtime: SetMtime::Default(TimeHow::DontChange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_file() {
        let of = |size| pieces(size, 10).map(|piece| (piece.offset, piece.count));
        assert_eq!(of(0).collect::<Vec<_>>(), []);
        assert_eq!(of(10).collect::<Vec<_>>(), [(0, 10)]);
        assert_eq!(of(25).collect::<Vec<_>>(), [(0, 10), (10, 10), (20, 5)]);
    }
}
