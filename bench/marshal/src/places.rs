//! Where things lie. How the buffers of a contestant lie to each other within a page is chance, and can make a
//! short copy take twice as long: a load that follows a store to the same place of another page waits for it.
//! So each work is measured in many places, and what a row says is what is usual.

use std::error::Error;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::measure::{self, Row};
use crate::report::Sizes;
use crate::work::{Make, Work};

/// How often everything is made anew, somewhere else in memory. A place makes more of a difference than the moment,
/// so there is one round in each.
const PLACES: usize = 45;

/// Works that take no more bytes than this stay when the next one is made, so that this cannot come to lie
/// where they lay.
const SMALL: usize = 64 << 10;

/// A page, within which places differ.
const PAGE: usize = 4096;

/// Measures a work in all directions, wherever it happens to lie.
pub fn measure(make: &Make) -> Result<([Row; 3], Sizes), Box<dyn Error>> {
    elsewhere();
    let mut work = make()?;
    let sizes = Sizes::of(&work);
    let mut rows = measure::measure(&mut work);
    for _ in 1..PLACES {
        leave(work);
        elsewhere();
        work = make()?;
        for (row, further) in rows.iter_mut().zip(measure::measure(&mut work)) {
            row.extend(further);
        }
    }
    Ok((rows, sizes))
}

/// Makes room for another work. A small one stays where it is.
fn leave(work: Work) {
    let is_small = work.entrants.iter().all(|entrant| entrant.bytes <= SMALL);
    if is_small {
        mem::forget(work);
    }
}

/// Lets what is allocated next lie elsewhere in its page: anywhere, and in the course of time everywhere.
/// What is between stays allocated.
pub fn elsewhere() {
    // Multiples of the golden ratio never come close to each other.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let steps = STEPS.fetch_add(1, Ordering::Relaxed);
    let bytes = steps.wrapping_mul(GOLDEN) >> (u64::BITS - PAGE.ilog2());
    mem::forget(Vec::<u8>::with_capacity(bytes as usize));
}
