//! Metadata both ways, and the credential, beside messages of every size.

use std::sync::Arc;

use tenon::lean::Status;
use tenon::{
    Address, AuthSys, CallError, CallErrorKind, CallOptions, Credential, Metadata, Protocol,
    ReplyMetadata, ServerLimits,
};

use crate::rows::{Client, Execution, Row, rows, sized_rows};
use crate::service::{ADD, ECHO, FAIL, GROW, Obliging, RUNS_AS, WHO, pattern};

fn sample() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.append("request-id", "7f3a").unwrap();
    metadata.append("sum-bin", [0, 255, 7]).unwrap();
    metadata.append("request-id", "again").unwrap();
    metadata
}

/// Calls with metadata, and returns the outcome with the metadata of the reply.
fn call(
    client: &Client,
    called: (u16, &[u8]),
    metadata: &Metadata,
    starts: bool,
) -> (Result<Vec<u8>, CallError>, Metadata) {
    let reply = Arc::new(ReplyMetadata::new());
    let options = CallOptions::new().metadata(metadata).reply_metadata(&reply);
    let outcome = client.call_with(called, options, starts);
    (outcome, reply.get())
}

fn check(row: &Row, client: &Client, starts: bool) {
    let metadata = sample();
    let (echoed, reply) = call(client, (ECHO, b"body"), &metadata, starts);
    assert_eq!(echoed.unwrap(), b"body", "{row}");
    assert_eq!(reply, metadata, "{row}");

    // An exception has metadata, too.
    let (failed, reply) = call(client, (FAIL, b""), &metadata, starts);
    match failed {
        Err(CallError::Exception(exception)) => {
            assert_eq!(exception.status, Status::FAILED, "{row}");
            assert_eq!(exception.metadata, metadata, "{row}");
        }
        other => panic!("{row}: {other:?}"),
    }
    assert_eq!(reply, metadata, "{row}");

    // What is aligned stays so behind metadata of any length.
    let number = 41_u64.to_ne_bytes();
    let (sum, _) = call(client, (ADD, &number), &metadata, starts);
    assert_eq!(sum.unwrap(), 42_u64.to_ne_bytes(), "{row}");

    // The next call has none.
    let (echoed, reply) = call(client, (ECHO, b"none"), &Metadata::new(), starts);
    assert_eq!(echoed.unwrap(), b"none", "{row}");
    assert!(reply.is_empty(), "{row}");
}

#[test]
fn metadata_goes_both_ways() {
    for row in rows() {
        for execution in [Execution::Inline, Execution::Workers(2), Execution::Waiting] {
            let server = row.server(&Obliging::default(), execution);
            let client = row.client(&server.address());
            match row.protocol {
                Protocol::Lean => {
                    check(&row, &client, false);
                    check(&row, &client, true);
                }
                Protocol::Onc => {
                    let (outcome, _) = call(&client, (ECHO, b""), &sample(), false);
                    let error = outcome.unwrap_err();
                    assert!(matches!(error, CallError::OncMetadata), "{row}: {error}");
                    assert_eq!(error.kind(), CallErrorKind::InvalidCall, "{row}");
                }
            }
            assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        }
    }
}

#[test]
fn large_messages_have_metadata_too() {
    const SIZES: [usize; 3] = [1_500, 70_000, 1 << 20];
    for row in sized_rows() {
        if row.protocol == Protocol::Onc {
            continue;
        }
        let server = row.server(&Obliging::default(), Execution::Workers(2));
        let client = row.client(&server.address());
        for size in SIZES {
            let metadata = sample();
            let bytes = pattern(size);
            let (echoed, reply) = call(&client, (ECHO, &bytes), &metadata, false);
            assert!(echoed.unwrap() == bytes, "{row}: {size}");
            assert_eq!(reply, metadata, "{row}: {size}");
            let asked = (size as u32).to_be_bytes();
            let (grown, reply) = call(&client, (GROW, &asked), &metadata, true);
            assert!(grown.unwrap() == bytes, "{row}: {size}");
            assert_eq!(reply, metadata, "{row}: {size}");
        }
    }
}

#[test]
fn a_server_refuses_more_metadata_than_it_accepts() {
    let limits = ServerLimits {
        metadata_bytes: 10_000,
        ..ServerLimits::default()
    };
    for row in rows() {
        if row.protocol == Protocol::Onc {
            continue;
        }
        let server = row.serve(&Obliging::default(), Execution::Inline, limits.clone());
        let client = row.client(&server.address());
        // Each pair has 4 bytes beside key and value. It fits, but not into the reply of the service.
        let mut metadata = Metadata::new();
        metadata.append("k", "x".repeat(9_995)).unwrap();
        assert_eq!(metadata.size(), 10_000);
        let (error, _) = call(&client, (WHO, b""), &metadata, false);
        let panicked = error.unwrap_err();
        assert_eq!(panicked.kind(), CallErrorKind::Failed, "{row}: {panicked}");

        metadata.append("l", "").unwrap();
        let (error, _) = call(&client, (WHO, b""), &metadata, false);
        let error = error.unwrap_err();
        let CallError::Exception(exception) = &error else {
            panic!("{row}: {error}");
        };
        assert_eq!(exception.status, Status::METADATA, "{row}");
        assert!(!error.may_have_executed(), "{row}");
        assert_eq!(error.kind(), CallErrorKind::InvalidCall, "{row}");
        let text = error.to_string();
        assert!(text.contains("10005 bytes, where 10000"), "{row}: {text}");
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}

#[test]
fn a_credential_travels_by_either_protocol() {
    for row in rows() {
        for execution in [Execution::Inline, Execution::Workers(2), Execution::Waiting] {
            let server = row.server(&Obliging::default(), execution);
            let client = row.client(&server.address());
            let user = AuthSys::new(b"workstation", 1000, 100, &[4, 24]).unwrap();
            let named = client.with_credential(&Credential::Sys(user));
            assert_eq!(
                named.call(WHO, b"").unwrap(),
                1000_u32.to_be_bytes(),
                "{row}"
            );
            assert!(client.call(WHO, b"").unwrap().is_empty(), "{row}");
            let nobody = named.with_credential(&Credential::None);
            assert!(nobody.call(WHO, b"").unwrap().is_empty(), "{row}");
            // Of a process of this machine the kernel says which user it runs as.
            let address: Address = server.address().parse().unwrap();
            let known = if address.transport().stays_on_host() {
                rustix::process::geteuid().as_raw().to_be_bytes().to_vec()
            } else {
                Vec::new()
            };
            assert_eq!(named.call(RUNS_AS, b"").unwrap(), known, "{row}");
        }
    }
}
