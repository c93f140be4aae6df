//! Connecting to the first of several addresses that answers, as RFC 8305 (Happy Eyeballs version 2) says: one attempt
//! after the other is begun, none waits for those before it for long, and the first that succeeds ends the others.
//!
//! The names of hosts are resolved before, for both families together: the system's resolver answers once.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{self, SocketType};

use crate::socket::{family, is_deadline, poll_until};
use crate::system::DeadlineSocket;

/// Time for which an attempt is alone before the next address is tried beside it: the Connection Attempt Delay of RFC
/// 8305 section 8. Less if the time until the deadline, divided among the addresses, is less.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The Minimum Connection Attempt Delay of RFC 8305 section 8.
const ATTEMPT_DELAY_MIN: Duration = Duration::from_millis(10);

/// Failed attempts that an error names; it counts the others.
const FAILURES_TOLD: usize = 8;

/// When attempts to reach several addresses are begun.
#[derive(Debug)]
pub struct AttemptSchedule {
    delay: Duration,
    next_at: Instant,
}

impl AttemptSchedule {
    /// Creates the schedule of attempts to reach so many addresses before `deadline`. The first is begun at `now`.
    pub fn new(now: Instant, deadline: Instant, addresses: usize) -> Self {
        let parts = u32::try_from(addresses).map_or(u32::MAX, |addresses| addresses.max(1));
        let share = deadline.saturating_duration_since(now) / parts;
        Self {
            delay: share.clamp(ATTEMPT_DELAY_MIN, ATTEMPT_DELAY),
            next_at: now,
        }
    }

    /// Returns when the next attempt is to be begun.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Notes that an attempt is begun at `now`.
    pub fn handle_begun(&mut self, now: Instant) {
        self.next_at = now + self.delay;
    }

    /// Notes that an attempt has failed at `now`: the next is begun at once.
    pub fn handle_failed(&mut self, now: Instant) {
        self.next_at = now;
    }
}

/// Returns the addresses each once, with the families taking turns, beginning with that of the first (RFC 8305 section
/// 4). Those of one family stay in the order of the resolver (RFC 6724).
pub fn interleave_families(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut first = Vec::new();
    let mut second = Vec::new();
    for address in addresses {
        let is_first = first
            .first()
            .is_none_or(|first: &SocketAddr| first.is_ipv4() == address.is_ipv4());
        let of_family = if is_first { &mut first } else { &mut second };
        if !of_family.contains(&address) {
            of_family.push(address);
        }
    }
    let mut second = second.into_iter();
    let mut interleaved: Vec<_> = first
        .into_iter()
        .flat_map(|address| [Some(address), second.next()])
        .flatten()
        .collect();
    interleaved.extend(second);
    interleaved
}

/// Connects by TCP to the first of `addresses` that takes the connection.
///
/// # Errors
/// What the only address reports, or [`FailedAttempts`] of several; `TimedOut` at the deadline.
pub(crate) fn connect_first(
    addresses: &[SocketAddr],
    deadline: Instant,
) -> io::Result<(DeadlineSocket, SocketAddr)> {
    let mut schedule = AttemptSchedule::new(Instant::now(), deadline, addresses.len());
    let mut left = addresses.iter().copied();
    let mut next = left.next();
    let mut attempts = Vec::new();
    let mut failures = FailedAttempts::default();
    loop {
        let now = Instant::now();
        if let Some(address) = next.take_if(|_| schedule.next_at() <= now) {
            next = left.next();
            schedule.handle_begun(now);
            match begin(address) {
                Ok(socket) => attempts.push((socket, address)),
                Err(error) => {
                    failures.push(address, error);
                    schedule.handle_failed(now);
                }
            }
            continue;
        }
        if attempts.is_empty() && next.is_none() || now >= deadline {
            failures.expire(attempts.into_iter().map(|(_, address)| address));
            return Err(failures.into_error());
        }
        let until = next.map_or(deadline, |_| deadline.min(schedule.next_at()));
        let Some(ended) = wait_for_one(&attempts, until)? else {
            continue;
        };
        let (socket, address) = attempts.swap_remove(ended);
        match finish(&socket, address) {
            Ok(()) => return Ok((socket, address)),
            Err(error) => {
                failures.push(address, error);
                schedule.handle_failed(Instant::now());
            }
        }
    }
}

/// Begins to connect.
fn begin(address: SocketAddr) -> io::Result<DeadlineSocket> {
    let socket = DeadlineSocket::open(family(address), SocketType::STREAM)?;
    socket.begin_connect(address)?;
    Ok(socket)
}

