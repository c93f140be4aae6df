//! Who may connect through the file of a Unix socket. In a process of its own, because the umask is the process's.
#![allow(clippy::unwrap_used)]

#[path = "../../tenon/tests/common/place.rs"]
mod place;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use place::fresh_path;
use rustix::fs::Mode;
use rustix::process::umask;
use tenon_net::{Address, Listener};

fn mode(path: &std::path::Path) -> Option<u32> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(metadata.mode() & 0o777)
}

#[test]
fn a_socket_file_has_the_mode_that_was_asked_for_from_the_beginning() {
    for mask in [0, 0o022, 0o777] {
        umask(Mode::from_raw_mode(mask));
        for asked in [0o600, 0o660, 0o666, 0o777] {
            for address in [Address::unix(fresh_path()), Address::shm(fresh_path())] {
                let text = address.to_string();
                let path = text.split_once("://").unwrap().1.to_owned();
                let listener = Listener::bind_with_mode(&address, Some(asked)).unwrap();
                assert_eq!(mode(path.as_ref()), Some(asked), "umask {mask:o}");
                drop(listener);
                assert_eq!(mode(path.as_ref()), None);
            }
        }
    }

    // With a umask that takes nothing away, a file would be open to all at first.
    umask(Mode::empty());
    let path = fresh_path();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watched = scope.spawn(|| {
            let mut seen = 0;
            while !is_done.load(Ordering::Relaxed) {
                if let Some(mode) = mode(&path) {
                    assert_eq!(mode, 0o600);
                    seen += 1;
                }
            }
            seen
        });
        for _ in 0..500 {
            drop(Listener::bind_with_mode(&Address::unix(&path), Some(0o600)).unwrap());
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(watched.join().unwrap() > 0);
    });

    // Without one it is the umask that decides.
    umask(Mode::from_raw_mode(0o027));
    let listener = Listener::bind(&Address::unix(&path)).unwrap();
    assert_eq!(mode(&path), Some(0o750));
    drop(listener);

    // A file in the way keeps its mode.
    let other = fresh_path();
    fs::write(&other, "").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&other, &path).unwrap();
    Listener::bind_with_mode(&Address::unix(&path), Some(0o666)).unwrap_err();
    assert_eq!(mode(&other), Some(0o640));
    fs::remove_file(&path).unwrap();
    fs::remove_file(&other).unwrap();
}
