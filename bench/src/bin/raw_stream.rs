//! The physical limit of the section `stream`: as many bytes as Tenon sends, over one socket or through rings in memory
//! that both ends share.
//!
//! usage: `raw_stream server block|spin tcp|unix=PATH|shm=PATH`, or
//! `raw_stream client block|spin bytes|argument_bytes ADDRESS...`

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

use tenon_bench::ring::RingPair;
use tenon_bench::spinning::Spinning;
use tenon_bench_asynchronous::{Outcome, run};
use tenon_bench_common::address::Address;
use tenon_bench_common::task::check;
use tenon_bench_common::transfer::{CHUNK_BYTES, Content, PIECE_BYTES, serve_transfers};

/// Pieces that a reader has room for: Tenon's reads are for 32 KiB, too.
const ROOM_PIECES: usize = 1;

/// Pieces of a stream of which everything is compared.
const FIRST_PIECES: u32 = 64;

fn main() -> Outcome {
    run(serve, call)
}

/// The two directions of a connection: bytes of a socket, words of a ring.
trait Duplex {
    type Unit: Copy + PartialEq + From<u8> + Into<u64>;

    fn write_all(&mut self, units: &[Self::Unit]) -> io::Result<()>;

    /// Waits for some, and returns how many were read.
    fn read(&mut self, room: &mut [Self::Unit]) -> io::Result<usize>;
}

/// A socket.
struct Socket<S>(S);

impl<S: Read + Write> Duplex for Socket<S> {
    type Unit = u8;

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

impl Duplex for RingPair {
    type Unit = u64;

    fn write_all(&mut self, words: &[u64]) -> io::Result<()> {
        RingPair::write_all(self, words)
    }

    fn read(&mut self, room: &mut [u64]) -> io::Result<usize> {
        RingPair::read(self, room)
    }
}

/// A connection that streams go over: each begins with a request, its direction and the number of its pieces.
struct Connection<D: Duplex> {
    duplex: D,
    piece: Vec<D::Unit>,
    room: Vec<D::Unit>,
}

impl<D: Duplex> Connection<D> {
    fn over(duplex: D) -> Self {
        let piece: Vec<D::Unit> = (0..PIECE_BYTES / size_of::<D::Unit>())
            .map(|at| D::Unit::from((at % 251) as u8))
            .collect();
        let room = piece.repeat(ROOM_PIECES);
        Self {
            duplex,
            piece,
            room,
        }
    }

    /// Serves until the client is gone.
    fn serve(mut self) -> Outcome {
        let mut request = [D::Unit::from(0); 5];
        while self.read_exact(&mut request).is_ok() {
            let [is_argument, count @ ..] = request.map(|unit| unit.into() as u8);
            let count = u32::from_le_bytes(count);
            if is_argument == 1 {
                self.receive(count)?;
                self.duplex.write_all(&[D::Unit::from(1)])?;
            } else {
                self.send(count)?;
            }
        }
        Ok(())
    }

    fn call(mut self, content: Content) -> Outcome {
        let is_argument = match content {
            Content::Bytes => false,
            Content::ArgumentBytes => true,
            Content::Items => return Err("nothing raw has items".into()),
        };
        serve_transfers(|amount| {
            let count = u32::try_from(amount.div_ceil(CHUNK_BYTES as u64))?;
            let [a, b, c, d] = count.to_le_bytes();
            let request = [u8::from(is_argument), a, b, c, d].map(D::Unit::from);
            self.duplex.write_all(&request)?;
            if is_argument {
                self.send(count)?;
                self.read_exact(&mut [D::Unit::from(0)])
            } else {
                self.receive(count)
            }
        })
    }

    fn send(&mut self, count: u32) -> Result<(), Box<dyn Error>> {
        for _ in 0..count {
            self.duplex.write_all(&self.piece)?;
        }
        Ok(())
    }

    fn receive(&mut self, count: u32) -> Result<(), Box<dyn Error>> {
        let mut left = count as usize * self.piece.len();
        // Where the next unit is in its piece.
        let mut at = 0;
        while left > 0 {
            let most = left.min(self.room.len());
            let read = self.duplex.read(&mut self.room[..most])?;
            let last = (at + read - 1) % self.piece.len();
            check(self.room[0] == self.piece[at] && self.room[read - 1] == self.piece[last])?;
            if count <= FIRST_PIECES {
                let expected = self.piece.iter().cycle().skip(at);
                check(self.room[..read].iter().eq(expected.take(read)))?;
            }
            at = (last + 1) % self.piece.len();
            left -= read;
        }
        Ok(())
    }

    fn read_exact(&mut self, room: &mut [D::Unit]) -> Result<(), Box<dyn Error>> {
        let mut filled = 0;
        while filled < room.len() {
            filled += self.duplex.read(&mut room[filled..])?;
        }
        Ok(())
    }
}

fn serve(arguments: &[String]) -> Outcome {
    let [waiting, transport] = arguments else {
        return Err("usage: raw_stream server block|spin tcp|unix=PATH|shm=PATH".into());
    };
    let spins = waiting == "spin";
    match transport.split_once('=') {
        None if transport == "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            println!("tcp 127.0.0.1 {}\nready", listener.local_addr()?.port());
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Connection::over(Socket(Spinning::new(stream, spins)?)).serve()
        }
        Some(("unix", path)) => {
            let listener = UnixListener::bind(path)?;
            println!("unix {path}\nready");
            let (stream, _) = listener.accept()?;
            Connection::over(Socket(Spinning::new(stream, spins)?)).serve()
        }
        Some(("shm", path)) => {
            let rings = RingPair::serve(path, || println!("shm {path}\nready"))?;
            Connection::over(rings).serve()
        }
        _ => Err(format!("{transport} is none of tcp, unix=PATH and shm=PATH").into()),
    }
}

fn call(arguments: &[String]) -> Outcome {
    let [waiting, content, address @ ..] = arguments else {
        return Err("usage: raw_stream client block|spin CONTENT ADDRESS...".into());
    };
    let spins = waiting == "spin";
    let content = content.parse()?;
    match Address::from_arguments(address)? {
        Address::Tcp(at) => {
            let stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            Connection::over(Socket(Spinning::new(stream, spins)?)).call(content)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            Connection::over(Socket(Spinning::new(stream, spins)?)).call(content)
        }
        Address::Shm(path) => Connection::over(RingPair::connect(&path)?).call(content),
        other => Err(format!("no raw stream over {other:?}").into()),
    }
}
