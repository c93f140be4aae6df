//! The service that answers questions for the health.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::Refusal;
use tenon_core::service::CallInfo;
use tenon_wire::BString;

use super::generated::{
    HealthEntries, HealthEntry, HealthName, HealthQuestion, HealthStatus, HealthV1,
};
use super::statuses::HealthStatuses;

/// Longest wait of a caller that watches.
const WATCH_MAX: Duration = Duration::from_secs(300);

/// Time after which it is looked whether a caller that watches is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

pub(super) struct HealthHandlers(pub(super) Arc<HealthStatuses>);

impl HealthV1 for HealthHandlers {
    fn check(&self, _call: &CallInfo<'_>, service: HealthName) -> Result<HealthStatus, Refusal> {
        Ok(self.0.get(service.as_slice()))
    }

    fn list(&self, _call: &CallInfo<'_>) -> Result<HealthEntries, Refusal> {
        let entry = |(service, status)| HealthEntry {
            service: BString::from(service),
            status,
        };
        Ok(self.0.list().into_iter().map(entry).collect())
    }

    fn watch(
        &self,
        call: &CallInfo<'_>,
        question: HealthQuestion,
    ) -> Result<HealthStatus, Refusal> {
        let wait = Duration::from_millis(question.milliseconds.into()).min(WATCH_MAX);
        let mut deadline = Instant::now() + wait;
        if let Some(told) = call.deadline() {
            deadline = deadline.min(told);
        }
        Ok(self.0.watch(
            question.service.as_slice(),
            question.known,
            deadline,
            LOOK_INTERVAL,
            || call.is_cancelled(),
        ))
    }
}
