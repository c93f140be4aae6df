//! The trace of one call: where its time went.

use tenon_proto::lean::Stamps;

use super::clock::{self, ClockScale};
use super::packet_way::{Middle, PacketWay, ServerPackets, ServerTiming, spans};
use super::packets::{PacketCoverage, PacketObservation, fit};
use super::part::{Part, Way};
use super::steps::{CallTimestamps, Step};

/// Durations of the parts of one call, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    way: Way,
    packets: PacketCoverage,
    round_trip: u64,
    send: u64,
    parts: Vec<(Part, u64)>,
}

impl Trace {
    /// Makes the trace of a call from its timestamps by the clock of this scale, and from what is known of its packets.
    pub(super) fn new(
        times: CallTimestamps,
        observed: Option<PacketObservation>,
        scale: ClockScale,
    ) -> Self {
        let mut ticks = times.client;
        // What was not passed takes no time.
        for step in 1..ticks.len() {
            ticks[step] = ticks[step].max(ticks[step - 1]);
        }
        let entered = ticks[Step::Entered as usize];
        let exchange = Exchange {
            scale,
            entered,
            sending: ticks[Step::Sending as usize],
            sent: ticks[Step::Sent as usize],
            received: ticks[Step::Received as usize],
        };
        let at = |step: Step| exchange.at(ticks[step as usize]);
        let span = |part, from, to| (part, at(to) - at(from));
        let server = exchange.server_timing(times.server);
        let observed = observed.and_then(|it| exchange.with_packets(server, times.server, &it));
        let middle = observed.unwrap_or_else(|| exchange.without_packets(server));
        let before = [
            span(Part::Encode, Step::Entered, Step::Encoded),
            span(Part::Turn, Step::Encoded, Step::Sending),
        ];
        let behind = [
            span(Part::Find, Step::Received, Step::Found),
            span(Part::HandOver, Step::Found, Step::Fetched),
            span(Part::Decode, Step::Fetched, Step::Decoded),
            span(Part::Leave, Step::Decoded, Step::Left),
        ];
        Self {
            way: middle.way,
            packets: middle.packets,
            round_trip: at(Step::Left) - at(Step::Entered),
            send: at(Step::Sent) - at(Step::Sending),
            parts: [&before[..], &middle.parts, &behind].concat(),
        }
    }

    /// Returns how much is known of the call.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Returns the ends of which it is known when the kernel had the packets of the call.
    pub fn packets(&self) -> PacketCoverage {
        self.packets
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
        self.parts.iter().copied()
    }
}

/// Ticks between which a call was away from its client.
struct Exchange {
    scale: ClockScale,
    entered: u64,
    sending: u64,
    sent: u64,
    received: u64,
}

impl Exchange {
    /// Returns the nanoseconds since the call was entered: what lies between two of them adds up.
    fn at(&self, ticks: u64) -> u64 {
        self.scale.nanos(ticks.saturating_sub(self.entered))
    }

    /// Returns as much of the server's stamps of the call as can be believed.
    fn server_timing(&self, server: Option<Stamps>) -> ServerTiming {
        let Some(server) = server else {
            return ServerTiming::Nothing;
        };
        let (sending, received) = (self.sending, self.received);
        let times = [server.received, server.dispatched, server.done, server.sent];
        // How fast it ticks the two may have found out differently, and only one is believed.
        let is_ours = self.is_ours(&server);
        if is_ours && [&[sending], &times[..], &[received]].concat().is_sorted() {
            return ServerTiming::Times(times.map(|time| self.at(time)));
        }
        let rate = self.rate_of(&server);
        let mut spans = [0; 3];
        for (span, pair) in spans.iter_mut().zip(times.windows(2)) {
            *span = clock::nanos(pair[1].saturating_sub(pair[0]), rate);
        }
        let sum = spans
            .iter()
            .fold(0, |sum: u64, span| sum.saturating_add(*span));
        match sum <= self.at(received) - self.at(sending) {
            true => ServerTiming::Spans(spans),
            false => ServerTiming::Nothing,
        }
    }

    /// Returns whether the server reads the same clock.
    fn is_ours(&self, server: &Stamps) -> bool {
        server.clock != 0 && server.clock == self.scale.identity
    }

    /// Returns how many ticks of the server's stamps are a second.
    fn rate_of(&self, server: &Stamps) -> u64 {
        match self.is_ours(server) {
            true => self.scale.rate,
            false => server.rate,
        }
    }

