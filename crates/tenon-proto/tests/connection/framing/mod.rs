//! The receiving half of a connection: every way in which a stream may deliver what is in it.

mod memory;
pub mod messages;
mod pieces;
mod records;
mod sniffing;

use tenon_proto::connection::framing::{Frame, FramingError, Receiver};

/// Receives a stream in steps of at most `step` bytes, each as one `read` would, and has `each` look at every frame.
pub fn receive(
    receiver: &mut Receiver,
    mut stream: &[u8],
    step: usize,
    mut each: impl FnMut(Frame<'_>),
) -> Result<(), FramingError> {
    while !stream.is_empty() {
        let taken = fill(receiver, &stream[..step.min(stream.len())])?;
        stream = &stream[taken..];
        while let Some(frame) = receiver.next_frame()? {
            each(frame);
        }
    }
    Ok(())
}

/// Puts bytes into the room that there is; returns how many.
pub fn fill(receiver: &mut Receiver, bytes: &[u8]) -> Result<usize, FramingError> {
    let mut wanted = 0;
    let room = receiver.room_within(|bytes| {
        wanted = bytes;
        true
    });
    let room = room.expect("it may");
    assert!(!room.is_empty(), "there is always room for what is missing");
    let taken = room.len().min(bytes.len());
    room[..taken].copy_from_slice(&bytes[..taken]);
    receiver.handle_received(taken)?;
    assert_eq!(receiver.capacity(), wanted, "it takes what it said");
    Ok(taken)
}
