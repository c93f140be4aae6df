//! Each procedure of the server, called by the generated client over TCP, and over UDP where that
//! makes a difference: results, statuses and the attributes around them.
#![allow(clippy::unwrap_used)]

use tenon::wire::BString;
use tenon::{AuthSys, Credential, Server};
use tenon_example_nfs3::fs::FileSystem;
use tenon_example_nfs3::protocol::mount3::{
    MountV3Client, MountV3Service, Mountres3, Mountres3Ok, Mountstat3,
};
use tenon_example_nfs3::protocol::nfs3::*;
use tenon_example_nfs3::server::{Export, Nfs, SharedFs};

const MEMORY: u64 = 4 << 20;

/// A server of its own, and clients of it.
struct Setup {
    _server: Server,
    nfs: NfsV3Client,
    over_udp: NfsV3Client,
    mount: MountV3Client,
    root: NfsFh3,
}

fn setup() -> Setup {
    let fs = SharedFs::new(FileSystem::new(42, MEMORY));
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .listen("udp://127.0.0.1:0")
        .unwrap()
        .service(NfsV3Service(Nfs(fs.clone())))
        .service(MountV3Service(Export::new(fs, "/export").unwrap()))
        .start()
        .unwrap();
    let [tcp, udp] = [0, 1].map(|at| server.addresses()[at].to_string());
    let mount = MountV3Client::connect(&tcp).unwrap();
    Setup {
        nfs: NfsV3Client::connect(&tcp).unwrap(),
        over_udp: NfsV3Client::connect(&udp).unwrap(),
        root: NfsFh3 {
            data: mounted(&mount, "/export").unwrap().fhandle,
        },
        mount,
        _server: server,
    }
}

fn mounted(mount: &MountV3Client, path: &str) -> Result<Mountres3Ok, Mountstat3> {
    match mount.mnt(path).unwrap() {
        Mountres3::Ok(mounted) => Ok(mounted),
        Mountres3::Default(status) => Err(status),
    }
}

/// Takes a result apart: what it is, or the status with what came along.
macro_rules! outcome {
    ($result:expr, $type:ident) => {
        match $result.unwrap() {
            $type::Ok(done) => Ok(done),
            $type::Default(status, _) => Err(status),
        }
    };
}

impl Setup {
    fn at(&self, name: &str) -> Diropargs3 {
        place(&self.root, name)
    }

    fn create(&self, name: &str, how: Createhow3) -> Result<Create3Resok, Nfsstat3> {
        let where_ = self.at(name);
        outcome!(self.nfs.create(&Create3Args { where_, how }), Create3Res)
    }

    fn file(&self, name: &str) -> NfsFh3 {
        let made = self.create(name, Createhow3::Guarded(nothing())).unwrap();
        handle(made.obj)
    }

    fn directory(&self, name: &str) -> NfsFh3 {
        let args = Mkdir3Args {
            where_: self.at(name),
            attributes: nothing(),
        };
        handle(outcome!(self.nfs.mkdir(&args), Mkdir3Res).unwrap().obj)
    }

    fn lookup(&self, what: Diropargs3) -> Result<Lookup3Resok, Nfsstat3> {
        outcome!(self.nfs.lookup(&Lookup3Args { what }), Lookup3Res)
    }

    fn attributes(&self, object: &NfsFh3) -> Result<Fattr3, Nfsstat3> {
        let object = object.clone();
        match self.nfs.getattr(&Getattr3Args { object }).unwrap() {
            Getattr3Res::Ok(found) => Ok(found.obj_attributes),
            Getattr3Res::Default(status) => Err(status),
        }
    }

    fn write(&self, file: &NfsFh3, offset: u64, data: &[u8]) -> Result<Write3Resok, Nfsstat3> {
        let args = Write3Args {
            file: file.clone(),
            offset,
            count: data.len() as u32,
            stable: StableHow::FileSync,
            data: data.to_vec(),
        };
        outcome!(self.nfs.write(&args), Write3Res)
    }

