//! Every status that a server answers with (RFC 5531 section 9), byte by byte and on every
//! transport, and that the connection is kept behind each.

use crate::common::caller::*;
use tenon::wire::{DecodeMode, Decoder, Encoder, Limits};
use tenon::{CallInfo, Refusal, Service};

/// Expects `reply` to `message` on every transport, and service as usual behind it.
#[track_caller]
fn check(message: &[u8], reply: &[u8]) {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_all(&server) {
        caller.expect(message, reply);
        caller.expect_service();
    }
}

fn call_to(program: u32, version: u32) -> Vec<u8> {
    words(&[9, 0, 2, program, version, ECHO, 0, 0, 0, 0])
}

#[test]
fn a_call_that_is_carried_out_succeeds() {
    let payload = words(&[0xdead_beef, 0, 7]);
    check(&call(9, ECHO, &payload), &success(9, &payload));
}

#[test]
fn procedure_0_is_answered_without_a_handler() {
    check(&call(9, 0, &[]), &success(9, &[]));
}

#[test]
fn an_unknown_program_is_unavailable() {
    check(&call_to(PROGRAM + 1, VERSION), &accepted(9, &[1]));
}

#[test]
fn another_version_is_told_the_lowest_and_the_highest() {
    for version in [0, VERSION - 1, VERSION + 1, VERSION_HIGH + 1, u32::MAX] {
        let reply = accepted(9, &[2, VERSION, VERSION_HIGH]);
        check(&call_to(PROGRAM, version), &reply);
    }
}

#[test]
fn procedure_0_of_another_version_is_a_mismatch_too() {
    let ping = words(&[9, 0, 2, PROGRAM, VERSION + 1, 0, 0, 0, 0, 0]);
    check(&ping, &accepted(9, &[2, VERSION, VERSION_HIGH]));
}

#[test]
fn an_unknown_procedure_is_unavailable() {
    check(&call(9, 4711, &[]), &accepted(9, &[3]));
}

#[test]
fn arguments_that_cannot_be_decoded_are_garbage() {
    check(&call(9, SLEEP, &[0, 0]), &accepted(9, &[4]));
}

#[test]
fn a_service_that_fails_is_a_system_error() {
    check(&call(9, FAIL, &[]), &accepted(9, &[5]));
}

#[test]
fn a_handler_that_panics_is_a_system_error_and_everybody_goes_on() {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_all(&server) {
        caller.expect(&call(9, PANIC, &[]), &accepted(9, &[5]));
        caller.expect_service();
    }
    assert_eq!(server.counters().panics, 3);
}

#[test]
fn another_version_of_rpc_is_denied_with_the_versions_there_are() {
    for version in [0, 1, 3, u32::MAX] {
        let message = words(&[9, 0, version, PROGRAM, VERSION, ECHO, 0, 0, 0, 0]);
        check(&message, &denied(9, &[0, 2, 2]));
    }
}

#[test]
fn a_service_may_deny_a_caller() {
    check(&call(9, DENY, &[]), &denied(9, &[1, 5]));
}

#[test]
fn a_malformed_credential_is_denied_as_bad() {
    let too_long = [words(&[0, 404]), vec![0; 404]].concat();
    let beyond_the_message = words(&[1, 400]);
    let sys_cut_short = words(&[1, 8, 0, 0]);
    for credential in [too_long, beyond_the_message, sys_cut_short] {
        check(&call_as(9, ECHO, &credential, &[]), &denied(9, &[1, 1]));
    }
}

#[test]
fn a_flavor_that_is_not_served_is_rejected() {
    for flavor in [2, 3, 6, 390_003] {
        let credential = words(&[flavor, 4, 0]);
        check(&call_as(9, ECHO, &credential, &[]), &denied(9, &[1, 2]));
    }
}

#[test]
fn a_malformed_verifier_is_denied_as_bad() {
    let head = words(&[9, 0, 2, PROGRAM, VERSION, ECHO, 0, 0, 0, 401]);
    check(&[head, vec![0; 404]].concat(), &denied(9, &[1, 3]));
}

#[test]
fn a_handler_knows_who_calls() {
    let sys = words(&[1, 24, 99, 1, 0x6100_0000, 1042, 100, 0]);
    check(&call_as(9, WHO, &sys, &[]), &success(9, &words(&[1042])));
    check(&call(9, WHO, &[]), &success(9, &words(&[u32::MAX])));
}

#[test]
fn every_refusal_is_counted() {
    let server = builder().start().unwrap();
    let mut caller = Caller::tcp(&server);
    caller.expect(&call(1, 0, &[]), &success(1, &[]));
    caller.expect(&call(2, FAIL, &[]), &accepted(2, &[5]));
    caller.expect(&call_to(PROGRAM + 1, VERSION), &accepted(9, &[1]));
    let counters = server.counters();
    let seen = [
        counters.pings,
        counters.calls,
        counters.service_refusals,
        counters.refusals,
        counters.connections_accepted,
        counters.connections_open,
    ];
    assert_eq!(seen, [1; 6]);
}

/// Returns whether its arguments are read strictly, and the memory that they may take.
struct FailingService;

impl Service for FailingService {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        result.put(u32::from(arguments.mode() == DecodeMode::Strict));
        result.put(arguments.memory_left() as u32);
        Ok(())
    }
}

#[test]
fn what_is_forgiven_in_arguments_and_what_they_may_cost_is_for_the_server_to_say() {
    let limits = Limits {
        memory_per_byte: 2,
        memory_base: 100,
        ..Limits::default()
    };
    let usual = listening().service(FailingService).start().unwrap();
    let strict = listening()
        .service(FailingService)
        .decode_mode(DecodeMode::Strict)
        .decode_limits(limits)
        .start()
        .unwrap();
    let arguments = words(&[1, 2]);
    for (server, told) in [
        (usual, [0, 64 * 8 + (64 << 10)]),
        (strict, [1, 2 * 8 + 100]),
    ] {
        for mut caller in Caller::on_all(&server) {
            let told = success(9, &words(&told));
            caller.expect(&call(9, ECHO, &arguments), &told);
        }
    }
}