/// Waits until one of the attempts has ended; returns which, or none at `until`.
fn wait_for_one(
    attempts: &[(DeadlineSocket, SocketAddr)],
    until: Instant,
) -> io::Result<Option<usize>> {
    let polled = attempts.iter();
    let mut polled: Vec<_> = polled
        .map(|(socket, _)| PollFd::new(socket, PollFlags::OUT))
        .collect();
    match poll_until(&mut polled, until) {
        Ok(()) => Ok(polled.iter().position(|one| !one.revents().is_empty())),
        Err(error) if is_deadline(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes in that an attempt has ended.
fn finish(socket: &DeadlineSocket, address: SocketAddr) -> io::Result<()> {
    socket.finish_connect()?;
    refuse_self(socket, address)
}

/// A port of this machine that nothing listens on may be the very one that the kernel lends to the
/// connecting socket, which then is connected to itself and occupies the server's port.
fn refuse_self(socket: &DeadlineSocket, peer: SocketAddr) -> io::Result<()> {
    match SocketAddr::try_from(net::getsockname(socket)?) {
        Ok(own) if own == peer => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok(()),
    }
}

/// Why no address of a host could be reached: the cause of each, as far as there are not too many.
#[derive(Debug, Default)]
pub struct FailedAttempts {
    told: Vec<(SocketAddr, io::Error)>,
    /// Number of the other failed attempts.
    others: usize,
}

impl FailedAttempts {
    /// Notes why the attempt to reach `address` has failed.
    pub fn push(&mut self, address: SocketAddr, cause: io::Error) {
        if self.told.len() < FAILURES_TOLD {
            self.told.push((address, cause));
        } else {
            self.others += 1;
        }
    }

    /// Notes that the time of the attempts to reach `addresses` is over.
    pub fn expire(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        for address in addresses {
            self.push(address, io::ErrorKind::TimedOut.into());
        }
    }

    /// Returns the error of all attempts: that of the only one as it is, or one with a text that has all. Its kind is
    /// that of the first cause that says more than that time ran out and that may be another time, if there is one.
    pub fn into_error(mut self) -> io::Error {
        match self.told.len() {
            0 => io::ErrorKind::TimedOut.into(),
            1 => self.told.remove(0).1,
            _ => io::Error::new(self.kind(), self),
        }
    }

    fn kind(&self) -> io::ErrorKind {
        let kinds = || self.told.iter().map(|(_, cause)| cause.kind());
        let says_little = |kind: &io::ErrorKind| {
            let little = [
                io::ErrorKind::TimedOut,
                io::ErrorKind::InvalidInput,
                io::ErrorKind::PermissionDenied,
            ];
            little.contains(kind)
        };
        let telling = kinds().find(|kind| !says_little(kind));
        let late = kinds().find(|kind| *kind == io::ErrorKind::TimedOut);
        let first = telling.or(late).or_else(|| kinds().next());
        first.unwrap_or(io::ErrorKind::NotFound)
    }
}

impl fmt::Display for FailedAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (address, cause)) in self.told.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {cause}")?;
        }
        match self.others {
            0 => Ok(()),
            others => write!(f, "; and {others} more addresses"),
        }
    }
}

impl Error for FailedAttempts {}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns_and_each_address_is_tried_once() {
        let resolved = addresses(&[
            "[::1]:7",
            "[::2]:7",
            "[::1]:7",
            "[::3]:7",
            "1.1.1.1:7",
            "1.1.1.2:7",
            "1.1.1.1:7",
        ]);
        let tried = addresses(&["[::1]:7", "1.1.1.1:7", "[::2]:7", "1.1.1.2:7", "[::3]:7"]);
        assert_eq!(interleave_families(resolved), tried);
        let resolved = addresses(&["1.1.1.1:7", "[::1]:7", "[::2]:7", "[::3]:7"]);
        assert_eq!(interleave_families(resolved.clone()), resolved);
    }

    #[test]
    fn attempts_share_what_time_there_is() {
        let now = Instant::now();
        let next = |time, addresses| {
            let mut schedule = AttemptSchedule::new(now, now + time, addresses);
            schedule.handle_begun(now);
            schedule.next_at() - now
        };
        assert_eq!(next(Duration::from_secs(25), 3), ATTEMPT_DELAY);
        assert_eq!(
            next(Duration::from_millis(300), 3),
            Duration::from_millis(100)
        );
        assert_eq!(next(Duration::from_millis(3), 3), ATTEMPT_DELAY_MIN);
    }

    #[test]
    fn an_error_names_the_causes_and_has_the_kind_of_the_most_telling() {
        let mut failures = FailedAttempts::default();
        failures.expire(addresses(&["[::1]:7"]));
        for last in 1..12 {
            let address = format!("1.1.1.{last}:7").parse().unwrap();
            failures.push(address, io::ErrorKind::ConnectionRefused.into());
        }
        let error = failures.into_error();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let text = error.to_string();
        let expected = "[::1]:7: timed out; 1.1.1.1:7: connection refused; ";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("; and 4 more addresses"), "{text}");
    }
}
