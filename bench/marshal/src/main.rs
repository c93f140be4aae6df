//! The section `marshal`: encoding into a reused buffer and decoding to an owned value, beside
//! libtirpc, the fastest crates and memcpy. `bench/run marshal` builds and starts it.

mod codecs;
mod entrant;
mod making;
mod measure;
#[allow(missing_docs)]
mod messages;
mod places;
mod report;
#[allow(missing_docs)]
mod stubs;
#[allow(missing_docs)]
mod values;
mod work;

use std::error::Error;

use report::Measured;

fn main() -> Result<(), Box<dyn Error>> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    for (name, make) in work::all() {
        if name.contains(&filter) {
            eprintln!("measuring {name}");
            let (of_it, bytes) =
                places::measure(&make).map_err(|error| format!("{name}: {error}"))?;
            rows.extend(of_it);
            sizes.push(bytes);
        }
    }
    if rows.is_empty() {
        return Err("nothing that is measured has such a name".into());
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
