//! The kinds of message.

use std::fmt;

/// The kinds of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A client calls a procedure.
    Call = 1,
    /// The result of a call.
    Reply = 2,
    /// A call has no result, and why.
    Exception = 3,
    /// A client no longer waits for a call.
    Cancel = 4,
    /// A client gives a number to a version of a program.
    Bind = 5,
    /// The server has it.
    Bound = 6,
    /// The server does not have it, and why.
    Unbound = 7,
    /// Is the other end there?
    Ping = 8,
    /// It is.
    Pong = 9,
    /// The sender begins nothing any more.
    Close = 10,
    /// Continues a message that is sent in pieces.
    Piece = 11,
    /// The receiver is asked to begin nothing any more.
    GoAway = 12,
    /// An item of a stream, or a part of one.
    Items = 13,
    /// The caller has no further items for the stream of a call's arguments.
    End = 14,
    /// The receiver of streams takes further bytes of items.
    Credit = 15,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Call,
        Self::Reply,
        Self::Exception,
        Self::Cancel,
        Self::Bind,
        Self::Bound,
        Self::Unbound,
        Self::Ping,
        Self::Pong,
        Self::Close,
        Self::Piece,
        Self::GoAway,
        Self::Items,
        Self::End,
        Self::Credit,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "call",
            Self::Reply => "reply",
            Self::Exception => "exception",
            Self::Cancel => "cancel",
            Self::Bind => "bind",
            Self::Bound => "bound",
            Self::Unbound => "unbound",
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Close => "close",
            Self::Piece => "piece",
            Self::GoAway => "go away",
            Self::Items => "items",
            Self::End => "end",
            Self::Credit => "credit",
        })
    }
}
