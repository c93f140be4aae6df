//! Sorting, compiled once: each type and order of its own that the standard library sorts takes 5 KB of a program.

/// Half of the numbers there are.
const HALF: u32 = 1 << 31;

/// Sorts numbers, the smallest first.
#[inline(never)]
pub(crate) fn sort_numbers(numbers: &mut [u32]) {
    numbers.sort_unstable();
}

/// Sorts numbers that were given one after the other and may have begun at 0 again: those before `first`, of which there
/// are fewer than half of all, come before it.
pub(crate) fn sort_numbers_from(first: u32, numbers: &mut [u32]) {
    let shift = first.wrapping_sub(HALF);
    for number in &mut *numbers {
        *number = number.wrapping_sub(shift);
    }
    sort_numbers(numbers);
    for number in numbers {
        *number = number.wrapping_add(shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_begin_again_stay_behind_those_before() {
        let mut numbers = [1, u32::MAX, 7, 0, u32::MAX - 3];
        sort_numbers_from(u32::MAX - 1, &mut numbers);
        assert_eq!(numbers, [u32::MAX - 3, u32::MAX, 0, 1, 7]);
        sort_numbers_from(0, &mut numbers);
        assert_eq!(numbers, [u32::MAX - 3, u32::MAX, 0, 1, 7]);
        sort_numbers(&mut numbers);
        assert_eq!(numbers, [0, 1, 7, u32::MAX - 3, u32::MAX]);
    }
}
