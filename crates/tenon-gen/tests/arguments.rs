//! How methods of clients are called: with what a caller has at hand, and without memory of their own for it; and
//! strings that are `String`. The counter of allocations counts for the whole process, so that all is one test each,
//! one after the other.
#![allow(clippy::unwrap_used)]

#[path = "golden/arguments.rs"]
mod arguments;
#[path = "golden/utf8.rs"]
mod utf8;

use std::alloc::System;
use std::sync::{Mutex, PoisonError};

use arguments::{ArgumentsV1, ArgumentsV1Client, ArgumentsV1Service, Color, Page};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon::wire::{BStr, BString, Cow, DecodeErrorKind, Decoder, Encoder, Lean, Marshal, View};
use tenon::{CallError, CallInfo, Client, Refusal, Refused, Server};
use utf8::{Utf8V1, Utf8V1Client, Utf8V1Service};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static ALONE: Mutex<()> = Mutex::new(());

struct Counter;

fn length(text: Option<&BStr>) -> u32 {
    text.map_or(0, |text| text.len() as u32)
}

impl ArgumentsV1 for Counter {
    fn say(&self, _: &CallInfo<'_>, text: &BStr) -> Result<u32, Refusal> {
        Ok(text.len() as u32)
    }

    fn say_name(&self, _: &CallInfo<'_>, name: &BStr, bytes: &[u8]) -> Result<u32, Refusal> {
        Ok((name.len() + bytes.len()) as u32)
    }

    fn send(&self, _: &CallInfo<'_>, bytes: &[u8]) -> Result<u32, Refusal> {
        Ok(bytes.len() as u32)
    }

    fn sum(&self, _: &CallInfo<'_>, numbers: Cow<'_, [i32]>) -> Result<i32, Refusal> {
        Ok(numbers.iter().sum())
    }

    fn say_all(&self, _: &CallInfo<'_>, names: Vec<&BStr>) -> Result<u32, Refusal> {
        Ok(names.iter().map(|name| name.len() as u32).sum())
    }

    fn find(
        &self,
        _: &CallInfo<'_>,
        name: Option<&BStr>,
        number: Option<i32>,
        item: Option<arguments::ItemView<'_>>,
    ) -> Result<u32, Refusal> {
        let item = item.map_or(0, |item| length(Some(item.called)));
        Ok(length(name) + number.unwrap_or(0) as u32 + item)
    }

    fn find_all(
        &self,
        _: &CallInfo<'_>,
        names: Option<Vec<&BStr>>,
        page: Option<Page>,
    ) -> Result<u32, Refusal> {
        let names = names.map_or(0, |names| names.len() as u32);
        Ok(names + page.map_or(0, |page| page[4999].into()))
    }

    fn store(
        &self,
        _: &CallInfo<'_>,
        key: arguments::Key,
        page: Page,
        color: Color,
    ) -> Result<u32, Refusal> {
        Ok(u32::from(key[7]) + u32::from(page[0]) + color as u32)
    }

    fn count(
        &self,
        _: &CallInfo<'_>,
        some: Vec<arguments::Link>,
        any: Vec<arguments::Link>,
    ) -> Result<i32, Refusal> {
        Ok((some.len() * 100 + any.len()) as i32)
    }

    fn weigh(
        &self,
        _: &CallInfo<'_>,
        tree: arguments::Tree,
        other: Option<arguments::Tree>,
    ) -> Result<i32, Refusal> {
        Ok(tree.value + other.map_or(0, |tree| tree.value))
    }

    fn keep(&self, _: &CallInfo<'_>, item: arguments::ItemView<'_>) -> Result<u32, Refusal> {
        Ok(length(Some(item.called)))
    }
}

/// The addresses of a server by both protocols.
fn serve(builder: tenon::ServerBuilder) -> (Server, [String; 2]) {
    let server = builder
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .start()
        .unwrap();
    let address = server.addresses()[0].to_string();
    (server, [format!("lean+{address}"), address])
}

