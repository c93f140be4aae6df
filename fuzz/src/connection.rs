//! Connections under fuzzing: what is served over them, and how calls are written.

use std::sync::Arc;
use std::time::Instant;

use tenon_proto::connection::{
    CallDraft, Connection, LeanCall, PushError, ServiceTable, StartError, StartedCall, StreamId,
    TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{ByteOrder, CallStreams, Extras, Interface, MessageDraft, Part};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record;
use tenon_wire::Buffer;

/// Bytes of the largest message that an end accepts.
pub const LIMIT: usize = 64 << 10;

/// Versions 1 and 3 of program 1; the first has a fingerprint.
pub fn services() -> ServiceTable {
    let mut services = ServiceTable::default();
    let first = Interface {
        fingerprint: 0x0101_0101_0101_0101,
        parts: vec![Part {
            name: "point".into(),
            fingerprint: 7,
            layout: 0,
            procedure: 0,
        }],
        ..Interface::unknown(1, 1)
    };
    services.add(1, 1, Some(Arc::new(first)));
    services.add(1, 3, Some(Arc::new(Interface::unknown(1, 3))));
    services
}

/// Starts a call of a version 1 of a program and has it sent. It has these streams if it is a lean one.
///
/// # Errors
/// As [`Connection::start_call`].
pub fn start<W>(
    connection: &mut Connection<W>,
    protocol: WireProtocol,
    (program, procedure): (u32, u16),
    streams: CallStreams,
    arguments: &[u8],
    (deadline, waiter): (Instant, W),
) -> Result<StartedCall, StartError> {
    let mut message = Buffer::default();
    let interface = Arc::new(Interface::unknown(program, 1));
    let draft = match protocol {
        WireProtocol::Onc => {
            let template = CallTemplate::new(program, 1, &Credential::None);
            template.begin(&mut message, procedure.into());
            message.extend(arguments);
            record::seal(&mut message, 0, record::FRAGMENT_MAX);
            CallDraft::Onc
        }
        WireProtocol::Lean => {
            let extras = Extras {
                streams,
                ..Extras::default()
            };
            let draft = MessageDraft::call(&mut message, ByteOrder::NATIVE, procedure, &extras);
            message.extend(arguments);
            draft.seal(&mut message);
            CallDraft::Lean(LeanCall {
                draft,
                interface: &interface,
                procedure,
            })
        }
    };
    let call = connection.start_call(&draft, &mut message, deadline, waiter)?;
    connection.push_call(&call, &mut message);
    Ok(call)
}

/// Has an item of a stream sent.
///
/// # Errors
/// As [`Connection::push_item`]; of a long item some parts may be on their way.
pub fn push_item<W>(
    connection: &mut Connection<W>,
    id: StreamId,
    item: &[u8],
) -> Result<(), PushError> {
    let mut message = Buffer::default();
    let draft = connection.item_draft(id);
    draft.begin(&mut message);
    message.extend(item);
    if draft.seal(&mut message) {
        return connection.push_item(id, &mut message);
    }
    let mut rest = item;
    while !rest.is_empty() {
        let mut part = Buffer::default();
        rest = &rest[draft.split(rest, &mut part)..];
        connection.push_item(id, &mut part)?;
    }
    Ok(())
}

/// Takes out all that a connection has to send.
pub fn transmit_all<W>(connection: &mut Connection<W>) -> Vec<u8> {
    let mut all = Vec::new();
    let mut batch = TransmitBatch::default();
    while connection.poll_transmit(&mut batch) {
        assert!(connection.queued_bytes() > 0 || batch.remaining() > 0);
        let bytes = batch.slices().concat();
        assert!(!bytes.is_empty(), "a batch says something");
        batch.advance(bytes.len());
        connection.handle_transmitted(&mut batch);
        all.extend(bytes);
    }
    all
}
