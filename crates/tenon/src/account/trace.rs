//! Where the time of one call went.

use tenon_proto::lean::Stamps;

use super::clock;
use super::steps::Step;

/// What can be known of the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All of it: both ends read the same clock.
    Whole,
    /// What passed at each end, but not how the time between them was divided: they read different
    /// clocks.
    TwoClocks,
    /// What passed at the client: the server has said nothing, or another caller has received the
    /// reply.
    Client,
}

/// A part of the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header and the arguments are written.
    Encode,
    /// The channel gives the call its turn and its number.
    Turn,
    /// The call is sent, carried and received: from before the client's system call until the server
    /// has found the call.
    CallAway,
    /// The server finds out what is called, and a worker for it if the service has workers.
    Dispatch,
    /// The service decodes the arguments, does its work, and encodes the result.
    Serve,
    /// The reply is made ready, and waits for those that are sent with it.
    Finish,
    /// The reply is sent, carried and received: from before the server's system call until the
    /// client's has returned.
    ReplyAway,
    /// Both messages are sent, carried and received.
    BothAway,
    /// The system call that sends the call.
    Send,
    /// All from when the call is sent until the reply is received.
    Wait,
    /// The reply is found among what was received.
    Find,
    /// The result is decoded.
    Decode,
    /// The caller leaves the channel to others.
    Leave,
}

/// Whose time a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Code of the client.
    Client,
    /// The kernels of both ends, and what is between them.
    Kernel,
    /// Code of the server.
    Server,
    /// Kernels, wire and server, which cannot be told apart.
    Unknown,
}

impl Way {
    /// The parts of such a way, in their order.
    pub fn parts(self) -> &'static [Part] {
        use Part::*;
        match self {
            Self::Whole => &[
                Encode, Turn, CallAway, Dispatch, Serve, Finish, ReplyAway, Find, Decode, Leave,
            ],
            Self::TwoClocks => &[
                Encode, Turn, BothAway, Dispatch, Serve, Finish, Find, Decode, Leave,
            ],
            Self::Client => &[Encode, Turn, Send, Wait, Find, Decode, Leave],
        }
    }
}

impl Part {
    /// Whose time it is.
    pub fn owner(self) -> Owner {
        match self {
            Self::Encode | Self::Turn | Self::Find | Self::Decode | Self::Leave => Owner::Client,
            Self::CallAway | Self::ReplyAway | Self::BothAway | Self::Send => Owner::Kernel,
            Self::Dispatch | Self::Serve | Self::Finish => Owner::Server,
            Self::Wait => Owner::Unknown,
        }
    }
}

/// The most parts that a way has.
const PARTS_MAX: usize = 10;

/// Where the time of one call went, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    way: Way,
    round_trip: u64,
    send: u64,
    parts: [u64; PARTS_MAX],
}

/// What the server says, as times of the client's clock or as what lies between them.
enum Told {
    Times([u64; 4]),
    Spans([u64; 3]),
    Nothing,
}

impl Trace {
    /// What is known of a call from when it was where.
    pub(crate) fn new(mut times: [u64; Step::COUNT], server: Option<Stamps>) -> Self {
        // What was not passed takes no time: a reply that came with another's was not received anew.
        for step in 1..times.len() {
            times[step] = times[step].max(times[step - 1]);
        }
        let at = |step: Step| times[step as usize];
        let (sending, received) = (at(Step::Sending), at(Step::Received));
        let [encoded, found, decoded] = [Step::Encoded, Step::Found, Step::Decoded].map(at);
        let before = [at(Step::Entered), encoded, sending];
        let behind = [received, found, decoded, at(Step::Left)];
        let (way, parts) = match tell(server, sending, received) {
            Told::Times(there) => {
                let times = [&before[..], &there, &behind].concat();
                (Way::Whole, spans(&times))
            }
            Told::Spans(spans_there) => {
                let away = received - sending - spans_there.iter().sum::<u64>();
                let here = [spans(&before), spans(&behind)];
                let parts = [&here[0][..], &[away], &spans_there, &here[1]].concat();
                (Way::TwoClocks, parts)
            }
            Told::Nothing => {
                let times = [&before[..], &[at(Step::Sent)], &behind].concat();
                (Way::Client, spans(&times))
            }
        };
        let mut trace = Self {
            way,
            round_trip: at(Step::Left) - at(Step::Entered),
            send: at(Step::Sent) - sending,
            parts: [0; PARTS_MAX],
        };
        trace.parts[..parts.len()].copy_from_slice(&parts);
        trace
    }

    /// What is known of the call.
    pub fn way(&self) -> Way {
        self.way
    }

    /// From when the call was entered until it was left.
    pub fn round_trip(&self) -> u64 {
        self.round_trip
    }

