//! What is marshalled: the arguments of the study's three procedures.

use bstr::BString;
use tenon_exec::Value;

use crate::study::WireFormat;

/// One of the three procedures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// An integer.
    Single,
    /// An array of 256 integers.
    Numbers,
    /// Six arguments, some of them records.
    Structure,
}

/// The values from which all procedures take their arguments.
pub struct SampleValues {
    pub first: i32,
    pub second: i32,
    pub third: i32,
    pub numbers: [i32; 256],
    pub triples: [[i32; 3]; 86],
    pub kind: i32,
    pub text: [u8; 1024],
}

impl Workload {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Single, Self::Numbers, Self::Structure];

    /// Returns its name in the notation of the study.
    pub fn notation(self) -> &'static str {
        match self {
            Self::Single => "(I)",
            Self::Numbers => "(A[256] I)",
            Self::Structure => "(Structure)",
        }
    }

    /// Its type in the interface.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Single => "Single",
            Self::Numbers => "Numbers",
            Self::Structure => "Structure",
        }
    }

    /// Returns the value for engines that learn types at run time.
    pub fn value(self, sample: &SampleValues) -> Value {
        let fields = match self {
            Self::Single => vec![Value::Int(sample.first)],
            Self::Numbers => vec![ints(&sample.numbers)],
            Self::Structure => vec![
                Value::Int(sample.first),
                Value::Int(sample.second),
                Value::Int(sample.third),
                ints(&sample.numbers),
                Value::Array(sample.triples.iter().map(triple).collect()),
                Value::Struct(vec![Value::Int(sample.kind), sample.text()]),
            ],
        };
        Value::Struct(fields)
    }

    /// Returns the bytes of the message, written down without any plan.
    ///
    /// The works have numbers of four bytes alone and text with a length that is a multiple of it; so they lie alike in
    /// both representations, but for the order of bytes.
    pub fn bytes(self, sample: &SampleValues, wire: WireFormat) -> Vec<u8> {
        let numbers = match self {
            Self::Single => vec![sample.first],
            Self::Numbers => sample.numbers.to_vec(),
            Self::Structure => sample.before_text(),
        };
        let mut bytes = wire.bytes_of(numbers);
        if self == Self::Structure {
            bytes.extend(sample.text);
        }
        bytes
    }
}

impl WireFormat {
    /// Returns the bytes of numbers, one behind the other.
    pub(crate) fn bytes_of(self, numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
        let number = |number: i32| match self {
            Self::Xdr => number.to_be_bytes(),
            Self::Lean => number.to_ne_bytes(),
        };
        numbers.into_iter().flat_map(number).collect()
    }
}

/// Returns so many numbers, the same in every run, which use all their bits.
pub fn numbers(length: usize) -> impl Iterator<Item = i32> {
    let mut seed = SplitMixGenerator(0x7e40);
    std::iter::repeat_with(move || seed.int()).take(length)
}

fn ints(numbers: &[i32]) -> Value {
    Value::Array(numbers.iter().copied().map(Value::Int).collect())
}

fn triple(numbers: &[i32; 3]) -> Value {
    Value::Struct(numbers.iter().copied().map(Value::Int).collect())
}

impl SampleValues {
    /// Creates the generator, the same in every run. Integers use all their bits.
    pub fn new() -> Self {
        let mut seed = SplitMixGenerator(0x7e40);
        Self {
            first: seed.int(),
            second: seed.int(),
            third: seed.int(),
            numbers: std::array::from_fn(|_| seed.int()),
            triples: std::array::from_fn(|_| std::array::from_fn(|_| seed.int())),
            kind: seed.int(),
            text: std::array::from_fn(|_| seed.letter()),
        }
    }

    fn text(&self) -> Value {
        Value::String(BString::from(self.text))
    }

    /// Returns the numbers of the structure, its text's length the last of them.
    fn before_text(&self) -> Vec<i32> {
        let mut numbers = vec![self.first, self.second, self.third];
        numbers.extend(self.numbers);
        numbers.extend(self.triples.iter().flatten());
        numbers.extend([self.kind, self.text.len() as i32]);
        numbers
    }
}

/// Pseudo-random numbers (SplitMix64).
struct SplitMixGenerator(u64);

impl SplitMixGenerator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn int(&mut self) -> i32 {
        self.next() as i32
    }

    fn letter(&mut self) -> u8 {
        b'a' + (self.next() % 26) as u8
    }
}
