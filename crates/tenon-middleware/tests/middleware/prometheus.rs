//! Metrics as they are served.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use tenon::Layered;
use tenon_middleware::{Metrics, MetricsCollector, MetricsServer};

use crate::generated::{ShelfV1Client, ShelfV1Service};
use crate::shelf::{SharedShelf, serve};

fn ask(server: &MetricsServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn both_sides_of_calls_are_served() {
    let metrics = Arc::new(Metrics::new());
    let shelf = SharedShelf::default();
    let service = Layered::new(ShelfV1Service(shelf.clone()), Arc::clone(&metrics));
    let (_server, address) = serve(service);
    let client = ShelfV1Client::connect(&address).unwrap();
    let client = ShelfV1Client(Layered::new(client.0, Arc::clone(&metrics)));
    client.get("a").unwrap();
    client.get("a").unwrap();
    shelf.0.next(&shelf.0.failing, 1);
    client.get("a").unwrap_err();

    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsCollector::new(metrics)));
    let server = MetricsServer::start("127.0.0.1:0", registry).unwrap();
    let response = ask(&server, "GET /metrics");
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("content-type: application/openmetrics-text"));
    for side in ["client", "server"] {
        let labels = r#"service="SHELF_V1",procedure="SHELF_GET",program="536871936",version="1""#;
        for line in [
            format!("tenon_{side}_calls_total{{{labels},outcome=\"success\"}} 2"),
            format!("tenon_{side}_calls_total{{{labels},outcome=\"failed\"}} 1"),
            format!("tenon_{side}_calls_in_flight{{{labels}}} 0"),
            format!("tenon_{side}_call_duration_seconds_count{{{labels}}} 3"),
            format!("tenon_{side}_call_duration_seconds_bucket{{le=\"+Inf\",{labels}}} 3"),
        ] {
            assert!(response.contains(&line), "{line}\n{response}");
        }
    }
    assert!(ask(&server, "GET /").starts_with("HTTP/1.1 404"));
    assert!(ask(&server, "POST /metrics").starts_with("HTTP/1.1 405"));
    drop(server);
}
