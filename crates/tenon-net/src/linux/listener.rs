//! Where streams come in: a listening TCP or Unix socket that never blocks. Shared memory is handed
//! over through a Unix socket.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::libc::{O_NOFOLLOW, O_PATH};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{
    self, AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    addr::SocketAddrArg,
};
use socket2::{SockFilter, SockRef};

use super::shm::{self, JoinRefusal, RingSizes, ShmStream};
use super::socket::{DeadlineSocket, is_out_of_descriptors};
use super::spare::{LentDescriptor, SpareShare};
use super::user::User;
use crate::accepted::{Accepted, BACKLOG, ExcessConnection};
use crate::socket::family;
use crate::stream::{first_that_works, not_a_stream, serves_both};
use crate::{Address, Endpoint, Stream, Transport};

/// The permission bits of a file's mode.
const PERMISSIONS: u32 = 0o777;

/// A socket's filter, in classic BPF, that drops the segments that begin connections, those with SYN and without ACK, and
/// keeps all others. It sees a segment from its TCP header on.
const DROP_SYN: [SockFilter; 5] = [
    // ldb [13], the flags; and #0x12, SYN and ACK; jeq #0x02, SYN alone.
    SockFilter::new(0x30, 0, 0, 13),
    SockFilter::new(0x54, 0, 0, 0x12),
    SockFilter::new(0x15, 0, 1, 0x02),
    // ret #0; ret #-1.
    SockFilter::new(0x06, 0, 0, 0),
    SockFilter::new(0x06, 0, 0, u32::MAX),
];

/// How long a listener that stops gives connections that are half open.
const HANDSHAKE_END: Duration = Duration::from_micros(300);

/// A listening socket. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: Address,
    /// The users that may connect; none if every user may.
    users: Option<Box<[u32]>>,
    /// The message that other users are sent over a Unix socket before their connections are closed.
    refusal: Box<[u8]>,
    /// Sizes of the rings that it hands over to its clients, if it listens in shared memory.
    sizes: RingSizes,
    _file: Option<SocketFile>,
    /// The descriptor by which connections are refused when there are no others.
    spare: SpareShare,
}

impl Listener {
    /// Listens at `address`, TCP, Unix or shared memory; port 0 takes any free port. A Unix socket's file that no
    /// process listens on any more is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there or the path is another kind of file; `InvalidInput` for an
    /// address without a port, of another transport, or that names a protocol: which one a client speaks is found out
    /// when it connects.
    pub fn bind(address: &Address) -> io::Result<Self> {
        Self::bind_with_mode(address, None)
    }

    /// Listens as [`bind`](Self::bind) does, and gives the file of a Unix socket these permissions, such as `0o660`,
    /// whatever the process's umask is. The file never has others, not even for a moment.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind), and what the system reports of the permissions.
    pub fn bind_with_mode(address: &Address, mode: Option<u32>) -> io::Result<Self> {
        if address.chooses_lean() {
            return Err(serves_both(address));
        }
        match (address.transport(), address.endpoint()) {
            (Transport::Tcp, Endpoint::Host(host)) => first_that_works(host, Self::bind_tcp),
            (Transport::Unix, Endpoint::Path(path)) => Self::bind_path(path, address.clone(), mode),
            (Transport::Shm, Endpoint::Path(path)) => {
                shm::check_can_invite(address)?;
                Self::bind_path(path, address.clone(), mode)
            }
            _ => Err(not_a_stream(address)),
        }
    }

    fn bind_tcp(at: SocketAddr) -> io::Result<Self> {
        let fd = open(family(at))?;
        set_socket_reuseaddr(&fd, true)?;
        listen(&fd, &at)?;
        let at = SocketAddr::try_from(net::getsockname(&fd)?)?;
        Ok(Self {
            spare: SpareShare::new(),
            fd,
            address: Address::of_socket(Transport::Tcp, at),
            users: None,
            refusal: Box::default(),
            sizes: RingSizes::default(),
            _file: None,
        })
    }

    fn bind_path(path: &Path, address: Address, mode: Option<u32>) -> io::Result<Self> {
        let mut fd = open(AddressFamily::UNIX)?;
        let mode = mode.map(|mode| mode & PERMISSIONS);
        if let Some(mode) = mode {
            // Linux gives the file the mode of the socket, less the umask: so it is never more open than asked for.
            let socket = File::from(fd);
            socket.set_permissions(Permissions::from_mode(mode))?;
            fd = socket.into();
        }
        let at = SocketAddrUnix::new(path)?;
        match net::bind(&fd, &at) {
            Err(Errno::ADDRINUSE) if is_stale(path, &at)? => {
                fs::remove_file(path)?;
                net::bind(&fd, &at)?;
            }
            other => other?,
        }
        let file = SocketFile::at(path)?;
        if let Some(mode) = mode {
            file.set_mode(mode)?;
        }
        net::listen(&fd, BACKLOG)?;
        Ok(Self {
            spare: SpareShare::new(),
            fd,
            address,
            users: None,
            refusal: Box::default(),
            sizes: RingSizes::default(),
            _file: Some(file),
        })
    }

    /// Takes connections of the processes of these users only, by their numbers; others are told `refusal` over a Unix
    /// socket. Over TCP the user of a process is not known, and all are taken.
    #[must_use]
    pub fn only_users(mut self, users: &[u32], refusal: &[u8]) -> Self {
        self.users = Some(users.into());
        self.refusal = refusal.into();
        self
    }

    /// Shares rings of so many bytes with each client that connects, or of the next power of two from 4 KiB to 64 MiB;
    /// it means nothing but in shared memory.
    #[must_use]
    pub fn with_rings_of(mut self, bytes: usize) -> Self {
        self.sizes = RingSizes::near(bytes);
        self
    }

