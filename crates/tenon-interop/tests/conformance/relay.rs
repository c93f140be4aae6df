//! What stands between a client and a server, and does to the bytes what a test asks for.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::interloper::Interloper;
use crate::rows::fresh_path;
use crate::sockets::{self, PlainListener, PlainStream};

/// What a server that waits for more has to say to a damaged piece it says at once, or never.
const LISTEN: Duration = Duration::from_millis(2);

/// How often who waits for datagrams looks whether that is over.
const RECHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Which bytes are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    Server,
    Client,
}

/// What is done to what goes through: once, to what comes next that way. The connection is closed behind
/// it, as nobody can know what the ends make of it.
type Touch = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

#[derive(Clone, Default)]
pub struct Relay {
    touch: Arc<Mutex<Option<(Toward, usize, Touch)>>>,
    /// Pieces that were touched.
    pub touched: Arc<AtomicUsize>,
    files: Arc<Files>,
    /// What ends that which goes through.
    ends: Arc<Mutex<Vec<Ending>>>,
    interloper: Interloper,
}

type Ending = Box<dyn FnOnce() + Send>;

/// Socket files, which go away with the relay that a test has.
#[derive(Default)]
struct Files(Mutex<Vec<PathBuf>>);

impl Drop for Files {
    fn drop(&mut self) {
        for file in self.0.get_mut().unwrap() {
            std::fs::remove_file(file).unwrap();
        }
    }
}

fn again(stream: &PlainStream) -> PlainStream {
    stream.try_clone().unwrap()
}

fn end(stream: &PlainStream) {
    // It may have ended already.
    let _ = stream.shutdown(Shutdown::Both);
}

impl Relay {
    /// Stands in front of the server at `address`; returns where.
    pub fn before(&self, address: &str) -> String {
        // That of the threads, which live on.
        let relay = Self {
            files: Arc::default(),
            ..self.clone()
        };
        let (scheme, place) = address.split_once("://").unwrap();
        match scheme {
            "udp" => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                let here = format!("udp://{}", socket.local_addr().unwrap());
                relay.exchange(socket, place);
                here
            }
            "shm" => {
                let path = fresh_path();
                self.files.0.lock().unwrap().push(path.clone());
                self.interloper.before(address, path)
            }
            _ => {
                let (listener, here) = PlainListener::bind(scheme);
                self.files.0.lock().unwrap().extend(here.file);
                let server = address.to_owned();
                thread::spawn(move || {
                    while let Ok(client) = listener.accept() {
                        relay.join(client, sockets::connect(&server).ok());
                    }
                });
                here.address
            }
        }
    }

    /// Has the piece that comes behind `skipped` others that way touched.
    pub fn touch(
        &self,
        toward: Toward,
        skipped: usize,
        touch: impl FnOnce(&mut Vec<u8>) + Send + 'static,
    ) {
        *self.touch.lock().unwrap() = Some((toward, skipped, Box::new(touch)));
    }

    /// Ends whatever goes through at this moment as the death of the server's process does: its connections, or, where
    /// there are none, its socket.
    pub fn cut(&self) {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap());
        ends.into_iter().for_each(|end| end());
        self.interloper.cut();
    }

    fn join(&self, client: PlainStream, server: Option<PlainStream>) {
        let Some(server) = server else {
            return end(&client);
        };
        let ending = again(&client);
        let ends = &mut *self.ends.lock().unwrap();
        ends.push(Box::new(move || end(&ending)));
        for (toward, from, to) in [
            (Toward::Server, again(&client), again(&server)),
            (Toward::Client, server, client),
        ] {
            let relay = self.clone();
            thread::spawn(move || relay.pump(toward, from, to));
        }
    }

    fn pump(&self, toward: Toward, mut from: PlainStream, mut to: PlainStream) {
        let mut room = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut room) {
            let mut piece = room[..length].to_vec();
            let touched = self.pass(toward, &mut piece);
            if to.write_all(&piece).is_err() || (touched && toward == Toward::Client) {
                break;
            }
            if touched {
                // The server answers what it can, and the client sees that this is all.
                thread::sleep(LISTEN);
                break;
            }
        }
        end(&from);
        end(&to);
    }

    /// Touches a piece if it is its turn.
    fn pass(&self, toward: Toward, piece: &mut Vec<u8>) -> bool {
        let mut touch = self.touch.lock().unwrap();
        match &mut *touch {
            Some((way, skipped, _)) if *way == toward && *skipped > 0 => {
                *skipped -= 1;
                false
            }
            Some((way, ..)) if *way == toward => {
                let (_, _, touch) = touch.take().unwrap();
                touch(piece);
                self.touched.fetch_add(1, Ordering::SeqCst);
                true
            }
            _ => false,
        }
    }

    /// Hands datagrams on between one client and the server until it is cut.
    fn exchange(&self, socket: UdpSocket, server: &str) {
        let to_server = UdpSocket::bind("127.0.0.1:0").unwrap();
        to_server.connect(server).unwrap();
        for socket in [&socket, &to_server] {
            socket.set_read_timeout(Some(RECHECK_INTERVAL)).unwrap();
        }
        let client = Arc::new(Mutex::new(None));
        let is_cut = Arc::new(AtomicBool::new(false));
        let (back, from_server) = (socket.try_clone().unwrap(), to_server.try_clone().unwrap());
        let (relay, known, is_over) = (self.clone(), Arc::clone(&client), Arc::clone(&is_cut));
        let down = thread::spawn(move || {
            until_cut(&from_server, &is_over, |mut piece, _| {
                relay.pass(Toward::Client, &mut piece);
                if let Some(client) = *known.lock().unwrap() {
                    let _ = back.send_to(&piece, client);
                }
            });
        });
        let (relay, is_over) = (self.clone(), Arc::clone(&is_cut));
        let up = thread::spawn(move || {
            until_cut(&socket, &is_over, |mut piece, from| {
                *client.lock().unwrap() = Some(from);
                relay.pass(Toward::Server, &mut piece);
                let _ = to_server.send(&piece);
            });
        });
        self.ends.lock().unwrap().push(Box::new(move || {
            is_cut.store(true, Ordering::SeqCst);
            // The sockets are closed when both have ended.
            up.join().unwrap();
            down.join().unwrap();
        }));
    }
}

/// Does something with every datagram that comes.
fn until_cut(
    socket: &UdpSocket,
    is_cut: &AtomicBool,
    mut hand_on: impl FnMut(Vec<u8>, SocketAddr),
) {
    let mut room = vec![0; 65_536];
    while !is_cut.load(Ordering::SeqCst) {
        // Or it is time to look again, or a port was closed.
        if let Ok((length, from)) = socket.recv_from(&mut room) {
            hand_on(room[..length].to_vec(), from);
        }
    }
}
