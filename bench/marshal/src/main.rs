//! The section `marshal`: encoding into a reused buffer and decoding to an owned value, beside
//! libtirpc, the fastest crates and memcpy. `bench/run marshal` builds and starts it.

mod codecs;
mod entrant;
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

use report::Sizes;

fn main() -> Result<(), Box<dyn Error>> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    for (name, make) in work::all() {
        if name.contains(&filter) {
            let mut work = make().map_err(|error| format!("{name}: {error}"))?;
            eprintln!("measuring {name}");
            rows.extend(measure::measure(&mut work));
            sizes.push(Sizes::of(&work));
        }
    }
    print!(
        "{}\n{}",
        report::tables(&rows, &sizes),
        report::ratios(&rows)
    );
    match filter.is_empty() {
        true => report::write(&rows, &sizes),
        false => Ok(()),
    }
}