    fn read(&self, file: &NfsFh3, offset: u64, count: u32) -> Result<Read3Resok, Nfsstat3> {
        let file = file.clone();
        let args = Read3Args {
            file,
            offset,
            count,
        };
        outcome!(self.nfs.read(&args), Read3Res)
    }

    fn remove(&self, name: &str) -> Result<Remove3Resok, Nfsstat3> {
        let object = self.at(name);
        outcome!(self.nfs.remove(&Remove3Args { object }), Remove3Res)
    }

    fn set(&self, object: &NfsFh3, set: Sattr3, guard: Sattrguard3) -> Result<(), Nfsstat3> {
        let args = Setattr3Args {
            object: object.clone(),
            new_attributes: set,
            guard,
        };
        outcome!(self.nfs.setattr(&args), Setattr3Res).map(drop)
    }

    fn readdir(
        &self,
        cookie: u64,
        cookieverf: [u8; 8],
        count: u32,
    ) -> Result<Readdir3Resok, Nfsstat3> {
        let args = Readdir3Args {
            dir: self.root.clone(),
            cookie,
            cookieverf,
            count,
        };
        outcome!(self.nfs.readdir(&args), Readdir3Res)
    }
}

fn place(dir: &NfsFh3, name: &str) -> Diropargs3 {
    Diropargs3 {
        dir: dir.clone(),
        name: name.into(),
    }
}

fn handle(made: PostOpFh3) -> NfsFh3 {
    match made {
        PostOpFh3::Handle(handle) => handle,
        PostOpFh3::Void => panic!("the server tells the handle of what it makes"),
    }
}

fn known(attributes: PostOpAttr) -> Fattr3 {
    match attributes {
        PostOpAttr::Attributes(attributes) => attributes,
        PostOpAttr::Void => panic!("the server tells attributes"),
    }
}

fn nothing() -> Sattr3 {
    Sattr3 {
        mode: SetMode3::Void,
        uid: SetUid3::Void,
        gid: SetGid3::Void,
        size: SetSize3::Void,
        atime: SetAtime::Default(TimeHow::DontChange),
        mtime: SetMtime::Default(TimeHow::DontChange),
    }
}

#[test]
fn handles_are_checked() {
    let setup = setup();
    let malformed = NfsFh3 { data: vec![1; 64] };
    assert_eq!(setup.attributes(&malformed), Err(Nfsstat3::ErrBadhandle));
    let file = setup.file("a");
    setup.remove("a").unwrap();
    assert_eq!(setup.attributes(&file), Err(Nfsstat3::ErrStale));
    assert_eq!(setup.write(&file, 0, b"x"), Err(Nfsstat3::ErrStale));
}

#[test]
fn names_are_checked() {
    let setup = setup();
    let long = "n".repeat(256);
    for (name, status) in [
        ("", Nfsstat3::ErrAcces),
        ("a/b", Nfsstat3::ErrAcces),
        (".", Nfsstat3::ErrExist),
        ("..", Nfsstat3::ErrExist),
        (long.as_str(), Nfsstat3::ErrNametoolong),
    ] {
        let made = setup.create(name, Createhow3::Unchecked(nothing()));
        assert_eq!(made, Err(status), "{name:?}");
    }
    let mut strange = setup.at("");
    strange.name = BString::from(b"\xff\xfe \n".as_slice());
    let args = Create3Args {
        where_: strange.clone(),
        how: Createhow3::Guarded(nothing()),
    };
    let made = outcome!(setup.nfs.create(&args), Create3Res).unwrap();
    assert_eq!(setup.lookup(strange).unwrap().object, handle(made.obj));
}

#[test]
fn what_is_written_is_read_and_committed() {
    let setup = setup();
    let file = setup.file("a");
    let written = setup.write(&file, 3, b"hello").unwrap();
    assert_eq!((written.count, written.committed), (5, StableHow::FileSync));
    let read = setup.read(&file, 0, 100).unwrap();
    assert_eq!(
        (read.data.as_slice(), read.eof),
        (&b"\0\0\0hello"[..], true)
    );
    let read = setup.read(&file, 3, 2).unwrap();
    assert_eq!((read.data.as_slice(), read.eof), (&b"he"[..], false));
    let args = Commit3Args {
        file,
        offset: 0,
        count: 0,
    };
    let committed = outcome!(setup.nfs.commit(&args), Commit3Res).unwrap();
    assert_eq!(committed.verf, written.verf);
    assert_eq!(setup.read(&setup.root, 0, 1), Err(Nfsstat3::ErrIsdir));
}

