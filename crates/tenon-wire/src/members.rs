//! Members of an enum by their numbers, where these lie near to each other.

/// Members with numbers that lie near to each other. To find one takes a comparison and a load, however many
/// there are.
///
/// ```
/// use tenon_wire::ByNumber;
///
/// static LETTERS: ByNumber<char, 4> = ByNumber::of(&[(7, 'a'), (8, 'b'), (10, 'c')]);
/// assert_eq!(LETTERS.find(8), Some('b'));
/// assert_eq!(LETTERS.find(9), None);
/// ```
#[derive(Debug)]
pub struct ByNumber<T, const SPAN: usize> {
    least: i32,
    members: [Option<T>; SPAN],
}

impl<T: Copy, const SPAN: usize> ByNumber<T, SPAN> {
    /// Of members, each with its number; the first has the least.
    ///
    /// # Panics
    /// There is none, or a number is `SPAN` or more above the least, or below it. In a `static`, the compiler
    /// says so.
    pub const fn of(members: &[(i32, T)]) -> Self {
        let least = members[0].0;
        let mut by_number = [None; SPAN];
        let mut at = 0;
        while at < members.len() {
            let (number, member) = members[at];
            by_number[number.wrapping_sub(least) as u32 as usize] = Some(member);
            at += 1;
        }
        Self {
            least,
            members: by_number,
        }
    }

    /// The member that has this number.
    #[inline(always)]
    pub fn find(&self, number: i32) -> Option<T> {
        let at = number.wrapping_sub(self.least) as u32;
        self.members.get(at as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_and_nothing_else_is() {
        let around_zero: ByNumber<u8, 4> = ByNumber::of(&[(-2, 1), (0, 2), (1, 3)]);
        let expected = [
            (-2, Some(1)),
            (-1, None),
            (0, Some(2)),
            (1, Some(3)),
            (2, None),
            (-3, None),
            (i32::MIN, None),
            (i32::MAX, None),
        ];
        for (number, member) in expected {
            assert_eq!(around_zero.find(number), member, "{number}");
        }
    }

    #[test]
    fn numbers_may_be_the_least_and_the_greatest_there_are() {
        let least: ByNumber<u8, 2> = ByNumber::of(&[(i32::MIN, 1), (i32::MIN + 1, 2)]);
        assert_eq!(least.find(i32::MIN), Some(1));
        assert_eq!(least.find(i32::MAX), None);
        let greatest: ByNumber<u8, 2> = ByNumber::of(&[(i32::MAX - 1, 1), (i32::MAX, 2)]);
        assert_eq!(greatest.find(i32::MAX), Some(2));
        assert_eq!(greatest.find(i32::MIN), None);
    }
}
