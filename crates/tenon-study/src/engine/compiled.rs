//! Stubs that were compiled together with this crate, a module for each design.

use tenon_wire::{Lean, Marshal, Representation, Xdr};

use super::{PreparedWorkload, check_bytes, check_value};
use crate::design::StubDesign;
use crate::entry::{CodecBenchmarks, EncodeBuffer, read, write};
use crate::study::WireFormat;
use crate::work::{SampleValues, Workload};

/// A type of some stubs that knows its value.
trait SampleStub: PartialEq {
    fn of(sample: &SampleValues) -> Self;
}

macro_rules! stubs {
    ($module:ident, $file:literal, $way:ty) => {
        #[allow(dead_code, missing_docs, clippy::all)]
        mod $module {
            /// The way in which these stubs move what the representation `R` has.
            pub type Way<R> = $way;

            include!(concat!(env!("OUT_DIR"), $file));
        }

        impl SampleStub for $module::Single {
            fn of(sample: &SampleValues) -> Self {
                let value = sample.first;
                Self { value }
            }
        }

        impl SampleStub for $module::Numbers {
            fn of(sample: &SampleValues) -> Self {
                let values = sample.numbers;
                Self { values }
            }
        }

        impl SampleStub for $module::Structure {
            fn of(sample: &SampleValues) -> Self {
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
            design: &StubDesign,
            stage: &PreparedWorkload<'a>,
            contests: &mut CodecBenchmarks<'a>,
        ) -> Result<(), String> {
            let name = design.word();
            $(
                if name == stringify!($module) {
                    return match stage.wire {
                        WireFormat::Xdr => entrance!($module, Xdr, design, stage, contests),
                        WireFormat::Lean => entrance!($module, Lean, design, stage, contests),
                    };
                }
            )*
            unreachable!("build.rs makes stubs of every design that is compiled, so of {name}")
        }
    };
}

macro_rules! entrance {
    ($module:ident, $wire:ty, $design:ident, $stage:ident, $contests:ident) => {{
        use $module::{Numbers, Single, Structure, Way};
        match $stage.work {
            Workload::Single => enter_as::<Single, Way<$wire>>($design, $stage, $contests),
            Workload::Numbers => enter_as::<Numbers, Way<$wire>>($design, $stage, $contests),
            Workload::Structure => enter_as::<Structure, Way<$wire>>($design, $stage, $contests),
        }
    }};
}

include!(concat!(env!("OUT_DIR"), "/modules.rs"));

fn enter_as<'a, T: SampleStub + Marshal<R> + 'a, R: Representation>(
    design: &StubDesign,
    stage: &PreparedWorkload<'a>,
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), String> {
    let (value, bytes) = (T::of(stage.sample), stage.bytes);
    let mut room = EncodeBuffer::default();
    write(&value, &mut room).map_err(|error| error.to_string())?;
    check_bytes(room.message(), bytes)?;
    let read = read(bytes).map_err(|error| error.to_string())?;
    check_value(&read, &value)?;
    contests.enter_stub(&design.name(), value, bytes);
    Ok(())
}
