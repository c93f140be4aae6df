//! Procedures with streams of a service in C.

use std::ffi::c_void;

use tenon::wire::{Encoder, Lean};
use tenon::{CallInfo, LeanInput, Refusal, ServedStreams};

use super::codec;
use super::interface::list;
use super::request::CRequest;
use super::scratch::with_room;
use super::service::{CService, is_over_aligned, or_null, unread, unsent};
use super::stream::CStream;
use super::types::{CMessage, CStreamProcedure};
use super::value::OwnedValue;
use crate::report::ApiError;

/// `tenon_stream_handler`.
pub type StreamHandler = unsafe extern "C" fn(
    methods: *const c_void,
    context: *mut c_void,
    arguments: *mut c_void,
    stream: *mut CStream,
    result: *mut c_void,
    request: *mut CRequest<'_>,
) -> bool;

/// `tenon_stream_service`.
#[repr(C)]
#[derive(Debug)]
pub struct CStreamService {
    /// The procedures with streams.
    pub procedures: *const CStreamProcedure,
    /// A handler for each.
    pub handlers: *const Option<StreamHandler>,
    /// The number of both.
    pub count: usize,
}

/// A procedure with streams that has a handler.
pub(super) struct StreamedProcedure {
    procedure: &'static CStreamProcedure,
    arguments: Option<&'static CMessage>,
    result: Option<&'static CMessage>,
    handler: StreamHandler,
}

impl CStreamService {
    /// Returns the procedures that have handlers.
    ///
    /// # Safety
    /// It is complete, as `tenon.h` says; procedures and their messages are constant data of the program's.
    pub(super) unsafe fn procedures(&self) -> Result<Vec<StreamedProcedure>, ApiError> {
        // SAFETY: the caller's promise.
        let (procedures, handlers) = unsafe {
            let procedures = list::<CStreamProcedure>(self.procedures, self.count);
            (procedures, list(self.handlers, self.count))
        };
        if procedures.len() < self.count || handlers.len() < self.count {
            return Err(ApiError::Caller(
                "the procedures with streams or their handlers are NULL",
            ));
        }
        let mut served = Vec::new();
        for (procedure, handler) in procedures.iter().zip(handlers) {
            if !procedure.streams().any() {
                return Err(ApiError::Caller(
                    "a procedure with streams has neither: both of its items are NULL",
                ));
            }
            // SAFETY: the caller's promise.
            let (arguments, result): (Option<&'static CMessage>, Option<&'static CMessage>) =
                unsafe { (procedure.arguments.as_ref(), procedure.result.as_ref()) };
            if arguments.into_iter().chain(result).any(is_over_aligned) {
                return Err(ApiError::Caller(
                    "a message is aligned to more than 16 bytes: a server has no such memory",
                ));
            }
            served.extend(handler.map(|handler| StreamedProcedure {
                procedure,
                arguments,
                result,
                handler,
            }));
        }
        Ok(served)
    }
}

impl CService {
    /// Carries out a call with streams.
    pub(super) fn execute_streamed(
        &self,
        call: &CallInfo<'_>,
        mut input: LeanInput<'_>,
        streams: &ServedStreams,
        out: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let mut procedures = self.streamed.iter();
        let served = procedures.find(|served| served.procedure.number == call.procedure());
        let served = served.ok_or(Refusal::ProcedureUnavailable)?;
        streams.expect(served.procedure.streams())?;
        let sizes = [served.arguments, served.result].map(|message| message.map_or(0, |m| m.size));
        let outcome = with_room(sizes[0], sizes[1], |arguments, result| {
            // SAFETY: there is so much room as long as this runs, and what lies there is a value of the
            // message's type, or zero, whenever it goes.
            let taken = unsafe { OwnedValue::zeroed(served.arguments, arguments) };
            // SAFETY: the same.
            let returned = unsafe { OwnedValue::zeroed(served.result, result) };
            if let Some(message) = served.arguments {
                // SAFETY: the value is room for what the message describes, and zero.
                unsafe { codec::decode_lean(&mut input, message, arguments) }.map_err(unread)?;
            }
            let limit = self.limits.send_max();
            let mut request = CRequest::of(call, limit);
            // SAFETY: the procedure is complete, and constant data.
            let mut stream = unsafe { CStream::of_handler(served.procedure, streams, limit) };
            let place = or_null(&served.arguments, arguments);
            let (to, methods, context) =
                (or_null(&served.result, result), self.methods, self.context);
            // SAFETY: the handler is one for such arguments, such streams and such a result.
            let handled = request.run(|request| unsafe {
                (served.handler)(methods, context, place, &raw mut stream, to, request)
            });
            // What was fed before a failure is sent before it is told.
            let ended = stream.end();
            handled?;
            ended?;
            let sent = match served.result {
                // SAFETY: the result is a value of this type.
                Some(message) => unsafe { codec::encode(out, message, result, limit) },
                None => Ok(()),
            };
            if request.keeps_result() {
                returned.keep();
            }
            // Behind the result, which may own what is theirs.
            drop(taken);
            sent.map_err(|reason| unsent(&reason))
        });
        outcome.unwrap_or_else(|| {
            let why = "there is no memory for the arguments and the result";
            Err(Refusal::SystemError(why.to_owned()))
        })
    }
}
