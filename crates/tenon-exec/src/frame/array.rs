//! Messages that are an array and no more. They need neither a walk nor code of their own: one function moves
//! such an array, which the interpreter and machine code enter alike. It says only yes or no; if it refuses an array,
//! the interpreter walks over the message and finds the reason.

use std::mem::MaybeUninit;
use std::{ptr, slice};

use tenon_wire::kernels::{self, Bits, Blittable};
use tenon_wire::{Buffer, Decoder, Encoder, Representation};

use super::FrameStorage;
use crate::layout::CountedArray;

/// Bytes of a count.
const COUNT: usize = size_of::<u32>();

/// `(storage, at, end, bound, stride, buffer) -> at`: appends an array to the spare room of a buffer, from `at` to
/// `end`. Null if it is refused.
pub(crate) type ArrayEncodeFn =
    unsafe extern "C" fn(*const FrameStorage, *mut u8, *mut u8, u64, u64, *mut Buffer) -> *mut u8;

/// `(storage, at, end, bound, stride, memory_left)`: reads an array from the bytes from `at` to `end`, and forgets
/// what was read before.
pub(crate) type ArrayDecodeFn =
    unsafe extern "C" fn(*mut FrameStorage, *const u8, *const u8, u64, u64, u64) -> DecodeOutcome;

/// Position that a decoder has reached, null if it refuses; and the memory that is still paid for.
#[repr(C)]
pub(crate) struct DecodeOutcome {
    pub behind: *const u8,
    pub memory_left: u64,
}

/// Writable memory: the address of the next byte, and the end.
#[repr(C)]
pub(crate) struct WriteRange {
    pub at: *mut u8,
    pub end: *mut u8,
}

/// An array that is a whole message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayMessage {
    /// Set if the bytes of numbers are swapped.
    pub swapped: bool,
    /// Bytes of each of its numbers; 1 will do if they are not swapped.
    pub unit: u32,
    /// Bytes of each of its items.
    pub stride: u32,
    /// Most items that there may be.
    pub bound: u32,
}

/// Functions that move a message which is an array, if one kernel can move it; chosen once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArrayCodec {
    put: Option<ArrayEncodeFn>,
    /// By whether the decoder takes numbers to have the order of bytes that this processor does not have.
    get: [Option<ArrayDecodeFn>; 2],
    stride: u32,
    bound: u32,
}

impl WriteRange {
    /// Makes room in `out` for `bytes` more behind `at`, which lies in its spare room. What was written
    /// before `at` is kept.
    pub fn grown(out: &mut Buffer, at: *mut u8, bytes: usize) -> Self {
        let grow = |out: &mut Buffer| {
            out.spare(bytes);
        };
        Self::behind(out, at, grow).0
    }

    /// As [`grown`](Self::grown); `None` if there is no memory.
    #[cfg(feature = "jit")]
    pub fn try_grown(out: &mut Buffer, at: *mut u8, bytes: usize) -> Option<Self> {
        let (room, is_there) = Self::behind(out, at, |out| out.try_reserve(bytes));
        is_there.then_some(room)
    }

    /// Has `grow` make room in `out` behind `at`, and returns where that lies then.
    #[inline(always)]
    fn behind<T>(out: &mut Buffer, at: *mut u8, grow: impl FnOnce(&mut Buffer) -> T) -> (Self, T) {
        let first = out.spare(0).as_mut_ptr();
        let written = at as usize - first as usize;
        let start = out.len();
        out.advance(written);
        let grown = grow(out);
        out.truncate(start);
        let room = out.spare(0).as_mut_ptr_range();
        let room = Self {
            at: room.start.wrapping_add(written),
            end: room.end,
        };
        (room, grown)
    }
}

/// A function for numbers of so many bytes.
macro_rules! by_unit {
    ($function:ident as $type:ty, $unit:expr, $swapped:expr, $plain:literal) => {{
        let function: $type = match ($unit, $swapped) {
            (1, false) => $function::<u8, false, $plain>,
            (1, true) => $function::<u8, true, $plain>,
            (2, false) => $function::<u16, false, $plain>,
            (2, true) => $function::<u16, true, $plain>,
            (4, false) => $function::<u32, false, $plain>,
            (4, true) => $function::<u32, true, $plain>,
            (8, false) => $function::<u64, false, $plain>,
            (8, true) => $function::<u64, true, $plain>,
            _ => return None,
        };
        Some(function)
    }};
}

impl ArrayMessage {
    /// Appends it.
    pub fn put(self) -> Option<ArrayEncodeFn> {
        self.put_plain().or_else(|| self.put_any())
    }