#[test]
fn a_write_says_how_much_it_brings() {
    let setup = setup();
    let args = Write3Args {
        file: setup.file("a"),
        offset: 0,
        count: 6,
        stable: StableHow::Unstable,
        data: b"hello".to_vec(),
    };
    let result = outcome!(setup.nfs.write(&args), Write3Res);
    assert_eq!(result, Err(Nfsstat3::ErrInval));
}

#[test]
fn a_change_tells_the_attributes_around_it() {
    let setup = setup();
    let file = setup.file("a");
    let before = setup.attributes(&file).unwrap();
    let wcc = setup.write(&file, 0, b"hello").unwrap().file_wcc;
    let expected = WccAttr {
        size: 0,
        mtime: before.mtime,
        ctime: before.ctime,
    };
    assert_eq!(wcc.before, PreOpAttr::Attributes(expected));
    assert_eq!(known(wcc.after), setup.attributes(&file).unwrap());
    let before = setup.attributes(&setup.root).unwrap();
    let object = setup.at("nothing");
    let Remove3Res::Default(status, failed) = setup.nfs.remove(&Remove3Args { object }).unwrap()
    else {
        panic!("there was nothing to remove");
    };
    assert_eq!(status, Nfsstat3::ErrNoent);
    assert_eq!(
        known(failed.dir_wcc.after),
        before,
        "a failure tells them too"
    );
}

#[test]
fn memory_is_bounded() {
    let setup = setup();
    let file = setup.file("a");
    let data = vec![1; 1 << 20];
    let mut written = 0;
    let status = loop {
        match setup.write(&file, written, &data) {
            Ok(done) => written += u64::from(done.count),
            Err(status) => break status,
        }
        assert!(written <= MEMORY);
    };
    assert_eq!(status, Nfsstat3::ErrNospc);
    assert_eq!(setup.write(&file, u64::MAX, b"x"), Err(Nfsstat3::ErrFbig));
    setup.remove("a").unwrap();
    let fsroot = setup.root.clone();
    let state = outcome!(setup.nfs.fsstat(&Fsstat3Args { fsroot }), Fsstat3Res).unwrap();
    assert_eq!((state.tbytes, state.fbytes), (MEMORY, MEMORY));
}

#[test]
fn an_exclusive_creation_can_be_repeated() {
    let setup = setup();
    let first = setup.create("a", Createhow3::Exclusive([1; 8])).unwrap();
    let again = setup.create("a", Createhow3::Exclusive([1; 8])).unwrap();
    assert_eq!(handle(first.obj), handle(again.obj));
    let other = setup.create("a", Createhow3::Exclusive([2; 8]));
    assert_eq!(other, Err(Nfsstat3::ErrExist));
}

#[test]
fn attributes_are_guarded() {
    let setup = setup();
    let file = setup.file("a");
    let seen = setup.attributes(&file).unwrap().ctime;
    let time = Nfstime3 {
        seconds: 7,
        nseconds: 8,
    };
    let set = Sattr3 {
        mode: SetMode3::Mode(0o600),
        size: SetSize3::Size(3),
        mtime: SetMtime::SetToClientTime(time),
        ..nothing()
    };
    setup
        .set(&file, set.clone(), Sattrguard3::ObjCtime(seen))
        .unwrap();
    let now = setup.attributes(&file).unwrap();
    assert_eq!((now.mode, now.size, now.mtime), (0o600, 3, time));
    let guarded = setup.set(&file, set, Sattrguard3::ObjCtime(seen));
    assert_eq!(guarded, Err(Nfsstat3::ErrNotSync));
}

