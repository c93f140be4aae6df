//! The bytes of calls and replies (RFC 5531 section 9, appendix A).

use crate::common::{Random, words};
use tenon_proto::onc::auth::{AuthFlavor, AuthStat, AuthSys, Credential, OpaqueAuth};
use tenon_proto::onc::message::{
    CallHeader, CallTemplate, Refused, ReplyBody, ReplyHeader, Violation, set_xid,
};
use tenon_proto::onc::record;
use tenon_wire::{Buffer, Decoder, Encoder};

fn call_bytes(header: &CallHeader<'_>) -> Vec<u8> {
    let mut buffer = Buffer::default();
    header.encode(&mut Encoder::new(&mut buffer));
    buffer.as_slice().to_vec()
}

fn reply_bytes(header: &ReplyHeader<'_>) -> Vec<u8> {
    let mut buffer = Buffer::default();
    header.encode(&mut Encoder::new(&mut buffer));
    buffer.as_slice().to_vec()
}

fn reply_of(bytes: &[u8]) -> Result<ReplyHeader<'_>, Violation> {
    ReplyHeader::decode(&mut Decoder::new(bytes))
}

/// xid, CALL, rpcvers 2, program, version, procedure, credential, verifier.
const PLAIN_CALL: [u32; 10] = [0x0102_0304, 0, 2, 100_003, 3, 7, 0, 0, 0, 0];

#[test]
fn a_call_without_a_credential_is_ten_words() {
    let header = CallHeader {
        xid: 0x0102_0304,
        program: 100_003,
        version: 3,
        procedure: 7,
        credential: OpaqueAuth::NONE,
        verifier: OpaqueAuth::NONE,
    };
    let bytes = words(&PLAIN_CALL);
    assert_eq!(call_bytes(&header), bytes);
    assert_eq!(CallHeader::decode(&mut Decoder::new(&bytes)), Ok(header));
}

#[test]
fn a_template_writes_the_same_call_behind_room_for_its_mark() {
    let template = CallTemplate::new(100_003, 3, &Credential::None);
    let mut buffer = Buffer::default();
    buffer.extend(b"of the call before");
    template.begin(&mut buffer, 7);
    set_xid(&mut buffer, 0x0102_0304);
    assert_eq!(record::message(&buffer), words(&PLAIN_CALL));
}

#[test]
fn an_auth_sys_credential_has_the_layout_of_appendix_a() {
    let sys = AuthSys::new(b"tenon", 1000, 100, &[4, 24])
        .unwrap()
        .with_stamp(0xfeed);
    let template = CallTemplate::new(300, 1, &Credential::Sys(sys));
    let mut buffer = Buffer::default();
    template.begin(&mut buffer, 2);
    set_xid(&mut buffer, 9);
    let expected = words(&[
        9,
        0,
        2,
        300,
        1,
        2, // the call
        1,
        36,
        0xfeed,
        5,
        0x7465_6e6f,
        0x6e00_0000,
        1000,
        100,
        2,
        4,
        24, // AUTH_SYS
        0,
        0, // the verifier
    ]);
    assert_eq!(record::message(&buffer), expected);

    let call = CallHeader::decode(&mut Decoder::new(&expected)).unwrap();
    assert_eq!(call.credential.flavor(), AuthFlavor::SYS);
    assert_eq!(
        Credential::from_opaque(call.credential),
        Ok(Credential::Sys(sys))
    );
}

#[test]
fn a_credential_over_the_bounds_of_appendix_a_is_refused() {
    let groups = [7; 17];
    let name = [b'n'; 256];
    let largest = AuthSys::new(&name[..255], 1, 2, &groups[..16]).unwrap();
    let mut buffer = Buffer::default();
    Credential::Sys(largest).encode(&mut Encoder::new(&mut buffer));
    let auth = OpaqueAuth::decode(&mut Decoder::new(buffer.as_slice())).unwrap();
    assert_eq!(Credential::from_opaque(auth), Ok(Credential::Sys(largest)));

    assert!(AuthSys::new(&name, 1, 2, &[]).is_err());
    assert!(AuthSys::new(b"", 1, 2, &groups).is_err());
    assert!(OpaqueAuth::new(AuthFlavor(6), &[0; 400]).is_ok());
    assert!(OpaqueAuth::new(AuthFlavor(6), &[0; 401]).is_err());
}

