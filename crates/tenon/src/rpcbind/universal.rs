//! Universal addresses and network identifiers (RFC 1833 section 2.1.1, RFC 5665 section 5.2.3):
//! text that names a place on any transport.
//!
//! `tcp` and `udp` speak of IPv4: the address in dotted form, then the two bytes of the port,
//! dotted too. `tcp6` and `udp6` do the same behind the text form of an IPv6 address. `local` is
//! the path of a Unix socket.

#[cfg(unix)]
use std::ffi::OsStr;
use std::net::IpAddr;

use tenon_net::{Address, Endpoint, Host, Transport};
use tenon_wire::{BStr, ByteSlice};

use super::generated::{IPPROTO_TCP, IPPROTO_UDP};

/// The text is not a universal address of its transport, or the address has no such text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an address that rpcbind and this program both understand")]
pub struct UniversalAddressError(String);

fn error(text: impl ToString) -> UniversalAddressError {
    UniversalAddressError(text.to_string())
}

/// The network identifier of an address. A host that is not a number counts as IPv4. There is none for shared memory and
/// past the kernel: an address there is neither registered nor asked for.
pub(super) fn netid(address: &Address) -> Result<&'static str, UniversalAddressError> {
    match (address.transport(), is_ipv6(address)) {
        (Transport::Tcp, false) => Ok("tcp"),
        (Transport::Tcp, true) => Ok("tcp6"),
        (Transport::Udp, false) => Ok("udp"),
        (Transport::Udp, true) => Ok("udp6"),
        (Transport::Unix, _) => Ok("local"),
        (Transport::Shm | Transport::Xdp, _) => Err(error(address)),
    }
}

fn is_ipv6(address: &Address) -> bool {
    let host = address.host();
    host.is_some_and(|host| host.name.contains(':'))
}

/// The protocol number by which version 2 knows the transport of an address.
pub(super) fn protocol(address: &Address) -> Option<u32> {
    match netid(address) {
        Ok("tcp") => Some(IPPROTO_TCP),
        Ok("udp") => Some(IPPROTO_UDP),
        _ => None,
    }
}

/// A port as version 2 carries it.
pub(super) fn port(word: u32) -> Result<u16, UniversalAddressError> {
    u16::try_from(word).map_err(|_| error(format_args!("port {word}")))
}

/// The universal form of a host and a port.
pub(super) fn with_port(host: &str, port: u16) -> String {
    let [high, low] = port.to_be_bytes();
    format!("{host}.{high}.{low}")
}

/// The universal form of an address.
pub(super) fn universal(address: &Address) -> Result<String, UniversalAddressError> {
    match (address.transport(), address.endpoint()) {
        (Transport::Tcp | Transport::Udp, Endpoint::Host(host)) => {
            let numeric: IpAddr = host.name.parse().map_err(|_| error(address))?;
            let port = host.port.ok_or_else(|| error(address))?;
            Ok(with_port(&numeric.to_string(), port))
        }
        (Transport::Unix, Endpoint::Path(path)) => path
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| error(address)),
        _ => Err(error(address)),
    }
}

/// The address that a universal address names.
pub(super) fn address(netid: &BStr, universal: &BStr) -> Result<Address, UniversalAddressError> {
    match netid.as_bytes() {
        b"tcp" | b"tcp6" => host(universal).map(Address::tcp),
        b"udp" | b"udp6" => host(universal).map(Address::udp),
        #[cfg(unix)]
        b"local" if universal.starts_with(b"/") && !universal.contains(&0) => {
            let path = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(universal.as_bytes());
            Ok(Address::unix(path))
        }
        _ => Err(error(universal)),
    }
}

fn host(universal: &BStr) -> Result<Host, UniversalAddressError> {
    let parse = || {
        let text = universal.to_str().ok()?;
        let (rest, low) = text.rsplit_once('.')?;
        let (name, high) = rest.rsplit_once('.')?;
        // A scope, as link-local addresses have, is not part of the number.
        let number = name.split_once('%').map_or(name, |(number, _scope)| number);
        number.parse::<IpAddr>().ok()?;
        Some(Host {
            name: name.to_owned(),
            port: Some(u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?])),
        })
    };
    parse().ok_or_else(|| error(universal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address_text: &str, expected_netid: &str, expected: &str) {
        let parsed: Address = address_text.parse().unwrap();
        assert_eq!(netid(&parsed), Ok(expected_netid));
        assert_eq!(universal(&parsed).unwrap(), expected);
        let found = address(expected_netid.into(), expected.into());
        assert_eq!(found, Ok(parsed));
    }

    #[test]
    fn an_address_and_its_universal_form_say_the_same() {
        check("tcp://192.0.2.7:2049", "tcp", "192.0.2.7.8.1");
        check("udp://0.0.0.0:111", "udp", "0.0.0.0.0.111");
        check("tcp://[::1]:65535", "tcp6", "::1.255.255");
        check("udp://[2001:db8::7]:80", "udp6", "2001:db8::7.0.80");
        check("unix:///run/some.sock", "local", "/run/some.sock");
    }

    #[test]
    fn what_is_no_universal_address_is_refused() {
        let texts = [
            "",
            ".",
            "1.2",
            "1.2.3.4",
            "1.2.3.4.5",
            "1.2.3.4.5.256",
            "1.2.3.4.-5.6",
            "name.1.2",
            "1.2.3.4.5.6.7",
            "::1.5",
            "\u{0}.1.2",
        ];
        for text in texts {
            assert!(address("tcp".into(), text.into()).is_err(), "{text}");
        }
        assert!(address("local".into(), "no/path".into()).is_err());
        assert!(address("ticots".into(), "1.2.3.4.5.6".into()).is_err());
        assert!(universal(&"tcp://name:1".parse().unwrap()).is_err());
        assert!(universal(&"tcp://1.2.3.4".parse().unwrap()).is_err());
    }

    #[test]
    fn rpcbind_knows_nothing_of_shared_memory_and_past_the_kernel() {
        for text in ["shm:///a", "xdp://192.0.2.7:1", "onc+xdp://192.0.2.7:1"] {
            let address: Address = text.parse().unwrap();
            assert!(netid(&address).is_err(), "{text}");
            assert!(universal(&address).is_err(), "{text}");
            assert_eq!(protocol(&address), None, "{text}");
        }
    }

    #[test]
    fn version_2_knows_ipv4_alone() {
        let protocol_of = |text: &str| protocol(&text.parse().unwrap());
        assert_eq!(protocol_of("tcp://127.0.0.1:1"), Some(6));
        assert_eq!(protocol_of("udp://127.0.0.1:1"), Some(17));
        assert_eq!(protocol_of("tcp://[::1]:1"), None);
        assert_eq!(protocol_of("unix:///a"), None);
        assert!(port(65_536).is_err());
    }
}
