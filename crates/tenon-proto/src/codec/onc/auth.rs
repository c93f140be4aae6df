//! Credentials and verifiers (RFC 5531 sections 8.2 and 10, appendix A).

use std::fmt;

use tenon_wire::{BStr, Buffer, DecodeError, Decoder, Encoder, Representation, Xdr};

use super::words::{get, put};

/// Longest body of a credential or verifier, in bytes (RFC 5531 section 8.2).
pub const AUTH_BODY_MAX: usize = 400;

/// The kind of a credential or verifier (RFC 5531 section 8.2; numbers beyond are IANA's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuthFlavor(pub u32);

impl AuthFlavor {
    /// No identity.
    pub const NONE: Self = Self(0);
    /// User and group numbers that the server believes.
    pub const SYS: Self = Self(1);
    /// A short form that a server handed out; servers here hand out none.
    pub const SHORT: Self = Self(2);
}

/// A credential or verifier with an uninterpreted body (RFC 5531 section 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpaqueAuth<'a> {
    flavor: AuthFlavor,
    body: &'a [u8],
}

/// The encoding of [`OpaqueAuth::NONE`], which most are: read at once.
const PLAIN_NONE: [u8; 8] = [0; 8];

impl<'a> OpaqueAuth<'a> {
    /// AUTH_NONE with an empty body (RFC 5531 section 10.1).
    pub const NONE: OpaqueAuth<'static> = OpaqueAuth {
        flavor: AuthFlavor::NONE,
        body: &[],
    };

    /// A credential or verifier of any flavor.
    ///
    /// # Errors
    /// The body is longer than [`AUTH_BODY_MAX`].
    pub fn new(flavor: AuthFlavor, body: &'a [u8]) -> Result<Self, CredentialError> {
        if body.len() > AUTH_BODY_MAX {
            return Err(CredentialError::BodyTooLong(body.len()));
        }
        Ok(Self { flavor, body })
    }

    /// The kind.
    pub fn flavor(&self) -> AuthFlavor {
        self.flavor
    }

    /// Returns the body, which only the flavor explains.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Reads one.
    ///
    /// # Errors
    /// The body is longer than [`AUTH_BODY_MAX`] or than what is there.
    #[inline]
    pub fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        if input.rest().starts_with(&PLAIN_NONE) {
            input.block::<{ PLAIN_NONE.len() }>()?;
            return Ok(Self::NONE);
        }
        Self::decode_any(input)
    }

    fn decode_any(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let flavor = AuthFlavor(get(input)?);
        let length = input.count(AUTH_BODY_MAX as u32, 1)?;
        let body = &input.take(Xdr::padded(length))?[..length];
        Ok(Self { flavor, body })
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Encoder<'_>) {
        put(out, self.flavor.0);
        put_opaque(out, self.body);
    }
}

/// Appends counted bytes and their padding. The length is bounded far below 2^32 by every caller.
fn put_opaque(out: &mut Encoder<'_>, bytes: &[u8]) {
    put(out, bytes.len() as u32);
    let room = out.room(Xdr::padded(bytes.len()));
    let (body, padding) = room.split_at_mut(bytes.len());
    body.copy_from_slice(bytes);
    padding.fill(0);
}

/// The identity that the caller claims, with what the server needs to believe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credential<'a> {
    /// No identity (RFC 5531 section 10.1).
    #[default]
    None,
    /// A user of a machine (RFC 5531 appendix A).
    Sys(AuthSys<'a>),
}

impl<'a> Credential<'a> {
    /// Understands a credential that was received.
    ///
    /// # Errors
    /// The status to deny the call with. A body that is not what its flavor demands is
    /// [`AuthStat::BAD_CRED`]. A flavor that is not served, which may be flawless, is
    /// [`AuthStat::REJECTED_CRED`]: "client must begin new session" (RFC 5531 section 9), with
    /// another one. So AUTH_SHORT is answered, as appendix A asks of a server that does not know
    /// the short form, and so libtirpc answers any flavor unknown to it.
    pub fn from_opaque(auth: OpaqueAuth<'a>) -> Result<Self, AuthStat> {
        match auth.flavor {
            AuthFlavor::NONE => Ok(Self::None),
            AuthFlavor::SYS => AuthSys::decode(&mut Decoder::new(auth.body))
                .map(Self::Sys)
                .map_err(|_| AuthStat::BAD_CRED),
            _ => Err(AuthStat::REJECTED_CRED),
        }
    }

    /// Understands the body of an AUTH_SYS credential, which lean calls carry as an extension.
    ///
    /// # Errors
    /// A bound of RFC 5531 appendix A is broken, or bytes are missing.
    pub fn of_sys_body(body: &'a [u8]) -> Result<Self, DecodeError> {
        AuthSys::decode(&mut Decoder::new(body)).map(Self::Sys)
    }

    /// Returns the body of an AUTH_SYS credential; `None` of no identity.
    pub fn sys_body(&self) -> Option<Vec<u8>> {
        let Self::Sys(sys) = self else {
            return None;
        };
        let mut body = Buffer::default();
        sys.encode(&mut Encoder::new(&mut body));
        Some(body.as_slice().to_vec())
    }

    /// Appends it as flavor, length and body.
    pub fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            Self::None => OpaqueAuth::NONE.encode(out),
            Self::Sys(sys) => {
                put(out, AuthFlavor::SYS.0);
                put(out, sys.encoded_len() as u32);
                sys.encode(out);
            }
        }
    }
}

/// A user of a machine, as the caller claims (RFC 5531 appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSys<'a> {
    stamp: u32,
    machine: &'a BStr,
    uid: u32,
    gid: u32,
    gids: [u32; AuthSys::GIDS_MAX],
    gids_len: usize,
}

