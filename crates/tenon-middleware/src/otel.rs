//! Traces and metrics by the API of OpenTelemetry, as its semantic conventions for RPC name them (version 1.45).

use std::fmt;
use std::str::FromStr;

use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::trace::{
    Span, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer,
};
use opentelemetry::{Context, KeyValue};
use tenon::{
    CallErrorKind, CallOutcome, CallScope, Endpoint, Metadata, MetadataView, Middleware,
    PropagatedContext, Protocol, Rejection,
};

use crate::metrics::{BUCKETS, label_of};

/// Makes a span of each call, and has the trace go on with it: over the lean protocol as the metadata `traceparent` and
/// `tracestate` (W3C Trace Context), which calls of handlers carry on.
///
/// The parent of a server's span is what its caller has sent. The parent of a client's span is the call that its handler
/// carries out, or else the active span of the thread. A call by ONC RPC carries no trace: there it begins at the server.
#[derive(Debug)]
pub struct OtelTraces<T> {
    tracer: T,
}

impl<T: Tracer> OtelTraces<T> {
    /// Makes the spans by this tracer.
    pub fn new(tracer: T) -> Self {
        Self { tracer }
    }
}

impl<T> Middleware for OtelTraces<T>
where
    T: Tracer + Send + Sync + 'static,
    T::Span: Send,
{
    type State = T::Span;

    fn begin(&self, call: &mut CallScope<'_>) -> Result<T::Span, Rejection> {
        let (kind, parent) = match call.is_at_server() {
            true => (SpanKind::Server, remote_parent(call.metadata())),
            false => {
                let carried = PropagatedContext::current();
                let carried = remote_parent(carried.metadata());
                (
                    SpanKind::Client,
                    carried.or_else(|| Some(Context::current())),
                )
            }
        };
        let span = self
            .tracer
            .span_builder(call.procedure().to_string())
            .with_kind(kind)
            .with_attributes(attributes(call))
            .start_with_context(&self.tracer, &parent.unwrap_or_default());
        if call.is_at_server() || call.protocol() == Protocol::Lean {
            carry_on(call.metadata_mut(), span.span_context());
        }
        Ok(span)
    }

    fn end(&self, mut span: T::Span, call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        if let Some(kind) = outcome.kind() {
            span.set_attributes(error_attributes(kind));
            if !call.is_at_server() || is_servers_fault(kind) {
                span.set_status(Status::error(outcome.to_string()));
            }
        }
        span.end();
    }
}

/// Records how long calls take, as `rpc.client.call.duration` and `rpc.server.call.duration`, in seconds. The buckets
/// begin at 5 us.
#[derive(Debug)]
pub struct OtelMetrics {
    client: Histogram<f64>,
    server: Histogram<f64>,
}

impl OtelMetrics {
    /// Records by this meter.
    pub fn new(meter: &Meter) -> Self {
        let boundaries: Vec<_> = BUCKETS.iter().map(|end| *end as f64 / 1e6).collect();
        let histogram = |name, description| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(boundaries.clone())
                .build()
        };
        Self {
            client: histogram(
                "rpc.client.call.duration",
                "Time from the begin of a call to its outcome at its client",
            ),
            server: histogram(
                "rpc.server.call.duration",
                "Time from the begin of a call to its outcome at its server",
            ),
        }
    }
}

impl Middleware for OtelMetrics {
    type State = ();

    fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        let mut attributes = attributes(call);
        if let Some(kind) = outcome.kind() {
            attributes.extend(error_attributes(kind));
        }
        let histogram = match call.is_at_server() {
            true => &self.server,
            false => &self.client,
        };
        histogram.record(call.started_at().elapsed().as_secs_f64(), &attributes);
    }
}

