//! The packets of a call: the kernel's time stamps, and the steps that they divide the way between the ends into.

use tenon_net::{PacketCosts, PacketStamps};
use tenon_proto::lean::SentReply;

use super::clock::WallClock;

/// A message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// From the client to the server.
    Call,
    /// From the server to the client.
    Reply,
}

/// A step of a packet on its way from one process to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketStep {
    /// Headers and checksums are written, and the data is copied into the kernel: from when the sending system call
    /// begins until the packet is handed to the queue of the network interface, without the
    /// [system call](Self::SystemCall) by itself.
    Headers,
    /// The way into the kernel: as long as a system call takes that does nothing.
    SystemCall,
    /// From the queue of the network interface to its driver.
    KernelOut,
    /// From the driver of the sender to that of the receiver.
    Wire,
    /// From the driver to the socket: as long as that takes when no thread has to be woken.
    KernelIn,
    /// The receiving thread is woken, copies the data and leaves the kernel.
    WakeUp,
    /// [`Wire`](Self::Wire), [`KernelIn`](Self::KernelIn) and [`WakeUp`](Self::WakeUp), if nothing is known of the
    /// receiver's packets.
    WireAndIn,
    /// [`Headers`](Self::Headers), [`SystemCall`](Self::SystemCall), [`KernelOut`](Self::KernelOut) and
    /// [`Wire`](Self::Wire), if nothing is known of the sender's packets.
    OutAndWire,
}

/// Ends of which it is known when the kernel had the packets of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketCoverage {
    /// Neither.
    Neither,
    /// The client.
    Client,
    /// Both.
    Both,
}

/// Times of the packets of a call at its client, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTicks {
    /// The call was handed to the queue of the network interface.
    pub scheduled: u64,
    /// It was handed to the driver.
    pub transmitted: u64,
    /// The reply came from the driver.
    pub received: u64,
}

/// What is known of the packets of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketObservation {
    pub(super) client: PacketTicks,
    /// The server's times of the reply.
    pub(super) reply: Option<SentReply>,
    pub(super) costs: PacketCosts,
}

impl PacketTicks {
    /// Converts the stamps of a call, if the kernel has given all of them.
    pub(super) fn of(stamps: PacketStamps, clock: &WallClock) -> Option<Self> {
        Some(Self {
            scheduled: clock.ticks_of(stamps.scheduled?),
            transmitted: clock.ticks_of(stamps.transmitted?),
            received: clock.ticks_of(stamps.received?),
        })
    }
}

/// Divides the time from when a sending system call began until the packet was in the queue of the interface: headers
/// and copying, the system call.
pub(super) fn split_out(nanos: u64, costs: &PacketCosts) -> [u64; 2] {
    let system_call = nanos.min(costs.system_call);
    [nanos - system_call, system_call]
}

/// Divides the time from when a packet came from the driver until its receiver had it: the kernel's way in, waking.
pub(super) fn split_in(nanos: u64, costs: &PacketCosts) -> [u64; 2] {
    let kernel_in = nanos.min(costs.kernel_in);
    [kernel_in, nanos - kernel_in]
}

/// Nanoseconds by which a time may lie before the one that it follows: the two come from clocks that are compared with
/// an error, one of them by another process.
const SLACK: u64 = 1000;

/// Brings times in order that may be out of order by the error of clocks, between the first and the last, which stay as
/// they are; false if they are too far out of order to be times of one call.
pub(super) fn fit(times: &mut [u64]) -> bool {
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
        return true;
    };
    let mut before = first;
    for time in times.iter_mut() {
        if time.saturating_add(SLACK) < before {
            return false;
        }
        *time = before.max(*time);
        before = *time;
    }
    times.iter_mut().for_each(|time| *time = last.min(*time));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_nearly_in_order_are_brought_in_order() {
        let fitted = |times: &[u64]| {
            let mut times = times.to_vec();
            fit(&mut times).then_some(times)
        };
        assert_eq!(fitted(&[]), Some(vec![]));
        assert_eq!(fitted(&[5, 7, 9]), Some(vec![5, 7, 9]));
        assert_eq!(fitted(&[5000, 4500, 9000]), Some(vec![5000, 5000, 9000]));
        // The last stays where it is, too.
        assert_eq!(fitted(&[0, 9500, 9000]), Some(vec![0, 9000, 9000]));
        assert_eq!(fitted(&[5000, 3000, 9000]), None);
        assert_eq!(fitted(&[0, 19_000, 9000]), None);
    }

    #[test]
    fn what_is_measured_elsewhere_is_no_more_than_there_is() {
        let costs = PacketCosts {
            system_call: 100,
            kernel_in: 700,
        };
        assert_eq!(split_out(1000, &costs), [900, 100]);
        assert_eq!(split_out(70, &costs), [0, 70]);
        assert_eq!(split_in(1000, &costs), [700, 300]);
        assert_eq!(split_in(600, &costs), [600, 0]);
    }
}
