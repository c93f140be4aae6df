//! Two ends of a connection and the stream between them.

use std::sync::Arc;
use std::time::Instant;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    CallDraft, Caller, Connection, ConnectionError, LeanCall, ReplyDraft, ServiceTable, StartError,
    StartedCall, TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{Extras, Interface, MessageDraft};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record;
use tenon_wire::Buffer;

/// The program that both ends serve.
pub const PROGRAM: u32 = 0x2000_0001;

/// The number of the client's first call.
pub const FIRST_CALL: u32 = 1;

/// One end of a connection. `W` is what it finds the waiter of a call by.
pub struct End<W = u32> {
    pub connection: Connection<W>,
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
pub fn pair<W>(
    protocol: WireProtocol,
    client: ConnectionConfig,
    server: ConnectionConfig,
) -> (End<W>, End<W>) {
    let (connection, receiver) = Connection::client(client.clone(), protocol, FIRST_CALL);
    let first = End::new(connection, receiver, client, false);
    let (connection, receiver) = Connection::server(server.clone());
    (first, End::new(connection, receiver, server, true))
}

impl<W> End<W> {
    fn new(
        connection: Connection<W>,
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

    /// Starts a call of procedure 1 of its own service and has it sent.
    pub fn call(
        &mut self,
        protocol: WireProtocol,
        arguments: &[u8],
        deadline: Instant,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        match protocol {
            WireProtocol::Onc => {
                let template = self.template.clone();
                self.call_onc(&template, 1, arguments, deadline, waiter)
            }
            WireProtocol::Lean => {
                let interface = Arc::clone(&self.interface);
                let extras = Extras::default();
                self.call_lean((&interface, 1), arguments, &extras, deadline, waiter)
            }
        }
    }

    /// Starts a call of ONC RPC and has it sent.
    pub fn call_onc(
        &mut self,
        template: &CallTemplate,
        procedure: u32,
        arguments: &[u8],
        deadline: Instant,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        let mut message = Buffer::default();
        template.begin(&mut message, procedure);
        message.extend(arguments);
        record::seal(&mut message, 0, self.config.fragment_max);
        self.start(&CallDraft::Onc, message, deadline, waiter)
    }

    /// Starts a call of the lean protocol and has it sent.
    pub fn call_lean(
        &mut self,
        (interface, procedure): (&Arc<Interface>, u16),
        arguments: &[u8],
        extras: &Extras<'_>,
        deadline: Instant,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        let extras = Extras {
            reverse: self.is_server,
            ..*extras
        };
        let mut message = Buffer::default();
        let order = self.config.byte_order;
        let draft = MessageDraft::call(&mut message, order, procedure, &extras);
        message.extend(arguments);
        draft.seal(&mut message);
        let draft = CallDraft::Lean(LeanCall {
            draft,
            interface,
            procedure,
        });
        self.start(&draft, message, deadline, waiter)
    }

    fn start(
        &mut self,
        draft: &CallDraft<'_>,
        mut message: Buffer,
        deadline: Instant,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        let connection = &mut self.connection;
        let call = connection.start_call(draft, &mut message, deadline, waiter)?;
        connection.push_call(&call, &mut message);
        assert!(message.is_empty());
        Ok(call)
    }

    /// Writes a reply with these results.
    pub fn reply(caller: Caller, results: &[u8]) -> Buffer {
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