    /// Reads it.
    pub fn get(self) -> Option<ArrayDecodeFn> {
        self.get_plain().or_else(|| self.get_any())
    }

    /// Appends it, if it is an unbounded array of numbers; the function does not use bound and stride.
    pub fn put_plain(self) -> Option<ArrayEncodeFn> {
        by_unit!(
            put_array as ArrayEncodeFn,
            self.plain()?,
            self.swapped,
            true
        )
    }

    /// Reads it, as above.
    pub fn get_plain(self) -> Option<ArrayDecodeFn> {
        by_unit!(
            get_array as ArrayDecodeFn,
            self.plain()?,
            self.swapped,
            true
        )
    }

    fn put_any(self) -> Option<ArrayEncodeFn> {
        by_unit!(put_array as ArrayEncodeFn, self.unit, self.swapped, false)
    }

    fn get_any(self) -> Option<ArrayDecodeFn> {
        by_unit!(get_array as ArrayDecodeFn, self.unit, self.swapped, false)
    }

    /// The bytes of an item, if each is a number and there may be any number of them.
    fn plain(self) -> Option<u32> {
        let is_number = !self.swapped || self.unit == self.stride;
        (is_number && self.bound == u32::MAX).then_some(self.stride)
    }
}

impl ArrayCodec {
    /// Of `bound` items of `stride` bytes. Each consists of numbers of `unit` bytes, if all have as many. Written
    /// they are swapped if `sent`, read if `received` says so, by what the decoder takes them for.
    pub fn of(
        (stride, bound): (u32, u32),
        unit: Option<u32>,
        sent: bool,
        received: [bool; 2],
    ) -> Self {
        let whole = |swapped| {
            let unit = if swapped { unit? } else { 1 };
            Some(ArrayMessage {
                swapped,
                unit,
                stride,
                bound,
            })
        };
        Self {
            put: whole(sent).and_then(ArrayMessage::put),
            get: received.map(|swapped| whole(swapped).and_then(ArrayMessage::get)),
            stride,
            bound,
        }
    }

    /// Appends the message at `from`, if it is an array. Returns whether that was done; if not, nothing is appended.
    ///
    /// # Safety
    /// It lies there.
    #[inline(always)]
    pub unsafe fn encode<R: Representation>(
        &self,
        from: &FrameStorage,
        out: &mut Encoder<'_, R>,
    ) -> bool {
        let Some(put) = self.put else {
            return false;
        };
        let (buffer, _) = out.parts();
        let room = buffer.spare(0).as_mut_ptr_range();
        let (bound, stride) = (self.bound.into(), self.stride.into());
        // SAFETY: the caller's promise; the room is that of the buffer, which is borrowed exclusively.
        let behind = unsafe { put(from, room.start, room.end, bound, stride, buffer) };
        if behind.is_null() {
            return false;
        }
        buffer.advance_to(behind);
        true
    }

    /// Reads the message to `to`, if it is an array. Returns whether that was done; if not, nothing is read and there
    /// is nothing at `to`.
    ///
    /// # Safety
    /// There is room for it.
    #[inline(always)]
    pub unsafe fn decode<R: Representation>(
        &self,
        to: &mut FrameStorage,
        input: &mut Decoder<'_, R>,
    ) -> bool {
        let Some(get) = self.get[usize::from(R::SWAPPED)] else {
            return false;
        };
        let (rest, paid) = (input.rest().as_ptr_range(), input.memory_left() as u64);
        let (bound, stride) = (self.bound.into(), self.stride.into());
        // SAFETY: the caller's promise; the bytes are there.
        let read = unsafe { get(to, rest.start, rest.end, bound, stride, paid) };
        if read.behind.is_null() {
            return false;
        }
        let left = rest.end as usize - read.behind as usize;
        input.catch_up(left, read.memory_left as usize);
        true
    }
}

/// Between the order of the wire and the processor's.
#[inline(always)]
pub(crate) fn ordered<const SWAPPED: bool>(count: u32) -> u32 {
    match SWAPPED {
        true => count.swap_bytes(),
        false => count,
    }
}

// Safety of all below: the counted array is small, and lies in the storage; when it is appended, the caller promises
// so, and that it points to as many items as it counts. From `at` to `end` bytes can be written, or read.

