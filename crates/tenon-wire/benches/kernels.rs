//! Benchmarks of the kernels beside a copy of the same bytes: `cargo bench -p tenon-rpc-wire`.
//!
//! The contestants take turns, so that a slow moment of the machine meets all of them. Printed are
//! medians, in bytes read per nanosecond (GB/s).

use std::hint::black_box;
use std::time::Instant;

use tenon_wire::kernels::{self, Kernel};

const SIZES: [usize; 6] = [64, 256, 1 << 10, 8 << 10, 64 << 10, 1 << 20];
const BYTES_PER_SAMPLE: usize = 4 << 20;
const SAMPLES: usize = 41;

/// The same numbers as items and as bytes, and a place to write to.
struct Data {
    items: Vec<u32>,
    bytes: Vec<u8>,
    to: Vec<u8>,
}

impl Data {
    fn new(size: usize) -> Self {
        let items: Vec<u32> = (0..size as u32 / 4).collect();
        Self {
            bytes: items.iter().flat_map(|item| item.to_be_bytes()).collect(),
            items,
            to: vec![0; size],
        }
    }
}

struct Contestant {
    name: String,
    run: Box<dyn FnMut(&mut Data)>,
    /// GB/s.
    samples: Vec<f64>,
}

impl Contestant {
    fn new(name: &str, run: impl FnMut(&mut Data) + 'static) -> Self {
        Self {
            name: name.to_owned(),
            run: Box::new(run),
            samples: Vec::new(),
        }
    }

    fn sample(&mut self, data: &mut Data) {
        let repeats = BYTES_PER_SAMPLE / data.bytes.len();
        let start = Instant::now();
        for _ in 0..repeats {
            (self.run)(black_box(data));
        }
        let took = start.elapsed().as_nanos() as f64;
        self.samples.push(BYTES_PER_SAMPLE as f64 / took);
    }

    /// Takes what was sampled.
    fn median(&mut self) -> f64 {
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    }
}

fn contestants() -> Vec<Contestant> {
    let mut all = vec![
        Contestant::new("memcpy", |data| data.to.copy_from_slice(&data.bytes)),
        Contestant::new("a loop", swap_by_loop),
    ];
    for kernel in Kernel::available() {
        let swap = move |data: &mut Data| kernel.swap::<u32>(&data.bytes, &mut data.to);
        all.push(Contestant::new(kernel.name(), swap));
    }
    all.push(Contestant::new("copy", |data| {
        kernels::put(&data.bytes, &mut data.to, false);
    }));
    all.push(Contestant::new("put", |data| {
        kernels::put(&data.items, &mut data.to, true);
    }));
    all.push(Contestant::new("to_vec", |data| {
        black_box(data.bytes.to_vec());
    }));
    all.push(Contestant::new("get_vec", |data| {
        black_box(kernels::get_vec::<u32>(
            &data.bytes,
            data.bytes.len() / 4,
            true,
        ));
    }));
    all
}

/// The plainest code, as the compiler translates it.
fn swap_by_loop(data: &mut Data) {
    for (to, item) in data.to.chunks_exact_mut(4).zip(&data.items) {
        to.copy_from_slice(&item.to_be_bytes());
    }
}

fn main() {
    let mut all = contestants();
    let names = all.iter().map(|one| format!("{:>9}", one.name));
    println!("{:>8} {}", "bytes", names.collect::<String>());
    for size in SIZES {
        let mut data = Data::new(size);
        for _ in 0..SAMPLES {
            all.iter_mut().for_each(|one| one.sample(&mut data));
        }
        let medians = all.iter_mut().map(|one| format!("{:9.1}", one.median()));
        println!("{size:>8} {}", medians.collect::<String>());
    }
}
