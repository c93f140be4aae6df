//! A call that is followed while its caller does other things.

use super::call_profile::CallProfile;
use super::steps::{CallTimestamps, Note, Probe, Step, StepRecorder};

/// A call that an account follows, whichever thread brings it further.
#[derive(Debug)]
pub struct Followed {
    account: CallProfile,
    steps: StepRecorder,
}

impl Followed {
    /// Follows a call that is entered now.
    #[cold]
    fn begin(account: &CallProfile) -> Self {
        Self {
            account: account.clone(),
            steps: StepRecorder::begin(),
        }
    }

    /// Returns the recorder of the call's steps.
    pub fn steps(&self) -> &StepRecorder {
        &self.steps
    }

    /// Records that the call is at this place.
    #[cold]
    pub fn at(&self, step: Step) {
        Probe::at(&self.steps, step);
    }

    /// Records that the caller goes on with results that another caller has received, which left this note.
    #[cold]
    pub fn fetched(&self, note: Option<&Note>) {
        Probe::fetched(&self.steps, note);
    }

    /// Keeps the call, which is over and has a result.
    #[cold]
    pub fn keep(&self) {
        let times: CallTimestamps = self.steps.end();
        self.account.keep(times);
    }
}

impl CallProfile {
    /// Follows the call that begins now if it is to be followed, while its caller may do other things.
    #[cold]
    pub fn begin(&self) -> Option<Followed> {
        self.is_due().then(|| Followed::begin(self))
    }
}
