//! Which protocol the first bytes of a connection are taken for, beside the readers of both: who is
//! sent to one of them was never legal for the other, and more bytes never change an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_proto::connection::framing::{Frame, MessageReader, RecordReader};
use tenon_proto::sniff::{RECORD_MAX, Sniffed, sniff};

fuzz_target!(|data: &[u8]| {
    let [limit, bytes @ ..] = data else {
        return;
    };
    let record_max = (1_usize << (limit % 40)) - 1;
    let sniffed = sniff(bytes, record_max);
    for end in 0..bytes.len() {
        match sniff(&bytes[..end], record_max) {
            Ok(Sniffed::TooFew) => assert!(end < 4),
            early => assert_eq!(early, sniffed),
        }
    }
    let bytes = &bytes[..bytes.len().min(1000)];
    let mut records = RecordReader::new(record_max.min(RECORD_MAX));
    records.room_within(|_| true).expect("memory may be taken")[..bytes.len()]
        .copy_from_slice(bytes);
    records.handle_received(bytes.len());
    let record = records.next_record().map(|record| record.is_some());
    let mut messages = MessageReader::new(record_max);
    messages.room_within(|_| true).expect("memory may be taken")[..bytes.len()]
        .copy_from_slice(bytes);
    messages.handle_received(bytes.len());
    let preamble = messages.next_frame();
    let has_preamble = matches!(preamble, Ok(Some(Frame::Preamble(_))));
    match sniffed {
        Ok(Sniffed::Onc) => assert!(preamble.is_err()),
        Ok(Sniffed::Lean) => assert_ne!(record, Ok(true)),
        Ok(Sniffed::TooFew) => assert!(record == Ok(false) && !has_preamble),
        Err(_) => {
            assert!(record.is_err() && preamble.is_err());
            assert!(!sniffed.unwrap_err().to_string().is_empty());
        }
    }
});
