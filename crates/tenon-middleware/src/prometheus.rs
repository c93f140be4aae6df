//! Metrics as Prometheus reads them.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::metrics::{Metrics, ProcedureMetrics, label_of};

/// The text format of OpenMetrics, which Prometheus reads.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Connections that are served at the same time. One is what Prometheus needs.
const CONNECTIONS: usize = 16;

/// Time for which a client may take to ask.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Lets a [`Registry`] of the Prometheus client library read [`Metrics`], with whatever else a program counts.
///
/// | name | type | labels beside `service`, `procedure`, `program`, `version` |
/// | --- | --- | --- |
/// | `tenon_client_calls_total`, `tenon_server_calls_total` | counter | `outcome`: `success`, or the [kind](tenon::CallErrorKind) of the failure, such as `timed_out` |
/// | `tenon_client_calls_in_flight`, `tenon_server_calls_in_flight` | gauge | |
/// | `tenon_client_call_duration_seconds`, `tenon_server_call_duration_seconds` | histogram | |
#[derive(Debug)]
pub struct MetricsCollector(Arc<Metrics>);

impl MetricsCollector {
    /// Reads these metrics.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self(metrics)
    }
}

/// Labels of a procedure, and of an outcome if it is one of those.
type Labels = Vec<(&'static str, String)>;

fn labels_of(of: &ProcedureMetrics) -> Labels {
    let procedure = match of.procedure.is_empty() {
        true => of.number.to_string(),
        false => of.procedure.clone(),
    };
    vec![
        ("service", of.service.clone()),
        ("procedure", procedure),
        ("program", of.program.to_string()),
        ("version", of.version.to_string()),
    ]
}

impl Collector for MetricsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let all = self.0.snapshot();
        for is_at_server in [false, true] {
            let of_side: Vec<_> = all
                .iter()
                .filter(|of| of.is_at_server == is_at_server)
                .collect();
            if !of_side.is_empty() {
                encode_side(&mut encoder, is_at_server, &of_side)?;
            }
        }
        Ok(())
    }
}

fn encode_side(
    encoder: &mut DescriptorEncoder<'_>,
    is_at_server: bool,
    procedures: &[&ProcedureMetrics],
) -> Result<(), fmt::Error> {
    let (side, done) = match is_at_server {
        true => ("tenon_server", "carried out or refused"),
        false => ("tenon_client", "made"),
    };
    let name = format!("{side}_calls");
    let help = format!("Calls that were {done}, by what became of them");
    let mut counters = encoder.encode_descriptor(&name, &help, None, MetricType::Counter)?;
    for of in procedures {
        let failed = of.failed.iter();
        let failed = failed.map(|(kind, count)| (label_of(*kind), *count));
        for (outcome, count) in [("success".to_owned(), of.succeeded)]
            .into_iter()
            .chain(failed)
        {
            let mut labels = labels_of(of);
            labels.push(("outcome", outcome));
            counters
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
    }
    let name = format!("{side}_calls_in_flight");
    let help = "Calls that are not over";
    let mut gauges = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
    for of in procedures {
        let in_flight = of.in_flight as i64;
        gauges
            .encode_family(&labels_of(of))?
            .encode_gauge(&in_flight)?;
    }
    let name = format!("{side}_call_duration");
    let help = "Time from the begin of calls to their outcome";
    let unit = Some(&Unit::Seconds);
    let mut histograms = encoder.encode_descriptor(&name, help, unit, MetricType::Histogram)?;
    for of in procedures {
        let buckets = of.buckets.iter();
        let buckets: Vec<_> = buckets
            .map(|(end, count)| (end.map_or(f64::INFINITY, |end| end.as_secs_f64()), *count))
            .collect();
        let calls = buckets.iter().map(|(_, count)| count).sum();
        histograms
            .encode_family(&labels_of(of))?
            .encode_histogram::<NoLabelSet>(of.total.as_secs_f64(), calls, &buckets, None)?;
    }
    Ok(())
}

/// Serves a registry at an address, at `/metrics`, until it is dropped: by a thread of its own.
///
/// ```
/// use std::sync::Arc;
/// use prometheus_client::registry::Registry;
/// use tenon_middleware::{Metrics, MetricsCollector, MetricsServer};
///
/// let metrics = Arc::new(Metrics::new());
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(MetricsCollector::new(Arc::clone(&metrics))));
/// let server = MetricsServer::start("127.0.0.1:0", registry)?;
/// println!("curl http://{}/metrics", server.address());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at an address and begins to serve. What is there is not encrypted, and everybody who reaches the address
    /// can read it.
    ///
    /// # Errors
    /// The address cannot be listened at, or the system has no thread left.
    pub fn start(address: impl ToSocketAddrs, registry: Registry) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let serving = tokio::spawn(serve(listener, Arc::new(registry)));
                // It ends as its other end is dropped.
                let _ = stopped.await;
                serving.abort();
            });
        };
        let thread = thread::Builder::new().name("tenon-metrics".to_owned());
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread.spawn(serve)?),
        })
    }

    /// Returns the address, with the port that the system has chosen if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say but that it panicked, which was said.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, registry: Arc<Registry>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "metrics cannot be served");
            return;
        }
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let registry = Arc::clone(&registry);
                tokio::spawn(async move {
                    serve_connection(stream, &registry).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection that asks for metrics is not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, registry: &Registry) {
    let answer = |request: Request<Incoming>| async move { answer(&request, registry) };
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection that asks for metrics broke");
    }
}

fn answer(
    request: &Request<Incoming>,
    registry: &Registry,
) -> Result<Response<Full<Bytes>>, fmt::Error> {
    let mut content = String::new();
    let status = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            text::encode(&mut content, registry)?;
            StatusCode::OK
        }
        (_, "/metrics") => StatusCode::METHOD_NOT_ALLOWED,
        _ => {
            content.push_str("metrics are at /metrics\n");
            StatusCode::NOT_FOUND
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(content)));
    *response.status_mut() = status;
    let content_type = match status {
        StatusCode::OK => CONTENT_TYPE,
        _ => "text/plain",
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    Ok(response)
}
