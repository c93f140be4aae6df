//! The trace of one call: where its time went.

use tenon_proto::lean::Stamps;

use super::clock::{self, ClockScale};
use super::steps::{CallTimestamps, Step};

/// Extent of what is known of the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All of it: both ends read the same clock.
    Whole,
    /// The times at each end, but not how the time between them was divided: they read different
    /// clocks.
    TwoClocks,
    /// The times at the client alone: the server has said nothing, or another caller has received the
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
    /// The reply that another caller has received waits for its own caller, which is woken, or has not asked for
    /// it yet.
    HandOver,
    /// The result is decoded.
    Decode,
    /// The caller leaves the channel to others.
    Leave,
}

/// Side to which the time of a part belongs.
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
    /// Returns the parts of such a way, in their order.
    pub fn parts(self) -> &'static [Part] {
        use Part::*;
        match self {
            Self::Whole => &[
                Encode, Turn, CallAway, Dispatch, Serve, Finish, ReplyAway, Find, HandOver, Decode,
                Leave,
            ],
            Self::TwoClocks => &[
                Encode, Turn, BothAway, Dispatch, Serve, Finish, Find, HandOver, Decode, Leave,
            ],
            Self::Client => &[Encode, Turn, Send, Wait, Find, HandOver, Decode, Leave],
        }
    }
}

impl Part {
    /// Returns the side to which its time belongs.
    pub fn owner(self) -> Owner {
        match self {
            Self::Encode
            | Self::Turn
            | Self::Find
            | Self::HandOver
            | Self::Decode
            | Self::Leave => Owner::Client,
            Self::CallAway | Self::ReplyAway | Self::BothAway | Self::Send => Owner::Kernel,
            Self::Dispatch | Self::Serve | Self::Finish => Owner::Server,
            Self::Wait => Owner::Unknown,
        }
    }
}

/// The most parts that a way has.
const PARTS_MAX: usize = 11;

/// Durations of the parts of one call, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    way: Way,
    round_trip: u64,
    send: u64,
    parts: [u64; PARTS_MAX],
}

/// Timing that the server reports, as times of the client's clock or as the spans between them.
enum ServerTiming {
    Times([u64; 4]),
    Spans([u64; 3]),
    Nothing,
}

