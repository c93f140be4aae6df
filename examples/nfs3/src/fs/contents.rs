//! The bytes of a regular file: blocks, and holes that read as zeros and take no memory.

use std::collections::BTreeMap;

use super::{FsError, space::Space};

/// Bytes in a file, at most: offsets fit into a signed 64-bit number.
pub const FILE_SIZE_MAX: u64 = i64::MAX as u64;

/// Bytes in a block.
const BLOCK: usize = 4096;
/// What a block costs: its bytes and its place in the tree.
const BLOCK_COST: u64 = BLOCK as u64 + 64;

type Block = Box<[u8; BLOCK]>;

/// The contents of a file. Bytes of a block behind the file's end are always zero.
#[derive(Debug, Default)]
pub(super) struct Contents {
    size: u64,
    blocks: BTreeMap<u64, Block>,
}

/// A run of bytes within one block.
struct Piece {
    block: u64,
    start: usize,
    len: usize,
}

impl Contents {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the blocks.
    pub fn used(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK as u64
    }

    /// Bytes that the contents cost.
    pub fn cost(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_COST
    }

    /// At most `count` bytes from `offset`; fewer at the end of the file.
    pub fn read(&self, offset: u64, count: usize) -> Vec<u8> {
        let left = self.size.saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(count);
        let mut data = Vec::with_capacity(count);
        for piece in pieces(offset, count) {
            match self.blocks.get(&piece.block) {
                Some(block) => data.extend_from_slice(&block[piece.start..][..piece.len]),
                None => data.resize(data.len() + piece.len, 0),
            }
        }
        data
    }

    /// Puts `data` at `offset`, all or nothing.
    ///
    /// # Errors
    /// [`FsError::TooLarge`], [`FsError::NoSpace`].
    pub fn write(&mut self, offset: u64, data: &[u8], space: &mut Space) -> Result<(), FsError> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset
            .checked_add(data.len() as u64)
            .filter(|end| *end <= FILE_SIZE_MAX)
            .ok_or(FsError::TooLarge)?;
        space.take(self.blocks_missing(offset, data.len()) * BLOCK_COST)?;
        let mut rest = data;
        for piece in pieces(offset, data.len()) {
            let (now, later) = rest.split_at(piece.len);
            let block = self.blocks.entry(piece.block).or_insert_with(empty_block);
            block[piece.start..][..piece.len].copy_from_slice(now);
            rest = later;
        }
        self.size = self.size.max(end);
        Ok(())
    }

    fn blocks_missing(&self, offset: u64, len: usize) -> u64 {
        let touched = pieces(offset, len);
        touched
            .filter(|piece| !self.blocks.contains_key(&piece.block))
            .count() as u64
    }

    /// Cuts the file, or lets it grow by a hole.
    ///
    /// # Errors
    /// [`FsError::TooLarge`].
    pub fn resize(&mut self, size: u64, space: &mut Space) -> Result<(), FsError> {
        if size > FILE_SIZE_MAX {
            return Err(FsError::TooLarge);
        }
        if size < self.size {
            self.cut(size, space);
        }
        self.size = size;
        Ok(())
    }

    fn cut(&mut self, size: u64, space: &mut Space) {
        let before = self.cost();
        drop(self.blocks.split_off(&size.div_ceil(BLOCK as u64)));
        space.give_back(before - self.cost());
        let end_in_block = (size % BLOCK as u64) as usize;
        if let Some(last) = self.blocks.get_mut(&(size / BLOCK as u64)) {
            last[end_in_block..].fill(0);
        }
    }
}

fn empty_block() -> Block {
    Box::new([0; BLOCK])
}

/// The blocks that `len` bytes from `offset` lie in. The end is at most [`FILE_SIZE_MAX`].
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % BLOCK as u64) as usize;
        let piece = Piece {
            block: at / BLOCK as u64,
            start,
            len: (BLOCK - start).min(len - done),
        };
        done += piece.len;
        (piece.len > 0).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::new(1 << 20)
    }

    #[test]
    fn what_is_written_is_read_across_blocks() {
        let (mut contents, mut space) = (Contents::default(), space());
        let data: Vec<u8> = (0..3 * BLOCK).map(|at| (at % 251) as u8).collect();
        contents.write(1000, &data, &mut space).unwrap();
        assert_eq!(contents.size(), 1000 + data.len() as u64);
        assert_eq!(contents.read(1000, data.len()), data);
        assert_eq!(
            contents.read(0, 1001),
            [&[0; 1000][..], &[data[0]]].concat()
        );
        assert_eq!(
            contents.read(contents.size() - 1, 100),
            data[data.len() - 1..]
        );
        assert_eq!(contents.read(u64::MAX, 100), b"");
    }

    #[test]
    fn holes_read_as_zeros_and_cost_nothing() {
        let (mut contents, mut space) = (Contents::default(), space());
        contents.resize(FILE_SIZE_MAX, &mut space).unwrap();
        assert_eq!((contents.used(), space.used), (0, 0));
        contents.write(1 << 40, b"x", &mut space).unwrap();
        assert_eq!(contents.used(), BLOCK as u64);
        assert_eq!(contents.read((1 << 40) - 1, 3), b"\0x\0");
    }

    #[test]
    fn what_is_cut_off_comes_back_as_zeros() {
        let (mut contents, mut space) = (Contents::default(), space());
        contents.write(0, &[7; 2 * BLOCK], &mut space).unwrap();
        contents.resize(10, &mut space).unwrap();
        assert_eq!(space.used, BLOCK_COST);
        contents.resize(20, &mut space).unwrap();
        assert_eq!(contents.read(0, 100), [[7; 10], [0; 10]].concat());
        contents.resize(0, &mut space).unwrap();
        assert_eq!(space.used, 0);
    }

    #[test]
    fn limits_hold_and_nothing_is_written_over_them() {
        let (mut contents, mut space) = (Contents::default(), Space::new(2 * BLOCK_COST));
        let too_much = [1; 2 * BLOCK + 1];
        assert_eq!(
            contents.write(0, &too_much, &mut space),
            Err(FsError::NoSpace)
        );
        assert_eq!((contents.size(), space.used), (0, 0));
        for offset in [FILE_SIZE_MAX, u64::MAX] {
            assert_eq!(
                contents.write(offset, b"x", &mut space),
                Err(FsError::TooLarge)
            );
        }
        assert_eq!(
            contents.resize(FILE_SIZE_MAX + 1, &mut space),
            Err(FsError::TooLarge)
        );
    }
}
