//! The way of a call between its two ends, divided into the steps of its packets.

use tenon_net::PacketCosts;
use tenon_proto::lean::{SentReply, Stamps};

use super::packets::{Leg, PacketCoverage, PacketStep, fit, split_in, split_out};
use super::part::{Part, Way};

/// Timing that the server reports, as nanoseconds since the call was entered or as the spans between them.
#[derive(Debug, Clone, Copy)]
pub(super) enum ServerTiming {
    Times([u64; 4]),
    Spans([u64; 3]),
    Nothing,
}

/// The parts of a call between its two ends, and what is known of them.
pub(super) struct Middle {
    pub(super) way: Way,
    pub(super) packets: PacketCoverage,
    pub(super) parts: Vec<(Part, u64)>,
}

/// Returns parts by the times between which they lie, which are in order.
pub(super) fn spans<const N: usize>(parts: [Part; N], times: &[u64]) -> Vec<(Part, u64)> {
    let spans = times.windows(2).map(|pair| pair[1] - pair[0]);
    parts.into_iter().zip(spans).collect()
}

/// Times at which the packets of a call were in the kernel of its server, in ticks of its clock.
pub(super) struct ServerPackets {
    /// The call came; the system call that sent the reply began, the reply was queued, and handed to the driver.
    pub(super) times: [u64; 4],
    received: u64,
    sent: u64,
}

impl ServerPackets {
    pub(super) fn of(stamps: &Stamps, reply: SentReply) -> Option<Self> {
        let came = stamps.packets?.received;
        (came > 0).then_some(Self {
            times: [came, reply.began, reply.scheduled, reply.transmitted],
            received: stamps.received,
            sent: stamps.sent,
        })
    }

    /// Returns the ticks from when the call came until it was found, from when the reply was to be sent until that began,
    /// until it was queued, and until the driver had it.
    pub(super) fn spans(&self) -> [u64; 4] {
        let [came, began, scheduled, transmitted] = self.times;
        [
            self.received.saturating_sub(came),
            began.saturating_sub(self.sent),
            scheduled.saturating_sub(began),
            transmitted.saturating_sub(scheduled),
        ]
    }
}

/// A call and its packets at its client, in nanoseconds since the call was entered.
pub(super) struct PacketWay {
    /// The system call that sends it begins; it is queued; the driver has it; the reply comes; it is received.
    pub(super) here: [u64; 5],
    pub(super) costs: PacketCosts,
}

impl PacketWay {
    /// Returns the steps of a packet from when the system call that sends it begins until the driver has it.
    fn out(&self, leg: Leg, to_queue: u64, to_driver: u64) -> [(Part, u64); 3] {
        let [headers, system_call] = split_out(to_queue, &self.costs);
        [
            (Part::Packet(leg, PacketStep::Headers), headers),
            (Part::Packet(leg, PacketStep::SystemCall), system_call),
            (Part::Packet(leg, PacketStep::KernelOut), to_driver),
        ]
    }

    /// Returns the steps of a packet from the driver until its receiver has it.
    fn into(&self, leg: Leg, nanos: u64) -> [(Part, u64); 2] {
        let [kernel_in, wake_up] = split_in(nanos, &self.costs);
        [
            (Part::Packet(leg, PacketStep::KernelIn), kernel_in),
            (Part::Packet(leg, PacketStep::WakeUp), wake_up),
        ]
    }

    fn out_here(&self) -> [(Part, u64); 3] {
        let [sending, scheduled, transmitted, ..] = self.here;
        self.out(Leg::Call, scheduled - sending, transmitted - scheduled)
    }

    fn in_here(&self) -> [(Part, u64); 2] {
        let [.., came, received] = self.here;
        self.into(Leg::Reply, received - came)
    }

    /// All is known, by one clock: of the server `there`, and of its packets.
    pub(super) fn whole(&self, there: [u64; 4], packets: [u64; 4]) -> Option<Middle> {
        let [sending, scheduled, transmitted, came_back, received] = self.here;
        let [found, dispatched, done, _] = there;
        let [came, began, queued, driven] = packets;
        let mut times = [
            sending,
            scheduled,
            transmitted,
            came,
            found,
            dispatched,
            done,
            began,
            queued,
            driven,
            came_back,
            received,
        ];
        if !fit(&mut times) {
            return None;
        }
        let span = |from: usize| times[from + 1] - times[from];
        let wire = |leg, nanos| (Part::Packet(leg, PacketStep::Wire), nanos);
        let parts = [
            &self.out(Leg::Call, span(0), span(1))[..],
            &[wire(Leg::Call, span(2))],
            &self.into(Leg::Call, span(3)),
            &[
                (Part::Dispatch, span(4)),
                (Part::Serve, span(5)),
                (Part::Finish, span(6)),
            ],
            &self.out(Leg::Reply, span(7), span(8)),
            &[wire(Leg::Reply, span(9))],
            &self.into(Leg::Reply, span(10)),
        ];
        Some(Middle {
            way: Way::Whole,
            packets: PacketCoverage::Both,
            parts: parts.concat(),
        })
    }

    /// All is known but how the time on the wire was divided, as the ends read different clocks. `there` are the spans
    /// of the server's steps, `packets` those of its packets.
    pub(super) fn two_clocks(&self, there: [u64; 3], packets: [u64; 4]) -> Option<Middle> {
        let [_, _, transmitted, came_back, _] = self.here;
        let [dispatch, serve, finish] = there;
        let [into, ready, to_queue, to_driver] = packets;
        let all = [dispatch, serve, finish, into, ready, to_queue, to_driver];
        let sum = all.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
        let wires = (came_back - transmitted).checked_sub(sum)?;
        let parts = [
            &self.out_here()[..],
            &[(Part::BothWires, wires)],
            &self.into(Leg::Call, into),
            &[
                (Part::Dispatch, dispatch),
                (Part::Serve, serve),
                (Part::Finish, finish + ready),
            ],
            &self.out(Leg::Reply, to_queue, to_driver),
            &self.in_here(),
        ];
        Some(Middle {
            way: Way::TwoClocks,
            packets: PacketCoverage::Both,
            parts: parts.concat(),
        })
    }

    /// Nothing is known of the packets at the server. `None` if the client's are not those of this call: the server had
    /// it at other times.
    pub(super) fn client_alone(&self, server: ServerTiming) -> Option<Middle> {
        let [_, _, transmitted, came_back, _] = self.here;
        let away = came_back - transmitted;
        let steps = [Part::Dispatch, Part::Serve, Part::Finish];
        let (way, there) = match server {
            ServerTiming::Times([found, dispatched, done, sent]) => {
                let mut times = [transmitted, found, dispatched, done, sent, came_back];
                if !fit(&mut times) {
                    return None;
                }
                let [dispatch, serve, finish] = steps;
                let into = Part::Packet(Leg::Call, PacketStep::WireAndIn);
                let out = Part::Packet(Leg::Reply, PacketStep::OutAndWire);
                let parts = [into, dispatch, serve, finish, out];
                (Way::Whole, spans(parts, &times))
            }
            ServerTiming::Spans(there) => {
                let beyond = away.checked_sub(there.iter().sum())?;
                let steps = steps.into_iter().zip(there);
                let parts = [(Part::BothBeyond, beyond)].into_iter().chain(steps);
                (Way::TwoClocks, parts.collect())
            }
            ServerTiming::Nothing => (Way::Client, vec![(Part::Beyond, away)]),
        };
        let parts = [&self.out_here()[..], &there, &self.in_here()];
        Some(Middle {
            way,
            packets: PacketCoverage::Client,
            parts: parts.concat(),
        })
    }
}
