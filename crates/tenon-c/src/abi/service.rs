//! A service with procedures in C, for both protocols.

use std::ffi::c_void;
use std::sync::Arc;

use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, ServedStreams, Service};

use super::codec::{self, CWrite};
use super::interface::list;
use super::request::CRequest;
use super::scratch::{ALIGN, with_room};
use super::streamed::{CStreamService, StreamedProcedure};
use super::types::{CInterface, CMessage, CProcedure};
use super::value::OwnedValue;
use crate::failure::{CodecError, CodecFault};
use crate::limits::ResultLimits;
use crate::presence::HandlerGuard;
use crate::report::ApiError;

/// `tenon_handler`.
pub type Handler = unsafe extern "C" fn(
    methods: *const c_void,
    context: *mut c_void,
    arguments: *mut c_void,
    result: *mut c_void,
    request: *mut CRequest<'_>,
) -> bool;

/// A version of a program with procedures in C.
pub(super) struct CService {
    lean: Arc<Interface>,
    /// By number, in ascending order.
    procedures: Box<[ServedProcedure]>,
    /// Those that have streams.
    pub(super) streamed: Box<[StreamedProcedure]>,
    pub(super) methods: *const c_void,
    pub(super) context: *mut c_void,
    keeps_order: bool,
    pub(super) limits: Arc<ResultLimits>,
    /// The server waits for it before methods and context may go.
    _handler_guard: HandlerGuard,
}

/// A procedure that has a handler.
struct ServedProcedure {
    number: u32,
    arguments: Option<&'static CMessage>,
    result: Option<&'static CMessage>,
    handler: Handler,
}

// SAFETY: what the pointers lead to is handed to handlers only, which `tenon.h` says run on several
// threads at once.
unsafe impl Send for CService {}

// SAFETY: the same.
unsafe impl Sync for CService {}

impl CService {
    /// # Safety
    /// All of it is complete, as `tenon.h` says, and lives as long as the server.
    pub(super) unsafe fn new(
        interface: &CInterface,
        (handlers, streams): (*const Option<Handler>, Option<&CStreamService>),
        (methods, context): (*const c_void, *mut c_void),
        keeps_order: bool,
        limits: Arc<ResultLimits>,
        handler_guard: HandlerGuard,
    ) -> Result<Self, ApiError> {
        // SAFETY: the caller's promise; interfaces are constant data of the program's.
        let (lean, procedures, handlers) = unsafe {
            let procedures: &'static [CProcedure] = interface.checked_procedures()?;
            let handlers = list(handlers, procedures.len());
            (interface.lean(), procedures, handlers)
        };
        if handlers.len() < procedures.len() {
            return Err(ApiError::Caller(
                "the handlers are NULL: a service needs the program's functions",
            ));
        }
        let streamed = match streams {
            // SAFETY: the same.
            Some(streams) => unsafe { streams.procedures() }?,
            None => Vec::new(),
        };
        let mut served = Vec::new();
        for (procedure, handler) in procedures.iter().zip(handlers) {
            // SAFETY: the procedures are complete.
            let (arguments, result) = unsafe { (procedure.takes(), procedure.returns()) };
            if [arguments, result]
                .into_iter()
                .flatten()
                .any(is_over_aligned)
            {
                return Err(ApiError::Caller(
                    "a message is aligned to more than 16 bytes: a server has no such memory",
                ));
            }
            served.extend(handler.map(|handler| ServedProcedure {
                number: procedure.number,
                arguments,
                result,
                handler,
            }));
        }
        Ok(Self {
            lean: Arc::new(lean),
            procedures: served.into(),
            streamed: streamed.into(),
            methods,
            context,
            keeps_order,
            limits,
            _handler_guard: handler_guard,
        })
    }

    /// Most interfaces number their procedures one after the other.
    #[inline]
    fn find(&self, number: u32) -> Result<&ServedProcedure, Refusal> {
        let first = self.procedures.first().map_or(0, |served| served.number);
        let guess = number.wrapping_sub(first) as usize;
        match self.procedures.get(guess) {
            Some(served) if served.number == number => Ok(served),
            _ => self.search(number),
        }
    }

    #[cold]
    fn search(&self, number: u32) -> Result<&ServedProcedure, Refusal> {
        let found = (self.procedures).binary_search_by_key(&number, |served| served.number);
        match found {
            Ok(index) => Ok(&self.procedures[index]),
            Err(_) => Err(Refusal::ProcedureUnavailable),
        }
    }

