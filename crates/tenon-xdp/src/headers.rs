//! The headers of a datagram on Ethernet: written from a prototype, and read from a frame that anybody may
//! have sent.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::checksum::{add, sum, update};

/// Bytes in front of the data of a datagram: Ethernet 14, IPv4 20, UDP 8.
pub const HEADERS: usize = 42;

/// Bytes of them that count towards the largest that an interface takes.
pub(crate) const HEADERS_OF_IP: usize = HEADERS - ETHERNET;

const ETHERNET: usize = 14;
const UDP: usize = 34;

const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// Version 4, and a header of five words, so without options.
const VERSION_AND_LENGTH: u8 = 0x45;
const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0x00];
/// Of the word with the fragment's place all but *do not fragment* and the reserved bit.
const FRAGMENT_BITS: u16 = 0x3fff;
const HOPS: u8 = 64;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// The address of an interface on its Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// One end as its frames name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetEndpoint {
    /// Its address on the Ethernet.
    pub mac: MacAddress,
    /// Its address and its port.
    pub at: SocketAddrV4,
}

/// The headers of all frames from one end to another; only what depends on the data is missing.
#[derive(Debug, Clone, Copy)]
pub struct FrameHeaderTemplate {
    headers: [u8; HEADERS],
    /// The sum of what UDP's checksum covers and all datagrams have in common.
    pseudo: u16,
}

impl FrameHeaderTemplate {
    /// Creates the headers of an end that has no peer yet.
    pub fn new(from: EthernetEndpoint) -> Self {
        let mut headers = [0; HEADERS];
        headers[6..12].copy_from_slice(&from.mac.0);
        headers[12..14].copy_from_slice(&TYPE_IPV4);
        headers[14] = VERSION_AND_LENGTH;
        headers[16..18].copy_from_slice(&(HEADERS_OF_IP as u16).to_be_bytes());
        // A datagram that is never cut needs no identification (RFC 6864).
        headers[20..22].copy_from_slice(&DO_NOT_FRAGMENT);
        headers[22] = HOPS;
        headers[23] = PROTOCOL_UDP;
        headers[26..30].copy_from_slice(&from.at.ip().octets());
        headers[34..36].copy_from_slice(&from.at.port().to_be_bytes());
        let checksum = !sum(&headers[ETHERNET..UDP]);
        headers[24..26].copy_from_slice(&checksum.to_be_bytes());
        let pseudo = add(sum(&headers[26..30]), u16::from(PROTOCOL_UDP));
        Self {
            headers,
            pseudo: add(pseudo, from.at.port()),
        }
    }

    /// Returns the same towards a peer. Of the checksum only what the peer changes is computed.
    #[must_use]
    pub fn toward(mut self, to: EthernetEndpoint) -> Self {
        self.headers[0..6].copy_from_slice(&to.mac.0);
        let [a, b, c, d] = to.at.ip().octets();
        self.change(30, u16::from_be_bytes([a, b]));
        self.change(32, u16::from_be_bytes([c, d]));
        let port = read_u16(&self.headers, 36);
        self.pseudo = replace(self.pseudo, port, to.at.port());
        self.headers[36..38].copy_from_slice(&to.at.port().to_be_bytes());
        self
    }

    /// Replaces a word of the address of the peer.
    fn change(&mut self, at: usize, is: u16) {
        let was = read_u16(&self.headers, at);
        let checksum = update(read_u16(&self.headers, 24), was, is);
        self.headers[24..26].copy_from_slice(&checksum.to_be_bytes());
        self.headers[at..at + 2].copy_from_slice(&is.to_be_bytes());
        self.pseudo = replace(self.pseudo, was, is);
    }

    /// Writes the frame with `data`, and says how long it is; none if there is not that much room.
    #[inline]
    pub fn write(&self, data: &[u8], room: &mut [u8]) -> Option<usize> {
        let ip_length = u16::try_from(HEADERS_OF_IP + data.len()).ok()?;
        let (headers, rest) = room.split_first_chunk_mut::<HEADERS>()?;
        rest.get_mut(..data.len())?.copy_from_slice(data);
        *headers = self.headers;
        let udp_length = ip_length - 20;
        let ip_checksum = read_u16(headers, 24);
        let ip_checksum = update(ip_checksum, HEADERS_OF_IP as u16, ip_length);
        // The length stands in the header and in front of it, in what is only summed.
        let udp_sum = add(add(self.pseudo, udp_length), add(udp_length, sum(data)));
        headers[16..18].copy_from_slice(&ip_length.to_be_bytes());
        headers[24..26].copy_from_slice(&ip_checksum.to_be_bytes());
        headers[38..40].copy_from_slice(&udp_length.to_be_bytes());
        headers[40..42].copy_from_slice(&udp_checksum(udp_sum).to_be_bytes());
        Some(HEADERS + data.len())
    }
}

