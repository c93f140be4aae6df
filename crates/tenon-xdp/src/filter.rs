//! The program that the kernel runs on every frame that comes in at an interface, before anything else: plain
//! UDP for a port of ours goes to its socket, and all else where it would go without us.
//!
//! It is written here instruction by instruction (RFC 9669): 59 of them, that need no compiler for eBPF where
//! Tenon is built and no reader of object files where it runs. The kernel verifies it when it is loaded, and
//! the tests have the kernel run it.

use std::net::SocketAddrV4;

use crate::headers::{HEADERS, PROTOCOL_UDP};
use crate::memory::FRAME_CONTENT;

/// One instruction, encoded.
pub(crate) type Instruction = u64;

/// Value that the program returns for a frame that it leaves to the kernel.
pub(crate) const PASS: i32 = 2;

/// Bytes of what a socket is found by.
pub(crate) const KEY: usize = 8;

/// Returns the key by which a socket is found: where a datagram goes, and the queue that it comes through. A socket
/// takes frames of its own queue only.
pub(crate) fn key(at: SocketAddrV4, queue: u16) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..4].copy_from_slice(&at.ip().octets());
    key[4..6].copy_from_slice(&at.port().to_be_bytes());
    key[6..].copy_from_slice(&queue.to_ne_bytes());
    key
}

// Classes, sizes and operations of instructions.
const LOAD_U8: u8 = 0x71;
const LOAD_U16: u8 = 0x69;
const LOAD_U32: u8 = 0x61;
const STORE_U16: u8 = 0x6b;
const STORE_U32: u8 = 0x63;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD_NUMBER: u8 = 0x07;
const ADD: u8 = 0x0f;
const AND_NUMBER: u8 = 0x57;
const SHIFT_RIGHT_NUMBER: u8 = 0x77;
const JUMP_IF_EQUAL: u8 = 0x1d;
const JUMP_IF_GREATER: u8 = 0x2d;
const JUMP_UNLESS_NUMBER: u8 = 0x55;
const JUMP_IF_NUMBER: u8 = 0x15;
const LOAD_WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// As the source of [`LOAD_WIDE`]: the number is the descriptor of a map.
const A_MAP: u8 = 1;

const LOOK_UP: i32 = 1;
const REDIRECT_BY_MAP: i32 = 51;

/// Fields of what the program is given.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// The top of the program's stack.
const STACK: u8 = 10;

/// Returns the program, with the descriptors of its maps: sockets by their [keys](key), and the sockets.
pub(crate) fn program(places: i32, sockets: i32) -> Vec<Instruction> {
    let mut program = FilterAssembler::default();
    // The headers are there as a whole.
    program.op(MOVE, 6, 1, 0, 0);
    program.op(LOAD_U32, 2, 1, DATA, 0);
    program.op(LOAD_U32, 3, 1, DATA_END, 0);
    program.op(MOVE, 4, 2, 0, 0);
    program.op(ADD_NUMBER, 4, 0, 0, HEADERS as i32);
    program.pass(JUMP_IF_GREATER, 4, 3, 0);
    // The whole fits into a frame of ours.
    program.op(MOVE, 4, 2, 0, 0);
    program.op(ADD_NUMBER, 4, 0, 0, FRAME_CONTENT as i32);
    program.pass(JUMP_IF_GREATER, 3, 4, 0);
    // They are those of IPv4, without options, of a whole datagram, of UDP.
    program.op(LOAD_U16, 4, 2, 12, 0);
    program.pass(JUMP_UNLESS_NUMBER, 4, 0, on_wire(0x0800));
    program.op(LOAD_U8, 4, 2, 14, 0);
    program.pass(JUMP_UNLESS_NUMBER, 4, 0, 0x45);
    program.op(LOAD_U16, 4, 2, 20, 0);
    program.op(AND_NUMBER, 4, 0, 0, on_wire(0x3fff));
    program.pass(JUMP_UNLESS_NUMBER, 4, 0, 0);
    program.op(LOAD_U8, 4, 2, 23, 0);
    program.pass(JUMP_UNLESS_NUMBER, 4, 0, i32::from(PROTOCOL_UDP));
    program.pass_if_sum_is_left_to_hardware();
    // The key: address, port, queue.
    program.op(LOAD_U32, 4, 2, 30, 0);
    program.op(STORE_U32, STACK, 4, -8, 0);
    program.op(LOAD_U16, 4, 2, 36, 0);
    program.op(STORE_U16, STACK, 4, -4, 0);
    program.op(LOAD_U32, 4, 6, QUEUE, 0);
    program.op(STORE_U16, STACK, 4, -2, 0);
    // The number of the socket.
    program.map(1, places);
    program.op(MOVE, 2, STACK, 0, 0);
    program.op(ADD_NUMBER, 2, 0, 0, -8);
    program.op(CALL, 0, 0, 0, LOOK_UP);
    program.pass(JUMP_IF_NUMBER, 0, 0, 0);
    program.op(LOAD_U32, 2, 0, 0, 0);
    // The socket; the frame passes if it is gone.
    program.map(1, sockets);
    program.op(MOVE_NUMBER, 3, 0, 0, PASS);
    program.op(CALL, 0, 0, 0, REDIRECT_BY_MAP);
    program.op(EXIT, 0, 0, 0, 0);
    program.end()
}

/// Returns a word as it lies in a frame, as a load of this processor sees it.
fn on_wire(word: u16) -> i32 {
    i32::from(word.to_be())
}

#[derive(Default)]
struct FilterAssembler {
    code: Vec<Instruction>,
    /// Jumps to the end, where frames are let pass.
    jumps: Vec<usize>,
}

