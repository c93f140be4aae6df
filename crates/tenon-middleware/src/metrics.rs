//! Counts and times of calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tenon::{CallErrorKind, CallOutcome, CallScope, Middleware, Rejection};

/// Upper ends of the buckets in microseconds: gRFC A66 begins as low, as calls here may take a few microseconds.
pub(crate) const BUCKETS: [u64; 20] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// Procedures that are counted apart: a caller may send any number, which a service that does not know its procedures
/// cannot tell from those that it has.
const PROCEDURES_MAX: usize = 4096;

/// The name under which further ones are counted together.
const OTHERS: &str = "other procedures";

/// Counts and times the calls of each procedure, by what became of them. One may stand around many clients and services,
/// which it keeps apart by the number of the program. Of 4,096 procedures on, further ones are counted together, version by
/// version, as `other procedures`.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::sync::Arc;
/// use tenon::Layered;
/// use tenon_middleware::Metrics;
///
/// let metrics = Arc::new(Metrics::new());
/// let client = GreeterV1Client::connect(&address)?;
/// let greeter = GreeterV1Client(Layered::new(client.0, Arc::clone(&metrics)));
/// greeter.greet(&Visitor::default())?;
/// for counted in metrics.snapshot() {
///     println!(
///         "{}.{}: {} calls, {} failed, {:?} on average",
///         counted.service, counted.procedure, counted.calls(), counted.failures(), counted.average(),
///     );
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    procedures: RwLock<HashMap<ProcedureKey, Arc<ProcedureCounters>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProcedureKey {
    is_at_server: bool,
    program: u32,
    version: u32,
    number: u32,
}

impl ProcedureKey {
    #[inline]
    fn of(call: &CallScope<'_>) -> Self {
        Self {
            is_at_server: call.is_at_server(),
            program: call.program(),
            version: call.version(),
            number: call.procedure().number,
        }
    }

    /// All other procedures of the same version.
    fn of_others(self) -> Self {
        Self {
            number: u32::MAX,
            ..self
        }
    }
}

/// The counters of a procedure.
#[derive(Debug)]
pub struct ProcedureCounters {
    key: ProcedureKey,
    service: String,
    name: String,
    in_flight: AtomicI64,
    succeeded: AtomicU64,
    failed: [AtomicU64; CallErrorKind::ALL.len()],
    /// The calls of each bucket, and behind them those that took longer.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
}

/// What was counted of a procedure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProcedureMetrics {
    /// True for calls that a service carried out, false for those that a client made.
    pub is_at_server: bool,
    /// The name of the version, as the interface has it; empty if it is not known.
    pub service: String,
    /// The name of the procedure, as the interface has it; empty if it is not known.
    pub procedure: String,
    /// The number of the program.
    pub program: u32,
    /// The number of the version.
    pub version: u32,
    /// The number of the procedure.
    pub number: u32,
    /// Calls that are not over yet.
    pub in_flight: u64,
    /// Calls that had a result.
    pub succeeded: u64,
    /// Calls that failed, of each kind of which there were some.
    pub failed: Vec<(CallErrorKind, u64)>,
    /// Calls by the time that they took: of each bucket its upper end, and how many took no longer but longer than the
    /// bucket before. `None` is without end.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// Time that all of them took together.
    pub total: Duration,
}

impl ProcedureMetrics {
    /// Returns the number of calls that are over.
    pub fn calls(&self) -> u64 {
        self.succeeded + self.failures()
    }

    /// Returns the number of calls that failed.
    pub fn failures(&self) -> u64 {
        self.failed.iter().map(|(_, count)| count).sum()
    }

