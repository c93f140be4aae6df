//! `tenon ping` of a program whose ports rpcbind is asked for. Here one that the test itself is, in a network of its
//! own: port 111 is not anybody's.

mod common;
#[path = "../../tenon-xdp/tests/common/pair.rs"]
#[allow(
    clippy::unwrap_used,
    dead_code,
    reason = "as in the tests it comes from, which use all of it"
)]
mod pair;

use common::tenon;
use pair::Pair;
use tenon::rpcbind::generated::{
    RPCBPROC_DUMP, RPCBPROC_GETVERSADDR, RPCBPROG, RPCBVERS4, RpList, Rpcb, encode_rpcblist_ptr,
};
use tenon::wire::{Decoder, Encoder, Marshal};
use tenon::{CallInfo, Refusal, Server, ServerBuilder, Service};

const PROGRAM: u32 = 0x2000_d3ac;

/// A version of [`PROGRAM`] without procedures, but for the one that every server answers.
struct Bare(u32);

impl Service for Bare {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        self.0
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

/// As much of rpcbind, version 4, as tells what is registered.
struct Registered(Vec<Rpcb>);

impl Service for Registered {
    fn program(&self) -> u32 {
        RPCBPROG
    }

    fn version(&self) -> u32 {
        RPCBVERS4
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        match call.procedure {
            RPCBPROC_DUMP => {
                let all = self.0.iter().cloned();
                let all = all.map(|rpcb_map| RpList { rpcb_map }).collect();
                Ok(encode_rpcblist_ptr(&all, result)?)
            }
            RPCBPROC_GETVERSADDR => {
                let wanted = Rpcb::decode(arguments)?;
                let is_it = |one: &&Rpcb| {
                    let of = |rpcb: &Rpcb| (rpcb.r_prog, rpcb.r_vers, rpcb.r_netid.clone());
                    of(one) == of(&wanted)
                };
                let found = self.0.iter().find(is_it);
                let address = found.map_or_else(Default::default, |one| one.r_addr.clone());
                Ok(result.put_opaque(&address, u32::MAX)?)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// What a server that has one version says to rpcbind.
fn registration(server: &Server, netid: &str, version: u32) -> Rpcb {
    let host = server.addresses()[0].host().expect("it has a host");
    let port = host.port.expect("it has a port");
    Rpcb {
        r_prog: PROGRAM,
        r_vers: version,
        r_netid: netid.into(),
        r_addr: format!("{}.{}.{}", host.name, port >> 8, port & 255).into(),
        r_owner: Default::default(),
    }
}

#[test]
fn every_version_that_is_registered_is_found_at_its_own_port() {
    let Some(pair) = Pair::make("tenon ping by way of rpcbind") else {
        return;
    };
    let at = pair.server_at;
    let listening = |address: String| -> ServerBuilder {
        Server::builder().listen(&address).expect("an address")
    };
    let serve = |address: String, service: Bare| {
        pair.in_server(|| listening(address).service(service).start())
            .expect("a server")
    };
    let second = serve(format!("tcp://{at}:0"), Bare(2));
    let fifth = serve(format!("tcp://{at}:0"), Bare(5));
    let third = serve(format!("udp://{at}:0"), Bare(3));
    let registered = Registered(vec![
        registration(&fifth, "tcp", 5),
        registration(&third, "udp", 3),
        registration(&second, "tcp", 2),
    ]);
    let rpcbind = listening(format!("tcp://{at}:111")).listen(&format!("udp://{at}:111"));
    let rpcbind = rpcbind.expect("an address").service(registered);
    let _rpcbind = pair.in_server(|| rpcbind.start().expect("port 111 is nobody's here"));

    let ping = |address: &str, program: u32| {
        pair.in_client(|| tenon(&["ping", address, &program.to_string()]))
    };
    let lines = |text: String| -> Vec<String> {
        let before = |line: &str| line.split_once(':').expect("a time").0.to_owned();
        text.lines().map(before).collect()
    };
    let answers = |version: u32| format!("program {PROGRAM} version {version} answers");
    let tcp = ping(&format!("tcp://{at}"), PROGRAM).ok();
    assert_eq!(lines(tcp), [answers(2), answers(5)]);
    let udp = ping(&format!("udp://{at}"), PROGRAM).ok();
    assert_eq!(lines(udp), [answers(3)]);
    let unknown = ping(&format!("tcp://{at}"), PROGRAM + 1).fails_with(1);
    let expected = format!("program {} is not registered there", PROGRAM + 1);
    assert!(unknown.contains(&expected), "{unknown}");
}

/// With nobody at port 111 the reason is said.
#[test]
fn a_host_without_rpcbind_is_said_to_be_one() {
    let Some(pair) = Pair::make("tenon ping without rpcbind") else {
        return;
    };
    let address = format!("tcp://{}", pair.server_at);
    let stderr = pair.in_client(|| tenon(&["ping", &address, "100003"]).fails_with(1));
    assert!(stderr.contains("rpcbind cannot be asked"), "{stderr}");
}
