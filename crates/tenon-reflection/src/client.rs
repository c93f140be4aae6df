//! The client that asks which interfaces a server has.

use tenon::{CallError, Client, ConnectError, MakeCalls, Refused};
use tenon_descriptor::{BYTES_MAX, Descriptor, DescriptorError, DescriptorIdentity};

use crate::ReflectedVersion;
use crate::generated::{
    self, DescriptorRange, REFLECTION_PAGE_MAX, ReflectionRange, ReflectionV1Client,
    ReflectionV1ReadError,
};

/// Versions of which a server may tell.
const VERSIONS_MAX: usize = 65_536;

/// Versions that are asked for at once, and bytes of a descriptor: an answer fits into a datagram of UDP. Where only
/// [smaller ones](PartSize) go, fewer are asked for.
const PAGE: u32 = 16;
const PIECE: u32 = 8192;
const _: () = assert!(PAGE <= REFLECTION_PAGE_MAX && PIECE <= generated::REFLECTION_PIECE_MAX);

/// Asks a server which interfaces it has. What it answers is checked before it is believed.
#[derive(Debug, Clone)]
pub struct ReflectionClient<C = Client>(ReflectionV1Client<C>);

/// Why it is not known which interfaces a server has.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectionError {
    /// A call failed; of the kind [`NoService`](tenon::CallErrorKind::NoService) if the server has no reflection.
    #[error(transparent)]
    Call(CallError),
    /// The server has no such descriptor, or none any more.
    #[error("the server has no descriptor {0}")]
    NoDescriptor(DescriptorIdentity),
    /// What the server sent as a descriptor is none.
    #[error("the server sent a descriptor that cannot be used: {0}")]
    Descriptor(#[from] DescriptorError),
    /// The server sent a descriptor that was not asked for.
    #[error("the server sent descriptor {sent} in place of {asked}")]
    Another {
        /// The identity that was asked for.
        asked: DescriptorIdentity,
        /// The identity of what was sent.
        sent: DescriptorIdentity,
    },
    /// The parts that the server sent are not those of one whole.
    #[error("the server sent {what} in parts that do not fit together")]
    Parts {
        /// The whole, in words.
        what: &'static str,
    },
}

/// How much is asked for at once. A server that cannot send so much in a datagram by ONC RPC says no more than that its
/// system has failed, whatever the reason.
struct PartSize(u32);

impl PartSize {
    /// Asks for half as much if a call may have failed with this error because its answer was too large.
    fn is_halved_by(&mut self, error: &CallError) -> bool {
        let may_be_less = matches!(error, CallError::Refused(Refused::SystemError)) && self.0 > 1;
        if may_be_less {
            self.0 /= 2;
        }
        may_be_less
    }
}

impl ReflectionClient {
    /// Connects to the server at `address`.
    ///
    /// # Errors
    /// The address is invalid, or the server cannot be reached.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        ReflectionV1Client::connect(address).map(Self)
    }

    /// Asks by a client of the program [`REFLECTION`](crate::REFLECTION).
    pub fn over(client: Client) -> Self {
        let made_from = generated::REFLECTION_V1_INTERFACE.shared();
        Self(ReflectionV1Client(client.with_interface(made_from)))
    }
}

impl<C: MakeCalls> ReflectionClient<C> {
    /// Asks for all versions of which the server tells, in the order of their numbers.
    ///
    /// # Errors
    /// [`ReflectionError`].
    pub fn versions(&self) -> Result<Vec<ReflectedVersion>, ReflectionError> {
        let mut versions: Vec<ReflectedVersion> = Vec::new();
        let mut size = PartSize(PAGE);
        loop {
            let range = ReflectionRange {
                first: versions.len() as u32,
                count: size.0,
            };
            let page = match self.0.list(&range) {
                Ok(page) => page,
                Err(error) if size.is_halved_by(&error) => continue,
                Err(error) => return Err(ReflectionError::Call(error)),
            };
            let (count, total) = (page.versions.len(), page.total as usize);
            versions.extend(page.versions.into_iter().map(|it| ReflectedVersion {
                program: it.program,
                version: it.version,
                program_name: it.program_name.to_string(),
                version_name: it.version_name.to_string(),
                identity: DescriptorIdentity(it.descriptor),
            }));
            if versions.len() == total {
                return Ok(versions);
            }
            if count == 0 || versions.len() > total || total > VERSIONS_MAX {
                let what = "its list of versions";
                return Err(ReflectionError::Parts { what });
            }
        }
    }

    /// Asks for a descriptor, piece by piece, and checks that it is the one that is asked for.
    ///
    /// # Errors
    /// [`ReflectionError`].
    pub fn descriptor(&self, asked: DescriptorIdentity) -> Result<Descriptor, ReflectionError> {
        let mut bytes = Vec::new();
        let mut size = PartSize(PIECE);
        loop {
            let range = DescriptorRange {
                descriptor: asked.0,
                offset: bytes.len() as u32,
                count: size.0,
            };
            let piece = match self.0.read(&range) {
                Ok(piece) => piece,
                Err(ReflectionV1ReadError::Other(error)) if size.is_halved_by(&error) => continue,
                Err(ReflectionV1ReadError::Other(error)) => {
                    return Err(ReflectionError::Call(error));
                }
                Err(ReflectionV1ReadError::NoSuchDescriptor(_)) => {
                    return Err(ReflectionError::NoDescriptor(asked));
                }
            };
            let total = piece.total as usize;
            bytes.extend_from_slice(&piece.bytes);
            if bytes.len() == total {
                break;
            }
            if piece.bytes.is_empty() || bytes.len() > total || total > BYTES_MAX {
                let what = "a descriptor";
                return Err(ReflectionError::Parts { what });
            }
        }
        let descriptor = Descriptor::parse(&bytes)?;
        match descriptor.identity() {
            sent if sent == asked => Ok(descriptor),
            sent => Err(ReflectionError::Another { asked, sent }),
        }
    }
}
