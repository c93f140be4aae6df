//! The section `marshal`: encoding into a reused buffer and decoding to an owned value, beside
//! libtirpc, the fastest crates and memcpy. `bench/run marshal` builds and starts it.

mod codecs;
mod entrant;
mod making;
mod measure;
#[allow(missing_docs)]
mod messages;
mod report;
#[allow(missing_docs)]
mod stubs;
#[allow(missing_docs)]
mod values;
mod work;

use std::error::Error;

use measure::Row;
use report::{Measured, Sizes};
use work::Make;

fn main() -> Result<(), Box<dyn Error>> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    for (name, make) in work::all() {
        if name.contains(&filter) {
            eprintln!("measuring {name}");
            let (of_it, bytes) = in_places(&make).map_err(|error| format!("{name}: {error}"))?;
            rows.extend(of_it);
            sizes.push(bytes);
        }
    }
    let measured = Measured {
        rows,
        sizes,
        made: making::measure()?,
    };
    print!(
        "{}\n{}",
        report::tables(&measured),
        report::ratios(&measured.rows)
    );
    match filter.is_empty() {
        true => report::write(&measured),
        false => Ok(()),
    }
}

/// How often everything is made anew, somewhere else in memory: where a contestant's buffers lie to each
/// other, which is chance, can make a copy a third slower.
const PLACES: usize = 3;

/// Bytes by which they lie elsewhere.
const APART: usize = 4096 + 832;

/// Measures a work in all directions, wherever it happens to lie.
fn in_places(make: &Make) -> Result<([Row; 3], Sizes), Box<dyn Error>> {
    let mut work = make()?;
    let sizes = Sizes::of(&work);
    let mut rows = measure::measure(&mut work);
    for place in 1..PLACES {
        drop(work);
        std::mem::forget(vec![0_u8; APART * place]);
        work = make()?;
        for (row, further) in rows.iter_mut().zip(measure::measure(&mut work)) {
            row.extend(further);
        }
    }
    Ok((rows, sizes))
}
