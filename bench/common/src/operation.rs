//! The operations of the section `rpc`, their values, and how many bytes they put on the wire.

use std::fmt;
use std::str::FromStr;

/// Bytes in the result of MaxResult: what a packet of Ethernet holds, beside the headers, as in the
/// Firefly's measurements.
pub const MAX_RESULT_BYTES: usize = 1440;

/// The argument of SayHello.
pub const NAME: &str = "world";

/// Members of the LargeData records of the interface.
pub const MEMBERS: [u32; 4] = [128, 1024, 4096, 8192];

/// An operation and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing there and back.
    Null,
    /// Nothing there, one packet back.
    MaxResult,
    /// So many numbers there, their mean back.
    Average(u32),
    /// A count there, so many numbers back.
    GetRandNums(u32),
    /// A name there, a greeting back.
    SayHello,
    /// A record of so many members there and back.
    Large(u32),
}

impl Operation {
    /// Those that are called in great numbers, to count how many there are in a second.
    pub const SMALL: [Operation; 3] = [Operation::Null, Operation::SayHello, Operation::MaxResult];

    /// Every operation and size that is measured.
    pub fn all() -> Vec<Operation> {
        const COUNTS: [u32; 5] = [10, 100, 1000, 10_000, 100_000];
        [Operation::Null, Operation::MaxResult, Operation::SayHello]
            .into_iter()
            .chain(COUNTS.map(Operation::Average))
            .chain(COUNTS.map(Operation::GetRandNums))
            .chain(MEMBERS.map(Operation::Large))
            .collect()
    }

    /// The two arguments by which clients know it: a procedure and a count.
    pub fn arguments(self) -> [String; 2] {
        let (procedure, count) = match self {
            Operation::Null => ("null".to_owned(), 0),
            Operation::MaxResult => ("maxresult".to_owned(), 0),
            Operation::SayHello => ("sayhello".to_owned(), 0),
            Operation::Average(count) => ("average".to_owned(), count),
            Operation::GetRandNums(count) => ("getrandnums".to_owned(), count),
            Operation::Large(members) => (format!("large{members}"), 0),
        };
        [procedure, count.to_string()]
    }

    /// The operation behind a client's first two arguments.
    ///
    /// # Errors
    /// There is none.
    pub fn from_arguments(procedure: &str, count: &str) -> Result<Operation, String> {
        let count = u32::from_str(count).map_err(|error| error.to_string())?;
        let known = |operation: &Operation| operation.arguments()[0] == procedure;
        match Operation::all().into_iter().find(known) {
            Some(Operation::Average(_)) => Ok(Operation::Average(count)),
            Some(Operation::GetRandNums(_)) => Ok(Operation::GetRandNums(count)),
            Some(other) => Ok(other),
            None => Err(format!("{procedure} is no operation")),
        }
    }

    /// Bytes of its arguments: the same in XDR and, but for padding at the end, in the lean
    /// representation.
    pub fn argument_bytes(self) -> usize {
        match self {
            Operation::Null | Operation::MaxResult => 0,
            Operation::SayHello => text_bytes(NAME),
            Operation::Average(count) => 4 + 4 * count as usize,
            Operation::GetRandNums(_) => 4,
            Operation::Large(members) => 4 * members as usize,
        }
    }

    /// Bytes of its result.
    pub fn result_bytes(self) -> usize {
        match self {
            Operation::Null => 0,
            Operation::MaxResult => MAX_RESULT_BYTES,
            Operation::SayHello => text_bytes(&greeting(NAME)),
            Operation::Average(_) => 8,
            Operation::GetRandNums(count) => 4 + 4 * count as usize,
            Operation::Large(members) => 4 * members as usize,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [procedure, count] = self.arguments();
        f.write_str(&procedure)?;
        match self {
            Operation::Average(_) | Operation::GetRandNums(_) => f.write_str(&count),
            _ => Ok(()),
        }
    }
}

/// The numbers 1 to `count`, whose mean is known.
pub fn one_to(count: u32) -> Vec<i32> {
    (1..=count as i32).collect()
}

/// The sequence that GetRandNums returns.
pub fn rand_nums(count: u32) -> Vec<i32> {
    let mut x = 1_u32;
    let next = |_| {
        x = x.wrapping_mul(1_103_515_245).wrapping_add(12345) & 0x7fff_ffff;
        x as i32
    };
    (0..count).map(next).collect()
}

/// The result of MaxResult.
pub fn max_result() -> [u8; MAX_RESULT_BYTES] {
    std::array::from_fn(|at| at as u8)
}

/// Writes the result of MaxResult where it is to be.
pub fn fill_max_result(result: &mut [u8; MAX_RESULT_BYTES]) {
    for (at, byte) in result.iter_mut().enumerate() {
        *byte = at as u8;
    }
}

/// The result of SayHello.
pub fn greeting(name: impl fmt::Display) -> String {
    format!("Hello {name}")
}

/// The members of a LargeData record: random in [0, 2³¹).
pub fn large_data(members: u32) -> Vec<i32> {
    rand_nums(members)
}

/// Bytes of a string: its length, itself, and padding.
fn text_bytes(text: &str) -> usize {
    4 + text.len().next_multiple_of(4)
}
