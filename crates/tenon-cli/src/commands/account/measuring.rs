//! Calling procedures again and again, with an account and, beside, without one.

use std::time::{Duration, Instant};

use tenon::{Address, CallProfile, Client, Summary};

use super::subject::{MessageSizes, ProfiledProcedure};
use crate::commands::connect;
use crate::commands::table::percentile;
use crate::failure::CommandFailure;

/// Calls before those that count: connections, caches and branch predictors are warm then, and it is
/// known what the server can say.
const WARM_UP: u32 = 100;

/// Calls of one kind before it is another one's turn: what changes on the machine meanwhile concerns all.
const TURN: u32 = 50;

/// A procedure, and where it is called.
#[derive(Clone, Copy)]
pub struct ProfiledCall<'a> {
    /// The procedure that is called.
    pub subject: &'a ProfiledProcedure<'a>,
    /// The client that calls it, without an account.
    pub client: &'a Client,
    /// The address at which it is called.
    pub address: &'a Address,
}

/// The measurements of one procedure.
pub struct ProfileFinding {
    /// The address that was called.
    pub address: Address,
    /// The procedure's name.
    pub procedure: String,
    /// Sizes of its messages.
    pub bytes: MessageSizes,
    /// The account.
    pub summary: Summary,
    /// Times of the same calls by a clock around them, which knows nothing of the account.
    pub measured: SortedTimes,
    /// Times of as many calls without an account by that clock.
    pub unfollowed: SortedTimes,
}

/// Times by a clock around calls, sorted.
pub struct SortedTimes(Vec<Duration>);

impl SortedTimes {
    /// Returns the mean of the middle half, in nanoseconds, as the typical times of an account are made.
    pub fn typical(&self) -> f64 {
        let quarter = self.0.len() / 4;
        let middle = &self.0[quarter..self.0.len() - quarter];
        let sum: f64 = middle.iter().map(|time| time.as_nanos() as f64).sum();
        sum / middle.len().max(1) as f64
    }

    /// Returns the time that so many per cent of the calls took at most.
    pub fn percentile(&self, percent: usize) -> Duration {
        percentile(&self.0, percent)
    }
}

/// Makes `calls` calls at each place with an account, and as many without one. They all take turns.
///
/// # Errors
/// A call fails.
pub fn measure<'a>(
    places: impl IntoIterator<Item = ProfiledCall<'a>>,
    calls: u32,
) -> Result<Vec<ProfileFinding>, CommandFailure> {
    let begun = places.into_iter();
    let begun = begun.map(|place| ProfileRun::begin(place, calls));
    let mut all = begun.collect::<Result<Vec<_>, _>>()?;
    while all.iter().any(|measuring| measuring.left > 0) {
        for measuring in &mut all {
            measuring.turn()?;
        }
    }
    all.into_iter().map(ProfileRun::end).collect()
}

/// A procedure that is called again and again.
struct ProfileRun<'a> {
    place: ProfiledCall<'a>,
    account: CallProfile,
    /// With the account.
    client: Client,
    bytes: MessageSizes,
    /// Calls still to be made.
    left: u32,
    measured: Vec<Duration>,
    unfollowed: Vec<Duration>,
}

impl<'a> ProfileRun<'a> {
    fn begin(place: ProfiledCall<'a>, calls: u32) -> Result<Self, CommandFailure> {
        let bytes = place.subject.bytes(place.client, place.address)?;
        let account = CallProfile::with(1, calls as usize);
        let client = place.client.with_profile(&account);
        place.call(&client, WARM_UP, &mut Vec::new())?;
        account.clear();
        Ok(Self {
            place,
            account,
            client,
            bytes,
            left: calls,
            measured: Vec::with_capacity(calls as usize),
            unfollowed: Vec::with_capacity(calls as usize),
        })
    }

    fn turn(&mut self) -> Result<(), CommandFailure> {
        let calls = TURN.min(self.left);
        self.place.call(&self.client, calls, &mut self.measured)?;
        self.left -= calls;
        let plain = self.place.client;
        self.place.call(plain, calls, &mut self.unfollowed)
    }

    fn end(self) -> Result<ProfileFinding, CommandFailure> {
        let sorted = |mut times: Vec<Duration>| {
            times.sort_unstable();
            SortedTimes(times)
        };
        Ok(ProfileFinding {
            address: self.place.address.clone(),
            procedure: self.place.subject.name.clone(),
            bytes: self.bytes,
            summary: self
                .account
                .summary()
                .ok_or_else(CommandFailure::explained)?,
            measured: sorted(self.measured),
            unfollowed: sorted(self.unfollowed),
        })
    }
}

impl ProfiledCall<'_> {
    /// Makes so many calls, and notes what each took.
    fn call(
        self,
        client: &Client,
        calls: u32,
        times: &mut Vec<Duration>,
    ) -> Result<(), CommandFailure> {
        for _ in 0..calls {
            let begin = Instant::now();
            let result = self.subject.call(client);
            times.push(begin.elapsed());
            result.map_err(|error| connect::failure(self.address, &error))?;
        }
        Ok(())
    }
}
