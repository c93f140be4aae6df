//! A contestant: a server and a client process, each pinned to a core. All contestants of a row
//! are alive at once and take turns; those that wait are asleep.

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What a client reports of one round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Calls made.
    pub calls: u64,
    /// The median of their times, in microseconds.
    pub median_us: f64,
    /// The 99th percentile, in microseconds.
    pub high_us: f64,
}

/// A server and a client that measures it.
#[derive(Debug)]
pub struct Contestant {
    client: Pinned,
    _server: Pinned,
}

impl Contestant {
    /// Starts the server, and the client with the server's address behind its arguments.
    ///
    /// # Errors
    /// One of them does not get ready.
    pub fn start(
        server: (&[String], usize),
        client: (&[String], usize),
    ) -> Result<Contestant, Box<dyn Error>> {
        let (server, addresses) = Pinned::start(server.0, server.1)?;
        let [address] = &addresses[..] else {
            return Err(format!("a server with one address, not {addresses:?}").into());
        };
        let mut arguments = client.0.to_vec();
        arguments.extend(address.split(' ').map(str::to_owned));
        let (client, _) = Pinned::start(&arguments, client.1)?;
        Ok(Contestant {
            client,
            _server: server,
        })
    }

    /// Lets the client call for `length`.
    ///
    /// # Errors
    /// A call failed or was answered wrongly, and the client ended.
    pub fn round(&mut self, length: Duration) -> Result<Round, Box<dyn Error>> {
        writeln!(self.client.input, "{}", length.as_millis())?;
        let line = self.client.line()?;
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [calls, median, high] = numbers[..] else {
            return Err(format!("a client said {line}").into());
        };
        Ok(Round {
            calls,
            median_us: median as f64 / 1e3,
            high_us: high as f64 / 1e3,
        })
    }
}

/// A process on one core, killed when dropped.
#[derive(Debug)]
struct Pinned {
    name: String,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Pinned {
    /// Starts it and waits until it prints `ready`; returns what it printed before.
    fn start(command: &[String], core: usize) -> Result<(Pinned, Vec<String>), Box<dyn Error>> {
        let mut child = Command::new("taskset")
            .args(["-c", &core.to_string()])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut process = Pinned {
            name: command.join(" "),
            input: child.stdin.take().ok_or("no input")?,
            output: BufReader::new(child.stdout.take().ok_or("no output")?).lines(),
            child,
        };
        let mut lines = Vec::new();
        loop {
            match process.line()? {
                line if line == "ready" => return Ok((process, lines)),
                line => lines.push(line),
            }
        }
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        match self.output.next() {
            Some(line) => Ok(line?),
            None => Err(format!("{} ended", self.name).into()),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