/// See [`ArrayEncodeFn`]. If `PLAIN`, bound and stride are known, and the arguments are not used.
unsafe extern "C" fn put_array<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    storage: *const FrameStorage,
    at: *mut u8,
    end: *mut u8,
    bound: u64,
    stride: u64,
    out: *mut Buffer,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let CountedArray { count, items } = FrameStorage::small(storage.cast_mut())
            .cast::<CountedArray>()
            .read();
        let stride = if PLAIN {
            size_of::<T>()
        } else {
            stride as usize
        };
        if !PLAIN && u64::from(count) > bound {
            return ptr::null_mut();
        }
        let bytes = count as usize * stride;
        if (end as usize - at as usize) < COUNT + bytes {
            return put_array_growing::<T, SWAPPED, PLAIN>(
                storage,
                at,
                end,
                bound,
                stride as u64,
                out,
            );
        }
        at.cast::<u32>().write_unaligned(ordered::<SWAPPED>(count));
        match SWAPPED && size_of::<T>() > 1 {
            true => {
                let to = slice::from_raw_parts_mut(at.add(COUNT), bytes);
                let count = bytes / size_of::<T>();
                kernels::put(slice::from_raw_parts(items.cast::<T>(), count), to, true)
            }
            false => u8::chosen().run(items, at.add(COUNT), bytes),
        }
    }
}

/// [`put_array`] where there is not enough room yet.
#[cold]
#[inline(never)]
unsafe extern "C" fn put_array_growing<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    storage: *const FrameStorage,
    at: *mut u8,
    _end: *mut u8,
    bound: u64,
    stride: u64,
    out: *mut Buffer,
) -> *mut u8 {
    // SAFETY: as there; the spare room is that of the buffer.
    unsafe {
        let CountedArray { count, .. } = FrameStorage::small(storage.cast_mut())
            .cast::<CountedArray>()
            .read();
        let all = COUNT + count as usize * stride as usize;
        let WriteRange { at, end } = WriteRange::grown(&mut *out, at, all);
        put_array::<T, SWAPPED, PLAIN>(storage, at, end, bound, stride, out)
    }
}