#[test]
fn every_reply_has_the_bytes_of_section_9() {
    let bad = |stat| ReplyBody::Refused(Refused::Authentication(stat));
    let verifier = OpaqueAuth::new(AuthFlavor::SHORT, b"abcde").unwrap();
    let table: [(ReplyBody<'_>, &[u32]); 10] = [
        (ReplyBody::Success(OpaqueAuth::NONE), &[0, 0, 0, 0]),
        (
            ReplyBody::Success(verifier),
            &[0, 2, 5, 0x6162_6364, 0x6500_0000, 0],
        ),
        (
            ReplyBody::Refused(Refused::ProgramUnavailable),
            &[0, 0, 0, 1],
        ),
        (
            ReplyBody::Refused(Refused::ProgramMismatch { low: 2, high: 4 }),
            &[0, 0, 0, 2, 2, 4],
        ),
        (
            ReplyBody::Refused(Refused::ProcedureUnavailable),
            &[0, 0, 0, 3],
        ),
        (ReplyBody::Refused(Refused::GarbageArguments), &[0, 0, 0, 4]),
        (ReplyBody::Refused(Refused::SystemError), &[0, 0, 0, 5]),
        (
            ReplyBody::Refused(Refused::RpcMismatch { low: 2, high: 2 }),
            &[1, 0, 2, 2],
        ),
        (bad(AuthStat::TOO_WEAK), &[1, 1, 5]),
        (bad(AuthStat(77)), &[1, 1, 77]),
    ];
    for (body, tail) in table {
        let header = ReplyHeader { xid: 8, body };
        let bytes = words(&[&[8, 1], tail].concat());
        assert_eq!(reply_bytes(&header), bytes, "{body:?}");
        assert_eq!(reply_of(&bytes), Ok(header), "{body:?}");
    }
}

#[test]
fn a_malformed_reply_is_reported_with_what_is_wrong() {
    let cases: [(&[u32], Violation); 8] = [
        (&[], Violation::Truncated(0)),
        (&[8], Violation::Truncated(4)),
        (&[8, 0, 2, 1, 1, 1, 0, 0, 0, 0], Violation::NotAReply(0)),
        (&[8, 1, 2], Violation::UnknownReplyStat(2)),
        (&[8, 1, 0, 0, 0, 6], Violation::UnknownAcceptStat(6)),
        (&[8, 1, 1, 2], Violation::UnknownRejectStat(2)),
        (&[8, 1, 0, 0, 401], Violation::VerifierTooLong(401)),
        (&[8, 1, 0, 0, 0, 2, 1], Violation::Truncated(28)),
    ];
    for (reply, violation) in cases {
        assert_eq!(reply_of(&words(reply)), Err(violation), "{reply:?}");
    }
}

#[test]
fn an_auth_stat_is_shown_by_its_registered_name_or_as_a_number() {
    assert_eq!(AuthStat::REJECTED_CRED.to_string(), "AUTH_REJECTEDCRED");
    assert_eq!(AuthStat(14).to_string(), "RPCSEC_GSS_CTXPROBLEM");
    assert_eq!(AuthStat(4096).to_string(), "auth_stat 4096");
}

/// A credential or verifier whose body is the beginning of `pool`.
fn any_auth<'a>(random: &mut Random, pool: &'a [u8]) -> OpaqueAuth<'a> {
    let flavor = AuthFlavor(random.word() >> random.below(32));
    OpaqueAuth::new(flavor, &pool[..random.below(401)]).expect("400 bytes at most")
}

fn any_call<'a>(random: &mut Random, pool: &'a [u8]) -> CallHeader<'a> {
    CallHeader {
        xid: random.word(),
        program: random.word(),
        version: random.word(),
        procedure: random.word(),
        credential: any_auth(random, pool),
        verifier: any_auth(random, pool),
    }
}

fn any_reply<'a>(random: &mut Random, pool: &'a [u8]) -> ReplyHeader<'a> {
    let (low, high) = (random.word(), random.word());
    let refused = match random.below(9) {
        0 => Refused::RpcMismatch { low, high },
        1 => Refused::Authentication(AuthStat(low)),
        2 => Refused::ProgramUnavailable,
        3 => Refused::ProgramMismatch { low, high },
        4 => Refused::ProcedureUnavailable,
        5 => Refused::GarbageArguments,
        6 => Refused::SystemError,
        _ => {
            let body = ReplyBody::Success(any_auth(random, pool));
            return ReplyHeader { xid: low, body };
        }
    };
    let body = ReplyBody::Refused(refused);
    ReplyHeader { xid: high, body }
}

#[test]
fn headers_are_read_back_as_written_and_what_follows_is_left() {
    let mut random = Random(1);
    let pool = random.bytes(400);
    for _ in 0..2000 {
        let call = any_call(&mut random, &pool);
        let bytes = [call_bytes(&call), b"arguments".to_vec()].concat();
        let mut input = Decoder::new(&bytes);
        assert_eq!(CallHeader::decode(&mut input), Ok(call));
        assert_eq!(input.rest(), b"arguments");

        let reply = any_reply(&mut random, &pool);
        let bytes = [reply_bytes(&reply), b"results".to_vec()].concat();
        let mut input = Decoder::new(&bytes);
        assert_eq!(ReplyHeader::decode(&mut input), Ok(reply));
        assert_eq!(input.rest(), b"results");
    }
}

#[test]
fn a_truncated_header_is_an_error() {
    let mut random = Random(2);
    let pool = random.bytes(400);
    for _ in 0..50 {
        let call = call_bytes(&any_call(&mut random, &pool));
        for end in 0..call.len() {
            let cut = CallHeader::decode(&mut Decoder::new(&call[..end]));
            assert!(cut.is_err(), "{end} of {}", call.len());
        }
        let reply = reply_bytes(&any_reply(&mut random, &pool));
        for end in 0..reply.len() {
            assert!(reply_of(&reply[..end]).is_err(), "{end} of {}", reply.len());
        }
    }
}

#[test]
fn a_header_with_one_wrong_byte_is_another_header_or_an_error() {
    let mut random = Random(3);
    let pool = random.bytes(400);
    for _ in 0..50 {
        let mut call = call_bytes(&any_call(&mut random, &pool));
        let mut reply = reply_bytes(&any_reply(&mut random, &pool));
        for at in 0..call.len() {
            let flip = 1 << random.below(8);
            call[at] ^= flip;
            if let Ok(header) = CallHeader::decode(&mut Decoder::new(&call)) {
                let again = call_bytes(&header);
                assert_eq!(CallHeader::decode(&mut Decoder::new(&again)), Ok(header));
            }
            call[at] ^= flip;
        }
        for at in 0..reply.len() {
            let flip = 1 << random.below(8);
            reply[at] ^= flip;
            if let Ok(header) = reply_of(&reply) {
                assert_eq!(reply_of(&reply_bytes(&header)), Ok(header));
            }
            reply[at] ^= flip;
        }
    }
}