#[test]
fn arguments_are_whatever_holds_them() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_server, addresses) = serve(Server::builder().service(ArgumentsV1Service(Counter)));
    let item = arguments::Item {
        called: "item".into(),
        values: vec![1, 2],
    };
    let page = [3; 5000];
    let link = |value| arguments::Link { value };
    let tree = |value| arguments::Tree {
        value,
        ..arguments::Tree::default()
    };
    for address in addresses {
        let client = ArgumentsV1Client::connect(&address).unwrap();
        for said in [
            client.say("said"),
            client.say(String::from("said")),
            client.say(b"said"),
            client.say(BStr::new("said")),
            client.say(BString::from("said")),
            client.say(vec![0; 4]),
            client.start_say("said").unwrap().wait(),
        ] {
            assert_eq!(said.unwrap(), 4);
        }
        assert_eq!(client.say_name("name", [1, 2]).unwrap(), 6);
        assert_eq!(client.send(vec![1, 2, 3]).unwrap(), 3);
        assert_eq!(client.sum(&[1, 2, 3]).unwrap(), 6);
        assert_eq!(client.say_all(&["one".into(), "other".into()]).unwrap(), 8);
        assert_eq!(client.find(None, None, None).unwrap(), 0);
        let found = client.find(Some(b"name"), Some(100), Some(&item));
        assert_eq!(found.unwrap(), 108);
        assert_eq!(client.find_all(None, None).unwrap(), 0);
        let found = client.find_all(Some(&["one".into()]), Some(&page));
        assert_eq!(found.unwrap(), 4);
        let stored = client.store(&[1; 8], &page, Color::Green);
        assert_eq!(stored.unwrap(), 5);
        let links = [link(1), link(2)];
        assert_eq!(client.count(&links, &links[..1]).unwrap(), 201);
        assert_eq!(client.count(&links, &[]).unwrap(), 200);
        assert_eq!(client.weigh(&tree(1), Some(&tree(2))).unwrap(), 3);
        assert_eq!(client.weigh(&tree(1), None).unwrap(), 1);
        assert_eq!(client.keep(&item).unwrap(), 4);
        let error = client.say_name([b'x'; 33], []).unwrap_err();
        assert!(matches!(error, CallError::Arguments(_)), "{error:?}");
    }
}

#[test]
fn what_is_lent_takes_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_server, addresses) = serve(Server::builder().service(ArgumentsV1Service(Counter)));
    let item = arguments::Item {
        called: "item".into(),
        values: vec![1, 2],
    };
    for address in addresses {
        let client = ArgumentsV1Client::connect(&address).unwrap();
        let round = || {
            for _ in 0..100 {
                assert_eq!(client.say_name("name", b"bytes").unwrap(), 9);
                assert_eq!(client.send(b"bytes").unwrap(), 5);
                assert_eq!(client.find(Some(b"name"), None, None).unwrap(), 4);
                assert_eq!(client.keep(&item).unwrap(), 4);
            }
        };
        round();
        // The quietest of several rounds: what else the process does may need memory.
        let rounds = (0..20).map(|_| {
            let region = Region::new(ALLOCATOR);
            round();
            region.change().allocations
        });
        let fewest = rounds.min().unwrap();
        // `keep` has a view of numbers, which ONC RPC has in another order than most machines.
        let expected = match address.starts_with("lean") || cfg!(target_endian = "big") {
            true => 0,
            false => 100,
        };
        assert_eq!(fewest, expected, "{address}");
    }
}

struct Speaker;

impl Utf8V1 for Speaker {
    fn echo(&self, _: &CallInfo<'_>, text: &str) -> Result<String, Refusal> {
        Ok(text.to_owned())
    }

    fn first(&self, _: &CallInfo<'_>, names: Vec<&str>) -> Result<String, Refusal> {
        Ok(names.first().copied().unwrap_or_default().to_owned())
    }