/// See [`ArrayDecodeFn`]. If `PLAIN`, bound and stride are known, and the arguments are not used.
unsafe extern "C" fn get_array<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    storage: *mut FrameStorage,
    at: *const u8,
    end: *const u8,
    bound: u64,
    stride: u64,
    memory_left: u64,
) -> DecodeOutcome {
    let refused = DecodeOutcome {
        behind: ptr::null(),
        memory_left: 0,
    };
    // SAFETY: see above.
    unsafe {
        let left = end as usize - at as usize;
        if left < COUNT {
            return refused;
        }
        let count = ordered::<SWAPPED>(at.cast::<u32>().read_unaligned());
        let stride = if PLAIN { size_of::<T>() as u64 } else { stride };
        // Both are less than 4 GiB.
        let bytes = u64::from(count) * stride;
        // The value itself, and what it points to.
        let price = size_of::<CountedArray>() as u64 + bytes;
        if bytes > (left - COUNT) as u64 || price > memory_left {
            return refused;
        }
        if !PLAIN && u64::from(count) > bound {
            return refused;
        }
        let bytes = bytes as usize;
        // Written before there is memory for the items: so it need not be kept meanwhile. A value
        // that is refused is not read.
        let to = FrameStorage::small(storage).cast::<CountedArray>();
        (*to).count = count;
        let items = FrameStorage::arena(storage).take_only(bytes).as_ptr();
        (*to).items = items;
        let from = slice::from_raw_parts(at.add(COUNT), bytes);
        let count = bytes / size_of::<T>();
        let to = slice::from_raw_parts_mut(items.cast::<MaybeUninit<T>>(), count);
        kernels::get_into(from, to, SWAPPED);
        DecodeOutcome {
            behind: at.add(COUNT + bytes),
            memory_left: memory_left - price,
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_plan::Representation as OfPlans;
    use tenon_schema::{Type, TypeId};
    use tenon_wire::{DecodeMode, Lean, Limits, Native, Swapped, Xdr};

    use super::*;
    use crate::frame::interp::{self, DecodeSource, EncodeSink, WholeNumberMover};
    use crate::random::Random;
    use crate::{Frame, Interface, Message};

    /// Messages that are arrays, but for the last; before numbers of 8 bytes lean has a hole.
    const TYPES: &str = "
        struct point { int x; int y; };
        typedef int ints<>; typedef unsigned hyper longs<5>; typedef float few<3>; typedef point points<4>;
        typedef bool flags<>;";

    /// Encodes the value of a frame by the function for arrays, and by the interpreter.
    fn encoded<R: Representation>(frame: &Frame<'_>) -> [Option<Vec<u8>>; 2] {
        let (program, entry) = frame.message().program();
        let (mut at_once, mut walked) = (Buffer::default(), Buffer::default());
        // SAFETY: the value of the message lies there.
        let done = unsafe {
            let mut out = Encoder::<R>::over(&mut at_once);
            let buffer = &mut walked;
            let (start, depth_left) = (0, out.depth_left());
            let sink = EncodeSink {
                buffer,
                start,
                depth_left,
                limit: interp::NO_LIMIT,
            };
            let by_steps = interp::encode::<WholeNumberMover>(program, entry, frame.as_ptr(), sink);
            [
                entry.array.encode(&frame.storage, &mut out),
                by_steps.is_ok(),
            ]
        };
        let bytes = [at_once, walked].map(|buffer| buffer.as_slice().to_vec());
        let [one, other] = bytes;
        [done[0].then_some(one), done[1].then_some(other)]
    }

    /// Bytes and memory budget that are left, and the value that was read.
    type Left = Option<(usize, usize, crate::Value)>;

    /// Decodes bytes that pay for so much memory, in both ways.
    fn decoded<R: Representation>(message: Message<'_>, bytes: &[u8], paid: usize) -> [Left; 2] {
        let (program, entry) = message.program();
        let limits = Limits {
            memory_per_byte: 0,
            memory_base: paid,
            ..Limits::default()
        };
        let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, limits);
        let (mut at_once, mut walked) = (Frame::room(message), Frame::room(message));
        let source = DecodeSource::of(&input, program);
        let (root, arena) = walked.storage.parts();
        // SAFETY: there is room for a value of the message.
        let (done, by_steps) = unsafe {
            let by_steps =
                interp::decode::<WholeNumberMover, _>(program, entry, root, arena, source);
            (
                entry.array.decode(&mut at_once.storage, &mut input),
                by_steps,
            )
        };
        let left = (input.left(), input.memory_left());
        [
            done.then(|| (left.0, left.1, at_once.value())),
            by_steps.ok().map(|left| (left.0, left.1, walked.value())),
        ]
    }

    /// `are_arrays` says of which of the types after the first.
    fn as_the_walk<R: Representation>(representation: OfPlans, are_arrays: [bool; 5]) {
        let parsed = tenon_idl::parse_text("test.x", TYPES, &Default::default());
        let schema = parsed.schema.expect("an interface");
        let interface = Interface::with_representation(schema, representation).expect("plans");
        for (id, is_array) in (1..).map(TypeId).zip(are_arrays) {
            let message = interface.message(id).expect("a layout");
            for seed in 0..8 {
                let ty = Type::Named(id);
                let value = Random::new(seed).value(interface.schema(), &ty, 9);
                let frame = message.frame(&value).expect("a value of the type");
                let [at_once, walked] = encoded::<R>(&frame);
                assert_eq!(at_once.is_some(), is_array, "{value:?}");
                let bytes = walked.expect("a good value");
                assert!(at_once.is_none_or(|at_once| at_once == bytes), "{value:?}");
                if is_array {
                    reads_as_the_walk::<R>(message, &bytes);
                }
            }
        }
    }

    /// Of all beginnings of a message, of messages that say that there is more, and with too little memory.
    fn reads_as_the_walk<R: Representation>(message: Message<'_>, bytes: &[u8]) {
        for length in 0..=bytes.len() {
            let [at_once, walked] = decoded::<R>(message, &bytes[..length], 1 << 10);
            assert_eq!(at_once, walked, "{length} of {bytes:?}");
        }
        for paid in 0..bytes.len() + 20 {
            let [at_once, walked] = decoded::<R>(message, bytes, paid);
            assert_eq!(at_once, walked, "{paid} for {bytes:?}");
        }
        for count in [1, 4, 6, 1 << 20, u32::MAX] {
            for counted in [count, count.swap_bytes()] {
                let more = [&counted.to_ne_bytes(), &bytes[4..], &[7; 60]].concat();
                let [at_once, walked] = decoded::<R>(message, &more, 1 << 10);
                assert_eq!(at_once, walked, "{more:?}");
            }
        }
    }

    #[test]
    fn arrays_are_moved_as_the_walk_moves_them() {
        as_the_walk::<Xdr>(OfPlans::XDR, [true, true, true, true, false]);
        let lean = [true, false, true, true, false];
        as_the_walk::<Lean<Native>>(OfPlans::LEAN, lean);
        let order = match cfg!(target_endian = "little") {
            true => tenon_plan::Order::Big,
            false => tenon_plan::Order::Little,
        };
        let swapped = OfPlans {
            order,
            ..OfPlans::LEAN
        };
        as_the_walk::<Lean<Swapped>>(swapped, lean);
    }
}
