//! Calls that are larger than their server takes: a client says what the limits are.

use std::io::Read;
use std::net::TcpListener;
use std::thread;

use crate::common::restarts::{Place, client, echo};
use tenon::{CallError, CallErrorKind, CallOptions, ChannelOptions};

/// More than a socket takes on its way, and more than a server takes.
const LARGE: usize = 32 << 20;

#[test]
fn a_call_that_its_server_does_not_take_is_sent_twice_at_most() {
    let place = Place::fresh();
    let server = place.start_echo();
    let large = vec![7; LARGE];
    for address in &place.every_way()[..2] {
        let client = client(address, ChannelOptions::default());
        let error = echo(&client, CallOptions::new(), &large).unwrap_err();
        let CallError::CutOff {
            size, own_limit, ..
        } = &error
        else {
            panic!("{address}: {error}");
        };
        assert_eq!(*own_limit, ChannelOptions::default().send_max);
        assert!((LARGE..LARGE + 200).contains(size), "{size}");
        assert!(!error.may_have_executed());
        let text = error.to_string();
        assert!(
            text.contains("message_bytes") && text.contains("send_max"),
            "{text}"
        );
        assert_eq!(client.channel().counters().connections, 2);
        let small = echo(&client, CallOptions::new(), b"small");
        assert_eq!(small.unwrap(), b"small", "{address}");
    }
    drop(server);
}

/// All of its bytes may find room on their way, and count as sent.
#[test]
fn the_error_of_a_call_somewhat_over_the_limit_says_how_large_it_was() {
    const SIZE: usize = 5 << 20;
    let place = Place::fresh();
    let server = place.start_echo();
    let bytes = vec![7; SIZE];
    for address in &place.every_way()[..2] {
        for _ in 0..4 {
            let before = server.counters().connections_accepted;
            let client = client(address, ChannelOptions::default().send_max(6 << 20));
            let error = echo(&client, CallOptions::new(), &bytes).unwrap_err();
            assert_eq!(error.kind(), CallErrorKind::Disconnected, "{error}");
            let text = error.to_string();
            // A mark, a header, and a channel's own limit.
            let size = (SIZE + 44).to_string();
            assert!(text.contains(&size) && text.contains("6291456"), "{text}");
            assert!(text.contains("message_bytes"), "{text}");
            let connections = server.counters().connections_accepted - before;
            assert!((1..=2).contains(&connections), "{address}: {connections}");
            let small = echo(&client, CallOptions::new(), b"small");
            assert_eq!(small.unwrap(), b"small", "{address}");
        }
    }
    assert_eq!(server.counters().calls, 8, "only the small ones");
}

#[test]
fn a_lean_call_over_the_limit_names_both_limits() {
    let place = Place::fresh();
    let server = place.start_echo();
    for address in &place.every_way()[2..] {
        let client = client(address, ChannelOptions::default());
        let error = echo(&client, CallOptions::new(), &vec![7; 5 << 20]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, CallError::TooLargeForPeer { .. }), "{text}");
        // 4 MiB there, 64 MiB here.
        assert!(
            text.contains("4194304") && text.contains("67108864"),
            "{text}"
        );
        assert_eq!(client.channel().counters().connections, 1);
    }
    drop(server);
}

/// Calls that wait behind the one that is cut off, and of which nothing was sent, are no suspects.
#[test]
fn a_peer_that_cuts_every_connection_is_asked_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let peer = thread::spawn(move || {
        let mut connections = 0;
        while let Ok((mut stream, _)) = listener.accept() {
            connections += 1;
            let mut begin = [0; 1000];
            // The last connection says nothing, and ends the test.
            if stream.read(&mut begin).unwrap_or(0) == 0 {
                break;
            }
        }
        connections
    });
    let client = client(&address, ChannelOptions::default());
    // So is it for a call that waits for a server.
    let waits = CallOptions::new().wait_for_ready(true);
    let error = echo(&client, waits, &vec![7; LARGE]).unwrap_err();
    assert!(matches!(error, CallError::CutOff { .. }), "{error}");
    drop(std::net::TcpStream::connect(&address["tcp://".len()..]).unwrap());
    assert_eq!(peer.join().unwrap(), 3);
}

#[test]
fn a_short_call_is_not_said_to_be_too_long() {
    let text = |size| {
        let cause = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let error = CallError::CutOff {
            size,
            own_limit: 64 << 20,
            cause: cause.into(),
        };
        error.to_string()
    };
    let long = text(LARGE);
    assert!(long.contains("may not take calls of this size"), "{long}");
    let short = text(48);
    assert!(short.contains("may take no connections now"), "{short}");
    assert!(!short.contains("size"), "{short}");
}
