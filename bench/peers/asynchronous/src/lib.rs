//! What the peers on tokio share. They run on one thread, which is what they are fastest on when they
//! have one core; sockets do not delay small segments.

use std::error::Error;
use std::future::Future;
use std::io;

use tenon_bench_common::task::Task;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

use peer::Peer;

mod connections;
pub mod peer;

pub use tenon_bench_common::address::Address;
pub use tenon_bench_common::operation;

/// How programs end.
pub type Outcome = Result<(), Box<dyn Error>>;

/// A connection.
pub type Stream = Either<TcpStream, UnixStream>;

/// Runs the program of a peer, which is a server and a client, as code for wide records takes long to
/// compile: `PROGRAM server tcp|unix=PATH`, or `PROGRAM client PROCEDURE N CALLS_IN_FLIGHT[xCONNECTIONS]
/// ADDRESS...`.
///
/// # Errors
/// What runs fails, or there is none in the arguments.
pub fn run(
    server: impl FnOnce(&[String]) -> Outcome,
    client: impl FnOnce(&[String]) -> Outcome,
) -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, rest @ ..] if role == "server" => server(rest),
        [role, rest @ ..] if role == "client" => client(rest),
        _ => Err("usage: PROGRAM server|client ...".into()),
    }
}

/// Runs a client: has it connected to where the arguments say, and measures what they say.
///
/// # Errors
/// It fails, or there is no task in the arguments.
pub fn run_client<P: Peer + 'static>(
    arguments: &[String],
    connect: impl AsyncFn(Address) -> peer::Answer<P>,
) -> Outcome {
    let task = Task::from_arguments(arguments)?;
    block_on(async {
        if task.connections == 1 {
            let peer = connect(task.address).await?;
            peer::measure(&peer, task.operation, task.in_flight).await
        } else {
            connections::measure(&task, connect).await
        }
    })
}

/// Runs a server: listens where the arguments say, `tcp` or `unix=PATH`, and prints the address and
/// `ready`.
///
/// # Errors
/// It fails, or cannot listen.
pub fn run_server(arguments: &[String], server: impl AsyncFnOnce(Listener) -> Outcome) -> Outcome {
    let [listen] = arguments else {
        return Err("usage: SERVER tcp|unix=PATH".into());
    };
    block_on(async { server(Listener::bind(listen).await?).await })
}

/// Runs a program on the thread that it has.
///
/// # Errors
/// It fails.
pub fn block_on(program: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, program)
}

/// Connects.
///
/// # Errors
/// Nobody is there.
pub async fn connect(address: &Address) -> io::Result<Stream> {
    match address {
        Address::Tcp(socket) => {
            let stream = TcpStream::connect(socket).await?;
            stream.set_nodelay(true)?;
            Ok(Either::Left(stream))
        }
        Address::Unix(path) => Ok(Either::Right(UnixStream::connect(path).await?)),
        Address::Udp(_) | Address::Shm(_) | Address::Xdp(_) => {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

/// Where a server listens.
#[derive(Debug)]
pub enum Listener {
    /// On a port.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

impl Listener {
    async fn bind(listen: &str) -> io::Result<Listener> {
        match listen.strip_prefix("unix=") {
            Some(path) => {
                let listener = UnixListener::bind(path)?;
                println!("unix {path}\nready");
                Ok(Listener::Unix(listener))
            }
            None => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                println!("tcp 127.0.0.1 {}\nready", listener.local_addr()?.port());
                Ok(Listener::Tcp(listener))
            }
        }
    }

    /// Takes the next connection.
    ///
    /// # Errors
    /// The kernel has none.
    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Either::Left(stream))
            }
            Listener::Unix(listener) => Ok(Either::Right(listener.accept().await?.0)),
        }
    }
}
