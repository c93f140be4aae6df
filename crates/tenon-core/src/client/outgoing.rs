//! The output of a channel: what is being sent of its calls.

use std::time::Instant;

use tenon_proto::connection::TransmitBatch;
use tenon_wire::Buffer;

use super::calls::Calls;
use crate::client_socket::ClientSocket;
use crate::trains::PacketTrains;

/// Output of a channel that is being sent. A sender that finds no room leaves the rest to others.
#[derive(Debug)]
pub enum Outgoing {
    /// Messages of a stream.
    Stream(Box<TransmitBatch>),
    /// Datagrams.
    Datagram(Box<PacketTrains<()>>),
}

impl Outgoing {
    /// Nothing yet, of a channel over `socket`.
    pub fn new(socket: &ClientSocket) -> Self {
        match socket {
            ClientSocket::Stream(_) => Self::Stream(Box::default()),
            ClientSocket::Datagram(_) => Self::Datagram(Box::default()),
        }
    }

    /// Returns the batch, if it is one.
    pub fn into_batch(self) -> Option<Box<TransmitBatch>> {
        match self {
            Self::Stream(batch) => Some(batch),
            Self::Datagram(_) => None,
        }
    }

    /// Returns the batch, if it is one.
    pub fn batch_mut(&mut self) -> Option<&mut TransmitBatch> {
        match self {
            Self::Stream(batch) => Some(batch),
            Self::Datagram(_) => None,
        }
    }

    /// Returns whether a sender has left something unsent.
    #[inline]
    pub fn has_rest(&self) -> bool {
        match self {
            Self::Stream(batch) => !batch.is_sent(),
            Self::Datagram(trains) => trains.has_next(),
        }
    }

    /// Makes out what is to be sent next; returns whether there is anything. What was left unsent comes first.
    #[inline]
    pub fn advance<W: Copy + PartialEq>(&mut self, calls: &mut Calls<W>) -> bool {
        match (self, calls) {
            (Self::Stream(batch), Calls::Stream(connection)) => {
                !batch.is_sent() || connection.poll_transmit(batch)
            }
            (Self::Datagram(trains), Calls::Datagram(calls)) => {
                let mut now = None;
                let mut poll = |out: &mut Buffer| {
                    let now = *now.get_or_insert_with(Instant::now);
                    calls.endpoint.poll_transmit(now, out).then_some(())
                };
                trains.next(&mut poll).is_some()
            }
            _ => false,
        }
    }

    /// Takes in that everything was sent.
    #[inline]
    pub fn handle_transmitted<W: Copy + PartialEq>(&mut self, calls: &mut Calls<W>) {
        if let (Self::Stream(batch), Calls::Stream(connection)) = (self, calls) {
            connection.handle_transmitted(batch);
        }
    }
}
