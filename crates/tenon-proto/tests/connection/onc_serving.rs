//! The called end of ONC RPC: which calls reach a service, which are refused and how exactly, and which are not
//! answered.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{
    Connection, ConnectionError, Event, IncomingCall, IncomingCounters, ServiceTable, TransmitBatch,
};
use tenon_proto::onc::auth::{AuthStat, AuthSys, Credential};
use tenon_proto::onc::message::{Refused, Violation};
use tenon_proto::onc::reply::OncReplyDraft;
use tenon_wire::Buffer;

use crate::common::{Random, words};
use crate::pair::Pair;

/// A server of program 300 in the versions 2 and 5, and of program 400 in version 1.
struct Server {
    connection: Connection<()>,
    services: ServiceTable,
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It reaches the service of this index.
    Called { service: usize, procedure: u32 },
    /// It is answered.
    Answered(Vec<u8>),
    /// It is not answered, and the connection goes on.
    Ignored,
    /// It is not answered, and the connection ends.
    Unanswerable(Violation),
}

impl Server {
    fn new() -> Self {
        let mut services = ServiceTable::default();
        for (index, (program, version)) in [(300, 5), (300, 2), (400, 1)].into_iter().enumerate() {
            assert_eq!(services.add(program, version, None), Some(index));
        }
        let (connection, _) = Connection::server(ConnectionConfig::server());
        Self {
            connection,
            services,
        }
    }

