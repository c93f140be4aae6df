//! A receiver that finds out which protocol its peer speaks.

use tenon_proto::connection::framing::{Frame, FramingError, Receiver};
use tenon_proto::lean::{ByteOrder, MESSAGE_MIN, Preamble};

use super::{fill, receive};
use crate::common::record;
use crate::framing::messages::call;

const LIMIT: usize = 1000;

#[test]
fn either_protocol_is_recognised_however_its_first_bytes_arrive() {
    let order = ByteOrder::NATIVE;
    let preamble = Preamble::client(0).encode();
    let lean = [&preamble[..], &call(order, 1, b"body")].concat();
    let onc = [record(b"first"), record(b"second")].concat();
    for step in [1, 3, 4, 5, 33, usize::MAX] {
        let mut receiver = Receiver::sniffing(LIMIT);
        assert!(receiver.lean_reader().is_none() && receiver.onc_reader().is_none());
        let mut found = 0;
        receive(&mut receiver, &lean, step, |frame| match (found, frame) {
            (0, Frame::Preamble(_)) => found += 1,
            (1, Frame::Message(message)) => {
                assert_eq!(message.parts().unwrap().body, b"body");
                found += 1;
            }
            (_, other) => panic!("{other:?}"),
        })
        .unwrap();
        assert!(found == 2 && receiver.lean_reader().is_some());

        let mut receiver = Receiver::sniffing(LIMIT);
        let mut found = Vec::new();
        receive(&mut receiver, &onc, step, |frame| match frame {
            Frame::Record(record) => found.push(record.to_vec()),
            other => panic!("{other:?}"),
        })
        .unwrap();
        assert_eq!(found, [&b"first"[..], b"second"]);
        assert!(receiver.onc_reader().is_some());
    }
}

#[test]
fn a_peer_of_neither_protocol_is_an_error() {
    let mut receiver = Receiver::sniffing(LIMIT);
    assert_eq!(fill(&mut receiver, b"GET"), Ok(3));
    assert!(receiver.next_frame().unwrap().is_none());
    let error = fill(&mut receiver, b" / HTTP/1.1").unwrap_err();
    assert!(matches!(error, FramingError::UnknownPeer(_)));
    assert!(error.to_string().ends_with("it looks like HTTP"), "{error}");
}

#[test]
fn a_record_over_the_limit_is_no_record() {
    let mut receiver = Receiver::sniffing(LIMIT);
    let error = fill(&mut receiver, &record(&[0; LIMIT + 1])).unwrap_err();
    assert!(matches!(error, FramingError::UnknownPeer(_)), "{error}");
}

/// Every lean end accepts so many bytes, whatever its limit for records is.
#[test]
fn a_lean_peer_may_send_64_kib_however_low_the_limit() {
    let body = vec![7; MESSAGE_MIN as usize - 16];
    let preamble = Preamble::client(0).encode();
    let message = call(ByteOrder::NATIVE, 1, &body);
    assert_eq!(message.len(), MESSAGE_MIN as usize);
    let mut receiver = Receiver::sniffing(LIMIT);
    let mut found = 0;
    let stream = [&preamble[..], &message].concat();
    receive(&mut receiver, &stream, 9999, |frame| {
        if let Frame::Message(message) = frame {
            assert_eq!(message.parts().unwrap().body, body);
            found += 1;
        }
    })
    .unwrap();
    assert_eq!(found, 1);
}
