//! The task behind a channel: it receives, sends what callers have left, minds the time and connects
//! again.
//!
//! There is one per channel, whatever the number of calls, and no task or timer per call. Why not let
//! the callers read, as those of a synchronous channel do: a future that nobody polls, one that lost a
//! `select!` for example, cannot be made to do anything. If such a one were the reader, or had the
//! turn to send, all others would wait for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tenon::Address;
use tenon::runtime::{Broken, Inbox, Socket};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Sleep, sleep_until};

use super::state::{Phase, Trouble};
use super::{Line, Shared};
use crate::watch::{Watched, is_for_now};

/// Receives at a time; then others have their turn.
const RECEIVES_MAX: usize = 16;

/// The way to the peer.
enum Way {
    /// There is none, and nobody needs one.
    Down,
    /// The peer is spared for a while.
    Pausing(Pin<Box<Sleep>>),
    Connecting(JoinHandle<io::Result<Socket>>),
    Up(Line),
}

/// The task behind a channel.
pub(super) struct Driver {
    shared: Arc<Shared>,
    way: Way,
    inbox: Inbox,
    alarm: Pin<Box<Sleep>>,
    /// When the alarm goes off, if it does.
    is_set_for: Option<Instant>,
    /// Looks after what the system reports of packets.
    errors: Option<AbortHandle>,
    /// Owners of calls, to be woken. Its storage and that of the state are used by turns.
    woken: Vec<Waker>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, line: Line) -> Self {
        let inbox = Inbox::new(&shared.address, &shared.options);
        Self {
            errors: watch_errors(&shared, &line),
            shared,
            way: Way::Up(line),
            inbox,
            alarm: Box::pin(sleep_until(tokio::time::Instant::now())),
            is_set_for: None,
            woken: Vec::new(),
        }
    }

    /// Drives the channel until it is closed.
    pub(super) async fn run(mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.lock().driver = Some(cx.waker().clone());
        loop {
            let step = self.step(cx);
            self.wake();
            match step {
                Step::Again => {}
                Step::Wait => return Poll::Pending,
                Step::End => return Poll::Ready(()),
            }
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        let step = match &self.way {
            Way::Up(_) => self.attend(cx),
            Way::Down | Way::Pausing(_) | Way::Connecting(_) => self.connect(cx),
        };
        match (step, self.mind_time(cx)) {
            (Step::End, _) => Step::End,
            (Step::Wait, Ok(false)) => Step::Wait,
            (Step::Wait | Step::Again, Ok(_)) => Step::Again,
            (Step::Wait | Step::Again, Err(broken)) => self.lose(&Trouble::Broken(broken)),
        }
    }

    /// Wakes the owners of calls that are over.
    fn wake(&mut self) {
        std::mem::swap(&mut self.woken, &mut self.shared.lock().state.woken);
        self.woken.drain(..).for_each(Waker::wake);
    }

    /// Receives and sends.
    fn attend(&mut self, cx: &mut Context<'_>) -> Step {
        let Way::Up(line) = &self.way else {
            return Step::Again;
        };
        let line = Arc::clone(line);
        let attended = self
            .receive(&line, cx)
            .map_err(Trouble::from)
            .and_then(|()| self.send(&line, cx));
        match attended {
            Ok(()) => self.say_goodbye(&line),
            Err(trouble) => self.lose(&trouble),
        }
    }

    fn receive(&mut self, line: &Line, cx: &mut Context<'_>) -> Result<(), Broken> {
        if self.shared.lock().state.has_rested {
            self.look_after_rest(line)?;
        }
        for _ in 0..RECEIVES_MAX {
            let Poll::Ready(ready) = line.poll_read_ready(cx) else {
                return Ok(());
            };
            let mut ready = ready?;
            match line.get_ref().try_receive(&mut self.inbox) {
                Ok(may_have_more) => {
                    if !may_have_more {
                        ready.clear_ready();
                    }
                    let mut guarded = self.shared.lock();
                    guarded.state.take_in(&mut self.inbox)?;
                    guarded.state.expect_train(line.get_ref());
                }
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                Err(error) => self.failed(error)?,
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// The packet exchange outlives its server. What was sent to a closed port ends calls, not the line.
    #[cold]
    fn failed(&self, error: io::Error) -> Result<(), Broken> {
        let mut guarded = self.shared.lock();
        match guarded.state.is_exchange() && error.kind() == io::ErrorKind::ConnectionRefused {
            true => guarded.state.refused(error),
            false => return Err(error.into()),
        }
        Ok(())
    }

    /// Finds out whether the peer closed the connection while nobody used it.
    fn look_after_rest(&mut self, line: &Line) -> Result<(), Broken> {
        line.get_ref().refresh();
        let received = line.get_ref().try_receive(&mut self.inbox);
        let mut guarded = self.shared.lock();
        guarded.state.has_rested = false;
        match received {
            Ok(_) => guarded.state.take_in(&mut self.inbox),
            Err(error) if is_for_now(&error) => Ok(()),
            Err(error) => {
                drop(guarded);
                self.failed(error)
            }
        }
    }

    fn send(&mut self, line: &Line, cx: &mut Context<'_>) -> Result<(), Trouble> {
        loop {
            let mut guarded = self.shared.lock();
            let state = &mut guarded.state;
            state.start_queue()?;
            if !state.has_transmit() {
                return Ok(());
            }
            let Poll::Ready(ready) = line.poll_write_ready(cx) else {
                return Ok(());
            };
            let mut ready = ready.map_err(Broken::from)?;
            match state.send(line.get_ref()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Err(Broken::from(error).into()),
            }
        }
    }

    /// Closes the connection if it is no longer needed.
    fn say_goodbye(&mut self, line: &Line) -> Step {
        let mut guarded = self.shared.lock();
        let state = &mut guarded.state;
        if state.phase == Phase::Open || !state.is_done() {
            return Step::Wait;
        }
        state.engine.goodbye();
        // A peer that has no room for it sees that the connection ends.
        let _ = state.send(line.get_ref());
        line.get_ref().shutdown();
        self.way = Way::Down;
        Step::End
    }

    fn lose(&mut self, trouble: &Trouble) -> Step {
        if let Way::Up(line) = std::mem::replace(&mut self.way, Way::Down) {
            line.get_ref().shutdown();
        }
        self.errors.take().inspect(AbortHandle::abort);
        let mut guarded = self.shared.lock();
        guarded.line = None;
        match trouble {
            Trouble::Broken(broken) => guarded.state.lose(broken),
            Trouble::UsedUp => guarded.state.use_up(),
        }
        Step::Again
    }

    /// Makes one attempt to connect after the other for as long as a call waits for it.
    fn connect(&mut self, cx: &mut Context<'_>) -> Step {
        let opened = match &mut self.way {
            Way::Down | Way::Up(_) => return self.begin_to_connect(),
            Way::Pausing(pause) => match pause.as_mut().poll_elapsed(cx) {
                Poll::Ready(()) => return self.try_to_connect(),
                Poll::Pending => return Step::Wait,
            },
            Way::Connecting(attempt) => match Pin::new(attempt).poll(cx) {
                Poll::Ready(opened) => opened.unwrap_or_else(|gone| Err(io::Error::other(gone))),
                Poll::Pending => return Step::Wait,
            },
        };
        let line = opened.and_then(line_over);
        let mut guarded = self.shared.lock();
        guarded.state.back_off.attempt(Instant::now());
        self.way = match line {
            Ok(line) => {
                tracing::debug!(address = %self.shared.address, "connected again");
                self.inbox = Inbox::new(&self.shared.address, &self.shared.options);
                guarded.connected(&line);
                drop(guarded);
                self.errors = watch_errors(&self.shared, &line);
                Way::Up(line)
            }
            Err(error) => {
                guarded.state.not_connected(error);
                Way::Down
            }
        };
        Step::Again
    }

    fn begin_to_connect(&mut self) -> Step {
        let guarded = self.shared.lock();
        let state = &guarded.state;
        if state.queue.is_empty() {
            return match state.phase {
                Phase::Open => Step::Wait,
                Phase::Closing | Phase::Closed => Step::End,
            };
        }
        let now = Instant::now();
        let pause = state.back_off.left(now);
        drop(guarded);
        match pause {
            Duration::ZERO => self.try_to_connect(),
            pause => {
                self.way = Way::Pausing(Box::pin(sleep_until((now + pause).into())));
                Step::Again
            }
        }
    }

    fn try_to_connect(&mut self) -> Step {
        let deadline = self.shared.lock().state.last_deadline();
        self.way = match deadline {
            Some(deadline) => Way::Connecting(open(&self.shared.address, deadline)),
            None => Way::Down,
        };
        Step::Again
    }

    /// Sets the alarm; says whether it went off.
    fn mind_time(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken> {
        let alarm = self.shared.lock().state.alarm;
        if alarm != self.is_set_for {
            self.is_set_for = alarm;
            if let Some(at) = alarm {
                self.alarm.as_mut().reset(at.into());
            }
        }
        if alarm.is_none() || self.alarm.as_mut().poll_elapsed(cx).is_pending() {
            return Ok(false);
        }
        self.is_set_for = None;
        let socket = match &self.way {
            Way::Up(line) => Some(line.get_ref()),
            Way::Down | Way::Pausing(_) | Way::Connecting(_) => None,
        };
        let mut guarded = self.shared.lock();
        guarded.state.look_at_time(Instant::now(), socket)?;
        Ok(true)
    }
}

impl Drop for Driver {
    /// Nobody waits for a driver that is gone, because the run time has ended for example.
    fn drop(&mut self) {
        self.errors.take().inspect(AbortHandle::abort);
        let mut guarded = self.shared.lock();
        guarded.line = None;
        guarded.state.end();
        let closers = std::mem::take(&mut guarded.closers);
        drop(guarded);
        self.wake();
        closers.into_iter().for_each(Waker::wake);
    }
}

/// What the driver does next.
enum Step {
    Again,
    Wait,
    End,
}

/// Connects on a thread that may wait, as the names of hosts are resolved there, too.
pub(super) fn open(address: &Address, deadline: Instant) -> JoinHandle<io::Result<Socket>> {
    let address = address.clone();
    tokio::task::spawn_blocking(move || Socket::connect(&address, deadline))
}

/// Has a task call the driver when the system reports what has become of packets, if calls go by the packet
/// exchange: that nobody listens where they went.
fn watch_errors(shared: &Arc<Shared>, line: &Line) -> Option<AbortHandle> {
    if !shared.lock().state.is_exchange() {
        return None;
    }
    let (shared, line) = (Arc::clone(shared), Arc::clone(line));
    let task = tokio::spawn(async move {
        while line.next_error().await.is_ok() {
            let mut guarded = shared.lock();
            guarded.state.has_rested = true;
            let driver = guarded.driver.take();
            drop(guarded);
            driver.into_iter().for_each(Waker::wake);
        }
    });
    Some(task.abort_handle())
}

/// Registers a socket with the run time.
pub(super) fn line_over(socket: Socket) -> io::Result<Line> {
    Watched::new(socket).map(Arc::new)
}

/// Polling a sleep.
trait PollElapsed {
    fn poll_elapsed(self, cx: &mut Context<'_>) -> Poll<()>;
}

impl PollElapsed for Pin<&mut Sleep> {
    fn poll_elapsed(self, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, cx)
    }
}
