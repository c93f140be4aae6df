//! Packets that wait for room in the socket. Whoever finds that there is none waits for it, with the bookkeeping
//! left to others, who leave their packets to whoever waits: so packets go out in the order in which the engine gave
//! them out.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use tenon_net::{Ready, Train};

use super::Channel;
use super::connection::Connection;
use super::state::State;
use crate::trains::Trains;

/// How long packets wait for any room in the socket before they count as lost, and how long at most their sender takes
/// those of others along. Its own have as long again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Packets that found no room. Until it is [sent](Channel::send_backlog) nobody else sends over its connection.
#[must_use = "nobody sends before it is sent"]
pub(super) struct Backlog {
    connection: Arc<Connection>,
    trains: Trains<()>,
}

impl Channel {
    /// Sends what is to be sent, and waits for room if there is none, with the bookkeeping locked before and
    /// behind.
    #[inline]
    pub(super) fn flush_packets<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
    ) -> MutexGuard<'s, State> {
        let backlog = state.flush_packets();
        self.send_backlog_unlocked(state, backlog)
    }

    /// The same of what found no room, if there is anything.
    #[inline]
    pub(super) fn send_backlog_unlocked<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        backlog: Option<Backlog>,
    ) -> MutexGuard<'s, State> {
        match backlog {
            None => state,
            Some(backlog) => {
                drop(state);
                self.send_backlog(backlog);
                self.lock()
            }
        }
    }

    /// Waits for room and sends what found none, and what has come to be sent meanwhile. What finds none for too
    /// long is lost, as it may be anywhere on its way.
    #[cold]
    pub(super) fn send_backlog(&self, backlog: Backlog) {
        let Backlog {
            connection,
            mut trains,
        } = backlog;
        let takes_along_until = Instant::now() + PATIENCE;
        let ends_at = takes_along_until + PATIENCE;
        loop {
            let until = ends_at.min(Instant::now() + PATIENCE);
            let waited = connection.wait(Ready::WRITABLE, until);
            let mut state = self.lock();
            // What is left belongs to a line that has ended.
            if !state.is_line(&connection) {
                return;
            }
            let now = Instant::now();
            let has_rest = waited.map(|_| {
                let takes_along = now < takes_along_until;
                state.send_trains(&connection, &mut trains, takes_along)
            });
            let lost = match has_rest {
                Ok(false) => return state.end_backlog(trains),
                Ok(true) if now < ends_at => continue,
                Ok(true) => io::ErrorKind::TimedOut.into(),
                Err(error) => error,
            };
            state.note_sent(Err(lost));
            return state.end_backlog(Trains::default());
        }
    }
}

impl State {
    /// Sends what is to be sent, unless somebody waits for room, who sends it then. What finds no room itself is
    /// returned.
    #[inline]
    pub(super) fn flush_packets(&mut self) -> Option<Backlog> {
        let line = self.line.as_ref()?;
        if line.backlogs > 0 {
            return None;
        }
        let connection = Arc::clone(&line.connection);
        let mut trains = self.trains.pop().unwrap_or_default();
        match self.send_trains(&connection, &mut trains, true) {
            true => self.begin_backlog(connection, trains),
            false => {
                self.trains.push(trains);
                None
            }
        }
    }

    /// Whether somebody waits for room, and will send what is to be sent.
    #[inline]
    pub(super) fn has_backlog(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.backlogs > 0)
    }

    /// Has others leave their packets to the one who sends these. None if the line over `connection` has ended.
    #[cold]
    pub(super) fn begin_backlog(
        &mut self,
        connection: Arc<Connection>,
        trains: Trains<()>,
    ) -> Option<Backlog> {
        let line = self.line_over(&connection)?;
        line.backlogs += 1;
        Some(Backlog { connection, trains })
    }

    fn end_backlog(&mut self, trains: Trains<()>) {
        if let Some(line) = &mut self.line {
            line.backlogs -= 1;
        }
        self.trains.push(trains);
    }

    /// Sends trains, and of the engine's packets if it `polls`, as far as there is room; says whether a rest was
    /// kept.
    #[inline]
    fn send_trains(
        &mut self,
        connection: &Connection,
        trains: &mut Trains<()>,
        polls: bool,
    ) -> bool {
        while let Some((train, ())) = trains.next(|out| match polls {
            true => self.poll_packet(None, out),
            false => None,
        }) {
            let length = train.bytes.len();
            match send(connection, train) {
                Ok(sent) if sent < length => {
                    trains.keep((), sent);
                    return true;
                }
                sent => self.note_sent(sent),
            }
        }
        false
    }
}

/// Sends packets; the bytes of those that found room.
#[inline]
pub(super) fn send(connection: &Connection, train: Train<'_>) -> io::Result<usize> {
    match connection.try_send_train(train) {
        Ok(sent) if sent == train.bytes.len() => Ok(sent),
        sent => send_rest(connection, train, sent),
    }
}

