//! Every kernel that this processor can run moves the same bytes as the plainest loop, whatever
//! the length and wherever the bytes lie.

use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::Range;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use super::select::copies_masked;
use super::{Blittable, Item, Kernel, Part, Run, get, get_boxed, get_vec, put, put_one};
use super::{BufferStorage, borrowed, put_counted, swap_in_place, try_array, whole};

/// Miri runs these tests too, a thousand times slower.
const LONGEST: usize = if cfg!(miri) { 140 } else { 300 };
const STEP: usize = if cfg!(miri) { 35 } else { 1 };

/// Surrounds what a kernel writes; no byte of it may change.
const UNTOUCHED: u8 = 0xA5;

/// True if this machine's order of bytes is not the one with the most significant byte first.
const SWAPPED: bool = cfg!(target_endian = "little");

/// Bytes of which neighbours differ.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|index| (index * 167 + index / 256) as u8)
        .collect()
}

/// A place of `bytes` in `memory`, `misaligned` bytes behind a multiple of 64.
fn place(memory: &[u8], misaligned: usize, bytes: usize) -> Range<usize> {
    let start = memory.as_ptr().align_offset(64) + misaligned;
    start..start + bytes
}

/// The bytes that a kernel is to read, and to write.
struct SwapCase<T> {
    source: Vec<u8>,
    expected: Vec<u8>,
    items: PhantomData<T>,
}

impl<T: Item> SwapCase<T> {
    fn new(bytes: usize) -> Self {
        let source = pattern(bytes);
        let items = source.chunks_exact(size_of::<T>());
        Self {
            expected: items.flat_map(|item| item.iter().rev().copied()).collect(),
            source,
            items: PhantomData,
        }
    }

    /// Swaps from and to the given alignments, then in place at the second.
    fn check(&self, kernel: Kernel, misaligned_from: usize, misaligned_to: usize) {
        let bytes = self.source.len();
        let context = (
            kernel.name(),
            size_of::<T>(),
            bytes,
            misaligned_from,
            misaligned_to,
        );
        let mut from = vec![0; bytes + 128];
        let source = place(&from, misaligned_from, bytes);
        from[source.clone()].copy_from_slice(&self.source);
        let mut memory = vec![UNTOUCHED; bytes + 128];
        let target = place(&memory, misaligned_to, bytes);

        kernel.swap::<T>(&from[source], &mut memory[target.clone()]);
        assert!(memory[target.clone()] == self.expected, "{context:?}");
        memory[target.clone()].copy_from_slice(&self.source);
        kernel.swap_in_place::<T>(&mut memory[target.clone()]);
        assert!(
            memory[target.clone()] == self.expected,
            "in place: {context:?}"
        );
        let (before, after) = (&memory[..target.start], &memory[target.end..]);
        let untouched = |part: &[u8]| part.iter().all(|&byte| byte == UNTOUCHED);
        assert!(untouched(before) && untouched(after), "around: {context:?}");
    }
}

fn for_each_kernel(check: impl FnMut(Kernel)) {
    Kernel::available().for_each(check);
}

fn every_length<T: Item>() {
    for count in (0..=LONGEST).step_by(STEP) {
        let case = SwapCase::<T>::new(count * size_of::<T>());
        for_each_kernel(|kernel| {
            for misaligned in [0, 1, 4, 31] {
                case.check(kernel, 3, misaligned);
            }
        });
    }
}

fn every_alignment<T: Item>() {
    for bytes in [64, 200, 712] {
        let case = SwapCase::<T>::new(bytes);
        for_each_kernel(|kernel| {
            for misaligned_from in (0..64).step_by(STEP) {
                for misaligned_to in (0..64).step_by(STEP) {
                    case.check(kernel, misaligned_from, misaligned_to);
                }
            }
        });
    }
}

