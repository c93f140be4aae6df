//! `tenon_server`, before and while it serves.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tenon::{Server, ServerBuilder, Service};

use super::error::{CError, done, told};
use super::interface::list;
use super::options;
use super::raw::{RawHandler, RawService};
use super::request::in_handler;
use super::service::{CService, Handler};
use super::types::CInterface;
use super::words;
use crate::presence::{Absence, Presence};
use crate::report::Report;
use crate::text::c_text;

/// `tenon_server`.
pub struct CServer {
    /// What is put together, until it serves.
    builder: Mutex<Option<ServerBuilder>>,
    serving: OnceLock<Serving>,
    /// It was stopped before it served.
    is_stopped: AtomicBool,
    /// Handed to each service, which lives as long as a thread that may call its handlers.
    presence: Presence,
    absence: Absence,
}

struct Serving {
    server: Arc<Server>,
    addresses: Vec<CString>,
}

/// `tenon_server_counters`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CCounters {
    calls: u64,
    pings: u64,
    refusals: u64,
    service_refusals: u64,
    violations: u64,
    connections_open: u64,
    connections_accepted: u64,
    broken_connections: u64,
    reserved: [u64; 8],
}

const NO_SERVER: Report = Report::Caller("the server is NULL");
const SERVES: Report =
    Report::Caller("the server serves already, was stopped, or was not started for an error");

impl CServer {
    fn new() -> Self {
        let (presence, absence) = Presence::new();
        Self {
            builder: Mutex::new(Some(Server::builder())),
            serving: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
            presence,
            absence,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ServerBuilder>> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(
        &self,
        change: impl FnOnce(ServerBuilder) -> Result<ServerBuilder, Report>,
    ) -> Result<(), Report> {
        let mut builder = self.lock();
        let changed = change(builder.take().ok_or(SERVES)?);
        *builder = Some(changed?);
        Ok(())
    }

    fn add(&self, service: impl Service, execution: u32) -> Result<(), Report> {
        match execution {
            0 => self.change(|builder| Ok(builder.service(service))),
            1 => self.change(|builder| Ok(builder.service_on_workers(service))),
            _ => Err(Report::Caller("there is no such way to execute calls")),
        }
    }

    fn start(&self) -> Result<(), Report> {
        let mut builder = self.lock();
        let server = builder.take().ok_or(SERVES)?.start()?;
        let text = |address: &tenon::Address| c_text(address.to_string().as_bytes());
        let addresses = server.addresses().iter().map(text).collect();
        let server = Arc::new(server);
        // Nobody else has had the builder, so nobody else has started it.
        let _ = self.serving.set(Serving { server, addresses });
        Ok(())
    }

    /// Another thread may start it first, or stop it before it has begun: then there is nothing to wait for.
    fn run(&self) -> Result<(), Report> {
        let started = self.start();
        match (self.serving.get(), started) {
            (Some(serving), _) => serving.server.wait(),
            (None, Err(_)) if self.is_stopped.load(Ordering::Acquire) => {}
            (None, started) => return started,
        }
        Ok(())
    }

    /// A handler cannot wait for itself: then a thread does. A server that does not serve will not.
    fn stop(&self, drain: Duration) {
        if self.serving.get().is_none() {
            // Whoever starts it has the lock until it serves.
            let mut builder = self.lock();
            if builder.take().is_some() {
                self.is_stopped.store(true, Ordering::Release);
            }
        }
        let Some(serving) = self.serving.get() else {
            return;
        };
        if !in_handler() {
            return serving.server.shutdown(drain);
        }
        let server = Arc::clone(&serving.server);
        let stop = move || server.shutdown(drain);
        // Without a thread there is no stopping, and nobody to be told.
        let _ = thread::Builder::new().name("tenon stop".into()).spawn(stop);
    }

    /// Ends it, and waits for every handler. Whoever stops it already does so to the end; a handler
    /// may run longer than either has patience.
    fn free(self) {
        drop((self.builder, self.serving, self.presence));
        self.absence.wait();
    }
}

/// # Safety
/// It is NULL or leads to a server that is there as long as `'s`.
unsafe fn known<'s>(server: *const CServer) -> Result<&'s CServer, Report> {
    // SAFETY: the caller's promise.
    unsafe { server.as_ref() }.ok_or(NO_SERVER)
}

/// Changes a server that does not serve yet; one that does stays as it is.
///
/// # Safety
/// As [`known`].
unsafe fn change(server: *mut CServer, change: impl FnOnce(ServerBuilder) -> ServerBuilder) {
    done((), || {
        // SAFETY: the caller's promise.
        if let Ok(server) = unsafe { known(server) } {
            let _ = server.change(|builder| Ok(change(builder)));
        }
    });
}

/// `tenon_server_new`.
#[unsafe(no_mangle)]
pub extern "C" fn tenon_server_new() -> *mut CServer {
    done(ptr::null_mut(), || Box::into_raw(Box::new(CServer::new())))
}

/// `tenon_server_add`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_add(
    server: *mut CServer,
    interface: *const CInterface,
    handlers: *const Option<Handler>,
    methods: *const c_void,
    context: *mut c_void,
    execution: u32,
    error: *mut CError,
) -> bool {
    let add = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let (server, interface) = unsafe { (known(server)?, interface.as_ref()) };
        let interface = interface.ok_or(Report::Caller("the interface is NULL"))?;
        let presence = server.presence.clone();
        // SAFETY: all of it is complete, and lives as long as the server.
        let service = unsafe { CService::new(interface, handlers, methods, context, presence) }?;
        server.add(service, execution)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, add) }.is_some()
}

