//! Errors that say what is wrong and what helps, where a reset or a status alone says nothing.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::getuid;
use tenon::wire::{Decoder, Encoder};
use tenon::{
    CallErrorKind, CallInfo, ChannelOptions, Client, LeanService, Refusal, Server, Service,
};

const PROGRAM: u32 = 0x2000_0d19;

/// Returns so many bytes that no datagram carries them.
struct Long;

impl Service for Long {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        result.room(100_000).fill(7);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        None
    }
}

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tenon-texts-{}-{name}", std::process::id()))
}

#[test]
fn a_user_who_may_not_connect_is_told_so_by_both_protocols() {
    let path = socket("users");
    let address = format!("unix://{}", path.display());
    let server = Server::builder()
        .listen(&address)
        .unwrap()
        .users([getuid().as_raw() + 1])
        .service(Long);
    let _server = server.start().unwrap();
    for address in [address.clone(), format!("lean+{address}")] {
        for _ in 0..20 {
            let called = Client::connect(&address, PROGRAM, 1).unwrap().ping();
            let error = called.unwrap_err();
            assert_eq!(error.kind(), CallErrorKind::Denied, "{address}: {error}");
            assert!(!error.may_have_executed());
            let text = "the server takes no connections of this process's user";
            assert!(error.to_string().ends_with(text), "{address}: {error}");
        }
    }
}

#[test]
fn a_server_of_shared_memory_that_is_stopped_is_said_to_be() {
    let path = socket("stopped");
    // The kernel takes the connection in, and no process answers.
    let _listener = UnixListener::bind(&path).unwrap();
    let options = ChannelOptions {
        connect_timeout: Duration::from_millis(100),
        ..ChannelOptions::default()
    };
    let address = format!("shm://{}", path.display());
    let error = Client::connect_with(&address, PROGRAM, 1, options).unwrap_err();
    assert!(
        error.to_string().contains("it is stopped or busy"),
        "{error}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_result_that_no_datagram_carries_is_an_error_that_offers_tcp() {
    let builder = Server::builder().listen("udp://127.0.0.1:0").unwrap();
    let server = builder.service(Long).start().unwrap();
    let client = Client::connect(&server.addresses()[0].to_string(), PROGRAM, 1).unwrap();
    let error = client.onc().call(1, |_| Ok(()), |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed);
    assert!(error.to_string().ends_with("connect to tcp://"), "{error}");
}