/// Returns what is said of a call from its begin on.
fn attributes(call: &CallScope<'_>) -> Vec<KeyValue> {
    let system = match call.protocol() {
        Protocol::Onc => "onc_rpc",
        Protocol::Lean => "tenon",
    };
    let procedure = call.procedure();
    let method = match (procedure.name.is_empty(), call.is_at_server()) {
        (false, _) => format!("{}/{}", procedure.service, procedure.name),
        (true, false) => format!("{}/{}", call.program(), procedure.number),
        // A caller may send any number, and is not to have as many series recorded.
        (true, true) => "_OTHER".to_owned(),
    };
    let mut attributes = vec![
        KeyValue::new("rpc.system.name", system),
        KeyValue::new("rpc.method", method),
    ];
    if let Some(address) = call.address() {
        match address.endpoint() {
            Endpoint::Host(host) => {
                attributes.push(KeyValue::new("server.address", host.name.clone()));
                let port = host.port.map(i64::from);
                attributes.extend(port.map(|port| KeyValue::new("server.port", port)));
            }
            _ => attributes.push(KeyValue::new("server.address", address.to_string())),
        }
    }
    attributes
}

fn error_attributes(kind: CallErrorKind) -> [KeyValue; 2] {
    let label = label_of(kind);
    [
        KeyValue::new("rpc.response.status_code", label.clone()),
        KeyValue::new("error.type", label),
    ]
}

/// Returns whether a call that a server did not carry out counts as its error, and not as its caller's.
fn is_servers_fault(kind: CallErrorKind) -> bool {
    matches!(
        kind,
        CallErrorKind::Failed | CallErrorKind::TimedOut | CallErrorKind::Busy
    )
}

/// Returns the context of a span elsewhere that metadata names.
fn remote_parent(metadata: MetadataView<'_>) -> Option<Context> {
    let parent = TraceParent::from_str(metadata.get(Metadata::TRACEPARENT)?).ok()?;
    let state = metadata.get(Metadata::TRACESTATE).unwrap_or_default();
    let context = SpanContext::new(
        parent.trace,
        parent.span,
        parent.flags,
        true,
        TraceState::from_str(state).unwrap_or_default(),
    );
    Some(Context::new().with_remote_span_context(context))
}

/// Puts a span into the metadata of the call that belongs to it.
fn carry_on(metadata: &mut Metadata, span: &SpanContext) {
    if !span.is_valid() {
        return;
    }
    let parent = TraceParent {
        trace: span.trace_id(),
        span: span.span_id(),
        flags: span.trace_flags(),
    };
    // Without room for it the trace ends here; the call goes on.
    let _ = metadata.set(Metadata::TRACEPARENT, parent.to_string());
    let state = span.trace_state().header();
    if !state.is_empty() {
        let _ = metadata.set(Metadata::TRACESTATE, state);
    }
}

/// The value of `traceparent` (W3C Trace Context section 3.2).
#[derive(Debug, PartialEq, Eq)]
struct TraceParent {
    trace: TraceId,
    span: SpanId,
    flags: TraceFlags,
}

impl FromStr for TraceParent {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut fields = text.split('-');
        let mut field = |digits: usize| {
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let field = fields.next().filter(|field| field.len() == digits);
            field.filter(|field| field.bytes().all(is_hex)).ok_or(())
        };
        // A later version has the same fields, and perhaps more behind them; version ff is none.
        let version = field(2)?;
        let (trace, span, flags) = (field(32)?, field(16)?, field(2)?);
        let has_more = fields.next().is_some();
        if version == "ff" || (version == "00" && has_more) {
            return Err(());
        }
        let parent = Self {
            trace: TraceId::from_hex(trace).map_err(drop)?,
            span: SpanId::from_hex(span).map_err(drop)?,
            flags: TraceFlags::new(u8::from_str_radix(flags, 16).map_err(drop)? & 1),
        };
        match parent.trace == TraceId::INVALID || parent.span == SpanId::INVALID {
            true => Err(()),
            false => Ok(parent),
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags.to_u8();
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_as_it_is_written() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent: TraceParent = text.parse().unwrap();
        assert_eq!(parent.to_string(), text);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what";
        assert_eq!(later.parse(), Ok(parent));
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(wrong.parse::<TraceParent>(), Err(()), "{wrong}");
        }
    }
}
