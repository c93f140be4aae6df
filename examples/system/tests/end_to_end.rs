//! The system as its users see it: the three servers and the client command, as processes.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use support::{Folder, Kind, ServerPlace, WAYS, run_client};
use tenon::{CallErrorKind, ChannelOptions};
use tenon_example_system::jobs::{JobStatus, JobsV1Client};
use tenon_example_system::kv::{KvV1Client, VALUE_MAX};
use tenon_example_system::uploads::{UploadPosition, UploadsV1Client};

#[test]
fn keys_are_set_listed_and_removed() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Kv, &folder, &[]);
    let server = place.start();
    for way in WAYS {
        let address = place.address(way);
        let kv = |arguments: &[&str]| run_client(&[&["--at", &address, "kv"], arguments].concat());
        let first = kv(&["put", "ada", "countess"]).unwrap();
        let revision: u64 = first
            .trim()
            .strip_prefix("revision ")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(kv(&["get", "ada"]).unwrap(), "countess\n");

        let outdated = kv(&["put", "ada", "x", "--expect", "0"]).unwrap_err();
        assert_eq!(
            outdated,
            format!("error: the key has revision {revision}\n")
        );
        let second = kv(&[
            "put",
            "ada",
            "programmer",
            "--expect",
            &revision.to_string(),
        ]);
        assert_eq!(second.unwrap(), format!("revision {}\n", revision + 1));

        kv(&["put", "charles", "engineer", "--expect", "0"]).unwrap();
        assert_eq!(kv(&["list"]).unwrap(), "ada\ncharles\n");
        for name in ["ada", "charles"] {
            kv(&["remove", name]).unwrap();
            let gone = kv(&["get", name]).unwrap_err();
            assert_eq!(gone, "error: there is no such key\n");
        }
        assert_eq!(kv(&["list"]).unwrap(), "");
        let unnamed = kv(&["put", "", "x"]).unwrap_err();
        assert!(unnamed.contains("refused"), "{unnamed}");
    }
    let last_words = server.terminate();
    assert!(last_words.starts_with("stopped after "), "{last_words}");
}

#[test]
fn long_lists_come_in_pages() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Kv, &folder, &[]);
    let _server = place.start();
    let address = place.address("lean+unix");
    let client = KvV1Client::connect(&address).unwrap();
    let keys: Vec<String> = (0..250).map(|number| format!("key {number:03}")).collect();
    for key in &keys {
        client.put(key, b"").unwrap();
    }
    let listed = run_client(&["--at", &address, "kv", "list"]).unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), keys);
}

#[test]
fn workers_wait_for_jobs_and_callers_for_results() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Jobs, &folder, &[]);
    let server = place.start();
    for way in WAYS {
        let address = place.address(way);
        let jobs =
            |arguments: &[&str]| run_client(&[&["--at", &address, "jobs"], arguments].concat());
        thread::scope(|scope| {
            // Both wait: the worker for a job, and the caller for its result.
            let worker = scope.spawn(|| jobs(&["work", "--count", "1", "base64"]));
            let submitted = jobs(&["submit", "stressed"]).unwrap();
            let id = submitted.trim().strip_prefix("job ").unwrap();
            assert_eq!(jobs(&["watch", id]).unwrap().trim(), "c3RyZXNzZWQ=");
            worker.join().unwrap().unwrap();
        });
        let unknown = jobs(&["watch", "77777"]).unwrap_err();
        assert_eq!(unknown, "error: there is no such job\n");
    }
    server.terminate();
}

#[test]
fn a_server_that_is_told_to_stop_answers_those_that_wait() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Jobs, &folder, &["--drain", "600"]);
    let server = place.start();
    let clients = WAYS.map(|way| JobsV1Client::connect(&place.address(way)).unwrap());
    // There is no other client to submit anything: the server's end is what answers.
    let polls = clients
        .each_ref()
        .map(|client| client.start_take(60_000).unwrap());
    for client in &clients {
        // Calls of a connection are received in their order, so the poll is there, too.
        assert_eq!(client.watch(1, 0).unwrap(), JobStatus::Unknown);
    }
    server.terminate();
    for (way, poll) in WAYS.iter().zip(polls) {
        assert_eq!(poll.wait().unwrap(), None, "{way}");
    }
}

