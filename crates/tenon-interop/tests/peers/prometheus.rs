//! Metrics of calls, read by the parser of Prometheus's own client library.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tenon::{Layered, Server};
use tenon_interop::compiled::hprpc::{HprpcVersionClient, HprpcVersionService};
use tenon_interop::python_script;
use tenon_interop::services::HprpcService;
use tenon_middleware::{Metrics, MetricsCollector, MetricsServer};

#[test]
fn prometheus_reads_the_metrics_of_both_sides() {
    let metrics = Arc::new(Metrics::new());
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let service = Layered::new(HprpcVersionService(HprpcService), Arc::clone(&metrics));
    let server = builder.service(service).start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let client = HprpcVersionClient::connect(&address).unwrap();
    let client = HprpcVersionClient(Layered::new(client.0, Arc::clone(&metrics)));
    for _ in 0..3 {
        client.say_hello("Ada").unwrap();
    }
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsCollector::new(metrics)));
    let served = MetricsServer::start("127.0.0.1:0", registry).unwrap();
    let url = format!("http://{}/metrics", served.address());
    let read = python_script("read_metrics.py").output(&[&url]);

    let program = tenon_interop::compiled::hprpc::HPRPC_PROGRAM;
    let labels = format!("procedure=SAY_HELLO,program={program},service=HPRPC_VERSION,version=1");
    for side in ["client", "server"] {
        for sample in [
            format!("counter tenon_{side}_calls_total outcome=success,{labels} 3"),
            format!("gauge tenon_{side}_calls_in_flight {labels} 0"),
            format!("histogram tenon_{side}_call_duration_seconds_count {labels} 3"),
        ] {
            assert!(read.lines().any(|line| line == sample), "{sample}\n{read}");
        }
    }
}
