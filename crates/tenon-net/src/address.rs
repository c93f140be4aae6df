//! Addresses: one string chooses transport and protocol, nothing else in a program changes.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{Protocol, Transport};

/// The address of a peer and the protocol that is spoken with it, or the address at which a server listens.
///
/// ```
/// use tenon_net::{Address, Protocol, Transport};
///
/// let address: Address = "lean+tcp://[::1]:2049".parse()?;
/// assert_eq!(address.protocol(), Protocol::Lean);
/// assert_eq!(address.transport(), Transport::Tcp);
/// assert_eq!(address.host().map(|host| host.name.as_str()), Some("::1"));
/// # Ok::<(), tenon_net::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Address {
    protocol: Protocol,
    transport: Transport,
    endpoint: Endpoint,
}

/// The location of an address on its transport.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A host and a port: TCP, UDP, or UDP past the kernel's stack.
    Host(Host),
    /// The absolute path of a Unix socket, which hands shared memory over in the case of that. Empty of a socket without
    /// a name.
    Path(PathBuf),
}

/// A host, by name or number, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// A DNS name or an IP address; an IPv6 address stands here without its brackets.
    pub name: String,
    /// The port; a client without one asks the host's rpcbind (RFC 1833).
    pub port: Option<u16>,
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    text: String,
    problem: AddressErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressErrorKind {
    NoScheme,
    UnknownScheme,
    OncShm,
    NoPort,
    NoHost,
    BadHost,
    BareIpv6,
    OpenBracket,
    BadPort,
    RelativePath,
    NulInPath,
}

impl Address {
    /// Returns an address for ONC RPC over TCP: `tcp://host[:port]`, also written `onc+tcp://`.
    pub fn tcp(host: Host) -> Self {
        Self::of(Protocol::Onc, Transport::Tcp, Endpoint::Host(host))
    }

    /// Returns an address for ONC RPC over UDP: `udp://host[:port]`, also written `onc+udp://`.
    pub fn udp(host: Host) -> Self {
        Self::of(Protocol::Onc, Transport::Udp, Endpoint::Host(host))
    }

    /// Returns an address for ONC RPC over a Unix socket: `unix:///path`, also written `onc+unix://`.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        let endpoint = Endpoint::Path(path.into());
        Self::of(Protocol::Onc, Transport::Unix, endpoint)
    }

    /// Returns the address of a Unix socket without a path, at which nothing can be reached: of one end of a pair of
    /// sockets.
    pub fn unnamed() -> Self {
        Self::unix(PathBuf::new())
    }

    /// Returns an address in shared memory, which a Unix socket at the path hands over: `shm:///path`. Only the lean
    /// protocol goes over it.
    pub fn shm(path: impl Into<PathBuf>) -> Self {
        let endpoint = Endpoint::Path(path.into());
        Self::of(Protocol::Lean, Transport::Shm, endpoint)
    }

    /// Returns an address for lean messages in the packet exchange, straight on Ethernet: `xdp://host:port`, also
    /// written `lean+xdp://`. Of the same place [over ONC RPC](Self::over_onc) it is `onc+xdp://host:port`.
    pub fn xdp(host: Host) -> Self {
        Self::of(Protocol::Lean, Transport::Xdp, Endpoint::Host(host))
    }

    fn of(protocol: Protocol, transport: Transport, endpoint: Endpoint) -> Self {
        Self {
            protocol,
            transport,
            endpoint,
        }
    }

    /// Returns the transport that leads there.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the protocol that a client speaks there.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns its location on its transport.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the host; none for a path.
    pub fn host(&self) -> Option<&Host> {
        match &self.endpoint {
            Endpoint::Host(host) => Some(host),
            Endpoint::Path(_) => None,
        }
    }

    /// Returns the path; none for a host.
    pub fn path(&self) -> Option<&Path> {
        match &self.endpoint {
            Endpoint::Path(path) => Some(path),
            Endpoint::Host(_) => None,
        }
    }

    /// Returns the same place for a client that speaks ONC RPC; none in shared memory, where only the lean protocol goes.
    #[must_use]
    pub fn over_onc(self) -> Option<Self> {
        let protocol = Protocol::Onc;
        self.transport
            .carries_onc()
            .then_some(Self { protocol, ..self })
    }

    /// Returns the same place for a client that speaks the lean protocol.
    #[must_use]
    pub fn over_lean(self) -> Self {
        Self {
            protocol: Protocol::Lean,
            ..self
        }
    }

    /// Returns whether it says that the lean protocol is spoken where ONC RPC is the default. That is for clients: a
    /// server speaks what its clients do.
    pub fn chooses_lean(&self) -> bool {
        self.names_protocol() && self.protocol == Protocol::Lean
    }

    /// Returns whether its text names the protocol, which is not its transport's default.
    fn names_protocol(&self) -> bool {
        self.protocol != self.transport.default_protocol()
    }

    /// Returns whether single datagrams go to it, and no stream of bytes.
    pub fn is_datagram(&self) -> bool {
        self.transport.is_datagram()
    }

    /// Returns whether rpcbind still has to be asked for the port.
    pub fn needs_port(&self) -> bool {
        self.host().is_some_and(|host| host.port.is_none())
    }

    /// Returns whether the peer may be at another address later: the host has a name, or its port is asked for.
    pub fn may_move(&self) -> bool {
        self.host()
            .is_some_and(|host| host.port.is_none() || host.has_name())
    }

    /// Returns the same place at `port`; a path stays what it is.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        if let Endpoint::Host(host) = &mut self.endpoint {
            host.port = Some(port);
        }
        self
    }

    /// Returns the address of a socket that speaks `transport`: TCP, UDP, or UDP past the kernel.
    pub(crate) fn of_socket(transport: Transport, at: SocketAddr) -> Self {
        let name = match at {
            // The zone of a link-local address (RFC 4007 section 11), by number.
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            _ => at.ip().to_string(),
        };
        let host = Host {
            name,
            port: Some(at.port()),
        };
        match transport {
            Transport::Udp => Self::udp(host),
            Transport::Xdp => Self::xdp(host),
            Transport::Tcp | Transport::Unix | Transport::Shm => Self::tcp(host),
        }
    }
}

