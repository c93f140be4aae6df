//! Traces and metrics as the SDK of OpenTelemetry sees them.

use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tenon::wire::BString;
use tenon::{CallInfo, ItemWriter, Layered, Refusal};
use tenon_middleware::{OtelMetrics, OtelTraces};

use crate::generated::{Item, ShelfV1, ShelfV1Client, ShelfV1Service};
use crate::shelf::{SharedShelf, serve};

/// Asks another shelf, by a client with middleware.
struct Asking<C>(ShelfV1Client<C>);

impl<C: tenon::MakeCalls + Send + Sync + 'static> ShelfV1 for Asking<C> {
    fn get(&self, _call: &CallInfo<'_>, name: BString) -> Result<Item, Refusal> {
        Ok(self.0.get(&name)?)
    }

    fn put(&self, _call: &CallInfo<'_>, _item: Item) -> Result<Item, Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn list(&self, _: &CallInfo<'_>, _: i32, _: &mut ItemWriter<Item>) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

#[test]
fn spans_of_a_chain_of_calls_belong_to_one_trace() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let traces = || OtelTraces::new(provider.tracer("test"));
    let shelf = SharedShelf::default();
    let (_behind, address) = serve(Layered::new(ShelfV1Service(shelf.clone()), traces()));
    let behind = ShelfV1Client::connect(&address).unwrap();
    let behind = ShelfV1Client(Layered::new(behind.0, traces()));
    let (_front, address) = serve(Layered::new(ShelfV1Service(Asking(behind)), traces()));
    let client = ShelfV1Client::connect(&address).unwrap();
    let client = ShelfV1Client(Layered::new(client.0, traces()));
    client.get("a").unwrap();
    shelf.0.next(&shelf.0.failing, 1);
    client.get("a").unwrap_err();

    provider.force_flush().unwrap();
    let spans = exporter.get_finished_spans().unwrap();
    // The innermost ends first: server, client, server, client.
    assert_eq!(spans.len(), 8);
    for chain in spans.chunks(4) {
        let kinds = [
            SpanKind::Server,
            SpanKind::Client,
            SpanKind::Server,
            SpanKind::Client,
        ];
        for ((span, kind), outer) in chain.iter().zip(kinds).zip(&chain[1..]) {
            assert_eq!(span.span_kind, kind);
            assert_eq!(span.name, "SHELF_V1.SHELF_GET");
            assert_eq!(span.parent_span_id, outer.span_context.span_id());
            assert_eq!(span.span_context.trace_id(), outer.span_context.trace_id());
            let method = span
                .attributes
                .iter()
                .find(|of| of.key.as_str() == "rpc.method");
            assert_eq!(method.unwrap().value.as_str(), "SHELF_V1/SHELF_GET");
        }
    }
    let [first, second] = [0, 4].map(|at| spans[at].span_context.trace_id());
    assert_ne!(first, second);
    assert!(spans[..4].iter().all(|span| span.status == Status::Unset));
    for span in &spans[4..] {
        assert!(matches!(span.status, Status::Error { .. }), "{span:?}");
        let error = span
            .attributes
            .iter()
            .find(|of| of.key.as_str() == "error.type");
        assert_eq!(error.unwrap().value.as_str(), "failed");
    }
}

#[test]
fn durations_are_recorded_by_method_and_error() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(exporter.clone()).build())
        .build();
    let shelf = SharedShelf::default();
    let metrics = || OtelMetrics::new(&provider.meter("test"));
    let (_server, address) = serve(Layered::new(ShelfV1Service(shelf.clone()), metrics()));
    let client = ShelfV1Client::connect(&address).unwrap();
    let client = ShelfV1Client(Layered::new(client.0, metrics()));
    client.get("a").unwrap();
    client.get("a").unwrap();
    shelf.0.next(&shelf.0.overloaded, 1);
    client.get("a").unwrap_err();

    provider.force_flush().unwrap();
    let exported = exporter.get_finished_metrics().unwrap();
    let mut counts = Vec::new();
    for metric in exported
        .iter()
        .flat_map(|resource| resource.scope_metrics())
        .flat_map(|scope| scope.metrics())
    {
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{metric:?}");
        };
        for point in histogram.data_points() {
            let error = point
                .attributes()
                .find(|of| of.key.as_str() == "error.type");
            let error = error.map(|of| of.value.as_str().into_owned());
            counts.push((metric.name().to_owned(), error, point.count()));
        }
    }
    counts.sort();
    let name = |side: &str| format!("rpc.{side}.call.duration");
    let busy = || Some("busy".to_owned());
    assert_eq!(
        counts,
        [
            (name("client"), None, 2),
            (name("client"), busy(), 1),
            (name("server"), None, 2),
            (name("server"), busy(), 1),
        ]
    );
}
