//! A contestant: a server and its clients, each a process pinned to a core. All contestants of a row
//! are alive at once and take turns; those that wait are asleep, or stopped if they would spin.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How long a process may say nothing, beyond the length of a round.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What the clients report of one round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Calls made by all of them, or bytes or items of a stream.
    pub calls: u64,
    /// How long that took.
    pub elapsed: Duration,
    /// The median of their times, in microseconds.
    pub median_us: f64,
    /// The 99th percentile, in microseconds.
    pub high_us: f64,
}

impl Round {
    /// Calls, bytes or items per second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }

    /// One process' report: calls, nanoseconds that they took, median and percentile.
    fn parse(line: &str) -> Result<Round> {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let [calls, elapsed, median, high] = numbers[..] else {
            return Err(format!("a client said {line}").into());
        };
        Ok(Round {
            calls,
            elapsed: Duration::from_nanos(elapsed),
            median_us: median as f64 / 1e3,
            high_us: high as f64 / 1e3,
        })
    }

    /// This round and what another client did meanwhile; of their times the longer ones.
    fn beside(self, other: Round) -> Round {
        Round {
            calls: self.calls + other.calls,
            elapsed: self.elapsed.max(other.elapsed),
            median_us: self.median_us.max(other.median_us),
            high_us: self.high_us.max(other.high_us),
        }
    }
}

/// How a contestant is started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What starts the server: it prints its address and `ready`.
    pub server: Vec<String>,
    /// Where it runs.
    pub server_core: usize,
    /// What starts a client, but for the address behind it.
    pub client: Vec<String>,
    /// Where they run.
    pub client_core: usize,
    /// How many there are.
    pub clients: usize,
    /// Whether the server spins when it has nothing to do, and so must be stopped.
    pub spins: bool,
}

/// A server and the clients that measure it.
#[derive(Debug)]
pub struct Contestant {
    clients: Vec<Pinned>,
    server: Pinned,
    spins: bool,
}

impl Contestant {
    /// Starts the server and the clients, which are told the address that `via` makes of the
    /// server's.
    ///
    /// # Errors
    /// One of them does not get ready.
    pub fn start(plan: &Plan, via: impl FnOnce(String) -> Result<String>) -> Result<Contestant> {
        let (server, mut addresses) = Pinned::start(&plan.server, plan.server_core)?;
        let (Some(address), true) = (addresses.pop(), addresses.is_empty()) else {
            return Err("a server has one address".into());
        };
        let mut client = plan.client.clone();
        client.extend(via(address)?.split(' ').map(str::to_owned));
        let clients = (0..plan.clients)
            .map(|_| Ok(Pinned::start(&client, plan.client_core)?.0))
            .collect::<Result<_>>()?;
        let contestant = Contestant {
            clients,
            server,
            spins: plan.spins,
        };
        contestant.signal(Signal::STOP)?;
        Ok(contestant)
    }

    /// Lets the clients call for `length`.
    ///
    /// # Errors
    /// A call failed or was answered wrongly, and the client ended.
    pub fn round(&mut self, length: Duration) -> Result<Round> {
        self.turn(&length.as_millis().to_string(), length + SILENCE_MAX)
    }

    /// Lets the clients have a stream each, of so many bytes or items.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn transfer(&mut self, amount: u64) -> Result<Round> {
        self.turn(&amount.to_string(), SILENCE_MAX)
    }

    /// Tells the clients what to do, and waits until they have done it.
    fn turn(&mut self, told: &str, limit: Duration) -> Result<Round> {
        self.signal(Signal::CONT)?;
        for client in &mut self.clients {
            client.tell(told)?;
        }
        let mut all: Option<Round> = None;
        for client in &mut self.clients {
            let one = Round::parse(&client.line(limit)?)?;
            all = Some(all.map_or(one, |others| others.beside(one)));
        }
        self.signal(Signal::STOP)?;
        all.ok_or_else(|| "no clients".into())
    }

    /// To a server that would disturb the others.
    fn signal(&self, signal: Signal) -> Result<()> {
        if self.spins {
            let pid = i32::try_from(self.server.child.id())?;
            kill_process(Pid::from_raw(pid).ok_or("no process")?, signal)?;
        }
        Ok(())
    }
}

/// A process on one core, killed when dropped; and by the kernel when the benchmark is, even while it is stopped.
#[derive(Debug)]
pub struct Pinned {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pinned {
    /// Starts it and waits until it prints `ready`; returns what it printed before.
    ///
    /// # Errors
    /// It cannot be started, or ends.
    pub fn start(command: &[String], core: usize) -> Result<(Pinned, Vec<String>)> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "taskset", "-c", &core.to_string()])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.join(" ")))?;
        let mut process = Pinned {
            name: command.join(" "),
            input: child.stdin.take().ok_or("no input")?,
            output: BufReader::new(child.stdout.take().ok_or("no output")?),
            child,
        };
        let mut lines = Vec::new();
        loop {
            match process.line(SILENCE_MAX)? {
                line if line == "ready" => return Ok((process, lines)),
                line => lines.push(line),
            }
        }
    }

    /// Tells it something, and waits for the line that it answers.
    ///
    /// # Errors
    /// It has ended, or says nothing for a minute.
    pub fn ask(&mut self, told: &str) -> Result<String> {
        self.tell(told)?;
        self.line(SILENCE_MAX)
    }

    fn tell(&mut self, told: &str) -> Result<()> {
        let told = writeln!(self.input, "{told}");
        Ok(told.map_err(|error| format!("{}: {error}", self.name))?)
    }

    /// The next line that it prints within `limit`.
    fn line(&mut self, limit: Duration) -> Result<String> {
        if self.output.buffer().is_empty() && !self.has_output_within(limit)? {
            let seconds = limit.as_secs();
            return Err(format!("{} has said nothing for {seconds} s", self.name).into());
        }
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(format!("{} ended: {}", self.name, self.child.wait()?).into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn has_output_within(&self, limit: Duration) -> Result<bool> {
        let limit = Timespec::try_from(limit)?;
        let output = PollFd::new(self.output.get_ref(), PollFlags::IN);
        Ok(poll(&mut [output], Some(&limit))? > 0)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