impl Trace {
    /// Makes the trace of a call from its timestamps by the clock of this scale.
    pub fn new(times: CallTimestamps, scale: ClockScale) -> Self {
        let mut ticks = times.client;
        // What was not passed takes no time.
        for step in 1..ticks.len() {
            ticks[step] = ticks[step].max(ticks[step - 1]);
        }
        let entered = ticks[Step::Entered as usize];
        // Nanoseconds since the call was entered: what lies between two of them adds up.
        let at = |step: Step| scale.nanos(ticks[step as usize] - entered);
        let (sending, received) = (at(Step::Sending), at(Step::Received));
        let [encoded, found, fetched, decoded] =
            [Step::Encoded, Step::Found, Step::Fetched, Step::Decoded].map(at);
        let before = [at(Step::Entered), encoded, sending];
        let behind = [received, found, fetched, decoded, at(Step::Left)];
        let client_timing = ClientTiming {
            scale,
            entered,
            sending: ticks[Step::Sending as usize],
            received: ticks[Step::Received as usize],
        };
        let (way, parts) = match client_timing.server_timing(times.server) {
            ServerTiming::Times(there) => {
                let times = [&before[..], &there, &behind].concat();
                (Way::Whole, spans(&times))
            }
            ServerTiming::Spans(spans_there) => {
                let away = received - sending - spans_there.iter().sum::<u64>();
                let here = [spans(&before), spans(&behind)];
                let parts = [&here[0][..], &[away], &spans_there, &here[1]].concat();
                (Way::TwoClocks, parts)
            }
            ServerTiming::Nothing => {
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

    /// Returns how much is known of the call.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Returns the time from when the call was entered until it was left.
    pub fn round_trip(&self) -> u64 {
        self.round_trip
    }

    /// Returns the time of the client's system call that sent it. It is no part of its own if the whole way is known:
    /// the server may have the call before it returns.
    pub fn send(&self) -> u64 {
        self.send
    }

    /// Returns the parts of its way, the sum of which is the round trip.
    pub fn parts(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        self.way.parts().iter().copied().zip(self.parts)
    }
}

/// Returns the spans between consecutive times, which are in order.
fn spans(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Times between which a call was away from its client, by the client's clock.
struct ClientTiming {
    scale: ClockScale,
    entered: u64,
    sending: u64,
    received: u64,
}

impl ClientTiming {
    /// Returns as much of the server's stamps of the call as can be believed.
    fn server_timing(&self, server: Option<Stamps>) -> ServerTiming {
        let Some(server) = server else {
            return ServerTiming::Nothing;
        };
        let Self { scale, entered, .. } = *self;
        let (sending, received) = (self.sending, self.received);
        let times = [server.received, server.dispatched, server.done, server.sent];
        // How fast it ticks the two may have found out differently, and only one is believed.
        let is_ours = server.clock != 0 && server.clock == scale.identity;
        if is_ours && [&[sending], &times[..], &[received]].concat().is_sorted() {
            return ServerTiming::Times(times.map(|time| scale.nanos(time - entered)));
        }
        let rate = match is_ours {
            true => scale.rate,
            false => server.rate,
        };
        let mut spans = [0; 3];
        for (span, pair) in spans.iter_mut().zip(times.windows(2)) {
            *span = clock::nanos(pair[1].saturating_sub(pair[0]), rate);
        }
        let sum = spans
            .iter()
            .fold(0, |sum: u64, span| sum.saturating_add(*span));
        match sum <= scale.nanos(received - entered) - scale.nanos(sending - entered) {
            true => ServerTiming::Spans(spans),
            false => ServerTiming::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: [u64; Step::COUNT] = [100, 110, 130, 180, 200, 210, 212, 225, 230];

    const RATE: u64 = 1_000_000_000;

    const OURS: u64 = 7;

    const SCALE: ClockScale = ClockScale {
        identity: OURS,
        rate: RATE,
    };

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

    fn parts(
        client: [u64; Step::COUNT],
        server: Option<Stamps>,
        scale: ClockScale,
    ) -> (Way, Vec<u64>) {
        let trace = Trace::new(CallTimestamps { client, server }, scale);
        let parts: Vec<u64> = trace.parts().map(|(_, nanos)| nanos).collect();
        assert_eq!(parts.len(), trace.way.parts().len());
        assert_eq!(parts.iter().sum::<u64>(), trace.round_trip());
        (trace.way, parts)
    }

    #[test]
    fn every_nanosecond_is_in_one_part() {
        let other = OURS + 1;
        let client = (Way::Client, vec![10, 20, 50, 20, 10, 2, 13, 5]);
        let whole = (Way::Whole, vec![10, 20, 11, 4, 25, 10, 20, 10, 2, 13, 5]);
        let apart = (Way::TwoClocks, vec![10, 20, 31, 4, 25, 10, 10, 2, 13, 5]);
        let no_time = (Way::TwoClocks, vec![10, 20, 70, 0, 0, 0, 10, 2, 13, 5]);
        for (server, expected) in [
            (None, &client),
            (stamps(OURS, RATE, [141, 145, 170, 180]), &whole),
            // Each has found out for itself how fast the clock is.
            (stamps(OURS, RATE + 9, [141, 145, 170, 180]), &whole),
            (stamps(other, RATE, [141, 145, 170, 180]), &apart),
            (stamps(0, RATE, [141, 145, 170, 180]), &apart),
            (stamps(other, RATE / 1000, [7, 7, 7, 7]), &no_time),
            (stamps(other, RATE * 2, [0, 8, 58, 78]), &apart),
            // The same clock, but not of this call.
            (stamps(OURS, RATE, [1, 5, 30, 40]), &apart),
            (stamps(OURS, RATE, [181, 185, 210, 220]), &apart),
            // Longer than the call took.
            (stamps(other, RATE, [0, 20, 30, 71]), &client),
            (stamps(other, 1, [0, 0, 0, u64::MAX]), &client),
            (stamps(other, 1, [0, u64::MAX, u64::MAX, u64::MAX]), &client),
            // No stamps that a message brings, but nothing to panic about.
            (stamps(other, 0, [9, 8, 7, 6]), &no_time),
        ] {
            assert_eq!(&parts(TIMES, server, SCALE), expected, "{server:?}");
        }
    }

    #[test]
    fn ticks_of_any_length_add_up() {
        for rate in [1, 3, RATE / 3, RATE * 3, RATE * 3 - 1] {
            let scale = ClockScale { rate, ..SCALE };
            for server in [None, stamps(OURS, rate, [141, 145, 170, 180])] {
                let (_, parts) = parts(TIMES, server, scale);
                assert_eq!(parts.iter().sum::<u64>(), scale.nanos(130), "{rate}");
            }
        }
        let scale = ClockScale {
            rate: RATE * 2,
            ..SCALE
        };
        let (_, parts) = parts(TIMES, stamps(OURS, 1, [140, 144, 170, 180]), scale);
        assert_eq!(parts, [5, 10, 5, 2, 13, 5, 10, 5, 1, 6, 3]);
    }

    #[test]
    fn a_step_that_was_not_passed_takes_no_time() {
        let mut times = TIMES;
        times[Step::Received as usize] = 0;
        times[Step::Fetched as usize] = 0;
        let expected = (Way::Client, vec![10, 20, 50, 0, 30, 0, 15, 5]);
        assert_eq!(parts(times, None, SCALE), expected);
        let nothing = parts([0; Step::COUNT], None, SCALE);
        assert_eq!(nothing, (Way::Client, vec![0; 8]));
    }

    #[test]
    fn there_is_room_for_every_way() {
        for way in [Way::Whole, Way::TwoClocks, Way::Client] {
            assert!(way.parts().len() <= PARTS_MAX, "{way:?}");
        }
    }
}
