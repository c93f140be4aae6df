//! Fragments that are lost, each by name.

use tenon_proto::lean::ByteOrder;

use crate::support::{Pair, message};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A pair whose server has an answer of so many bytes to send.
fn answering(bytes: usize) -> Pair {
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"much"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    pair.answer(key, &vec![7; bytes]);
    pair
}

/// All that the server may send now.
fn burst(pair: &mut Pair) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| pair.poll_server()).collect()
}

/// Brings packets to the client, and what it says to the server.
fn bring(pair: &mut Pair, packets: &[Vec<u8>]) {
    for packet in packets {
        pair.bring_to_client(packet);
        while let Some(said) = pair.poll_client() {
            pair.bring_to_server(&said);
        }
    }
}

/// The server's time-out.
fn time_out(pair: &mut Pair) {
    pair.now = pair.server.poll_timeout().unwrap();
    pair.server.handle_timeout(pair.now);
}

#[test]
fn fragments_that_are_known_to_be_lost_outlast_a_time_out() {
    let mut pair = answering(200_000);
    let mut packets = burst(&mut pair);
    while packets.len() < 40 {
        bring(&mut pair, &packets);
        packets = burst(&mut pair);
    }
    // What is missing between those that arrive is found to be lost, and waits for room in a window that is
    // full of what is lost behind them.
    bring(&mut pair, &packets[..5]);
    bring(&mut pair, &packets[10..14]);
    assert_eq!(pair.poll_server(), None);
    time_out(&mut pair);
    pair.settle(|_| true);
    assert_eq!(pair.results.len(), 2, "one time-out is enough");
    assert_eq!(pair.server.under_way(), 0);
}