impl Host {
    /// Returns whether it is not a number, which may have a zone (RFC 4007 section 11).
    fn has_name(&self) -> bool {
        let number = self
            .name
            .split_once('%')
            .map_or(self.name.as_str(), |(number, _)| number);
        number.parse::<IpAddr>().is_err()
    }

    /// Returns the socket addresses of this host, in the order to be tried. Asks the system's resolver, which keeps to
    /// its own time limits.
    ///
    /// # Errors
    /// The name is unknown, the resolver failed, or the port is missing.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let Some(port) = self.port else {
            let message = "the address has no port: write host:port";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let found: Vec<_> = (self.name.as_str(), port).to_socket_addrs()?.collect();
        if found.is_empty() {
            let message = format!("the host name {:?} has no address", self.name);
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        Ok(found)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|problem| AddressError {
            text: text.to_owned(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<Address, AddressErrorKind> {
    let (scheme, rest) = text.split_once("://").ok_or(AddressErrorKind::NoScheme)?;
    let (protocol, transport) = match scheme.split_once('+') {
        Some(("onc", transport)) => (Some(Protocol::Onc), transport),
        Some(("lean", transport)) => (Some(Protocol::Lean), transport),
        Some(_) => return Err(AddressErrorKind::UnknownScheme),
        None => (None, scheme),
    };
    let transport = Transport::by_name(transport).ok_or(AddressErrorKind::UnknownScheme)?;
    if protocol == Some(Protocol::Onc) && !transport.carries_onc() {
        return Err(AddressErrorKind::OncShm);
    }
    let endpoint = match transport {
        Transport::Tcp | Transport::Udp => Endpoint::Host(parse_host(rest)?),
        Transport::Xdp => Endpoint::Host(parse_host_and_port(rest)?),
        Transport::Unix | Transport::Shm => Endpoint::Path(parse_path(rest)?),
    };
    let protocol = protocol.unwrap_or(transport.default_protocol());
    Ok(Address::of(protocol, transport, endpoint))
}

fn parse_path(path: &str) -> Result<PathBuf, AddressErrorKind> {
    if !path.starts_with('/') {
        return Err(AddressErrorKind::RelativePath);
    }
    if path.contains('\0') {
        return Err(AddressErrorKind::NulInPath);
    }
    Ok(PathBuf::from(path))
}

fn parse_host(text: &str) -> Result<Host, AddressErrorKind> {
    let (name, port) = split_host(text)?;
    if name.is_empty() {
        return Err(AddressErrorKind::NoHost);
    }
    if name.contains(|c: char| c.is_whitespace() || c.is_control() || "/?#@[]".contains(c)) {
        return Err(AddressErrorKind::BadHost);
    }
    Ok(Host {
        name: name.to_owned(),
        port: port.map(parse_port).transpose()?,
    })
}

/// Parses a host with its port, which no rpcbind could tell.
fn parse_host_and_port(text: &str) -> Result<Host, AddressErrorKind> {
    let host = parse_host(text)?;
    match host.port {
        Some(_) => Ok(host),
        None => Err(AddressErrorKind::NoPort),
    }
}

fn split_host(text: &str) -> Result<(&str, Option<&str>), AddressErrorKind> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return match text.split_once(':') {
            Some((_, port)) if port.contains(':') => Err(AddressErrorKind::BareIpv6),
            Some((name, port)) => Ok((name, Some(port))),
            None => Ok((text, None)),
        };
    };
    let (name, behind) = bracketed
        .split_once(']')
        .ok_or(AddressErrorKind::OpenBracket)?;
    match behind.strip_prefix(':') {
        Some(port) => Ok((name, Some(port))),
        None if behind.is_empty() => Ok((name, None)),
        None => Err(AddressErrorKind::BadPort),
    }
}

fn parse_port(text: &str) -> Result<u16, AddressErrorKind> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressErrorKind::BadPort);
    }
    text.parse().map_err(|_| AddressErrorKind::BadPort)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names_protocol() {
            f.write_str(match self.protocol {
                Protocol::Onc => "onc+",
                Protocol::Lean => "lean+",
            })?;
        }
        write!(f, "{}://{}", self.transport, self.endpoint)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Path(path) if path.as_os_str().is_empty() => f.write_str("(unnamed)"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]", self.name)?;
        } else {
            f.write_str(&self.name)?;
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an address: {}", self.text, self.problem)
    }
}

