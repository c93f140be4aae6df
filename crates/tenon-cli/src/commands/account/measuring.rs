//! Calling procedures again and again, with an account and, beside, without one.

use std::time::{Duration, Instant};

use tenon::{
    Address, CallProfile, Client, FollowedPackets, PacketCosts, PacketCoverage, Summary, Trace,
};

use super::packets::PacketMeasures;
use super::subject::{MessageSizes, ProfiledProcedure};
use crate::commands::connect;
use crate::commands::table::percentile;
use crate::failure::CommandFailure;

/// Calls before those that count: connections, caches and branch predictors are warm then, and it is
/// known what the server can say.
const WARM_UP: u32 = 100;

/// Calls of one kind before it is another one's turn: what changes on the machine meanwhile concerns all.
const TURN: u32 = 50;

/// Bytes of data of a packet that is measured with at most: an Ethernet takes no larger ones.
const PACKET: usize = 1400;

/// A procedure, and where it is called.
#[derive(Clone, Copy)]
pub struct ProfiledCall<'a> {
    /// The procedure that is called.
    pub subject: &'a ProfiledProcedure<'a>,
    /// The client that calls it, without an account.
    pub client: &'a Client,
    /// The address at which it is called.
    pub address: &'a Address,
    /// True if the packets of its calls are followed.
    pub packets: bool,
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
    /// Times of the calls of the summary by a clock around them, which knows nothing of the account.
    pub measured: SortedTimes,
    /// Times of as many calls without an account by that clock.
    pub unfollowed: SortedTimes,
    /// What was measured beside the packets, if they were followed.
    pub packets: Option<PacketMeasures>,
}

/// Times by a clock around calls, sorted.
pub struct SortedTimes(Vec<Duration>);

impl SortedTimes {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Takes the times of the calls that the summary counts: means over different calls cannot be compared.
    fn of_counted(summary: &Summary, traces: &[Trace], times: &[Duration]) -> Self {
        let calls = traces.iter().zip(times);
        let counted = calls.filter(|(trace, _)| summary.counts(trace));
        Self::of(counted.map(|(_, time)| *time).collect())
    }

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
    /// What the kernel takes for what has no time stamps, if packets are followed.
    costs: Option<PacketCosts>,
    /// Nanoseconds by which the stamps of each call may be wrong.
    clock_errors: Vec<u64>,
}

impl<'a> ProfileRun<'a> {
    fn begin(place: ProfiledCall<'a>, calls: u32) -> Result<Self, CommandFailure> {
        let bytes = place.subject.bytes(place.client, place.address)?;
        let costs = match place.packets {
            true => Some(PacketCosts::measure(bytes.both().min(PACKET))?),
            false => None,
        };
        let account = match costs {
            Some(costs) => CallProfile::of_packets(calls as usize, costs),
            None => CallProfile::with(1, calls as usize),
        };
        let client = place.client.with_profile(&account);
        if costs.is_some() {
            // The kernel begins to stamp in its own time.
            client.channel().follow_packets(FollowedPackets::All)?;
        }
        place.call(&client, WARM_UP, &mut Vec::new(), || {})?;
        account.clear();
        Ok(Self {
            costs,
            clock_errors: Vec::new(),
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
        let channel = self.client.channel();
        if self.costs.is_some() {
            channel.follow_packets(FollowedPackets::All)?;
            // What was sent before is not of these calls.
            channel.take_packet_stamps();
        }
        let (account, errors) = (&self.account, &mut self.clock_errors);
        let note = || {
            if account.follows_packets() {
                errors.push(account.note_packets(channel.take_packet_stamps()));
            }
        };
        self.place
            .call(&self.client, calls, &mut self.measured, note)?;
        self.left -= calls;
        if self.costs.is_some() {
            channel.follow_packets(FollowedPackets::Received)?;
        }
        let plain = self.place.client;
        self.place.call(plain, calls, &mut self.unfollowed, || {})
    }

    fn end(self) -> Result<ProfileFinding, CommandFailure> {
        let packets = self.costs.map(|costs| PacketMeasures {
            costs,
            clock_error: median(self.clock_errors),
        });
        let traces = self.account.traces();
        let summary = Summary::of(&traces).ok_or_else(CommandFailure::explained)?;
        if packets.is_some() && summary.packets == PacketCoverage::Neither {
            return Err(no_stamps(&self.place.subject.name));
        }
        Ok(ProfileFinding {
            packets,
            address: self.place.address.clone(),
            procedure: self.place.subject.name.clone(),
            bytes: self.bytes,
            measured: SortedTimes::of_counted(&summary, &traces, &self.measured),
            unfollowed: SortedTimes::of(self.unfollowed),
            summary,
        })
    }
}

impl ProfiledCall<'_> {
    /// Makes so many calls, notes what each took, and has `note` note more of it.
    fn call(
        self,
        client: &Client,
        calls: u32,
        times: &mut Vec<Duration>,
        mut note: impl FnMut(),
    ) -> Result<(), CommandFailure> {
        for _ in 0..calls {
            let begin = Instant::now();
            let result = self.subject.call(client);
            times.push(begin.elapsed());
            result.map_err(|error| connect::failure(self.address, &error))?;
            note();
        }
        Ok(())
    }
}

/// Returns the failure of packets that were followed in vain.
fn no_stamps(procedure: &str) -> CommandFailure {
    CommandFailure::new(format!(
        "the kernel has given no time stamps that fit the calls of {procedure}"
    ))
    .hint("--packets is for calls of which each message is one packet, of 1400 bytes at most")
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
