//! `tenon_options` and `tenon_auth_sys`.

use std::ffi::c_char;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;
use std::time::Duration;

use tenon::{ChannelOptions, Waiting};

use super::interface::{bytes, list};
use crate::habits::{CallDefaults, CallerIdentity};
use crate::report::ApiError;

/// Bytes of a machine's name, and further groups, of AUTH_SYS (RFC 5531, appendix A).
const MACHINE_MAX: usize = 255;
/// See [`MACHINE_MAX`].
const GIDS_MAX: usize = 16;

/// `tenon_auth_sys`.
#[repr(C)]
#[derive(Debug)]
pub struct CAuthSys {
    /// An arbitrary number.
    pub stamp: u32,
    /// The caller's machine.
    pub machine: *const c_char,
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
    /// Further groups.
    pub gids: *const u32,
    /// The number of further groups.
    pub gid_count: usize,
}

/// `tenon_options`.
#[repr(C)]
#[derive(Debug)]
pub struct COptions {
    /// Bytes of it that the program knows, or 0.
    pub size: usize,
    /// Of every call.
    pub timeout_ms: u64,
    /// Of the first connection.
    pub connect_timeout_ms: u64,
    /// A `tenon_waiting`.
    pub waiting: u32,
    /// The caller's identity.
    pub credential: *const CAuthSys,
    /// Bytes of a call.
    pub send_max: usize,
    /// Bytes of a reply.
    pub receive_max: usize,
    /// Calls in flight.
    pub calls_max: usize,
    /// Time after which a datagram is sent again.
    pub resend_first_ms: u64,
    /// The longest such time.
    pub resend_longest_ms: u64,
    /// Nonzero if calls wait for a peer that cannot be reached.
    pub wait_for_ready: u8,
    /// Nonzero if the first call connects.
    pub connect_lazily: u8,
    /// Nonzero if tokens may go over a network without encryption.
    pub allow_insecure: u8,
    /// Time after which the kernel asks a silent peer.
    pub keep_alive_ms: u64,
    /// Time that a peer may acknowledge nothing.
    pub peer_timeout_ms: u64,
    /// Time after which calls that wait ask a silent peer.
    pub ping_interval_ms: u64,
    /// Time that the peer has to answer that.
    pub ping_timeout_ms: u64,
}

/// `TENON_NEVER`.
const NEVER: u64 = u64::MAX;

/// Bytes of the first version, which a program means that says no size.
const SIZE_FIRST: usize = offset_of!(COptions, ping_timeout_ms) + size_of::<u64>();

impl COptions {
    /// Copies options of this or another version of the library; those that the program does not know are zero. NULL is
    /// all zero.
    ///
    /// # Errors
    /// The program sets options that this version does not have, or its size is none.
    ///
    /// # Safety
    /// It is NULL or leads to as many bytes as its size says.
    pub(super) unsafe fn read(from: *const Self) -> Result<Option<Self>, ApiError> {
        if from.is_null() {
            return Ok(None);
        }
        // SAFETY: every version begins with its size.
        let size = match unsafe { (*from).size } {
            0 => SIZE_FIRST,
            size if size < SIZE_FIRST => {
                return Err(ApiError::Caller(
                    "size in tenon_options is none: use TENON_OPTIONS",
                ));
            }
            size => size,
        };
        let known = size.min(size_of::<Self>());
        // SAFETY: there are so many bytes.
        let more =
            unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
        if more.iter().any(|byte| *byte != 0) {
            return Err(ApiError::Caller(
                "tenon_options has options that this version of the library does not know",
            ));
        }
        let mut options = MaybeUninit::<Self>::zeroed();
        // SAFETY: there are so many bytes and so much room; all zero is a value of it, and so is what C has.
        unsafe {
            ptr::copy_nonoverlapping(from.cast::<u8>(), options.as_mut_ptr().cast(), known);
            Ok(Some(options.assume_init()))
        }
    }

    /// Returns the options that all clients of the channel have in common.
    pub(super) fn channel(&self) -> Result<ChannelOptions, ApiError> {
        let mut options = ChannelOptions::default().waiting(waiting(self.waiting)?);
        if let Some(limit) = said(self.connect_timeout_ms) {
            options = options.connect_timeout(limit);
        }
        if self.send_max > 0 {
            options = options.send_max(self.send_max);
        }
        if self.receive_max > 0 {
            options = options.receive_max(self.receive_max);
        }
        if self.calls_max > 0 {
            options = options.calls_max(self.calls_max);
        }
        let (first, longest) = (said(self.resend_first_ms), said(self.resend_longest_ms));
        if first.is_some() || longest.is_some() {
            let first = first.unwrap_or(Duration::from_millis(500));
            let longest = longest.unwrap_or(Duration::from_secs(8));
            options = options.retransmission(first, longest);
        }
        options = options
            .wait_for_ready(self.wait_for_ready != 0)
            .connect_lazily(self.connect_lazily != 0)
            .allow_insecure(self.allow_insecure != 0);
        Ok(self.with_liveness(options))
    }

    /// Sets how silent peers are found out.
    fn with_liveness(&self, mut options: ChannelOptions) -> ChannelOptions {
        let or_never = |milliseconds| said(milliseconds).filter(|_| milliseconds != NEVER);
        if self.keep_alive_ms > 0 {
            options = options.keep_alive(or_never(self.keep_alive_ms));
        }
        if self.peer_timeout_ms > 0 {
            options = options.peer_timeout(or_never(self.peer_timeout_ms));
        }
        if self.ping_interval_ms > 0 {
            options = options.ping_interval(or_never(self.ping_interval_ms));
        }
        if let Some(timeout) = said(self.ping_timeout_ms) {
            options = options.ping_timeout(timeout);
        }
        options
    }

    /// Returns the identity of the caller and the time limit of calls.
    ///
    /// # Safety
    /// The credential is NULL or complete, as `tenon.h` says.
    pub(super) unsafe fn call_defaults(&self) -> CallDefaults {
        CallDefaults {
            timeout: said(self.timeout_ms),
            // SAFETY: the caller's promise.
            user: unsafe { self.credential.as_ref().map(|claim| claim.user()) },
        }
    }
}

impl CAuthSys {
    /// # Safety
    /// It is complete, as `tenon.h` says.
    pub(super) unsafe fn user(&self) -> CallerIdentity {
        // One more than there may be: what is too many is refused, and not copied whole.
        let gid_count = self.gid_count.min(GIDS_MAX + 1);
        // SAFETY: the caller's promise.
        let (machine, gids) = unsafe { (bytes(self.machine), list(self.gids, gid_count)) };
        let machine = &machine[..machine.len().min(MACHINE_MAX + 1)];
        CallerIdentity {
            stamp: self.stamp,
            machine: machine.to_owned(),
            uid: self.uid,
            gid: self.gid,
            gids: gids.to_owned(),
        }
    }
}

/// A `tenon_waiting`.
pub(super) fn waiting(number: u32) -> Result<Waiting, ApiError> {
    match number {
        0 => Ok(Waiting::Adaptive),
        1 => Ok(Waiting::Block),
        2 => Ok(Waiting::Spin),
        _ => Err(ApiError::Caller("there is no such way to wait")),
    }
}

/// Returns whether calls are carried out one after the other, by a `tenon_order`.
pub(super) fn keeps_order(number: u32) -> Result<bool, ApiError> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ApiError::Caller("unknown order of calls")),
    }
}

fn said(milliseconds: u64) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}
