//! A service made with views looks at its arguments where they were received: it takes no memory for
//! text and bytes, and none for arrays of numbers that lie there as in memory.

use crate::ALLOCATOR;
use crate::borrowed::{BorrowedV1, BorrowedV1Client, BorrowedV1Service, Found, FoundView};
use crate::borrowed::{Reading, ReadingView};
use crate::common::caller;
use stats_alloc::Region;
use tenon::wire::{BStr, BString, Cow};
use tenon::{CallInfo, Protocol, Refusal};

struct Meter;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl BorrowedV1 for Meter {
    fn length(&self, _: &CallInfo<'_>, text: &BStr) -> Result<u32, Refusal> {
        Ok(text.len() as u32)
    }

    fn sum(&self, _: &CallInfo<'_>, bytes: &[u8]) -> Result<u32, Refusal> {
        Ok(bytes.iter().map(|byte| u32::from(*byte)).sum())
    }

    fn mean(&self, _: &CallInfo<'_>, values: Cow<'_, [f64]>) -> Result<f64, Refusal> {
        Ok(mean(&values))
    }

    fn mean_of(
        &self,
        _: &CallInfo<'_>,
        of: ReadingView<'_>,
        at_least: i32,
        other: FoundView<'_>,
    ) -> Result<f64, Refusal> {
        let other = match other {
            FoundView::It(other) => mean(&other.values),
            FoundView::Void => 0.0,
        };
        Ok((mean(&of.values) + other).max(at_least.into()))
    }

    fn plus(&self, _: &CallInfo<'_>, left: i32, right: i32) -> Result<i32, Refusal> {
        Ok(left + right)
    }

    fn echo(&self, _: &CallInfo<'_>, text: &BStr) -> Result<BString, Refusal> {
        Ok(text.to_owned())
    }
}

fn reading(values: &[f64]) -> Reading {
    Reading {
        sensor: "roof".into(),
        values: values.to_vec(),
        flags: 1,
    }
}

/// Allocations of the quietest of several rounds: a machine that is busy with something else may
/// let the server believe that the peer is silent.
fn fewest_allocations(mut call: impl FnMut()) -> usize {
    (0..300).for_each(|_| call());
    let rounds = (0..20).map(|_| {
        let region = Region::new(ALLOCATOR);
        (0..100).for_each(|_| call());
        let change = region.change();
        change.allocations + change.reallocations
    });
    rounds.min().unwrap()
}

pub fn what_is_only_looked_at_takes_no_memory() {
    let builder = caller::listening().service(BorrowedV1Service(Meter));
    let server = builder.start().unwrap();
    let streams = server.addresses().iter().map(ToString::to_string);
    let streams = streams.filter(|address| !address.starts_with("udp"));
    for address in streams.flat_map(|address| [format!("lean+{address}"), address]) {
        let client = BorrowedV1Client::connect(&address).unwrap();
        let text = BStr::new("somebody looks at this");
        assert_eq!(client.echo(text).unwrap(), text);
        assert_eq!(client.plus(2, 3).unwrap(), 5);
        let bytes = vec![7; 1001];
        let looks = fewest_allocations(|| {
            assert_eq!(client.length(text).unwrap(), 22);
            assert_eq!(client.sum(&bytes).unwrap(), 7007);
        });
        assert_eq!(looks, 0, "{address}");
        let values = vec![1.5; 100];
        let (one, other) = (reading(&values), Found::It(reading(&[2.0, 4.0])));
        let looks = fewest_allocations(|| {
            assert_eq!(client.mean(&values).unwrap(), 1.5);
            assert_eq!(client.mean_of(&one, 0, &other).unwrap(), 4.5);
            assert_eq!(client.mean_of(&one, 2, &Found::Void).unwrap(), 2.0);
        });
        match client.0.protocol() {
            Protocol::Lean => assert_eq!(looks, 0, "{address}"),
            // The numbers have to be put into this machine's order.
            Protocol::Onc if cfg!(target_endian = "little") => assert!(looks > 0, "{address}"),
            Protocol::Onc => {}
        }
    }
}