/// `tenon_server_add_raw`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_add_raw(
    server: *mut CServer,
    program: u32,
    version: u32,
    handler: Option<RawHandler>,
    context: *mut c_void,
    execution: u32,
    error: *mut CError,
) -> bool {
    let add = || {
        // SAFETY: it is NULL or a server.
        let server = unsafe { known(server) }?;
        let handler = handler.ok_or(Report::Caller("the handler is NULL"))?;
        // SAFETY: the context lives as long as the server, and handlers may use it.
        let service = unsafe {
            let presence = server.presence.clone();
            RawService::new(program, version, handler, context, presence)
        };
        server.add(service, execution)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, add) }.is_some()
}

/// `tenon_server_listen`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_listen(
    server: *mut CServer,
    address: *const c_char,
    error: *mut CError,
) -> bool {
    let listen = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let (server, address) = unsafe { (known(server)?, words(address)) };
        let address = address.ok_or(Report::Caller("the address is NULL or no UTF-8"))?;
        // A text that is none must not cost the server what was put together.
        let address: tenon::Address = address.parse().map_err(Report::Address)?;
        server.change(|builder| {
            let listening = builder.listen(&address.to_string());
            listening.map_err(Report::Address)
        })
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, listen) }.is_some()
}

/// `tenon_server_waiting`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_waiting(server: *mut CServer, waiting: u32) {
    if let Ok(waiting) = options::waiting(waiting) {
        // SAFETY: it is NULL or a server.
        unsafe { change(server, |builder| builder.waiting(waiting)) };
    }
}

/// `tenon_server_workers`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_workers(server: *mut CServer, workers: usize) {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let workers = match workers {
        0 => processors(),
        said => said,
    };
    // SAFETY: it is NULL or a server.
    unsafe { change(server, |builder| builder.workers(workers)) };
}

/// `tenon_server_rpcbind`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_rpcbind(server: *mut CServer, is_registered: bool) {
    // SAFETY: it is NULL or a server.
    unsafe {
        change(server, |builder| {
            builder.register_with_rpcbind(is_registered)
        })
    };
}

/// `tenon_server_users`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_users(server: *mut CServer, uids: *const u32, count: usize) {
    // SAFETY: there are so many, or it is NULL, and the server is one or NULL.
    unsafe {
        let uids = list(uids, count);
        change(server, |builder| builder.users(uids.iter().copied()));
    }
}

/// `tenon_server_start`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_start(server: *mut CServer, error: *mut CError) -> bool {
    // SAFETY: the server is NULL or one, the error NULL or the caller's own.
    unsafe { told(error, || known(server)?.start()) }.is_some()
}

/// `tenon_server_run`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_run(server: *mut CServer, error: *mut CError) -> bool {
    // SAFETY: the server is NULL or one, the error NULL or the caller's own.
    unsafe { told(error, || known(server)?.run()) }.is_some()
}

/// `tenon_server_address`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_address(
    server: *const CServer,
    index: usize,
) -> *const c_char {
    // SAFETY: it is NULL or a server.
    let serving = unsafe { known(server) }
        .ok()
        .and_then(|server| server.serving.get());
    let address = serving.and_then(|serving| serving.addresses.get(index));
    address.map_or(ptr::null(), |address| address.as_ptr())
}

/// `tenon_server_stop`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_stop(server: *mut CServer, drain_ms: u64) {
    done((), || {
        // SAFETY: it is NULL or a server.
        if let Ok(server) = unsafe { known(server) } {
            server.stop(Duration::from_millis(drain_ms));
        }
    });
}

/// `tenon_server_count`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_count(server: *const CServer, counters: *mut CCounters) {
    if counters.is_null() {
        return;
    }
    // SAFETY: it is NULL or a server.
    let serving = unsafe { known(server) }
        .ok()
        .and_then(|server| server.serving.get());
    let seen = serving
        .map(|serving| serving.server.counters())
        .unwrap_or_default();
    let told = CCounters {
        calls: seen.calls,
        pings: seen.pings,
        refusals: seen.refusals,
        service_refusals: seen.service_refusals,
        violations: seen.violations,
        connections_open: seen.connections_open,
        connections_accepted: seen.connections_accepted,
        broken_connections: seen.broken_connections,
        reserved: [0; 8],
    };
    // SAFETY: it is not NULL, and room for counters.
    unsafe { ptr::write(counters, told) };
}

/// `tenon_server_free`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_free(server: *mut CServer) {
    if !server.is_null() {
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        done((), || unsafe { Box::from_raw(server) }.free());
    }
}
