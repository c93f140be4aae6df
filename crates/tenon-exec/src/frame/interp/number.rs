//! Moving of numbers between memory and the wire, one or many at a time.

use std::mem::MaybeUninit;
use std::slice;

use tenon_plan::Scalar;
use tenon_wire::kernels::{self, Blittable};
use tenon_wire::{DecodeErrorKind, EncodeErrorKind};

use crate::program::{BlockItem, InterpreterProgram, NumberFormat};

/// Copies `N` bytes, in the other order if `SWAP`.
///
/// # Safety
/// They can be read and written.
#[inline]
unsafe fn copy<const N: usize, const SWAP: bool>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; arrays of bytes lie anywhere.
    unsafe {
        let mut bytes = from.cast::<[u8; N]>().read();
        if SWAP {
            bytes.reverse();
        }
        to.cast::<[u8; N]>().write(bytes);
    }
}

/// Moves single numbers of 1, 2, 4 or 8 bytes, of which every pattern of bytes is a value, for the interpreter.
///
/// # Safety
/// All bytes of a number must be written, as they are read then.
pub unsafe trait NumberMover {
    /// Moves a number of `N` bytes between memory and a message, in the other order of bytes if `SWAP`.
    fn move_number<const N: usize, const SWAP: bool>(from: &[u8; N], to: &mut [MaybeUninit<u8>; N]);
}

/// Moves a number at once.
#[derive(Debug, Clone, Copy)]
pub struct WholeNumberMover;

// SAFETY: all bytes are written.
unsafe impl NumberMover for WholeNumberMover {
    #[inline(always)]
    fn move_number<const N: usize, const SWAP: bool>(
        from: &[u8; N],
        to: &mut [MaybeUninit<u8>; N],
    ) {
        // SAFETY: there are so many bytes at both, and the references do not overlap.
        unsafe { copy::<N, SWAP>(from.as_ptr(), to.as_mut_ptr().cast()) }
    }
}

/// Moves a number of `N` bytes as `M` does.
///
/// # Safety
/// As [`copy`], and that both do not overlap.
#[inline(always)]
unsafe fn move_by<M: NumberMover, const N: usize, const SWAP: bool>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; arrays of bytes lie anywhere.
    unsafe { M::move_number::<N, SWAP>(&*from.cast(), &mut *to.cast()) }
}

/// Moves a number of which every pattern of bytes is a value, as long on both sides. Returns whether it was one.
///
/// # Safety
/// As [`put`] and [`get`].
#[inline(always)]
pub(super) unsafe fn move_plain<M: NumberMover, const SWAP: bool>(
    number: NumberFormat,
    from: *const u8,
    to: *mut u8,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            NumberFormat::One => move_by::<M, 1, false>(from, to),
            NumberFormat::Two => move_by::<M, 2, SWAP>(from, to),
            NumberFormat::Four => move_by::<M, 4, SWAP>(from, to),
            NumberFormat::Eight => move_by::<M, 8, SWAP>(from, to),
            NumberFormat::Sixteen => copy::<16, false>(from, to),
            NumberFormat::I8Word
            | NumberFormat::U8Word
            | NumberFormat::I16Word
            | NumberFormat::U16Word => return false,
            NumberFormat::BoolByte | NumberFormat::BoolWord | NumberFormat::Enum(_) => {
                return false;
            }
            NumberFormat::ByteBoolByte | NumberFormat::ByteBoolWord => return false,
        }
    }
    true
}