/// Both places lie in one memory, so that it is certain how far they are from each other: kernels go
/// backwards where the second soon follows the first in a page, as it does up to 2047 bytes behind.
fn every_distance<T: Item>() {
    let case = SwapCase::<T>::new(712);
    let bytes = case.source.len();
    for_each_kernel(|kernel| {
        for distance in [712, 720, 1999, 2047, 2048, 2049, 3000, 4088, 4096, 4100] {
            let mut memory = vec![UNTOUCHED; distance + bytes];
            memory[..bytes].copy_from_slice(&case.source);
            let (from, to) = memory.split_at_mut(distance);
            kernel.swap::<T>(&from[..bytes], to);
            assert!(to == case.expected, "{} {distance}", kernel.name());
        }
    });
}

#[test]
fn every_distance_is_swapped() {
    every_distance::<u8>();
    every_distance::<u16>();
    every_distance::<u32>();
    every_distance::<u64>();
}

#[test]
fn every_length_is_swapped() {
    every_length::<u8>();
    every_length::<u16>();
    every_length::<u32>();
    every_length::<u64>();
}

#[test]
fn every_alignment_is_swapped() {
    every_alignment::<u8>();
    every_alignment::<u16>();
    every_alignment::<u32>();
    every_alignment::<u64>();
}

#[test]
#[cfg_attr(miri, ignore = "hours")]
fn large_arrays_are_swapped() {
    for bytes in [4096, 65_536 + 8, (1 << 20) + 24, (2 << 20) + 328] {
        for_each_kernel(|kernel| SwapCase::<u8>::new(bytes).check(kernel, 3, 5));
        for_each_kernel(|kernel| SwapCase::<u16>::new(bytes).check(kernel, 1, 2));
        for_each_kernel(|kernel| SwapCase::<u32>::new(bytes).check(kernel, 4, 20));
        for_each_kernel(|kernel| SwapCase::<u64>::new(bytes).check(kernel, 0, 8));
    }
}

