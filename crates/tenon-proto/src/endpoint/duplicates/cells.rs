//! Memory in cells of one size, which are calls, peers or pieces of replies: so nothing that the cache keeps leaves a
//! gap that other things could not fill, and the bytes in use are the number of cells.

use super::call_key::MessageKey;
use super::cell_id::{CellId, NONE};
use super::links::{CellLinks, CellList};

/// Cells that are taken from the system together: 64 KiB of them.
pub(super) const CHUNK_CELLS: usize = 512;

/// Bytes of a reply that the cell of its call has room for.
pub(super) const INLINE_BYTES: usize = 47;

/// Bytes of a reply in each further cell.
pub(super) const PIECE_BYTES: usize = 119;

/// A call, and its reply once that is made.
#[derive(Debug)]
pub(super) struct CachedCall {
    pub(super) message: MessageKey,
    pub(super) peer: CellId,
    /// Tells the call from earlier and later ones in the same cell.
    pub(super) turn: u32,
    /// The time at which the reply was made, in nanoseconds since the cache was.
    pub(super) finished_at: u64,
    /// Its neighbours among all replies, by age.
    pub(super) by_age: CellLinks,
    /// Its neighbours among the replies to its peer, by age.
    pub(super) of_peer: CellLinks,
    /// The first piece of the reply that is not in `inline`.
    pub(super) pieces: CellId,
    pub(super) reply_length: u32,
    pub(super) is_finished: bool,
    pub(super) inline: [u8; INLINE_BYTES],
}

/// A peer of which calls are known.
#[derive(Debug)]
pub(super) struct CachedPeer<P> {
    pub(super) address: P,
    /// Calls that are carried out.
    pub(super) running: u32,
    /// Replies that are kept, and how many they are.
    pub(super) replies: CellList,
    pub(super) reply_count: u32,
    /// Its neighbours among the peers with as many replies.
    pub(super) of_count: CellLinks,
}

/// The use of a cell.
#[derive(Debug)]
pub(super) enum CellContent<P> {
    Free,
    Call(CachedCall),
    Peer(CachedPeer<P>),
    Piece([u8; PIECE_BYTES]),
}

#[derive(Debug)]
pub(super) struct CacheCell<P> {
    pub(super) content: CellContent<P>,
    /// The next free cell, piece of the same reply, or entry of the same chain of the index.
    pub(super) next: CellId,
    /// The hash by which the index finds the cell.
    pub(super) hash: u32,
}

/// Bytes of a cell, where an address is one of the Internet.
const CELL_BYTES: usize = 128;

const _: () = assert!(size_of::<CacheCell<std::net::SocketAddr>>() == CELL_BYTES);

/// The cells of a cache.
#[derive(Debug)]
pub(super) struct CellPool<P> {
    chunks: Vec<Box<[CacheCell<P>]>>,
    /// The first of the free cells that have been in use.
    free: CellId,
    /// The first cell that has never been in use.
    fresh: CellId,
    in_use: usize,
    max: usize,
}

