//! Ends of both orders of bytes, and what only a peer of the lean protocol that is not ours says.

use tenon::lean::{ByteOrder, Status};
use tenon::{CallError, Protocol};
use tenon_interop::compiled::torture::{Drawing, Everything};

use crate::peer::{add_one, bytes_of, connect, serve};
use crate::rows::{Execution, Row, stream_rows};
use crate::service::{ADD, FAIL, Obliging, details};

const NUMBER: u64 = 0x0102_0304_0506_0708;

/// Those of the exchange are called in both orders by `tenon-proto/tests/endpoint/exchange`, packet by packet.
fn lean_rows() -> impl Iterator<Item = Row> {
    let rows = stream_rows().into_iter();
    rows.filter(|row| row.protocol == Protocol::Lean)
}

#[test]
fn servers_understand_clients_of_either_order() {
    for row in lean_rows() {
        for execution in [Execution::Inline, Execution::Workers(1), Execution::Waiting] {
            let server = row.server(&Obliging::default(), execution);
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let mut stream = connect(&server.address());
                let sum = add_one(&mut stream, order, NUMBER);
                assert_eq!(sum, NUMBER + 1, "{row}: {order:?}, {execution:?}");
            }
        }
    }
}

#[test]
fn clients_understand_servers_of_either_order() {
    for row in lean_rows() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let client = row.client(&serve(row.carrier.name, order));
            let sent = bytes_of(ByteOrder::NATIVE, NUMBER);
            // The bytes are as they came: who decodes them is told their order.
            let sum = client.call(ADD, &sent).unwrap();
            assert_eq!(sum, bytes_of(order, NUMBER + 1), "{row}: {order:?}");
        }
    }
}

#[test]
fn exceptions_of_the_interface_bring_their_details() {
    for row in lean_rows() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let client = row.client(&serve(row.carrier.name, order));
            for _ in 0..2 {
                match client.call(FAIL, b"").unwrap_err() {
                    CallError::Exception(exception) => {
                        assert_eq!(exception.status, Status::RAISED, "{row}");
                        assert_eq!(exception.message, "as the test asked", "{row}");
                        let found = exception.raised_as::<Drawing>();
                        assert_eq!(found, Ok(details()), "{row}: {order:?}");
                        let other = exception.raised_as::<Everything>();
                        assert!(other.is_err(), "{row}: {order:?}");
                    }
                    other => panic!("{row}: {other:?}"),
                }
            }
            let sent = bytes_of(ByteOrder::NATIVE, 1);
            assert_eq!(
                client.call(ADD, &sent).unwrap(),
                bytes_of(order, 2),
                "{row}"
            );
        }
    }
}