impl FilterAssembler {
    fn op(&mut self, operation: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.code.push(encode(operation, to, from, offset, number));
    }

    /// Leaves the frame to the kernel if the comparison holds.
    fn pass(&mut self, comparison: u8, one: u8, other: u8, number: i32) {
        self.jumps.push(self.code.len());
        self.op(comparison, one, other, 0, number);
    }

    /// Leaves a frame to the kernel if its sum of UDP is no more than that of what stands in front of UDP: another
    /// network of this host sent it, and it may be several datagrams that hardware was to part and to sum.
    fn pass_if_sum_is_left_to_hardware(&mut self) {
        self.op(MOVE_NUMBER, 4, 0, 0, on_wire(u16::from(PROTOCOL_UDP)));
        // Both addresses, and the length.
        for at in [26, 28, 30, 32, 38] {
            self.op(LOAD_U16, 5, 2, at, 0);
            self.op(ADD, 4, 5, 0, 0);
        }
        for _carry in 0..2 {
            self.op(MOVE, 5, 4, 0, 0);
            self.op(SHIFT_RIGHT_NUMBER, 5, 0, 0, 16);
            self.op(AND_NUMBER, 4, 0, 0, 0xffff);
            self.op(ADD, 4, 5, 0, 0);
        }
        self.op(LOAD_U16, 5, 2, 40, 0);
        self.pass(JUMP_IF_EQUAL, 4, 5, 0);
    }

    fn map(&mut self, to: u8, descriptor: i32) {
        self.op(LOAD_WIDE, to, A_MAP, 0, descriptor);
        self.op(0, 0, 0, 0, 0);
    }

    fn end(mut self) -> Vec<Instruction> {
        let end = self.code.len();
        for at in self.jumps {
            // Behind the jump itself.
            let offset = (end - at - 1) as u16;
            let [operation, registers, _, _, number @ ..] = self.code[at].to_ne_bytes();
            let [low, high] = offset.to_ne_bytes();
            let [a, b, c, d] = number;
            let jump = [operation, registers, low, high, a, b, c, d];
            self.code[at] = Instruction::from_ne_bytes(jump);
        }
        self.code.push(encode(MOVE_NUMBER, 0, 0, 0, PASS));
        self.code.push(encode(EXIT, 0, 0, 0, 0));
        self.code
    }
}

fn encode(operation: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    let registers = match cfg!(target_endian = "little") {
        true => from << 4 | to,
        false => to << 4 | from,
    };
    let [low, high] = offset.to_ne_bytes();
    let [a, b, c, d] = number.to_ne_bytes();
    Instruction::from_ne_bytes([operation, registers, low, high, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::net::Ipv4Addr;

    use super::*;
    use crate::bpf::{BpfMap, BpfProgram, MapKind};
    use crate::headers::{EthernetEndpoint, FrameHeaderTemplate, MacAddress};
    use crate::interface::SOCKETS_MAX;
    use crate::privileges::check_privileges;

    const HERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 4000);

    /// The program, to be run on frames by the kernel. It knows `HERE` and has no socket there.
    struct FilterInKernel {
        program: BpfProgram,
        _maps: [BpfMap; 2],
    }

    impl FilterInKernel {
        fn new(queue: u16) -> Option<Self> {
            if let Err(error) = check_privileges() {
                let _ = writeln!(
                    io::stderr(),
                    "\nSKIPPED: the filter in the kernel: {error}\n"
                );
                return None;
            }
            let places = BpfMap::new(MapKind::Hash, KEY, SOCKETS_MAX).unwrap();
            let sockets = BpfMap::new(MapKind::Sockets, 4, SOCKETS_MAX).unwrap();
            places.insert(&key(HERE, queue), 3).unwrap();
            let code = program(places.descriptor(), sockets.descriptor());
            let program = BpfProgram::load(&code).unwrap();
            Some(Self {
                program,
                _maps: [places, sockets],
            })
        }
    }

    fn frame(to: SocketAddrV4) -> Vec<u8> {
        let from = EthernetEndpoint {
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            at: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 5000),
        };
        let to = EthernetEndpoint {
            mac: MacAddress([2, 0, 0, 0, 0, 2]),
            at: to,
        };
        let mut frame = vec![0; 64];
        FrameHeaderTemplate::new(from)
            .toward(to)
            .write(&[7; 22], &mut frame)
            .unwrap();
        frame
    }

    #[test]
    fn it_is_as_long_as_is_said() {
        assert_eq!(program(3, 4).len(), 59);
    }

    #[test]
    fn the_kernel_takes_it_and_lets_pass_what_is_not_ours() {
        let Some(kernel) = FilterInKernel::new(0) else {
            return;
        };
        let ours = frame(HERE);
        let other_port = frame(SocketAddrV4::new(*HERE.ip(), 4001));
        let other_host = frame(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 3), 4000));
        let with = |at: usize, is: u8| {
            let mut frame = ours.clone();
            frame[at] = is;
            frame
        };
        for (what, frame) in [
            // There is no socket in the map.
            ("ours without a socket", ours.clone()),
            ("another port", other_port),
            ("another host", other_host),
            ("ARP", with(13, 0x06)),
            ("IPv6", with(12, 0x86)),
            ("options", with(14, 0x46)),
            ("a first fragment", with(20, 0x20)),
            ("a later fragment", with(21, 1)),
            ("TCP", with(23, 6)),
            ("ICMP", with(23, 1)),
            ("a short frame", ours[..41].to_vec()),
            ("a long frame", [ours.as_slice(), &[0; 2000]].concat()),
        ] {
            assert_eq!(kernel.program.run(&frame).unwrap(), PASS as u32, "{what}");
        }
    }
}