/// Writes a number to the wire.
///
/// # Errors
/// It is no member of its enum.
///
/// # Safety
/// It lies at `from`, and there is room for it at `to`.
#[inline]
pub(super) unsafe fn put<const SWAP: bool>(
    program: &InterpreterProgram,
    number: NumberFormat,
    from: *const u8,
    to: *mut u8,
) -> Result<(), EncodeErrorKind> {
    // SAFETY: the caller's promise; numbers in memory lie where they may.
    unsafe {
        match number {
            NumberFormat::One => copy::<1, false>(from, to),
            NumberFormat::Two => copy::<2, SWAP>(from, to),
            NumberFormat::Four => copy::<4, SWAP>(from, to),
            NumberFormat::Eight => copy::<8, SWAP>(from, to),
            NumberFormat::Sixteen => copy::<16, false>(from, to),
            NumberFormat::I8Word => put_word::<SWAP>(from.cast::<i8>().read().into(), to),
            NumberFormat::U8Word => put_word::<SWAP>(from.read().into(), to),
            NumberFormat::I16Word => put_word::<SWAP>(from.cast::<i16>().read().into(), to),
            NumberFormat::U16Word => put_word::<SWAP>(from.cast::<u16>().read().into(), to),
            NumberFormat::BoolByte => to.write(u8::from(from.cast::<i32>().read() != 0)),
            NumberFormat::BoolWord => {
                put_word::<SWAP>(i32::from(from.cast::<i32>().read() != 0), to);
            }
            NumberFormat::ByteBoolByte => to.write(u8::from(from.read() != 0)),
            NumberFormat::ByteBoolWord => put_word::<SWAP>(i32::from(from.read() != 0), to),
            NumberFormat::Enum(of) => {
                let value = from.cast::<i32>().read();
                if !program.is_member(of, value) {
                    return Err(EncodeErrorKind::UnknownValue(value));
                }
                put_word::<SWAP>(value, to);
            }
        }
    }
    Ok(())
}

/// Writes a word.
///
/// # Safety
/// There is room for it at `to`.
#[inline]
pub(super) unsafe fn put_word<const SWAP: bool>(word: i32, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { copy::<4, SWAP>((&raw const word).cast(), to) }
}

/// Reads a number from the wire.
///
/// # Errors
/// It is no value of its type.
///
/// # Safety
/// Its bytes lie at `from`, and there is room for it at `to`.
#[inline]
pub(super) unsafe fn get<const SWAP: bool>(
    program: &InterpreterProgram,
    strict: bool,
    number: NumberFormat,
    from: *const u8,
    to: *mut u8,
) -> Result<(), DecodeErrorKind> {
    /// The small number in a word, which holds no more.
    macro_rules! small {
        ($small:ty) => {{
            let word = get_word::<SWAP>(from);
            let small = word as $small;
            to.cast::<$small>().write(small);
            if strict && i32::from(small) as u32 != word {
                return Err(DecodeErrorKind::OutOfRange(word));
            }
        }};
    }
    // SAFETY: the caller's promise; numbers in memory lie where they may.
    unsafe {
        match number {
            NumberFormat::One => copy::<1, false>(from, to),
            NumberFormat::Two => copy::<2, SWAP>(from, to),
            NumberFormat::Four => copy::<4, SWAP>(from, to),
            NumberFormat::Eight => copy::<8, SWAP>(from, to),
            NumberFormat::Sixteen => copy::<16, false>(from, to),
            NumberFormat::I8Word => small!(i8),
            NumberFormat::U8Word => small!(u8),
            NumberFormat::I16Word => small!(i16),
            NumberFormat::U16Word => small!(u16),
            NumberFormat::BoolByte | NumberFormat::BoolWord => {
                let word = match number {
                    NumberFormat::BoolByte => from.read().into(),
                    _ => get_word::<SWAP>(from),
                };
                to.cast::<i32>().write(i32::from(word != 0));
                if strict && word > 1 {
                    return Err(DecodeErrorKind::NotABoolean(word));
                }
            }
            NumberFormat::ByteBoolByte | NumberFormat::ByteBoolWord => {
                let word = match number {
                    NumberFormat::ByteBoolByte => from.read().into(),
                    _ => get_word::<SWAP>(from),
                };
                to.write(u8::from(word != 0));
                if strict && word > 1 {
                    return Err(DecodeErrorKind::NotABoolean(word));
                }
            }
            NumberFormat::Enum(of) => {
                let value = get_word::<SWAP>(from) as i32;
                if !program.is_member(of, value) {
                    return Err(DecodeErrorKind::UnknownValue(value));
                }
                to.cast::<i32>().write(value);
            }
        }
    }
    Ok(())
}

