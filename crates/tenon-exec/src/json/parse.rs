//! Text to JSON.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

/// Parses JSON as `serde_json` does, and refuses an object that names a member twice: a
/// [`Json::Object`] would keep the last, and the meaning of such text is unspecified (RFC 8259, section 4).
///
/// # Errors
/// The text is not JSON; or it names a member twice, and the error, which alone
/// [is of data](serde_json::Error::is_data), says which, as in `$.entries[3].name`, and where.
pub fn parse(text: &str) -> Result<Json, serde_json::Error> {
    let mut twice = serde_json::Deserializer::from_str(text);
    UniqueNameVisitor(JsonPath::Root).deserialize(&mut twice)?;
    serde_json::from_str(text)
}

/// Path from the root of a JSON text to a value in it.
#[derive(Clone, Copy)]
enum JsonPath<'a> {
    Root,
    Member(&'a JsonPath<'a>, &'a str),
    Element(&'a JsonPath<'a>, usize),
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Member(object, name) => write!(f, "{object}.{name}"),
            Self::Element(array, position) => write!(f, "{array}[{position}]"),
        }
    }
}

/// Visits the value at a path and keeps nothing of it. Numbers that are no integers of 64 bits come as objects of
/// one member: so `serde_json` hands over digits.
struct UniqueNameVisitor<'a>(JsonPath<'a>);

impl<'de> DeserializeSeed<'de> for UniqueNameVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueNameVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut position = 0;
        while elements
            .next_element_seed(UniqueNameVisitor(JsonPath::Element(&self.0, position)))?
            .is_some()
        {
            position += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let place = JsonPath::Member(&self.0, &name);
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("{place} is given twice")));
            }
            members.next_value_seed(UniqueNameVisitor(place))?;
            names.insert(name);
        }
        Ok(())
    }
}
