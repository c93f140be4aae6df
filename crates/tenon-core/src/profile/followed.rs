//! A call that is followed while its caller does other things.

use super::account::Account;
use super::steps::{Note, Probe, Step, Steps, Times};

/// A call that an account follows, by whoever brings it further.
#[derive(Debug)]
pub struct Followed {
    account: Account,
    steps: Steps,
}

impl Followed {
    /// Follows a call that is entered now.
    #[cold]
    fn begin(account: &Account) -> Self {
        Self {
            account: account.clone(),
            steps: Steps::begin(),
        }
    }

    /// Where the call is, for whoever watches it.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The call is at this place.
    #[cold]
    pub fn at(&self, step: Step) {
        Probe::at(&self.steps, step);
    }

    /// The caller goes on with results that somebody else has received, who left this note.
    #[cold]
    pub fn fetched(&self, note: Option<&Note>) {
        Probe::fetched(&self.steps, note);
    }

    /// The call is over and has a result: it is kept.
    #[cold]
    pub fn keep(&self) {
        let times: Times = self.steps.end();
        self.account.keep(times);
    }
}

impl Account {
    /// Follows the call that begins now if it is to be followed, while its caller may do other things.
    #[cold]
    pub fn begin(&self) -> Option<Followed> {
        self.is_due().then(|| Followed::begin(self))
    }
}
