//! The crates that a user might pick instead, each as its documentation recommends for speed:
//! fixed-width integers where there is a choice, its own derives, a buffer used again.

use std::hint::black_box;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wincode::config::{Configuration, PREALLOCATION_SIZE_LIMIT_DISABLED};
use wincode::{SchemaRead, SchemaWrite};

use crate::entrant::{Codec, View, good};

/// The mesh is larger than wincode would allocate otherwise.
type WincodeConfig = Configuration<true, PREALLOCATION_SIZE_LIMIT_DISABLED>;

const WINCODE: WincodeConfig = Configuration::default().disable_preallocation_size_limit();

/// wincode.
#[derive(Default)]
pub struct Wincode(Vec<u8>);

impl<T> Codec<T> for Wincode
where
    T: SchemaWrite<WincodeConfig, Src = T> + for<'de> SchemaRead<'de, WincodeConfig, Dst = T>,
{
    const NAME: &'static str = "wincode";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.clear();
        let done = wincode::config::serialize_into(&mut self.0, value, WINCODE);
        good(done);
        &self.0
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(wincode::config::deserialize(bytes, WINCODE))
    }
}

/// bitcode, by its own derives.
#[derive(Default)]
pub struct Bitcode(bitcode::Buffer);

impl<T> Codec<T> for Bitcode
where
    T: bitcode::Encode + bitcode::DecodeOwned,
{
    const NAME: &'static str = "bitcode";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.encode(value)
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(self.0.decode(bytes))
    }
}

/// rkyv: checked access, then an owned value.
#[derive(Default)]
pub struct Rkyv(rkyv::util::AlignedVec);

type RkyvSerializer<'a> = rkyv::api::high::HighSerializer<
    rkyv::util::AlignedVec,
    rkyv::ser::allocator::ArenaHandle<'a>,
    rkyv::rancor::Error,
>;

impl<T> Codec<T> for Rkyv
where
    T: rkyv::Archive + for<'a> rkyv::Serialize<RkyvSerializer<'a>>,
    T::Archived: for<'a> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'a, rkyv::rancor::Error>>
        + rkyv::Deserialize<T, rkyv::api::high::HighDeserializer<rkyv::rancor::Error>>,
{
    const NAME: &'static str = "rkyv";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        let mut buffer = std::mem::take(&mut self.0);
        buffer.clear();
        self.0 = good(rkyv::api::high::to_bytes_in(value, buffer));
        &self.0
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(rkyv::from_bytes::<T, rkyv::rancor::Error>(bytes))
    }

    const VIEW: Option<View> = Some(|bytes| {
        let archived = rkyv::access::<T::Archived, rkyv::rancor::Error>(bytes);
        black_box(good(archived));
    });
}

/// bincode 2, by its own derives.
#[derive(Default)]
pub struct Bincode(Vec<u8>);

const BINCODE: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Fixint,
> = bincode::config::standard().with_fixed_int_encoding();

impl<T> Codec<T> for Bincode
where
    T: bincode::Encode + bincode::Decode<()>,
{
    const NAME: &'static str = "bincode";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.clear();
        let done = bincode::encode_into_std_write(value, &mut self.0, BINCODE);
        good(done);
        &self.0
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        let decoded = bincode::decode_from_slice(bytes, BINCODE);
        good(decoded).0
    }
}

/// postcard, by serde.
#[derive(Default)]
pub struct Postcard(Vec<u8>);

impl<T> Codec<T> for Postcard
where
    T: Serialize + DeserializeOwned,
{
    const NAME: &'static str = "postcard";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        let mut buffer = std::mem::take(&mut self.0);
        buffer.clear();
        self.0 = good(postcard::to_extend(value, buffer));
        &self.0
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(postcard::from_bytes(bytes))
    }
}

/// prost, with messages of its own.
#[derive(Default)]
pub struct Prost(Vec<u8>);

impl<T> Codec<T> for Prost
where
    T: prost::Message + Default,
{
    const NAME: &'static str = "prost";

    #[inline]
    fn encode(&mut self, value: &T) -> &[u8] {
        self.0.clear();
        good(value.encode(&mut self.0));
        &self.0
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> T {
        good(T::decode(bytes))
    }
}