impl<P> CellPool<P> {
    /// Up to `max` cells, none of which takes memory yet.
    pub(super) fn new(max: usize) -> Self {
        Self {
            chunks: Vec::with_capacity((max + 1).div_ceil(CHUNK_CELLS)),
            free: NONE,
            fresh: NONE + 1,
            in_use: 0,
            max,
        }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Cells that are not in use.
    #[inline]
    pub(super) fn available(&self) -> usize {
        self.max - self.in_use
    }

    /// Bytes that are taken from the system, but for those of `chunks` itself.
    pub(super) fn allocated_bytes(&self) -> usize {
        let cells: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        cells * size_of::<CacheCell<P>>()
    }

    /// Puts `content` into a free cell; the caller has made sure that one is [available](Self::available).
    #[inline]
    pub(super) fn take(&mut self, content: CellContent<P>) -> CellId {
        debug_assert!(self.available() > 0);
        self.in_use += 1;
        let id = if self.free == NONE {
            self.take_fresh()
        } else {
            self.free
        };
        let cell = self.cell_mut(id);
        let next = std::mem::replace(&mut cell.next, NONE);
        cell.content = content;
        self.free = next;
        id
    }

    fn take_fresh(&mut self) -> CellId {
        let id = self.fresh;
        self.fresh += 1;
        if id as usize / CHUNK_CELLS == self.chunks.len() {
            self.grow();
        }
        id
    }

    #[cold]
    fn grow(&mut self) {
        let left = self.max + 1 - self.chunks.len() * CHUNK_CELLS;
        let free = || CacheCell {
            content: CellContent::Free,
            next: NONE,
            hash: 0,
        };
        let chunk = std::iter::repeat_with(free).take(left.min(CHUNK_CELLS));
        self.chunks.push(chunk.collect());
    }

    /// Frees a cell.
    #[inline]
    pub(super) fn give_back(&mut self, id: CellId) {
        let next = std::mem::replace(&mut self.free, id);
        let cell = self.cell_mut(id);
        cell.content = CellContent::Free;
        cell.next = next;
        self.in_use -= 1;
    }

    #[inline]
    pub(super) fn cell(&self, id: CellId) -> &CacheCell<P> {
        &self.chunks[id as usize / CHUNK_CELLS][id as usize % CHUNK_CELLS]
    }

    #[inline]
    pub(super) fn cell_mut(&mut self, id: CellId) -> &mut CacheCell<P> {
        &mut self.chunks[id as usize / CHUNK_CELLS][id as usize % CHUNK_CELLS]
    }

    #[inline]
    pub(super) fn call(&self, id: CellId) -> &CachedCall {
        match &self.cell(id).content {
            CellContent::Call(call) => call,
            _ => not_as_linked(),
        }
    }

    #[inline]
    pub(super) fn call_mut(&mut self, id: CellId) -> &mut CachedCall {
        match &mut self.cell_mut(id).content {
            CellContent::Call(call) => call,
            _ => not_as_linked(),
        }
    }

    #[inline]
    pub(super) fn peer(&self, id: CellId) -> &CachedPeer<P> {
        match &self.cell(id).content {
            CellContent::Peer(peer) => peer,
            _ => not_as_linked(),
        }
    }

    #[inline]
    pub(super) fn peer_mut(&mut self, id: CellId) -> &mut CachedPeer<P> {
        match &mut self.cell_mut(id).content {
            CellContent::Peer(peer) => peer,
            _ => not_as_linked(),
        }
    }

    fn piece(&self, id: CellId) -> &[u8; PIECE_BYTES] {
        match &self.cell(id).content {
            CellContent::Piece(bytes) => bytes,
            _ => not_as_linked(),
        }
    }

    // ---- Replies ----

    /// Cells that a reply of `length` bytes takes beside that of its call.
    #[inline]
    pub(super) fn pieces_of(length: usize) -> usize {
        length.saturating_sub(INLINE_BYTES).div_ceil(PIECE_BYTES)
    }

    /// Writes a reply to its call; there are [enough](Self::pieces_of) cells for it.
    pub(super) fn save_reply(&mut self, id: CellId, reply: &[u8]) {
        let (inline, rest) = reply.split_at(reply.len().min(INLINE_BYTES));
        // From the end on, so that each piece knows the next.
        let mut pieces = NONE;
        for bytes in rest.chunks(PIECE_BYTES).rev() {
            let mut piece = [0; PIECE_BYTES];
            piece[..bytes.len()].copy_from_slice(bytes);
            let before = self.take(CellContent::Piece(piece));
            self.cell_mut(before).next = pieces;
            pieces = before;
        }
        let call = self.call_mut(id);
        call.inline[..inline.len()].copy_from_slice(inline);
        call.pieces = pieces;
        // A datagram has fewer bytes.
        call.reply_length = reply.len() as u32;
    }

    /// Returns the reply of a call, piece by piece.
    pub(super) fn reply(&self, id: CellId) -> impl Iterator<Item = &[u8]> {
        let call = self.call(id);
        let length = call.reply_length as usize;
        let inline = &call.inline[..length.min(INLINE_BYTES)];
        let (mut next, mut left) = (call.pieces, length - inline.len());
        let pieces = std::iter::from_fn(move || {
            let piece = self.piece(Some(next).filter(|id| *id != NONE)?);
            let bytes = &piece[..left.min(PIECE_BYTES)];
            left -= bytes.len();
            next = self.cell(next).next;
            Some(bytes)
        });
        std::iter::once(inline).chain(pieces)
    }

    /// Frees the pieces of a reply; the owner frees its call, too.
    pub(super) fn free_pieces(&mut self, id: CellId) {
        let mut next = std::mem::replace(&mut self.call_mut(id).pieces, NONE);
        while next != NONE {
            let piece = next;
            next = self.cell(piece).next;
            self.give_back(piece);
        }
    }
}

/// A cell is not what the lists of the cache say that it is.
#[cold]
fn not_as_linked() -> ! {
    unreachable!("the lists of the duplicate request cache name cells of their own kind")
}
