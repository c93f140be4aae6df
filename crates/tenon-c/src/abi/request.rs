//! `tenon_request`: a call that came in, as its handler sees it.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::net::IpAddr;
use std::ptr;
use std::time::Instant;

use tenon::{AuthStat, CallInfo, Credential, Refusal, Transport};

use super::error::done;
use super::interface::bytes;
use super::options::CAuthSys;
use crate::report::ONC_AUTH;
use crate::text::c_text;

/// `tenon_request`.
pub struct CRequest<'c> {
    info: &'c CallInfo<'c>,
    refusal: Option<Refusal>,
    /// Bytes that a result may have, and an error in its place.
    send_max: usize,
    keeps_result: bool,
    /// Texts about the caller that the handler was given, as long as it runs.
    peer: Option<CString>,
    machine: Option<CString>,
    gids: Vec<u32>,
}

thread_local! {
    /// True while this thread executes a handler.
    static HANDLES: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread executes a handler.
pub(super) fn in_handler() -> bool {
    HANDLES.get()
}

impl<'c> CRequest<'c> {
    /// A call that is about to be handed to its handler, whose result may have `send_max` bytes.
    #[inline]
    pub(super) fn of(info: &'c CallInfo<'c>, send_max: usize) -> Self {
        Self {
            info,
            refusal: None,
            send_max,
            keeps_result: false,
            peer: None,
            machine: None,
            gids: Vec::new(),
        }
    }

    /// Runs the handler; it says whether it has carried the call out.
    #[inline]
    pub(super) fn run(&mut self, handler: impl FnOnce(*mut Self) -> bool) -> Result<(), Refusal> {
        let before = HANDLES.replace(true);
        let is_done = handler(self);
        HANDLES.set(before);
        match is_done {
            true => Ok(()),
            false => Err(self.refusal.take().unwrap_or_else(unsaid)),
        }
    }

    /// Returns what is known of the call beside its arguments.
    pub(super) fn info(&self) -> &'c CallInfo<'c> {
        self.info
    }

    /// Returns how many bytes a result, or an error in its place, may have.
    pub(super) fn send_max(&self) -> usize {
        self.send_max
    }

    /// Keeps the reason for which the handler is about to say that it has not carried the call out.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// Returns whether what the result owns stays with the handler's program.
    pub(super) fn keeps_result(&self) -> bool {
        self.keeps_result
    }
}

#[cold]
fn unsaid() -> Refusal {
    Refusal::SystemError("the handler failed and did not say why".to_owned())
}

/// `tenon_refuse`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_refuse(
    request: *mut CRequest<'_>,
    why: u32,
    words: *const c_char,
) -> bool {
    done((), || {
        // SAFETY: it is NULL or the request that the handler was handed; the words are NULL or a text.
        let (request, words) = unsafe { (request.as_mut(), bytes(words)) };
        if let Some(request) = request {
            request.refuse(refusal(why, String::from_utf8_lossy(words).into_owned()));
        }
    });
    false
}

fn refusal(why: u32, words: String) -> Refusal {
    match why {
        2 => Refusal::Raised {
            message: words,
            details: Vec::new(),
        },
        3 => Refusal::ProcedureUnavailable,
        4 => Refusal::InvalidArguments(words),
        5 => Refusal::Authentication(AuthStat::TOO_WEAK),
        ONC_AUTH.. => Refusal::Authentication(AuthStat(why - ONC_AUTH)),
        _ => Refusal::SystemError(words),
    }
}

/// `tenon_keep`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_keep(request: *mut CRequest<'_>) {
    // SAFETY: it is NULL or the request that the handler was handed.
    if let Some(request) = unsafe { request.as_mut() } {
        request.keeps_result = true;
    }
}

/// `tenon_request_procedure`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_procedure(request: *const CRequest<'_>) -> u32 {
    // SAFETY: it is NULL or the request that the handler was handed.
    unsafe { request.as_ref() }.map_or(0, |request| request.info.procedure())
}