    fn without_packets(&self, server: ServerTiming) -> Middle {
        use Part::{BothAway, CallAway, Dispatch, Finish, ReplyAway, Send, Serve, Wait};
        let (sending, received) = (self.at(self.sending), self.at(self.received));
        let (way, parts) = match server {
            ServerTiming::Times(there) => {
                let times = [&[sending], &there[..], &[received]].concat();
                let parts = [CallAway, Dispatch, Serve, Finish, ReplyAway];
                (Way::Whole, spans(parts, &times))
            }
            ServerTiming::Spans([dispatch, serve, finish]) => {
                let away = received - sending - dispatch - serve - finish;
                let parts = [
                    (BothAway, away),
                    (Dispatch, dispatch),
                    (Serve, serve),
                    (Finish, finish),
                ];
                (Way::TwoClocks, parts.to_vec())
            }
            ServerTiming::Nothing => {
                let times = [sending, self.at(self.sent), received];
                (Way::Client, spans([Send, Wait], &times))
            }
        };
        Middle {
            way,
            packets: PacketCoverage::Neither,
            parts,
        }
    }

    /// The same with the steps of packets, if their times are those of this call.
    fn with_packets(
        &self,
        server: ServerTiming,
        stamps: Option<Stamps>,
        observed: &PacketObservation,
    ) -> Option<Middle> {
        let (sending, received) = (self.at(self.sending), self.at(self.received));
        let client = observed.client;
        let [scheduled, transmitted, came] =
            [client.scheduled, client.transmitted, client.received].map(|ticks| self.at(ticks));
        let mut here = [sending, scheduled, transmitted, came, received];
        if !fit(&mut here) {
            return None;
        }
        let way = PacketWay {
            here,
            costs: observed.costs,
        };
        let known = stamps.and_then(|stamps| ServerPackets::of(&stamps, observed.reply?));
        let whole = known.and_then(|known| match server {
            ServerTiming::Times(there) => way.whole(there, known.times.map(|at| self.at(at))),
            ServerTiming::Spans(there) => {
                let rate = self.rate_of(&stamps?);
                let spans = known.spans().map(|ticks| clock::nanos(ticks, rate));
                way.two_clocks(there, spans)
            }
            ServerTiming::Nothing => None,
        });
        whole.or_else(|| way.client_alone(server))
    }
}

#[cfg(test)]
mod tests {
    use tenon_net::PacketCosts;
    use tenon_proto::lean::{PacketTimes, SentReply};

