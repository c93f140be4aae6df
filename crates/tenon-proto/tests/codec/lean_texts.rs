//! Texts of the lean protocol as a person reads them: statuses, reasons, and what the peer has written.

use tenon_proto::lean::{Close, CloseReason, Difference, Exception, Status};

#[test]
fn every_status_says_in_words_what_went_wrong() {
    let cases = [
        (Status::FAILED, "no disk", "the service failed: no disk"),
        (Status::FORBIDDEN, "", "the caller may not"),
        (
            Status::INVALID_ARGUMENTS,
            "a is even",
            "invalid arguments: a is even",
        ),
        (Status(777), "odd", "status 777: odd"),
    ];
    for (status, message, shown) in cases {
        assert_eq!(Exception::new(status, message).to_string(), shown);
    }
}

#[test]
fn a_status_says_whether_the_call_may_have_been_carried_out() {
    let not_begun = [1, 2, 3, 7, 8, 9, 10, 13, 14, 15];
    for status in 0..20 {
        let expected = !not_begun.contains(&status);
        assert_eq!(Status(status).may_have_executed(), expected, "{status}");
    }
}

/// What moves the cursor, begins another line or turns the order of letters round is escaped.
#[test]
fn what_the_peer_has_written_is_harmless_on_a_terminal() {
    let exception = Exception::new(Status::FAILED, "\u{1b}[2Jgone\nOK: für dich");
    let shown = "the service failed: \\u{1b}[2Jgone\\nOK: für dich";
    assert_eq!(exception.to_string(), shown);
    let difference = Difference::OnlyTheirs("\u{202e}struct \u{9b}1m".into());
    let shown = "it has \\u{202e}struct \\u{9b}1m beside";
    assert_eq!(difference.to_string(), shown);
    let close = Close {
        reason: CloseReason::STOPPING,
        last_call: None,
        message: "\r\u{1b}c".into(),
    };
    assert_eq!(close.to_string(), "it stops: \\r\\u{1b}c");
}

#[test]
fn every_reason_of_a_close_is_shown_in_words_or_as_a_number() {
    let cases = [
        (CloseReason::DONE, "it needs the connection no longer"),
        (CloseReason::STOPPING, "it stops"),
        (CloseReason::IDLE, "nothing was asked for too long"),
        (CloseReason::VIOLATION, "this end broke the protocol"),
        (CloseReason::LIMITS, "this end takes too much"),
        (CloseReason(99), "reason 99"),
    ];
    for (reason, shown) in cases {
        assert_eq!(reason.to_string(), shown);
    }
}