/// Items and bytes, there and back, by the functions in front; around the length from which
/// on a kernel is chosen, and well behind it.
fn there_and_back<T: Item + Blittable + PartialEq + Debug>(
    item: impl Fn(u64) -> T,
    to_be_bytes: impl Fn(&T) -> Vec<u8>,
) {
    for count in (0..70).step_by(STEP).chain([300]) {
        let scattered = (0..count).map(|index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let items: Vec<T> = scattered.map(&item).collect();
        let expected: Vec<u8> = items.iter().flat_map(&to_be_bytes).collect();
        let mut bytes = vec![UNTOUCHED; expected.len()];
        put(&items, &mut bytes, SWAPPED);
        assert_eq!(bytes, expected);
        assert_eq!(get_vec::<T>(&bytes, items.len(), SWAPPED), items);
        put(&items, &mut bytes, !SWAPPED);
        assert_eq!(get_vec::<T>(&bytes, items.len(), !SWAPPED), items);
        let mut twice = items.clone();
        swap_in_place(&mut twice);
        swap_in_place(&mut twice);
        assert_eq!(twice, items);
    }
}

#[test]
fn items_go_there_and_back() {
    there_and_back(|bits| bits as u8, |item| vec![*item]);
    there_and_back(|bits| bits as i16, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as u16, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as i32, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as u32, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as f32, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as i64, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits, |item| item.to_be_bytes().to_vec());
    there_and_back(|bits| bits as f64, |item| item.to_be_bytes().to_vec());
}

#[test]
fn arrays_are_read_from_bytes() {
    let bytes = pattern(400);
    let numbers = get_vec::<u32>(&bytes, 100, SWAPPED);
    assert_eq!(get::<[u32; 100]>(&bytes, SWAPPED).as_slice(), numbers);
    assert_eq!(get_boxed::<[u32; 100]>(&bytes, SWAPPED).as_slice(), numbers);
    assert_eq!(get::<[u16; 2]>(&bytes[..4], SWAPPED), [0x00A7, 0x4EF5]);
    assert_eq!(get::<[u64; 0]>(&[], SWAPPED), []);
}

/// Lengths on both sides of those from which on bytes are copied in another way.
const STRINGS: [usize; 20] = [
    0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 128, 129, 191, 400,
];

/// A storage that grows on the way, and what it must hold.
fn check_appended(append: impl Fn(&mut BufferStorage, &[u8]), expected: impl Fn(&[u8]) -> Vec<u8>) {
    for length in STRINGS {
        let bytes = pattern(length);
        let mut storage = BufferStorage::default();
        let mut all = Vec::new();
        for _ in 0..4 {
            append(&mut storage, &bytes);
            all.extend(expected(&bytes));
            assert_eq!(storage.in_use(), all, "{length}");
        }
        // Once more, over what it held before.
        storage.in_use_mut().fill(UNTOUCHED);
        storage.truncate(0);
        append(&mut storage, &bytes);
        assert_eq!(storage.in_use(), expected(&bytes), "{length}");
    }
}

#[test]
fn what_is_copied_by_a_mask_touches_nothing_else() {
    let from = pattern(64);
    for bytes in 0..=64 {
        let mut to = [UNTOUCHED; 80];
        // SAFETY: so many can be read, and more be written.
        if !unsafe { copies_masked(from.as_ptr(), to[8..].as_mut_ptr(), bytes) } {
            return;
        }
        let mut expected = [UNTOUCHED; 80];
        expected[8..8 + bytes].copy_from_slice(&from[..bytes]);
        assert_eq!(to, expected, "{bytes}");
    }
}

#[test]
fn strings_are_appended_behind_their_count() {
    let counted = |bytes: &[u8]| [&0x0102_0304_u32.to_ne_bytes(), bytes].concat();
    check_appended(|storage, bytes| storage.append(0x0102_0304, bytes), counted);
    check_appended(
        |storage, bytes| storage.append_padded(0x0102_0304, bytes),
        |bytes| {
            let mut expected = counted(bytes);
            expected.resize(expected.len().next_multiple_of(4), 0);
            expected
        },
    );
}

#[test]
fn numbers_are_appended_behind_their_count() {
    for swapped in [false, true] {
        check_appended(
            |storage, bytes| {
                let numbers = get_vec::<u16>(&bytes[..bytes.len() / 2 * 2], bytes.len() / 2, false);
                put_counted(storage, numbers.len() as u32, &numbers, swapped);
            },
            |bytes| {
                let mut expected = (bytes.len() as u32 / 2).to_ne_bytes().to_vec();
                expected.extend(bytes.chunks_exact(2).flatten());
                if swapped {
                    expected[..4].reverse();
                    expected[4..].chunks_exact_mut(2).for_each(<[u8]>::reverse);
                }
                expected
            },
        );
    }
}

#[test]
fn zeros_are_appended() {
    let mut storage = BufferStorage::default();
    let mut expected = Vec::new();
    for zeros in (0..8).cycle().take(100) {
        storage.append_zeros(zeros);
        expected.resize(expected.len() + zeros, 0);
        *storage.take_chunk() = [UNTOUCHED; 3];
        expected.extend([UNTOUCHED; 3]);
        assert_eq!(storage.in_use(), expected);
    }
}

#[test]
fn a_signaling_nan_stays_one() {
    let bits = [0x7FA0_0001_u32; 20];
    let mut bytes = [0; 80];
    put(&bits.map(f32::from_bits), &mut bytes, SWAPPED);
    assert_eq!(get::<[u32; 20]>(&bytes, SWAPPED), bits);
    let numbers = get::<[f32; 20]>(&bytes, SWAPPED);
    assert_eq!(numbers.map(f32::to_bits), bits);
}

#[test]
fn swapping_in_place_reverses_each_item() {
    let mut items = [0x0102_0304_u32; 33];
    swap_in_place(&mut items);
    assert_eq!(items, [0x0403_0201; 33]);
}

#[test]
fn the_best_kernel_is_available_and_the_portable_one_comes_last() {
    let available: Vec<Kernel> = Kernel::available().collect();
    assert!(available.contains(&Kernel::best()));
    assert_eq!(available.last().map(|last| last.name()), Some("portable"));
}

#[test]
#[should_panic(expected = "fill their bytes")]
fn items_that_do_not_fit_are_refused() {
    put(&[1u32; 32], &mut [0; 127], SWAPPED);
}

#[test]
#[should_panic(expected = "fill their bytes")]
fn half_an_item_is_refused() {
    get_vec::<u32>(&[0; 126], 32, SWAPPED);
}

#[test]
#[should_panic(expected = "as much to read as to write")]
fn kernels_refuse_places_of_different_sizes() {
    Kernel::best().swap::<u32>(&[0; 128], &mut [0; 64]);
}

crate::blittable! {
    /// A struct of numbers of several sizes: 2, 2, 4 and 8 bytes, then twice 4, 1, 1 and 2.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct MixedStruct {
        pair: [i16; 2],
        word: u32,
        wide: f64,
        twice: [NestedStruct; 2],
    }
}

