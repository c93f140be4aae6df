//! What a server has around its services: its health, what it tells of its interfaces, and middleware, by every way to
//! call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenon::health::{Health, HealthStatus, HealthV1Client};
use tenon::{CallErrorKind, Channel, Client, Layered, Protocol};
use tenon_descriptor::Descriptor;
use tenon_middleware::{ConcurrencyLimit, Metrics, ProcedureMetrics, Timeout};
use tenon_reflection::{REFLECTION, REFLECTION_V1, Reflection, ReflectionClient};

use crate::rows::{End, Row, rows};
use crate::store_stubs::{
    StoreV1AsyncClient, StoreV1AsyncService, StoreV1Client, StoreV1GetError, StoreV1Service,
};
use crate::streams::Store;

const PATIENCE: Duration = Duration::from_secs(60);

/// The rows with clients of threads: the clients of health and reflection block.
fn blocking_rows() -> Vec<Row> {
    let rows = rows().into_iter();
    rows.filter(|row| row.client == End::Threads).collect()
}

#[test]
fn a_server_tells_its_health_and_that_it_stops() {
    for row in blocking_rows() {
        let health = Health::new();
        let server = row.serve_by(
            |builder| builder.health(&health),
            |builder| builder.health(&health),
        );
        health.set("A", HealthStatus::NotServing);
        let client = row.connect_blocking(&server, |address| {
            let client = HealthV1Client::connect(address).unwrap();
            client.with_timeout(PATIENCE)
        });
        assert_eq!(client.check("").unwrap(), HealthStatus::Serving, "{row}");
        assert_eq!(client.check("A").unwrap(), HealthStatus::NotServing);
        assert_eq!(client.list().unwrap().len(), 2, "{row}");
        let followed = row.connect_blocking(&server, |_| client.follow("A"));
        if row.protocol == Protocol::Onc {
            assert_eq!(followed.unwrap_err().kind(), CallErrorKind::InvalidCall);
            server.shutdown();
            continue;
        }
        let mut followed = followed.unwrap();
        let mut next = || followed.next().unwrap();
        assert_eq!(next().unwrap(), HealthStatus::NotServing, "{row}");
        health.set("A", HealthStatus::Serving);
        assert_eq!(next().unwrap(), HealthStatus::Serving, "{row}");
        server.shutdown();
        assert_eq!(next().unwrap(), HealthStatus::NotServing, "{row}");
        let end = next().unwrap_err();
        assert_eq!(end.kind(), CallErrorKind::Stopping, "{row}: {end}");
    }
}

#[test]
fn a_server_tells_of_its_interfaces() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let path = root.join("interfaces/nfs3.x");
    let parsed = tenon_idl::parse_file(&path, &tenon_idl::Options::default());
    let described = Descriptor::new(&parsed.schema.unwrap()).unwrap();
    for row in blocking_rows() {
        let reflection = Reflection::new().with(described.clone()).unwrap();
        let server = row.serve_by(
            |builder| builder.service(reflection.service()),
            |builder| builder.sync_service(reflection.service()),
        );
        let client = row.connect_blocking(&server, |address| {
            let channel = Channel::connect(address).unwrap();
            ReflectionClient::over(Client::over(channel, REFLECTION, REFLECTION_V1))
        });
        let versions = client.versions().unwrap();
        assert_eq!(versions, reflection.versions(), "{row}");
        let told = client.descriptor(versions[0].identity).unwrap();
        assert_eq!(told.bytes(), described.bytes(), "{row}");
        server.shutdown();
    }
}

/// Calls of a procedure that had a result, and those that raised an error of the interface.
fn counts(metrics: &Metrics, procedure: &str) -> (u64, u64) {
    let all = metrics.snapshot();
    let counted = all.iter().find(|one| one.procedure == procedure);
    counted.map_or((0, 0), |one: &ProcedureMetrics| {
        (one.succeeded, one.failures())
    })
}

#[test]
fn middleware_stands_around_both_ends() {
    for row in rows() {
        let (called, served) = (Arc::new(Metrics::new()), Arc::new(Metrics::new()));
        let around = Arc::clone(&served);
        let server = row.serve_by(
            |builder| {
                let service =
                    Layered::new(StoreV1Service(Store::default()), ConcurrencyLimit::new(8));
                builder.service(service.with(around.clone()))
            },
            |builder| {
                let service = Layered::new(
                    StoreV1AsyncService(Store::default()),
                    ConcurrencyLimit::new(8),
                );
                builder.service(service.with(around.clone()))
            },
        );
        let is_lean = row.protocol == Protocol::Lean;
        let connected = row.connect_by(
            &server,
            |address| {
                let store = StoreV1Client::connect(address).unwrap();
                let around = Layered::new(store.0, Timeout::new(PATIENCE));
                let store = StoreV1Client(around.with(Arc::clone(&called)));
                store.remove("nothing").unwrap();
                if is_lean {
                    let missing = store.get("nothing").unwrap().next().unwrap();
                    assert!(matches!(missing, Err(StoreV1GetError::Missing(_))));
                }
            },
            async |address| {
                let store = StoreV1AsyncClient::connect(address).await.unwrap();
                let around = Layered::new(store.0, Timeout::new(PATIENCE));
                let store = StoreV1AsyncClient(around.with(Arc::clone(&called)));
                store.remove("nothing").await.unwrap();
                if is_lean {
                    let mut got = store.get("nothing").await.unwrap();
                    let missing = got.next().await.unwrap();
                    assert!(matches!(missing, Err(StoreV1GetError::Missing(_))));
                }
            },
        );
        drop(connected);
        // A call is counted at its server a moment after it was answered.
        server.shutdown();
        let raised = (0, u64::from(is_lean));
        for metrics in [called, served] {
            assert_eq!(counts(&metrics, "STORE_REMOVE"), (1, 0), "{row}");
            assert_eq!(counts(&metrics, "STORE_GET"), raised, "{row}");
        }
    }
}
