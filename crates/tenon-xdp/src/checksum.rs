//! The checksum of IP and UDP (RFC 1071): the sum of 16-bit words in ones' complement, and how it changes
//! with a word (RFC 1624).

/// Returns the sum of `bytes` as words with the most significant byte first, folded to 16 bits. A byte that is left
/// over counts as the first of a word.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    // The sum of swapped words is the swapped sum (RFC 1071, 2 (B)), and words of four bytes fold to those of
    // two. So the loop takes what the processor takes at a time.
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let total = words.fold(native(&last), |total, word| total + native(word));
    u16::from_be(fold(total))
}

#[inline]
fn native(word: &[u8]) -> u64 {
    let word = word.try_into().map(u32::from_ne_bytes);
    word.map_or_else(|_| unreachable!("four bytes are four bytes"), u64::from)
}

/// Returns a sum with its carries added in.
#[inline]
pub(crate) fn fold(total: u64) -> u16 {
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    total as u16
}

/// Returns the sum of two sums.
#[inline]
pub(crate) fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u16::from(carry)
}

/// Returns the checksum after the word `was` that it covers is replaced by `is`: equation 3 of RFC 1624.
#[inline]
pub(crate) fn update(checksum: u16, was: u16, is: u16) -> u16 {
    !add(add(!checksum, !was), is)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the sum as RFC 1071 says it, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for word in bytes.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            total += u32::from(u16::from_be_bytes([word[0], low]));
        }
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn the_example_of_rfc_1071_has_its_sum() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
    }

    #[test]
    fn every_length_sums_as_word_by_word() {
        let bytes: Vec<u8> = (0..1500u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for length in 0..bytes.len() {
            assert_eq!(sum(&bytes[..length]), plain(&bytes[..length]), "{length}");
        }
        assert_eq!(sum(&[0xff; 65_535]), plain(&[0xff; 65_535]));
    }

    #[test]
    fn the_example_of_rfc_1624_is_updated() {
        // Section 4: the sum must not become 0xffff where it is 0.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_updated_checksum_is_the_one_of_the_new_words() {
        let mut words = [0x4500u16, 28, 0, 0x4000, 0x4011, 0, 0xc000, 0x0201, 0xffff];
        let of = |words: &[u16]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            !sum(&bytes)
        };
        let mut checksum = of(&words);
        for (at, is) in [(1, 1500), (7, 0xffff), (8, 0), (1, 28), (3, 0)] {
            checksum = update(checksum, words[at], is);
            words[at] = is;
            assert_eq!(checksum, of(&words));
        }
    }
}