crate::blittable! {
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct NestedStruct {
        word: i32,
        bytes: [u8; 2],
        half: u16,
    }
}

/// A value of 32 bytes, and its bytes with the most significant one of each number first.
fn mixed() -> (MixedStruct, Vec<u8>) {
    let inner = |word, half| NestedStruct {
        word,
        bytes: [21, 22],
        half,
    };
    let value = MixedStruct {
        pair: [0x0102, 0x0304],
        word: 0x05060708,
        wide: f64::from_bits(0x090A_0B0C_0D0E_0F10),
        twice: [inner(0x11121314, 0x1718), inner(0x191A1B1C, 0x1D1E)],
    };
    let mut bytes: Vec<u8> = (1..=20).chain([21, 22, 0x17, 0x18]).collect();
    bytes.extend([0x19, 0x1A, 0x1B, 0x1C, 21, 22, 0x1D, 0x1E]);
    (value, bytes)
}

#[test]
fn numbers_of_several_sizes_keep_their_own_orders() {
    let (value, expected) = mixed();
    let mut bytes = [0; 32];
    put_one(&value, &mut bytes, SWAPPED);
    assert_eq!(bytes.as_slice(), expected);
    assert_eq!(get::<MixedStruct>(&bytes, SWAPPED), value);
    let mut many = vec![0; 320];
    put(&[value; 10], &mut many, SWAPPED);
    assert_eq!(many, expected.repeat(10));
    assert_eq!(get_vec::<MixedStruct>(&many, 10, SWAPPED), [value; 10]);
    put(&[value; 10], &mut many, false);
    assert_eq!(get_vec::<MixedStruct>(&many, 10, false), [value; 10]);
}

#[test]
fn runs_are_as_long_as_they_can_be() {
    let run = |unit, units| Run { unit, units };
    assert_eq!(NestedStruct::RUNS, [run(4, 1), run(1, 2), run(2, 1)]);
    let inner = [run(1, 2), run(2, 1), run(4, 1), run(1, 2), run(2, 1)];
    let whole: Vec<_> = [run(2, 2), run(4, 1), run(8, 1), run(4, 1)]
        .into_iter()
        .chain(inner)
        .collect();
    assert_eq!(MixedStruct::RUNS, whole);
    let parts = [
        Part::of::<[i32; 7]>(),
        Part::of::<[[u32; 2]; 0]>(),
        Part::of::<f32>(),
    ];
    assert_eq!(Part::merged::<1>(&parts), [run(4, 8)]);
    assert_eq!((Part::count(&parts), Part::count(&[])), (1, 0));
}

