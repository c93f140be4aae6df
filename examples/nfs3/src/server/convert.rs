//! Between the types of the protocol and those of the file system.

use tenon::{CallInfo, Credential};

use crate::fs::{Attributes, FileId, FileKind, FileSystem, FsError, SetAttributes, SetTime, Time};
use crate::protocol::nfs3::*;

/// How a procedure ends that fails so.
pub fn status(error: FsError) -> Nfsstat3 {
    match error {
        FsError::NoEntry => Nfsstat3::ErrNoent,
        FsError::BadName => Nfsstat3::ErrAcces,
        FsError::Exists => Nfsstat3::ErrExist,
        FsError::NotDirectory => Nfsstat3::ErrNotdir,
        FsError::IsDirectory => Nfsstat3::ErrIsdir,
        FsError::Invalid => Nfsstat3::ErrInval,
        FsError::TooLarge => Nfsstat3::ErrFbig,
        FsError::NoSpace => Nfsstat3::ErrNospc,
        FsError::TooManyLinks => Nfsstat3::ErrMlink,
        FsError::NameTooLong => Nfsstat3::ErrNametoolong,
        FsError::NotEmpty => Nfsstat3::ErrNotempty,
        FsError::Stale => Nfsstat3::ErrStale,
        FsError::BadHandle => Nfsstat3::ErrBadhandle,
        FsError::NotInStep => Nfsstat3::ErrNotSync,
    }
}

/// The handle of a file.
pub fn handle(fs: &FileSystem, id: FileId) -> NfsFh3 {
    NfsFh3 {
        data: fs.handle(id).to_bytes().to_vec(),
    }
}

/// Eight bytes that differ from one start of the server to the next: the verifier of writes and
/// of directory cookies.
pub fn verifier(fs: &FileSystem) -> [u8; 8] {
    fs.instance().to_be_bytes()
}

/// The attributes of a file, if it can be found.
pub fn post_op_attr(fs: &FileSystem, id: Result<FileId, FsError>) -> PostOpAttr {
    match id.and_then(|id| fs.attributes(id)) {
        Ok(attributes) => PostOpAttr::Attributes(fattr(fs, &attributes)),
        Err(_) => PostOpAttr::Void,
    }
}

/// All attributes of a file.
pub fn fattr(fs: &FileSystem, attributes: &Attributes) -> Fattr3 {
    Fattr3 {
        type_: file_type(attributes.kind),
        mode: attributes.mode,
        nlink: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        size: attributes.size,
        used: attributes.used,
        rdev: Specdata3::default(),
        fsid: fs.instance(),
        fileid: attributes.id.0,
        atime: nfs_time(attributes.accessed),
        mtime: nfs_time(attributes.modified),
        ctime: nfs_time(attributes.changed),
    }
}

fn file_type(kind: FileKind) -> Ftype3 {
    match kind {
        FileKind::Regular => Ftype3::Reg,
        FileKind::Directory => Ftype3::Dir,
        FileKind::Symlink => Ftype3::Lnk,
    }
}

fn nfs_time(time: Time) -> Nfstime3 {
    Nfstime3 {
        seconds: time.seconds,
        nseconds: time.nanoseconds,
    }
}

/// A point in time that a caller sent.
pub fn time(time: &Nfstime3) -> Time {
    Time {
        seconds: time.seconds,
        nanoseconds: time.nseconds,
    }
}

/// The attributes that a caller sets.
pub fn set_attributes(set: &Sattr3) -> SetAttributes {
    SetAttributes {
        mode: match set.mode {
            SetMode3::Mode(mode) => Some(mode),
            SetMode3::Void => None,
        },
        uid: match set.uid {
            SetUid3::Uid(uid) => Some(uid),
            SetUid3::Void => None,
        },
        gid: match set.gid {
            SetGid3::Gid(gid) => Some(gid),
            SetGid3::Void => None,
        },
        size: match set.size {
            SetSize3::Size(size) => Some(size),
            SetSize3::Void => None,
        },
        accessed: match &set.atime {
            SetAtime::SetToClientTime(atime) => SetTime::To(time(atime)),
            SetAtime::Default(how) => set_time(*how),
        },
        modified: match &set.mtime {
            SetMtime::SetToClientTime(mtime) => SetTime::To(time(mtime)),
            SetMtime::Default(how) => set_time(*how),
        },
    }
}

fn set_time(how: TimeHow) -> SetTime {
    match how {
        TimeHow::SetToServerTime => SetTime::Now,
        TimeHow::DontChange | TimeHow::SetToClientTime => SetTime::Keep,
    }
}

/// The attributes of a new file, which is the caller's unless it says otherwise.
pub fn new_attributes(call: &CallInfo<'_>, set: &Sattr3) -> SetAttributes {
    owned(call, set_attributes(set))
}

/// `set` with the caller as owner if it names none.
pub fn owned(call: &CallInfo<'_>, set: SetAttributes) -> SetAttributes {
    match call.peer().credential {
        Credential::None => set,
        Credential::Sys(caller) => SetAttributes {
            uid: set.uid.or(Some(caller.uid())),
            gid: set.gid.or(Some(caller.gid())),
            ..set
        },
    }
}

/// A file that a procedure may change, with its attributes from before.
pub struct Watched {
    /// The file, if the handle is good.
    pub id: Result<FileId, FsError>,
    before: Option<Attributes>,
}

impl Watched {
    /// Looks at the file before the change.
    pub fn new(fs: &FileSystem, handle: &NfsFh3) -> Self {
        let id = fs.resolve(&handle.data);
        let before = id.and_then(|id| fs.attributes(id)).ok();
        Self { id, before }
    }

    /// The attributes around the change (RFC 1813 section 2.6).
    pub fn wcc(&self, fs: &FileSystem) -> WccData {
        let before = match &self.before {
            None => PreOpAttr::Void,
            Some(before) => PreOpAttr::Attributes(WccAttr {
                size: before.size,
                mtime: nfs_time(before.modified),
                ctime: nfs_time(before.changed),
            }),
        };
        let after = post_op_attr(fs, self.id);
        WccData { before, after }
    }
}
