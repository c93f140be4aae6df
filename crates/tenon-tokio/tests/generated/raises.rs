//! Errors that an interface declares by `raises`: a handler returns them, and callers get them as what they are, of
//! threads and of tasks, over a connection and in the same process.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::obliging;
use crate::common::obliging::{every_way, in_time};
use crate::keys::{
    Closed, Conflict, KEYS, KEYS_GET, KEYS_V1, KeysV1, KeysV1Async, KeysV1AsyncCalls,
    KeysV1AsyncClient, KeysV1AsyncInProcess, KeysV1AsyncService, KeysV1Calls, KeysV1Client,
    KeysV1CloseError, KeysV1CountError, KeysV1FindError, KeysV1GetError, KeysV1InProcess,
    KeysV1Service, NoSuchKey, Other, Place,
};
use tenon::wire::{BString, Encoder, Lean};
use tenon::{
    CallError, CallErrorKind, CallInfo, CalledProcedure, Client, LeanInput, Refusal, Refused,
    in_process,
};

/// Raises what the key says. Every second closing fails.
#[derive(Default)]
struct Shelf {
    is_closed: AtomicBool,
}

fn no_such_key() -> NoSuchKey {
    NoSuchKey {
        key: "nothing".into(),
    }
}

fn conflict() -> Conflict {
    Conflict {
        version: 1 << 40,
        holder: "somebody else".into(),
    }
}

/// A step of a handler whose error is that of the interface.
fn look_for(key: &[u8]) -> Result<(), NoSuchKey> {
    match key {
        b"nothing" => Err(no_such_key()),
        _ => Ok(()),
    }
}

impl Shelf {
    fn get(&self, key: &BString) -> Result<BString, KeysV1GetError<Refusal>> {
        look_for(key)?;
        match &***key {
            b"conflict" => Err(conflict())?,
            b"closed" => Err(Closed::Good.into()),
            b"other" => Err(KeysV1GetError::Other_(Other::Text("why".into()))),
            b"invalid" => Err(Refusal::InvalidArguments("not a key".to_owned()).into()),
            // Any error of the program is an internal one, and its text stays here.
            b"failed" => Ok("text".parse::<u32>().map(|_| BString::default())?),
            _ => Ok(key.clone()),
        }
    }

    fn close(&self) -> Result<(), KeysV1CloseError<Refusal>> {
        match self.is_closed.fetch_xor(true, Ordering::SeqCst) {
            true => Err(Closed::Now.into()),
            false => Ok(()),
        }
    }
}

impl KeysV1 for Shelf {
    fn get(&self, _: &CallInfo<'_>, key: BString) -> Result<BString, KeysV1GetError<Refusal>> {
        self.get(&key)
    }

    fn close(&self, _: &CallInfo<'_>) -> Result<(), KeysV1CloseError<Refusal>> {
        self.close()
    }

    fn find(
        &self,
        _: &CallInfo<'_>,
        key: BString,
        reply: &mut Place,
    ) -> Result<(), KeysV1FindError<Refusal>> {
        // What was written before an error is dropped.
        *reply = Place { x: 7, y: -7 };
        Ok(look_for(&key)?)
    }

    fn count(&self, _: &CallInfo<'_>) -> Result<i32, Refusal> {
        Ok(7)
    }
}

impl KeysV1Async for Shelf {
    async fn get(
        &self,
        _: &CallInfo<'_>,
        key: BString,
    ) -> Result<BString, KeysV1GetError<Refusal>> {
        self.get(&key)
    }

    async fn close(&self, _: &CallInfo<'_>) -> Result<(), KeysV1CloseError<Refusal>> {
        self.close()
    }

    async fn find(
        &self,
        _: &CallInfo<'_>,
        key: BString,
        reply: &mut Place,
    ) -> Result<(), KeysV1FindError<Refusal>> {
        *reply = Place { x: 7, y: -7 };
        Ok(look_for(&key)?)
    }

    async fn count(&self, _: &CallInfo<'_>) -> Result<i32, Refusal> {
        Ok(7)
    }
}

/// Checks what a caller finds of a key. Over ONC RPC no error of an interface travels.
fn check_get(key: &str, found: Result<BString, KeysV1GetError>, is_onc: bool) {
    let error = match found {
        Ok(value) => return assert_eq!(value, key),
        Err(error) => error,
    };
    let is_raised = ["nothing", "conflict", "closed", "other"].contains(&key);
    if is_onc && is_raised {
        assert_eq!(error.kind(), CallErrorKind::Failed, "{key}");
        let KeysV1GetError::Other(CallError::Refused(refused)) = error else {
            panic!("{key}: {error:?}");
        };
        return assert_eq!(refused, Refused::SystemError);
    }
    assert_eq!(error.kind() == CallErrorKind::Raised, is_raised, "{key}");
    let text = error.to_string();
    match (key, error) {
        ("nothing", KeysV1GetError::NoSuchKey(error)) => {
            assert_eq!(error, no_such_key());
            assert_eq!(text, format!("the procedure raised {error:?}"));
        }
        ("conflict", KeysV1GetError::Conflict(error)) => assert_eq!(error, conflict()),
        ("closed", KeysV1GetError::Closed(error)) => assert_eq!(error, Closed::Good),
        ("other", KeysV1GetError::Other_(error)) => assert_eq!(error, Other::Text("why".into())),
        ("invalid", KeysV1GetError::Other(error)) => {
            assert_eq!(error.kind(), CallErrorKind::InvalidArguments);
            assert_eq!(text, error.to_string());
        }
        ("failed", KeysV1GetError::Other(error)) => {
            assert_eq!(error.kind(), CallErrorKind::Failed);
            assert!(!text.contains("digit"), "{text}");
        }
        (key, error) => panic!("{key}: {error:?}"),
    }
}

