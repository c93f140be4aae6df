//! `tenon_server`, before and while it serves.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use tenon::rpcbind::LocalRpcbind;
use tenon::{Server, ServerBuilder, ServerLimits, Service, StartError, SteppedServer};

use super::error::{CError, done, told};
use super::fork::ForkGeneration;
use super::interface::list;
use super::options;
use super::raw::{RawHandler, RawService};
use super::request::in_handler;
use super::service::{CService, Handler};
use super::streamed::CStreamService;
use super::types::CInterface;
use super::{poll_timeout, words};
use crate::limits::ResultLimits;
use crate::presence::{HandlerDrain, HandlerGuard};
use crate::report::ApiError;
use crate::text::c_text;

/// `tenon_server`.
pub struct CServer {
    /// The server that is put together, until it serves.
    builder: Mutex<Option<ServerBuilder>>,
    serving: OnceLock<RunningServer>,
    /// True if the host's rpcbind is to be told of it.
    is_registered: AtomicBool,
    /// It was stopped before it served.
    is_stopped: AtomicBool,
    /// Handed to each service.
    limits: Arc<ResultLimits>,
    /// Handed to each service, which lives as long as a thread that may call its handlers.
    handler_guard: HandlerGuard,
    handler_drain: HandlerDrain,
}

struct RunningServer {
    server: Arc<Server>,
    /// The same if the program steps, for one thread at a time.
    stepped: Option<Mutex<SteppedServer>>,
    addresses: Vec<CString>,
    generation: ForkGeneration,
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

const NO_SERVER: ApiError = ApiError::Caller("the server is NULL");
const SERVES: ApiError =
    ApiError::Caller("the server serves already, was stopped, or was not started for an error");
const NOT_STEPPED: ApiError =
    ApiError::Caller("the server is not stepped: call tenon_server_start_stepped first");
const STEPS: ApiError = ApiError::Caller("a stepped server serves within tenon_server_step alone");
const STEPS_ALREADY: ApiError = ApiError::Caller(
    "tenon_server_step runs already: one thread at a time, and no handler, may step",
);

impl CServer {
    fn new() -> Self {
        let (handler_guard, handler_drain) = HandlerGuard::new();
        Self {
            builder: Mutex::new(Some(Server::builder())),
            serving: OnceLock::new(),
            is_registered: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            limits: Arc::default(),
            handler_guard,
            handler_drain,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ServerBuilder>> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(
        &self,
        change: impl FnOnce(ServerBuilder) -> Result<ServerBuilder, ApiError>,
    ) -> Result<(), ApiError> {
        let mut builder = self.lock();
        let changed = change(builder.take().ok_or(SERVES)?);
        *builder = Some(changed?);
        Ok(())
    }

    fn add(&self, service: impl Service) -> Result<(), ApiError> {
        self.change(|builder| Ok(builder.service(service)))
    }

    fn start(&self) -> Result<(), ApiError> {
        self.start_as(|builder| Ok(RunningServer::of(Arc::new(builder.start()?), None)))
    }

    fn start_stepped(&self) -> Result<(), ApiError> {
        self.start_as(|builder| {
            let stepped = builder.start_stepped()?;
            let server = Arc::clone(stepped.handle());
            Ok(RunningServer::of(server, Some(Mutex::new(stepped))))
        })
    }

    fn start_as(
        &self,
        start: impl FnOnce(ServerBuilder) -> Result<RunningServer, StartError>,
    ) -> Result<(), ApiError> {
        let mut place = self.lock();
        let mut builder = place.take().ok_or(SERVES)?;
        if self.is_registered.load(Ordering::Relaxed) {
            builder = builder.register_with(LocalRpcbind);
        }
        let serving = start(builder)?;
        // No other thread has had the builder, so none has started it.
        let _ = self.serving.set(serving);
        Ok(())
    }

    /// Another thread may start it first, or stop it before it has begun: then there is nothing to wait for.
    fn run(&self) -> Result<(), ApiError> {
        let started = self.start();
        match (self.serving.get(), started) {
            (Some(serving), _) if serving.stepped.is_some() => return Err(STEPS),
            (Some(serving), _) => serving.server.wait(),
            (None, Err(_)) if self.is_stopped.load(Ordering::Acquire) => {}
            (None, started) => return started,
        }
        Ok(())
    }

    /// Serves what has come; returns whether the server still serves.
    fn step(&self) -> Result<bool, ApiError> {
        let stepped = self.stepped()?;
        match stepped.try_lock() {
            Ok(mut stepped) => Ok(stepped.step()),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner().step()),
            Err(TryLockError::WouldBlock) => Err(STEPS_ALREADY),
        }
    }

    fn stepped(&self) -> Result<&Mutex<SteppedServer>, ApiError> {
        let serving = self.serving.get();
        let stepped = serving.and_then(|serving| serving.stepped.as_ref());
        stepped.ok_or(NOT_STEPPED)
    }

    /// Tells something of a stepped server, unless a thread steps or it is none.
    fn of_stepped<T>(&self, tell: impl FnOnce(&SteppedServer) -> T) -> Option<T> {
        let stepped = self.stepped().ok()?;
        match stepped.try_lock() {
            Ok(stepped) => Some(tell(&stepped)),
            Err(TryLockError::Poisoned(poisoned)) => Some(tell(&poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A handler cannot wait for itself: then a thread does. A server that does not serve will not.
    fn stop(&self, drain: Duration) {
        if self.serving.get().is_none() {
            // The thread that starts it has the lock until it serves.
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
        // Without a thread there is no stopping, and no caller to report it to.
        let _ = thread::Builder::new().name("tenon stop".into()).spawn(stop);
    }

    /// Refuses a forked child a server that its parent started; one that was put together alone can be started.
    fn check_process(&self) -> Result<(), ApiError> {
        self.serving
            .get()
            .map_or(Ok(()), |serving| serving.generation.check())
    }

    /// Ends it, and waits for every handler. A thread that stops it already does so to the end; a handler
    /// may run longer than either has patience.
    fn free(self) {
        drop((self.builder, self.serving, self.handler_guard));
        self.handler_drain.wait();
    }
}

impl RunningServer {
    fn of(server: Arc<Server>, stepped: Option<Mutex<SteppedServer>>) -> Self {
        let text = |address: &tenon::Address| c_text(address.to_string().as_bytes());
        let addresses = server.addresses().iter().map(text).collect();
        Self {
            server,
            stepped,
            addresses,
            generation: ForkGeneration::now(),
        }
    }
}

/// # Safety
/// It is NULL or leads to a server that is there as long as `'s`.
unsafe fn known<'s>(server: *const CServer) -> Result<&'s CServer, ApiError> {
    // SAFETY: the caller's promise.
    let server = unsafe { server.as_ref() }.ok_or(NO_SERVER)?;
    server.check_process()?;
    Ok(server)
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
    order: u32,
    error: *mut CError,
) -> bool {
    let handlers = (handlers, ptr::null());
    // SAFETY: the caller's promises are those of `tenon.h`.
    let add = || unsafe { add(server, interface, handlers, methods, context, order) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, add) }.is_some()
}

/// `tenon_server_add_streams`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_add_streams(
    server: *mut CServer,
    interface: *const CInterface,
    handlers: *const Option<Handler>,
    streams: *const CStreamService,
    methods: *const c_void,
    context: *mut c_void,
    order: u32,
    error: *mut CError,
) -> bool {
    let handlers = (handlers, streams);
    // SAFETY: the caller's promises are those of `tenon.h`.
    let add = || unsafe { add(server, interface, handlers, methods, context, order) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, add) }.is_some()
}

/// Adds a service with handlers, those of procedures with streams beside.
///
/// # Safety
/// All of it is NULL or complete, as `tenon.h` says, and lives as long as the server.
unsafe fn add(
    server: *mut CServer,
    interface: *const CInterface,
    (handlers, streams): (*const Option<Handler>, *const CStreamService),
    methods: *const c_void,
    context: *mut c_void,
    order: u32,
) -> Result<(), ApiError> {
    // SAFETY: the caller's promise.
    let (server, interface, streams) =
        unsafe { (known(server)?, interface.as_ref(), streams.as_ref()) };
    let interface = interface.ok_or(ApiError::Caller("the interface is NULL"))?;
    let keeps_order = options::keeps_order(order)?;
    let handler_guard = server.handler_guard.clone();
    let limits = Arc::clone(&server.limits);
    // SAFETY: the same.
    let service = unsafe {
        CService::new(
            interface,
            (handlers, streams),
            (methods, context),
            keeps_order,
            limits,
            handler_guard,
        )
    }?;
    server.add(service)
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
    order: u32,
    error: *mut CError,
) -> bool {
    let add = || {
        // SAFETY: it is NULL or a server.
        let server = unsafe { known(server) }?;
        let handler = handler.ok_or(ApiError::Caller("the handler is NULL"))?;
        let keeps_order = options::keeps_order(order)?;
        // SAFETY: the context lives as long as the server, and handlers may use it.
        let service = unsafe {
            let handler_guard = server.handler_guard.clone();
            let limits = Arc::clone(&server.limits);
            RawService::new(
                program,
                version,
                handler,
                context,
                keeps_order,
                limits,
                handler_guard,
            )
        };
        server.add(service)
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
        let address = address.ok_or(ApiError::Caller("the address is NULL or no UTF-8"))?;
        // A text that is none must not cost the server what was put together.
        let address: tenon::Address = address.parse().map_err(ApiError::Address)?;
        server.change(|builder| {
            let listening = builder.listen(&address.to_string());
            listening.map_err(ApiError::Address)
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

/// `tenon_server_threads`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_threads(server: *mut CServer, threads: usize) {
    let mut limits = ServerLimits::default();
    if threads > 0 {
        limits.threads = threads;
    }
    // SAFETY: it is NULL or a server.
    unsafe { change(server, |builder| builder.limits(limits)) };
}

/// `tenon_server_send_max`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_send_max(server: *mut CServer, bytes: usize) {
    // SAFETY: it is NULL or a server.
    if let Ok(server) = unsafe { known(server) } {
        server.limits.set_send_max(bytes);
    }
}

/// `tenon_server_rpcbind`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_rpcbind(server: *mut CServer, is_registered: bool) {
    done((), || {
        // SAFETY: it is NULL or a server.
        if let Ok(server) = unsafe { known(server) } {
            (server.is_registered).store(is_registered, Ordering::Relaxed);
        }
    });
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

/// `tenon_server_start_stepped`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_start_stepped(
    server: *mut CServer,
    error: *mut CError,
) -> bool {
    // SAFETY: the server is NULL or one, the error NULL or the caller's own.
    unsafe { told(error, || known(server)?.start_stepped()) }.is_some()
}

/// `tenon_server_descriptor`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_descriptor(server: *const CServer) -> c_int {
    // SAFETY: it is NULL or a server.
    let server = unsafe { known(server) }.ok();
    let descriptor = server.and_then(|server| server.of_stepped(|of| of.as_fd().as_raw_fd()));
    descriptor.unwrap_or(-1)
}

/// `tenon_server_next_timeout`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_next_timeout(server: *const CServer) -> c_int {
    // SAFETY: it is NULL or a server.
    let server = unsafe { known(server) }.ok();
    let limit = server.and_then(|server| server.of_stepped(SteppedServer::next_timeout));
    poll_timeout(limit.flatten())
}

/// `tenon_server_step`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_server_step(server: *mut CServer, error: *mut CError) -> bool {
    // SAFETY: the server is NULL or one, the error NULL or the caller's own.
    unsafe { told(error, || known(server)?.step()) }.unwrap_or(false)
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
        let server = unsafe { Box::from_raw(server) };
        if server.check_process().is_ok() {
            done((), || server.free());
        } else {
            std::mem::forget(server);
        }
    }
}
