//! How a client and a server come by a segment, and what becomes of those who do not play by the
//! rules. One test: it counts the descriptors of the process.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tenon_shm::{
    HELLO, HelloBuffer, HelloError, JoinError, JoinRefusal, SegmentError, Sizes, invite, join,
    refuse,
};

const LEAST: u64 = Sizes::LEAST as u64;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn sizes() -> Sizes {
    Sizes::new(LEAST, LEAST).unwrap()
}

/// The hello of a server with such rings, made anew: a test that changes it has to mend its check.
fn hello(rings: [u32; 2]) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..12].copy_from_slice(b"\x7fshmten\n\0\x04\x02\0");
    hello[12..16].copy_from_slice(&rings[0].to_be_bytes());
    hello[16..20].copy_from_slice(&rings[1].to_be_bytes());
    mended(hello)
}

fn mended(mut hello: [u8; HELLO]) -> [u8; HELLO] {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let check = hello[..28].iter().fold(0x811c_9dc5, step);
    hello[28..].copy_from_slice(&check.to_be_bytes());
    hello
}

fn ordinary() -> [u8; HELLO] {
    hello([LEAST as u32; 2])
}

const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

fn memory(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("hostile", flags).unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

fn good_memory() -> OwnedFd {
    memory(sizes().segment() as u64, SEALS)
}

fn notifier() -> OwnedFd {
    UnixStream::pair().unwrap().0.into()
}

fn pipe() -> OwnedFd {
    std::io::pipe().unwrap().0.into()
}

fn a_file() -> OwnedFd {
    File::open("/proc/self/exe").unwrap().into()
}

/// What a client makes of a server that says `hello` and hands over `descriptors`.
fn joined(hello: &[u8], descriptors: &[OwnedFd]) -> Result<(), JoinError> {
    let (client, server) = UnixStream::pair().unwrap();
    let handed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(64))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !handed.is_empty() {
        assert!(beside.push(SendAncillaryMessage::ScmRights(&handed)));
    }
    sendmsg(
        &server,
        &[IoSlice::new(hello)],
        &mut beside,
        SendFlags::empty(),
    )
    .unwrap();
    // Otherwise a hello that is too short would be waited for.
    server.shutdown(std::net::Shutdown::Write).unwrap();
    join(client.as_fd(), soon()).map(drop)
}

#[track_caller]
fn check(hello: &[u8], descriptors: &[OwnedFd], reason: &str) {
    let error = joined(hello, descriptors).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
}

fn hostile_servers() {
    let handed = || [good_memory(), notifier()];
    joined(&ordinary(), &handed()).unwrap();

    check(b"HTTP/1.1 400 Bad Request\r\n\r\n12345", &handed(), "HTTP");
    check(b"HT", &[], "HT");
    check(&ordinary()[..31], &handed(), "without an offer");
    check(b"\x7f", &[], "without an offer");
    for at in 8..HELLO {
        let mut damaged = ordinary();
        damaged[at] ^= 0x10;
        check(&damaged, &handed(), "damaged");
    }
    let mut other = ordinary();
    other[9] = 7;
    check(&mended(other), &handed(), "version 7");
    other = ordinary();
    other[10] = 1;
    check(&mended(other), &handed(), "same side");
    for rings in [
        [0, 4096],
        [4096, u32::MAX],
        [1 << 31, 1 << 31],
        [4097, 4096],
    ] {
        check(&hello(rings), &handed(), "power of two");
    }

    check(&ordinary(), &[], "0 descriptors");
    check(&ordinary(), &[good_memory()], "1 descriptors");
    check(
        &ordinary(),
        &[good_memory(), notifier(), notifier()],
        "3 descriptors",
    );
    let many: Vec<_> = (0..40).map(|_| notifier()).collect();
    check(&ordinary(), &many, "Too many references");
    check(&ordinary(), &[notifier(), good_memory()], "no Unix socket");
    check(&ordinary(), &[good_memory(), pipe()], "no Unix socket");
    check(&ordinary(), &[good_memory(), a_file()], "no Unix socket");

    check(&ordinary(), &[a_file(), notifier()], "no ordinary memory");
    check(&ordinary(), &[pipe(), notifier()], "no ordinary memory");
    check(&ordinary(), &[notifier(), notifier()], "no ordinary memory");
    let size = sizes().segment() as u64;
    for seals in [
        SealFlags::empty(),
        SealFlags::SHRINK,
        SealFlags::SEAL,
        SealFlags::GROW | SealFlags::SEAL,
        SealFlags::SHRINK | SealFlags::GROW,
    ] {
        check(
            &ordinary(),
            &[memory(size, seals), notifier()],
            "not sealed",
        );
    }
    for wrong in [0, 1, size - 1, size + 1, size + 4096, 1 << 40] {
        check(
            &ordinary(),
            &[memory(wrong, SEALS), notifier()],
            "and not 12288",
        );
    }
    let read_only = memory(size, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE);
    fcntl_add_seals(&read_only, SealFlags::SEAL).unwrap();
    let error = joined(&ordinary(), &[read_only, notifier()]).unwrap_err();
    assert!(
        matches!(error, JoinError::Segment(SegmentError::System(_))),
        "{error}"
    );
}