/// Returns a sum in which one word is replaced by another.
fn replace(sum: u16, was: u16, is: u16) -> u16 {
    !update(!sum, was, is)
}

/// 0 says that there is none (RFC 768); the other zero of ones' complement stands for it.
fn udp_checksum(sum: u16) -> u16 {
    match !sum {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// A datagram in a frame that was found to be sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram<'f> {
    /// The sender of the datagram, with the Ethernet address of the sender of the frame: the peer itself or the last
    /// router.
    pub from: EthernetEndpoint,
    /// The payload.
    pub data: &'f [u8],
}

/// Why a frame is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameError {
    /// It ends within its headers, or says that it is longer than it is.
    Short,
    /// It is for another host, or carries something else.
    NotOurs,
    /// It is a part of a datagram, or its header of IP has options: the kernel sees to those.
    NotPlain,
    /// The lengths that IP and UDP say do not fit together.
    Lengths,
    /// A checksum is wrong.
    Checksum,
    /// It has no checksum of UDP, and has to have one.
    NoChecksum,
    /// No host has such an address.
    Sender,
}

/// Whether datagrams have to have a checksum of UDP. One that is there has to be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UdpChecksum {
    /// They may lack it, which a checksum of 0 says (RFC 768): what they carry has a check of its own.
    Optional,
    /// Those without are dropped: nothing else says that what they carry is what was sent.
    Required,
}

/// Reads a frame that came for `to`. Nothing that it says is taken for granted.
///
/// # Errors
/// The reason why it is not believed.
#[inline]
pub fn read(
    frame: &[u8],
    to: EthernetEndpoint,
    checksum: UdpChecksum,
) -> Result<ReceivedDatagram<'_>, FrameError> {
    let (headers, rest) = frame
        .split_first_chunk::<HEADERS>()
        .ok_or(FrameError::Short)?;
    if headers[0..6] != to.mac.0 || headers[12..14] != TYPE_IPV4 {
        return Err(FrameError::NotOurs);
    }
    if headers[14] != VERSION_AND_LENGTH || read_u16(headers, 20) & FRAGMENT_BITS != 0 {
        return Err(FrameError::NotPlain);
    }
    let is_for_us = headers[30..34] == to.at.ip().octets()
        && read_u16(headers, 36) == to.at.port()
        && headers[23] == PROTOCOL_UDP;
    if !is_for_us {
        return Err(FrameError::NotOurs);
    }
    if sum(&headers[ETHERNET..UDP]) != 0xffff {
        return Err(FrameError::Checksum);
    }
    let data = data(headers, rest)?;
    match read_u16(headers, 40) {
        0 if checksum == UdpChecksum::Required => return Err(FrameError::NoChecksum),
        0 => {}
        _ if is_sum_of_udp_right(headers, data) => {}
        _ => return Err(FrameError::Checksum),
    }
    let from = sender(headers).ok_or(FrameError::Sender)?;
    Ok(ReceivedDatagram { from, data })
}

/// Returns what the lengths leave of a frame, which Ethernet fills up to 60 bytes.
fn data<'f>(headers: &[u8; HEADERS], rest: &'f [u8]) -> Result<&'f [u8], FrameError> {
    let ip_length = usize::from(read_u16(headers, 16));
    let udp_length = usize::from(read_u16(headers, 38));
    let of_ip = ip_length
        .checked_sub(HEADERS_OF_IP)
        .ok_or(FrameError::Lengths)?;
    let of_udp = udp_length.checked_sub(8).ok_or(FrameError::Lengths)?;
    if of_udp > of_ip {
        return Err(FrameError::Lengths);
    }
    if of_ip > rest.len() {
        return Err(FrameError::Short);
    }
    Ok(&rest[..of_udp])
}

fn is_sum_of_udp_right(headers: &[u8; HEADERS], data: &[u8]) -> bool {
    let pseudo = add(sum(&headers[26..34]), u16::from(PROTOCOL_UDP));
    let pseudo = add(pseudo, read_u16(headers, 38));
    add(pseudo, add(sum(&headers[UDP..]), sum(data))) == 0xffff
}

fn sender(headers: &[u8; HEADERS]) -> Option<EthernetEndpoint> {
    let [.., a, b, c, d] = *headers.first_chunk::<30>()?;
    let ip = Ipv4Addr::new(a, b, c, d);
    let port = read_u16(headers, 34);
    let mac = MacAddress(*headers[6..12].first_chunk()?);
    let is_nobody =
        ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast();
    if is_nobody || port == 0 || mac.is_group() {
        return None;
    }
    let at = SocketAddrV4::new(ip, port);
    Some(EthernetEndpoint { mac, at })
}

fn read_u16(bytes: &[u8; HEADERS], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