    /// The client's system call that sent it. It is no part of its own if the whole way is known: the
    /// server may have the call before it returns.
    pub fn send(&self) -> u64 {
        self.send
    }

    /// The parts of its way, whose sum is the round trip.
    pub fn parts(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        self.way.parts().iter().copied().zip(self.parts)
    }
}

/// What lies between each two of them, which are in order.
fn spans(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// What can be believed of the server's stamps of a call that was sent and received then.
fn tell(server: Option<Stamps>, sending: u64, received: u64) -> Told {
    let Some(server) = server else {
        return Told::Nothing;
    };
    let times = [server.received, server.dispatched, server.done, server.sent];
    let is_ours =
        server.clock != 0 && (server.clock, server.rate) == (clock::identity(), clock::RATE);
    if is_ours && [&[sending], &times[..], &[received]].concat().is_sorted() {
        return Told::Times(times);
    }
    let nanos = |ticks: u64| {
        let nanos = u128::from(ticks) * u128::from(clock::RATE) / u128::from(server.rate.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    };
    let mut spans = [0; 3];
    for (span, pair) in spans.iter_mut().zip(times.windows(2)) {
        *span = nanos(pair[1].saturating_sub(pair[0]));
    }
    let sum = spans
        .iter()
        .fold(0, |sum: u64, span| sum.saturating_add(*span));
    match sum <= received - sending {
        true => Told::Spans(spans),
        false => Told::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: [u64; Step::COUNT] = [100, 110, 130, 180, 200, 210, 225, 230];

    fn stamps(clock: u64, rate: u64, times: [u64; 4]) -> Option<Stamps> {
        let [received, dispatched, done, sent] = times;
        Some(Stamps {
            clock,
            rate,
            received,
            dispatched,
            done,
            sent,
        })
    }

    fn parts(times: [u64; Step::COUNT], server: Option<Stamps>) -> (Way, Vec<u64>) {
        let trace = Trace::new(times, server);
        let parts: Vec<u64> = trace.parts().map(|(_, nanos)| nanos).collect();
        assert_eq!(parts.len(), trace.way.parts().len());
        assert_eq!(parts.iter().sum::<u64>(), trace.round_trip());
        (trace.way, parts)
    }

    #[test]
    fn every_nanosecond_is_in_one_part() {
        let ours = clock::identity();
        assert_ne!(ours, 0);
        let (rate, other) = (clock::RATE, ours ^ 1);
        let client = (Way::Client, vec![10, 20, 50, 20, 10, 15, 5]);
        let whole = (Way::Whole, vec![10, 20, 11, 4, 25, 10, 20, 10, 15, 5]);
        let apart = (Way::TwoClocks, vec![10, 20, 31, 4, 25, 10, 10, 15, 5]);
        for (server, expected) in [
            (None, &client),
            (stamps(ours, rate, [141, 145, 170, 180]), &whole),
            (stamps(other, rate, [141, 145, 170, 180]), &apart),
            (stamps(0, rate, [141, 145, 170, 180]), &apart),
            (
                stamps(other, rate / 1000, [7, 7, 7, 7]),
                &(Way::TwoClocks, vec![10, 20, 70, 0, 0, 0, 10, 15, 5]),
            ),
            (stamps(other, rate * 2, [0, 8, 58, 78]), &apart),
            // The same clock, but not of this call.
            (stamps(ours, rate, [1, 5, 30, 40]), &apart),
            (stamps(ours, rate, [181, 185, 210, 220]), &apart),
            // Longer than the call took.
            (stamps(other, rate, [0, 20, 30, 71]), &client),
            (stamps(other, 1, [0, 0, 0, u64::MAX]), &client),
            (stamps(other, 1, [0, u64::MAX, u64::MAX, u64::MAX]), &client),
            // No stamps that a message brings, but nothing to panic about.
            (
                stamps(other, 0, [9, 8, 7, 6]),
                &(Way::TwoClocks, vec![10, 20, 70, 0, 0, 0, 10, 15, 5]),
            ),
        ] {
            assert_eq!(&parts(TIMES, server), expected, "{server:?}");
        }
    }

    #[test]
    fn a_step_that_was_not_passed_takes_no_time() {
        let mut times = TIMES;
        times[Step::Received as usize] = 0;
        let expected = (Way::Client, vec![10, 20, 50, 0, 30, 15, 5]);
        assert_eq!(parts(times, None), expected);
        assert_eq!(parts([0; Step::COUNT], None), (Way::Client, vec![0; 7]));
    }

    #[test]
    fn there_is_room_for_every_way() {
        for way in [Way::Whole, Way::TwoClocks, Way::Client] {
            assert!(way.parts().len() <= PARTS_MAX, "{way:?}");
        }
    }
}
