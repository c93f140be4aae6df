//! Lines of memory that another process may write, copied by vector instructions: a core waits for more lines of
//! another's cache at a time if it needs fewer instructions for each. Many lines are put by the string
//! instruction: a core that knows that it writes all of a line need not bring the line here first.
//!
//! They are instructions, and none of Rust's reads and writes, since those would have the memory for themselves. What
//! they do is what as many relaxed loads and stores of words do, each once.

use std::sync::atomic::AtomicU64;

/// Bytes of a line.
const LINE: usize = 64;

/// Lines from which they are put by the string instruction, which takes some time to begin: `docs/shm.md` has what was
/// measured.
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
const STRING_LEAST: usize = 32;

/// Copies the whole lines that `bytes` begin with to where `words` begin, as many as find room, and says how many
/// bytes those are: none if this processor is to copy words.
pub(crate) fn put(words: &[AtomicU64], bytes: &[u8]) -> usize {
    let lines = (bytes.len() / LINE).min(size_of_val(words) / LINE);
    let to = words.as_ptr().cast_mut().cast();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if lines >= STRING_LEAST && std::is_x86_feature_detected!("ermsb") {
        // SAFETY: as below.
        unsafe { copy_by_string(bytes.as_ptr(), to, lines * LINE) };
        return lines * LINE;
    }
    // SAFETY: so many lines can be read where `bytes` are, and be written where the words are, which any code that has
    // them may write. The two do not overlap: no code has words as bytes.
    unsafe { copy(bytes.as_ptr(), to, lines) }
}

/// Copies the whole lines that `words` begin with to where `room` begins, as many as it holds, and says how many
/// bytes those are: none if this processor is to copy words.
pub(crate) fn take(words: &[AtomicU64], room: &mut [u8]) -> usize {
    let lines = (room.len() / LINE).min(size_of_val(words) / LINE);
    // SAFETY: so many lines can be read where the words are, and be written where `room` is, which no other code has.
    // The peer may write the words meanwhile: then this is what was there, or what is, of each.
    unsafe { copy(words.as_ptr().cast(), room.as_mut_ptr(), lines) }
}

/// Copies so many lines and says how many bytes those are, or nothing.
///
/// # Safety
/// They can be read and written, do not overlap, and are this thread's or atomic words.
unsafe fn copy(from: *const u8, to: *mut u8, lines: usize) -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if lines > 0 && std::is_x86_feature_detected!("avx") {
        // SAFETY: as the caller says; the processor has these instructions.
        unsafe { copy_by_avx(from, to, lines) };
        return lines * LINE;
    }
    let _ = (from, to, lines);
    0
}

/// # Safety
/// As for [`copy`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_by_string(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller says that the memory is there. The stores may be seen in any order, but before what is
    // written by instructions behind this one (Intel, System Programming Guide, 10.2.4; AMD the like): the mark
    // that tells of them is.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") bytes => _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// As for [`copy`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn copy_by_avx(from: *const u8, to: *mut u8, lines: usize) {
    // Two lines at a time, and all of them read before any is written: many processors hold a load back while a store
    // is under way with an address that ends in the same twelve bits.
    // SAFETY: the caller says that the memory is there. What is written can be seen in that order, and before what
    // is written afterwards, as with all stores of these processors.
    unsafe {
        std::arch::asm!(
            "sub rcx, 2",
            "jb 3f",
            "2:",
            "vmovdqu ymm0, [rsi]",
            "vmovdqu ymm1, [rsi + 32]",
            "vmovdqu ymm2, [rsi + 64]",
            "vmovdqu ymm3, [rsi + 96]",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + 64], ymm2",
            "vmovdqu [rdi + 96], ymm3",
            "sub rsi, -128",
            "sub rdi, -128",
            "sub rcx, 2",
            "jae 2b",
            "3:",
            "test rcx, 1",
            "jz 4f",
            "vmovdqu ymm0, [rsi]",
            "vmovdqu ymm1, [rsi + 32]",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "4:",
            // The rest of the program has instructions that take longer if the upper halves are not zero.
            "vzeroupper",
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") lines => _,
            clobber_abi("sysv64"),
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn words(count: u64) -> Vec<AtomicU64> {
        (0..count)
            .map(|word| AtomicU64::new(word * 0x0101))
            .collect()
    }

    fn bytes_of(words: &[AtomicU64]) -> Vec<u8> {
        let words = words.iter().map(|word| word.load(Ordering::Relaxed));
        words.flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn whole_lines_are_copied_and_nothing_else() {
        for (from_words, bytes) in [
            (0, 64),
            (8, 63),
            (8, 64),
            (17, 200),
            (64, 512),
            (64, 449),
            (7, 0),
            // On both sides of what the string instruction puts.
            (8 * STRING_LEAST as u64 - 8, 64 * STRING_LEAST),
            (8 * STRING_LEAST as u64, 64 * STRING_LEAST),
            (8 * STRING_LEAST as u64 + 20, 64 * STRING_LEAST + 130),
        ] {
            for skipped in [0, 1, 3, 8] {
                let memory = words(from_words + 1);
                let before = bytes_of(&memory);
                let sent: Vec<u8> = (0..bytes + skipped).map(|at| !(at as u8)).collect();
                let put = put(&memory[1..], &sent[skipped..]);
                let whole = bytes.min(from_words as usize * 8) / LINE * LINE;
                assert!(put == whole || put == 0, "{put} of {whole}");
                let now = bytes_of(&memory);
                assert_eq!(now[8..8 + put], sent[skipped..skipped + put]);
                assert_eq!(
                    (&now[..8], &now[8 + put..]),
                    (&before[..8], &before[8 + put..])
                );

                let mut room = vec![7; bytes + skipped + 1];
                let taken = take(&memory[1..], &mut room[skipped..skipped + bytes]);
                assert_eq!(taken, put);
                assert_eq!(room[skipped..skipped + taken], now[8..8 + taken]);
                assert!(room[..skipped].iter().all(|byte| *byte == 7));
                assert!(room[skipped + taken..].iter().all(|byte| *byte == 7));
            }
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn processors_that_can_copy_lines_do() {
        let copied = put(&words(8), &[1; LINE]);
        assert_eq!(copied > 0, std::is_x86_feature_detected!("avx"));
    }
}