    /// Returns the time that a call took on average.
    pub fn average(&self) -> Duration {
        self.total / u32::try_from(self.calls().max(1)).unwrap_or(u32::MAX)
    }
}

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn counters(&self, call: &CallScope<'_>) -> Arc<ProcedureCounters> {
        let key = ProcedureKey::of(call);
        let procedures = self
            .procedures
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = procedures.get(&key) {
            return Arc::clone(counters);
        }
        drop(procedures);
        self.add_counters(key, call)
    }

    #[cold]
    fn add_counters(&self, key: ProcedureKey, call: &CallScope<'_>) -> Arc<ProcedureCounters> {
        let mut procedures = self
            .procedures
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let is_full = procedures.len() >= PROCEDURES_MAX;
        let (key, name) = match is_full && !procedures.contains_key(&key) {
            false => (key, call.procedure().name),
            true => (key.of_others(), OTHERS),
        };
        let counters = procedures.entry(key).or_insert_with(|| {
            Arc::new(ProcedureCounters {
                key,
                service: call.procedure().service.to_owned(),
                name: name.to_owned(),
                in_flight: AtomicI64::new(0),
                succeeded: AtomicU64::new(0),
                failed: std::array::from_fn(|_| AtomicU64::new(0)),
                buckets: std::array::from_fn(|_| AtomicU64::new(0)),
                nanoseconds: AtomicU64::new(0),
            })
        });
        Arc::clone(counters)
    }

    /// Returns what was counted of each procedure that was called, in the order of their numbers.
    pub fn snapshot(&self) -> Vec<ProcedureMetrics> {
        let procedures = self
            .procedures
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = procedures
            .values()
            .map(|counters| counters.snapshot())
            .collect();
        all.sort_by_key(|of| (of.is_at_server, of.program, of.version, of.number));
        all
    }
}

impl ProcedureCounters {
    #[inline]
    fn count(&self, kind: Option<CallErrorKind>, took: Duration) {
        let counter = match kind {
            None => &self.succeeded,
            Some(kind) => &self.failed[kind as usize],
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let microseconds = took.as_nanos().div_ceil(1000) as u64;
        let bucket = BUCKETS.partition_point(|end| *end < microseconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds
            .fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    fn snapshot(&self) -> ProcedureMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let failed = CallErrorKind::ALL
            .into_iter()
            .zip(self.failed.iter().map(get));
        let ends = BUCKETS
            .into_iter()
            .map(|end| Some(Duration::from_micros(end)));
        ProcedureMetrics {
            is_at_server: self.key.is_at_server,
            service: self.service.clone(),
            procedure: self.name.clone(),
            program: self.key.program,
            version: self.key.version,
            number: self.key.number,
            in_flight: self.in_flight.load(Ordering::Relaxed).max(0) as u64,
            succeeded: get(&self.succeeded),
            failed: failed.filter(|(_, count)| *count > 0).collect(),
            buckets: ends
                .chain([None])
                .zip(self.buckets.iter().map(get))
                .collect(),
            total: Duration::from_nanos(get(&self.nanoseconds)),
        }
    }
}

impl Middleware for Metrics {
    type State = Arc<ProcedureCounters>;

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<Arc<ProcedureCounters>, Rejection> {
        let counters = self.counters(call);
        counters.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(counters)
    }

    #[inline]
    fn end(
        &self,
        counters: Arc<ProcedureCounters>,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) {
        counters.in_flight.fetch_sub(1, Ordering::Relaxed);
        counters.count(outcome.kind(), call.started_at().elapsed());
    }
}

/// Returns the name of a kind as metrics have it: words with `_` between them.
#[cfg(any(feature = "prometheus", feature = "opentelemetry"))]
pub(crate) fn label_of(kind: CallErrorKind) -> String {
    let mut label = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.extend(letter.to_lowercase());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_their_order() {
        for (index, kind) in CallErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{kind:?}");
        }
    }

    #[test]
    fn a_caller_cannot_have_more_and_more_procedures_counted() {
        use tenon::{CallInfo, Credential, ProcedureInfo, Protocol, Transport};

        let metrics = Metrics::new();
        for number in 0..10_000 {
            let info = CallInfo::new(number, Credential::None, Transport::Tcp);
            let procedure = ProcedureInfo::new("", "", number);
            let mut call = CallScope::at_server(procedure, (7, 1), Protocol::Onc, &info);
            let counters = metrics.begin(&mut call).unwrap();
            metrics.end(counters, &call, &CallOutcome::Success);
        }
        let counted = metrics.snapshot();
        assert_eq!(counted.len(), PROCEDURES_MAX + 1);
        let others = counted.last().unwrap();
        assert_eq!(others.procedure, OTHERS);
        assert_eq!(others.calls(), 10_000 - PROCEDURES_MAX as u64);
    }

    #[cfg(any(feature = "prometheus", feature = "opentelemetry"))]
    #[test]
    fn labels_are_words_in_small_letters() {
        assert_eq!(
            label_of(CallErrorKind::InvalidArguments),
            "invalid_arguments"
        );
        assert_eq!(label_of(CallErrorKind::Busy), "busy");
    }
}
