//! Packets of a protocol engine, gathered into trains that go out together.

use std::ops::Range;

use tenon_net::PacketTrain;
use tenon_proto::endpoint::exchange::packets_of_message;
use tenon_wire::Buffer;

/// Bytes of a train at most: the largest datagram there is, of which the system makes several packets.
const BYTES_MAX: usize = 65_504;

/// Packets of a train at most: as many as every system takes that takes several.
const PACKETS_MAX: usize = 64;

/// Packets of a protocol engine, gathered into trains. `A` is the address of their receiver.
#[derive(Debug)]
pub struct PacketTrains<A> {
    bytes: Buffer,
    /// Offset of a packet that did not fit into the train, and its receiver.
    next: Option<(usize, A)>,
    /// The train that was handed out last.
    train: Range<usize>,
    size: usize,
    /// Packets of the longest message that one of it is a part of.
    message_packets: u32,
    /// Its receiver, if it is still to be sent.
    kept_for: Option<A>,
}

impl<A> Default for PacketTrains<A> {
    fn default() -> Self {
        Self {
            bytes: Buffer::default(),
            next: None,
            train: 0..0,
            size: 0,
            message_packets: 1,
            kept_for: None,
        }
    }
}

impl<A: PartialEq> PacketTrains<A> {
    /// Returns whether a packet waits that did not fit into the train.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next.is_some() || self.kept_for.is_some()
    }

    /// Returns the next train, of what `poll` appends packet by packet as long as there is something to send.
    #[inline]
    pub fn next(
        &mut self,
        mut poll: impl FnMut(&mut Buffer) -> Option<A>,
    ) -> Option<(PacketTrain<'_>, A)> {
        if let Some(to) = self.kept_for.take() {
            return Some((self.train(), to));
        }
        let first = self.next.take();
        let mut to = match first {
            None => {
                self.bytes.clear();
                None
            }
            Some((start, to)) => {
                self.keep_from(start);
                Some(to)
            }
        };
        let (mut end, mut size) = (self.bytes.len(), self.bytes.len());
        let mut message_packets = packets_of_message(self.bytes.as_slice());
        // Asked for in one place: the code that is asked is large, and part of this then.
        while end + size <= BYTES_MAX && (end == 0 || end < size * PACKETS_MAX) {
            let Some(other) = poll(&mut self.bytes) else {
                break;
            };
            let length = self.bytes.len() - end;
            match &to {
                None => {
                    (to, size) = (Some(other), length);
                }
                Some(to) if other != *to || length > size => {
                    self.next = Some((end, other));
                    break;
                }
                Some(_) => {}
            }
            let packet = &self.bytes.as_slice()[end..];
            message_packets = message_packets.max(packets_of_message(packet));
            end += length;
            if length < size {
                break;
            }
        }
        let to = to?;
        (self.train, self.size) = (0..end, size);
        self.message_packets = message_packets;
        Some((self.train(), to))
    }

    /// Returns the train that was handed out last.
    #[inline]
    pub fn train(&self) -> PacketTrain<'_> {
        PacketTrain {
            bytes: &self.bytes.as_slice()[self.train.clone()],
            size: self.size,
            message_packets: self.message_packets,
        }
    }

    /// Notes that only so many bytes of the train that was handed out last were sent: the rest is the next one.
    pub fn keep(&mut self, to: A, sent: usize) {
        self.train.start += sent;
        self.kept_for = Some(to);
    }

    /// Forgets what stands in front of a packet.
    #[cold]
    fn keep_from(&mut self, start: usize) {
        let length = self.bytes.len() - start;
        self.bytes.as_mut_slice().copy_within(start.., 0);
        self.bytes.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trains of packets of these lengths, each for one of two peers.
    fn trains(packets: &[(usize, char)]) -> Vec<(char, Vec<usize>)> {
        let mut left = packets.iter().enumerate();
        let mut trains = PacketTrains::default();
        let mut found = Vec::new();
        while let Some((train, to)) = trains.next(|out| {
            let (index, (length, to)) = left.next()?;
            out.extend(&vec![index as u8; *length]);
            Some(*to)
        }) {
            assert_eq!(train.packets().count() == 1, train.is_one());
            for packet in train.packets() {
                assert!(packet.iter().all(|byte| *byte == packet[0]));
            }
            found.push((to, train.packets().map(<[u8]>::len).collect()));
        }
        found
    }

    #[test]
    fn packets_of_one_length_go_together_and_a_shorter_one_behind_them() {
        let packets = [(40, 'a'), (40, 'a'), (40, 'a'), (32, 'a'), (40, 'a')];
        assert_eq!(
            trains(&packets),
            [('a', vec![40, 40, 40, 32]), ('a', vec![40])]
        );
    }

    #[test]
    fn a_longer_packet_or_one_for_somebody_else_begins_another_train() {
        let packets = [(32, 'a'), (40, 'a'), (40, 'b'), (40, 'b'), (48, 'a')];
        let expected = [
            ('a', vec![32]),
            ('a', vec![40]),
            ('b', vec![40, 40]),
            ('a', vec![48]),
        ];
        assert_eq!(trains(&packets), expected);
    }

    #[test]
    fn what_was_not_sent_of_a_train_is_the_next_one() {
        let mut left = [3_u8, 2, 1].into_iter();
        let mut trains = PacketTrains::default();
        let mut poll = |out: &mut Buffer| {
            let value = left.next()?;
            out.extend(&[value; 8]);
            Some(())
        };
        let whole: Vec<u8> = [[3; 8], [2; 8], [1; 8]].concat();
        for sent in [0, 8, 8] {
            let (train, ()) = trains.next(&mut poll).unwrap();
            assert_eq!(train.size, 8);
            assert!(whole.ends_with(train.bytes));
            trains.keep((), sent);
            assert!(trains.has_next());
        }
        let (train, ()) = trains.next(&mut poll).unwrap();
        assert_eq!(train.bytes, [1; 8]);
        assert!(trains.next(&mut poll).is_none() && !trains.has_next());
    }

    #[test]
    fn a_train_says_of_how_long_a_message_it_is_a_part() {
        // Packets of a call, an answer and an acknowledgement of so many fragments, and a call of ONC RPC.
        let packet = |magic: [u8; 2], kind: u8, fragments: u32| {
            let mut packet = vec![0; 1200];
            packet[4..6].copy_from_slice(&magic);
            packet[6] = kind;
            packet[28..32].copy_from_slice(&fragments.to_be_bytes());
            packet
        };
        let packets = |kinds: &[(u8, u32)]| -> Vec<Vec<u8>> {
            let sound = kinds.iter();
            sound
                .map(|(kind, fragments)| packet([0x7f, 0x78], *kind, *fragments))
                .collect()
        };
        let of = |packets: Vec<Vec<u8>>| {
            let mut left = packets.into_iter();
            let mut trains = PacketTrains::default();
            let train = trains.next(|out| left.next().map(|packet| out.extend(&packet)));
            train.unwrap().0.message_packets
        };
        assert_eq!(of(packets(&[(3, 1)])), 1);
        assert_eq!(of(packets(&[(3, 1), (3, 1)])), 1);
        assert_eq!(of(packets(&[(3, 1), (3, 9), (4, 7)])), 9);
        assert_eq!(of(packets(&[(5, 9)])), 1);
        assert_eq!(of(vec![packet([0, 0], 3, 9)]), 1);
    }

    #[test]
    fn a_train_fits_a_datagram() {
        let lengths = |found: Vec<(char, Vec<usize>)>| -> Vec<usize> {
            found.iter().map(|(_, packets)| packets.len()).collect()
        };
        assert_eq!(lengths(trains(&[(1448, 'a'); 100])), [45, 45, 10]);
        assert_eq!(lengths(trains(&[(32, 'a'); 100])), [64, 36]);
        assert_eq!(lengths(trains(&[(65_504, 'a'); 2])), [1, 1]);
    }
}