#[test]
fn what_is_made_belongs_to_the_caller() {
    let setup = setup();
    let caller = AuthSys::new(b"host", 1000, 100, &[]).unwrap();
    let nfs = setup.nfs.with_credential(&Credential::Sys(caller));
    let mkdir = |name: &str, attributes| {
        let args = Mkdir3Args {
            where_: setup.at(name),
            attributes,
        };
        known(
            outcome!(nfs.mkdir(&args), Mkdir3Res)
                .unwrap()
                .obj_attributes,
        )
    };
    let own = mkdir("own", nothing());
    assert_eq!((own.uid, own.gid, own.type_), (1000, 100, Ftype3::Dir));
    let given = Sattr3 {
        gid: SetGid3::Gid(5),
        ..nothing()
    };
    assert_eq!(mkdir("given", given).gid, 5);
}

#[test]
fn names_are_moved_linked_and_removed() {
    let setup = setup();
    let (dir, file) = (setup.directory("d"), setup.file("a"));
    let link = Link3Args {
        file: file.clone(),
        link: place(&dir, "b"),
    };
    let linked = outcome!(setup.nfs.link(&link), Link3Res).unwrap();
    assert_eq!(known(linked.file_attributes).nlink, 2);
    let rename = Rename3Args {
        from: place(&dir, "b"),
        to: setup.at("c"),
    };
    outcome!(setup.nfs.rename(&rename), Rename3Res).unwrap();
    assert_eq!(setup.lookup(setup.at("c")).unwrap().object, file);
    let rmdir = |name| {
        let object = setup.at(name);
        outcome!(setup.nfs.rmdir(&Rmdir3Args { object }), Rmdir3Res).map(drop)
    };
    assert_eq!(rmdir("a"), Err(Nfsstat3::ErrNotdir));
    assert_eq!(setup.remove("d"), Err(Nfsstat3::ErrIsdir));
    assert_eq!(rmdir("d"), Ok(()));
}

#[test]
fn symbolic_links_are_read_and_devices_are_not_made() {
    let setup = setup();
    let args = Symlink3Args {
        where_: setup.at("s"),
        symlink: Symlinkdata3 {
            symlink_attributes: nothing(),
            symlink_data: "../target".into(),
        },
    };
    let made = outcome!(setup.nfs.symlink(&args), Symlink3Res).unwrap();
    let readlink = |symlink| outcome!(setup.nfs.readlink(&Readlink3Args { symlink }), Readlink3Res);
    assert_eq!(readlink(handle(made.obj)).unwrap().data, "../target");
    let root = setup.root.clone();
    assert_eq!(readlink(root), Err(Nfsstat3::ErrInval));
    let args = Mknod3Args {
        where_: setup.at("pipe"),
        what: Mknoddata3::Fifo(nothing()),
    };
    let made = outcome!(setup.nfs.mknod(&args), Mknod3Res);
    assert_eq!(made, Err(Nfsstat3::ErrNotsupp));
}

#[test]
fn a_directory_is_read_in_pieces_of_the_size_asked_for() {
    let setup = setup();
    for number in 0..100 {
        setup.file(&format!("file-{number:02}"));
    }
    let (mut cookie, mut verifier, mut names) = (0, [0; 8], Vec::new());
    loop {
        let read = setup.readdir(cookie, verifier, 400).unwrap();
        assert!(bytes(&read) <= 400);
        let last = read.reply.entries.last().unwrap();
        (cookie, verifier) = (last.cookie, read.cookieverf);
        names.extend(
            read.reply
                .entries
                .iter()
                .map(|entry| entry.name.to_string()),
        );
        if read.reply.eof {
            break;
        }
    }
    let files = (0..100).map(|number| format!("file-{number:02}"));
    let expected: Vec<_> = [".", ".."]
        .map(String::from)
        .into_iter()
        .chain(files)
        .collect();
    assert_eq!(names, expected);
    assert_eq!(
        setup.readdir(cookie, [9; 8], 400),
        Err(Nfsstat3::ErrBadCookie)
    );
    assert_eq!(setup.readdir(0, [0; 8], 110), Err(Nfsstat3::ErrToosmall));
}

