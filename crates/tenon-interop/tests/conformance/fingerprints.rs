//! Ends that were built from different interfaces.

use tenon::{CallError, Protocol};

use crate::rows::{Execution, rows};
use crate::service::{ECHO, Obliging, interface_with};

#[test]
fn a_client_of_another_interface_is_told_which_type_differs() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        let other = client.clone().of(interface_with(8));
        match (row.protocol, other.call(ECHO, b"what")) {
            // ONC RPC compares nothing.
            (Protocol::Onc, Ok(echo)) => assert_eq!(echo, b"what", "{row}"),
            (Protocol::Lean, Err(error @ CallError::Unbound(_))) => {
                assert!(!error.may_have_executed(), "{row}");
                let error = error.to_string();
                // The line differs, too, but because of its points.
                assert!(error.contains("point differs"), "{row}: {error}");
            }
            (_, outcome) => panic!("{row}: {outcome:?}"),
        }
        // Others on the same connection are not concerned.
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}
