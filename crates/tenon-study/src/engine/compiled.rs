//! Stubs that were compiled together with this crate, a module for each design.

use std::hint::black_box;

use tenon_wire::{Buffer, Decoder, Encoder, Marshal};

use super::{Contests, Stage, check_bytes, check_value};
use crate::design::Design;
use crate::work::{Sample, Work};

/// A type of some stubs that knows its value.
trait Stub: Marshal + PartialEq {
    fn of(sample: &Sample) -> Self;
}

macro_rules! stubs {
    ($module:ident, $file:literal) => {
        #[allow(dead_code, missing_docs, clippy::all)]
        mod $module {
            include!(concat!(env!("OUT_DIR"), $file));
        }

        impl Stub for $module::Single {
            fn of(sample: &Sample) -> Self {
                let value = sample.first;
                Self { value }
            }
        }

        impl Stub for $module::Numbers {
            fn of(sample: &Sample) -> Self {
                let values = sample.numbers;
                Self { values }
            }
        }

        impl Stub for $module::Structure {
            fn of(sample: &Sample) -> Self {
                Self {
                    first: sample.first,
                    second: sample.second,
                    third: sample.third,
                    numbers: sample.numbers,
                    triples: sample.triples.map(|[a, b, c]| $module::Triple { a, b, c }),
                    text: $module::Text {
                        kind: sample.kind,
                        text: sample.text.into(),
                    },
                }
            }
        }
    };
}

macro_rules! entrances {
    ($($module:ident)*) => {
        /// Lets a design that is compiled enter the contests.
        pub fn enter<'a>(
            design: &Design,
            stage: &Stage<'a>,
            contests: &mut Contests<'a>,
        ) -> Result<(), String> {
            let name = design.word();
            $(
                if name == stringify!($module) {
                    return match stage.work {
                        Work::Single => enter_as::<$module::Single>(design, stage, contests),
                        Work::Numbers => enter_as::<$module::Numbers>(design, stage, contests),
                        Work::Structure => enter_as::<$module::Structure>(design, stage, contests),
                    };
                }
            )*
            unreachable!("build.rs makes stubs of every design that is compiled, so of {name}")
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/modules.rs"));

fn enter_as<'a, T: Stub + 'a>(
    design: &Design,
    stage: &Stage<'a>,
    contests: &mut Contests<'a>,
) -> Result<(), String> {
    let (value, bytes) = (T::of(stage.sample), stage.bytes);
    let mut buffer = Buffer::default();
    encode(&value, &mut buffer)?;
    check_bytes(buffer.as_slice(), bytes)?;
    let read = T::decode(&mut Decoder::new(bytes)).map_err(|error| error.to_string())?;
    check_value(&read, &value)?;
    contests.encode.enter(design.name(), move || {
        black_box(encode(black_box(&value), &mut buffer)).is_ok()
    });
    contests.decode.enter(design.name(), move || {
        T::decode(&mut Decoder::new(black_box(bytes)))
    });
    Ok(())
}

#[inline]
fn encode<T: Stub>(value: &T, buffer: &mut Buffer) -> Result<(), String> {
    buffer.clear();
    let done = value.encode(&mut Encoder::new(buffer));
    done.map_err(|error| error.to_string())
}