#[test]
fn arrays_are_borrowed_where_they_are_aligned() {
    let words = [0x0102_0304_u32; 8];
    let mut bytes = [0u8; 40];
    let start = bytes.as_ptr().align_offset(4);
    put(&words, &mut bytes[start..start + 32], false);
    assert_eq!(
        borrowed::<u32>(&bytes[start..start + 32], 8),
        Some(&words[..])
    );
    assert_eq!(borrowed::<u32>(&bytes[start + 1..start + 33], 8), None);
    assert_eq!(borrowed::<u32>(&bytes[start..start + 31], 7), None);
    assert_eq!(borrowed::<u32>(&bytes[start..start + 32], 9), None);
    assert_eq!(
        borrowed::<u32>(&bytes[start..start + 32], usize::MAX / 4 + 9),
        None
    );
    assert_eq!(borrowed::<[u32; 0]>(&bytes[..0], 3), None);
}

#[test]
fn what_was_made_before_a_failure_is_dropped() {
    let witness = std::rc::Rc::new(());
    let result: Result<[_; 5], &str> = try_array(|index| match index {
        3 => Err("the fourth"),
        _ => Ok(witness.clone()),
    });
    assert_eq!(result, Err("the fourth"));
    assert_eq!(std::rc::Rc::strong_count(&witness), 1);
    let all = try_array::<_, (), 5>(|_| Ok(witness.clone()));
    assert_eq!(std::rc::Rc::strong_count(&witness), 6);
    drop(all);
    assert_eq!(std::rc::Rc::strong_count(&witness), 1);
}

/// Returns storages with more and more bytes in use, so that a value behind them lies at every place there is.
fn storages() -> impl Iterator<Item = (BufferStorage, Vec<u8>)> {
    let places = 0..if cfg!(miri) { 9 } else { 300 };
    places.map(|before| {
        let mut storage = BufferStorage::of(if before % 2 == 0 { 0 } else { 400 });
        storage.take(before + 40).fill(UNTOUCHED);
        storage.truncate(before);
        (storage, vec![UNTOUCHED; before])
    })
}

#[test]
fn values_are_filled_in_where_they_lie() {
    let (value, _) = mixed();
    for swapped in [false, true] {
        let mut bytes = [0; 32];
        put_one(&value, &mut bytes, swapped);
        for (mut storage, mut expected) in storages() {
            let done = storage.fill::<MixedStruct, ()>(swapped, |room| {
                assert_eq!(room, &whole::zeroed::<MixedStruct>());
                *room = value;
                Ok(())
            });
            assert_eq!(done, Ok(()));
            expected.extend(bytes);
            storage.append_zeros(1);
            expected.push(0);
            assert_eq!(storage.in_use(), expected);
        }
    }
}

#[test]
fn numbers_of_each_size_are_filled_in() {
    fn check<T: Item + Blittable + PartialEq + Debug>(item: T, bytes: &[u8]) {
        for (mut storage, mut expected) in storages() {
            let done = storage.fill::<[T; 41], ()>(SWAPPED, |room| {
                room.fill(item);
                Ok(())
            });
            assert_eq!(done, Ok(()));
            expected.extend(bytes.repeat(41));
            assert_eq!(storage.in_use(), expected);
        }
    }
    check(1_u8, &[1]);
    check(0x0102_i16, &[1, 2]);
    check(0x0102_0304_u32, &[1, 2, 3, 4]);
    check(0x0102_0304_0506_0708_i64, &[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn what_is_not_filled_in_is_not_there() {
    for (mut storage, expected) in storages() {
        let failed = storage.fill::<MixedStruct, &str>(SWAPPED, |room| {
            *room = mixed().0;
            Err("half way")
        });
        assert_eq!(failed, Err("half way"));
        assert_eq!(storage.in_use(), expected);
        let fill = std::panic::AssertUnwindSafe(|| {
            storage.fill::<u64, ()>(false, |_| std::panic::resume_unwind(Box::new(())))
        });
        assert!(std::panic::catch_unwind(fill).is_err());
        assert_eq!(storage.in_use(), expected);
        assert_eq!(storage.fill::<[u32; 0], ()>(SWAPPED, |_| Ok(())), Ok(()));
        assert_eq!(storage.in_use(), expected);
    }
}
