//! A client by hand that goes on sending while its server stops, and that a reset would cost its replies.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of the arguments of a call that is sent while the server stops.
const ARGUMENTS: usize = 1 << 10;

/// The number of the call that runs when the server stops.
const FIRST: u32 = 1;

pub struct StubbornClient {
    stream: TcpStream,
    of: [u32; 2],
}

impl StubbornClient {
    /// Connects to `address`, as in `127.0.0.1:7777`, to call this version of a program.
    pub fn connect(address: &str, of: [u32; 2]) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        Self { stream, of }
    }

    /// Makes the first call, which is answered with its arguments.
    pub fn call(&mut self, procedure: u32, arguments: &[u8]) {
        let call = self.record(FIRST, procedure, arguments);
        self.stream.write_all(&call).unwrap();
    }

    /// Sends calls until nothing finds room any more, and then the end of them.
    pub fn send_on(&mut self, procedure: u32) {
        let limit = Some(Duration::from_millis(100));
        self.stream.set_write_timeout(limit).unwrap();
        for number in FIRST + 1.. {
            let call = self.record(number, procedure, &[7; ARGUMENTS]);
            match self.stream.write_all(&call) {
                Ok(()) => {}
                Err(full) if full.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Receives replies from now on; returns all of them at their end, which is no reset.
    pub fn receive_all(&self) -> JoinHandle<Vec<u8>> {
        let mut stream = self.stream.try_clone().unwrap();
        thread::spawn(move || {
            let mut replies = Vec::new();
            stream.read_to_end(&mut replies).unwrap();
            replies
        })
    }

    fn record(&self, number: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let [program, version] = self.of;
        let mark = 1 << 31 | (40 + arguments.len() as u32);
        let words = [mark, number, 0, 2, program, version, procedure, 0, 0, 0, 0];
        let mut record: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        record.extend(arguments);
        record
    }
}

/// Asserts that among replies is that of the first call.
pub fn assert_first_is_answered(mut replies: &[u8], arguments: &[u8]) {
    while let Some((mark, rest)) = replies.split_first_chunk() {
        let length = (u32::from_be_bytes(*mark) & !(1 << 31)) as usize;
        let (reply, rest) = rest.split_at(length);
        if reply[..4] == FIRST.to_be_bytes() {
            assert_eq!(&reply[24..], arguments);
            return;
        }
        replies = rest;
    }
    panic!("it is not answered");
}
