//! Asking the peer whether it is there: by a ping of the lean protocol, or a call of procedure 0 by ONC RPC for which no
//! caller waits. When, [`PeerLiveness`](super::liveness::PeerLiveness) says.

use std::time::Instant;

use tenon_wire::Buffer;

use super::incoming_calls::NULL_PROCEDURE;
use super::liveness::PeerSilence;
use super::{Connection, WireProtocol};
use crate::codec::onc::auth::Credential;
use crate::codec::onc::message::{CallTemplate, set_xid};
use crate::codec::onc::record;

impl<W> Connection<W> {
    /// Notes that something was received.
    #[inline]
    pub fn note_heard(&mut self) {
        self.liveness.note_heard();
    }

    /// Notes that nothing was received since `since`, when the last call was started, without which none was in flight.
    #[cold]
    pub fn note_silence(&mut self, since: Instant) {
        self.liveness.note_silence(since, &self.outgoing);
    }

    /// Has a peer by ONC RPC be asked by calls of procedure 0 of this version of a program, unless another was named
    /// before. Without one it is not asked.
    pub fn ping_by(&mut self, program: u32, version: u32) {
        if self.protocol == Some(WireProtocol::Onc) && self.null_call.is_none() {
            let template = CallTemplate::new(program, version, &Credential::None);
            self.null_call = Some(Box::new(template));
            self.liveness.set_interval(self.config.pings.onc_interval);
        }
    }

    /// Asks the peer whether it is there, if that is due at `now`.
    ///
    /// # Errors
    /// The peer is to be given up. What was received is to be taken in before that is asked.
    #[cold]
    pub fn handle_silence(&mut self, now: Instant) -> Result<(), PeerSilence> {
        let awaits_preamble = self.awaits_preamble();
        let liveness = &mut self.liveness;
        if liveness.handle_timeout(now, &self.outgoing, awaits_preamble)? {
            match self.protocol {
                Some(WireProtocol::Onc) => self.call_null(),
                _ => _ = self.ping(),
            }
        }
        Ok(())
    }

    /// Returns when the peer is to be asked whether it is there, or is to be given up, if nothing is received until
    /// then.
    pub fn silence_timeout(&self) -> Option<Instant> {
        let is_awaited = self.in_flight() > 0 || self.awaits_preamble();
        self.liveness.next_timeout(&self.outgoing, is_awaited)
    }

    fn awaits_preamble(&self) -> bool {
        self.awaits_peer && self.peer.is_none() && self.protocol == Some(WireProtocol::Lean)
    }

    /// Has procedure 0 called, for which no caller waits.
    fn call_null(&mut self) {
        if let Some(template) = &self.null_call {
            let mut message = Buffer::default();
            template.begin(&mut message, NULL_PROCEDURE);
            record::seal(&mut message, 0, self.config.fragment_max);
            set_xid(&mut message, self.outgoing.begin_null_call());
            self.send_queue.control().extend(message.as_slice());
        }
    }
}
