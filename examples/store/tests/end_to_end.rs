//! The store as its users see it: both servers and the client command, as processes.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use support::{ServerPlace, WAYS};
use tenon::health::{HealthQuestion, HealthStatus, HealthV1Client};
use tenon::{CallError, CallErrorKind};
use tenon_example_store::store::{
    InvalidName, InvalidOffset, NoSuchObject, Object, ObjectTooLarge, Removal, RevisionTooOld,
    STORE_CHUNK_MAX, StoreEvent, StoreStopping, StoreV1Client, StoreV1GetError, StoreV1PutError,
    StoreV1RemoveError, StoreV1WatchError,
};

/// Bytes that say where they are.
fn content(size: usize) -> Vec<u8> {
    (0..size)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

/// Puts an object, and returns its revision.
fn put(store: &StoreV1Client, name: &str, bytes: &[u8]) -> Result<u64, StoreV1PutError> {
    let mut put = store.put(name)?;
    for chunk in bytes.chunks(STORE_CHUNK_MAX as usize) {
        match put.send(&chunk.to_vec()) {
            Ok(()) => {}
            Err(StoreV1PutError::Other(CallError::StreamClosed)) => break,
            Err(error) => return Err(error),
        }
    }
    let object = put.finish()?;
    assert_eq!((&*object.name, object.size), (name, bytes.len() as u64));
    Ok(object.revision)
}

fn get(store: &StoreV1Client, name: &str, offset: u64) -> Result<Vec<u8>, StoreV1GetError> {
    let chunks: Result<Vec<_>, _> = store.get(name, offset)?.collect();
    Ok(chunks?.concat())
}

fn names(store: &StoreV1Client) -> Vec<String> {
    let page = store.list("", None).unwrap();
    page.objects.into_iter().map(|object| object.name).collect()
}

/// Looks until something holds.
fn wait_until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn objects_of_any_size_are_put_and_got() {
    for place in ServerPlace::both(&[]) {
        let server = place.start();
        let (sent, got) = (place.folder.path("sent"), place.folder.path("got"));
        for way in WAYS {
            let client = |arguments: &[&str]| place.run_client(way, arguments);
            for size in [0, 1, 262_144, 262_145, 20_000_003] {
                let bytes = content(size);
                fs::write(&sent, &bytes).unwrap();
                // Names are no paths.
                let name = "../../picture of Ada";
                let answer = client(&["put", &sent, name]).unwrap();
                assert!(
                    answer.starts_with(&format!("{size} bytes, revision ")),
                    "{answer}"
                );
                assert_eq!(client(&["get", name, &got]).unwrap(), "");
                assert!(
                    fs::read(&got).unwrap() == bytes,
                    "{way}: other bytes of {size}"
                );

                let half = (size / 2) as u64;
                let rest = get(&place.client(way), name, half).unwrap();
                assert!(
                    rest == bytes[size / 2..],
                    "{way}: other bytes behind {half}"
                );
            }
        }
        let last_words = server.terminate();
        assert!(last_words.starts_with("stopped after "), "{last_words}");
    }
}

#[test]
fn a_get_reads_one_revision_to_its_end() {
    for place in ServerPlace::both(&[]) {
        let server = place.start();
        for way in WAYS {
            let store = place.client(way);
            let bytes = content(20_000_000);
            put(&store, "object", &bytes).unwrap();
            let mut chunks = store.get("object", 0).unwrap();
            let mut got = chunks.next().unwrap().unwrap();
            put(&store, "object", b"short").unwrap();
            store.remove("object").unwrap();
            for chunk in chunks {
                got.extend(chunk.unwrap());
            }
            assert!(got == bytes, "{way}: other bytes");
        }
        server.terminate();
    }
}

#[test]
fn a_put_that_is_given_up_leaves_nothing() {
    for place in ServerPlace::both(&[]) {
        let server = place.start();
        let is_begun = || place.files().len() == 1;
        for way in WAYS {
            let store = place.client(way);
            let mut dropped = store.put("object").unwrap();
            dropped.send(&content(100_000)).unwrap();
            wait_until(is_begun);
            drop(dropped);
            wait_until(|| place.files().is_empty());

            // In packets nothing tells of a client that was killed but its silence, for 45 seconds.
            if way == "lean+udp" {
                continue;
            }
            let mut command = place.client_command(way, &["put", "-", "object"]);
            let mut client = command.stdin(Stdio::piped()).spawn().unwrap();
            let input = client.stdin.as_mut().unwrap();
            input.write_all(&content(1_000_000)).unwrap();
            wait_until(is_begun);
            client.kill().unwrap();
            client.wait().unwrap();
            wait_until(|| place.files().is_empty());

            assert_eq!(names(&store), [""; 0]);
        }
        server.terminate();
        assert_eq!(place.log(), "", "the service has not failed");
    }
}

#[test]
fn errors_are_those_of_the_interface() {
    for place in ServerPlace::both(&["--size-max", "1000000"]) {
        let server = place.start();
        for way in WAYS {
            let store = place.client(way);
            let name = "object".to_owned();
            let missing = NoSuchObject { name: name.clone() };
            let error = get(&store, &name, 0).unwrap_err();
            assert!(matches!(error, StoreV1GetError::NoSuchObject(error) if error == missing));
            let error = store.remove(&name).unwrap_err();
            assert!(matches!(error, StoreV1RemoveError::NoSuchObject(error) if error == missing));
            for name in ["", "two\nlines"] {
                let error = put(&store, name, &content(900_000)).unwrap_err();
                let is_it = |error: &InvalidName| error.reason.starts_with("the name of an object");
                assert!(matches!(error, StoreV1PutError::InvalidName(error) if is_it(&error)));
            }
            // The answer comes long before the last chunk.
            let error = put(&store, &name, &content(20_000_000)).unwrap_err();
            let expected = ObjectTooLarge {
                size_max: 1_000_000,
            };
            assert!(matches!(error, StoreV1PutError::ObjectTooLarge(error) if error == expected));
            let error = put(&store, &"x".repeat(201), b"").unwrap_err();
            let StoreV1PutError::Other(error) = error else {
                panic!("{error}");
            };
            assert_eq!(error.kind(), CallErrorKind::InvalidCall, "{error}");
            assert_eq!(names(&store), [""; 0]);

            put(&store, &name, b"text").unwrap();
            assert_eq!(get(&store, &name, 4).unwrap(), b"");
            let error = get(&store, &name, 5).unwrap_err();
            let expected = InvalidOffset { size: 4 };
            assert!(matches!(error, StoreV1GetError::InvalidOffset(error) if error == expected));
            store.remove(&name).unwrap();

            let kept = place.folder.path("kept");
            fs::write(&kept, "kept").unwrap();
            let error = place.run_client(way, &["get", &name, &kept]).unwrap_err();
            assert_eq!(error, "error: there is no such object\n");
            assert_eq!(fs::read(&kept).unwrap(), b"kept");
        }
        server.terminate();
    }
}

#[test]
fn changes_need_a_token() {
    let tokens = support::Folder::new();
    let file = |name: &str, text: &str| {
        fs::write(tokens.path(name), text).unwrap();
        tokens.path(name)
    };
    let all = file("all", "first\nsecond\n");
    let (good, bad) = (file("good", "second\n"), file("bad", "third\n"));
    for place in ServerPlace::both(&["--token-file", &all]) {
        let server = place.start();
        for way in WAYS {
            let refused = |arguments: &[&str]| {
                let error = place.run_client(way, arguments).unwrap_err();
                assert!(
                    error.contains("the caller has not shown who it is"),
                    "{error}"
                );
                error
            };
            // Larger than what is sent before the answer comes.
            let sent = place.folder.path("sent");
            fs::write(&sent, content(2_000_000)).unwrap();
            let error = refused(&["put", &sent, "object"]);
            assert!(error.contains("no token"), "{error}");
            let wrong = ["--insecure", "--token-file", &bad];
            let error = refused(&[&wrong[..], &["put", &sent, "object"]].concat());
            assert!(error.contains("unknown"), "{error}");

            let right = ["--insecure", "--token-file", &good];
            let changed = |arguments: &[&str]| {
                let arguments = [&right[..], arguments].concat();
                place.run_client(way, &arguments).unwrap()
            };
            changed(&["put", &sent, "object"]);
            refused(&["remove", "object"]);
            refused(&[&wrong[..], &["remove", "object"]].concat());
            let got = place.folder.path("got");
            place.run_client(way, &["get", "object", &got]).unwrap();
            assert!(fs::read(&got).unwrap() == content(2_000_000));
            changed(&["remove", "object"]);

            if ["lean+tcp", "lean+udp"].contains(&way) {
                let arguments = ["--token-file", &good, "remove", "object"];
                let error = place.run_client(way, &arguments).unwrap_err();
                assert!(error.contains("token"), "{error}");
            }
        }
        server.terminate();
    }
}

#[test]
fn long_lists_come_in_pages() {
    for place in ServerPlace::both(&[]) {
        let server = place.start();
        let store = place.client("lean+unix");
        let expected: Vec<String> = (0..250).map(|number| format!("b{number:03}")).collect();
        for name in expected.iter().map(String::as_str).chain(["a", "c"]) {
            put(&store, name, b"").unwrap();
        }
        for way in WAYS {
            let store = place.client(way);
            let (mut pages, mut found, mut cursor) = (0, Vec::new(), None);
            loop {
                let page = store.list("b", cursor.as_deref()).unwrap();
                pages += 1;
                found.extend(page.objects.into_iter().map(|object| object.name));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!((pages, &found), (3, &expected));
            let listed = place.run_client(way, &["list"]).unwrap();
            assert_eq!(listed.lines().count(), 252);
            assert!(listed.lines().next().unwrap().ends_with(" a"), "{listed}");
        }
        server.terminate();
    }
}

fn object(name: &str, size: u64, revision: u64) -> Object {
    Object {
        name: name.to_owned(),
        size,
        revision,
    }
}

#[test]
fn watchers_see_events_in_their_order() {
    for place in ServerPlace::both(&[]) {
        for way in WAYS {
            let server = place.start();
            let (ada, bert) = (place.client(way), place.client(way));
            let before = put(&ada, "logs/1", b"one").unwrap();
            put(&ada, "other", b"").unwrap();
            let mut watchers = [
                ada.watch("logs/", None).unwrap(),
                bert.watch("logs/", None).unwrap(),
            ];
            for watcher in &mut watchers {
                let present = StoreEvent::Present(object("logs/1", 3, before));
                assert_eq!(watcher.next().unwrap().unwrap(), present);
                let up_to_date = StoreEvent::UpToDate(before + 1);
                assert_eq!(watcher.next().unwrap().unwrap(), up_to_date);
            }
            let mut expected = Vec::new();
            for number in 0..300 {
                let name = format!("logs/{number}");
                let revision = put(&ada, &name, b"text").unwrap();
                expected.push(StoreEvent::Put(object(&name, 4, revision)));
                bert.remove(&name).unwrap();
                let revision = revision + 1;
                expected.push(StoreEvent::Removed(Removal { name, revision }));
            }
            for watcher in &mut watchers {
                let seen = watcher.by_ref().take(600).map(Result::unwrap);
                assert!(seen.eq(expected.iter().cloned()), "{way}");
            }
            // A watch that goes on behind a revision has what comes behind it.
            let after = before + 1 + 2;
            let mut resumed = ada.watch("logs/", Some(after)).unwrap();
            let seen = resumed.by_ref().take(598).map(Result::unwrap);
            assert!(seen.eq(expected[2..].iter().cloned()), "{way}");
            let up_to_date = StoreEvent::UpToDate(before + 1 + 600);
            assert_eq!(resumed.next().unwrap().unwrap(), up_to_date);

            let shown = place.run_client(way, &["watch", "--count", "2"]).unwrap();
            let latest = before + 1 + 600;
            let other = before + 1;
            assert_eq!(
                shown,
                format!(
                    "present other, 0 bytes, revision {other}\nup to date, revision {latest}\n"
                )
            );
            ada.remove("other").unwrap();
            // The watchers that are left are told that the server stops.
            server.terminate();
        }
    }
}

#[test]
fn a_slow_watcher_holds_nothing_up() {
    for place in ServerPlace::both(&["--events", "200"]) {
        for way in WAYS {
            let server = place.start();
            let (store, quick, slow) = (place.client(way), place.client(way), place.client(way));
            let mut slow = slow.watch("", None).unwrap();
            assert!(matches!(slow.next(), Some(Ok(StoreEvent::UpToDate(_)))));
            let mut quick = quick.watch("", None).unwrap();
            assert!(matches!(quick.next(), Some(Ok(StoreEvent::UpToDate(_)))));
            // Far more than what is under way to a watcher that does not read.
            let name = "n".repeat(200);
            let mut revisions = Vec::new();
            for _ in 0..60 {
                for _ in 0..50 {
                    revisions.push(put(&store, &name, b"").unwrap());
                    let event = StoreEvent::Put(object(&name, 0, *revisions.last().unwrap()));
                    assert_eq!(quick.next().unwrap().unwrap(), event);
                }
            }
            let mut told = 0;
            let error = loop {
                match slow.next().unwrap() {
                    Ok(StoreEvent::Put(object)) => {
                        assert_eq!(object.revision, revisions[told]);
                        told += 1;
                    }
                    Ok(event) => panic!("{event:?}"),
                    Err(error) => break error,
                }
            };
            let StoreV1WatchError::RevisionTooOld(RevisionTooOld { oldest }) = error else {
                panic!("{error}");
            };
            assert_eq!(oldest, revisions[revisions.len() - 201]);
            assert!(slow.next().is_none());
            store.remove(&name).unwrap();
            server.terminate();
        }
    }
}

#[test]
fn metrics_and_health_answer() {
    for place in ServerPlace::both(&["--metrics", "127.0.0.1:0"]) {
        let mut server = place.start();
        let line = server.next_line();
        let address = line.strip_prefix("metrics at http://").unwrap();
        let address = address.strip_suffix("/metrics").unwrap();
        for way in WAYS {
            assert_eq!(place.run_client(way, &["health"]).unwrap(), "serving\n");
            let store = place.client(way);
            put(&store, "object", &content(300_000)).unwrap();
            get(&store, "object", 0).unwrap();
            get(&store, "nothing", 0).unwrap_err();
        }
        let mut watcher = place.client("shm").watch("", None).unwrap();
        watcher.next().unwrap().unwrap();
        let ask = || {
            let mut stream = TcpStream::connect(address).unwrap();
            let request = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response
        };
        let labels = |procedure: &str| {
            format!(
                r#"{{service="STORE_V1",procedure="{procedure}",program="639804435",version="1""#
            )
        };
        let calls = |procedure: &str, outcome: &str, count: usize| {
            let labels = labels(procedure);
            format!("tenon_server_calls_total{labels},outcome=\"{outcome}\"}} {count}")
        };
        let watching = format!("tenon_server_calls_in_flight{}}} 1", labels("STORE_WATCH"));
        for line in [
            calls("STORE_PUT", "success", WAYS.len()),
            calls("STORE_GET", "success", WAYS.len()),
            calls("STORE_GET", "raised", WAYS.len()),
            watching,
        ] {
            // A call is counted a moment after it was answered.
            let mut response = String::new();
            wait_until(|| {
                response = ask();
                response.contains(&line) || !response.contains("in_flight")
            });
            assert!(response.contains(&line), "{line}\n{response}");
        }
        server.terminate();
    }
}

#[test]
fn watchers_are_told_that_the_server_stops() {
    for place in ServerPlace::both(&["--drain", "600"]) {
        let mut server = place.start();
        for way in WAYS {
            let store = place.client(way);
            let revision = put(&store, "object", b"text").unwrap();
            let mut watcher = store.watch("", None).unwrap();
            let first = watcher.by_ref().take(2).map(Result::unwrap);
            let expected = [
                StoreEvent::Present(object("object", 4, revision)),
                StoreEvent::UpToDate(revision),
            ];
            assert!(first.eq(expected), "{way}");
            let health = HealthV1Client::connect(&place.address(way)).unwrap();
            let question = HealthQuestion {
                service: "".into(),
                known: HealthStatus::Serving,
                milliseconds: 600_000,
            };
            let asked = health.start_watch(&question).unwrap();
            // Calls of a connection are received in their order, so the question is there, too.
            health.check("").unwrap();
            let last_words = server.terminate();
            assert!(last_words.starts_with("stopped after "), "{last_words}");
            assert_eq!(asked.wait().unwrap(), HealthStatus::NotServing);
            let Some(Err(StoreV1WatchError::StoreStopping(stopping))) = watcher.next() else {
                panic!("{way}: the watcher was not told");
            };
            assert_eq!(stopping, StoreStopping { revision });
            assert!(watcher.next().is_none());

            // Events do not outlive the server: the present state has to be asked for.
            server = place.start();
            let error = place.client(way).watch("", Some(0)).unwrap().next();
            assert!(matches!(
                error,
                Some(Err(StoreV1WatchError::RevisionTooOld(_)))
            ));
        }
        server.terminate();
    }
}

#[test]
fn a_server_of_tasks_ends_behind_what_is_under_way() {
    let [_, place] = ServerPlace::both(&["--drain", "600"]);
    end_behind_what_is_under_way(&place);
}

#[test]
fn a_server_of_threads_ends_behind_what_is_under_way() {
    let [place, _] = ServerPlace::both(&["--drain", "600"]);
    end_behind_what_is_under_way(&place);
}

/// Puts and gets far more than what is on its way, while the server is asked to end.
fn end_behind_what_is_under_way(place: &ServerPlace) {
    let bytes = content(20_000_000);
    for way in WAYS {
        let server = place.start();
        let (store, other) = (place.client(way), place.client(way));
        put(&store, "before", &bytes).unwrap();
        let mut watcher = other.watch("", None).unwrap();
        assert!(watcher.by_ref().take(2).all(|event| event.is_ok()));
        let mut got_chunks = store.get("before", 0).unwrap();
        let mut got = got_chunks.next().unwrap().unwrap();
        let mut chunks = bytes.chunks(STORE_CHUNK_MAX as usize).map(<[u8]>::to_vec);
        let mut put = store.put("object").unwrap();
        put.send(&chunks.next().unwrap()).unwrap();
        wait_until(|| place.files().iter().any(|name| name.ends_with(".partial")));

        server.signal();
        assert!(watcher.next().unwrap().is_err());
        for chunk in chunks {
            put.send(&chunk).unwrap();
        }
        put.finish().unwrap();
        for chunk in got_chunks {
            got.extend(chunk.unwrap());
        }
        assert!(got == bytes, "{way}: other bytes");
        let last_words = server.wait();
        assert!(last_words.starts_with("stopped after "), "{last_words}");

        let server = place.start();
        let store = place.client(way);
        let put_whole = get(&store, "object", 0).unwrap() == bytes;
        assert!(put_whole, "{way}: other bytes");
        store.remove("object").unwrap();
        store.remove("before").unwrap();
        server.terminate();
    }
}

#[test]
fn a_put_that_does_not_end_is_given_up_with_the_server() {
    for place in ServerPlace::both(&["--drain", "1"]) {
        for way in WAYS {
            let server = place.start();
            let store = place.client(way);
            let mut put = store.put("object").unwrap();
            put.send(&content(100_000)).unwrap();
            wait_until(|| place.files().len() == 1);
            server.terminate();
            put.finish().unwrap_err();
            let server = place.start();
            assert_eq!(names(&place.client(way)), [""; 0]);
            assert_eq!(place.files(), [""; 0]);
            server.terminate();
        }
    }
}

#[test]
fn objects_and_revisions_outlive_the_server() {
    for place in ServerPlace::both(&[]) {
        let server = place.start();
        let store = place.client("shm");
        put(&store, "kept", b"old").unwrap();
        put(&store, "kept", b"kept").unwrap();
        put(&store, "removed", b"").unwrap();
        assert_eq!(store.remove("removed").unwrap(), 4);
        // It is killed, not asked to end.
        drop(server);
        let server = place.start();
        let second = place.command().output().unwrap();
        assert!(!second.status.success());
        let error = String::from_utf8(second.stderr).unwrap();
        assert!(error.starts_with("error: another server uses "), "{error}");
        let store = place.client("shm");
        let page = store.list("", None).unwrap();
        assert_eq!(page.objects, [object("kept", 4, 2)]);
        assert_eq!(get(&store, "kept", 0).unwrap(), b"kept");
        let mut watcher = store.watch("", Some(4)).unwrap();
        assert_eq!(watcher.next().unwrap().unwrap(), StoreEvent::UpToDate(4));
        assert_eq!(put(&store, "new", b"").unwrap(), 5);
        let event = StoreEvent::Put(object("new", 0, 5));
        assert_eq!(watcher.next().unwrap().unwrap(), event);
        let ahead = store.watch("", Some(6)).unwrap().next().unwrap();
        let Err(StoreV1WatchError::Other(error)) = ahead else {
            panic!("there is no such revision");
        };
        assert_eq!(error.kind(), CallErrorKind::InvalidArguments, "{error}");
        server.terminate();
    }
}
