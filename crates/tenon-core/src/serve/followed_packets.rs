//! The packets of followed calls at a port: when the kernel had them, which their clients are told.

use std::io;
use std::net::SocketAddr;

use tenon_net::{Carrier, FollowedPackets, PacketStamps};
use tenon_proto::lean::{PacketTimes, SentReply};
use tenon_wire::Buffer;

use super::port::FoundCall;
use crate::profile::{WallClock, now};

/// Calls in a row that ask for nothing before packets are no longer followed.
const UNFOLLOWED_MAX: u32 = 10_000;

/// The state of a port whose clients ask when its kernel had packets.
#[derive(Debug)]
pub struct PacketFollower {
    /// The reply that is sent next: its client, and the time of sending in its time stamps.
    next: Option<(SocketAddr, u64)>,
    /// The last reply that was sent to a client that asks, and its client.
    last: Option<(SocketAddr, SentReply)>,
    /// Calls that asked for nothing since one did.
    unfollowed: u32,
}

impl PacketFollower {
    /// Begins to follow the packets of a port.
    fn begin(carrier: &Carrier) -> io::Result<Box<Self>> {
        carrier.follow_packets(FollowedPackets::Received)?;
        Ok(Box::new(Self {
            next: None,
            last: None,
            unfollowed: 0,
        }))
    }

    /// Puts into the sealed reply to a call what its client asks of packets, if it asks, and counts a call of which the
    /// client asks nothing. `place` has the follower of the port, if there is one.
    #[inline]
    pub fn note_reply(
        place: &mut Option<Box<Self>>,
        carrier: &Carrier,
        found: &FoundCall,
        reply: &mut Buffer,
    ) {
        if found.call.is_followed() {
            Self::answer(place, carrier, found, reply);
        } else if place.is_some() {
            Self::count(place, carrier);
        }
    }

    #[cold]
    #[inline(never)]
    fn answer(
        place: &mut Option<Box<Self>>,
        carrier: &Carrier,
        found: &FoundCall,
        reply: &mut Buffer,
    ) {
        let arguments = found.arguments().len();
        if !found.call.asks_packet_times(found.message(), arguments) {
            return Self::count(place, carrier);
        }
        // The packet of this call came without a stamp, if it is the first that asks.
        let came = carrier.received_stamp();
        if place.is_none() {
            *place = Self::begin(carrier).ok();
        }
        let Some(follower) = place else {
            return;
        };
        follower.unfollowed = 0;
        let last = follower.last.filter(|(client, _)| *client == found.from);
        let times = PacketTimes {
            received: came.map_or(0, |nanos| WallClock::read().ticks_of(nanos)),
            earlier: last.map(|(_, reply)| reply),
        };
        let sent = found.call.caller.put_packet_times(reply, &times);
        follower.next = sent.map(|sent| (found.from, sent));
    }

    /// Counts a call that asks for nothing.
    #[cold]
    #[inline(never)]
    fn count(place: &mut Option<Box<Self>>, carrier: &Carrier) {
        let Some(follower) = place else {
            return;
        };
        follower.unfollowed += 1;
        if follower.unfollowed >= UNFOLLOWED_MAX
            && carrier.follow_packets(FollowedPackets::None).is_ok()
        {
            *place = None;
        }
    }

    /// Packets to this client are about to be sent. If they are those of a reply that is followed, they are stamped;
    /// returns the time then, which the [end](Self::end_send) of sending wants.
    #[inline]
    pub fn begin_send(
        place: &mut Option<Box<Self>>,
        carrier: &Carrier,
        to: SocketAddr,
    ) -> Option<u64> {
        match place {
            Some(follower) => follower.begin_stamping(carrier, to),
            None => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_stamping(&self, carrier: &Carrier, to: SocketAddr) -> Option<u64> {
        let (client, _) = self.next?;
        if client != to {
            return None;
        }
        // If it fails, the packets have no stamps.
        let _ = carrier.follow_packets(FollowedPackets::All);
        Some(now())
    }

    /// Notes when the kernel had the packets that were sent since sending [`began`](Self::begin_send).
    #[cold]
    #[inline(never)]
    pub fn end_send(place: &mut Option<Box<Self>>, carrier: &Carrier, began: u64) {
        let PacketStamps {
            scheduled,
            transmitted,
            ..
        } = carrier.take_sent_stamps();
        let _ = carrier.follow_packets(FollowedPackets::Received);
        let Some(follower) = place else {
            return;
        };
        follower.last = follower.next.and_then(|(client, sent)| {
            let wall = WallClock::read();
            let reply = SentReply {
                sent,
                began,
                scheduled: wall.ticks_of(scheduled?),
                transmitted: wall.ticks_of(transmitted?),
            };
            Some((client, reply))
        });
    }

    /// All that was to be sent was sent.
    #[inline]
    pub fn end_replies(place: &mut Option<Box<Self>>) {
        if let Some(follower) = place {
            follower.next = None;
        }
    }
}

#[cfg(all(test, target_os = "linux", not(tenon_portable)))]
mod tests {
    use super::*;

    #[test]
    fn packets_are_not_followed_for_ever() {
        let address = "udp://127.0.0.1:0".parse().expect("an address");
        let carrier = Carrier::bind(&address).expect("a port");
        let mut follower = Some(PacketFollower::begin(&carrier).expect("UDP has stamps"));
        for call in 1..=UNFOLLOWED_MAX {
            assert!(follower.is_some(), "{call}");
            PacketFollower::count(&mut follower, &carrier);
        }
        assert!(follower.is_none());
    }
}
