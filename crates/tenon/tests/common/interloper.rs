//! Somebody who has the memory by which a client and a server call, as both of them have it: a hand that writes
//! there what neither did. All else passes through unchanged, so that both the caller and the server are real.
#![allow(dead_code, reason = "every test file uses its own part of this module")]

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tenon_shm::{HELLO, Segment};

/// Descriptors that a server hands over.
const HANDED: usize = 2;

/// Stands between a server and those who connect to it, and has what the last of them has.
#[derive(Clone, Default)]
pub struct Interloper(Arc<Mutex<Option<Known>>>);

struct Known {
    memory: Arc<Segment>,
    sockets: [UnixStream; 2],
}

impl Interloper {
    /// Listens at a path for clients of the server at an address, until the process ends. Returns its own address.
    pub fn before(&self, server: &str, path: PathBuf) -> String {
        let server = server.strip_prefix("shm://").unwrap().to_owned();
        let listener = UnixListener::bind(&path).unwrap();
        let this = self.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                // One of them may be gone again already.
                let _ = this.introduce(client.unwrap(), &server);
            }
        });
        format!("shm://{}", path.display())
    }

    /// The memory, once somebody has connected.
    pub fn memory(&self) -> Option<Arc<Segment>> {
        self.known().as_ref().map(|known| Arc::clone(&known.memory))
    }

    /// Has each end see that the other is gone as the system shows that a process was killed, which says nothing in
    /// the memory.
    pub fn cut(&self) {
        for socket in self.known().iter().flat_map(|known| &known.sockets) {
            // They may have ended already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what the server hands over, and keeps it, too.
    fn introduce(&self, client: UnixStream, server: &str) -> io::Result<()> {
        let server = UnixStream::connect(server)?;
        let (hello, handed) = receive_hello(&server)?;
        let file = File::from(handed[0].try_clone()?);
        let bytes = file.metadata()?.len() as usize;
        let memory = Segment::open(file.as_fd(), bytes).map_err(io::Error::other)?;
        *self.known() = Some(Known {
            memory: Arc::new(memory),
            sockets: [client.try_clone()?, server.try_clone()?],
        });
        send_hello(&client, &hello, &handed)?;
        // What follows in these sockets are the client's hello, notifications, and the end.
        let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || hand_on(&client, &server));
        thread::spawn(move || hand_on(&server_too, &client_too));
        Ok(())
    }
}

fn receive_hello(server: &UnixStream) -> io::Result<([u8; HELLO], Vec<OwnedFd>)> {
    let mut hello = [0; HELLO];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let room = &mut [IoSliceMut::new(&mut hello)];
    let received = recvmsg(server, room, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let handed: Vec<_> = descriptors.flatten().collect();
    match (received.bytes, handed.len()) {
        (HELLO, HANDED) => Ok((hello, handed)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn send_hello(client: &UnixStream, hello: &[u8], handed: &[OwnedFd]) -> io::Result<()> {
    let handed: Vec<_> = handed.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&handed)));
    let flags = SendFlags::NOSIGNAL;
    sendmsg(client, &[IoSlice::new(hello)], &mut beside, flags)?;
    Ok(())
}

fn hand_on(mut from: &UnixStream, mut to: &UnixStream) {
    let _ = io::copy(&mut from, &mut to);
    for end in [from, to] {
        // The other direction may have done so.
        let _ = end.shutdown(Shutdown::Both);
    }
}