    use super::super::packets::{Leg, PacketStep, PacketTicks};
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
            packets: None,
        })
    }

    fn parts(
        client: [u64; Step::COUNT],
        server: Option<Stamps>,
        scale: ClockScale,
    ) -> (Way, Vec<u64>) {
        let times = CallTimestamps {
            client,
            server,
            packets: None,
        };
        let trace = Trace::new(times, None, scale);
        let parts: Vec<u64> = trace.parts().map(|(_, nanos)| nanos).collect();
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

    /// A call that is sent at 1000 and whose reply is received at 9000, by a server of which this is known.
    fn with_packets(
        server: Option<Stamps>,
        packets: Option<[u64; 3]>,
        reply: Option<SentReply>,
    ) -> Trace {
        let client = [0, 500, 1000, 2000, 9000, 9100, 9100, 9500, 9600];
        let packets = packets.map(|[scheduled, transmitted, received]| PacketTicks {
            scheduled,
            transmitted,
            received,
        });
        let observed = packets.map(|client| PacketObservation {
            client,
            reply,
            costs: PacketCosts {
                system_call: 100,
                kernel_in: 300,
            },
        });
        let times = CallTimestamps {
            client,
            server,
            packets,
        };
        let trace = Trace::new(times, observed, SCALE);
        let sum: u64 = trace.parts().map(|(_, nanos)| nanos).sum();
        assert_eq!(sum, trace.round_trip(), "{trace:?}");
        trace
    }

    /// The parts between the ends.
    fn between(trace: &Trace) -> Vec<(Part, u64)> {
        let parts: Vec<_> = trace.parts().collect();
        assert_eq!(parts[..2], [(Part::Encode, 500), (Part::Turn, 500)]);
        parts[2..parts.len() - 4].to_vec()
    }

    const HERE: Option<[u64; 3]> = Some([1600, 1900, 8000]);

    fn server_with_packets(clock: u64, times: [u64; 4]) -> Option<Stamps> {
        let received = times[0] - 700;
        stamps(clock, RATE, times).map(|stamps| Stamps {
            packets: Some(PacketTimes {
                received,
                earlier: None,
            }),
            ..stamps
        })
    }

    fn reply(sent: u64) -> Option<SentReply> {
        Some(SentReply {
            sent,
            began: sent + 50,
            scheduled: sent + 450,
            transmitted: sent + 650,
        })
    }

    #[test]
    fn packets_divide_the_way_of_a_call_of_which_all_is_known() {
        use PacketStep::{Headers, KernelIn, KernelOut, SystemCall, WakeUp, Wire};
        let call = |step, nanos| (Part::Packet(Leg::Call, step), nanos);
        let back = |step, nanos| (Part::Packet(Leg::Reply, step), nanos);
        let trace = with_packets(
            server_with_packets(OURS, [4000, 4100, 6000, 6100]),
            HERE,
            reply(6100),
        );
        assert_eq!(
            (trace.way(), trace.packets()),
            (Way::Whole, PacketCoverage::Both)
        );
        let expected = [
            call(Headers, 500),
            call(SystemCall, 100),
            call(KernelOut, 300),
            call(Wire, 1400),
            call(KernelIn, 300),
            call(WakeUp, 400),
            (Part::Dispatch, 100),
            (Part::Serve, 1900),
            // From when the result was encoded until the system call began.
            (Part::Finish, 150),
            back(Headers, 300),
            back(SystemCall, 100),
            back(KernelOut, 200),
            back(Wire, 1250),
            back(KernelIn, 300),
            back(WakeUp, 700),
        ];
        assert_eq!(between(&trace), expected);
        // Other clocks tell durations: how long both packets were on the wire.
        let trace = with_packets(
            server_with_packets(OURS + 1, [1_004_000, 1_004_100, 1_006_000, 1_006_100]),
            HERE,
            reply(1_006_100),
        );
        assert_eq!(
            (trace.way(), trace.packets()),
            (Way::TwoClocks, PacketCoverage::Both)
        );
        let mut apart = expected.to_vec();
        let wires = apart.extract_if(.., |(part, _)| matches!(part, Part::Packet(_, Wire)));
        let wires: u64 = wires.map(|(_, nanos)| nanos).sum();
        apart.insert(3, (Part::BothWires, wires));
        assert_eq!(between(&trace), apart);
    }

    #[test]
    fn what_is_not_known_of_packets_is_one_step() {
        use PacketStep::{Headers, KernelIn, KernelOut, OutAndWire, SystemCall, WakeUp, WireAndIn};
        let out = [(Headers, 500), (SystemCall, 100), (KernelOut, 300)];
        let out = out.map(|(step, nanos)| (Part::Packet(Leg::Call, step), nanos));
        let back = [(KernelIn, 300), (WakeUp, 700)];
        let back = back.map(|(step, nanos)| (Part::Packet(Leg::Reply, step), nanos));
        let steps = [
            (Part::Dispatch, 100),
            (Part::Serve, 1900),
            (Part::Finish, 100),
        ];
        let times = [4000, 4100, 6000, 6100];
        for (server, reply, way, there) in [
            (None, None, Way::Client, vec![(Part::Beyond, 6100)]),
            (
                stamps(OURS + 1, RATE, times),
                None,
                Way::TwoClocks,
                [&[(Part::BothBeyond, 4000)], &steps[..]].concat(),
            ),
            (
                server_with_packets(OURS, times),
                // The next call has not come.
                None,
                Way::Whole,
                [
                    &[(Part::Packet(Leg::Call, WireAndIn), 2100)],
                    &steps[..],
                    &[(Part::Packet(Leg::Reply, OutAndWire), 1900)],
                ]
                .concat(),
            ),
            (
                // Times of packets that are not those of this call.
                server_with_packets(OURS + 1, times),
                reply(100_000),
                Way::TwoClocks,
                [&[(Part::BothBeyond, 4000)], &steps[..]].concat(),
            ),
        ] {
            let trace = with_packets(server, HERE, reply);
            let expected = [&out[..], &there, &back].concat();
            assert_eq!(
                (trace.way(), trace.packets()),
                (way, PacketCoverage::Client)
            );
            assert_eq!(between(&trace), expected);
        }
    }

    #[test]
    fn stamps_that_are_not_of_this_call_are_not_believed() {
        let far = 1_000_000;
        for packets in [
            [far, far, far],
            [1900, 1600, 8000].map(|at| at * 20),
            [0, 1900, 20_000],
            [8000, 1900, 1600],
            [u64::MAX; 3],
        ] {
            let trace = with_packets(None, Some(packets), None);
            assert_eq!(trace.packets(), PacketCoverage::Neither, "{packets:?}");
            assert_eq!(between(&trace), [(Part::Send, 1000), (Part::Wait, 7000)]);
        }
        // Sent when the server had the call already: a packet that acknowledges a part of the reply.
        let later = Some([5600, 5900, 8000]);
        let trace = with_packets(
            server_with_packets(OURS, [4000, 4100, 6000, 6100]),
            later,
            reply(6100),
        );
        assert_eq!(
            (trace.way(), trace.packets()),
            (Way::Whole, PacketCoverage::Neither)
        );
        let wild = SentReply {
            sent: 6100,
            began: u64::MAX - 2,
            scheduled: u64::MAX - 1,
            transmitted: u64::MAX,
        };
        for clock in [OURS, OURS + 1] {
            let server = server_with_packets(clock, [4000, 4100, 6000, 6100]);
            let trace = with_packets(server, HERE, Some(wild));
            assert_eq!(trace.packets(), PacketCoverage::Client);
        }
    }
}
