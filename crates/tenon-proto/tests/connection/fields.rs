//! Messages of the lean protocol written field by field, as the specification has them.

use tenon_proto::lean::ByteOrder;

pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub enum Field {
    /// 2 bytes.
    Half(u16),
    /// 4 bytes.
    Word(u32),
    /// 8 bytes.
    Double(u64),
    /// As they are.
    Bytes(&'static [u8]),
}

use Field::{Bytes, Double, Half, Word};

/// The bytes of fields in this order.
pub fn bytes(order: ByteOrder, fields: &[Field]) -> Vec<u8> {
    fn put<const N: usize>(order: ByteOrder, little: [u8; N]) -> Vec<u8> {
        let mut bytes = little.to_vec();
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }
    let fields = fields.iter().map(|field| match *field {
        Half(number) => put(order, number.to_le_bytes()),
        Word(number) => put(order, number.to_le_bytes()),
        Double(number) => put(order, number.to_le_bytes()),
        Bytes(bytes) => bytes.to_vec(),
    });
    fields.flatten().collect()
}

/// The first word of a header.
pub fn first_word(kind: u32, flags: u32) -> Field {
    Word(0xd07e_0000 | kind << 8 | flags)
}

/// A header without flags.
pub fn head(kind: u32, id: u32, service: u16, procedure: u16, length: u32) -> [Field; 5] {
    head_with(kind, 0, id, (service, procedure), length)
}

/// A header.
pub fn head_with(
    kind: u32,
    flags: u32,
    id: u32,
    (service, procedure): (u16, u16),
    length: u32,
) -> [Field; 5] {
    [
        first_word(kind, flags),
        Word(id),
        Half(service),
        Half(procedure),
        Word(length),
    ]
}

/// The numbers of the kinds of message.
pub mod kinds {
    pub const CALL: u32 = 1;
    pub const REPLY: u32 = 2;
    pub const EXCEPTION: u32 = 3;
    pub const CANCEL: u32 = 4;
    pub const BIND: u32 = 5;
    pub const BOUND: u32 = 6;
    pub const UNBOUND: u32 = 7;
    pub const PING: u32 = 8;
    pub const PONG: u32 = 9;
    pub const CLOSE: u32 = 10;
    pub const PIECE: u32 = 11;
    pub const GO_AWAY: u32 = 12;
    pub const ITEMS: u32 = 13;
    pub const END: u32 = 14;
    pub const CREDIT: u32 = 15;
}

/// The flags of a message.
pub mod flags {
    pub const TIME: u32 = 1;
    pub const EXTENSIONS: u32 = 2;
    pub const MORE: u32 = 4;
    pub const REVERSE: u32 = 8;
}
