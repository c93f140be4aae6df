//! Machine code of the messages of an interface: entering it, and deciding when it is made.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tenon_plan::{Order, Plans};
use tenon_schema::TypeId;
use tenon_wire::{Buffer, Decoder, Encoder, Representation};

use super::code::InterfaceCode;
use super::given::MarshalDirection;
use crate::Interface;
use crate::frame::array::DecodeOutcome;
use crate::frame::{CSource, CTarget, FrameStorage, MessageId};

/// Number of times that a message is interpreted in one direction before code is made for it, which takes half a
/// millisecond or less: about as long as so many messages of the usual size take to interpret. So a program takes at
/// most twice the time that it could have taken.
const COMPILE_THRESHOLD: u32 = 1000;

/// `(storage, at, end, base, depth_left, buffer) -> at`: appends the value in `storage`, a [`FrameStorage`] or a
/// [`CSource`](crate::frame::CSource), to the spare room of a buffer, from `at` to `end`; positions count from `base`.
/// Null if the value is refused.
type EncodeEntryFn =
    unsafe extern "C" fn(*const u8, *mut u8, *mut u8, *mut u8, u64, *mut Buffer) -> *mut u8;

/// `(storage, at, end, base, modes, memory_left)`: reads a value to `storage`, a [`FrameStorage`] or a
/// [`CTarget`](crate::frame::CTarget), from the bytes from `at` to `end`.
/// `modes` has the levels that are left in its low 32 bits, and above them 1 in strict mode.
type DecodeEntryFn =
    unsafe extern "C" fn(*mut u8, *const u8, *const u8, *const u8, u64, u64) -> DecodeOutcome;

/// The machine code of an interface.
pub(crate) struct MachineCode {
    order: Order,
    /// Owns the code that the entry points lead to.
    code: OnceLock<Option<Arc<InterfaceCode>>>,
}

/// The entry points of the code of one message. They lie with the message, so that no table is searched.
#[derive(Debug, Default)]
pub(crate) struct EntryPoints {
    encode: EntryPoint,
    /// Indexed by whether the byte order of numbers is not that of this processor. If the interface fixes the byte
    /// order, both lead to the same function.
    decode: [EntryPoint; 2],
}

/// The entry point of one function.
#[derive(Debug, Default)]
struct EntryPoint {
    /// Null until it is compiled.
    address: AtomicPtr<u8>,
    /// Number of times that it was missed.
    misses: AtomicU32,
}

/// The time at which missing code is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompileTrigger {
    /// At once.
    Now,
    /// When it was missed [`COMPILE_THRESHOLD`] times.
    Hot,
}

/// Code that appends values of one message. It lives as long as the interface.
pub(crate) struct CompiledEncoder(EncodeEntryFn);

/// Code that reads values of one message. It lives as long as the interface.
pub(crate) struct CompiledDecoder(DecodeEntryFn);

/// The spare room of the buffer of an encoder, and the beginning of its message. It is read before the entry point: the
/// atomic load of that would make the compiler read again what the caller has just written to memory.
pub(crate) struct SpareCapacity {
    at: *mut u8,
    end: *mut u8,
    base: *mut u8,
}

impl SpareCapacity {
    /// Returns that of `out`.
    #[inline(always)]
    pub fn of<R: Representation>(out: &mut Encoder<'_, R>) -> Self {
        let (buffer, start) = out.parts();
        let before = buffer.len() - start;
        let room = buffer.spare(0).as_mut_ptr_range();
        Self {
            at: room.start,
            end: room.end,
            base: room.start.wrapping_sub(before),
        }
    }
}

impl CompiledEncoder {
    /// Appends the value in `from`. Returns whether that was done; if not, nothing is appended.
    ///
    /// # Safety
    /// A value of the message lies in `from`, the interface is alive, and `spare` is that of `out`.
    #[inline(always)]
    pub unsafe fn run<R: Representation>(
        self,
        from: &FrameStorage,
        out: &mut Encoder<'_, R>,
        spare: SpareCapacity,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run_on((&raw const *from).cast(), out, spare) }
    }

    /// [`run`](Self::run) of a value that a program in C holds.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn run_in_c<R: Representation>(
        self,
        from: &CSource,
        out: &mut Encoder<'_, R>,
        spare: SpareCapacity,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run_on((&raw const *from).cast(), out, spare) }
    }

    #[inline(always)]
    unsafe fn run_on<R: Representation>(
        self,
        from: *const u8,
        out: &mut Encoder<'_, R>,
        spare: SpareCapacity,
    ) -> bool {
        let SpareCapacity { at, end, base } = spare;
        let depth = out.depth_left().into();
        let (buffer, _) = out.parts();
        // SAFETY: the caller's promise; the room is that of the buffer, which is borrowed exclusively. The
        // code keeps nothing.
        let behind = unsafe { self.0(from, at, end, base, depth, buffer) };
        if behind.is_null() {
            return false;
        }
        buffer.advance_to(behind);
        true
    }
}

