//! The procedures of NFS (RFC 1813 section 3.3): each takes its arguments to the file system and
//! brings back the result with the attributes around it.

use tenon::{CallInfo, Refusal, Transport};

use super::convert::{
    Watched, fattr, handle, new_attributes, owned, post_op_attr, set_attributes, status, time,
    verifier,
};
use super::{SharedFs, listing};
use crate::fs::{
    Attributes, Create, FILE_SIZE_MAX, FileId, FileKind, FileSystem, FsError, LINKS_MAX, NAME_MAX,
    SetAttributes,
};
use crate::protocol::nfs3::*;

/// Bytes of data in a READ or WRITE, and of a directory listing, at most.
const DATA_MAX: u32 = 1 << 20;
/// The same in a datagram, which must hold the rest of the message too.
const DATA_MAX_DATAGRAM: u32 = 32 << 10;
/// Size that READ, WRITE and READDIR do best with multiples of: a block of the file system.
const DATA_MULTIPLE: u32 = 4096;

/// Serves NFS.
#[derive(Debug, Clone)]
pub struct Nfs(pub SharedFs);

impl NfsV3 for Nfs {
    fn getattr(&self, _: &CallInfo<'_>, args: Getattr3Args) -> Result<Getattr3Res, Refusal> {
        let fs = self.0.read();
        let attributes = fs
            .resolve(&args.object.data)
            .and_then(|id| fs.attributes(id));
        Ok(match attributes {
            Ok(attributes) => Getattr3Res::Ok(Getattr3Resok {
                obj_attributes: fattr(&fs, &attributes),
            }),
            Err(error) => Getattr3Res::Default(status(error)),
        })
    }

    fn setattr(&self, _: &CallInfo<'_>, args: Setattr3Args) -> Result<Setattr3Res, Refusal> {
        let mut fs = self.0.write();
        let file = Watched::new(&fs, &args.object);
        let guard = match &args.guard {
            Sattrguard3::ObjCtime(changed) => Some(time(changed)),
            Sattrguard3::Void => None,
        };
        let set = set_attributes(&args.new_attributes);
        let done = file.id.and_then(|id| fs.set_attributes(id, &set, guard));
        let obj_wcc = file.wcc(&fs);
        Ok(match done {
            Ok(()) => Setattr3Res::Ok(Setattr3Resok { obj_wcc }),
            Err(error) => Setattr3Res::Default(status(error), Setattr3Resfail { obj_wcc }),
        })
    }

    fn lookup(&self, _: &CallInfo<'_>, args: Lookup3Args) -> Result<Lookup3Res, Refusal> {
        let fs = self.0.read();
        let dir = fs.resolve(&args.what.dir.data);
        let found = dir.and_then(|dir| fs.lookup(dir, &args.what.name));
        let dir_attributes = post_op_attr(&fs, dir);
        Ok(match found {
            Ok(id) => Lookup3Res::Ok(Lookup3Resok {
                object: handle(&fs, id),
                obj_attributes: post_op_attr(&fs, Ok(id)),
                dir_attributes,
            }),
            Err(error) => Lookup3Res::Default(status(error), Lookup3Resfail { dir_attributes }),
        })
    }

    fn access(&self, _: &CallInfo<'_>, args: Access3Args) -> Result<Access3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.object.data);
        let obj_attributes = post_op_attr(&fs, id);
        Ok(match id.and_then(|id| fs.attributes(id)) {
            Ok(attributes) => Access3Res::Ok(Access3Resok {
                obj_attributes,
                access: args.access & possible_access(&attributes),
            }),
            Err(error) => Access3Res::Default(status(error), Access3Resfail { obj_attributes }),
        })
    }

    fn readlink(&self, _: &CallInfo<'_>, args: Readlink3Args) -> Result<Readlink3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.symlink.data);
        let symlink_attributes = post_op_attr(&fs, id);
        Ok(match id.and_then(|id| fs.read_link(id)) {
            Ok(target) => Readlink3Res::Ok(Readlink3Resok {
                symlink_attributes,
                data: target.clone(),
            }),
            Err(error) => {
                Readlink3Res::Default(status(error), Readlink3Resfail { symlink_attributes })
            }
        })
    }

