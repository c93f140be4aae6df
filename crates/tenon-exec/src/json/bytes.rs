//! Bytes in JSON: hexadecimal digits, base64 (RFC 4648 section 4), or text.

use serde_json::{Value as Json, json};

use super::JsonError;

/// Meaning of a plain JSON string that stands for bytes.
#[derive(Clone, Copy)]
pub(super) enum StringEncoding {
    /// Hexadecimal digits.
    Hex,
    /// The text itself.
    Text,
}

/// The keys of objects that stand for bytes.
pub(super) const FORMS: [&str; 3] = ["hex", "base64", "text"];

/// Hexadecimal digits, two for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('?');
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// Bytes that no plain string stands for.
pub(super) fn escaped(bytes: &[u8]) -> Json {
    json!({ "hex": hex(bytes) })
}

/// Reads bytes in any of their forms.
pub(super) fn read(found: &Json, bare: StringEncoding) -> Result<Vec<u8>, JsonError> {
    let (form, text) = match found {
        Json::String(text) => match bare {
            StringEncoding::Hex => ("hex", text),
            StringEncoding::Text => ("text", text),
        },
        found => escape(found).ok_or_else(|| JsonError::expected(expectation(bare), found))?,
    };
    let bytes = match form {
        "hex" => from_hex(text),
        "base64" => from_base64(text),
        "text" => Some(text.as_bytes().to_vec()),
        _ => None,
    };
    bytes.ok_or_else(|| match (form, found) {
        ("hex", Json::Object(_)) => {
            JsonError::expected("pairs of hexadecimal digits", &found["hex"])
        }
        ("base64", _) => JsonError::expected("base64", &found["base64"]),
        _ => JsonError::expected(expectation(bare), found),
    })
}

fn escape(found: &Json) -> Option<(&str, &String)> {
    let members = found.as_object().filter(|members| members.len() == 1)?;
    match members.iter().next()? {
        (form, Json::String(text)) => Some((form, text)),
        _ => None,
    }
}

fn expectation(bare: StringEncoding) -> &'static str {
    match bare {
        StringEncoding::Hex => {
            "bytes: a string of hexadecimal digits, {\"hex\": ..}, {\"base64\": ..} or {\"text\": ..}"
        }
        StringEncoding::Text => {
            "text: a string, or {\"hex\": ..} or {\"base64\": ..} for other bytes"
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8);
    Some(bytes.collect())
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits.bytes() {
        bits = bits << 6 | base64_digit(digit)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

fn base64_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
