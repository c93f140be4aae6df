//! Numbers in JSON.

use std::fmt::Debug;
use std::str::FromStr;

use serde_json::{Number, Value as Json};

use super::bytes::{self, StringEncoding};
use super::{JsonError, bytes::escaped};

/// Reads an integer of any width: a number, or a string of decimal or `0x` digits.
pub(super) fn read_integer<T: TryFrom<i128>>(found: &Json, what: &str) -> Result<T, JsonError> {
    let wide = match found {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) => parse_integer(text),
        _ => None,
    };
    wide.and_then(|wide: i128| T::try_from(wide).ok())
        .ok_or_else(|| JsonError::expected(what, found))
}

fn parse_integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hexadecimal) => (hexadecimal, 16),
        None => (digits, 10),
    };
    // The standard library reads a sign of its own.
    if digits.starts_with('+') {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    Some(sign * i128::from(value))
}

/// A floating-point number and its bytes on the wire.
pub(super) trait WireFloat: Copy + Debug + FromStr {
    /// Name of the type in error messages.
    const NAME: &'static str;
    /// As many as the number has.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;
    fn to_bytes(self) -> Self::Bytes;
    fn from_bytes(bytes: Self::Bytes) -> Self;
    fn is_finite(self) -> bool;
    /// The number for `NaN`, `Infinity` or `-Infinity`.
    fn special(name: &str) -> Option<Self>;
}

/// The names of numbers that JSON has no digits for.
const SPECIALS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

macro_rules! float {
    ($float:ident, $name:literal) => {
        impl WireFloat for $float {
            const NAME: &'static str = $name;
            type Bytes = [u8; size_of::<$float>()];

            fn to_bytes(self) -> Self::Bytes {
                self.to_be_bytes()
            }

            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_be_bytes(bytes)
            }

            fn is_finite(self) -> bool {
                $float::is_finite(self)
            }

            fn special(name: &str) -> Option<Self> {
                match name {
                    "NaN" => Some(Self::NAN),
                    "Infinity" => Some(Self::INFINITY),
                    "-Infinity" => Some(Self::NEG_INFINITY),
                    _ => None,
                }
            }
        }
    };
}

float!(f32, "a float");
float!(f64, "a double");

/// Writes the shortest digits that stand for the number.
pub(super) fn write_float<F: WireFloat>(value: F) -> Json {
    if value.is_finite() {
        let digits = Number::from_str(&format!("{value:?}"));
        return digits.map_or(Json::Null, Json::Number);
    }
    let bytes = value.to_bytes();
    let same = |name: &&&str| {
        F::special(name).is_some_and(|special| special.to_bytes().as_ref() == bytes.as_ref())
    };
    match SPECIALS.iter().find(same) {
        Some(name) => Json::from(*name),
        None => escaped(bytes.as_ref()),
    }
}

/// Reads what [`write_float`] writes, and numbers as strings.
pub(super) fn read_float<F: WireFloat>(found: &Json) -> Result<F, JsonError> {
    let value = match found {
        Json::Number(number) => number
            .to_string()
            .parse()
            .ok()
            .filter(|it: &F| it.is_finite()),
        Json::String(text) => {
            F::special(text).or_else(|| text.parse().ok().filter(|it: &F| it.is_finite()))
        }
        Json::Object(_) => {
            let bytes = bytes::read(found, StringEncoding::Hex)?;
            F::Bytes::try_from(&bytes).ok().map(F::from_bytes)
        }
        _ => None,
    };
    value.ok_or_else(|| JsonError::expected(F::NAME, found))
}