fn silent_servers() {
    let (client, server) = UnixStream::pair().unwrap();
    let late = join(client.as_fd(), Instant::now() + Duration::from_millis(20)).unwrap_err();
    assert!(matches!(late, JoinError::Late), "{late}");
    (&server).write_all(&ordinary()[..20]).unwrap();
    let late = join(client.as_fd(), Instant::now() + Duration::from_millis(20)).unwrap_err();
    assert!(matches!(late, JoinError::Late), "{late}");
    drop(server);
    let (client, server) = UnixStream::pair().unwrap();
    drop(server);
    let closed = join(client.as_fd(), soon()).unwrap_err();
    assert!(matches!(closed, JoinError::Closed), "{closed}");
}

/// What a server makes of a client that says `hello`.
fn greeted(hello: &[u8]) -> std::io::Result<bool> {
    let (mut client, server) = UnixStream::pair().unwrap();
    client.write_all(hello).unwrap();
    let mut greeting = HelloBuffer::default();
    greeting.take_in(server.as_fd())
}

fn hostile_clients() {
    let mut own = [0; HELLO];
    let (client, mut server) = UnixStream::pair().unwrap();
    join(client.as_fd(), Instant::now()).unwrap_err();
    server.read_exact(&mut own).unwrap();
    assert!(greeted(&own).unwrap());
    assert!(greeted(&[&own[..], b"bells"].concat()).unwrap());
    assert!(!greeted(&own[..31]).unwrap(), "the rest may come");
    assert!(!greeted(b"").unwrap());
    for bad in [
        &b"G"[..],
        &b"\x80\0\0\x28"[..],
        &b"\x7ftenon\r\n"[..],
        &ordinary()[..],
    ] {
        let error = greeted(bad).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
    }

    let (mut client, server) = UnixStream::pair().unwrap();
    let mut greeting = HelloBuffer::default();
    for byte in &own[..31] {
        client.write_all(&[*byte]).unwrap();
        assert!(!greeting.take_in(server.as_fd()).unwrap());
    }
    drop(client);
    let error = greeting.take_in(server.as_fd()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

fn friends() {
    let (client, server) = UnixStream::pair().unwrap();
    let invited = invite(server.as_fd(), sizes()).unwrap();
    let joined = join(client.as_fd(), soon()).unwrap();
    let mut greeting = HelloBuffer::default();
    assert!(greeting.take_in(server.as_fd()).unwrap());
    let woken = std::cell::Cell::new(false);
    joined.end.send(b"hello", || woken.set(true)).unwrap();
    assert!(woken.get(), "the server sleeps to begin with");
    let mut room = [0; 16];
    assert_eq!(invited.end.receive(&mut room, || ()).unwrap(), 5);
    assert_eq!(&room[..5], b"hello");
    invited.end.send(b"you too", || ()).unwrap();
    assert_eq!(joined.end.receive(&mut room, || ()).unwrap(), 7);
    assert_eq!(&room[..7], b"you too");

    let (client, server) = UnixStream::pair().unwrap();
    refuse(server.as_fd(), JoinRefusal::User);
    drop(server);
    let error = join(client.as_fd(), soon()).unwrap_err();
    let expected = HelloError::Refused(JoinRefusal::User);
    assert!(
        matches!(error, JoinError::Hello(hello) if hello == expected),
        "{error}"
    );

    let (client, server) = UnixStream::pair().unwrap();
    drop(client);
    let gone = invite(server.as_fd(), sizes()).unwrap_err();
    assert_eq!(gone.kind(), std::io::ErrorKind::BrokenPipe);
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd")).count()
}

#[test]
fn nobody_gets_more_than_a_fair_peer_would() {
    let before = descriptors();
    friends();
    hostile_servers();
    silent_servers();
    hostile_clients();
    assert_eq!(descriptors(), before);
    assert_eq!(mappings(), 0);
}
