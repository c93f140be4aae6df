//! Replies of ONC RPC as a server writes them: results, or a refusal in their place.

use crate::common::words;
use tenon_proto::onc::auth::AuthStat;
use tenon_proto::onc::message::Refused;
use tenon_proto::onc::record;
use tenon_proto::onc::reply::OncReplyDraft;
use tenon_wire::Buffer;

#[test]
fn a_reply_is_a_header_and_the_results_behind_it() {
    let mut buffer = Buffer::default();
    let reply = OncReplyDraft::begin(&mut buffer, 9);
    buffer.extend(b"result");
    let expected = [words(&[9, 1, 0, 0, 0, 0]), b"result".to_vec()].concat();
    assert_eq!(record::message(&buffer), expected);
    reply.seal(&mut buffer, 99);
    assert_eq!(buffer.as_slice()[..4], [0x80, 0, 0, 30]);
}

#[test]
fn a_refusal_replaces_the_results_and_leaves_the_replies_before_it_alone() {
    let mut buffer = Buffer::default();
    OncReplyDraft::begin(&mut buffer, 8).seal(&mut buffer, 99);
    let before = buffer.as_slice().to_vec();
    let table: [(Refused, &[u32]); 4] = [
        (Refused::GarbageArguments, &[9, 1, 0, 0, 0, 4]),
        (Refused::ProcedureUnavailable, &[9, 1, 0, 0, 0, 3]),
        (Refused::SystemError, &[9, 1, 0, 0, 0, 5]),
        (
            Refused::Authentication(AuthStat::TOO_WEAK),
            &[9, 1, 1, 1, 5],
        ),
    ];
    for (refused, expected) in table {
        buffer.truncate(before.len());
        let reply = OncReplyDraft::begin(&mut buffer, 9);
        buffer.extend(&[0xee; 5000]);
        reply.refuse(&mut buffer, refused).seal(&mut buffer, 99);
        let mark = 0x8000_0000 + expected.len() as u32 * 4;
        let expected = [before.clone(), words(&[mark]), words(expected)].concat();
        assert_eq!(buffer.as_slice(), expected, "{refused:?}");
    }
}
