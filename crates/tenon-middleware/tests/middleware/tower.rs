//! Layers of tower around clients and services of tasks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenon::{CallErrorKind, Ping};
use tenon_middleware::{TowerCalls, TowerService};
use tenon_tokio::Server;
use tower::limit::ConcurrencyLimit;
use tower::timeout::Timeout;
use tower::{Service, ServiceExt};

use crate::generated::{ShelfV1AsyncClient, ShelfV1AsyncService};
use crate::shelf::SharedShelf;

#[tokio::test]
async fn layers_of_tower_stand_around_a_service() {
    let shelf = SharedShelf::default();
    let service = TowerService::new(ShelfV1AsyncService(shelf.clone()), |service| {
        Timeout::new(
            ConcurrencyLimit::new(service, 2),
            Duration::from_millis(100),
        )
    });
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.service(service).start().await.unwrap();
    let tcp = server.addresses()[0].to_string();
    for address in [tcp.clone(), format!("lean+{tcp}")] {
        let client = ShelfV1AsyncClient::connect(&address).await.unwrap();
        assert_eq!(client.get("a").await.unwrap().name, "a");
        shelf.0.next(&shelf.0.overloaded, 1);
        assert!(client.get("a").await.is_err());
        let dropped = shelf.0.dropped.load(Ordering::Relaxed);
        shelf.0.next(&shelf.0.slow, 1);
        let error = client.get("a").await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Failed);
        assert_eq!(shelf.0.dropped.load(Ordering::Relaxed), dropped + 1);
    }
}

#[tokio::test]
async fn layers_of_tower_stand_around_a_client() {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let service = ShelfV1AsyncService(SharedShelf::default());
    let server = builder.service(service).start().await.unwrap();
    let client = ShelfV1AsyncClient::connect(&server.addresses()[0].to_string())
        .await
        .unwrap();
    let mut calls = Timeout::new(TowerCalls::new(client.0), Duration::from_secs(60));
    ServiceExt::<Ping>::ready(&mut calls).await.unwrap();
    calls.call(Ping).await.unwrap();
}
