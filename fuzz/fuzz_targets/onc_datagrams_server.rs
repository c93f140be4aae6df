//! What the server's end of a socket for datagrams makes of any message of ONC RPC: each of its answers is a reply that
//! a client understands, and a call that comes again is not carried out again.
#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::connection::services;
use tenon_proto::config::{ConnectionConfig, Role};
use tenon_proto::connection::ReplyDraft;
use tenon_proto::endpoint::exchange::ReassembledMessage;
use tenon_proto::endpoint::exchange::server::{ServerLimits, ServerSecrets};
use tenon_proto::endpoint::{DATAGRAM_SIZE_MAX, DuplicateLimits, ServerEndpoint};
use tenon_proto::onc::message::{ReplyBody, ReplyHeader};
use tenon_wire::{Buffer, Decoder};

/// Whence messages come: two sockets of a host.
const PEERS: [([u8; 4], u16); 2] = [([192, 0, 2, 1], 1), ([192, 0, 2, 1], 2)];

fuzz_target!(|data: &[u8]| {
    let [how, body @ ..] = data else {
        return;
    };
    let beginning = [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1];
    let message = match how % 2 {
        0 => [&beginning, body].concat(),
        _ => body.to_vec(),
    };
    let mut server = Server::new();
    let begun = server.receive(0, &message, true);
    let first = server.answers(0);
    assert!(first.len() <= 1);
    if begun {
        assert_eq!(first.len(), 1, "a call is answered");
        // The same call again, and from another socket: of the second the server knows nothing.
        assert!(!server.receive(0, &message, true), "carried out twice");
        assert_eq!(server.answers(0), first);
        assert!(server.receive(1, &message, false));
        assert!(!server.receive(1, &message, false), "it is carried out");
        assert!(server.answers(1).is_empty());
    }
});

struct Server {
    endpoint: ServerEndpoint<std::net::SocketAddr>,
    whole: ReassembledMessage,
    now: Instant,
}

impl Server {
    fn new() -> Self {
        let now = Instant::now();
        let config = ConnectionConfig::server();
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let duplicates = DuplicateLimits {
            // Room for the longest reply.
            bytes: 256 << 10,
            ..DuplicateLimits::default()
        };
        let limits = ServerLimits::default();
        Self {
            endpoint: ServerEndpoint::new(
                &config,
                limits,
                duplicates,
                secrets,
                Some(DATAGRAM_SIZE_MAX),
                now,
            ),
            whole: ReassembledMessage::of(&config, Role::Server),
            now,
        }
    }

    /// Receives a message; returns whether it is a call to be carried out, which is answered if it `answers`.
    fn receive(&mut self, peer: usize, message: &[u8], answers: bool) -> bool {
        let services = services();
        let (now, from) = (self.now, PEERS[peer].into());
        let endpoint = &mut self.endpoint;
        let Some(found) = endpoint.handle_datagram(now, from, message, &services, &mut self.whole)
        else {
            return false;
        };
        let call = found.call;
        assert!(call.service < 2 && call.procedure != 0);
        assert!(message.ends_with(call.arguments));
        if answers {
            let mut reply = Buffer::default();
            let draft = ReplyDraft::begin(&mut reply, call.caller);
            reply.extend(call.arguments);
            draft.seal(&mut reply);
            let key = found.key;
            // A reply that is too large is one, too.
            let _ = self.endpoint.answer(now, key, &mut reply);
        }
        true
    }

    /// Returns all that is answered, which goes to the peer that has asked.
    fn answers(&mut self, peer: usize) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        let mut out = Buffer::default();
        while let Some(to) = self.endpoint.poll_transmit(self.now, &mut out) {
            assert_eq!(to, PEERS[peer].into());
            let header = ReplyHeader::decode(&mut Decoder::new(out.as_slice()));
            let header = header.expect("a reply that a client understands");
            if let ReplyBody::Refused(refused) = header.body {
                assert!(!refused.to_string().is_empty());
            }
            answers.push(out.as_slice().to_vec());
            out.clear();
        }
        answers
    }
}
