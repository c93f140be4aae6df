//! The parts of the way of a call.

use super::packets::{Leg, PacketStep};

/// Extent of what is known of the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All of it: both ends read the same clock.
    Whole,
    /// The times at each end, but not how the time between them was divided: they read different
    /// clocks.
    TwoClocks,
    /// The times at the client alone: the server has said nothing, or another caller has received the
    /// reply.
    Client,
}

/// A part of the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header and the arguments are written.
    Encode,
    /// The channel gives the call its turn and its number.
    Turn,
    /// The call is sent, carried and received: from before the client's system call until the server
    /// has found the call.
    CallAway,
    /// The server finds out what is called, and a worker for it if the service has workers.
    Dispatch,
    /// The service decodes the arguments, does its work, and encodes the result.
    Serve,
    /// The reply is made ready, and waits for those that are sent with it.
    Finish,
    /// The reply is sent, carried and received: from before the server's system call until the
    /// client's has returned.
    ReplyAway,
    /// Both messages are sent, carried and received.
    BothAway,
    /// A step of a packet.
    Packet(Leg, PacketStep),
    /// Both packets are on the wire.
    BothWires,
    /// Both packets are on the wire and in the kernel of the server.
    BothBeyond,
    /// The call is on the wire and at the server, and the reply on the wire.
    Beyond,
    /// The system call that sends the call.
    Send,
    /// All from when the call is sent until the reply is received.
    Wait,
    /// The reply is found among what was received.
    Find,
    /// The reply that another caller has received waits for its own caller, which is woken, or has not asked for
    /// it yet.
    HandOver,
    /// The result is decoded.
    Decode,
    /// The caller leaves the channel to others.
    Leave,
}

/// Side to which the time of a part belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Code of the client.
    Client,
    /// The kernels of both ends, and what is between them.
    Kernel,
    /// Code of the server.
    Server,
    /// Kernels, wire and server, which cannot be told apart.
    Unknown,
}

impl Part {
    /// Returns the side to which its time belongs.
    pub fn owner(self) -> Owner {
        match self {
            Self::Encode
            | Self::Turn
            | Self::Find
            | Self::HandOver
            | Self::Decode
            | Self::Leave => Owner::Client,
            Self::CallAway
            | Self::ReplyAway
            | Self::BothAway
            | Self::Send
            | Self::Packet(..)
            | Self::BothWires
            | Self::BothBeyond => Owner::Kernel,
            Self::Dispatch | Self::Serve | Self::Finish => Owner::Server,
            Self::Wait | Self::Beyond => Owner::Unknown,
        }
    }
}