    fn read(&self, call: &CallInfo<'_>, args: Read3Args) -> Result<Read3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.file.data);
        let count = args.count.min(data_max(call)) as usize;
        let data = id.and_then(|id| fs.read(id, args.offset, count));
        let file_attributes = post_op_attr(&fs, id);
        Ok(match data {
            Ok(data) => Read3Res::Ok(Read3Resok {
                file_attributes,
                count: data.bytes.len() as u32,
                eof: data.end,
                data: data.bytes,
            }),
            Err(error) => Read3Res::Default(status(error), Read3Resfail { file_attributes }),
        })
    }

    fn write(&self, _: &CallInfo<'_>, args: Write3Args) -> Result<Write3Res, Refusal> {
        let mut fs = self.0.write();
        let file = Watched::new(&fs, &args.file);
        let done = file
            .id
            .and_then(|id| match args.data.len() == args.count as usize {
                true => fs.write(id, args.offset, &args.data),
                false => Err(FsError::Invalid),
            });
        let file_wcc = file.wcc(&fs);
        Ok(match done {
            Ok(()) => Write3Res::Ok(Write3Resok {
                file_wcc,
                count: args.count,
                committed: args.stable,
                verf: verifier(&fs),
            }),
            Err(error) => Write3Res::Default(status(error), Write3Resfail { file_wcc }),
        })
    }

    fn create(&self, call: &CallInfo<'_>, args: Create3Args) -> Result<Create3Res, Refusal> {
        let mut fs = self.0.write();
        let dir = Watched::new(&fs, &args.where_.dir);
        let how = match &args.how {
            Createhow3::Unchecked(set) => Create::Unchecked(new_attributes(call, set)),
            Createhow3::Guarded(set) => Create::Guarded(new_attributes(call, set)),
            Createhow3::Exclusive(verifier) => {
                Create::Exclusive(*verifier, owned(call, SetAttributes::default()))
            }
        };
        let made = dir
            .id
            .and_then(|dir| fs.create(dir, &args.where_.name, how));
        let dir_wcc = dir.wcc(&fs);
        Ok(match made {
            Ok(id) => Create3Res::Ok(Create3Resok {
                obj: PostOpFh3::Handle(handle(&fs, id)),
                obj_attributes: post_op_attr(&fs, Ok(id)),
                dir_wcc,
            }),
            Err(error) => Create3Res::Default(status(error), Create3Resfail { dir_wcc }),
        })
    }

    fn mkdir(&self, call: &CallInfo<'_>, args: Mkdir3Args) -> Result<Mkdir3Res, Refusal> {
        let mut fs = self.0.write();
        let dir = Watched::new(&fs, &args.where_.dir);
        let set = new_attributes(call, &args.attributes);
        let made = dir
            .id
            .and_then(|dir| fs.make_directory(dir, &args.where_.name, &set));
        let dir_wcc = dir.wcc(&fs);
        Ok(match made {
            Ok(id) => Mkdir3Res::Ok(Mkdir3Resok {
                obj: PostOpFh3::Handle(handle(&fs, id)),
                obj_attributes: post_op_attr(&fs, Ok(id)),
                dir_wcc,
            }),
            Err(error) => Mkdir3Res::Default(status(error), Mkdir3Resfail { dir_wcc }),
        })
    }

    fn symlink(&self, call: &CallInfo<'_>, args: Symlink3Args) -> Result<Symlink3Res, Refusal> {
        let mut fs = self.0.write();
        let dir = Watched::new(&fs, &args.where_.dir);
        let set = new_attributes(call, &args.symlink.symlink_attributes);
        let (name, target) = (&args.where_.name, &args.symlink.symlink_data);
        let made = dir
            .id
            .and_then(|dir| fs.make_symlink(dir, name, target, &set));
        let dir_wcc = dir.wcc(&fs);
        Ok(match made {
            Ok(id) => Symlink3Res::Ok(Symlink3Resok {
                obj: PostOpFh3::Handle(handle(&fs, id)),
                obj_attributes: post_op_attr(&fs, Ok(id)),
                dir_wcc,
            }),
            Err(error) => Symlink3Res::Default(status(error), Symlink3Resfail { dir_wcc }),
        })
    }

    /// Devices, sockets and pipes do not live here.
    fn mknod(&self, _: &CallInfo<'_>, args: Mknod3Args) -> Result<Mknod3Res, Refusal> {
        let fs = self.0.read();
        let dir = Watched::new(&fs, &args.where_.dir);
        let dir_wcc = dir.wcc(&fs);
        let why = dir.id.map_or_else(status, |_| Nfsstat3::ErrNotsupp);
        Ok(Mknod3Res::Default(why, Mknod3Resfail { dir_wcc }))
    }

