//! The messages of an interface: entering their code, and when it is made.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tenon_plan::{Order, Plans};
use tenon_schema::TypeId;
use tenon_wire::{Buffer, Decoder, Encoder, Representation};

use super::code::Code;
use super::given::Way;
use crate::Interface;
use crate::frame::array::Read;
use crate::frame::{Key, Place};

/// How often a message is interpreted in one way before code is made for it, which takes half a
/// millisecond or less: about as long as so many messages of the usual size take to interpret. So
/// whatever a program does, it takes twice the time that it could have taken at most.
const WORTH: u32 = 1000;

/// `(place, at, end, base, depth_left, buffer) -> at`: appends the value at `place` to the spare room of a
/// buffer, from `at` to `end`; positions count from `base`. Null if the value is refused.
type PutEntry =
    unsafe extern "C" fn(*const Place, *mut u8, *mut u8, *mut u8, u64, *mut Buffer) -> *mut u8;

/// `(place, at, end, base, modes, memory_left)`: reads a value to `place` from the bytes from `at` to `end`.
/// `modes` are the levels that are left, and behind 32 bits whether nothing is forgiven.
type GetEntry = unsafe extern "C" fn(*mut Place, *const u8, *const u8, *const u8, u64, u64) -> Read;

/// The machine code of an interface.
pub(crate) struct Machine {
    order: Order,
    /// Holds the code that the doors lead to.
    code: OnceLock<Option<Arc<Code>>>,
}

/// The entries to the code of one message. Whoever moves it has them at hand and looks for nothing.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    encode: Door,
    /// By whether numbers have the order of bytes that this processor does not have. Where the
    /// interface says that, both lead to the same.
    decode: [Door; 2],
}

/// The entry to one function.
#[derive(Debug, Default)]
struct Door {
    /// Null until it is made.
    entry: AtomicPtr<u8>,
    /// How often it was missed.
    misses: AtomicU32,
}

/// When code is made that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At once.
    Now,
    /// When it is missed so often that it is worth it.
    Worth,
}

/// Code that appends values of one message. It lives as long as the interface.
pub(crate) struct Encode(PutEntry);

/// Code that reads values of one message. It lives as long as the interface.
pub(crate) struct Decode(GetEntry);

/// The spare room of an encoder's buffer, and where its message begins. Who looks for it before the code
/// need not ask memory for what it has just put there: the code is looked for by an atomic load.
pub(crate) struct Spare {
    at: *mut u8,
    end: *mut u8,
    base: *mut u8,
}

