//! The lean protocol: calls between two ends that are both Tenon, over a stream of bytes. It is
//! specified to the byte in `docs/lean-protocol.md`; the bodies of its messages are specified in
//! `docs/lean.md`.
//!
//! Each end begins with a [preamble](Preamble). Then come messages, each a [header](Header) of 16
//! bytes and what belongs to it. A client binds the version of a program to a small number
//! before it calls it for the first time, and waits for nothing: preamble, binding and first call travel together.

mod close;
mod exception;
mod extension;
mod fault;
mod header;
mod interface;
mod kind;
mod message;
mod metadata;
mod order;
mod packet_times;
mod preamble;
mod refusal;
mod reply;
mod stamps;
mod streams;
mod terms;
mod text;
mod versions;

pub use close::{Close, CloseReason};
pub use exception::{Exception, Status};
pub use extension::{Extension, Extensions};
pub use fault::{Fault, Violation};
pub use header::{CallStreams, CommonHeader, Flags, HEADER, Header, PIECE, SYNC};
pub(crate) use interface::{BindAnswer, BindRequest, UnboundReason, put_bound};
pub use interface::{BindRefusal, Difference, Interface, Part};
pub use kind::Kind;
pub use message::{Extras, Message, MessageDraft, Parts};
pub(crate) use message::{plain, put_message};
pub use metadata::{Metadata, MetadataError, MetadataIter, MetadataView};
pub use order::ByteOrder;
pub(crate) use order::{ALIGNMENT, padding_of};
pub use packet_times::{PacketTimes, SentReply};
pub(crate) use preamble::check_magic;
pub use preamble::{Features, PREAMBLE, Preamble, RefusalReason, Refused};
pub(crate) use refusal::{CallRefusal, refusal};
pub use reply::{Caller, ReplyDraft};
pub use stamps::{Stamps, stamp_sent};
pub use streams::{CONNECTION_WINDOW, ITEM_MAX, ITEM_PART, ItemDraft, STREAM_WINDOW, split_item};
pub(crate) use streams::{Credit, check_item, cut_item};
pub use terms::{CALLS_MIN, MAGIC, MESSAGE_MIN, VERSION};
pub use versions::Versions;