    fn remove(&self, _: &CallInfo<'_>, args: Remove3Args) -> Result<Remove3Res, Refusal> {
        let mut fs = self.0.write();
        let dir = Watched::new(&fs, &args.object.dir);
        let done = dir.id.and_then(|dir| fs.remove(dir, &args.object.name));
        let dir_wcc = dir.wcc(&fs);
        Ok(match done {
            Ok(()) => Remove3Res::Ok(Remove3Resok { dir_wcc }),
            Err(error) => Remove3Res::Default(status(error), Remove3Resfail { dir_wcc }),
        })
    }

    fn rmdir(&self, _: &CallInfo<'_>, args: Rmdir3Args) -> Result<Rmdir3Res, Refusal> {
        let mut fs = self.0.write();
        let dir = Watched::new(&fs, &args.object.dir);
        let done = dir
            .id
            .and_then(|dir| fs.remove_directory(dir, &args.object.name));
        let dir_wcc = dir.wcc(&fs);
        Ok(match done {
            Ok(()) => Rmdir3Res::Ok(Rmdir3Resok { dir_wcc }),
            Err(error) => Rmdir3Res::Default(status(error), Rmdir3Resfail { dir_wcc }),
        })
    }

    fn rename(&self, _: &CallInfo<'_>, args: Rename3Args) -> Result<Rename3Res, Refusal> {
        let mut fs = self.0.write();
        let from = Watched::new(&fs, &args.from.dir);
        let to = Watched::new(&fs, &args.to.dir);
        let done = both(from.id, to.id)
            .and_then(|(from, to)| fs.rename(from, &args.from.name, to, &args.to.name));
        let (fromdir_wcc, todir_wcc) = (from.wcc(&fs), to.wcc(&fs));
        Ok(match done {
            Ok(()) => Rename3Res::Ok(Rename3Resok {
                fromdir_wcc,
                todir_wcc,
            }),
            Err(error) => Rename3Res::Default(
                status(error),
                Rename3Resfail {
                    fromdir_wcc,
                    todir_wcc,
                },
            ),
        })
    }

    fn link(&self, _: &CallInfo<'_>, args: Link3Args) -> Result<Link3Res, Refusal> {
        let mut fs = self.0.write();
        let file = fs.resolve(&args.file.data);
        let dir = Watched::new(&fs, &args.link.dir);
        let done = both(file, dir.id).and_then(|(file, dir)| fs.link(file, dir, &args.link.name));
        let (file_attributes, linkdir_wcc) = (post_op_attr(&fs, file), dir.wcc(&fs));
        Ok(match done {
            Ok(()) => Link3Res::Ok(Link3Resok {
                file_attributes,
                linkdir_wcc,
            }),
            Err(error) => Link3Res::Default(
                status(error),
                Link3Resfail {
                    file_attributes,
                    linkdir_wcc,
                },
            ),
        })
    }

    fn readdir(&self, call: &CallInfo<'_>, args: Readdir3Args) -> Result<Readdir3Res, Refusal> {
        let fs = self.0.read();
        let dir = fs.resolve(&args.dir.data);
        let bytes = args.count.min(data_max(call)) as usize;
        let listed = dir
            .map_err(status)
            .and_then(|dir| listing::plain(&fs, dir, &args, bytes));
        let dir_attributes = post_op_attr(&fs, dir);
        Ok(match listed {
            Ok(reply) => Readdir3Res::Ok(Readdir3Resok {
                dir_attributes,
                cookieverf: verifier(&fs),
                reply,
            }),
            Err(status) => Readdir3Res::Default(status, Readdir3Resfail { dir_attributes }),
        })
    }

    fn readdirplus(
        &self,
        call: &CallInfo<'_>,
        args: Readdirplus3Args,
    ) -> Result<Readdirplus3Res, Refusal> {
        let fs = self.0.read();
        let dir = fs.resolve(&args.dir.data);
        let bytes = args.maxcount.min(data_max(call)) as usize;
        let listed = dir
            .map_err(status)
            .and_then(|dir| listing::with_attributes(&fs, dir, &args, bytes));
        let dir_attributes = post_op_attr(&fs, dir);
        Ok(match listed {
            Ok(reply) => Readdirplus3Res::Ok(Readdirplus3Resok {
                dir_attributes,
                cookieverf: verifier(&fs),
                reply,
            }),
            Err(status) => Readdirplus3Res::Default(status, Readdirplus3Resfail { dir_attributes }),
        })
    }

