//! The socket at the near end of a relay.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};

use tenon_net::{PairedSocket, Stream, Transport, impl_as_fd, send_paired, socket_pair};
use tenon_proto::exchange::byte_stream::ByteStream;

use super::PIECE;

/// One of a pair of sockets; the channel or server has the other.
#[derive(Debug)]
pub(super) struct LocalEnd {
    socket: PairedSocket,
    /// The other end writes nothing any more.
    has_ended: bool,
    /// The other end is closed: nobody reads what comes.
    is_gone: bool,
    /// The other end was told that nothing more comes.
    is_shut: bool,
    /// Something waits for room in the socket.
    wants_room: bool,
}

impl LocalEnd {
    /// Returns a near end, and the connection that its other end is: one to `peer` by `transport`.
    pub(super) fn pair(transport: Transport, peer: SocketAddr) -> io::Result<(Self, Stream)> {
        let (socket, other) = socket_pair()?;
        socket.set_nonblocking(true)?;
        let local = Self {
            socket,
            has_ended: false,
            is_gone: false,
            is_shut: false,
            wants_room: false,
        };
        Ok((local, Stream::relayed(other, transport, peer)?))
    }

    /// Returns whether something waits for room in the socket.
    pub(super) fn wants_room(&self) -> bool {
        self.wants_room
    }

    /// Returns whether something may be received for a stream that has room for it.
    pub(super) fn wants_bytes(&self, stream: &ByteStream) -> bool {
        !self.has_ended && stream.free() > 0
    }

    /// Returns whether the other end is closed.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The other end is closed.
    pub(super) fn hang_up(&mut self) {
        self.is_gone = true;
    }

    /// Moves as many bytes as there are and find room, both ways.
    pub(super) fn pump(&mut self, stream: &mut ByteStream, piece: &mut [u8; PIECE]) {
        self.receive(stream, piece);
        self.send(stream);
    }

    fn receive(&mut self, stream: &mut ByteStream, piece: &mut [u8; PIECE]) {
        while self.wants_bytes(stream) {
            let room = stream.free().min(PIECE);
            match (&self.socket).read(&mut piece[..room]) {
                Ok(0) => self.end(stream),
                Ok(length) => stream.write(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The other end was closed with bytes that it had not read.
                Err(_) => {
                    self.is_gone = true;
                    self.end(stream);
                }
            }
        }
    }

    fn end(&mut self, stream: &mut ByteStream) {
        self.has_ended = true;
        stream.finish();
    }

    fn send(&mut self, stream: &mut ByteStream) {
        self.wants_room = false;
        while !stream.ready().is_empty() {
            let ready = stream.ready();
            let sent = match self.is_gone {
                true => Ok(ready.len()),
                false => send_paired(&self.socket, ready),
            };
            match sent {
                Ok(sent) => stream.consume(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wants_room = true;
                    return;
                }
                Err(_) => self.is_gone = true,
            }
        }
        if (stream.has_ended() || stream.end().is_some())
            && !std::mem::replace(&mut self.is_shut, true)
        {
            // It fails if the other end is closed, and needs to know nothing.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }

    /// Returns whether nothing is left to do: all bytes have been moved both ways, as far as anybody wants them.
    pub(super) fn is_done(&self, stream: &ByteStream) -> bool {
        let is_delivered = self.is_gone || stream.ready().is_empty();
        // What nobody waits for is not sent for ever to a peer that may be gone, too.
        let is_settled = stream.has_all_arrived() || stream.is_unanswered();
        let is_left = self.is_gone && self.has_ended && is_settled;
        is_left || stream.is_over() && is_delivered
    }
}

impl_as_fd!(LocalEnd, self => self.socket.as_fd());