impl<'a> AuthSys<'a> {
    /// Longest name of a machine, in bytes (RFC 5531 appendix A).
    pub const MACHINE_NAME_MAX: usize = 255;

    /// Most supplementary groups (RFC 5531 appendix A).
    pub const GIDS_MAX: usize = 16;

    /// A user by number, with its group and supplementary groups. The stamp is 0.
    ///
    /// # Errors
    /// The name is longer than [`MACHINE_NAME_MAX`](Self::MACHINE_NAME_MAX) or the groups are more
    /// than [`GIDS_MAX`](Self::GIDS_MAX).
    pub fn new(
        machine: &'a [u8],
        uid: u32,
        gid: u32,
        gids: &[u32],
    ) -> Result<Self, CredentialError> {
        if machine.len() > Self::MACHINE_NAME_MAX {
            return Err(CredentialError::MachineNameTooLong(machine.len()));
        }
        let mut sys = Self {
            stamp: 0,
            machine: BStr::new(machine),
            uid,
            gid,
            gids: [0; Self::GIDS_MAX],
            gids_len: gids.len(),
        };
        sys.gids
            .get_mut(..gids.len())
            .ok_or(CredentialError::TooManyGroups(gids.len()))?
            .copy_from_slice(gids);
        Ok(sys)
    }

    /// Returns the same credential with an arbitrary number that the caller's machine chose.
    #[must_use]
    pub fn with_stamp(self, stamp: u32) -> Self {
        Self { stamp, ..self }
    }

    /// An arbitrary number that the caller's machine chose.
    pub fn stamp(&self) -> u32 {
        self.stamp
    }

    /// The name of the caller's machine.
    pub fn machine(&self) -> &'a BStr {
        self.machine
    }

    /// The effective user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The effective group.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Further groups.
    pub fn gids(&self) -> &[u32] {
        &self.gids[..self.gids_len]
    }

    /// Reads the body of an AUTH_SYS credential.
    ///
    /// # Errors
    /// A bound of appendix A is broken, or bytes are missing.
    pub fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let stamp = get(input)?;
        let length = input.count(Self::MACHINE_NAME_MAX as u32, 1)?;
        let machine = BStr::new(&input.take(Xdr::padded(length))?[..length]);
        let (uid, gid) = (get(input)?, get(input)?);
        let gids_len = input.count(Self::GIDS_MAX as u32, 4)?;
        let mut gids = [0; Self::GIDS_MAX];
        for entry in &mut gids[..gids_len] {
            *entry = get(input)?;
        }
        input.finish()?;
        Ok(Self {
            stamp,
            machine,
            uid,
            gid,
            gids,
            gids_len,
        })
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        put(out, self.stamp);
        put_opaque(out, self.machine);
        put(out, self.uid);
        put(out, self.gid);
        put(out, self.gids_len as u32);
        for &gid in self.gids() {
            put(out, gid);
        }
    }

    fn encoded_len(&self) -> usize {
        5 * 4 + Xdr::padded(self.machine.len()) + 4 * self.gids_len
    }
}

/// A credential that the protocol cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The body is too long.
    #[error("a credential of {0} bytes is over the bound of {AUTH_BODY_MAX}")]
    BodyTooLong(usize),
    /// The machine name is too long.
    #[error("a machine name of {0} bytes is over the bound of {max}", max = AuthSys::MACHINE_NAME_MAX)]
    MachineNameTooLong(usize),
    /// The groups are too many.
    #[error("{0} supplementary groups are over the bound of {max}", max = AuthSys::GIDS_MAX)]
    TooManyGroups(usize),
}

/// The reason for which authentication failed (`auth_stat`, RFC 5531 section 9). A number that is not listed is a
/// denial all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuthStat(pub u32);

impl AuthStat {
    /// AUTH_OK: a server that denies a call with it contradicts itself.
    pub const OK: Self = Self(0);
    /// AUTH_BADCRED: the credential is malformed.
    pub const BAD_CRED: Self = Self(1);
    /// AUTH_REJECTEDCRED: the client must begin a new session.
    pub const REJECTED_CRED: Self = Self(2);
    /// AUTH_BADVERF: the verifier is malformed.
    pub const BAD_VERF: Self = Self(3);
    /// AUTH_REJECTEDVERF: the verifier expired or was replayed.
    pub const REJECTED_VERF: Self = Self(4);
    /// AUTH_TOOWEAK: rejected for security reasons.
    pub const TOO_WEAK: Self = Self(5);
    /// AUTH_INVALIDRESP: the client did not accept the reply's verifier.
    pub const INVALID_RESP: Self = Self(6);
    /// AUTH_FAILED: some other reason.
    pub const FAILED: Self = Self(7);

    /// The name in RFC 5531, if it has one.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "AUTH_OK",
            1 => "AUTH_BADCRED",
            2 => "AUTH_REJECTEDCRED",
            3 => "AUTH_BADVERF",
            4 => "AUTH_REJECTEDVERF",
            5 => "AUTH_TOOWEAK",
            6 => "AUTH_INVALIDRESP",
            7 => "AUTH_FAILED",
            8 => "AUTH_KERB_GENERIC",
            9 => "AUTH_TIMEEXPIRE",
            10 => "AUTH_TKT_FILE",
            11 => "AUTH_DECODE",
            12 => "AUTH_NET_ADDR",
            13 => "RPCSEC_GSS_CREDPROBLEM",
            14 => "RPCSEC_GSS_CTXPROBLEM",
            _ => return None,
        })
    }
}

impl fmt::Display for AuthStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "auth_stat {}", self.0),
        }
    }
}
