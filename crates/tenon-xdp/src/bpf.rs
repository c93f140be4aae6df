//! The system call `bpf`: maps, programs, and their links to interfaces. All are descriptors: what a process
//! has loaded and linked is gone with it, however it ends.
//!
//! One of the two rooms of this crate for unsafe code: neither rustix nor the standard library has this call.
#![allow(unsafe_code, reason = "the system call bpf has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::filter::Instruction;

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROG_LOAD: libc::c_long = 5;
#[cfg(test)]
const PROG_TEST_RUN: libc::c_long = 10;
const LINK_CREATE: libc::c_long = 28;

const PROGRAM_FOR_XDP: u32 = 6;
const ATTACHED_AS_XDP: u32 = 37;

/// Kinds of maps.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum MapKind {
    /// Values by any keys.
    Hash = 1,
    /// AF_XDP sockets by their numbers.
    Sockets = 17,
}

/// A map with values that are words of 4 bytes.
#[derive(Debug)]
pub(crate) struct BpfMap {
    fd: OwnedFd,
    key: usize,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries_max: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapElement {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

impl BpfMap {
    /// Creates a map with keys of so many bytes.
    pub(crate) fn new(kind: MapKind, key: usize, entries_max: u32) -> io::Result<Self> {
        let attributes = MapCreate {
            kind: kind as u32,
            key_size: key as u32,
            value_size: 4,
            entries_max,
            flags: 0,
        };
        // SAFETY: the attributes hold no addresses.
        let fd = unsafe { bpf_fd(MAP_CREATE, &attributes) }?;
        Ok(Self { fd, key })
    }

    /// Puts in a value, in place of the one that was there.
    ///
    /// # Errors
    /// `InvalidInput` for a key of another length; what the kernel says.
    pub(crate) fn insert(&self, key: &[u8], value: u32) -> io::Result<()> {
        self.check(key)?;
        let attributes = MapElement {
            map: number(&self.fd),
            key: address(key),
            value: (&raw const value) as u64,
            ..MapElement::default()
        };
        // SAFETY: the kernel reads a key of the map's size, which this one has, and a value of 4 bytes; both
        // are there until the call returns.
        unsafe { bpf(MAP_UPDATE, &attributes) }.map(|_| ())
    }

    /// Takes a value out.
    ///
    /// # Errors
    /// `InvalidInput` for a key of another length; `NotFound`.
    pub(crate) fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.check(key)?;
        let attributes = MapElement {
            map: number(&self.fd),
            key: address(key),
            ..MapElement::default()
        };
        // SAFETY: the kernel reads a key of the map's size, which this one has and which is there until the
        // call returns.
        unsafe { bpf(MAP_DELETE, &attributes) }.map(|_| ())
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    fn check(&self, key: &[u8]) -> io::Result<()> {
        match key.len() == self.key {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// A program for frames that come in, which the kernel has verified.
#[derive(Debug)]
pub(crate) struct BpfProgram(OwnedFd);

impl BpfProgram {
    /// Has the kernel verify and load a program. It keeps the maps that the program names.
    pub(crate) fn load(code: &[Instruction]) -> io::Result<Self> {
        const LICENSE: &[u8] = b"Dual MIT/GPL\0";
        let mut attributes = ProgLoad {
            kind: PROGRAM_FOR_XDP,
            instruction_count: code.len() as u32,
            instructions: code.as_ptr() as u64,
            license: address(LICENSE),
            expected_attach: ATTACHED_AS_XDP,
            ..ProgLoad::default()
        };
        attributes.name[..9].copy_from_slice(b"tenon_xdp");
        // SAFETY: the kernel reads as many instructions as are said, and a license that ends with a zero; both
        // are there until the call returns, and it writes no log.
        let fd = unsafe { bpf_fd(PROG_LOAD, &attributes) }?;
        Ok(Self(fd))
    }

    /// Has the kernel run it on the frames that come in at an interface, for as long as the link is there.
    /// `flags` say how, 0 that the interface is to choose.
    ///
    /// # Errors
    /// `ResourceBusy` if the interface has a program.
    pub(crate) fn link(&self, interface: u32, flags: u32) -> io::Result<OwnedFd> {
        let attributes = LinkCreate {
            program: number(&self.0),
            interface,
            attach: ATTACHED_AS_XDP,
            flags,
        };
        // SAFETY: the attributes hold no addresses.
        unsafe { bpf_fd(LINK_CREATE, &attributes) }
    }

    /// Runs it on a frame, and says what it answers.
    #[cfg(test)]
    pub(crate) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        #[repr(C)]
        #[derive(Default)]
        struct TestRun {
            program: u32,
            answer: u32,
            bytes_in: u32,
            bytes_out: u32,
            frame: u64,
            out: u64,
            repeat: u32,
            duration: u32,
        }
        let mut attributes = TestRun {
            program: number(&self.0),
            bytes_in: frame.len() as u32,
            frame: address(frame),
            repeat: 1,
            ..TestRun::default()
        };
        // SAFETY: the kernel reads as many bytes of the frame as are said, and writes nothing but numbers into
        // the attributes, which are borrowed for writing.
        unsafe {
            let at = (&raw mut attributes).cast::<libc::c_void>();
            syscall(PROG_TEST_RUN, at, size_of::<TestRun>())
        }?;
        Ok(attributes.answer)
    }
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd() as u32
}

fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64
}

/// As [`bpf`], for commands that make a descriptor.
///
/// # Safety
/// As for [`bpf`].
unsafe fn bpf_fd<A>(command: libc::c_long, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: these commands return a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Has the kernel carry out a command that only reads its attributes.
///
/// # Safety
/// Addresses in the attributes lead to as many bytes as the command reads there, until it returns, and to none
/// that it writes.
unsafe fn bpf<A>(command: libc::c_long, attributes: &A) -> io::Result<libc::c_long> {
    let at = (&raw const *attributes).cast::<libc::c_void>().cast_mut();
    // SAFETY: the attributes are as many bytes as is said; what they lead to, the caller promises.
    unsafe { syscall(command, at, size_of::<A>()) }
}

/// # Safety
/// As for [`bpf`], and the attributes may be written if the command does.
unsafe fn syscall(
    command: libc::c_long,
    attributes: *mut libc::c_void,
    bytes: usize,
) -> io::Result<libc::c_long> {
    // SAFETY: as the caller promises.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, bytes) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        done => Ok(done),
    }
}

/// Returns the number by which the kernel knows a socket that is put into a map.
pub(crate) fn value_of(socket: BorrowedFd<'_>) -> u32 {
    socket.as_raw_fd() as u32
}
