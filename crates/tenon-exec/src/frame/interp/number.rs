//! Moving of numbers between memory and the wire, one or many at a time.

use std::mem::MaybeUninit;
use std::slice;

use tenon_plan::{Mover, Moves, Scalar, Unit};
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

/// [`copy`], each byte by itself, so that the compiler does not merge them into one move.
///
/// # Safety
/// As there.
unsafe fn copy_bytes<const N: usize, const SWAP: bool>(from: *const u8, to: *mut u8) {
    for at in 0..N {
        let behind = if SWAP { N - 1 - at } else { at };
        // SAFETY: the caller's promise.
        unsafe { to.add(behind).write_volatile(from.add(at).read()) };
    }
}

/// Moves a number of 1, 2, 4 or 8 bytes.
type CopyFn = unsafe fn(*const u8, *mut u8);

/// By the logarithm of the number's bytes.
type CopyFns = [CopyFn; 4];

/// In the same order, and in the other.
const BY_ITEM: [CopyFns; 2] = [
    [
        copy::<1, false>,
        copy::<2, false>,
        copy::<4, false>,
        copy::<8, false>,
    ],
    [
        copy::<1, true>,
        copy::<2, true>,
        copy::<4, true>,
        copy::<8, true>,
    ],
];
const BY_BYTE: [CopyFns; 2] = [
    [
        copy_bytes::<1, false>,
        copy_bytes::<2, false>,
        copy_bytes::<4, false>,
        copy_bytes::<8, false>,
    ],
    [
        copy_bytes::<1, true>,
        copy_bytes::<2, true>,
        copy_bytes::<4, true>,
        copy_bytes::<8, true>,
    ],
];

/// Moves a plain number of `unit` bytes as the stub study wants it. Returns whether it was one.
///
/// # Safety
/// As [`put`] and [`get`].
pub(super) unsafe fn move_slowly<const SWAP: bool>(
    moves: Moves,
    number: NumberFormat,
    from: *const u8,
    to: *mut u8,
) -> bool {
    static TABLES: [[CopyFns; 2]; 2] = [BY_ITEM, BY_BYTE];
    let Some(unit) = number.unit().filter(|_| number != NumberFormat::Sixteen) else {
        return false;
    };
    // SAFETY: the caller's promise: there are so many bytes.
    unsafe {
        match (moves.by, moves.unit, unit) {
            (Mover::Procedure, by, _) => {
                let table = &TABLES[usize::from(by == Unit::Byte)][usize::from(SWAP)];
                table[unit.trailing_zeros() as usize & 3](from, to);
            }
            (Mover::Inline, Unit::Byte, 2) => copy_bytes::<2, SWAP>(from, to),
            (Mover::Inline, Unit::Byte, 4) => copy_bytes::<4, SWAP>(from, to),
            (Mover::Inline, Unit::Byte, 8) => copy_bytes::<8, SWAP>(from, to),
            (Mover::Inline, _, 2) => copy::<2, SWAP>(from, to),
            (Mover::Inline, _, 4) => copy::<4, SWAP>(from, to),
            (Mover::Inline, _, 8) => copy::<8, SWAP>(from, to),
            (Mover::Inline, ..) => copy::<1, false>(from, to),
        }
    }
    true
}

/// Moves a number of which every pattern of bytes is a value, as long on both sides. Returns whether it was one.
///
/// # Safety
/// As [`put`] and [`get`].
#[inline(always)]
pub(super) unsafe fn move_plain<const SWAP: bool>(
    number: NumberFormat,
    from: *const u8,
    to: *mut u8,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            NumberFormat::One => copy::<1, false>(from, to),
            NumberFormat::Two => copy::<2, SWAP>(from, to),
            NumberFormat::Four => copy::<4, SWAP>(from, to),
            NumberFormat::Eight => copy::<8, SWAP>(from, to),
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
#[inline]
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
#[inline]
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