/// `tenon_request_time_left_ms`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_time_left_ms(request: *const CRequest<'_>) -> i64 {
    // SAFETY: it is NULL or the request that the handler was handed.
    let request = unsafe { request.as_ref() };
    match request.and_then(|request| request.info.deadline()) {
        None => -1,
        Some(at) => {
            let left = at.saturating_duration_since(Instant::now());
            i64::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i64::MAX)
        }
    }
}

/// `tenon_request_cancelled`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_cancelled(request: *const CRequest<'_>) -> bool {
    // SAFETY: it is NULL or the request that the handler was handed.
    unsafe { request.as_ref() }.is_some_and(|request| request.info.is_cancelled())
}

/// `tenon_request_auth_sys`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_auth_sys(
    request: *mut CRequest<'_>,
    claim: *mut CAuthSys,
) -> bool {
    done(false, || {
        // SAFETY: it is NULL or the request that the handler was handed.
        let Some(request) = (unsafe { request.as_mut() }) else {
            return false;
        };
        let Credential::Sys(user) = request.info.peer().credential else {
            return false;
        };
        if claim.is_null() {
            return true;
        }
        let machine = request
            .machine
            .get_or_insert_with(|| c_text(user.machine()));
        if request.gids.is_empty() {
            request.gids.extend_from_slice(user.gids());
        }
        let told = CAuthSys {
            stamp: user.stamp(),
            machine: machine.as_ptr(),
            uid: user.uid(),
            gid: user.gid(),
            gids: request.gids.as_ptr(),
            gid_count: request.gids.len(),
        };
        // SAFETY: it is not NULL, and room for a claim.
        unsafe { ptr::write(claim, told) };
        true
    })
}

/// `tenon_request_user`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_user(request: *const CRequest<'_>, uid: *mut u32) -> bool {
    // SAFETY: it is NULL or the request that the handler was handed.
    let known = unsafe { request.as_ref() }.and_then(|request| request.info.peer().user);
    if let Some(user) = known
        && !uid.is_null()
    {
        // SAFETY: it is not NULL, and room for a user.
        unsafe { ptr::write(uid, user) };
    }
    known.is_some()
}

/// `tenon_request_peer`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_peer(request: *mut CRequest<'_>) -> *const c_char {
    const NOWHERE: &CStr = c"";
    done(NOWHERE.as_ptr(), || {
        // SAFETY: it is NULL or the request that the handler was handed.
        let request = unsafe { request.as_mut() };
        let known = request.and_then(|request| {
            let peer = request.info.peer().address?;
            let text = || c_text(peer.to_string().as_bytes());
            Some(request.peer.get_or_insert_with(text).as_ptr())
        });
        known.unwrap_or(NOWHERE.as_ptr())
    })
}

/// `tenon_request_transport`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_transport(request: *const CRequest<'_>) -> *const c_char {
    // SAFETY: it is NULL or the request that the handler was handed.
    let name = match unsafe { request.as_ref() }.and_then(|request| request.info.transport()) {
        None => c"",
        Some(Transport::Tcp) => c"tcp",
        Some(Transport::Unix) => c"unix",
        Some(Transport::Udp) => c"udp",
        Some(Transport::Shm) => c"shm",
        Some(Transport::Xdp) => c"xdp",
    };
    name.as_ptr()
}

/// `tenon_request_ip`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_ip(
    request: *const CRequest<'_>,
    address: *mut u8,
    port: *mut u16,
) -> usize {
    // SAFETY: it is NULL or the request that the handler was handed.
    let Some(peer) = unsafe { request.as_ref() }.and_then(|request| request.info.peer().address)
    else {
        return 0;
    };
    if !port.is_null() {
        // SAFETY: it is not NULL, and room for a port.
        unsafe { ptr::write(port, peer.port()) };
    }
    match peer.ip() {
        // SAFETY: there is room for 16 bytes.
        IpAddr::V4(ip) => unsafe { put(&ip.octets(), address) },
        // SAFETY: the same.
        IpAddr::V6(ip) => unsafe { put(&ip.octets(), address) },
    }
}

/// # Safety
/// There is room for so many, or none at NULL.
unsafe fn put(bytes: &[u8], to: *mut u8) -> usize {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
    bytes.len()
}
