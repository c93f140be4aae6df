//! `tenon_log`: what the run time has to say, for a handler of the program's.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, PoisonError, RwLock};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::error::{CError, told};
use crate::log::{LogLine, number};
use crate::report::{ApiError, in_c};
use crate::text::c_text;

/// `tenon_log_handler`.
pub type LogHandler = unsafe extern "C" fn(context: *mut c_void, level: u32, text: *const c_char);

#[derive(Clone, Copy)]
struct LogTarget {
    handler: LogHandler,
    context: *mut c_void,
}

// SAFETY: the context is handed to the handler only, which `tenon.h` says runs on several threads at once.
unsafe impl Send for LogTarget {}

// SAFETY: the same.
unsafe impl Sync for LogTarget {}

static TARGET: RwLock<Option<LogTarget>> = RwLock::new(None);
/// The level of the least important events that are logged.
static LEVEL: AtomicU32 = AtomicU32::new(0);
const LEVEL_MAX: u32 = 4;

/// Hands events to the handler. Spans are not followed: each event says what it is about.
struct ToHandler;

impl Subscriber for ToHandler {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && number(*metadata.level()) <= LEVEL.load(Ordering::Relaxed)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let target = *TARGET.read().unwrap_or_else(PoisonError::into_inner);
        let Some(LogTarget { handler, context }) = target else {
            return;
        };
        let mut line = LogLine::default();
        event.record(&mut line);
        let text = c_text(in_c(&line.into_text()).as_bytes());
        // SAFETY: the program has handed both over together, for any thread.
        unsafe { handler(context, number(*event.metadata().level()), text.as_ptr()) };
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn set(handler: Option<LogHandler>, context: *mut c_void, level: u32) -> Result<(), ApiError> {
    static INSTALLED: Once = Once::new();
    if level > LEVEL_MAX {
        return Err(ApiError::Caller("unknown level of the log"));
    }
    // What another part of the process has installed stays: then the handler is told nothing.
    INSTALLED.call_once(|| drop(tracing::subscriber::set_global_default(ToHandler)));
    let mut target = TARGET.write().unwrap_or_else(PoisonError::into_inner);
    *target = handler.map(|handler| LogTarget { handler, context });
    let level = if target.is_some() { level } else { 0 };
    LEVEL.store(level, Ordering::Relaxed);
    drop(target);
    tracing::callsite::rebuild_interest_cache();
    Ok(())
}

/// `tenon_log`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_log(
    handler: Option<LogHandler>,
    context: *mut c_void,
    level: u32,
    error: *mut CError,
) -> bool {
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, || set(handler, context, level)) }.is_some()
}