impl fmt::Display for AddressErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoScheme => {
                "write tcp://host:port, udp://host:port, unix:///path, shm:///path or xdp://host:port"
            }
            Self::UnknownScheme => {
                "the schemes are tcp, udp, unix and xdp, with onc+ or lean+ in front of them or \
                 without, and shm"
            }
            Self::OncShm => {
                "only the lean protocol goes over shared memory; write shm:///path, or \
                 unix:///path for ONC RPC"
            }
            Self::NoPort => "the port is missing, and past the kernel no rpcbind is asked for it; write it behind the host, as in :4711",
            Self::NoHost => "the host is missing; write tcp://host:port",
            Self::BadHost => "the host holds a character that no host name has",
            Self::BareIpv6 => "put the IPv6 address in brackets, as in tcp://[::1]:2049",
            Self::OpenBracket => "the bracket is not closed; write tcp://[::1]:2049",
            Self::BadPort => "the port is a number from 0 to 65535 behind a colon",
            Self::RelativePath => {
                "the path is absolute: three slashes, as in unix:///run/server.sock"
            }
            Self::NulInPath => "a path holds no zero byte",
        })
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;

    use super::*;

    #[track_caller]
    fn check(text: &str, printed: &str) {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), printed);
        assert_eq!(printed.parse::<Address>().unwrap(), address);
    }

    #[test]
    fn a_zone_is_part_of_the_address_of_a_socket() {
        let at = SocketAddrV6::new("fe80::1".parse().unwrap(), 2049, 0, 3).into();
        for (transport, text) in [
            (Transport::Tcp, "tcp://[fe80::1%3]:2049"),
            (Transport::Udp, "udp://[fe80::1%3]:2049"),
        ] {
            let address = Address::of_socket(transport, at);
            assert_eq!(address.to_string(), text);
            assert_eq!(text.parse(), Ok(address.clone()));
            assert_eq!(address.host().unwrap().resolve().unwrap(), [at]);
        }
    }

    #[test]
    fn addresses_print_as_they_are_written() {
        check("tcp://localhost:2049", "tcp://localhost:2049");
        check("onc+tcp://localhost:2049", "tcp://localhost:2049");
        check("onc+udp://10.0.0.1", "udp://10.0.0.1");
        check("udp://[::1]:111", "udp://[::1]:111");
        check("tcp://[fe80::1%eth0]", "tcp://[fe80::1%eth0]");
        check("unix:///run/a b.sock", "unix:///run/a b.sock");
        check("onc+unix:///run/a", "unix:///run/a");
        check("lean+tcp://[::1]:7", "lean+tcp://[::1]:7");
        check("lean+udp://h:7", "lean+udp://h:7");
        check("lean+unix:///run/a", "lean+unix:///run/a");
        check("shm:///run/a", "shm:///run/a");
        check("lean+shm:///run/a", "shm:///run/a");
        check("xdp://10.0.0.1:7", "xdp://10.0.0.1:7");
        check("lean+xdp://h:7", "xdp://h:7");
        check("onc+xdp://10.0.0.1:7", "onc+xdp://10.0.0.1:7");
    }

    #[test]
    fn what_is_no_address_says_what_to_write() {
        for (text, hint) in [
            ("localhost:2049", "write tcp://host:port"),
            ("http://a", "the schemes are"),
            ("lean+udp://:7", "host is missing"),
            ("lean+unix://a", "absolute"),
            ("shm://a", "absolute"),
            ("onc+shm:///a", "only the lean protocol"),
            ("xdp://h", "port is missing"),
            ("onc+xdp://h", "port is missing"),
            ("onc+xdp://:7", "host is missing"),
            ("onc+xdp:///run/a", "no host name"),
            ("tcp://", "host is missing"),
            ("tcp://:7", "host is missing"),
            ("tcp://a b", "no host name"),
            ("tcp://a/b", "no host name"),
            ("tcp://::1", "in brackets"),
            ("tcp://[::1", "not closed"),
            ("tcp://[::1]7", "port"),
            ("tcp://a:70000", "port"),
            ("tcp://a:+7", "port"),
            ("tcp://a:", "port"),
            ("unix://run/x", "absolute"),
            ("unix:///a\0b", "zero byte"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_has_a_name_or_no_port_may_move() {
        for (text, expected) in [
            ("tcp://127.0.0.1:7", false),
            ("udp://[fe80::1%eth0]:7", false),
            ("tcp://127.0.0.1", true),
            ("lean+udp://h:7", true),
            ("unix:///run/x", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.may_move(), expected, "{text}");
        }
    }

    #[test]
    fn only_a_host_can_lack_a_port() {
        let address: Address = "tcp://h".parse().unwrap();
        assert!(address.needs_port());
        assert_eq!(address.with_port(7).to_string(), "tcp://h:7");
        let path: Address = "unix:///p".parse().unwrap();
        assert!(!path.needs_port());
        assert_eq!(path.clone().with_port(7), path);
        let lean: Address = "lean+tcp://h".parse().unwrap();
        assert!(lean.needs_port());
        assert_eq!(lean.with_port(7).to_string(), "lean+tcp://h:7");
    }

    #[test]
    fn one_place_is_reached_by_either_protocol() {
        for place in ["tcp://h:7", "udp://h:7", "unix:///p"] {
            let onc: Address = place.parse().unwrap();
            let lean: Address = format!("lean+{place}").parse().unwrap();
            assert_eq!(onc.protocol(), Protocol::Onc);
            assert_eq!(lean.protocol(), Protocol::Lean);
            assert_eq!(onc.transport(), lean.transport());
            assert_eq!(lean.clone().over_onc(), Some(onc.clone()));
            assert_eq!(onc.over_lean(), lean);
        }
        let shm: Address = "shm:///p".parse().unwrap();
        assert_eq!(shm.protocol(), Protocol::Lean);
        assert_eq!(shm.clone().over_onc(), None);
        assert_eq!(shm.clone().over_lean(), shm);
        let xdp: Address = "xdp://h:7".parse().unwrap();
        assert_eq!(xdp.protocol(), Protocol::Lean);
        let onc: Address = "onc+xdp://h:7".parse().unwrap();
        assert_eq!(onc.protocol(), Protocol::Onc);
        assert_eq!(onc.transport(), Transport::Xdp);
        assert_eq!(xdp.clone().over_onc(), Some(onc.clone()));
        assert_eq!(onc.clone().over_lean(), xdp);
        assert!(!xdp.needs_port() && !onc.needs_port());
        assert!(!xdp.chooses_lean() && !onc.chooses_lean());
    }
}