/// Goes on after a part was sent, or nothing.
#[cold]
fn send_rest(
    connection: &Connection,
    train: Train<'_>,
    mut step: io::Result<usize>,
) -> io::Result<usize> {
    let mut sent = 0;
    let mut is_refused = false;
    loop {
        match step {
            Ok(bytes) => sent += bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(sent),
                // An earlier packet met a closed port; this one was not sent.
                io::ErrorKind::ConnectionRefused if !is_refused => is_refused = true,
                _ => return Err(error),
            },
        }
        if sent == train.bytes.len() {
            return Ok(sent);
        }
        step = connection.try_send_train(train.behind(sent));
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::Write;
    use std::process::{Command, Output};
    use std::sync::Arc;

    use tenon_proto::lean::Interface;
    use tenon_wire::{Decoder, Encoder, Lean};

    use super::*;
    use crate::{CallInfo, Client, LeanInput, LeanService, PendingCall, Refusal, Server, Service};

    const PROGRAM: u32 = 0x2000_0001;

    /// Passes nothing for minutes once a packet has passed: what is behind it fills the socket that it came from.
    const STOP: &str = "tc qdisc add dev lo root tbf rate 80bit burst 2kb limit 100mb";
    const GO_ON: &str = "tc qdisc del dev lo root";

    struct Nothing;

    impl Service for Nothing {
        fn program(&self) -> u32 {
            PROGRAM
        }

        fn version(&self) -> u32 {
            1
        }

        fn call(
            &self,
            _call: &CallInfo<'_>,
            _arguments: &mut Decoder<'_>,
            _result: &mut Encoder<'_>,
        ) -> Result<(), Refusal> {
            Ok(())
        }

        fn lean(&self) -> Option<&dyn LeanService> {
            Some(self)
        }
    }

    impl LeanService for Nothing {
        fn interface(&self) -> Arc<Interface> {
            Arc::new(Interface::unknown(PROGRAM, 1))
        }

        fn call_lean(
            &self,
            _call: &CallInfo<'_>,
            _arguments: LeanInput<'_>,
            _result: &mut Encoder<'_, Lean>,
        ) -> Result<(), Refusal> {
            Ok(())
        }
    }

    fn shell(script: &str) -> Output {
        Command::new("sh").args(["-c", script]).output().unwrap()
    }

    fn run(script: &str) {
        let done = shell(script);
        assert!(done.status.success(), "{script}: {done:?}");
    }

    /// Has this test's other half run in a network of its own, where loopback can be stopped.
    #[test]
    fn packets_wait_for_room_while_others_use_the_channel() {
        let prepare = format!("unshare --net sh -c 'ip link set lo up && {STOP}'");
        let prepared = shell(&prepare);
        if !prepared.status.success() {
            let why = String::from_utf8_lossy(&prepared.stderr);
            // Not by `eprintln!`: what it says of a test that passes is kept back.
            let _ = writeln!(io::stderr(), "\nSKIPPED: a full socket: {}\n", why.trim());
            return;
        }
        let inside = Command::new("unshare")
            .args(["--net", "timeout", "180"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "channel::backlog::tests::inside"])
            .args(["--ignored", "--nocapture"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&inside.stdout);
        assert!(inside.status.success(), "{inside:?}");
        assert!(told.contains("1 passed"), "{told}");
    }

    fn client(server: &Server) -> Client {
        let address = format!("lean+{}", server.addresses()[0]);
        let client = Client::connect(&address, PROGRAM, 1).unwrap();
        let client = client.with_interface(Nothing.interface());
        client.with_timeout(Duration::from_secs(120))
    }

    fn start(client: &Client) -> PendingCall<()> {
        client.start_lean(1, |_| Ok(()), |_| Ok(())).unwrap()
    }

    /// Sends what is no packet of the exchange until there is no room for more.
    fn fill(client: &Client) {
        let state = client.channel().lock();
        let connection = &state.line.as_ref().unwrap().connection;
        while connection.try_send(&[0; 1400], 0).is_ok() {}
    }

    #[test]
    #[ignore = "not a test of its own: it wants a private network"]
    fn inside() {
        run("ip link set lo up");
        let builder = Server::builder().listen("udp://127.0.0.1:0").unwrap();
        let server = builder.service(Nothing).start().unwrap();
        let client = client(&server);
        start(&client).wait().unwrap();

        run(STOP);
        fill(&client);
        let batch = client.channel().batch();
        let first = start(&client);
        let backlog = client.channel().lock().flush_packets();
        let backlog = backlog.expect("there is no room");
        // Another call of the channel does not wait for room, nor does it go out first.
        drop(batch);
        let second = start(&client);
        assert!(client.channel().lock().has_packets());
        run(GO_ON);
        client.channel().send_backlog(backlog);
        let state = client.channel().lock();
        assert!(!state.has_packets() && !state.has_backlog());
        drop(state);
        first.wait().unwrap();
        second.wait().unwrap();

        // What finds no room for too long is lost, and nobody else waits for it.
        run(STOP);
        fill(&client);
        let lost = start(&client);
        let state = client.channel().lock();
        assert!(!state.has_packets() && !state.has_backlog());
        drop(state);
        run(GO_ON);
        lost.wait().unwrap();
        assert_eq!(client.channel().counters().connections, 1);
    }
}
