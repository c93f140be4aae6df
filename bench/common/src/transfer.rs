//! The streams of the section `stream`: what they carry, and how a client measures them.
//!
//! A client prints `ready` when a first stream, of which every byte is compared, has ended. Then, for each number on its
//! standard input, it has a stream with so many bytes or items, and prints a line as clients of the section `rpc` do:
//! the number, how many nanoseconds that took, and these once more as the median and the 99th percentile, as it is one
//! call. The time goes from the call to the end of the stream, which for arguments is the result.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::str::FromStr;
use std::time::Instant;

use crate::task::WrongAnswer;

/// Bytes of a piece of Tenon's: with the length in front of them those of the longest item that goes in one message.
pub const CHUNK_BYTES: usize = 32_748;

/// Bytes of that message, its header included, and of the pieces of peers, which have messages of this size.
pub const PIECE_BYTES: usize = 32 << 10;

/// Bytes of a small item.
pub const ITEM_BYTES: usize = 64;

/// Bytes that the first stream has, and items.
const FIRST: u64 = 1 << 20;

/// The content of a stream, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Bytes in pieces from the server to the client.
    Bytes,
    /// Bytes in pieces from the client to the server.
    ArgumentBytes,
    /// Small items from the server to the client.
    Items,
}

impl Content {
    /// All of them.
    pub const ALL: [Content; 3] = [Content::Bytes, Content::ArgumentBytes, Content::Items];
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Bytes => "bytes",
            Content::ArgumentBytes => "argument_bytes",
            Content::Items => "items",
        })
    }
}

impl FromStr for Content {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Content::ALL.into_iter();
        all.find(|content| content.to_string() == name)
            .ok_or_else(|| format!("{name} is no content of streams"))
    }
}

/// Bytes or items of one stream, piece by piece: each has its number in front and then the same bytes.
#[derive(Debug)]
pub struct Pieces {
    buffer: Vec<u8>,
    number: u64,
    left: u64,
}

impl Pieces {
    /// So many bytes in pieces of at most `length` bytes.
    pub fn of_bytes(amount: u64, length: usize) -> Self {
        let buffer = (0..length).map(|at| (at % 251) as u8).collect();
        Self {
            buffer,
            number: 0,
            left: amount,
        }
    }

    /// So many small items.
    pub fn of_items(amount: u64) -> Self {
        Self::of_bytes(amount * ITEM_BYTES as u64, ITEM_BYTES)
    }

    /// The next piece, which is all that the buffer holds.
    pub fn next_piece(&mut self) -> Option<&Vec<u8>> {
        if self.left == 0 {
            return None;
        }
        if self.left < self.buffer.len() as u64 {
            self.buffer.truncate(self.left as usize);
        }
        self.left -= self.buffer.len() as u64;
        let number = self.number.to_le_bytes();
        match self.buffer.first_chunk_mut() {
            // Of a length that is known, as small items are few instructions each.
            Some(first) => *first = number,
            None => {
                let length = self.buffer.len();
                self.buffer.copy_from_slice(&number[..length]);
            }
        }
        self.number += 1;
        Some(&self.buffer)
    }
}

/// Compares the pieces that come with those that are sent: all bytes of a short stream, and the length, the number and
/// the last byte of each piece of a long one.
#[derive(Debug)]
pub struct Checker {
    expected: Pieces,
    amount: u64,
    in_full: bool,
}

impl Checker {
    /// For so many bytes in pieces of at most `length` bytes.
    pub fn of_bytes(amount: u64, length: usize) -> Self {
        Self {
            expected: Pieces::of_bytes(amount, length),
            amount,
            in_full: amount <= FIRST,
        }
    }

    /// For so many small items.
    pub fn of_items(amount: u64) -> Self {
        Self {
            in_full: amount * ITEM_BYTES as u64 <= FIRST,
            amount,
            expected: Pieces::of_items(amount),
        }
    }

    /// Compares the next piece.
    ///
    /// # Errors
    /// It is another.
    pub fn check(&mut self, piece: &[u8]) -> Result<(), WrongAnswer> {
        let expected = self.expected.next_piece().ok_or(WrongAnswer)?;
        let has_number = match (piece.first_chunk::<8>(), expected.first_chunk()) {
            (Some(number), Some(expected)) => number == expected,
            _ => piece == expected,
        };
        let is_right = has_number
            && piece.len() == expected.len()
            && piece.last() == expected.last()
            && (!self.in_full || piece == expected);
        if is_right { Ok(()) } else { Err(WrongAnswer) }
    }

    /// Checks that there were as many as there should be, and returns that number.
    ///
    /// # Errors
    /// Some are missing.
    pub fn finish(self) -> Result<u64, WrongAnswer> {
        if self.expected.left == 0 {
            Ok(self.amount)
        } else {
            Err(WrongAnswer)
        }
    }
}

/// Serves rounds until standard input ends: each has one stream, which `transfer` carries and checks.
///
/// # Errors
/// A transfer fails, or a round cannot be read or answered.
pub fn serve_transfers<E>(mut transfer: impl FnMut(u64) -> Result<(), E>) -> Result<(), E>
where
    E: From<io::Error>,
{
    transfer(FIRST)?;
    writeln!(io::stdout(), "ready")?;
    while let Some(amount) = next_amount()? {
        let start = Instant::now();
        transfer(amount)?;
        answer(amount, start)?;
    }
    Ok(())
}

/// Serves rounds as [`serve_transfers`] does.
///
/// # Errors
/// As there.
pub async fn serve_transfers_async<E>(transfer: impl AsyncFn(u64) -> Result<(), E>) -> Result<(), E>
where
    E: From<io::Error>,
{
    transfer(FIRST).await?;
    writeln!(io::stdout(), "ready")?;
    while let Some(amount) = next_amount()? {
        let start = Instant::now();
        transfer(amount).await?;
        answer(amount, start)?;
    }
    Ok(())
}

fn next_amount() -> io::Result<Option<u64>> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    line.trim().parse().map(Some).map_err(io::Error::other)
}

fn answer(amount: u64, start: Instant) -> io::Result<()> {
    let elapsed = start.elapsed().as_nanos();
    writeln!(io::stdout(), "{amount} {elapsed} {elapsed} {elapsed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(amount: u64) -> Vec<Vec<u8>> {
        let mut pieces = Pieces::of_bytes(amount, 100);
        std::iter::from_fn(|| pieces.next_piece().cloned()).collect()
    }

    fn check(amount: u64, pieces: &[Vec<u8>]) -> Result<u64, WrongAnswer> {
        let mut checker = Checker::of_bytes(amount, 100);
        for piece in pieces {
            checker.check(piece)?;
        }
        checker.finish()
    }

    #[test]
    fn what_is_sent_is_what_is_expected() {
        for amount in [0, 1, 100, 250, FIRST + 50] {
            assert_eq!(check(amount, &pieces(amount)), Ok(amount));
        }
    }

    #[test]
    fn what_is_missing_or_changed_is_noticed() {
        let all = pieces(250);
        let mut changed = all.clone();
        changed[1][50] ^= 1;
        let mut exchanged = all.clone();
        exchanged.swap(0, 1);
        for wrong in [&all[..2], &changed, &exchanged, &[&all[..], &all].concat()] {
            assert_eq!(check(250, wrong), Err(WrongAnswer));
        }
    }
}
