//! Calls of the packet exchange: the engine has the messages, and says which packet is sent when. The driver
//! sends, receives and minds the time as it does for all other calls.

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use tenon::runtime::{Engine, ExchangeEngine, Followed, Received, SlotId, Socket, Step, Trains};
use tenon::runtime::{Timer, Unstarted};

use super::slots::Stage;
use super::state::State;

/// What only channels have that call by the packet exchange.
#[derive(Debug, Default)]
pub(super) struct Packets {
    trains: Trains<()>,
    /// Accounts that follow calls whose packets are to be sent.
    followed: Vec<Arc<Followed>>,
    /// Who waits for the server to be heard.
    greeters: Vec<Waker>,
    /// Bytes of packets of which several are likely to come together.
    train: Option<usize>,
}

impl Packets {
    pub(super) fn has_transmit(&self) -> bool {
        self.trains.has_next()
    }
}

impl State {
    fn exchange(&mut self) -> Option<&mut ExchangeEngine> {
        match &mut self.engine {
            Engine::Exchange(engine) => Some(engine),
            Engine::Onc(_) | Engine::Lean(_) => None,
        }
    }

    pub(super) fn is_exchange(&self) -> bool {
        matches!(self.engine, Engine::Exchange(_))
    }

    /// Asks for a conversation, if calls go by the packet exchange; says whether they do.
    pub(super) fn greet(&mut self) -> bool {
        let engine = self.exchange();
        engine.map(ExchangeEngine::greet).is_some()
    }

    /// Whether the server has still to be heard; then `owner` is woken when it is, or when there is nothing
    /// to be waited for any more.
    ///
    /// # Errors
    /// Why the server cannot be asked.
    pub(super) fn is_greeting(&mut self, owner: &Waker) -> Result<bool, Arc<io::Error>> {
        let is_greeting = match self.exchange() {
            Some(engine) => engine.is_greeting()?,
            None => false,
        };
        if is_greeting {
            self.packets.greeters.push(owner.clone());
        }
        Ok(is_greeting)
    }

    /// Puts the first call of the queue in flight.
    pub(super) fn start_packets(&mut self, slot: SlotId) -> Result<(), Unstarted> {
        let entry = self.slots.get(slot);
        let timer: Timer = entry.timer;
        let (Stage::Waiting(written), Engine::Exchange(engine)) =
            (&mut entry.stage, &mut self.engine)
        else {
            unreachable!("the queue names calls that wait, for this engine");
        };
        written.start_packets(engine, &timer, slot)?;
        let number = slot.index() as u32;
        let waited = std::mem::replace(&mut entry.stage, Stage::InFlight(number, None));
        self.queue.pop_front();
        if let Stage::Waiting(mut written) = waited {
            if let Some(followed) = written.followed.take() {
                followed.at(Step::Sending);
                self.packets.followed.push(followed);
            }
            self.buffers.put(written.into_message());
        }
        Ok(())
    }

    /// Sends as much as there is room for. What cannot be sent at all counts as lost.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room for all.
    pub(super) fn send_packets(&mut self, socket: &Socket) -> io::Result<()> {
        let sent = self.send_trains(socket);
        let next = self
            .exchange()
            .and_then(|engine| engine.next_timeout_of_all());
        if let Some(at) = next {
            self.expect(at);
        }
        sent
    }

    fn send_trains(&mut self, socket: &Socket) -> io::Result<()> {
        let Engine::Exchange(engine) = &mut self.engine else {
            return Ok(());
        };
        let trains = &mut self.packets.trains;
        let mut was_refused = false;
        while let Some((train, ())) = trains.next(|out| engine.poll_packet(None, out).then_some(()))
        {
            let length = train.bytes.len();
            match socket.try_send_train(train) {
                Ok(sent) if sent == length => {}
                Ok(sent) => trains.keep((), sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    trains.keep((), 0);
                    return Err(error);
                }
                // An earlier packet met a closed port; this one was not sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && !was_refused => {
                    was_refused = true;
                    trains.keep((), 0);
                }
                Err(error) => engine.note_fault(error),
            }
        }
        for followed in self.packets.followed.drain(..) {
            followed.at(Step::Sent);
        }
        Ok(())
    }

    /// Looks whether what was received says that more comes together.
    pub(super) fn note_train(&mut self, received: &Received<'_>) {
        if let Some(size) = received.train() {
            self.packets.train = Some(size);
        }
    }

    /// Has the socket expect what is likely to come together.
    pub(super) fn expect_train(&mut self, socket: &Socket) {
        if let Some(size) = self.packets.train.take() {
            socket.expect_train(size);
        }
    }

    /// Ends calls that came to nothing without an answer, and looks what is to be done next.
    pub(super) fn end_failed(&mut self) {
        while let Some((slot, error)) = self.engine.poll_failure() {
            self.finish(slot, Err(error));
        }
        let next = self
            .exchange()
            .and_then(|engine| engine.next_timeout_of_all());
        if let Some(at) = next {
            self.expect(at);
        }
        self.woken.append(&mut self.packets.greeters);
    }

    /// Nobody listens at the peer's port: calls in flight fail.
    #[cold]
    pub(super) fn refused(&mut self, error: io::Error) {
        if let Some(engine) = self.exchange() {
            engine.refused(error);
        }
        self.end_failed();
    }

    /// Does what is due, of all calls.
    pub(super) fn handle_packet_timeout(&mut self, now: Instant) {
        if let Some(engine) = self.exchange() {
            engine.handle_timeout(now);
            self.end_failed();
        }
    }
}
