//! The statuses of services, and those that wait for them to change.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::generated::HealthStatus;

/// Bytes of the longest name, as the interface has it.
const NAME_MAX: usize = 255;

/// Most services, as the interface has it.
const SERVICES_MAX: usize = 4096;

/// Callers that wait at the same time; others are answered at once.
const WATCHERS_MAX: usize = 64;

/// Time after which it is looked whether a caller that waits is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct HealthStatuses {
    state: Mutex<HealthState>,
    changed: Condvar,
}

#[derive(Debug)]
struct HealthState {
    /// By name.
    services: Vec<(Vec<u8>, HealthStatus)>,
    has_stopped: bool,
    watchers: usize,
}

impl Default for HealthStatuses {
    fn default() -> Self {
        Self {
            state: Mutex::new(HealthState {
                services: vec![(Vec::new(), HealthStatus::Serving)],
                has_stopped: false,
                watchers: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl HealthState {
    fn get(&self, service: &[u8]) -> HealthStatus {
        let found = self.find(service).ok();
        found.map_or_else(HealthStatus::default, |at| self.services[at].1)
    }

    /// Returns the index of a service, or the one at which it is to be put.
    fn find(&self, service: &[u8]) -> Result<usize, usize> {
        self.services
            .binary_search_by(|(name, _)| name.as_slice().cmp(service))
    }

    fn set(&mut self, service: &[u8], status: HealthStatus) {
        match (self.find(service), status) {
            (Ok(at), HealthStatus::Unknown) => drop(self.services.remove(at)),
            (Err(_), HealthStatus::Unknown) => {}
            (Ok(at), _) => self.services[at].1 = status,
            (Err(at), _) => self.services.insert(at, (service.to_vec(), status)),
        }
    }
}

impl HealthStatuses {
    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, service: &str, status: HealthStatus) {
        assert!(
            service.len() <= NAME_MAX,
            "the name of a service has {} bytes, and may have {NAME_MAX}",
            service.len()
        );
        let mut state = self.state();
        let status = match (status, state.has_stopped) {
            (HealthStatus::Serving, true) => HealthStatus::NotServing,
            _ => status,
        };
        state.set(service.as_bytes(), status);
        assert!(
            state.services.len() <= SERVICES_MAX,
            "there are more than {SERVICES_MAX} services"
        );
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn get(&self, service: &[u8]) -> HealthStatus {
        self.state().get(service)
    }

    pub(super) fn list(&self) -> Vec<(Vec<u8>, HealthStatus)> {
        self.state().services.clone()
    }

    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.has_stopped = true;
        for (_, status) in &mut state.services {
            *status = HealthStatus::NotServing;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Counts a caller that waits for changes. `None` if as many do as may.
    pub(super) fn watcher(&self) -> Option<HealthWatcher<'_>> {
        let mut state = self.state();
        if state.watchers >= WATCHERS_MAX {
            return None;
        }
        state.watchers += 1;
        Some(HealthWatcher(self))
    }
}

/// A caller that waits for changes. It is counted until this is dropped.
#[derive(Debug)]
pub(super) struct HealthWatcher<'s>(&'s HealthStatuses);

/// What a caller that has waited for a change finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WatchedStatus {
    pub(super) status: HealthStatus,
    /// True if the server stops, so that no further change comes.
    pub(super) is_last: bool,
}

impl HealthWatcher<'_> {
    /// Waits until the status is another than `known`, until `deadline` at most, if there is one, or the server stops.
    /// Looks in between whether the caller `is_gone`, after each [`LOOK_INTERVAL`].
    pub(super) fn wait(
        &self,
        service: &[u8],
        known: Option<HealthStatus>,
        deadline: Option<Instant>,
        is_gone: impl Fn() -> bool,
    ) -> WatchedStatus {
        let mut state = self.0.state();
        while Some(state.get(service)) == known && !state.has_stopped && !is_gone() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let pause = left.map_or(LOOK_INTERVAL, |left| left.min(LOOK_INTERVAL));
            let waited = self.0.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        WatchedStatus {
            status: state.get(service),
            is_last: state.has_stopped,
        }
    }
}

impl Drop for HealthWatcher<'_> {
    fn drop(&mut self) {
        self.0.state().watchers -= 1;
    }
}
