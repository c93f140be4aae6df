//! What a server that stops still hears of the packet exchange: that its last answers have arrived, or of
//! which packets of them have not.

use std::sync::Arc;
use std::time::Instant;

use tenon_net::Carrier;
use tenon_proto::exchange::server::Farewell;
use tenon_proto::exchange::{Whole, is_packet};
use tenon_wire::Buffer;

use super::core::Core;
use super::exchange::Exchange;
use super::lean;
use super::port::Socket;

/// Receives at a time, before what there is to say is sent.
const RECEIVES_MAX: usize = 16;

/// A port that nobody attends any more.
pub(super) struct Hearing {
    port: Arc<Socket>,
    room: Vec<u8>,
    whole: Whole,
    out: Buffer,
    /// Whether idle clients were told that the server stops.
    has_told: bool,
}

impl Hearing {
    pub(super) fn new(port: Arc<Socket>, core: &Core) -> Self {
        Self {
            port,
            room: vec![0; Carrier::RECEIVE_MAX],
            whole: Whole::new(&lean::preamble(&core.limits)),
            out: Buffer::default(),
            has_told: false,
        }
    }

    /// Takes in what is there, up to a limit, and sends what there is to say; says whether every answer
    /// has arrived, as far as clients are still heard. Not while a call is carried out where it was received.
    pub(super) fn hear(&mut self, core: &Core) -> bool {
        let port = Arc::clone(&self.port);
        let is_over = port.if_free(|exchange| {
            if !self.has_told {
                exchange.say_goodbye(Farewell::ToIdle);
                self.has_told = true;
            }
            for _ in 0..RECEIVES_MAX {
                if !self.take_in(core, exchange) {
                    break;
                }
            }
            exchange.look_at_time(Instant::now());
            port.send_packets(core, exchange);
            !exchange.has_unarrived()
        });
        is_over.unwrap_or(false)
    }

    /// Takes in packets that have come together; says whether there may be more. Messages of ONC RPC are not
    /// heard any more.
    fn take_in(&mut self, core: &Core, exchange: &mut Exchange) -> bool {
        let carrier = &self.port.carrier;
        let (came, peer) = match carrier.try_recv_from(&mut self.room) {
            Ok(received) => received,
            // An earlier answer met a closed port, or the like: the error is consumed.
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        };
        for packet in came.packets(&self.room).filter(|packet| is_packet(packet)) {
            self.out.clear();
            let room = (&mut self.whole, &mut self.out);
            exchange.take_in_and_carry_out(core, carrier, packet, peer, room, |_, call, out| {
                // The engine refuses calls itself once clients were told.
                lean::refuse_for_number(call.caller, core, out);
            });
        }
        true
    }
}