/// Reads a word.
///
/// # Safety
/// Its bytes lie at `from`.
#[inline]
pub(super) unsafe fn get_word<const SWAP: bool>(from: *const u8) -> u32 {
    let mut word = 0_u32;
    // SAFETY: the caller's promise.
    unsafe { copy::<4, SWAP>(from, (&raw mut word).cast()) };
    word
}

/// Reads the number in memory by which a union selects its arm: of a boolean, 0 or 1.
///
/// # Safety
/// A number of this format, which is no longer than a word, lies at `at`.
pub(in crate::frame) unsafe fn discriminant(
    scalar: Scalar,
    number: NumberFormat,
    at: *const u8,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        match (scalar, number) {
            (Scalar::I16, _) => at.cast::<i16>().read().into(),
            (Scalar::U16, _) => at.cast::<u16>().read().into(),
            (Scalar::I8, _) => at.cast::<i8>().read().into(),
            (Scalar::U8, _) => at.read().into(),
            (Scalar::Bool, NumberFormat::ByteBoolByte | NumberFormat::ByteBoolWord) => {
                i32::from(at.read() != 0)
            }
            (Scalar::Bool, _) => i32::from(at.cast::<i32>().read() != 0),
            _ => at.cast::<i32>().read(),
        }
    }
}

/// Moves numbers of so many bytes, which change their order if they have one, from one place to
/// another.
type SwapFn = unsafe fn(u32, *const u8, *mut u8, usize);

/// Moves a block; `swap` moves those of its numbers that change their order.
///
/// # Safety
/// As [`put_block`] and [`get_block`].
#[inline(always)]
unsafe fn move_block<const SWAP: bool>(
    program: &InterpreterProgram,
    item: BlockItem,
    (from, to): (*const u8, *mut u8),
    bytes: usize,
    swap: SwapFn,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match item {
            BlockItem::Units(unit) if SWAP => swap(unit, from, to, bytes),
            BlockItem::Runs(runs) if SWAP => {
                let mut at = 0;
                while at < bytes {
                    for run in program.runs(runs) {
                        let length = (run.unit * run.units) as usize;
                        swap(run.unit, from.add(at), to.add(at), length);
                        at += length;
                    }
                }
            }
            BlockItem::Units(_) | BlockItem::Runs(_) => swap(1, from, to, bytes),
        }
    }
}

/// Writes a block to the wire.
///
/// # Safety
/// `bytes`, whole items, lie at `from` where such items may, and there is room for them at `to`,
/// in initialised memory.
#[inline(always)]
pub(super) unsafe fn put_block<const SWAP: bool>(
    program: &InterpreterProgram,
    item: BlockItem,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { move_block::<SWAP>(program, item, (from, to), bytes, put_swapped) }
}

#[inline]
unsafe fn put_swapped(unit: u32, from: *const u8, to: *mut u8, bytes: usize) {
    unsafe fn of<T: Blittable>(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let items = slice::from_raw_parts(from.cast::<T>(), bytes / size_of::<T>());
            kernels::put(items, slice::from_raw_parts_mut(to, bytes), true);
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match unit {
            2 => of::<u16>(from, to, bytes),
            4 => of::<u32>(from, to, bytes),
            8 => of::<u64>(from, to, bytes),
            _ => of::<u8>(from, to, bytes),
        }
    }
}

/// Reads a block from the wire.
///
/// # Safety
/// `bytes`, whole items, can be read at `from`, and there is room for them at `to`, where such
/// items may lie.
#[inline(always)]
pub(super) unsafe fn get_block<const SWAP: bool>(
    program: &InterpreterProgram,
    item: BlockItem,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { move_block::<SWAP>(program, item, (from, to), bytes, get_swapped) }
}

