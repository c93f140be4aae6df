//! `tenon_stream`: the items of a call with streams, at the client and in its handler.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon::lean::CallStreams;
use tenon::{
    CallError, ItemReader, ItemWriter, Protocol, ServedStreams, UntypedCall, UntypedStreams,
};

use super::channel::{CChannel, CallArguments, NO_PROCEDURE, ResultSlot, opened};
use super::codec;
use super::error::{CError, done, told};
use super::fork::ForkGeneration;
use super::interface::list;
use super::types::{CMessage, CStreamProcedure};
use crate::report::ApiError;

/// `tenon_stream`.
pub struct CStream {
    /// At the client, the call that was made; `None` in a handler.
    call: Option<ClientCall>,
    outgoing: Mutex<OutgoingItems>,
    incoming: Mutex<IncomingItems>,
    /// Bytes that an item which is sent may have.
    send_max: usize,
    generation: ForkGeneration,
}

/// A call as its client has it.
struct ClientCall {
    call: UntypedCall,
    /// The result, unless that is a stream.
    result: Option<&'static CMessage>,
    result_is_stream: bool,
    is_fetched: AtomicBool,
}

/// The type of the items of a stream.
#[derive(Clone, Copy)]
struct StreamItem {
    message: &'static CMessage,
    /// Bytes that an item may have if items are bytes; 0 if they are something else.
    bytes_max: u32,
}

/// The stream that is sent.
struct OutgoingItems {
    /// `None` if there is no such stream.
    item: Option<StreamItem>,
    /// `None` once it is finished.
    writer: Option<ItemWriter<()>>,
}

/// The stream that is received.
struct IncomingItems {
    /// `None` if there is no such stream.
    item: Option<StreamItem>,
    /// `None` once a handler has returned.
    reader: Option<ItemReader<()>>,
}

// Several threads use a stream.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<CStream>();
};

const NO_STREAM: ApiError = ApiError::Caller("the stream is NULL");
const NO_ITEM: ApiError = ApiError::Caller("the item is NULL");
const NOTHING_SENT: ApiError = ApiError::Caller("no items are sent in this direction");
const NOTHING_RECEIVED: ApiError = ApiError::Caller("no items are received in this direction");
const FINISHED: ApiError = ApiError::Caller("the stream is finished: no items follow");
const NO_BYTES: ApiError = ApiError::Caller("the items of the stream are not opaque<>");
const BYTES_LEFT: ApiError =
    ApiError::Caller("an item was read in part: tenon_stream_read has its other bytes");
const NO_RESULT: ApiError =
    ApiError::Caller("the result is a stream, or the stream is that of a handler");
const FETCHED: ApiError = ApiError::Caller("the result was waited for already");

impl CStreamProcedure {
    /// Returns which streams it has.
    pub(super) fn streams(&self) -> CallStreams {
        CallStreams {
            argument: !self.argument_item.is_null(),
            result: !self.result_item.is_null(),
        }
    }

    /// # Safety
    /// It is complete, as `tenon.h` says, and constant data of the program's.
    unsafe fn argument(&self) -> Option<StreamItem> {
        // SAFETY: the caller's promise.
        let message = unsafe { self.argument_item.as_ref() }?;
        let bytes_max = self.argument_bytes;
        Some(StreamItem { message, bytes_max })
    }

