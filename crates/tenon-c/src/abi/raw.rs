//! A service with a handler that reads and writes the messages itself.

use std::ffi::c_void;
use std::sync::Arc;

use tenon::wire::{Decoder, Encoder};
use tenon::{CallInfo, Refusal, Service};

use super::codec;
use super::request::CRequest;
use super::types::{CDecoder, CEncoder};
use crate::limits::ResultLimits;
use crate::presence::HandlerGuard;

/// `tenon_raw_handler`.
pub type RawHandler = unsafe extern "C" fn(
    context: *mut c_void,
    arguments: *mut CDecoder,
    result: *mut CEncoder,
    request: *mut CRequest<'_>,
) -> bool;

/// A version of a program with one handler for all procedures.
pub(super) struct RawService {
    program: u32,
    version: u32,
    handler: RawHandler,
    context: *mut c_void,
    keeps_order: bool,
    limits: Arc<ResultLimits>,
    /// The server waits for it before the context may go.
    _handler_guard: HandlerGuard,
}

// SAFETY: the context is handed to the handler only, which `tenon.h` says runs on several threads at
// once.
unsafe impl Send for RawService {}

// SAFETY: the same.
unsafe impl Sync for RawService {}

impl RawService {
    /// # Safety
    /// The handler may be called with the context, on any thread, as long as the server is there.
    pub(super) unsafe fn new(
        program: u32,
        version: u32,
        handler: RawHandler,
        context: *mut c_void,
        keeps_order: bool,
        limits: Arc<ResultLimits>,
        handler_guard: HandlerGuard,
    ) -> Self {
        Self {
            program,
            version,
            handler,
            context,
            keeps_order,
            limits,
            _handler_guard: handler_guard,
        }
    }
}

impl Service for RawService {
    fn program(&self) -> u32 {
        self.program
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let limit = self.limits.send_max();
        codec::handle(arguments, result, limit, |arguments, result| {
            let mut request = CRequest::of(call, limit);
            // SAFETY: the promise of `new`.
            request
                .run(|request| unsafe { (self.handler)(self.context, arguments, result, request) })
        })
    }
}