const KEYS_TO_GET: [&str; 7] = [
    "nothing", "conflict", "closed", "other", "invalid", "failed", "here",
];

fn check(calls: &dyn KeysV1Calls, is_onc: bool) {
    for key in KEYS_TO_GET {
        check_get(key, calls.get(key.as_bytes()), is_onc);
    }
    assert_eq!(calls.find(b"here").unwrap(), Place { x: 7, y: -7 });
    match calls.find(b"nothing").unwrap_err() {
        KeysV1FindError::NoSuchKey(error) if !is_onc => assert_eq!(error, no_such_key()),
        KeysV1FindError::Other(_) if is_onc => {}
        error => panic!("{error:?}"),
    }
    calls.close().unwrap();
    let error = calls.close().unwrap_err();
    assert_eq!(error.kind() == CallErrorKind::Raised, !is_onc);
    assert!(error.source().is_none(), "{error:?}");
    // The error of a procedure that raises nothing is that of any call.
    let count: Result<i32, KeysV1CountError> = calls.count();
    assert_eq!(count.unwrap(), 7);
}

async fn check_async(calls: &impl KeysV1AsyncCalls, is_onc: bool) {
    for key in KEYS_TO_GET {
        check_get(key, in_time(calls.get(key.as_bytes())).await, is_onc);
    }
    let found = in_time(calls.find(b"here")).await.unwrap();
    assert_eq!(found, Place { x: 7, y: -7 });
    match in_time(calls.find(b"nothing")).await.unwrap_err() {
        KeysV1FindError::NoSuchKey(error) if !is_onc => assert_eq!(error, no_such_key()),
        KeysV1FindError::Other(_) if is_onc => {}
        error => panic!("{error:?}"),
    }
    in_time(calls.close()).await.unwrap();
    let error = in_time(calls.close()).await.unwrap_err();
    assert_eq!(error.kind() == CallErrorKind::Raised, !is_onc);
}

#[test]
fn errors_of_an_interface_reach_callers_of_servers_of_threads() {
    check(&KeysV1InProcess(Shelf::default()), false);
    let builder = obliging::listening().service(KeysV1Service(Shelf::default()));
    let server = builder.start().unwrap();
    for address in every_way(server.addresses()) {
        let is_onc = !address.starts_with("lean+");
        let client = KeysV1Client::connect(&address).unwrap();
        check(&client, is_onc);
        let started = client.start_get("nothing").unwrap();
        check_get("nothing", started.wait(), is_onc);
    }
}

#[tokio::test]
async fn errors_of_an_interface_reach_callers_of_servers_of_tasks() {
    check_async(&KeysV1AsyncInProcess(Shelf::default()), false).await;
    let builder = obliging::listening_in_tasks().service(KeysV1AsyncService(Shelf::default()));
    let server = builder.start().await.unwrap();
    for address in every_way(server.addresses()) {
        let client = KeysV1AsyncClient::connect(&address).await.unwrap();
        check_async(&client, !address.starts_with("lean+")).await;
    }
}

/// A peer may say of an error what it likes: what is not as the interface says stays an exception.
#[test]
fn what_no_interface_declares_is_no_error_of_it() {
    for refusal in [
        Refusal::raise(4, "a fifth", &no_such_key()),
        Refusal::raise(u32::MAX, "the last", &no_such_key()),
        // The length of a text is no member of the enum.
        Refusal::raise(2, "not this", &no_such_key()),
        Refusal::Raised {
            message: "nothing more".to_owned(),
            details: Vec::new(),
        },
        Refusal::Raised {
            message: "half a position".to_owned(),
            details: vec![0; 3],
        },
        Refusal::Raised {
            message: "no error behind it".to_owned(),
            details: vec![0; 4],
        },
        Refusal::Raised {
            message: "a length that nothing pays for".to_owned(),
            details: [0, 0, 0, 0, 255, 255, 255, 255].to_vec(),
        },
    ] {
        let error = in_process::error::<AnyGet>(refusal.clone());
        let KeysV1GetError::Other(CallError::Exception(exception)) = error else {
            panic!("{refusal:?}: {error:?}");
        };
        let Refusal::Raised { message, .. } = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!(exception.message, message.as_str());
    }
}

/// A call of `KEYS_GET` by hand.
struct AnyGet;

impl CalledProcedure for AnyGet {
    const PROCEDURE: u32 = KEYS_GET;

    type Result = BString;
    type Error = KeysV1GetError;
}

/// What a client without the interface gets: a position and bytes.
#[test]
fn a_client_without_the_interface_sees_which_error_it_is() {
    let builder = obliging::listening().service(KeysV1Service(Shelf::default()));
    let server = builder.start().unwrap();
    let lean = every_way(server.addresses()).into_iter();
    let mut lean = lean.filter(|way| way.starts_with("lean+"));
    let client = Client::connect(&lean.next_back().unwrap(), KEYS, KEYS_V1).unwrap();
    let encode = |out: &mut Encoder<'_, Lean>| out.put_opaque(b"conflict", u32::MAX);
    let decode = |input: &mut LeanInput<'_>| match input {
        LeanInput::Native(input) => input.get::<u32>(),
        LeanInput::Swapped(input) => input.get::<u32>(),
    };
    let error = client.lean().call(KEYS_GET, encode, decode).unwrap_err();
    let exception = error.exception().expect("an exception");
    assert_eq!(exception.raised(), Some(1));
    assert_eq!(exception.message, "conflict");
    assert_eq!(exception.raised_as::<Conflict>().unwrap(), conflict());
    // The position, 4 bytes up to a multiple of 8, the version, the length and the bytes of the holder.
    assert_eq!(
        exception.details.len(),
        4 + 4 + 8 + 4 + "somebody else".len()
    );
}