    /// # Safety
    /// As [`argument`](Self::argument).
    unsafe fn result(&self) -> Option<StreamItem> {
        // SAFETY: the caller's promise.
        let message = unsafe { self.result_item.as_ref() }?;
        let bytes_max = self.result_bytes;
        Some(StreamItem { message, bytes_max })
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CStream {
    fn new(
        (call, send_max): (Option<ClientCall>, usize),
        (sent, writer): (Option<StreamItem>, Option<ItemWriter<()>>),
        (received, reader): (Option<StreamItem>, Option<ItemReader<()>>),
    ) -> Self {
        Self {
            call,
            outgoing: Mutex::new(OutgoingItems { item: sent, writer }),
            incoming: Mutex::new(IncomingItems {
                item: received,
                reader,
            }),
            send_max,
            generation: ForkGeneration::now(),
        }
    }

    /// The streams of a call that was made.
    ///
    /// # Safety
    /// The procedure is complete, as `tenon.h` says, and constant data of the program's.
    unsafe fn of_client(
        procedure: &CStreamProcedure,
        streams: UntypedStreams,
        send_max: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        let (sent, received, result) = unsafe {
            let result = procedure.result.as_ref();
            (procedure.argument(), procedure.result(), result)
        };
        let call = ClientCall {
            call: streams.call,
            result,
            result_is_stream: received.is_some(),
            is_fetched: AtomicBool::new(false),
        };
        Self::new(
            (Some(call), send_max),
            (sent, streams.writer),
            (received, streams.reader),
        )
    }

    /// The streams of a call that is carried out.
    ///
    /// # Safety
    /// As [`of_client`](Self::of_client).
    pub(super) unsafe fn of_handler(
        procedure: &CStreamProcedure,
        streams: &ServedStreams,
        send_max: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        let (received, sent) = unsafe { (procedure.argument(), procedure.result()) };
        let writer = sent.map(|_| ItemWriter::of_handler(streams, |_, _| Ok(())));
        let reader = received.map(|_| ItemReader::of_handler(streams, |_| Ok(())));
        Self::new((None, send_max), (sent, writer), (received, reader))
    }

    /// Takes an item to be sent, with others if `waits`.
    ///
    /// # Safety
    /// It is NULL or an item of the stream.
    unsafe fn send(&self, item: *const c_void, waits: bool) -> Result<(), ApiError> {
        let mut outgoing = lock(&self.outgoing);
        let (StreamItem { message, .. }, writer) = outgoing.parts()?;
        if item.is_null() {
            return Err(NO_ITEM);
        }
        let (mut unsent, limit) = (None, self.send_max);
        let fed = writer.feed_with(|out| {
            // SAFETY: the caller's promise.
            unsafe { codec::encode(out, message, item, limit) }.map_err(|reason| {
                let error = reason.encode_error();
                unsent = Some(reason);
                error
            })
        });
        match (fed, unsent) {
            (Ok(()), _) if waits => Ok(()),
            (Ok(()), _) => Ok(writer.flush()?),
            (Err(_), Some(reason)) => Err(ApiError::SentItem(reason)),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Sends bytes, in as many items as they need.
    fn write(&self, bytes: &[u8]) -> Result<(), ApiError> {
        let mut outgoing = lock(&self.outgoing);
        let (StreamItem { bytes_max, .. }, writer) = outgoing.parts()?;
        if bytes_max == 0 {
            return Err(NO_BYTES);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let fed = writer.feed_bytes(rest, bytes_max)?;
            rest = &rest[fed..];
        }
        Ok(writer.flush()?)
    }

    fn flush(&self) -> Result<(), ApiError> {
        let mut outgoing = lock(&self.outgoing);
        let (_, writer) = outgoing.parts()?;
        Ok(writer.flush()?)
    }

    /// Says that all items were sent.
    fn finish(&self) -> Result<(), ApiError> {
        let mut outgoing = lock(&self.outgoing);
        outgoing.parts()?;
        outgoing.writer.take().map_or(Ok(()), ItemWriter::finish)?;
        Ok(())
    }

    /// Says so unless it was said. An answer that has come before is found by the wait for it.
    fn finish_for_result(&self) -> Result<(), ApiError> {
        let writer = lock(&self.outgoing).writer.take();
        match writer.map_or(Ok(()), ItemWriter::finish) {
            Ok(()) | Err(CallError::StreamClosed) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for an item, and puts it where `item` leads. False: there are no more.
    ///
    /// # Safety
    /// It is NULL or room for an item of the stream.
    unsafe fn receive(&self, item: *mut c_void) -> Result<bool, ApiError> {
        let mut incoming = lock(&self.incoming);
        let (StreamItem { message, .. }, reader) = incoming.parts()?;
        // SAFETY: the caller's promise. First of all, as it is zero however this ends.
        let place = unsafe { ResultSlot::with(Some(message), item) }.map_err(|_| NO_ITEM)?;
        if reader.has_bytes_left() {
            return Err(BYTES_LEFT);
        }
        let mut unread = None;
        let received = reader.next_with(|input| {
            place.decode(&mut unread, |message, value| {
                // SAFETY: the place has room for what the message describes, and is zero.
                unsafe { codec::decode_lean(input, message, value) }
            })
        });
        match (received, unread) {
            (Ok(received), _) => Ok(received.is_some()),
            (Err(_), Some(reason)) => Err(ApiError::ItemMessage(reason)),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Waits for bytes, and puts as many of them where `to` leads as there is room for. Returns how many; 0 is the end.
    ///
    /// # Safety
    /// There is room for so many.
    unsafe fn read(&self, to: *mut u8, room: usize) -> Result<usize, ApiError> {
        let mut incoming = lock(&self.incoming);
        let (StreamItem { bytes_max, .. }, reader) = incoming.parts()?;
        if bytes_max == 0 {
            return Err(NO_BYTES);
        }
        if room == 0 {
            return Ok(0);
        }
        let bytes = reader.fill_bytes(bytes_max)?;
        let length = bytes.len().min(room);
        // SAFETY: the caller's promise, and the memory is the program's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, length) };
        reader.consume_bytes(length);
        Ok(length)
    }

    /// Waits for the result of a call of which it is no stream.
    ///
    /// # Safety
    /// The result is NULL or room for what the procedure returns.
    unsafe fn result(&self, result: *mut c_void) -> Result<(), ApiError> {
        let call = self.call.as_ref().filter(|call| !call.result_is_stream);
        let call = call.ok_or(NO_RESULT)?;
        // SAFETY: the caller's promise.
        let place = unsafe { ResultSlot::with(call.result, result) }?;
        self.finish_for_result()?;
        if call.is_fetched.swap(true, Ordering::Relaxed) {
            return Err(FETCHED);
        }
        let mut unread = None;
        let waited = call.call.wait_with(|input| {
            place.decode(&mut unread, |message, value| {
                // SAFETY: the place has room for what the message describes, and is zero.
                unsafe { codec::decode_lean(input, message, value) }
            })
        });
        match (waited, unread) {
            (Err(_), Some(reason)) => Err(ApiError::Result(reason)),
            (waited, _) => Ok(waited?),
        }
    }

    /// Sends what was fed, and lets go of the streams of a handler that has returned.
    pub(super) fn end(&self) -> Result<(), CallError> {
        lock(&self.incoming).reader = None;
        match lock(&self.outgoing).writer.take() {
            Some(writer) => writer.finish(),
            None => Ok(()),
        }
    }
}

impl OutgoingItems {
    fn parts(&mut self) -> Result<(StreamItem, &mut ItemWriter<()>), ApiError> {
        let item = self.item.ok_or(NOTHING_SENT)?;
        Ok((item, self.writer.as_mut().ok_or(FINISHED)?))
    }
}

impl IncomingItems {
    fn parts(&mut self) -> Result<(StreamItem, &mut ItemReader<()>), ApiError> {
        let item = self.item.ok_or(NOTHING_RECEIVED)?;
        let reader = self.reader.as_mut().ok_or(CallError::StreamClosed)?;
        Ok((item, reader))
    }
}

/// # Safety
/// It is NULL or leads to a stream that is open as long as `'s`.
unsafe fn known<'s>(stream: *const CStream) -> Result<&'s CStream, ApiError> {
    // SAFETY: the caller's promise.
    let stream = unsafe { stream.as_ref() }.ok_or(NO_STREAM)?;
    stream.generation.check()?;
    Ok(stream)
}

/// `tenon_stream_open`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_open(
    channel: *mut CChannel,
    procedure: *const CStreamProcedure,
    arguments: *const c_void,
    error: *mut CError,
) -> *mut CStream {
    let open = || {
        // SAFETY: the caller's promises are those of `tenon.h`; procedures are constant data.
        unsafe {
            let procedure: &'static CStreamProcedure = procedure.as_ref().ok_or(NO_PROCEDURE)?;
            let arguments = CallArguments::with(procedure.arguments.as_ref(), arguments)?;
            let channel = opened(channel)?;
            let streams = channel.open(procedure, arguments)?;
            let stream = CStream::of_client(procedure, streams, channel.send_max());
            Ok(Box::into_raw(Box::new(stream)))
        }
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, open) }.unwrap_or(ptr::null_mut())
}

impl CChannel {
    fn open(
        &self,
        procedure: &CStreamProcedure,
        arguments: CallArguments<'_>,
    ) -> Result<UntypedStreams, ApiError> {
        if self.client.protocol() == Protocol::Onc {
            let reason = "ONC RPC has none; connect to lean+tcp:// or another lean address";
            return Err(CallError::NoStreams { reason }.into());
        }
        let mut unsent = None;
        let limit = self.send_max();
        let streams = procedure.streams();
        let opened = self.view().lean().open(procedure.number, streams, |out| {
            arguments.encode(out, limit, &mut unsent)
        });
        match (opened, unsent) {
            (Err(_), Some(reason)) => Err(ApiError::Arguments(reason)),
            (opened, _) => Ok(opened?),
        }
    }
}

/// `tenon_stream_send`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_send(
    stream: *mut CStream,
    item: *const c_void,
    error: *mut CError,
) -> bool {
    // SAFETY: the stream is NULL or open, and the item NULL or one of its items.
    let send = || unsafe { known(stream)?.send(item, false) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, send) }.is_some()
}

/// `tenon_stream_feed`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_feed(
    stream: *mut CStream,
    item: *const c_void,
    error: *mut CError,
) -> bool {
    // SAFETY: the stream is NULL or open, and the item NULL or one of its items.
    let feed = || unsafe { known(stream)?.send(item, true) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, feed) }.is_some()
}

/// `tenon_stream_flush`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_flush(stream: *mut CStream, error: *mut CError) -> bool {
    // SAFETY: the stream is NULL or open.
    let flush = || unsafe { known(stream) }?.flush();
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, flush) }.is_some()
}

