//! Calls over datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, LeanCall, ReplyDraft, ServiceTable};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::{ClientEndpoint, DATAGRAM_SIZE_MAX, Retransmission, ServerEndpoint};
use tenon_proto::exchange::ReassembledMessage;
use tenon_proto::exchange::client::{ClientLimits, ClientSecrets};
use tenon_proto::exchange::server::{ServerLimits, ServerSecrets};
use tenon_proto::lean::{ByteOrder, Extras, Interface, MessageDraft, Preamble};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

use crate::{is_free, turn};

struct Ends {
    now: Instant,
    client: ClientEndpoint<u32>,
    server: ServerEndpoint<SocketAddr>,
    services: ServiceTable,
    interface: Arc<Interface>,
    template: CallTemplate,
    address: SocketAddr,
    call: Buffer,
    reply: Buffer,
    wire: Buffer,
    whole: ReassembledMessage,
    packets: usize,
    answers: usize,
}

impl Ends {
    fn new(client: ClientEndpoint<u32>) -> Self {
        let now = Instant::now();
        let interface = Arc::new(Interface::unknown(300, 1));
        let mut services = ServiceTable::default();
        services.add(300, 1, Some(Arc::clone(&interface)));
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let duplicates = DuplicateLimits {
            // It is full before calls are counted, so that they make others fall out of it.
            bytes: 8192,
            ..DuplicateLimits::default()
        };
        let config = ConnectionConfig::server();
        let limits = ServerLimits::default();
        Self {
            now,
            client,
            server: ServerEndpoint::new(
                &config,
                limits,
                duplicates,
                secrets,
                Some(DATAGRAM_SIZE_MAX),
                now,
            ),
            services,
            interface,
            template: CallTemplate::new(300, 1, &Credential::None),
            address: SocketAddr::from(([10, 0, 0, 1], 1)),
            call: Buffer::default(),
            reply: Buffer::default(),
            wire: Buffer::default(),
            whole: ReassembledMessage::new(&Preamble::client(0)),
            packets: 0,
            answers: 0,
        }
    }

    fn call(&mut self, extras: &Extras<'_>) {
        self.call.clear();
        let draft = if self.client.is_exchange() {
            let draft = MessageDraft::call(&mut self.call, ByteOrder::NATIVE, 7, extras);
            self.call.extend(&[1; 200]);
            draft.seal(&mut self.call);
            CallDraft::Lean(LeanCall {
                draft,
                interface: &self.interface,
                procedure: 7,
            })
        } else {
            self.template.begin(&mut self.call, 7);
            self.call.extend(&[1; 200]);
            CallDraft::Onc
        };
        let deadline = self.now + Duration::from_secs(1);
        let started = self
            .client
            .start_call(self.now, &draft, &mut self.call, deadline, 7);
        started.unwrap();
        self.carry();
        self.now += Duration::from_micros(20);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn carry(&mut self) {
        loop {
            self.wire.clear();
            if self.client.poll_transmit(self.now, &mut self.wire) {
                self.packets += 1;
                self.serve();
            } else if self
                .server
                .poll_transmit(self.now, &mut self.wire)
                .is_some()
            {
                self.packets += 1;
                let datagram = self.wire.as_slice();
                let client = &mut self.client;
                let answer = client.handle_datagram(self.now, datagram, &mut self.whole);
                if let Some(answer) = answer {
                    assert_eq!(answer.outcome.unwrap().len(), 100);
                    self.answers += 1;
                }
            } else {
                return;
            }
        }
    }

    fn serve(&mut self) {
        let call = self.server.handle_datagram(
            self.now,
            self.address,
            self.wire.as_slice(),
            &self.services,
            &mut self.whole,
        );
        let Some(call) = call else { return };
        assert_eq!(call.call.arguments, [1; 200]);
        let (key, caller) = (call.key, call.call.caller);
        self.reply.clear();
        let draft = ReplyDraft::begin(&mut self.reply, caller);
        self.reply.extend(&[2; 100]);
        draft.seal(&mut self.reply);
        let answered = self.server.answer(self.now, key, &mut self.reply);
        answered.unwrap();
    }
}

fn exchange() -> ClientEndpoint<u32> {
    let (key, seed) = ([2; 16], 2);
    let secrets = ClientSecrets { key, seed };
    ClientEndpoint::exchange(
        &ConnectionConfig::client(),
        ClientLimits::default(),
        secrets,
    )
}

#[test]
fn a_warm_call_allocates_nothing_and_is_two_packets() {
    let _turn = turn();
    let timed = Extras {
        time_left: Some(Duration::from_secs(1)),
        ..Extras::default()
    };
    let onc = ClientEndpoint::onc(0, Retransmission::default());
    let cases = [
        (onc, Extras::default()),
        (exchange(), Extras::default()),
        (exchange(), timed),
    ];
    for (client, extras) in cases {
        let mut ends = Ends::new(client);
        ends.call(&extras);
        (ends.packets, ends.answers) = (0, 0);
        let mut calls = 0;
        let is_free = is_free(|| {
            calls += 1;
            ends.call(&extras);
        });
        assert!(is_free, "{extras:?}");
        assert_eq!((ends.packets, ends.answers), (2 * calls, calls));
    }
}