    /// Carries a call out: `decode` reads the arguments, and the result is appended in
    /// the representation of `out`.
    #[inline]
    fn execute<R: CWrite>(
        &self,
        call: &CallInfo<'_>,
        decode: impl FnOnce(&CMessage, *mut c_void) -> Result<(), Refusal>,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), Refusal> {
        let served = self.find(call.procedure())?;
        let limit = self.limits.send_max();
        let returned = served.result;
        let place = returned.and_then(|message| codec::place_in_message(out, message, limit));
        let sizes = [served.arguments, returned.filter(|_| place.is_none())];
        let [taken, returned] = sizes.map(|message| message.map_or(0, |message| message.size));
        let outcome = with_room(taken, returned, |arguments, result| {
            // SAFETY: there is so much room as long as this runs, and what lies there is a value of the
            // message's type, or zero, whenever it goes.
            let taken = unsafe { OwnedValue::zeroed(served.arguments, arguments) };
            if let Some(message) = served.arguments {
                decode(message, arguments)?;
            }
            let arguments = or_null(&served.arguments, arguments);
            let mut request = CRequest::of(call, limit);
            let done = match place {
                Some((layout, unit)) => out.fill_bytes(layout, unit, |result| {
                    let result = result.as_mut_ptr().cast();
                    self.handle(served, (arguments, result), &mut request)
                }),
                None => self.execute_apart(served, (arguments, result), &mut request, out),
            };
            drop(taken);
            done
        });
        outcome.unwrap_or_else(|| {
            let why = "there is no memory for the arguments and the result";
            Err(Refusal::SystemError(why.to_owned()))
        })
    }

    /// Has the handler carry a call out, with room for the result that is encoded afterwards.
    #[inline]
    fn execute_apart<R: CWrite>(
        &self,
        served: &ServedProcedure,
        (arguments, result): (*mut c_void, *mut c_void),
        request: &mut CRequest<'_>,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), Refusal> {
        // SAFETY: there is so much room as long as this runs, and what lies there is a value of the
        // message's type, or zero, whenever it goes.
        let returned = unsafe { OwnedValue::zeroed(served.result, result) };
        let result = or_null(&served.result, result);
        self.handle(served, (arguments, result), request)?;
        // Before the arguments go: what the result owns may be theirs, if it is kept.
        let sent = match served.result {
            // SAFETY: the result is a value of this type.
            Some(message) => unsafe { codec::encode(out, message, result, request.send_max()) },
            None => Ok(()),
        };
        if request.keeps_result() {
            returned.keep();
        }
        sent.map_err(|reason| unsent(&reason))
    }

    #[inline]
    fn handle(
        &self,
        served: &ServedProcedure,
        (arguments, result): (*mut c_void, *mut c_void),
        request: &mut CRequest<'_>,
    ) -> Result<(), Refusal> {
        // SAFETY: the handler is one for such arguments and such a result.
        request.run(|request| unsafe {
            (served.handler)(self.methods, self.context, arguments, result, request)
        })
    }
}

pub(super) fn or_null(message: &Option<&CMessage>, value: *mut c_void) -> *mut c_void {
    match message {
        Some(_) => value,
        None => std::ptr::null_mut(),
    }
}

pub(super) fn is_over_aligned(message: &CMessage) -> bool {
    message.align > ALIGN
}

#[cold]
pub(super) fn unsent(reason: &CodecError<tenon::wire::EncodeError>) -> Refusal {
    Refusal::SystemError(format!("the result cannot be sent: {reason}"))
}

#[cold]
pub(super) fn unread(reason: CodecError<tenon::wire::DecodeError>) -> Refusal {
    match reason {
        CodecError::Value(error) => Refusal::GarbageArguments(error),
        CodecError::Fault(CodecFault::HoldsNul) => Refusal::InvalidArguments(reason.to_string()),
        CodecError::Null(_) | CodecError::Fault(_) => {
            Refusal::SystemError(format!("the arguments cannot be decoded: {reason}"))
        }
    }
}

impl Service for CService {
    fn program(&self) -> u32 {
        self.lean.program
    }

    fn version(&self) -> u32 {
        self.lean.version
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
        let decode = |message: &CMessage, value| {
            // SAFETY: the value is room for what the message describes, and zero.
            unsafe { codec::decode_xdr(arguments, message, value) }.map_err(unread)
        };
        self.execute(call, decode, result)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for CService {
    fn interface(&self) -> Arc<Interface> {
        Arc::clone(&self.lean)
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let decode = |message: &CMessage, value| {
            // SAFETY: the value is room for what the message describes, and zero.
            unsafe { codec::decode_lean(&mut arguments, message, value) }.map_err(unread)
        };
        self.execute(call, decode, result)
    }

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        self.execute_streamed(call, arguments, streams, result)
    }
}
