//! What a server makes of any message, and that each of its answers is a reply a client
//! understands.
#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use tenon_proto::onc::auth::OpaqueAuth;
use tenon_proto::onc::duplicates::{CallKey, DuplicateCache, DuplicateLimits, Verdict};
use tenon_proto::onc::message::{ReplyBody, ReplyHeader};
use tenon_proto::onc::record;
use tenon_proto::onc::server::{Programs, Received, Reply, ServerCounters};
use tenon_wire::{Buffer, Decoder};

fuzz_target!(|message: &[u8]| {
    let mut programs = Programs::default();
    programs.add(100_003, 3);
    programs.add(100_003, 4);
    let mut reply = Buffer::default();
    match programs.handle_message(message, &mut ServerCounters::default()) {
        Received::Unanswerable(_) => {}
        Received::Ping(xid) => {
            Reply::begin(&mut reply, xid);
            check(&reply, xid, ReplyBody::Success(OpaqueAuth::NONE));
        }
        Received::Refuse(xid, refused) => {
            Reply::begin(&mut reply, xid).refuse(&mut reply, refused);
            check(&reply, xid, ReplyBody::Refused(refused));
        }
        Received::Call(call) => {
            assert!(message.ends_with(call.arguments) && call.procedure != 0);
            check_key(CallKey::new((), &call));
        }
    }
});

fn check(reply: &Buffer, xid: u32, body: ReplyBody<'_>) {
    let decoded = ReplyHeader::decode(&mut Decoder::new(record::message(reply)));
    assert_eq!(decoded, Ok(ReplyHeader { xid, body }));
}

fn check_key(key: CallKey<()>) {
    let now = Instant::now();
    let mut cache = DuplicateCache::new(DuplicateLimits {
        entries: 2,
        bytes: 16,
        ..DuplicateLimits::default()
    });
    assert_eq!(cache.check(key, now), Verdict::New);
    assert_eq!(cache.check(key, now), Verdict::InProgress);
    cache.finish(&key, b"reply", now);
    assert_eq!(cache.check(key, now), Verdict::Done(b"reply"));
}