    fn fsstat(&self, _: &CallInfo<'_>, args: Fsstat3Args) -> Result<Fsstat3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.fsroot.data);
        let obj_attributes = post_op_attr(&fs, id);
        Ok(match id {
            Ok(_) => Fsstat3Res::Ok(fs_state(&fs, obj_attributes)),
            Err(error) => Fsstat3Res::Default(status(error), Fsstat3Resfail { obj_attributes }),
        })
    }

    fn fsinfo(&self, call: &CallInfo<'_>, args: Fsinfo3Args) -> Result<Fsinfo3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.fsroot.data);
        let obj_attributes = post_op_attr(&fs, id);
        Ok(match id {
            Ok(_) => Fsinfo3Res::Ok(fs_properties(data_max(call), obj_attributes)),
            Err(error) => Fsinfo3Res::Default(status(error), Fsinfo3Resfail { obj_attributes }),
        })
    }

    fn pathconf(&self, _: &CallInfo<'_>, args: Pathconf3Args) -> Result<Pathconf3Res, Refusal> {
        let fs = self.0.read();
        let id = fs.resolve(&args.object.data);
        let obj_attributes = post_op_attr(&fs, id);
        Ok(match id {
            Ok(_) => Pathconf3Res::Ok(Pathconf3Resok {
                obj_attributes,
                linkmax: LINKS_MAX,
                name_max: NAME_MAX as u32,
                no_trunc: true,
                chown_restricted: false,
                case_insensitive: false,
                case_preserving: true,
            }),
            Err(error) => Pathconf3Res::Default(status(error), Pathconf3Resfail { obj_attributes }),
        })
    }

    /// Memory is all the storage there is: what was written is committed already.
    fn commit(&self, _: &CallInfo<'_>, args: Commit3Args) -> Result<Commit3Res, Refusal> {
        let fs = self.0.read();
        let file = Watched::new(&fs, &args.file);
        let file_wcc = file.wcc(&fs);
        Ok(match file.id.and_then(|id| check_regular(&fs, id)) {
            Ok(()) => Commit3Res::Ok(Commit3Resok {
                file_wcc,
                verf: verifier(&fs),
            }),
            Err(error) => Commit3Res::Default(status(error), Commit3Resfail { file_wcc }),
        })
    }
}

/// Bytes of data that one message may carry, at most.
fn data_max(call: &CallInfo<'_>) -> u32 {
    match call.transport {
        Transport::Udp => DATA_MAX_DATAGRAM,
        _ => DATA_MAX,
    }
}

/// The kinds of access that a file of this kind has for everybody.
fn possible_access(attributes: &Attributes) -> u32 {
    let change = ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND;
    match attributes.kind {
        FileKind::Directory => change | ACCESS3_LOOKUP | ACCESS3_DELETE,
        FileKind::Regular if attributes.mode & 0o111 != 0 => change | ACCESS3_EXECUTE,
        FileKind::Regular | FileKind::Symlink => change,
    }
}

fn both(
    one: Result<FileId, FsError>,
    other: Result<FileId, FsError>,
) -> Result<(FileId, FileId), FsError> {
    Ok((one?, other?))
}

fn check_regular(fs: &FileSystem, id: FileId) -> Result<(), FsError> {
    match fs.attributes(id)?.kind {
        FileKind::Regular => Ok(()),
        _ => Err(FsError::Invalid),
    }
}

fn fs_state(fs: &FileSystem, obj_attributes: PostOpAttr) -> Fsstat3Resok {
    let space = fs.space();
    let (files, files_free) = fs.file_counts();
    Fsstat3Resok {
        obj_attributes,
        tbytes: space.limit,
        fbytes: space.free(),
        abytes: space.free(),
        tfiles: files + files_free,
        ffiles: files_free,
        afiles: files_free,
        invarsec: 0,
    }
}

fn fs_properties(data_max: u32, obj_attributes: PostOpAttr) -> Fsinfo3Resok {
    Fsinfo3Resok {
        obj_attributes,
        rtmax: data_max,
        rtpref: data_max,
        rtmult: DATA_MULTIPLE,
        wtmax: data_max,
        wtpref: data_max,
        wtmult: DATA_MULTIPLE,
        dtpref: data_max.min(DATA_MAX_DATAGRAM),
        maxfilesize: FILE_SIZE_MAX,
        time_delta: Nfstime3 {
            seconds: 0,
            nseconds: 1,
        },
        properties: FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
    }
}
