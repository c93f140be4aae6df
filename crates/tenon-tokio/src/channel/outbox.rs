//! What is to be sent over a connection, in order, and how much of it is sent already.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use tenon::runtime::{Buffers, Followed, SlotId, Socket, Step};
use tenon::wire::Buffer;
use tenon::{Address, Transport};

use super::written::Written;

/// Pieces that one system call sends.
const PIECES_MAX: usize = 64;

/// What is sent as a whole.
#[derive(Debug)]
pub(super) enum Piece {
    /// What the engine itself has to say.
    Note(Buffer),
    /// A call in flight, by its slot and its number.
    Call(SlotId, u32, Written),
}

impl Piece {
    fn bytes(&self, address: &Address) -> &[u8] {
        match self {
            Self::Note(note) => note.as_slice(),
            Self::Call(_, _, written) => written.packet(address),
        }
    }

    fn followed(&self) -> Option<&Followed> {
        match self {
            Self::Note(_) => None,
            Self::Call(_, _, written) => written.followed.as_deref(),
        }
    }

    /// Gives the buffer back.
    pub(super) fn recycle(self, buffers: &mut Buffers) {
        buffers.put(match self {
            Self::Note(note) => note,
            Self::Call(_, _, written) => written.into_message(),
        });
    }
}

/// What is to be sent over a connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are sent.
    sent: usize,
    /// Whether there may be calls that are followed.
    has_followed: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.has_followed |= piece.followed().is_some();
        self.pieces.push_back(piece);
    }

    /// Says of the calls among the first `count` pieces that they are at this step.
    #[cold]
    fn mark(&self, count: usize, step: Step) {
        let first = self.pieces.iter().take(count);
        let followed = first.filter_map(Piece::followed);
        followed.for_each(|followed| followed.at(step));
    }

    /// Sends as much as one system call takes, and hands what is sent whole to `done`.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits; what the socket reports.
    pub(super) fn send(
        &mut self,
        socket: &Socket,
        address: &Address,
        done: impl FnMut(Piece),
    ) -> io::Result<()> {
        let most = match address.transport() {
            Transport::Udp | Transport::Xdp => 1,
            Transport::Tcp | Transport::Unix | Transport::Shm => PIECES_MAX,
        };
        let count = self.pieces.len().min(most);
        if self.has_followed {
            self.mark(count, Step::Sending);
        }
        let bytes = match count {
            0 => return Ok(()),
            1 => socket.try_send(self.pieces[0].bytes(address), self.sent)?,
            count => self.send_pieces(socket, address, count)?,
        };
        if self.has_followed {
            self.mark(count, Step::Sent);
        }
        self.advance(bytes, address, done);
        self.has_followed &= !self.pieces.is_empty();
        Ok(())
    }

    fn send_pieces(&self, socket: &Socket, address: &Address, count: usize) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut skipped = self.sent;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(&piece.bytes(address)[skipped..]);
            skipped = 0;
        }
        socket.try_send_pieces(&slices[..count])
    }

    fn advance(&mut self, mut bytes: usize, address: &Address, mut done: impl FnMut(Piece)) {
        while let Some(piece) = self.pieces.front() {
            let left = piece.bytes(address).len() - self.sent;
            if bytes < left {
                self.sent += bytes;
                return;
            }
            bytes -= left;
            self.sent = 0;
            done(
                self.pieces
                    .pop_front()
                    .unwrap_or_else(|| unreachable!("it was there")),
            );
        }
    }

    /// How a call stands that may be in here.
    pub(super) fn progress(&self, number: u32) -> Progress {
        let is_it = |piece: &Piece| matches!(piece, Piece::Call(_, own, _) if *own == number);
        match self.pieces.iter().position(is_it) {
            None => Progress::Whole,
            Some(0) if self.sent > 0 => Progress::Part,
            Some(_) => Progress::Nothing,
        }
    }

    /// Takes a call out of which nothing is sent.
    pub(super) fn take(&mut self, number: u32) -> Option<Piece> {
        let is_it = |piece: &Piece| matches!(piece, Piece::Call(_, own, _) if *own == number);
        let position = self.pieces.iter().position(is_it)?;
        self.pieces.remove(position)
    }

    /// Takes everything out that is not sent whole.
    pub(super) fn take_all(&mut self) -> VecDeque<Piece> {
        self.sent = 0;
        std::mem::take(&mut self.pieces)
    }
}

/// How much of a call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Part,
    Whole,
}