impl CompiledDecoder {
    /// Reads a value to `to`. Returns whether that was done; if not, nothing is read and there is nothing at `to`.
    ///
    /// # Safety
    /// At `to` there is room for a value of the message, and the interface is alive.
    #[inline(always)]
    pub unsafe fn run<R: Representation>(
        self,
        to: &mut FrameStorage,
        input: &mut Decoder<'_, R>,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run_on((&raw mut *to).cast(), input) }
    }

    /// [`run`](Self::run) to where a program in C has room for a value.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn run_in_c<R: Representation>(
        self,
        to: &mut CTarget,
        input: &mut Decoder<'_, R>,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run_on((&raw mut *to).cast(), input) }
    }

    #[inline(always)]
    unsafe fn run_on<R: Representation>(self, to: *mut u8, input: &mut Decoder<'_, R>) -> bool {
        let rest = input.rest().as_ptr_range();
        let base = rest.start.wrapping_sub(input.position());
        let modes = u64::from(input.depth_left()) | u64::from(input.is_strict()) << 32;
        let paid = input.memory_left() as u64;
        // SAFETY: the caller's promise; the bytes are there. The code keeps nothing.
        let read = unsafe { self.0(to, rest.start, rest.end, base, modes, paid) };
        if read.behind.is_null() {
            return false;
        }
        let left = rest.end as usize - read.behind as usize;
        input.catch_up(left, read.memory_left as usize);
        true
    }
}

impl EntryPoints {
    /// The code that appends a value of the message, if there is some.
    #[inline(always)]
    pub fn encoder(&self) -> Option<CompiledEncoder> {
        let entry = self.encode.get()?;
        // SAFETY: entries to encoders are made so, nothing else is stored there, and the interface's
        // machine keeps them.
        Some(CompiledEncoder(unsafe {
            std::mem::transmute::<*mut u8, EncodeEntryFn>(entry)
        }))
    }

    /// As [`encoder`](Self::encoder) of the message `key`; compiled now if `when` says so.
    #[cold]
    pub fn make_encoder(
        &self,
        interface: &Interface,
        key: &MessageId,
        when: CompileTrigger,
    ) -> Option<CompiledEncoder> {
        self.make(
            interface,
            key,
            MarshalDirection::Encode { swapped: false },
            when,
        );
        self.encoder()
    }

    /// The code that reads a value of the message, if there is some. If the byte order is that of the sender, `swapped`
    /// says whether it differs from that of this processor.
    #[inline(always)]
    pub fn decoder(&self, swapped: bool) -> Option<CompiledDecoder> {
        let entry = self.decode[usize::from(swapped)].get()?;
        // SAFETY: as above, entries to decoders.
        Some(CompiledDecoder(unsafe {
            std::mem::transmute::<*mut u8, DecodeEntryFn>(entry)
        }))
    }

    /// As [`decoder`](Self::decoder) of the message `key`; compiled now if `when` says so.
    #[cold]
    pub fn make_decoder(
        &self,
        interface: &Interface,
        key: &MessageId,
        swapped: bool,
        when: CompileTrigger,
    ) -> Option<CompiledDecoder> {
        self.make(interface, key, MarshalDirection::Decode { swapped }, when);
        self.decoder(swapped)
    }

    #[inline(always)]
    fn entry_point(&self, way: MarshalDirection) -> &EntryPoint {
        match way {
            MarshalDirection::Encode { .. } => &self.encode,
            MarshalDirection::Decode { swapped } => &self.decode[usize::from(swapped)],
        }
    }

    /// Compiles an entry, if it is missing and `when` says so.
    fn make(
        &self,
        interface: &Interface,
        key: &MessageId,
        way: MarshalDirection,
        when: CompileTrigger,
    ) {
        let entry_point = self.entry_point(way);
        let is_time = match when {
            _ if entry_point.get().is_some() => false,
            CompileTrigger::Now => true,
            // Once only: if it cannot be made, that takes time.
            CompileTrigger::Hot => {
                entry_point.misses.fetch_add(1, Ordering::Relaxed) == COMPILE_THRESHOLD
            }
        };
        if is_time {
            interface.machine().make(interface, &[(*key, way)]);
        }
    }
}

impl EntryPoint {
    #[inline(always)]
    fn get(&self) -> Option<*mut u8> {
        let entry = self.address.load(Ordering::Acquire);
        (!entry.is_null()).then_some(entry)
    }
}

impl fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl MachineCode {
    /// A machine without code.
    pub fn new(plans: &Plans) -> Self {
        Self {
            order: plans.representation.order,
            code: OnceLock::new(),
        }
    }

