//! What the kernel knows of interfaces, routes and neighbours, asked for over netlink (RFC 3549).

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};

use crate::headers::MacAddress;

/// Bytes of the header of a message.
const HEADER: usize = 16;

/// Room for an answer: the kernel's largest piece of a list.
const ROOM: usize = 32 * 1024;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const GET_NEIGHBOUR: u16 = 30;

const IS_REQUEST: u16 = 0x1;
const WANTS_ALL: u16 = 0x300;

const IPV4: u8 = 2;
const ETHERNET: u16 = 1;

/// States of a neighbour with a usable address on the Ethernet: reachable, stale, delay, probe, permanent.
const USABLE: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;

/// An Ethernet that this host is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EthernetLink {
    pub(crate) name: String,
    pub(crate) mac: MacAddress,
    /// Bytes of the largest packet of IP.
    pub(crate) mtu: u32,
    /// It has no card behind it, but another interface of this host or the like.
    pub(crate) is_virtual: bool,
}

/// The way to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteEntry {
    pub(crate) interface: u32,
    /// Destination of frames: the peer itself, or a router.
    pub(crate) next: Ipv4Addr,
}

/// A socket that asks the kernel, of the network that its thread was in when it was made.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
}

impl NetlinkSocket {
    pub(crate) fn open() -> io::Result<Self> {
        let family = AddressFamily::NETLINK;
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self {
            socket,
            sequence: 0,
            room: vec![0; ROOM],
        })
    }

    /// Returns the Ethernet behind an interface.
    ///
    /// # Errors
    /// `InvalidInput` if it is none.
    pub(crate) fn link(&mut self, interface: u32) -> io::Result<EthernetLink> {
        let mut body = [0; 16];
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        self.find(GET_LINK, IS_REQUEST, &body, NEW_LINK, link)?
            .ok_or_else(|| {
                let message = format!("interface {interface} is no Ethernet");
                io::Error::new(io::ErrorKind::InvalidInput, message)
            })
    }

    /// Returns the interface that has an address.
    ///
    /// # Errors
    /// `AddrNotAvailable` if none has.
    pub(crate) fn interface_of(&mut self, address: Ipv4Addr) -> io::Result<u32> {
        let body = [IPV4, 0, 0, 0, 0, 0, 0, 0];
        let flags = IS_REQUEST | WANTS_ALL;
        let found = self.find(GET_ADDRESS, flags, &body, NEW_ADDRESS, |body| {
            interface_with(body, address)
        })?;
        found.ok_or_else(|| {
            let message = format!(
                "no interface has the address {address}; xdp:// takes the address of one interface"
            );
            io::Error::new(io::ErrorKind::AddrNotAvailable, message)
        })
    }

    /// Returns the way to a peer.
    ///
    /// # Errors
    /// `NetworkUnreachable` if there is none.
    pub(crate) fn route(&mut self, to: Ipv4Addr) -> io::Result<RouteEntry> {
        let mut body = vec![IPV4, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        put_attribute(&mut body, 1, &to.octets());
        let found = self.find(GET_ROUTE, IS_REQUEST, &body, NEW_ROUTE, |body| {
            route(body, to)
        })?;
        found.ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    /// Returns the address on the Ethernet of a neighbour, if the kernel has found it out.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn neighbour(
        &mut self,
        interface: u32,
        at: Ipv4Addr,
    ) -> io::Result<Option<MacAddress>> {
        let mut body = vec![IPV4, 0, 0, 0];
        body.extend(interface.to_ne_bytes());
        body.extend([0; 4]);
        put_attribute(&mut body, 1, &at.octets());
        match self.find(GET_NEIGHBOUR, IS_REQUEST, &body, NEW_NEIGHBOUR, neighbour) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found,
        }
    }

    /// Asks, and takes the first message of a kind that `read` finds what it looks for in.
    fn find<T>(
        &mut self,
        question: u16,
        flags: u16,
        body: &[u8],
        kind: u16,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request(question, flags, self.sequence, body);
        let kernel = netlink::SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &message, SendFlags::empty(), &kernel)?;
        let mut found = None;
        loop {
            let room = self.room.as_mut_slice();
            let (_, length) = recv(&self.socket, room, RecvFlags::empty())?;
            let room = &self.room[..length.min(self.room.len())];
            for message in NetlinkMessages(room) {
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    DONE => return Ok(found),
                    ERROR => return refused(message.body).map(|()| found),
                    other if other == kind && found.is_none() => found = read(message.body),
                    _ => {}
                }
                if flags & WANTS_ALL == 0 {
                    return Ok(found);
                }
            }
        }
    }
}

fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// Appends an attribute of 4 bytes.
fn put_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8; 4]) {
    body.extend(8u16.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn refused(body: &[u8]) -> io::Result<()> {
    match take_i32(body, 0) {
        None | Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
    }
}

struct NetlinkMessage<'m> {
    kind: u16,
    sequence: u32,
    body: &'m [u8],
}

/// The messages of a datagram. What does not fit together ends them.
struct NetlinkMessages<'m>(&'m [u8]);

impl<'m> Iterator for NetlinkMessages<'m> {
    type Item = NetlinkMessage<'m>;

    fn next(&mut self) -> Option<NetlinkMessage<'m>> {
        let length = take_u32(self.0, 0)? as usize;
        let message = NetlinkMessage {
            kind: take_u16(self.0, 4)?,
            sequence: take_u32(self.0, 8)?,
            body: self.0.get(HEADER..length)?,
        };
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some(message)
    }
}

/// The attributes behind the fixed part of a body: kind and value.
struct NetlinkAttributes<'m>(&'m [u8]);

impl<'m> NetlinkAttributes<'m> {
    fn behind(body: &'m [u8], fixed: usize) -> Self {
        Self(body.get(fixed..).unwrap_or_default())
    }

    fn get(mut self, kind: u16) -> Option<&'m [u8]> {
        self.find(|(is, _)| *is == kind).map(|(_, value)| value)
    }
}

