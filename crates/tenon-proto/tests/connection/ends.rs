//! Two ends of a connection and the stream between them.

use std::sync::Arc;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    CallDraft, Connection, ConnectionError, LeanCall, ReplyDraft, ServiceTable, StartError,
    StartedCall, TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{Extras, Interface, MessageDraft};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record;
use tenon_wire::Buffer;

use std::time::Instant;

/// The program that both ends serve.
pub const PROGRAM: u32 = 0x2000_0001;

/// One end of a connection.
pub struct End {
    pub connection: Connection<u32>,
    pub receiver: Receiver,
    pub services: ServiceTable,
    pub config: ConnectionConfig,
    pub interface: Arc<Interface>,
    template: CallTemplate,
    batch: TransmitBatch,
    /// Whether this end has accepted the connection.
    pub is_server: bool,
}

/// Both ends of a connection that was just made: the client and the server.
pub fn pair(
    protocol: WireProtocol,
    client: ConnectionConfig,
    server: ConnectionConfig,
) -> (End, End) {
    let (connection, receiver) = Connection::client(client.clone(), protocol, 0x5eed);
    let first = End::new(connection, receiver, client, false);
    let (connection, receiver) = Connection::server(server.clone());
    (first, End::new(connection, receiver, server, true))
}

impl End {
    fn new(
        connection: Connection<u32>,
        receiver: Receiver,
        config: ConnectionConfig,
        is_server: bool,
    ) -> Self {
        let interface = Arc::new(Interface::unknown(PROGRAM, 1));
        let mut services = ServiceTable::default();
        services.add(PROGRAM, 1, Some(Arc::clone(&interface)));
        Self {
            connection,
            receiver,
            services,
            config,
            interface,
            template: CallTemplate::new(PROGRAM, 1, &Credential::None),
            batch: TransmitBatch::default(),
            is_server,
        }
    }

    /// Starts a call of procedure 1 and has it sent.
    pub fn call(
        &mut self,
        protocol: WireProtocol,
        arguments: &[u8],
        deadline: Instant,
        waiter: u32,
    ) -> Result<StartedCall, StartError> {
        let mut message = Buffer::default();
        let draft = match protocol {
            WireProtocol::Onc => {
                self.template.begin(&mut message, 1);
                message.extend(arguments);
                record::seal(&mut message, 0, self.config.fragment_max);
                CallDraft::Onc
            }
            WireProtocol::Lean => {
                let extras = Extras {
                    reverse: self.is_server,
                    ..Extras::default()
                };
                let order = self.config.byte_order;
                let draft = MessageDraft::call(&mut message, order, 1, &extras);
                message.extend(arguments);
                draft.seal(&mut message);
                CallDraft::Lean(LeanCall {
                    draft,
                    interface: &self.interface,
                    procedure: 1,
                })
            }
        };
        let call = self
            .connection
            .start_call(&draft, &mut message, deadline, waiter)?;
        self.connection.push_call(&call, &mut message);
        assert!(message.is_empty());
        Ok(call)
    }

    /// Writes a reply with these results.
    pub fn reply(caller: tenon_proto::connection::Caller, results: &[u8]) -> Buffer {
        let mut reply = Buffer::default();
        let draft = ReplyDraft::begin(&mut reply, caller);
        reply.extend(results);
        draft.seal(&mut reply);
        reply
    }

    /// Takes out what is to be sent next, at most one batch.
    pub fn transmit(&mut self) -> Vec<u8> {
        if !self.connection.poll_transmit(&mut self.batch) {
            return Vec::new();
        }
        let bytes = self.batch.slices().concat();
        assert_eq!(bytes.len(), self.batch.remaining());
        self.batch.advance(bytes.len());
        self.connection.handle_transmitted(&mut self.batch);
        bytes
    }

    /// Takes out all that is to be sent.
    pub fn transmit_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let bytes = self.transmit();
            if bytes.is_empty() {
                return all;
            }
            all.extend(bytes);
        }
    }

    /// Receives some of `bytes`; returns how many.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<usize, ConnectionError> {
        let room = self.receiver.room();
        let step = room.len().min(bytes.len());
        room[..step].copy_from_slice(&bytes[..step]);
        self.receiver.handle_received(step)?;
        if self.receiver.has_layer() {
            self.connection.handle_layer_input(&mut self.receiver)?;
        }
        Ok(step)
    }
}
