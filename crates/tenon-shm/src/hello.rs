//! What the two ends say to each other over the Unix socket before they use the memory: 32 bytes
//! each. `docs/shm.md` has the table.

use crate::layout::{RingSizesError, Sizes};

/// Bytes of a hello.
pub const HELLO: usize = 32;

/// First bytes of a hello: no other protocol that a Unix socket may carry begins so.
const MAGIC: [u8; 8] = *b"\x7fshmten\n";

/// The version of all this.
const VERSION: u16 = 4;

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// Why a server refuses a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinRefusal {
    /// The user of the client's process may not connect.
    User,
    /// The server has no room for it; later there may be some.
    Busy,
    /// For another reason, by its number.
    Other(u8),
}

/// The bytes of a peer are no hello that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// It speaks something else.
    #[error(
        "it begins with \"{}\", which is no offer of shared memory",
        .0.escape_ascii()
    )]
    Magic([u8; 8]),
    /// The bytes were damaged, or made up.
    #[error("its hello is damaged")]
    Check,
    /// It is of the same side.
    #[error("it is not the other side of a connection but of the same side")]
    Side,
    /// It knows other versions.
    #[error("it offers version {0} of shared memory, and this program knows version 4")]
    Version(u16),
    /// It says of the rings what cannot be.
    #[error("malformed hello: {0}")]
    Sizes(#[from] RingSizesError),
    /// It refuses the connection.
    #[error("it refuses the connection: {0}")]
    Refused(JoinRefusal),
}

impl std::fmt::Display for JoinRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User => f.write_str("the user of this process may not connect"),
            Self::Busy => f.write_str("the server has too many connections"),
            Self::Other(number) => write!(f, "reason {number}"),
        }
    }
}

impl JoinRefusal {
    fn number(self) -> u8 {
        match self {
            Self::User => 1,
            Self::Busy => 2,
            Self::Other(number) => number,
        }
    }

    fn of(number: u8) -> Option<Self> {
        match number {
            0 => None,
            1 => Some(Self::User),
            2 => Some(Self::Busy),
            _ => Some(Self::Other(number)),
        }
    }
}

/// Returns the hello of a client.
pub(crate) fn of_client() -> [u8; HELLO] {
    assemble(CLIENT, 0, [0; 2])
}

/// Returns the hello of a server that hands over a segment with such rings.
pub(crate) fn of_server(sizes: Sizes) -> [u8; HELLO] {
    // A ring has at most 64 MiB.
    let rings = [sizes.to_server() as u32, sizes.to_client() as u32];
    assemble(SERVER, 0, rings)
}

/// Returns the hello of a server that refuses.
pub(crate) fn of_refusal(refusal: JoinRefusal) -> [u8; HELLO] {
    assemble(SERVER, refusal.number(), [0; 2])
}

fn assemble(side: u8, refusal: u8, rings: [u32; 2]) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..8].copy_from_slice(&MAGIC);
    hello[8..10].copy_from_slice(&VERSION.to_be_bytes());
    hello[10] = side;
    hello[11] = refusal;
    hello[12..16].copy_from_slice(&rings[0].to_be_bytes());
    hello[16..20].copy_from_slice(&rings[1].to_be_bytes());
    let check = fnv(&hello[..28]);
    hello[28..].copy_from_slice(&check.to_be_bytes());
    hello
}

/// Checks a client's hello.
pub(crate) fn from_client(hello: &[u8; HELLO]) -> Result<(), HelloError> {
    check(hello, CLIENT)
}

/// Returns the rings that a server's hello offers.
pub(crate) fn from_server(hello: &[u8; HELLO]) -> Result<Sizes, HelloError> {
    check(hello, SERVER)?;
    if let Some(refusal) = JoinRefusal::of(hello[11]) {
        return Err(HelloError::Refused(refusal));
    }
    let [to_server, to_client] = [word(hello, 12), word(hello, 16)];
    Ok(Sizes::new(to_server.into(), to_client.into())?)
}

/// Checks whether what has come so far of a hello may become one.
pub(crate) fn may_be(begin: &[u8]) -> Result<(), HelloError> {
    let first = &begin[..begin.len().min(MAGIC.len())];
    match MAGIC.starts_with(first) {
        true => Ok(()),
        false => Err(HelloError::Magic(padded(first))),
    }
}

fn check(hello: &[u8; HELLO], side: u8) -> Result<(), HelloError> {
    may_be(hello)?;
    if word(hello, 28) != fnv(&hello[..28]) {
        return Err(HelloError::Check);
    }
    let version = u16::from_be_bytes([hello[8], hello[9]]);
    if version != VERSION {
        return Err(HelloError::Version(version));
    }
    match hello[10] == side {
        true => Ok(()),
        false => Err(HelloError::Side),
    }
}

fn padded(first: &[u8]) -> [u8; 8] {
    let mut all = [0; 8];
    all[..first.len()].copy_from_slice(first);
    all
}

fn word(hello: &[u8; HELLO], at: usize) -> u32 {
    u32::from_be_bytes([hello[at], hello[at + 1], hello[at + 2], hello[at + 3]])
}

/// Returns the FNV-1a hash of 32 bits, as in the preamble of the lean protocol.
fn fnv(bytes: &[u8]) -> u32 {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(BASIS, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Sizes {
        Sizes::new(4096, 8192).unwrap()
    }

    #[test]
    fn each_side_understands_the_other() {
        assert_eq!(from_client(&of_client()), Ok(()));
        assert_eq!(from_server(&of_server(sizes())), Ok(sizes()));
        for refusal in [JoinRefusal::User, JoinRefusal::Other(200)] {
            let heard = from_server(&of_refusal(refusal));
            assert_eq!(heard, Err(HelloError::Refused(refusal)));
        }
    }

    #[test]
    fn each_side_notices_its_own() {
        assert_eq!(from_server(&of_client()), Err(HelloError::Side));
        assert_eq!(from_client(&of_server(sizes())), Err(HelloError::Side));
    }

    #[test]
    fn any_byte_that_is_damaged_is_noticed() {
        for at in 0..HELLO {
            for bit in 0..8 {
                let mut hello = of_server(sizes());
                hello[at] ^= 1 << bit;
                assert!(from_server(&hello).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for rings in [
            [0, 4096],
            [4096, 0],
            [4097, 4096],
            [u32::MAX, 4096],
            [1 << 31, 4096],
        ] {
            let heard = from_server(&assemble(SERVER, 0, rings));
            assert!(matches!(heard, Err(HelloError::Sizes(_))), "{heard:?}");
        }
        let mut newer = of_client();
        newer[9] = 5;
        let check = fnv(&newer[..28]);
        newer[28..].copy_from_slice(&check.to_be_bytes());
        assert_eq!(from_client(&newer), Err(HelloError::Version(5)));
    }

    #[test]
    fn strangers_are_known_by_their_first_byte() {
        assert_eq!(may_be(b""), Ok(()));
        assert_eq!(may_be(b"\x7fshm"), Ok(()));
        let error = may_be(b"GET").unwrap_err();
        assert!(error.to_string().contains("GET"), "{error}");
        assert!(may_be(b"\x7ftenon\r\n").is_err(), "the lean protocol");
    }
}