/// Bytes of a result on the wire.
fn bytes(read: &Readdir3Resok) -> usize {
    let mut buffer = tenon::wire::Buffer::default();
    let mut out = tenon::wire::Encoder::new(&mut buffer);
    tenon::wire::Marshal::encode(read, &mut out).unwrap();
    buffer.len()
}

#[test]
fn a_directory_is_read_with_attributes_and_handles() {
    let setup = setup();
    let file = setup.file("a");
    let read = |dircount, maxcount| {
        let args = Readdirplus3Args {
            dir: setup.root.clone(),
            cookie: 0,
            cookieverf: [0; 8],
            dircount,
            maxcount,
        };
        outcome!(setup.nfs.readdirplus(&args), Readdirplus3Res)
    };
    let all = read(4096, 4096).unwrap().reply;
    assert!(all.eof);
    let last = all.entries.last().unwrap();
    assert_eq!(last.name_handle, PostOpFh3::Handle(file.clone()));
    assert_eq!(
        known(last.name_attributes.clone()),
        setup.attributes(&file).unwrap()
    );
    let by_names = read(60, 4096).unwrap().reply;
    assert_eq!((by_names.entries.len(), by_names.eof), (2, false));
    let by_size = read(4096, 300).unwrap().reply;
    assert_eq!((by_size.entries.len(), by_size.eof), (1, false));
}

#[test]
fn limits_fit_the_transport() {
    let setup = setup();
    let file = setup.file("a");
    setup.write(&file, 0, &vec![1; 100_000]).unwrap();
    let fsroot = setup.root.clone();
    let info = outcome!(setup.over_udp.fsinfo(&Fsinfo3Args { fsroot }), Fsinfo3Res).unwrap();
    let args = Read3Args {
        file: file.clone(),
        offset: 0,
        count: 100_000,
    };
    let read = outcome!(setup.over_udp.read(&args), Read3Res).unwrap();
    assert_eq!((read.data.len(), read.eof), (info.rtmax as usize, false));
    assert_eq!(setup.read(&file, 0, 100_000).unwrap().data.len(), 100_000);
}

#[test]
fn access_depends_on_the_kind_of_file() {
    let setup = setup();
    let access = |object: &NfsFh3| {
        let args = Access3Args {
            object: object.clone(),
            access: 0x3f,
        };
        outcome!(setup.nfs.access(&args), Access3Res)
            .unwrap()
            .access
    };
    assert_eq!(access(&setup.root) & ACCESS3_EXECUTE, 0);
    assert_ne!(access(&setup.root) & ACCESS3_LOOKUP, 0);
    let data = ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND;
    assert_eq!(access(&setup.file("a")), data);
}

#[test]
fn path_limits_are_told() {
    let setup = setup();
    let object = setup.root.clone();
    let limits = outcome!(setup.nfs.pathconf(&Pathconf3Args { object }), Pathconf3Res).unwrap();
    assert_eq!((limits.name_max, limits.no_trunc), (255, true));
}

#[test]
fn mounts_are_granted_remembered_and_forgotten() {
    let setup = setup();
    let dir = setup.directory("d");
    setup.file("f");
    assert_eq!(
        mounted(&setup.mount, "/export//d/").unwrap().fhandle,
        dir.data
    );
    for (path, status) in [
        ("/exports", Mountstat3::ErrNoent),
        ("/", Mountstat3::ErrNoent),
        ("/export/x", Mountstat3::ErrNoent),
        ("/export/f", Mountstat3::ErrNotdir),
    ] {
        assert_eq!(mounted(&setup.mount, path), Err(status), "{path}");
    }
    let paths = || {
        let mounts = setup.mount.dump().unwrap();
        mounts
            .iter()
            .map(|body| body.ml_directory.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(), ["/export", "/export//d/"]);
    setup.mount.umnt("/export").unwrap();
    assert_eq!(paths(), ["/export//d/"]);
    setup.mount.umntall().unwrap();
    assert_eq!(paths(), [""; 0]);
    assert_eq!(setup.mount.export().unwrap()[0].ex_dir, "/export");
}