    fn find(
        &self,
        _: &CallInfo<'_>,
        name: Option<&str>,
        other: &str,
    ) -> Result<Option<String>, Refusal> {
        Ok(name.map(|name| format!("{name}{other}")))
    }

    fn rename(
        &self,
        _: &CallInfo<'_>,
        item: utf8::ItemView<'_>,
        name: &str,
    ) -> Result<utf8::Item, Refusal> {
        let mut item = utf8::Item::from(item);
        item.called = name.to_owned();
        Ok(item)
    }

    fn say(&self, _: &CallInfo<'_>, said: utf8::SaidView<'_>) -> Result<utf8::Said, Refusal> {
        Ok(said.into())
    }

    fn words(
        &self,
        _: &CallInfo<'_>,
        words: Vec<utf8::LinkView<'_>>,
    ) -> Result<Vec<String>, Refusal> {
        Ok(words.iter().map(|link| link.word.to_owned()).collect())
    }
}

#[test]
fn strings_of_utf8_are_passed_on() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_server, addresses) = serve(Server::builder().service(Utf8V1Service(Speaker)));
    let item = utf8::Item {
        called: "before".to_owned(),
        words: "größer".to_owned(),
        both: ["a".to_owned(), String::new()],
        number: 1,
    };
    for address in addresses {
        let client = Utf8V1Client::connect(&address).unwrap();
        assert_eq!(client.echo("größer").unwrap(), "größer");
        let names = ["one".to_owned(), "other".to_owned()];
        assert_eq!(client.first(&names).unwrap(), "one");
        assert_eq!(client.find(Some("a"), "b").unwrap().as_deref(), Some("ab"));
        assert_eq!(client.find(None, "b").unwrap(), None);
        let renamed = client.rename(&item, "after").unwrap();
        assert_eq!((&*renamed.called, &renamed.words), ("after", &item.words));
        let said = utf8::Said::Once("größer".to_owned());
        assert_eq!(client.say(&said).unwrap(), said);
        let links = ["so", "on"].map(|word| utf8::Link {
            word: word.to_owned(),
        });
        assert_eq!(client.words(&links).unwrap(), ["so", "on"]);
        let error = client.find(None, "123456789").unwrap_err();
        assert!(matches!(error, CallError::Arguments(_)), "{error:?}");
    }
}

/// Bytes that are not UTF-8 are refused where they are, by types and by views, of both representations.
#[test]
fn other_strings_are_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = b"\0\0\0\x01a\0\0\0\0\0\0\x04ab\xffd\0\0\0\0\0\0\0\0\0\0\0\x01";
    let mut lean = bytes.to_vec();
    if cfg!(target_endian = "little") {
        for number in [0, 8, 16, 20, 24] {
            lean[number..number + 4].reverse();
        }
    }
    let xdr = || Decoder::new(bytes);
    let lean = || Decoder::<Lean>::over(&lean, tenon::wire::DecodeMode::Strict, Default::default());
    for error in [
        utf8::Item::decode(&mut xdr()).unwrap_err(),
        utf8::ItemView::view(&mut xdr()).unwrap_err(),
        utf8::Item::decode(&mut lean()).unwrap_err(),
        utf8::ItemView::view(&mut lean()).unwrap_err(),
    ] {
        assert_eq!(error.kind, DecodeErrorKind::NotUtf8);
        assert_eq!(error.offset, 14);
        assert!(error.to_string().contains("item.words"), "{error}");
    }
    let (_server, addresses) = serve(Server::builder().service(Utf8V1Service(Speaker)));
    let client = Client::connect(&addresses[1], utf8::UTF8, utf8::UTF8_V1).unwrap();
    let refused = client.call(
        1,
        |out: &mut Encoder<'_>| out.put_opaque(b"\xff", 1),
        |input| input.get_string(8),
    );
    let error = refused.unwrap_err();
    assert!(
        matches!(error, CallError::Refused(Refused::GarbageArguments)),
        "{error:?}"
    );
}