impl<'m> Iterator for NetlinkAttributes<'m> {
    type Item = (u16, &'m [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(take_u16(self.0, 0)?);
        let kind = take_u16(self.0, 2)? & 0x3fff;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn link(body: &[u8]) -> Option<EthernetLink> {
    if take_u16(body, 2)? != ETHERNET {
        return None;
    }
    let attributes = || NetlinkAttributes::behind(body, 16);
    let name = attributes().get(3)?;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    Some(EthernetLink {
        name: String::from_utf8_lossy(name).into_owned(),
        mac: MacAddress(attributes().get(1)?.try_into().ok()?),
        mtu: take_u32(attributes().get(4)?, 0)?,
        // What the kernel was told to make is of some kind; cards are found.
        is_virtual: attributes().get(18).is_some(),
    })
}

fn interface_with(body: &[u8], address: Ipv4Addr) -> Option<u32> {
    // The local address; where there is none beside it, an end of a line has the other one only.
    let local = NetlinkAttributes::behind(body, 8).get(2);
    let local = local.or_else(|| NetlinkAttributes::behind(body, 8).get(1))?;
    (local == address.octets())
        .then(|| take_u32(body, 4))
        .flatten()
}

fn route(body: &[u8], to: Ipv4Addr) -> Option<RouteEntry> {
    let interface = take_u32(NetlinkAttributes::behind(body, 12).get(4)?, 0)?;
    let gateway = NetlinkAttributes::behind(body, 12).get(5);
    let gateway = gateway.and_then(|octets| octets.try_into().ok().map(<[u8; 4]>::into));
    Some(RouteEntry {
        interface,
        next: gateway.unwrap_or(to),
    })
}

fn neighbour(body: &[u8]) -> Option<MacAddress> {
    if take_u16(body, 8)? & USABLE == 0 {
        return None;
    }
    let mac = NetlinkAttributes::behind(body, 12).get(2)?;
    mac.try_into().ok().map(MacAddress)
}

fn take_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

fn take_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn take_i32(bytes: &[u8], at: usize) -> Option<i32> {
    take_u32(bytes, at).map(u32::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn body(fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let attributes = attributes.iter();
        let attributes = attributes.flat_map(|(kind, value)| attribute(*kind, value));
        fixed.iter().copied().chain(attributes).collect()
    }

    #[test]
    fn messages_end_where_they_do_not_fit_together() {
        let mut bytes = request(7, 0, 1, b"abcde");
        bytes.resize(aligned(bytes.len()), 0);
        bytes.extend(request(8, 0, 2, b""));
        let kinds = |bytes: &[u8]| NetlinkMessages(bytes).map(|m| m.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&bytes), [7, 8]);
        assert_eq!(
            NetlinkMessages(&bytes).next().map(|m| m.body),
            Some(&b"abcde"[..])
        );
        assert_eq!(kinds(&bytes[..bytes.len() - 1]), [7]);
        assert_eq!(kinds(&[0; 64]), [0u16; 0]);
        bytes[0] = 15;
        assert_eq!(kinds(&bytes), [0u16; 0]);
        for length in 0..bytes.len() {
            let _ = kinds(&bytes[..length]);
        }
    }

    #[test]
    fn an_ethernet_has_a_name_an_address_and_a_largest_packet() {
        let ethernet = [0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let attributes: [(u16, &[u8]); 3] = [
            (3, b"eth0\0"),
            (4, &1500u32.to_ne_bytes()),
            (1, &[2, 0, 0, 0, 0, 1]),
        ];
        let found = link(&body(&ethernet, &attributes)).unwrap();
        assert_eq!(found.name, "eth0");
        assert_eq!(
            (found.mac, found.mtu),
            (MacAddress([2, 0, 0, 0, 0, 1]), 1500)
        );
        assert!(!found.is_virtual);
        let mut of_a_pair = body(&ethernet, &attributes);
        of_a_pair.extend(attribute(18, &attribute(1, b"veth\0")));
        assert!(link(&of_a_pair).is_some_and(|link| link.is_virtual));
        // Loopback has all of that, too.
        let loopback = [&[0, 0, 4, 3], &ethernet[4..]].concat();
        assert_eq!(link(&body(&loopback, &attributes)), None);
        assert_eq!(link(&body(&ethernet, &attributes[..2])), None);
        assert_eq!(link(&[]), None);
    }

    #[test]
    fn a_route_leads_to_the_peer_or_to_a_router() {
        let fixed = [2, 32, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let peer = Ipv4Addr::new(203, 0, 113, 9);
        let through = 7u32.to_ne_bytes();
        let straight = route(&body(&fixed, &[(4, &through)]), peer).unwrap();
        assert_eq!((straight.interface, straight.next), (7, peer));
        let attributes: [(u16, &[u8]); 2] = [(5, &[192, 0, 2, 254]), (4, &through)];
        let routed = route(&body(&fixed, &attributes), peer).unwrap();
        assert_eq!(routed.next, Ipv4Addr::new(192, 0, 2, 254));
        assert_eq!(route(&fixed, peer), None);
    }

    #[test]
    fn a_neighbour_is_known_when_it_has_answered() {
        let fixed = |state: u16| {
            let [low, high] = state.to_ne_bytes();
            [2, 0, 0, 0, 7, 0, 0, 0, low, high, 0, 1]
        };
        let mac: (u16, &[u8]) = (2, &[2, 0, 0, 0, 0, 1]);
        for (state, is_usable) in [
            (0x02, true),
            (0x04, true),
            (0x80, true),
            (0x01, false),
            (0x20, false),
        ] {
            let found = neighbour(&body(&fixed(state), &[mac]));
            assert_eq!(found.is_some(), is_usable, "{state:#x}");
        }
        assert_eq!(neighbour(&body(&fixed(0x02), &[])), None);
        assert_eq!(neighbour(&body(&fixed(0x02), &[(2, &[1, 2])])), None);
    }

    #[test]
    fn an_address_is_that_of_this_end() {
        let fixed = [2, 24, 0, 0, 7, 0, 0, 0];
        let (this, other): ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let of_a_line = body(&fixed, &[(1, &other), (2, &this)]);
        assert_eq!(interface_with(&of_a_line, this.into()), Some(7));
        assert_eq!(interface_with(&of_a_line, other.into()), None);
        let plain = body(&fixed, &[(1, &this)]);
        assert_eq!(interface_with(&plain, this.into()), Some(7));
    }
}
