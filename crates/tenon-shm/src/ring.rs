//! A ring of bytes with one end that sends and one that receives, in different processes.
//!
//! Cursors count bytes since the beginning and never wrap around. Each end has its own cursor for
//! itself, writes it into the segment for the other to see, and never reads it there again. What it reads
//! there is the other's, and believes it only as far as it is possible: between nothing and all of the ring.
//!
//! The bytes themselves are written and read as atomic words, relaxed. That is what the language has
//! for memory that somebody else may write at the same time: each word is read exactly once, into memory
//! that is one's own, and whatever it was then is what everybody after looks at. An ordinary copy could be
//! read twice by what the compiler makes of it. On the processors there are such a word costs what
//! any other does.

use std::sync::atomic::AtomicU64 as OwnU64;
use std::sync::atomic::Ordering as OwnOrdering;

use crate::layout::{HEAD, Place, RECEIVER_SLEEPS, SENDER_SLEEPS, TAIL, WORD};
use crate::sync::{AtomicU64, Ordering, fence};

/// Bytes that are moved before the other end is told: it goes on with them while the rest is
/// moved.
pub(crate) const CHUNK: usize = 8 << 10;

/// The peer wrote something into the segment that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// More has come than there is room for.
    #[error(
        "the peer claims to have sent {claimed} bytes that are not received yet, through a ring of \
         {capacity}"
    )]
    Sent {
        /// What follows from the peer's cursor.
        claimed: u64,
        /// What the ring holds.
        capacity: u64,
    },
    /// More was received than was sent.
    #[error(
        "the peer claims to have received more than was sent: {claimed} bytes of a ring of {capacity} remain"
    )]
    Received {
        /// What follows from the peer's cursor.
        claimed: u64,
        /// What the ring holds.
        capacity: u64,
    },
}

/// The end that sends. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Sender {
    place: Place,
    /// Bytes put in.
    tail: OwnU64,
    /// Bytes that the peer had taken out when its cursor was looked at last.
    head_seen: OwnU64,
}

/// The end that receives. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Receiver {
    place: Place,
    /// Bytes taken out.
    head: OwnU64,
    /// Bytes taken out when it was certain last that a sender would see it before it sleeps.
    head_told: OwnU64,
}

impl Place {
    fn capacity(self) -> u64 {
        (self.words * WORD) as u64
    }

    fn ring(self, memory: &[AtomicU64]) -> &[AtomicU64] {
        &memory[self.start..self.start + self.words]
    }

    /// Room that a sender that sleeps is woken for. For less it would wake up again and again.
    fn room_to_wake_for(self) -> u64 {
        self.capacity() / 4
    }

    fn lacks_room(self, in_ring: u64) -> bool {
        in_ring > self.capacity() - self.room_to_wake_for()
    }
}

