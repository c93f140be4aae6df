//! Processes that decode values and encode them again, by routines that a generator of C wrote.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

/// C's routines for one interface, in a process that speaks the protocol of `xdrdump.c`.
#[derive(Debug)]
pub struct XdrdumpRecoder {
    process: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl XdrdumpRecoder {
    /// Starts the process.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(mut command: Command) -> XdrdumpRecoder {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        XdrdumpRecoder {
            input: process.stdin.take().map(BufWriter::new),
            output: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
        }
    }

    /// Has values of the type `name` recoded in the process's own encoding. All are sent while the answers are
    /// collected, so that no pipe fills up.
    ///
    /// # Panics
    /// If the process does not take them.
    pub fn recode(&mut self, name: &str, encodings: &[Vec<u8>]) -> Vec<Result<Vec<u8>, String>> {
        let mut input = self.input.take().expect("one batch at a time");
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let sent = encodings.iter().try_for_each(|bytes| {
                    write_sized(&mut input, name.as_bytes())?;
                    write_sized(&mut input, bytes)
                });
                sent.and_then(|()| input.flush()).map(|()| input)
            });
            let answers = encodings
                .iter()
                .map(|bytes| self.answer(bytes.len()))
                .collect();
            let input = writer.join().expect("the writer does not panic");
            self.input = Some(input.expect("the process takes its requests"));
            answers
        })
    }

    /// Reads one answer to an encoding of `length` bytes.
    fn answer(&mut self, length: usize) -> Result<Vec<u8>, String> {
        let mut number = || {
            let mut word = [0; 4];
            self.output
                .read_exact(&mut word)
                .map(|()| u32::from_be_bytes(word))
        };
        let mut numbers = || Ok::<_, io::Error>((number()?, number()?, number()?));
        let (status, consumed, answered) = numbers().map_err(|error| error.to_string())?;
        let mut bytes = vec![0; answered as usize];
        self.output
            .read_exact(&mut bytes)
            .map_err(|error| error.to_string())?;
        match status {
            0 if consumed as usize == length => Ok(bytes),
            0 => Err(format!("{consumed} bytes were read of {length}")),
            1 if bytes.is_empty() => Err(format!("does not decode, from byte {consumed} on")),
            1 => Err(format!(
                "{} at byte {consumed}",
                String::from_utf8_lossy(&bytes)
            )),
            2 => Err("does not encode".to_owned()),
            4 => Err("streams do not agree".to_owned()),
            _ => Err("does not know the type".to_owned()),
        }
    }
}

impl Drop for XdrdumpRecoder {
    fn drop(&mut self) {
        // It ends with its input; if it does not, it is not worth waiting for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write_sized(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u32).to_be_bytes())?;
    to.write_all(bytes)
}
