//! Messages of every size around every boundary come back as they went.

use tenon::{CallError, ChannelOptions, Protocol, ServerLimits};

use crate::rows::{Execution, Row, rows, sized_rows, stream_rows};
use crate::service::{ECHO, GROW, Obliging, pattern};

/// Bytes that headers may take of a message, in either direction.
const HEADERS: usize = 100;

/// Every size that may be the first or last of its kind: words and their padding, pages, the rooms of
/// readers, what a lean client may send before it knows the server.
fn sizes(row: &Row) -> Vec<usize> {
    let small = 0..=40;
    let around = [4 << 10, 8 << 10, 16 << 10, 64 << 10];
    let around = around.into_iter().flat_map(|size| size - HEADERS..size + 9);
    let large = [128 << 10, 1 << 20].into_iter();
    let large = large.flat_map(|size| [size - 1, size, size + 1]);
    let sizes = small.chain(around).chain(large);
    let most = row.carrier.message_max.map(|max| max - HEADERS);
    let mut sizes: Vec<_> = sizes
        .filter(|size| most.is_none_or(|most| *size <= most))
        .collect();
    sizes.extend(most);
    sizes
}

#[test]
fn every_size_comes_back_as_it_went() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        for size in sizes(&row) {
            let sent = pattern(size);
            let echo = client.call(ECHO, &sent);
            assert!(echo.unwrap() == sent, "{row}: {size} bytes");
        }
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}

/// Where calls wait for somebody to carry them out they are copied.
#[test]
fn sizes_come_back_from_those_who_wait() {
    for row in rows() {
        for execution in [Execution::Workers(2), Execution::Waiting] {
            let server = row.server(&Obliging::default(), execution);
            let client = row.client(&server.address());
            let some = sizes(&row).into_iter().step_by(17);
            for size in some {
                let sent = pattern(size);
                let echo = client.call(ECHO, &sent);
                assert!(echo.unwrap() == sent, "{row}: {size} bytes, {execution:?}");
            }
        }
    }
}

/// ONC RPC cuts messages on streams into fragments.
#[test]
fn fragments_of_every_size_are_put_together() {
    for row in stream_rows() {
        if row.protocol != Protocol::Onc {
            continue;
        }
        let server = row.server(&Obliging::default(), Execution::Inline);
        for fragment in [1024, 1025, 4096] {
            let options = ChannelOptions::default().fragment_max(fragment);
            let client = row.client_with(&server.address(), options);
            let around = [1, 2, 7].map(|count| count * fragment);
            for size in around.iter().flat_map(|size| size - 50..size + 5) {
                let sent = pattern(size);
                assert!(
                    client.call(ECHO, &sent).unwrap() == sent,
                    "{row}: {size} in {fragment}"
                );
            }
        }
    }
}

#[test]
fn what_is_too_large_for_the_sender_is_said_and_harms_no_other_call() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let options = ChannelOptions::default().send_max(70_000);
        let client = row.client_with(&server.address(), options);
        let error = client.call(ECHO, &pattern(70_001)).unwrap_err();
        assert!(
            matches!(error, CallError::TooLarge { .. }),
            "{row}: {error:?}"
        );
        assert!(!error.may_have_executed());
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}

#[test]
fn what_is_too_large_for_the_server_is_refused_and_it_serves_on() {
    for row in sized_rows() {
        let limits = ServerLimits {
            message_bytes: 100 << 10,
            ..ServerLimits::default()
        };
        let server = row.serve(&Obliging::default(), Execution::Inline, limits);
        let client = row.client(&server.address());
        client.call(ECHO, b"so that the limit is known").unwrap();
        assert!(client.call(ECHO, &pattern(100 << 10)).is_err(), "{row}");
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
    }
}

#[test]
fn results_that_are_larger_than_can_be_sent_are_told() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let options = ChannelOptions::default().receive_max(64 << 10);
        let client = row.client_with(&server.address(), options);
        let error = client.call(GROW, &70_000_u32.to_be_bytes()).unwrap_err();
        assert!(!error.to_string().is_empty(), "{row}");
        let most = row.carrier.message_max.map_or(60_000, |max| max - HEADERS);
        let fits = client.call(GROW, &(most as u32).to_be_bytes());
        assert!(fits.unwrap() == pattern(most), "{row}");
    }
}

/// Where a message is one datagram, up to its last byte.
#[test]
fn a_datagram_is_filled_and_what_is_larger_is_told_before_it_is_sent() {
    // Headers of a call and of a reply of ONC RPC without credentials, and the number of bytes behind them.
    const CALL: usize = 40 + 4;
    const REPLY: usize = 24 + 4;
    for row in rows() {
        let Some(limit) = row.carrier.message_max else {
            continue;
        };
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        // Words, as other bytes would be padded; and an echo is shorter than its call.
        let most = (limit - CALL) / 4 * 4;
        let full = pattern(most);
        assert!(client.call(ECHO, &full).unwrap() == full, "{row}");
        let error = client.call(ECHO, &pattern(most + 4)).unwrap_err();
        let told = CallError::TooLarge {
            size: CALL + most + 4,
            limit,
            datagram: true,
        };
        assert_eq!(format!("{error:?}"), format!("{told:?}"), "{row}");
        assert!(error.to_string().contains("tcp://"), "{error}");
        let most = ((limit - REPLY) / 4 * 4) as u32;
        let full = client.call(GROW, &most.to_be_bytes()).unwrap();
        assert!(full == pattern(most as usize), "{row}");
        let error = client.call(GROW, &(most + 4).to_be_bytes()).unwrap_err();
        assert!(error.to_string().contains("tcp://"), "{error}");
        let counters = server.counters();
        assert_eq!(
            (counters.calls, counters.replies_too_large),
            (3, 1),
            "{row}"
        );
    }
}
