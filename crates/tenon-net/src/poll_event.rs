//! What a poller is asked for, and what it tells.

/// The events that a socket is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Something to receive, or the end.
    Receive,
    /// The same, and room to send.
    ReceiveAndSend,
    /// Nothing. A thread that sleeps in `recv` sees everything by itself, and a socket that a poller knows costs each
    /// message half a microsecond more, at both ends, even if the poller waits for none of what happens.
    Nothing,
}

/// Events of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollEvent {
    /// The number under which it was registered.
    pub token: usize,
    /// Something can be received, perhaps the end.
    pub is_readable: bool,
    /// There is room to send.
    pub is_writable: bool,
    /// The peer sends nothing any more.
    pub is_read_closed: bool,
    /// The connection has ended in both directions, or failed.
    pub is_hung_up: bool,
}