impl Spare {
    /// That of `out`.
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

impl Encode {
    /// Appends the value at `from`. Whether that was done; if not nothing is appended.
    ///
    /// # Safety
    /// A value of the message lies at `from`, the interface is alive, and `spare` is that of `out`.
    #[inline(always)]
    pub unsafe fn run<R: Representation>(
        self,
        from: &Place,
        out: &mut Encoder<'_, R>,
        spare: Spare,
    ) -> bool {
        let Spare { at, end, base } = spare;
        let depth = out.depth_left().into();
        let (buffer, _) = out.parts();
        // SAFETY: the caller's promise; the room is the buffer's, which nobody else knows. The code
        // keeps nothing.
        let behind = unsafe { self.0(from, at, end, base, depth, buffer) };
        if behind.is_null() {
            return false;
        }
        buffer.advance_to(behind);
        true
    }
}

impl Decode {
    /// Reads a value to `to`. Whether that was done; if not nothing is read and there is nothing at
    /// `to`.
    ///
    /// # Safety
    /// At `to` there is room for a value of the message, and the interface is alive.
    #[inline(always)]
    pub unsafe fn run<R: Representation>(self, to: &mut Place, input: &mut Decoder<'_, R>) -> bool {
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

impl Doors {
    /// What appends a value of the message, if there is such code.
    #[inline(always)]
    pub fn encoder(&self) -> Option<Encode> {
        let entry = self.encode.get()?;
        // SAFETY: entries to encoders are made so, nothing else is stored there, and the interface's
        // machine keeps them.
        Some(Encode(unsafe {
            std::mem::transmute::<*mut u8, PutEntry>(entry)
        }))
    }

    /// As [`encoder`](Self::encoder) of the message `key`; made if it is time to make it.
    #[cold]
    pub fn make_encoder(&self, interface: &Interface, key: &Key, when: When) -> Option<Encode> {
        self.make(interface, key, Way::Encode { swapped: false }, when);
        self.encoder()
    }

    /// What reads a value of the message, if there is such code. Where the order of bytes is the
    /// sender's, `swapped` says whether it is not this processor's.
    #[inline(always)]
    pub fn decoder(&self, swapped: bool) -> Option<Decode> {
        let entry = self.decode[usize::from(swapped)].get()?;
        // SAFETY: as above, entries to decoders.
        Some(Decode(unsafe {
            std::mem::transmute::<*mut u8, GetEntry>(entry)
        }))
    }

    /// As [`decoder`](Self::decoder) of the message `key`; made if it is time to make it.
    #[cold]
    pub fn make_decoder(
        &self,
        interface: &Interface,
        key: &Key,
        swapped: bool,
        when: When,
    ) -> Option<Decode> {
        self.make(interface, key, Way::Decode { swapped }, when);
        self.decoder(swapped)
    }

    #[inline(always)]
    fn door(&self, way: Way) -> &Door {
        match way {
            Way::Encode { .. } => &self.encode,
            Way::Decode { swapped } => &self.decode[usize::from(swapped)],
        }
    }

    /// Makes an entry, if it is not there and it is time to make it.
    fn make(&self, interface: &Interface, key: &Key, way: Way, when: When) {
        let door = self.door(way);
        let is_time = match when {
            _ if door.get().is_some() => false,
            When::Now => true,
            // Once only: if it cannot be made, that takes time.
            When::Worth => door.misses.fetch_add(1, Ordering::Relaxed) == WORTH,
        };
        if is_time {
            interface.machine().make(interface, &[(*key, way)]);
        }
    }
}

impl Door {
    #[inline(always)]
    fn get(&self) -> Option<*mut u8> {
        let entry = self.entry.load(Ordering::Acquire);
        (!entry.is_null()).then_some(entry)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine without code.
    pub fn new(plans: &Plans) -> Self {
        Self {
            order: plans.representation.order,
            code: OnceLock::new(),
        }
    }

    /// Makes the code of every message, both ways. Whether that could be done.
    pub fn make_all(&self, interface: &Interface) -> bool {
        let plans = interface.plans();
        let types = (0..plans.types.len() as u32).map(|id| Key::Type(TypeId(id)));
        let procedures = 0..plans.procedures.len();
        let procedures = procedures.flat_map(|at| [Key::Arguments(at), Key::Result(at)]);
        let swapped = match self.order {
            Order::Sender => &[false][..],
            Order::Big | Order::Little => &[false, true],
        };
        let decoding = swapped.iter().map(|&swapped| Way::Decode { swapped });
        let ways = decoding.chain([Way::Encode { swapped: false }]);
        let messages = types.chain(procedures);
        let messages = messages.flat_map(|key| ways.clone().map(move |way| (key, way)));
        self.make(interface, &messages.collect::<Vec<_>>())
    }

    fn make(&self, interface: &Interface, messages: &[(Key, Way)]) -> bool {
        let code = self.code.get_or_init(|| Code::of(interface));
        let ways = messages.iter().map(|(key, way)| (*key, self.ordered(*way)));
        let ways: Vec<_> = ways.collect();
        let Some(Ok(made)) = code.as_ref().map(|code| code.make(&ways)) else {
            return false;
        };
        for (message, made) in messages.iter().zip(made) {
            if let Some(door) = door(interface, *message) {
                door.entry.store(made.entry.cast_mut(), Ordering::Release);
            }
        }
        true
    }

    /// The way with the interface's order of bytes, if that says it.
    fn ordered(&self, way: Way) -> Way {
        let swapped = match self.order {
            Order::Big => cfg!(target_endian = "little"),
            Order::Little => cfg!(target_endian = "big"),
            Order::Sender => way.swapped(),
        };
        match way {
            Way::Encode { .. } => Way::Encode { swapped },
            Way::Decode { .. } => Way::Decode { swapped },
        }
    }
}

fn door(interface: &Interface, (key, way): (Key, Way)) -> Option<&Door> {
    let ready = interface.ready().ok()?;
    Some(ready.program.movers(key).doors.door(way))
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

    /// Which ways there is code for.
    fn made(message: Message<'_>) -> [bool; 2] {
        let swapped = <tenon_wire::Xdr as Representation>::SWAPPED;
        let ways = [Way::Encode { swapped: false }, Way::Decode { swapped }];
        ways.map(|way| {
            let door = door(message.interface(), (Key::Type(TypeId(0)), way));
            let entry = door.expect("a layout").entry.load(Ordering::Acquire);
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
        for _ in 0..WORTH - 1 {
            encode(&frame);
        }
        assert_eq!(made(message), [false, false]);
        assert_eq!(encode(&frame), bytes);
        assert_eq!(made(message), [true, false]);
        assert_eq!(encode(&frame), bytes);
        for _ in 0..=WORTH {
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
        let different = interface("struct shared { unsigned int of_equal_interfaces; };");
        assert!(different.compile());
        assert!(!Arc::ptr_eq(&code(&one), &code(&different)));
        let weak = Arc::downgrade(&code(&one));
        drop(one);
        assert!(weak.upgrade().is_some());
        drop(other);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn slow_ways_of_moving_numbers_are_not_compiled() {
        let slow = interface("struct slow { int number; };");
        let mut plans = slow.plans().clone();
        plans.moves.unit = tenon_plan::Unit::Byte;
        let slow = Interface::with_plans(slow.schema().clone(), plans).expect("plans that fit");
        assert!(!slow.compile());
    }
}