impl Sender {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            tail: OwnU64::new(0),
            head_seen: OwnU64::new(0),
        }
    }

    /// Puts in as much of `bytes` as there is room for and says how much it was. Calls `wake` when the
    /// peer is to be woken.
    #[inline]
    pub(crate) fn send(
        &self,
        memory: &[AtomicU64],
        bytes: &[u8],
        wake: impl Fn(),
    ) -> Result<usize, Violation> {
        let mut sent = 0;
        loop {
            let rest = &bytes[sent..];
            let put = self.put(memory, &rest[..rest.len().min(CHUNK)])?;
            self.publish(memory, &wake);
            sent += put;
            if put < CHUNK {
                return Ok(sent);
            }
        }
    }

    /// Puts in as much of `bytes` as there is room for, without telling the peer.
    #[inline]
    pub(crate) fn put(&self, memory: &[AtomicU64], bytes: &[u8]) -> Result<usize, Violation> {
        let tail = self.tail.load(OwnOrdering::Relaxed);
        let mut free = self.free(tail, self.head_seen.load(OwnOrdering::Relaxed));
        if free < bytes.len() {
            let head = self.look_at_head(memory, tail)?;
            free = self.free(tail, head);
        }
        let length = free.min(bytes.len());
        put(self.place.ring(memory), tail, &bytes[..length]);
        self.tail.store(tail + length as u64, OwnOrdering::Relaxed);
        Ok(length)
    }

    fn free(&self, tail: u64, head: u64) -> usize {
        (self.place.capacity() - (tail - head)) as usize
    }

    fn look_at_head(&self, memory: &[AtomicU64], tail: u64) -> Result<u64, Violation> {
        // Acquire: the peer has read what we are going to write over.
        let head = memory[self.place.receiver + HEAD].load(Ordering::Acquire);
        let (claimed, capacity) = (tail.wrapping_sub(head), self.place.capacity());
        if claimed > capacity {
            return Err(Violation::Received { claimed, capacity });
        }
        self.head_seen.store(head, OwnOrdering::Relaxed);
        Ok(head)
    }

    /// Lets the peer see what was put in, and has it woken if it sleeps.
    #[inline]
    pub(crate) fn publish(&self, memory: &[AtomicU64], wake: impl Fn()) {
        let tail = self.tail.load(OwnOrdering::Relaxed);
        memory[self.place.sender + TAIL].store(tail, Ordering::Release);
        wake_receiver(memory, self.place, wake);
    }

    /// Says that the sender sleeps until there is room. Says whether it may: not if there is room.
    pub(crate) fn park(&self, memory: &[AtomicU64]) -> bool {
        let sleeps = &memory[self.place.sender + SENDER_SLEEPS];
        sleeps.store(1, Ordering::Relaxed);
        // With the one in `tell_sender`: either this sees the room, or the peer sees the sleeper.
        fence(Ordering::SeqCst);
        let tail = self.tail.load(OwnOrdering::Relaxed);
        let may = match self.look_at_head(memory, tail) {
            Ok(head) => self.place.lacks_room(tail - head),
            // The next attempt to send reports it.
            Err(_) => false,
        };
        if !may {
            sleeps.store(0, Ordering::Relaxed);
        }
        may
    }

    /// Says that the sender sleeps no more.
    pub(crate) fn unpark(&self, memory: &[AtomicU64]) {
        memory[self.place.sender + SENDER_SLEEPS].store(0, Ordering::Relaxed);
    }
}

/// Has the end woken that receives by the ring at `place`, if it sleeps.
#[inline]
pub(crate) fn wake_receiver(memory: &[AtomicU64], place: Place, wake: impl Fn()) {
    // With the one in `Receiver::park`: either this sees the sleeper, or it sees what is new.
    fence(Ordering::SeqCst);
    wake_sleeper(&memory[place.receiver + RECEIVER_SLEEPS], wake);
}

/// Wakes who sleeps, once.
#[inline]
pub(crate) fn wake_sleeper(sleeps: &AtomicU64, wake: impl Fn()) {
    if sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::AcqRel) != 0 {
        wake();
    }
}

impl Receiver {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            head: OwnU64::new(0),
            head_told: OwnU64::new(0),
        }
    }

    /// Takes out what is there and fits into `room`, and says how much it was. Calls `wake` when the
    /// peer is to be woken, as there is room.
    #[inline]
    pub(crate) fn receive(
        &self,
        memory: &[AtomicU64],
        room: &mut [u8],
        wake: impl Fn(),
    ) -> Result<usize, Violation> {
        let mut head = self.head.load(OwnOrdering::Relaxed);
        let tail = self.look_at_tail(memory, head)?;
        let length = room.len().min((tail - head) as usize);
        for chunk in room[..length].chunks_mut(CHUNK) {
            take(self.place.ring(memory), head, chunk);
            head += chunk.len() as u64;
            // Release: what was read is not written over before.
            memory[self.place.receiver + HEAD].store(head, Ordering::Release);
        }
        self.head.store(head, OwnOrdering::Relaxed);
        if self
            .place
            .lacks_room(tail - self.head_told.load(OwnOrdering::Relaxed))
        {
            self.tell_sender(memory, head, tail, wake);
        }
        Ok(length)
    }

    fn look_at_tail(&self, memory: &[AtomicU64], head: u64) -> Result<u64, Violation> {
        // Acquire: the bytes in front of it are those that the peer put in.
        let tail = memory[self.place.sender + TAIL].load(Ordering::Acquire);
        let (claimed, capacity) = (tail.wrapping_sub(head), self.place.capacity());
        match claimed <= capacity {
            true => Ok(tail),
            false => Err(Violation::Sent { claimed, capacity }),
        }
    }

    /// Has the sender woken if it sleeps and there is room.
    ///
    /// A sender sleeps only if the ring lacks room by the head that it has seen. That is not before
    /// `head_told`, as it was certain then that every sender that sleeps later sees it. So as long as the
    /// ring would not lack room by `head_told` nobody sleeps, nothing is to be looked at, and the fence is
    /// needed once for each time that the ring was filled.
    #[cold]
    fn tell_sender(&self, memory: &[AtomicU64], head: u64, tail: u64, wake: impl Fn()) {
        // With the one in `Sender::park`.
        fence(Ordering::SeqCst);
        let sleeps = &memory[self.place.sender + SENDER_SLEEPS];
        if sleeps.load(Ordering::Relaxed) == 0 {
            self.head_told.store(head, OwnOrdering::Relaxed);
        } else if !self.place.lacks_room(tail - head) {
            self.head_told.store(head, OwnOrdering::Relaxed);
            wake_sleeper(sleeps, wake);
        }
    }

    /// Whether nothing is there. What cannot be is not nothing.
    pub(crate) fn is_empty(&self, memory: &[AtomicU64]) -> bool {
        let tail = memory[self.place.sender + TAIL].load(Ordering::Acquire);
        tail == self.head.load(OwnOrdering::Relaxed)
    }

    /// Says that the receiver sleeps until something comes. Says whether it may, as far as bytes go.
    pub(crate) fn park(&self, memory: &[AtomicU64]) -> bool {
        memory[self.place.receiver + RECEIVER_SLEEPS].store(1, Ordering::Relaxed);
        // With the one in `wake_receiver`: either this sees what is new, or the peer sees the sleeper.
        fence(Ordering::SeqCst);
        self.is_empty(memory)
    }

    /// Says that the receiver sleeps no more.
    pub(crate) fn unpark(&self, memory: &[AtomicU64]) {
        memory[self.place.receiver + RECEIVER_SLEEPS].store(0, Ordering::Relaxed);
    }
}

