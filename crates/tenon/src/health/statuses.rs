//! The statuses of services, and those that wait for them to change.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::generated::HealthStatus;

/// Bytes of the longest name, as the interface has it.
const NAME_MAX: usize = 255;

/// Most services, as the interface has it.
const SERVICES_MAX: usize = 4096;

/// Callers that wait at the same time; others are answered at once.
const WATCHERS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct HealthStatuses {
    state: Mutex<HealthState>,
    changed: Condvar,
}

#[derive(Debug)]
struct HealthState {
    services: BTreeMap<Vec<u8>, HealthStatus>,
    has_stopped: bool,
    watchers: usize,
}

impl Default for HealthStatuses {
    fn default() -> Self {
        Self {
            state: Mutex::new(HealthState {
                services: BTreeMap::from([(Vec::new(), HealthStatus::Serving)]),
                has_stopped: false,
                watchers: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl HealthState {
    fn get(&self, service: &[u8]) -> HealthStatus {
        self.services.get(service).copied().unwrap_or_default()
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
        if status == HealthStatus::Unknown {
            state.services.remove(service.as_bytes());
        } else {
            state.services.insert(service.as_bytes().to_vec(), status);
            assert!(
                state.services.len() <= SERVICES_MAX,
                "there are more than {SERVICES_MAX} services"
            );
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn get(&self, service: &[u8]) -> HealthStatus {
        self.state().get(service)
    }

    pub(super) fn list(&self) -> Vec<(Vec<u8>, HealthStatus)> {
        let state = self.state();
        let services = state.services.iter();
        services
            .map(|(name, status)| (name.clone(), *status))
            .collect()
    }

    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.has_stopped = true;
        for status in state.services.values_mut() {
            *status = HealthStatus::NotServing;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until the status is another than `known`, until `deadline` at most. Looks in between whether the caller
    /// `is_gone`, after each `look`.
    pub(super) fn watch(
        &self,
        service: &[u8],
        known: HealthStatus,
        deadline: Instant,
        look: Duration,
        is_gone: impl Fn() -> bool,
    ) -> HealthStatus {
        let mut state = self.state();
        if state.watchers >= WATCHERS_MAX {
            return state.get(service);
        }
        state.watchers += 1;
        // A server that stops has nothing new to tell, and does not wait for those that wait.
        while state.get(service) == known && !state.has_stopped && !is_gone() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left.min(look));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.watchers -= 1;
        state.get(service)
    }
}