/// `tenon_stream_write`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_write(
    stream: *mut CStream,
    buffer: *const c_void,
    size: usize,
    error: *mut CError,
) -> bool {
    // SAFETY: the stream is NULL or open, and the buffer NULL or so many bytes.
    let write = || unsafe { known(stream)?.write(list(buffer.cast(), size)) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, write) }.is_some()
}

/// `tenon_stream_finish`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_finish(stream: *mut CStream, error: *mut CError) -> bool {
    // SAFETY: the stream is NULL or open.
    let finish = || unsafe { known(stream) }?.finish();
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, finish) }.is_some()
}

/// `tenon_stream_receive`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_receive(
    stream: *mut CStream,
    item: *mut c_void,
    error: *mut CError,
) -> c_int {
    // SAFETY: the stream is NULL or open, and the item NULL or room for one of its items.
    let receive = || unsafe { known(stream)?.receive(item) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, receive) }.map_or(-1, c_int::from)
}

/// `tenon_stream_read`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_read(
    stream: *mut CStream,
    buffer: *mut c_void,
    size: usize,
    error: *mut CError,
) -> i64 {
    let read = || {
        // SAFETY: it is NULL or open.
        let stream = unsafe { known(stream) }?;
        if buffer.is_null() && size > 0 {
            return Err(ApiError::Caller("the buffer is NULL"));
        }
        // SAFETY: there is room for so many bytes.
        unsafe { stream.read(buffer.cast(), size) }
    };
    // SAFETY: the error is NULL or the caller's own.
    let read = unsafe { told(error, read) };
    // No buffer has more bytes than that.
    read.map_or(-1, |read| i64::try_from(read).unwrap_or(i64::MAX))
}

/// `tenon_stream_result`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_result(
    stream: *mut CStream,
    result: *mut c_void,
    error: *mut CError,
) -> bool {
    // SAFETY: the stream is NULL or open, and the result NULL or room for that of the procedure.
    let wait = || unsafe { known(stream)?.result(result) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, wait) }.is_some()
}

/// `tenon_stream_cancel`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_cancel(stream: *mut CStream) {
    done((), || {
        // SAFETY: it is NULL or open.
        let stream = unsafe { known(stream) };
        if let Ok(CStream {
            call: Some(call), ..
        }) = stream
        {
            call.call.cancel();
        }
    });
}

/// `tenon_stream_close`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_stream_close(stream: *mut CStream) {
    // SAFETY: it is NULL or a stream.
    let is_of_client = unsafe { stream.as_ref() }.is_some_and(|stream| stream.call.is_some());
    if !is_of_client {
        // That of a handler is the library's.
        return;
    }
    // SAFETY: it is one that was handed out, and the caller uses it no more.
    let stream = unsafe { Box::from_raw(stream) };
    if stream.generation.is_current() {
        done((), || drop(stream));
    } else {
        std::mem::forget(stream);
    }
}