#[inline]
unsafe fn get_swapped(unit: u32, from: *const u8, to: *mut u8, bytes: usize) {
    unsafe fn of<T: Blittable>(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.cast::<MaybeUninit<T>>();
            let items = slice::from_raw_parts_mut(to, bytes / size_of::<T>());
            kernels::get_into(slice::from_raw_parts(from, bytes), items, true);
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match unit {
            2 => of::<u16>(from, to, bytes),
            4 => of::<u32>(from, to, bytes),
            8 => of::<u64>(from, to, bytes),
            _ => of::<u8>(from, to, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tenon_plan::{Order, Pass, Plans, Representation};
    use tenon_schema::{Type, TypeId};
    use tenon_wire::{Buffer, Decoder, Encoder};

    use super::*;
    use crate::Interface;
    use crate::random::Random;

    thread_local! {
        /// Bytes that this thread has moved one by one.
        static MOVED: Cell<usize> = const { Cell::new(0) };
    }

    /// Moves numbers byte by byte, and counts these.
    struct CountingMover;

    // SAFETY: each byte is written.
    unsafe impl NumberMover for CountingMover {
        fn move_number<const N: usize, const SWAP: bool>(
            from: &[u8; N],
            to: &mut [MaybeUninit<u8>; N],
        ) {
            MOVED.set(MOVED.get() + N);
            for (at, byte) in from.iter().enumerate() {
                let behind = if SWAP { N - 1 - at } else { at };
                to[behind].write(*byte);
            }
        }
    }

    const TEXT: &str = "
        enum color { RED, GREEN };
        struct plain { int a; hyper b; short c; unsigned char d; float e; double f; bool g; color h; };
        struct nested { plain first; opaque gap[3]; plain all<>; int last; string name<>; };
        union chosen switch (color of) { case RED: hyper one; case GREEN: nested other; };
    ";

    fn check(representation: Representation) {
        let parsed = tenon_idl::parse_text("moved.x", TEXT, &Default::default());
        let schema = parsed.schema.expect("an interface");
        for passes in [&[][..], Pass::ALL] {
            let plans = Plans::new(&schema, representation, passes).expect("plans that fit");
            let interface = Interface::with_plans(schema.clone(), plans).expect("plans that fit");
            let mut moved = [0, 0];
            for (id, seed) in (0..4).flat_map(|id| (0..8).map(move |seed| (TypeId(id), seed))) {
                let message = interface.message(id).expect("a layout");
                let value = Random::new(seed).value(&schema, &Type::Named(id), 60);
                let frame = message.frame(&value).expect("a value of the type");
                let [mut expected, mut buffer] = [Buffer::default(), Buffer::default()];
                let usual = frame.encode_by_interpreter(&mut Encoder::new(&mut expected));
                MOVED.set(0);
                let done = frame.encode_moving::<CountingMover, _>(&mut Encoder::new(&mut buffer));
                moved[0] += MOVED.replace(0);
                assert_eq!((done, buffer.as_slice()), (usual, expected.as_slice()));
                let mut input = Decoder::new(buffer.as_slice());
                let read = message.decode_moving::<CountingMover, _>(&mut input);
                moved[1] += MOVED.get();
                assert_eq!(read.map(|frame| frame.value()), Ok(value));
            }
            assert!(moved[0] > 0, "nothing was moved by the mover");
            assert_eq!(moved[0], moved[1], "both directions move the same numbers");
        }
    }

    #[test]
    fn numbers_move_as_one_likes_in_xdr() {
        check(Representation::XDR);
    }

    #[test]
    fn numbers_move_as_one_likes_in_memory_order() {
        let order = match cfg!(target_endian = "little") {
            true => Order::Little,
            false => Order::Big,
        };
        check(Representation {
            order,
            ..Representation::LEAN
        });
    }
}
