//! Every kernel that this processor can run moves the same bytes as the plainest loop, whatever
//! the length and wherever the bytes lie.

use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::Range;
use std::vec;
use std::vec::Vec;

use super::{Item, Kernel, get_array, get_vec, put, swap_in_place};

/// Miri runs these tests too, a thousand times slower.
const LONGEST: usize = if cfg!(miri) { 70 } else { 300 };
const STEP: usize = if cfg!(miri) { 21 } else { 1 };

/// Surrounds what a kernel writes; no byte of it may change.
const UNTOUCHED: u8 = 0xA5;

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

/// What a kernel is to read, and to write.
struct Case<T> {
    source: Vec<u8>,
    expected: Vec<u8>,
    items: PhantomData<T>,
}

impl<T: Item> Case<T> {
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
    for count in 0..=LONGEST {
        let case = Case::<T>::new(count * size_of::<T>());
        for_each_kernel(|kernel| {
            for misaligned in [0, 1, 4, 31] {
                case.check(kernel, 3, misaligned);
            }
        });
    }
}

fn every_alignment<T: Item>() {
    for bytes in [64, 200, 712] {
        let case = Case::<T>::new(bytes);
        for_each_kernel(|kernel| {
            for misaligned_from in (0..64).step_by(STEP) {
                for misaligned_to in (0..64).step_by(STEP) {
                    case.check(kernel, misaligned_from, misaligned_to);
                }
            }
        });
    }
}

#[test]
fn every_length_is_swapped() {
    every_length::<u16>();
    every_length::<u32>();
    every_length::<u64>();
}

#[test]
fn every_alignment_is_swapped() {
    every_alignment::<u16>();
    every_alignment::<u32>();
    every_alignment::<u64>();
}

#[test]
#[cfg_attr(miri, ignore = "hours")]
fn large_arrays_are_swapped() {
    for bytes in [4096, 65_536 + 8, (1 << 20) + 24] {
        for_each_kernel(|kernel| Case::<u16>::new(bytes).check(kernel, 1, 2));
        for_each_kernel(|kernel| Case::<u32>::new(bytes).check(kernel, 4, 20));
        for_each_kernel(|kernel| Case::<u64>::new(bytes).check(kernel, 0, 8));
    }
}

/// Items and bytes, there and back, by the functions in front; around the length from which
/// on a kernel is chosen, and well behind it.
fn there_and_back<T: Item + PartialEq + Debug>(
    item: impl Fn(u64) -> T,
    to_be_bytes: impl Fn(&T) -> Vec<u8>,
) {
    for count in (0..70).chain([300]) {
        let scattered = (0..count).map(|index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let items: Vec<T> = scattered.map(&item).collect();
        let expected: Vec<u8> = items.iter().flat_map(&to_be_bytes).collect();
        let mut bytes = vec![UNTOUCHED; expected.len()];
        put(&items, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(get_vec::<T>(&bytes), items);
        let mut twice = items.clone();
        swap_in_place(&mut twice);
        swap_in_place(&mut twice);
        assert_eq!(twice, items);
    }
}

#[test]
fn items_go_there_and_back() {
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
    assert_eq!(
        get_array::<u32, 100>(&bytes).as_slice(),
        get_vec::<u32>(&bytes)
    );
    assert_eq!(get_array::<u16, 2>(&bytes[..4]), [0x00A7, 0x4EF5]);
    assert_eq!(get_array::<u64, 0>(&[]), []);
}

#[test]
fn a_signaling_nan_stays_one() {
    let bits = [0x7FA0_0001_u32; 20];
    let mut bytes = [0; 80];
    put(&bits.map(f32::from_bits), &mut bytes);
    assert_eq!(get_array::<u32, 20>(&bytes), bits);
    assert_eq!(get_array::<f32, 20>(&bytes).map(f32::to_bits), bits);
}

#[test]
fn swapping_in_place_reverses_each_item() {
    let mut items = [0x0102_0304_u32; 33];
    swap_in_place(&mut items);
    assert_eq!(items, [0x0403_0201; 33]);
}

#[test]
fn the_best_kernel_is_the_first_available() {
    let available: Vec<Kernel> = Kernel::available().collect();
    assert_eq!(available.first(), Some(&Kernel::best()));
    assert_eq!(available.last().map(|last| last.name()), Some("portable"));
}

#[test]
#[should_panic(expected = "fill their bytes")]
fn items_that_do_not_fit_are_refused() {
    put(&[1u32; 32], &mut [0; 127]);
}

#[test]
#[should_panic(expected = "whole items")]
fn half_an_item_is_refused() {
    get_vec::<u32>(&[0; 126]);
}

#[test]
#[should_panic(expected = "as much to read as to write")]
fn kernels_refuse_places_of_different_sizes() {
    Kernel::best().swap::<u32>(&[0; 128], &mut [0; 64]);
}
