//! Frames as they are written, and what is believed of those that come.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddrV4};

use tenon_xdp::{
    EthernetEndpoint, FrameError, FrameHeaderTemplate, HEADERS, MacAddress, ReceivedDatagram,
    UdpChecksum, read,
};

const CLIENT: EthernetEndpoint = EthernetEndpoint {
    mac: MacAddress([0x02, 0, 0, 0, 0, 0x01]),
    at: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 5000),
};
const SERVER: EthernetEndpoint = EthernetEndpoint {
    mac: MacAddress([0x02, 0, 0, 0, 0, 0x02]),
    at: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 254), 4000),
};

fn frame(data: &[u8]) -> Vec<u8> {
    let mut room = vec![0xee; HEADERS + data.len() + 10];
    let length = FrameHeaderTemplate::new(CLIENT)
        .toward(SERVER)
        .write(data, &mut room);
    room.truncate(length.unwrap());
    room
}

#[test]
fn a_frame_is_these_bytes() {
    #[rustfmt::skip]
    let bytes = [
        // Ethernet: to, from, IPv4.
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
        // IP: 31 bytes, not to be cut, 64 hops, UDP. The checksums are another program's.
        0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0x4d, 0x9b,
        192, 0, 2, 1, 198, 51, 100, 254,
        // UDP: ports, 11 bytes, checksum.
        0x13, 0x88, 0x0f, 0xa0, 0, 11, 0x2b, 0x1a,
        b'a', b'b', b'c',
    ];
    assert_eq!(frame(b"abc"), bytes, "{:02x?}", frame(b"abc"));
}

#[test]
fn a_frame_of_any_length_is_read_as_it_was_written() {
    let data: Vec<u8> = (0..1472u32).map(|n| (n * 31) as u8).collect();
    for length in 0..data.len() {
        let mut frame = frame(&data[..length]);
        // Ethernet fills up what is short.
        frame.resize(frame.len().max(60), 0xaa);
        let arrived = ReceivedDatagram {
            from: CLIENT,
            data: &data[..length],
        };
        assert_eq!(read(&frame, SERVER, UdpChecksum::Required), Ok(arrived));
    }
}

#[test]
fn a_prototype_goes_from_peer_to_peer() {
    // What was said of one peer leaves no trace.
    let mut here_and_there = FrameHeaderTemplate::new(CLIENT);
    let peers = [
        SERVER,
        CLIENT,
        EthernetEndpoint {
            mac: MacAddress([0xfe; 6]),
            at: SocketAddrV4::new(Ipv4Addr::BROADCAST, 0xffff),
        },
    ];
    for to in peers.into_iter().chain(peers) {
        here_and_there = here_and_there.toward(to);
        let (mut one, mut other) = ([0; 100], [0; 100]);
        here_and_there.write(b"some data", &mut one);
        FrameHeaderTemplate::new(CLIENT)
            .toward(to)
            .write(b"some data", &mut other);
        assert_eq!(
            read(&one, to, UdpChecksum::Required).map(|arrived| arrived.data),
            Ok(&b"some data"[..])
        );
        assert_eq!(one, other);
    }
}

#[test]
fn a_checksum_that_comes_to_nothing_is_all_ones() {
    // Two bytes of data make the sum what they like.
    let zero = (0..=u16::MAX)
        .map(|word| frame(&word.to_be_bytes()))
        .find(|frame| frame[40..42] == [0xff, 0xff]);
    let zero = zero.expect("one word complements the sum");
    assert!(read(&zero, SERVER, UdpChecksum::Required).is_ok());
    assert!((0..=u16::MAX).all(|word| frame(&word.to_be_bytes())[40..42] != [0, 0]));
}

#[test]
fn what_has_no_room_is_not_written() {
    let prototype = FrameHeaderTemplate::new(CLIENT).toward(SERVER);
    assert_eq!(prototype.write(b"abc", &mut [0; HEADERS + 2]), None);
    assert_eq!(prototype.write(b"", &mut [0; HEADERS - 1]), None);
    assert_eq!(prototype.write(&[0; 65_536], &mut vec![0; 70_000]), None);
}

