//! Packets of the packet exchange that are sound, whatever they say.

use tenon_proto::lean::Preamble;

/// Kind and flags, conversation, lane and detail, the three numbers, and what stands behind.
pub fn packet(
    [kind, flags]: [u8; 2],
    conversation: u64,
    small: [u16; 2],
    numbers: [u32; 3],
    body: &[&[u8]],
) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0x7f, 0x78, kind, flags];
    bytes.extend(conversation.to_be_bytes());
    small.iter().for_each(|n| bytes.extend(n.to_be_bytes()));
    numbers.iter().for_each(|n| bytes.extend(n.to_be_bytes()));
    body.iter().for_each(|part| bytes.extend(*part));
    let check = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&check.to_be_bytes());
    bytes
}

/// What a client says of itself.
pub fn facts() -> Vec<u8> {
    with_size(&Preamble::client(0))
}

/// What a server says of itself.
pub fn server_facts() -> Vec<u8> {
    with_size(&Preamble::server(0, 0))
}

fn with_size(preamble: &Preamble) -> Vec<u8> {
    [&preamble.encode()[..], &1448_u32.to_be_bytes()].concat()
}