    /// Bytes of such a ring if nothing is said.
    pub const RING_USUAL: usize = RingSizes::USUAL;

    /// Returns the address of this listener, its real port included.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Takes a connection that waits; none if there is none. When the descriptors of the process or the system are
    /// used up, it takes the connection by the one that is kept for this.
    ///
    /// # Errors
    /// The system is out of memory, or of descriptors, and the one that was kept is taken, too. The connection still
    /// waits then.
    pub fn try_accept(&self) -> io::Result<Option<Accepted>> {
        self.spare.renew();
        let mut lent = None;
        loop {
            let accepted = match lent {
                None => self.spare.accept_beside(|| self.accept_raw()),
                Some(_) => self.accept_raw(),
            };
            let (fd, peer) = match accepted {
                Ok(accepted) => accepted,
                // The second if the socket takes no more connections, and none waits.
                Err(Errno::AGAIN | Errno::INVAL) => return Ok(None),
                // The peer is gone before it was accepted; another may wait behind it.
                Err(Errno::CONNABORTED) => continue,
                Err(error @ (Errno::MFILE | Errno::NFILE)) if lent.is_none() => {
                    lent = Some(LentDescriptor::lend().ok_or(error)?);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if lent.is_some() && self.address.transport() == Transport::Shm {
                shm::refuse(fd.as_fd(), JoinRefusal::Busy);
                drop(fd);
                return Ok(Some(excess(None, lent)));
            }
            match self.take_in(fd, peer) {
                Ok(None) => {}
                Ok(Some(stream)) if lent.is_some() => return Ok(Some(excess(Some(stream), lent))),
                Ok(Some(stream)) => return Ok(Some(Accepted::Stream(stream))),
                Err(error) if is_end(&error) => {}
                // What would have been handed over needs descriptors, too.
                Err(error) if is_out_of_descriptors(&error) => return Ok(Some(excess(None, lent))),
                Err(error) => return Err(error),
            }
        }
    }

    /// Has the system take no further connections in. Those that wait can still be [accepted](Self::try_accept): closed
    /// at once, the listener would have the system reset them, and their peers may have called.
    ///
    /// Clients of Unix sockets and shared memory are told from now on that nothing listens; those of TCP are as soon as
    /// the listener is closed, by which they should not be kept waiting. It takes 0.3 ms over TCP, in which a connection
    /// whose client has been answered, and may call already, becomes one that can be accepted.
    pub fn stop_listening(&self) {
        // Nothing depends on it: what is not accepted in time is reset.
        if self.address.transport() != Transport::Tcp {
            let _ = net::shutdown(&self.fd, net::Shutdown::Read);
        } else if SockRef::from(&self.fd).attach_filter(&DROP_SYN).is_ok() {
            thread::sleep(HANDSHAKE_END);
        }
    }

    fn accept_raw(&self) -> rustix::io::Result<(OwnedFd, Option<SocketAddrAny>)> {
        retry_on_intr(|| net::acceptfrom_with(&self.fd, SocketFlags::CLOEXEC))
    }

    /// Makes a stream of what was accepted, if it may connect.
    fn take_in(&self, fd: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<Option<Stream>> {
        let stream = match self.address.transport() {
            Transport::Unix => match self.may_connect(fd.as_fd())? {
                true => Stream::unix(DeadlineSocket::from(fd)),
                false => {
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    // A peer that is gone need not be told.
                    let _ = net::send(&fd, &self.refusal, flags);
                    return Ok(None);
                }
            },
            Transport::Shm => match self.may_connect(fd.as_fd())? {
                true => Stream::shm(ShmStream::invite(fd, self.sizes)?),
                false => {
                    shm::refuse(fd.as_fd(), JoinRefusal::User);
                    return Ok(None);
                }
            },
            Transport::Tcp | Transport::Udp | Transport::Xdp => {
                let peer = peer.ok_or(io::ErrorKind::NotConnected)?;
                Stream::tcp(DeadlineSocket::from(fd), SocketAddr::try_from(peer)?)?
            }
        };
        Ok(Some(stream))
    }

    fn may_connect(&self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        let Some(users) = &self.users else {
            return Ok(true);
        };
        Ok(users.contains(&User::at(fd)?.user))
    }
}

fn excess(stream: Option<Stream>, lent: Option<LentDescriptor>) -> Accepted {
    Accepted::Excess(ExcessConnection::new(stream, lent))
}

/// Returns whether the client of a connection that was just accepted is gone.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn open(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(family, SocketType::STREAM, flags, None)
}

fn listen(fd: &OwnedFd, at: &impl SocketAddrArg) -> rustix::io::Result<()> {
    net::bind(fd, at)?;
    net::listen(fd, BACKLOG)
}

/// Returns whether `path` is a socket on which no process listens any more.
fn is_stale(path: &Path, at: &SocketAddrUnix) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    let probe = open(AddressFamily::UNIX)?;
    Ok(net::connect(&probe, at) == Err(Errno::CONNREFUSED))
}

/// The file of a Unix socket; removed when dropped, if it still is the same file.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }

    /// Adds the permissions that the umask has taken away. Only of this very file: its name may lead elsewhere by now.
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(O_PATH | O_NOFOLLOW);
        let file = options.open(&self.path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino()) != self.identity {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        if found.mode() & PERMISSIONS == mode {
            return Ok(());
        }
        // A descriptor that only names a file can be changed by its name alone.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(path, Permissions::from_mode(mode))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // No caller is left to report a failure to; the next server finds the file stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
