//! Times what the headers of IP and UDP cost a packet beside that of Ethernet: to write them behind a prototype, and to
//! check them.
//!
//!     cargo run --release -p tenon-rpc-xdp --example header_cost

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use tenon_xdp::{EthernetEndpoint, FrameHeaderTemplate, HEADERS, MacAddress, UdpChecksum, read};

/// Bytes of the header of Ethernet.
const ETHERNET: usize = 14;

/// Bytes of data: a reply and a call of procedure 0 by ONC RPC, and as many as a frame carries.
const SIZES: [usize; 3] = [24, 40, 1472];

const ROUNDS: usize = 101;
const TIMES: u32 = 20_000;

fn end(number: u8) -> EthernetEndpoint {
    EthernetEndpoint {
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        at: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, number), 4000),
    }
}

/// Returns the nanoseconds of `work`, the median of many turns.
fn time(mut work: impl FnMut()) -> f64 {
    let mut turns: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            (0..TIMES).for_each(|_| work());
            begin.elapsed().as_nanos() as f64 / f64::from(TIMES)
        })
        .collect();
    turns.sort_unstable_by(f64::total_cmp);
    turns[ROUNDS / 2]
}

/// Writes a frame that has the header of Ethernet alone.
fn write_ethernet(prototype: &[u8; ETHERNET], data: &[u8], room: &mut [u8]) {
    room[..ETHERNET].copy_from_slice(prototype);
    room[ETHERNET..ETHERNET + data.len()].copy_from_slice(data);
}

/// Returns the data of a frame that has the header of Ethernet alone, if it is for this end.
fn read_ethernet<'f>(frame: &'f [u8], to: &[u8; 6]) -> Option<&'f [u8]> {
    let (header, data) = frame.split_first_chunk::<ETHERNET>()?;
    (header[..6] == to[..] && header[12..] == [0x88, 0xb5]).then_some(data)
}

fn main() {
    let (here, there) = (end(1), end(2));
    let template = FrameHeaderTemplate::new(here).toward(there);
    let ethernet: [u8; ETHERNET] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    println!("bytes  write, ns: all  Ethernet   check, ns: all  Ethernet   IP and UDP, ns");
    for size in SIZES {
        let data = vec![7; size];
        let mut room = vec![0; HEADERS + size];
        let write = time(|| {
            let written = template.write(black_box(&data), black_box(&mut room));
            black_box(written);
        });
        let check = time(|| {
            let found = read(black_box(&room), there, UdpChecksum::Required);
            black_box(found.is_ok());
        });
        let mut plain = vec![0; ETHERNET + size];
        let write_plain = time(|| {
            write_ethernet(&ethernet, black_box(&data), black_box(&mut plain));
        });
        let check_plain = time(|| {
            black_box(read_ethernet(black_box(&plain), &there.mac.0));
        });
        let cost = write - write_plain + check - check_plain;
        println!(
            "{size:>5}  {write:>14.1}  {write_plain:>8.1}  {check:>15.1}  {check_plain:>8.1}  {cost:>15.1}"
        );
    }
}
