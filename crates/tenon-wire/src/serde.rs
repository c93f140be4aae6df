//! Arrays in generated types that derive serde's traits. Serde itself has no implementation for arrays of more than 32
//! elements, so that the stubs have their fields written by the types of this module:
//! `#[serde(with = "tenon_wire::serde::Of::<tenon_wire::serde::Plain>")]`. In data an array is what serde makes of
//! shorter ones: a tuple.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde_core::de::{Error, SeqAccess, Visitor};
use serde_core::ser::{SerializeSeq, SerializeTuple};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

/// Most bytes that are taken for elements before these are there.
const AHEAD: usize = 1 << 16;

/// Writes values of type `T`.
pub trait SerializeAs<T> {
    /// Writes one.
    ///
    /// # Errors
    /// The error of the serializer.
    fn serialize_as<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>;
}

/// Reads values of type `T`.
pub trait DeserializeAs<'de, T> {
    /// Reads one.
    ///
    /// # Errors
    /// The error of the deserializer, or the data has another number of elements.
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>;
}

/// Values that implement serde's traits themselves.
#[derive(Debug)]
pub struct Plain(());

impl<T: Serialize> SerializeAs<T> for Plain {
    fn serialize_as<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> DeserializeAs<'de, T> for Plain {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// An array, an array in a box, a `Vec` or an `Option`, what is in which is an `M`.
#[derive(Debug)]
pub struct Of<M>(PhantomData<M>);

/// Anything else in a box.
#[derive(Debug)]
pub struct Boxed<M>(PhantomData<M>);

macro_rules! with {
    ($marker:ident) => {
        impl<M> $marker<M> {
            /// Writes a field.
            ///
            /// # Errors
            /// The error of the serializer.
            pub fn serialize<T, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
            where
                Self: SerializeAs<T>,
            {
                Self::serialize_as(value, serializer)
            }

            /// Reads a field.
            ///
            /// # Errors
            /// As [`DeserializeAs::deserialize_as`].
            pub fn deserialize<'de, T, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
            where
                Self: DeserializeAs<'de, T>,
            {
                Self::deserialize_as(deserializer)
            }
        }
    };
}

with!(Of);
with!(Boxed);

/// A value and how it is written.
struct SerializeAsWrap<'a, T, M>(&'a T, PhantomData<M>);

impl<T, M: SerializeAs<T>> Serialize for SerializeAsWrap<'_, T, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        M::serialize_as(self.0, serializer)
    }
}

/// A value that was read, and how.
struct DeserializeAsWrap<T, M>(T, PhantomData<M>);

impl<'de, T, M: DeserializeAs<'de, T>> Deserialize<'de> for DeserializeAsWrap<T, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(M::deserialize_as(deserializer)?, PhantomData))
    }
}

impl<T, M: SerializeAs<T>, const N: usize> SerializeAs<[T; N]> for Of<M> {
    fn serialize_as<S: Serializer>(array: &[T; N], serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N)?;
        for element in array {
            tuple.serialize_element(&SerializeAsWrap::<T, M>(element, PhantomData))?;
        }
        tuple.end()
    }
}

impl<'de, T, M: DeserializeAs<'de, T>, const N: usize> DeserializeAs<'de, [T; N]> for Of<M> {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<[T; N], D::Error> {
        <Self as DeserializeAs<'de, Box<[T; N]>>>::deserialize_as(deserializer).map(|array| *array)
    }
}

impl<T, M: SerializeAs<T>, const N: usize> SerializeAs<Box<[T; N]>> for Of<M> {
    fn serialize_as<S: Serializer>(array: &Box<[T; N]>, serializer: S) -> Result<S::Ok, S::Error> {
        <Self as SerializeAs<[T; N]>>::serialize_as(array, serializer)
    }
}

impl<'de, T, M: DeserializeAs<'de, T>, const N: usize> DeserializeAs<'de, Box<[T; N]>> for Of<M> {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<Box<[T; N]>, D::Error> {
        let elements = deserializer.deserialize_tuple(N, ElementsVisitor::<T, M>::of(Some(N)))?;
        let count = elements.len();
        let array = elements.into_boxed_slice().try_into();
        array.map_err(|_| Error::invalid_length(count, &ElementsVisitor::<T, M>::of(Some(N))))
    }
}

impl<T, M: SerializeAs<T>> SerializeAs<Vec<T>> for Of<M> {
    fn serialize_as<S: Serializer>(elements: &Vec<T>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(elements.len()))?;
        for element in elements {
            sequence.serialize_element(&SerializeAsWrap::<T, M>(element, PhantomData))?;
        }
        sequence.end()
    }
}

impl<'de, T, M: DeserializeAs<'de, T>> DeserializeAs<'de, Vec<T>> for Of<M> {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(ElementsVisitor::<T, M>::of(None))
    }
}

impl<T, M: SerializeAs<T>> SerializeAs<Option<T>> for Of<M> {
    fn serialize_as<S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        let value = value.as_ref();
        value
            .map(|value| SerializeAsWrap::<T, M>(value, PhantomData))
            .serialize(serializer)
    }
}

impl<'de, T, M: DeserializeAs<'de, T>> DeserializeAs<'de, Option<T>> for Of<M> {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        let value = Option::<DeserializeAsWrap<T, M>>::deserialize(deserializer)?;
        Ok(value.map(|read| read.0))
    }
}

impl<T, M: SerializeAs<T>> SerializeAs<Box<T>> for Boxed<M> {
    fn serialize_as<S: Serializer>(value: &Box<T>, serializer: S) -> Result<S::Ok, S::Error> {
        M::serialize_as(value, serializer)
    }
}

impl<'de, T, M: DeserializeAs<'de, T>> DeserializeAs<'de, Box<T>> for Boxed<M> {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<Box<T>, D::Error> {
        M::deserialize_as(deserializer).map(Box::new)
    }
}

/// Reads elements: as many as there are, or a certain number.
struct ElementsVisitor<T, M> {
    count: Option<usize>,
    of: PhantomData<(T, M)>,
}

impl<T, M> ElementsVisitor<T, M> {
    fn of(count: Option<usize>) -> Self {
        Self {
            count,
            of: PhantomData,
        }
    }
}

impl<'de, T, M: DeserializeAs<'de, T>> Visitor<'de> for ElementsVisitor<T, M> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            Some(count) => write!(f, "an array of {count} elements"),
            None => f.write_str("a sequence"),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let ahead = self.count.or(from.size_hint()).unwrap_or(0);
        let most = AHEAD / size_of::<T>().max(1);
        let mut elements = Vec::with_capacity(ahead.min(most));
        while self.count != Some(elements.len()) {
            match from.next_element::<DeserializeAsWrap<T, M>>()? {
                Some(read) => elements.push(read.0),
                None => break,
            }
        }
        Ok(elements)
    }
}