    fn call<'m>(&mut self, message: &'m [u8]) -> IncomingCall<'m> {
        let frame = Frame::Record(message);
        match self.connection.handle_frame(frame, &self.services) {
            Ok(Event::Called(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, message: &[u8]) -> Outcome {
        let frame = Frame::Record(message);
        match self.connection.handle_frame(frame, &self.services) {
            Ok(Event::Called(call)) => Outcome::Called {
                service: call.service,
                procedure: call.procedure,
            },
            Ok(Event::Handled) => self.answer(),
            Err(ConnectionError::Onc(violation)) => Outcome::Unanswerable(violation),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self) -> Outcome {
        let mut batch = TransmitBatch::default();
        if !self.connection.poll_transmit(&mut batch) {
            return Outcome::Ignored;
        }
        let sent = batch.slices().concat();
        self.connection.handle_transmitted(&mut batch);
        let mark = 0x8000_0000 | (sent.len() - 4) as u32;
        assert_eq!(sent[..4], mark.to_be_bytes(), "one fragment");
        Outcome::Answered(sent[4..].to_vec())
    }
}

/// What becomes of a message of these words.
fn outcome(message: &[u32]) -> Outcome {
    Server::new().take(&words(message))
}

fn refused(refused: Refused) -> Outcome {
    let mut reply = Buffer::default();
    let _ = OncReplyDraft::begin(&mut reply, 9).refuse(&mut reply, refused);
    Outcome::Answered(reply.as_slice()[4..].to_vec())
}

fn denied(stat: AuthStat) -> Outcome {
    refused(Refused::Authentication(stat))
}

#[test]
fn a_call_reaches_its_service_with_its_arguments() {
    let message = words(&[9, 0, 2, 300, 2, 7, 0, 0, 0, 0, 0xaaaa, 0xbbbb]);
    let mut server = Server::new();
    let call = server.call(&message);
    assert_eq!((call.service, call.procedure), (1, 7));
    assert_eq!(call.caller.number(), 9);
    assert_eq!(call.credential, Credential::None);
    assert_eq!((call.time_left, call.wants_stamps), (None, false));
    let arguments = call.arguments.as_ptr_range();
    assert_eq!(arguments, message[40..].as_ptr_range());
}

#[test]
fn an_auth_sys_caller_is_known() {
    let mut message = words(&[9, 0, 2, 400, 1, 1, 1, 28, 3, 2, 0x6d65_0000, 10, 20, 1, 30]);
    message.extend(words(&[0, 0, 0xcccc]));
    let mut server = Server::new();
    let call = server.call(&message);
    let sys = AuthSys::new(b"me", 10, 20, &[30]).unwrap().with_stamp(3);
    assert_eq!(call.credential, Credential::Sys(sys));
    assert_eq!(call.arguments, words(&[0xcccc]));
}

#[test]
fn procedure_0_is_answered_in_every_version_that_is_there() {
    for (program, version) in [(300, 2), (300, 5), (400, 1)] {
        let answer = outcome(&[9, 0, 2, program, version, 0, 0, 0, 0, 0]);
        assert_eq!(answer, Outcome::Answered(words(&[9, 1, 0, 0, 0, 0])));
    }
}

#[test]
fn another_version_of_rpc_is_refused_before_anything_else_is_looked_at() {
    let mismatch = || refused(Refused::RpcMismatch { low: 2, high: 2 });
    for version in [0, 1, 3, u32::MAX] {
        assert_eq!(outcome(&[9, 0, version]), mismatch());
        assert_eq!(outcome(&[9, 0, version, 1, 1, 1, 99, 999]), mismatch());
    }
}

#[test]
fn an_unknown_program_and_an_unknown_version_are_told_apart() {
    let call = |program, version| outcome(&[9, 0, 2, program, version, 1, 0, 0, 0, 0]);
    assert_eq!(call(301, 2), refused(Refused::ProgramUnavailable));
    for version in [0, 1, 3, 4, 6, u32::MAX] {
        let (low, high) = (2, 5);
        let mismatch = Refused::ProgramMismatch { low, high };
        assert_eq!(call(300, version), refused(mismatch));
    }
    let (low, high) = (1, 1);
    let mismatch = Refused::ProgramMismatch { low, high };
    assert_eq!(call(400, 2), refused(mismatch));
    let ping = outcome(&[9, 0, 2, 300, 0, 0, 0, 0, 0, 0]);
    let mismatch = Refused::ProgramMismatch { low: 2, high: 5 };
    assert_eq!(ping, refused(mismatch), "as rpcinfo asks");
}

#[test]
fn a_bad_credential_is_refused_and_the_connection_goes_on() {
    let too_long = [&[9, 0, 2, 300, 2, 1, 1, 401][..], &[0; 110]].concat();
    let cut_short = [9, 0, 2, 300, 2, 1, 0, 8, 0];
    let missing = [9, 0, 2, 300, 2, 1];
    let mut server = Server::new();
    for message in [&too_long[..], &cut_short, &missing] {
        assert_eq!(server.take(&words(message)), denied(AuthStat::BAD_CRED));
    }
    let good = words(&[9, 0, 2, 300, 2, 1, 0, 0, 0, 0]);
    let (service, procedure) = (1, 1);
    let called = Outcome::Called { service, procedure };
    assert_eq!(server.take(&good), called);
}

#[test]
fn a_malformed_auth_sys_body_is_a_bad_credential() {
    let bodies: [&[u32]; 5] = [
        &[],
        &[0, 0, 10, 20],
        &[0, 0, 10, 20, 1],
        &[[0, 0, 10, 20, 17].as_slice(), &[0; 17]].concat(),
        &[[0, 256].as_slice(), &[0; 64], &[10, 20, 0]].concat(),
    ];
    for body in bodies {
        let head = [9, 0, 2, 300, 2, 1, 1, body.len() as u32 * 4];
        let message = [&head, body, &[0, 0]].concat();
        assert_eq!(outcome(&message), denied(AuthStat::BAD_CRED), "{body:?}");
    }
}

#[test]
fn a_flavor_that_is_not_served_is_rejected_even_for_a_ping() {
    for flavor in [2, 3, 6, 390_000] {
        for procedure in [0, 1] {
            let message = [9, 0, 2, 300, 2, procedure, flavor, 4, 0, 0, 0];
            assert_eq!(outcome(&message), denied(AuthStat::REJECTED_CRED));
        }
    }
}

#[test]
fn a_bad_verifier_is_refused_and_any_good_one_accepted() {
    let too_long = [&[9, 0, 2, 300, 2, 1, 0, 0, 0, 401][..], &[0; 110]].concat();
    assert_eq!(outcome(&too_long), denied(AuthStat::BAD_VERF));
    let missing = [9, 0, 2, 300, 2, 1, 0, 0, 0];
    assert_eq!(outcome(&missing), denied(AuthStat::BAD_VERF));
    let message = words(&[9, 0, 2, 300, 2, 1, 0, 0, 7, 5, 0, 0]);
    assert_eq!(Server::new().call(&message).arguments, b"");
}

#[test]
fn the_credential_is_judged_before_the_program() {
    let message = [9, 0, 2, 999, 2, 1, 6, 0, 0, 0];
    assert_eq!(outcome(&message), denied(AuthStat::REJECTED_CRED));
}

#[test]
fn a_message_that_is_no_call_or_too_short_for_one_is_not_answered() {
    let call = words(&[9, 0, 2, 300, 2, 1]);
    for end in 0..call.len() {
        let expected = Outcome::Unanswerable(Violation::Truncated(end / 4 * 4));
        assert_eq!(Server::new().take(&call[..end]), expected);
    }
    let neither = Outcome::Unanswerable(Violation::NotACall(2));
    assert_eq!(outcome(&[9, 2]), neither);
}

/// The server may call its client, too: a reply may be one to a call that was given up.
#[test]
fn a_reply_at_an_end_that_has_never_called_is_no_call() {
    let reply = [9, 1, 0, 0, 0, 0];
    let no_call = Outcome::Unanswerable(Violation::NotACall(1));
    assert_eq!(outcome(&reply), no_call);
}

/// A call with an AUTH_SYS credential and without arguments.
fn sys_call() -> Vec<u8> {
    let name = [6, 0x6d61_6368, 0x696e_0000];
    let credential = [&[1, 40, 3][..], &name, &[10, 20, 3, 30, 31, 32]].concat();
    words(&[&[9, 0, 2, 400, 1, 1], &credential[..], &[0, 0]].concat())
}

#[test]
fn a_call_that_is_cut_off_behind_its_procedure_is_refused() {
    let call = sys_call();
    assert!(matches!(
        Server::new().take(&call),
        Outcome::Called { service: 2, .. }
    ));
    for end in 24..call.len() {
        let in_verifier = end >= call.len() - 8;
        let stat = if in_verifier {
            AuthStat::BAD_VERF
        } else {
            AuthStat::BAD_CRED
        };
        let cut = Server::new().take(&call[..end]);
        assert_eq!(cut, denied(stat), "cut at {end}");
    }
}

#[test]
fn a_call_with_any_wrong_byte_is_served_or_refused_or_not_answered() {
    let mut random = Random(8);
    let mut call = sys_call();
    for at in 0..call.len() {
        for _ in 0..100 {
            let byte = std::mem::replace(&mut call[at], random.next() as u8);
            match Server::new().take(&call) {
                Outcome::Called { service, .. } => assert_eq!(service, 2),
                Outcome::Answered(answer) => assert_eq!(answer[..4], call[..4]),
                // Its type is another.
                Outcome::Unanswerable(_) | Outcome::Ignored => assert!((4..8).contains(&at)),
            }
            call[at] = byte;
        }
    }
}

#[test]
fn what_is_done_with_calls_is_counted() {
    let messages: [&[u32]; 5] = [
        &[9, 0, 2, 300, 2, 1, 0, 0, 0, 0],
        &[9, 0, 2, 300, 2, 0, 0, 0, 0, 0],
        &[9, 0, 3],
        &[9, 0, 3],
        &[9],
    ];
    let mut server = Server::new();
    for message in messages {
        server.take(&words(message));
    }
    let expected = IncomingCounters {
        calls: 1,
        pings: 1,
        refusals: 2,
        cancellations: 0,
        violations: 0,
    };
    assert_eq!(server.connection.incoming_counters(), expected);
    // The last has ended the connection, of which the driver says whose fault it was.
    server.connection.count_violation();
    assert_eq!(server.connection.incoming_counters().violations, 1);
}

#[test]
fn replies_are_cut_into_fragments_of_the_configured_size() {
    let config = ConnectionConfig {
        fragment_max: 16,
        ..ConnectionConfig::server()
    };
    let (mut connection, _) = Connection::<()>::server(config);
    let mut services = ServiceTable::default();
    services.add(300, 2, None);
    let mut batch = TransmitBatch::default();
    for program in [300, 301] {
        let ping = words(&[9, 0, 2, program, 2, 0, 0, 0, 0, 0]);
        connection
            .handle_frame(Frame::Record(&ping), &services)
            .unwrap();
        assert!(connection.poll_transmit(&mut batch));
        let sent = batch.slices().concat();
        assert_eq!(sent[..4], 16_u32.to_be_bytes());
        assert_eq!(sent[20..24], 0x8000_0008_u32.to_be_bytes());
        assert_eq!(sent.len(), 32);
        connection.handle_transmitted(&mut batch);
    }
}

/// Both ends may call each other over one connection (RFC 8166 and NFS do it).
#[test]
fn a_client_that_takes_calls_serves_its_server() {
    let order = tenon_proto::lean::ByteOrder::NATIVE;
    let client = ConnectionConfig {
        incoming_calls_max: 4,
        ..crate::pair::client_config(order)
    };
    let protocol = tenon_proto::connection::WireProtocol::Onc;
    let mut pair = Pair::new(protocol, client, crate::pair::server_config(order));
    pair.call_onc(b"forth", "forth");
    let call = pair.serve().remove(0);
    pair.answer(call.caller, &call.arguments);
    assert_eq!(pair.take_answers(), ["forth: forth"]);
    let template = tenon_proto::onc::message::CallTemplate::new(400, 1, &Credential::None);
    let deadline = pair.now + crate::pair::SECOND;
    let server = &mut pair.server;
    let call = server.call_onc(&template, 1, b"back", deadline, "back");
    call.unwrap();
    let calls = crate::pair::carry(&mut pair.server, &mut pair.client).calls;
    assert_eq!(
        (calls[0].service, &calls[0].arguments[..]),
        (2, &b"back"[..])
    );
    crate::pair::answer(&mut pair.client, calls[0].caller, b"done");
    let told = crate::pair::carry(&mut pair.client, &mut pair.server).told;
    assert_eq!(told, ["back: done"]);
}