#[test]
fn files_are_sent_and_fetched() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Uploads, &folder, &["--upload-max", "400000"]);
    let server = place.start();
    let path = |name: &str| folder.0.join(name).display().to_string();
    let [sent, large, fetched] = ["sent", "large", "fetched"].map(path);
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number / 7) as u8).collect();
    fs::write(&sent, &bytes).unwrap();
    fs::write(&large, vec![7; 400_001]).unwrap();
    for way in WAYS {
        let address = place.address(way);
        let uploads =
            |arguments: &[&str]| run_client(&[&["--at", &address, "uploads"], arguments].concat());
        // Names are no paths.
        let name = "../../data/picture of Ada";
        uploads(&["put", &sent, name]).unwrap();
        uploads(&["get", name, &fetched]).unwrap();
        assert_eq!(fs::read(&fetched).unwrap(), bytes);
        uploads(&["put", "/dev/null", name]).unwrap();
        uploads(&["get", name, &fetched]).unwrap();
        assert_eq!(fs::read(&fetched).unwrap(), b"");
        uploads(&["remove", name]).unwrap();
        let removed = uploads(&["get", name, &fetched]).unwrap_err();
        assert_eq!(removed, "error: there is no such file\n");

        let refused = uploads(&["put", &large, "large"]).unwrap_err();
        assert_eq!(refused, "error: the file is larger than the server takes\n");
    }
    server.terminate();
}

/// A channel that was used just now does not look whether its peer has gone meanwhile.
fn pause() {
    thread::sleep(Duration::from_millis(300));
}

#[test]
fn an_upload_goes_on_where_its_server_died() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Uploads, &folder, &[]);
    let server = place.start();
    let patient = ChannelOptions::default().wait_for_ready(true);
    let address = place.address("lean+tcp");
    let client = UploadsV1Client::connect_with(&address, patient).unwrap();
    let id = client.begin("file").unwrap();
    let begun = client.write(id, 0, b"the first half").unwrap();
    assert_eq!(begun, UploadPosition::Ok(14));
    server.kill();
    let server = place.start();
    pause();
    let again = client.write(id, 0, b"the first half").unwrap();
    assert_eq!(again, UploadPosition::Offset(14));
    let unfinished = client.read("file", 0, 100).unwrap();
    assert_eq!(unfinished, None);
    client.write(id, 14, b", and the second").unwrap();
    let short = client.finish(id, 20).unwrap();
    assert_eq!(short, UploadPosition::Offset(30));
    assert_eq!(client.finish(id, 30).unwrap(), UploadPosition::Ok(30));
    assert_eq!(client.finish(id, 30).unwrap(), UploadPosition::Unknown);
    server.terminate();
    let _server = place.start();
    let piece = client.read("file", 14, 6).unwrap().unwrap();
    assert_eq!((piece.size, piece.bytes.as_slice()), (30, &b", and "[..]));
}

#[test]
fn what_was_acknowledged_survives_with_and_without_waiting_for_the_disk() {
    for arguments in [&["--sync"][..], &[]] {
        let folder = Folder::new();
        let place = ServerPlace::new(Kind::Kv, &folder, arguments);
        let server = place.start();
        let patient = ChannelOptions::default().wait_for_ready(true);
        let client = KvV1Client::connect_with(&place.address("tcp"), patient).unwrap();
        client.put("kept", b"1").unwrap();
        client.put("removed", b"2").unwrap();
        assert!(client.remove("removed").unwrap());
        server.kill();
        let _server = place.start();
        pause();
        assert_eq!(client.get("removed").unwrap(), None);
        let kept = client.get("kept").unwrap().unwrap();
        assert_eq!((kept.value.as_slice(), kept.revision), (&b"1"[..], 1));
        assert_eq!(client.put("next", b"").unwrap(), 4);
    }
}

#[test]
fn a_second_server_of_the_same_data_does_not_start() {
    let folder = Folder::new();
    for kind in Kind::ALL {
        let _server = ServerPlace::new(kind, &folder, &[]).start();
        let second = ServerPlace::new(kind, &folder, &[])
            .command()
            .output()
            .unwrap();
        assert!(!second.status.success());
        let error = String::from_utf8(second.stderr).unwrap();
        assert!(
            error.starts_with("error: another server uses the journal"),
            "{error}"
        );
    }
}

#[test]
fn a_value_that_is_too_large_is_the_callers_mistake() {
    let folder = Folder::new();
    let place = ServerPlace::new(Kind::Kv, &folder, &[]);
    let _server = place.start();
    for way in WAYS {
        let client = KvV1Client::connect(&place.address(way)).unwrap();
        let largest = vec![0; VALUE_MAX as usize];
        client.put("largest", &largest).unwrap();
        let error = client
            .put("larger", [largest, vec![0]].concat())
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidCall, "{error}");
        assert_eq!(client.get("larger").unwrap(), None);
    }
}