/// A frame after a change, its checksum of IP made right again.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = frame(b"some data");
    change(&mut frame);
    if frame.len() >= 34 {
        frame[24..26].fill(0);
        let words = frame[14..34].chunks(2);
        let total: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        let folded = (total & 0xffff) + (total >> 16);
        let checksum = !(folded as u16);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

#[test]
fn what_is_not_sound_is_not_believed() {
    let (short, not_ours, not_plain) =
        (FrameError::Short, FrameError::NotOurs, FrameError::NotPlain);
    for (what, frame, flaw) in [
        ("nothing", vec![], short),
        ("half the headers", changed(|f| f.truncate(41)), short),
        ("an end that is missing", changed(|f| f.truncate(50)), short),
        ("another card", changed(|f| f[5] = 3), not_ours),
        ("everybody", changed(|f| f[0..6].fill(0xff)), not_ours),
        ("IPv6", changed(|f| f[12] = 0x86), not_ours),
        ("TCP", changed(|f| f[23] = 6), not_ours),
        ("another host", changed(|f| f[33] = 1), not_ours),
        ("another port", changed(|f| f[37] = 1), not_ours),
        ("options", changed(|f| f[14] = 0x46), not_plain),
        ("a shorter header", changed(|f| f[14] = 0x44), not_plain),
        ("version 6", changed(|f| f[14] = 0x65), not_plain),
        ("more fragments", changed(|f| f[20] = 0x20), not_plain),
        ("a later fragment", changed(|f| f[21] = 1), not_plain),
        (
            "less than the headers",
            changed(|f| f[17] = 27),
            FrameError::Lengths,
        ),
        (
            "UDP longer than IP",
            changed(|f| f[39] = 18),
            FrameError::Lengths,
        ),
        (
            "UDP of 7 bytes",
            changed(|f| f[39] = 7),
            FrameError::Lengths,
        ),
        (
            "UDP of 64 KiB",
            changed(|f| f[38] = 0xff),
            FrameError::Lengths,
        ),
        (
            "IP of 64 KiB",
            changed(|f| {
                f[16] = 0xff;
                f[39] = 17;
            }),
            short,
        ),
        (
            "a wrong sum of IP",
            {
                let mut f = changed(|_| {});
                f[24] ^= 1;
                f
            },
            FrameError::Checksum,
        ),
        (
            "a wrong sum of UDP",
            changed(|f| f[41] ^= 1),
            FrameError::Checksum,
        ),
        ("other data", changed(|f| f[45] ^= 1), FrameError::Checksum),
        (
            "data that changed places",
            changed(|f| f.swap(43, 44)),
            FrameError::Checksum,
        ),
    ] {
        for checksum in [UdpChecksum::Optional, UdpChecksum::Required] {
            assert_eq!(read(&frame, SERVER, checksum), Err(flaw), "{what}");
        }
    }
}

/// A frame whose sum of UDP is missing, so that only what is looked at counts.
fn from(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(|frame| {
        frame[40..42].fill(0);
        change(frame);
    })
}

#[test]
fn nobody_sends_from_such_an_address() {
    for (what, frame) in [
        ("no port", from(|f| f[34..36].fill(0))),
        ("no host", from(|f| f[26..30].fill(0))),
        ("loopback", from(|f| f[26] = 127)),
        ("a group", from(|f| f[26] = 224)),
        ("everybody", from(|f| f[26..30].fill(255))),
        ("a group of cards", from(|f| f[6] |= 1)),
    ] {
        assert_eq!(
            read(&frame, SERVER, UdpChecksum::Optional),
            Err(FrameError::Sender),
            "{what}"
        );
    }
}

#[test]
fn a_sum_may_be_missing_but_not_left_to_hardware() {
    let missing = from(|_| {});
    assert!(read(&missing, SERVER, UdpChecksum::Optional).is_ok());
    let refused = read(&missing, SERVER, UdpChecksum::Required);
    assert_eq!(refused, Err(FrameError::NoChecksum));
    // The sum of addresses, protocol and length, not complemented.
    let left = changed(|frame| {
        let words = frame[26..34]
            .chunks(2)
            .map(|word| u16::from_be_bytes([word[0], word[1]]));
        let total: u32 = words.map(u32::from).sum::<u32>() + 17 + 17;
        let folded = (total & 0xffff) + (total >> 16);
        frame[40..42].copy_from_slice(&(folded as u16).to_be_bytes());
    });
    assert_eq!(
        read(&left, SERVER, UdpChecksum::Optional),
        Err(FrameError::Checksum)
    );
}

#[test]
fn no_damage_makes_a_reader_fall_over() {
    let sound = frame(&[0x5a; 100]);
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    for _ in 0..200_000 {
        let mut frame = sound.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() % frame.len();
            frame[at] = next() as u8;
        }
        frame.truncate(next() % (frame.len() + 1));
        if let Ok(arrived) = read(&frame, SERVER, UdpChecksum::Optional) {
            assert!(HEADERS + arrived.data.len() <= frame.len());
        }
    }
}