    /// Makes the code of every message in both directions. Returns whether that could be done.
    pub fn make_all(&self, interface: &Interface) -> bool {
        let plans = interface.plans();
        let types = (0..plans.types.len() as u32).map(|id| MessageId::Type(TypeId(id)));
        let procedures = 0..plans.procedures.len();
        let procedures =
            procedures.flat_map(|at| [MessageId::Arguments(at), MessageId::Result(at)]);
        let swapped = match self.order {
            Order::Sender => &[false][..],
            Order::Big | Order::Little => &[false, true],
        };
        let decoding = swapped
            .iter()
            .map(|&swapped| MarshalDirection::Decode { swapped });
        let ways = decoding.chain([MarshalDirection::Encode { swapped: false }]);
        let messages = types.chain(procedures);
        let messages = messages.flat_map(|key| ways.clone().map(move |way| (key, way)));
        self.make(interface, &messages.collect::<Vec<_>>())
    }

    fn make(&self, interface: &Interface, messages: &[(MessageId, MarshalDirection)]) -> bool {
        let code = self.code.get_or_init(|| InterfaceCode::of(interface));
        let ways = messages.iter().map(|(key, way)| (*key, self.ordered(*way)));
        let ways: Vec<_> = ways.collect();
        let Some(Ok(made)) = code.as_ref().map(|code| code.make(&ways)) else {
            return false;
        };
        for (message, made) in messages.iter().zip(made) {
            if let Some(entry_point) = entry_point(interface, *message) {
                entry_point
                    .address
                    .store(made.entry.cast_mut(), Ordering::Release);
            }
        }
        true
    }

    /// The direction with the byte order of the interface, if that fixes it.
    fn ordered(&self, way: MarshalDirection) -> MarshalDirection {
        let swapped = match self.order {
            Order::Big => cfg!(target_endian = "little"),
            Order::Little => cfg!(target_endian = "big"),
            Order::Sender => way.swapped(),
        };
        match way {
            MarshalDirection::Encode { .. } => MarshalDirection::Encode { swapped },
            MarshalDirection::Decode { .. } => MarshalDirection::Decode { swapped },
        }
    }
}

fn entry_point(
    interface: &Interface,
    (key, way): (MessageId, MarshalDirection),
) -> Option<&EntryPoint> {
    let resolved = interface.resolved().ok()?;
    Some(resolved.program.codec(key).entry_points.entry_point(way))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::{Frame, Message};

    fn interface(text: &str) -> Interface {
        let parsed = tenon_idl::parse_text("test.x", text, &Default::default());
        Interface::new(parsed.schema.expect("an interface")).expect("types that end")
    }

    /// Returns for both directions whether there is code.
    fn made(message: Message<'_>) -> [bool; 2] {
        let swapped = <tenon_wire::Xdr as Representation>::SWAPPED;
        let ways = [
            MarshalDirection::Encode { swapped: false },
            MarshalDirection::Decode { swapped },
        ];
        ways.map(|way| {
            let entry_point = entry_point(message.interface(), (MessageId::Type(TypeId(0)), way));
            let entry = entry_point
                .expect("a layout")
                .address
                .load(Ordering::Acquire);
            !entry.is_null()
        })
    }

    fn encode(frame: &Frame<'_>) -> Vec<u8> {
        let mut buffer = Buffer::default();
        let done = frame.encode(&mut Encoder::new(&mut buffer));
        done.expect("a value of the type");
        buffer.as_slice().to_vec()
    }

    #[test]
    fn code_is_made_of_what_is_used_often() {
        let interface = interface("struct pair { int numbers<>; string name<>; };");
        let message = interface.message(TypeId(0)).expect("a layout");
        let ty = tenon_schema::Type::Named(TypeId(0));
        let value = Random::new(1).value(interface.schema(), &ty, 9);
        let frame = message.frame(&value).expect("a value of the type");
        let bytes = encode(&frame);
        for _ in 0..COMPILE_THRESHOLD - 1 {
            encode(&frame);
        }
        assert_eq!(made(message), [false, false]);
        assert_eq!(encode(&frame), bytes);
        assert_eq!(made(message), [true, false]);
        assert_eq!(encode(&frame), bytes);
        for _ in 0..=COMPILE_THRESHOLD {
            let read = message.decode(&mut Decoder::new(&bytes));
            assert_eq!(read.expect("good bytes").value(), value);
        }
        assert_eq!(made(message), [true, true]);
    }

    #[test]
    fn equal_interfaces_share_code_while_one_of_them_lives() {
        let text = "struct shared { int of_equal_interfaces; };";
        let (one, other) = (interface(text), interface(text));
        assert!(one.compile() && other.compile());
        let code = |interface: &Interface| {
            let code = interface.machine().code.get().cloned().flatten();
            code.expect("code was made")
        };
        assert!(Arc::ptr_eq(&code(&one), &code(&other)));
        let different = interface("struct shared { hyper of_equal_interfaces; };");
        assert!(different.compile());
        assert!(!Arc::ptr_eq(&code(&one), &code(&different)));
        let weak = Arc::downgrade(&code(&one));
        drop(one);
        assert!(weak.upgrade().is_some());
        drop(other);
        assert!(weak.upgrade().is_none());
    }
}
