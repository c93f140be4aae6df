//! The client against servers that may behave so, though ours does not: they restart, or do less
//! than they are asked for.
#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::sync::atomic::{AtomicU32, Ordering};

use tenon::wire::{BStr, BString, Buffer, Decoder, Encoder, Marshal};
use tenon::{CallInfo, Refusal, Server, Service};
use tenon_example_nfs3::client::{ClientError, Remote};
use tenon_example_nfs3::fs::FileSystem;
use tenon_example_nfs3::protocol::mount3::{MountV3Client, MountV3Service};
use tenon_example_nfs3::protocol::nfs3::*;
use tenon_example_nfs3::server::{Export, Nfs, SharedFs};

type Inner = NfsV3Service<Nfs>;
type Answer = Result<(), Refusal>;

/// Our server, with something between it and its callers.
struct Odd<F> {
    inner: Inner,
    between: F,
}

impl<F> Service for Odd<F>
where
    F: Fn(&Inner, &CallInfo<'_>, &mut Decoder<'_>, &mut Encoder<'_>) -> Answer,
    F: Send + Sync + 'static,
{
    fn program(&self) -> u32 {
        NFS_PROGRAM
    }

    fn version(&self) -> u32 {
        NFS_V3
    }

    fn call(&self, call: &CallInfo<'_>, input: &mut Decoder<'_>, out: &mut Encoder<'_>) -> Answer {
        (self.between)(&self.inner, call, input, out)
    }
}

fn mount<F>(between: F) -> (Server, Remote)
where
    F: Fn(&Inner, &CallInfo<'_>, &mut Decoder<'_>, &mut Encoder<'_>) -> Answer,
    F: Send + Sync + 'static,
{
    let fs = SharedFs::new(FileSystem::new(1, 16 << 20));
    let inner = NfsV3Service(Nfs(fs.clone()));
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .service(Odd { inner, between })
        .service(MountV3Service(Export::new(fs, "/export").unwrap()))
        .start()
        .unwrap();
    let address = server.addresses()[0].to_string();
    let nfs = NfsV3Client::connect(&address).unwrap();
    let mount = MountV3Client::connect(&address).unwrap();
    let remote = Remote::mount(nfs, mount, BString::from("/export")).unwrap();
    (server, remote)
}

/// Hands a call with other arguments to our server.
fn forward(
    inner: &Inner,
    call: &CallInfo<'_>,
    args: &impl Marshal,
    out: &mut Encoder<'_>,
) -> Answer {
    let mut buffer = Buffer::default();
    args.encode(&mut Encoder::new(&mut buffer))?;
    inner.call(call, &mut Decoder::new(buffer.as_slice()), out)
}

fn three_megabytes() -> Vec<u8> {
    (0..3_000_001_u32).map(|at| (at % 251) as u8).collect()
}

fn write(remote: &Remote, data: &[u8]) -> Result<u64, ClientError> {
    remote.write_file(BStr::new("file"), &mut Cursor::new(data))
}

fn read(remote: &Remote) -> Vec<u8> {
    let mut data = Vec::new();
    remote.read_file(BStr::new("file"), &mut data).unwrap();
    data
}

/// Answers COMMIT as a server that has restarted, `times` times.
fn restarting(
    times: u32,
) -> impl Fn(&Inner, &CallInfo<'_>, &mut Decoder<'_>, &mut Encoder<'_>) -> Answer {
    let left = AtomicU32::new(times);
    let restarts = move || {
        let less = |left: u32| left.checked_sub(1);
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    };
    move |inner, call, input, out| {
        if call.procedure() != NFSPROC3_COMMIT || !restarts() {
            return inner.call(call, input, out);
        }
        let committed = Commit3Res::Ok(Commit3Resok {
            file_wcc: WccData {
                before: PreOpAttr::Void,
                after: PostOpAttr::Void,
            },
            verf: [0xee; 8],
        });
        Ok(committed.encode(out)?)
    }
}

#[test]
fn what_a_restart_may_have_lost_is_written_again() {
    let (_server, remote) = mount(restarting(1));
    let data = three_megabytes();
    assert_eq!(write(&remote, &data).unwrap(), data.len() as u64);
    assert!(read(&remote) == data);
}

#[test]
fn a_server_that_always_restarts_is_given_up() {
    let (_server, remote) = mount(restarting(u32::MAX));
    let given_up = write(&remote, b"hello");
    assert!(
        matches!(given_up, Err(ClientError::Restarts(3))),
        "{given_up:?}"
    );
}

#[test]
fn short_reads_and_writes_are_carried_on() {
    const SHORT: u32 = 300_000;
    let (_server, remote) = mount(|inner, call, input, out| match call.procedure() {
        NFSPROC3_READ => {
            let mut args = Read3Args::decode(input)?;
            args.count = args.count.min(SHORT);
            forward(inner, call, &args, out)
        }
        NFSPROC3_WRITE => {
            let mut args = Write3Args::decode(input)?;
            args.count = args.count.min(SHORT);
            args.data.truncate(args.count as usize);
            forward(inner, call, &args, out)
        }
        _ => inner.call(call, input, out),
    });
    let data = three_megabytes();
    assert_eq!(write(&remote, &data).unwrap(), data.len() as u64);
    assert!(read(&remote) == data);
}

#[test]
fn a_size_that_is_not_true_does_not_keep_the_client_busy() {
    let (_server, remote) = mount(|inner, call, input, out| {
        if call.procedure() != NFSPROC3_GETATTR {
            return inner.call(call, input, out);
        }
        let object = Getattr3Args::decode(input)?.object;
        let mut result = Buffer::default();
        forward(
            inner,
            call,
            &Getattr3Args { object },
            &mut Encoder::new(&mut result),
        )?;
        let mut found = Getattr3Res::decode(&mut Decoder::new(result.as_slice()))?;
        if let Getattr3Res::Ok(found) = &mut found {
            found.obj_attributes.size = u64::MAX;
        }
        Ok(found.encode(out)?)
    });
    write(&remote, b"hello").unwrap();
    assert_eq!(read(&remote), b"hello");
}

/// unfs3 answers READDIRPLUS by a status of NFS, others say that there is no such procedure.
#[test]
fn a_server_without_readdirplus_is_listed_by_readdir() {
    type Refusing = fn(&mut Encoder<'_>) -> Answer;
    let by_status: Refusing = |out| {
        let failed = Readdirplus3Resfail {
            dir_attributes: PostOpAttr::Void,
        };
        Ok(Readdirplus3Res::Default(Nfsstat3::ErrNotsupp, failed).encode(out)?)
    };
    let by_rpc: Refusing = |_| Err(Refusal::ProcedureUnavailable);
    for refuse in [by_status, by_rpc] {
        let (_server, remote) = mount(move |inner, call, input, out| match call.procedure() {
            NFSPROC3_READDIRPLUS => refuse(out),
            _ => inner.call(call, input, out),
        });
        write(&remote, b"hello").unwrap();
        let entries = remote.list(BStr::new("/")).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].name, "file");
        let PostOpAttr::Attributes(attributes) = &entries[0].name_attributes else {
            panic!("{:?}", entries[0]);
        };
        assert_eq!(attributes.size, 5);
    }
    // Other refusals are not hidden.
    let (_server, remote) = mount(|inner, call, input, out| match call.procedure() {
        NFSPROC3_READDIRPLUS => Err(Refusal::SystemError("on purpose".to_owned())),
        _ => inner.call(call, input, out),
    });
    remote.list(BStr::new("/")).unwrap_err();
}
