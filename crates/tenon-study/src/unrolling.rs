//! Arrays of 250 to 2000 integers by code that is unrolled, and by loops: what G. Muller, E.-N. Volanschi and R. Marlet
//! measured of stubs that a partial evaluator makes ("Automatic Optimization of the Sun RPC Protocol Implementation via
//! Partial Evaluation", Table 1).

use tenon_wire::{Lean, Marshal, Representation, Xdr};

use crate::engine::check_bytes;
use crate::entry::{CodecBenchmarks, EncodeBuffer, read, write};
use crate::measure::{MeasurementEffort, TurnTimings};
use crate::study::{StudyDirection, StudyError, WireFormat};
use crate::work::numbers;

/// A form of the code that moves an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeForm {
    /// A loop with a call and a check for room for each number, as Sun's code is.
    Generic,
    /// A statement for each number, behind one check.
    Unrolled,
    /// A loop behind one check.
    Looped,
    /// By all that the passes make of the plan.
    EveryPass,
}

impl CodeForm {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Generic, Self::Unrolled, Self::Looped, Self::EveryPass];

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic: a call and a check each",
            Self::Unrolled => "unrolled",
            Self::Looped => "loop",
            Self::EveryPass => "every pass",
        }
    }
}

/// One form for one length, one way.
#[derive(Debug)]
pub struct UnrollingCell {
    /// The form of the code.
    pub form: CodeForm,
    /// Numbers of the array.
    pub length: usize,
    /// Encoding or decoding.
    pub direction: StudyDirection,
    /// Its turns.
    pub timing: TurnTimings,
}

/// Lets all forms move arrays of all lengths. First each shows that it reads and writes the bytes that it should.
/// `progress` hears what is being done, and which part of that is done.
///
/// # Errors
/// A form writes other bytes than it has read.
pub fn measure(
    wire: WireFormat,
    effort: MeasurementEffort,
    mut progress: impl FnMut(&str, f64),
) -> Result<Vec<UnrollingCell>, StudyError> {
    let mut cells = Vec::new();
    for length in LENGTHS {
        let bytes = wire.bytes_of(numbers(length));
        let mut contests = CodecBenchmarks::default();
        for form in CodeForm::ALL {
            let entered = match wire {
                WireFormat::Xdr => enter_xdr(form, length, &bytes, &mut contests),
                WireFormat::Lean => enter_lean(form, length, &bytes, &mut contests),
            };
            entered.map_err(|why| StudyError::Wrong {
                design: form.name().to_owned(),
                work: "(A[n] I)",
                why,
            })?;
        }
        let CodecBenchmarks { encode, decode } = contests;
        for (direction, contest) in [
            (StudyDirection::Encode, encode),
            (StudyDirection::Decode, decode),
        ] {
            let doing = format!("{} {length} integers", direction.name());
            progress(&doing, 0.0);
            let timings = contest.run(effort, |part| progress(&doing, part));
            let forms = CodeForm::ALL.into_iter().zip(timings);
            cells.extend(forms.map(|(form, timing)| UnrollingCell {
                form,
                length,
                direction,
                timing,
            }));
        }
    }
    Ok(cells)
}

macro_rules! stubs {
    ($module:ident, $file:literal, $way:ty) => {
        #[allow(dead_code, missing_docs, clippy::all)]
        mod $module {
            /// The way in which these stubs move what the representation `R` has.
            pub type Way<R> = $way;

            include!(concat!(env!("OUT_DIR"), $file));
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/unrolling.rs"));

/// Lets the stubs of a form enter with an array of a length.
macro_rules! enter_lengths {
    ($module:ident, $wire:ident, $length:ident, $bytes:ident, $name:ident, $contests:ident) => {{
        use $module::{Numbers250, Numbers500, Numbers1000, Numbers2000, Way};
        match $length {
            250 => enter_stub::<Numbers250, Way<$wire>>($name, $bytes, $contests),
            500 => enter_stub::<Numbers500, Way<$wire>>($name, $bytes, $contests),
            1000 => enter_stub::<Numbers1000, Way<$wire>>($name, $bytes, $contests),
            _ => enter_stub::<Numbers2000, Way<$wire>>($name, $bytes, $contests),
        }
    }};
}

/// Lets a form enter with these bytes of an array of `length` numbers.
macro_rules! entrance {
    ($function:ident, $wire:ident) => {
        fn $function<'a>(
            form: CodeForm,
            length: usize,
            bytes: &'a [u8],
            contests: &mut CodecBenchmarks<'a>,
        ) -> Result<(), String> {
            let name = form.name();
            match form {
                CodeForm::Generic => enter_lengths!(generic, $wire, length, bytes, name, contests),
                CodeForm::Unrolled => {
                    enter_lengths!(unrolled, $wire, length, bytes, name, contests)
                }
                CodeForm::Looped => enter_lengths!(looped, $wire, length, bytes, name, contests),
                CodeForm::EveryPass => {
                    enter_lengths!(every_pass, $wire, length, bytes, name, contests)
                }
            }
        }
    };
}

entrance!(enter_xdr, Xdr);
entrance!(enter_lean, Lean);

/// Lets a stub enter with the value that it reads, if it writes the same bytes.
fn enter_stub<'a, T: Marshal<R> + 'a, R: Representation>(
    name: &str,
    bytes: &'a [u8],
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), String> {
    let value: T = read(bytes).map_err(|error| error.to_string())?;
    let mut room = EncodeBuffer::default();
    write(&value, &mut room).map_err(|error| error.to_string())?;
    check_bytes(room.message(), bytes)?;
    contests.enter_stub(name, value, bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_moves_every_length_both_ways() {
        for wire in [WireFormat::Xdr, WireFormat::Lean] {
            let cells = measure(wire, MeasurementEffort::QUICK, |_, _| {});
            let cells = cells.expect("the forms write what they have read");
            assert_eq!(cells.len(), CodeForm::ALL.len() * LENGTHS.len() * 2);
        }
    }

    #[test]
    fn a_form_that_writes_other_bytes_is_refused() {
        let bytes = WireFormat::Xdr.bytes_of(numbers(250));
        let mut contests = CodecBenchmarks::default();
        // Bytes that are too few, and more than it reads.
        for wrong in [&bytes[1..], &[&bytes[..], &[0; 4]].concat()] {
            let wrong = wrong.to_vec().leak();
            let entered = enter_xdr(CodeForm::Looped, 250, wrong, &mut contests);
            entered.expect_err("other bytes");
        }
    }
}
