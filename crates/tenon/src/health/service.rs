//! The service that answers questions for the health.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::Refusal;
use tenon_core::error::CallError;
use tenon_core::service::CallInfo;
use tenon_wire::BString;

use super::generated::{
    HealthEntries, HealthEntry, HealthName, HealthQuestion, HealthStatus, HealthV1,
};
use super::statuses::HealthStatuses;
use crate::streams::ItemWriter;

/// Longest wait of a caller that watches.
const WATCH_MAX: Duration = Duration::from_secs(300);

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
        let service = question.service.as_slice();
        let Some(watcher) = self.0.watcher() else {
            return Ok(self.0.get(service));
        };
        let wait = Duration::from_millis(question.milliseconds.into()).min(WATCH_MAX);
        let mut deadline = Instant::now() + wait;
        if let Some(told) = call.deadline() {
            deadline = deadline.min(told);
        }
        let (known, is_gone) = (Some(question.known), || call.is_cancelled());
        let found = watcher.wait(service, known, Some(deadline), is_gone);
        Ok(found.status)
    }

    fn follow(
        &self,
        call: &CallInfo<'_>,
        service: HealthName,
        results: &mut ItemWriter<HealthStatus>,
    ) -> Result<(), Refusal> {
        let Some(watcher) = self.0.watcher() else {
            let text = "as many callers wait for changes as may";
            return Err(Refusal::Overloaded(text.to_owned()));
        };
        let mut known = None;
        loop {
            let found = watcher.wait(service.as_slice(), known, None, || call.is_cancelled());
            if call.is_cancelled() {
                return Err(CallError::CallerGone.into());
            }
            if known != Some(found.status) {
                results.send(&found.status)?;
                known = Some(found.status);
            }
            if found.is_last {
                return Err(Refusal::Stopping("no status comes after this".to_owned()));
            }
        }
    }
}