/// Where in a ring the byte of number `at` is: its word, and its place in that.
fn locate(ring: &[AtomicU64], at: u64) -> (usize, usize) {
    let at = at as usize & (ring.len() * WORD - 1);
    (at / WORD, at % WORD)
}

/// Writes `bytes` into a ring, the first as the one of number `at`. They fit.
#[inline]
fn put(ring: &[AtomicU64], at: u64, bytes: &[u8]) {
    let (mut word, skew) = locate(ring, at);
    let mut bytes = bytes;
    if skew != 0 {
        let (head, rest) = bytes.split_at(bytes.len().min(WORD - skew));
        merge(&ring[word], skew, head);
        word = (word + 1) & (ring.len() - 1);
        bytes = rest;
    }
    let (chunks, rest) = bytes.as_chunks::<WORD>();
    let (first, second) = chunks.split_at(chunks.len().min(ring.len() - word));
    put_words(&ring[word..], first);
    put_words(ring, second);
    if !rest.is_empty() {
        merge(&ring[(word + chunks.len()) & (ring.len() - 1)], 0, rest);
    }
}

#[inline]
fn put_words(words: &[AtomicU64], bytes: &[[u8; WORD]]) {
    for (word, bytes) in words.iter().zip(bytes) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

/// Writes `bytes` into a word, from its byte `skew` on, and leaves the others what they are. They may
/// be on their way to the peer, who only reads; only this end writes into the ring.
fn merge(word: &AtomicU64, skew: usize, bytes: &[u8]) {
    let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
    whole[skew..skew + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
}

/// Reads out of a ring into `room`, which gets full, from the byte of number `at` on.
#[inline]
fn take(ring: &[AtomicU64], at: u64, room: &mut [u8]) {
    let (mut word, skew) = locate(ring, at);
    let mut room = room;
    if skew != 0 {
        let length = room.len().min(WORD - skew);
        let (head, rest) = room.split_at_mut(length);
        take_part(&ring[word], skew, head);
        word = (word + 1) & (ring.len() - 1);
        room = rest;
    }
    let (chunks, rest) = room.as_chunks_mut::<WORD>();
    let count = chunks.len();
    let (first, second) = chunks.split_at_mut(count.min(ring.len() - word));
    take_words(&ring[word..], first);
    take_words(ring, second);
    if !rest.is_empty() {
        take_part(&ring[(word + count) & (ring.len() - 1)], 0, rest);
    }
}

#[inline]
fn take_words(words: &[AtomicU64], room: &mut [[u8; WORD]]) {
    for (word, room) in words.iter().zip(room) {
        *room = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}

fn take_part(word: &AtomicU64, skew: usize, room: &mut [u8]) {
    let whole = word.load(Ordering::Relaxed).to_ne_bytes();
    room.copy_from_slice(&whole[skew..skew + room.len()]);
}
