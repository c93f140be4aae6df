//! The example in C: built by its Makefile out of what `tenon gen --lang c` writes and against the installed
//! library, under the sanitizers; called by its client and by `tenon call`.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{root, tenon};

/// The programs of the example, in a folder of the test's.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-example");
    fs::create_dir_all(&folder).expect("a folder");
    for file in ["store.x", "server.c", "client.c", "Makefile"] {
        let from = root().join("examples/c").join(file);
        fs::copy(from, folder.join(file)).expect("a copy");
    }
    let prefix = folder.join("prefix");
    // cargo has built the library for this test, which depends on it.
    let built = env::current_exe().expect("the test has a file");
    let mut install = Command::new(root().join("crates/tenon-c/install"));
    install.args([OsStr::new("--prefix"), prefix.as_os_str()]);
    install.args([
        OsStr::new("--built"),
        built.parent().expect("a folder").as_os_str(),
    ]);
    succeeds(&mut install);
    let mut make = Command::new("make");
    make.current_dir(&folder);
    make.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    make.env("TENON", env!("CARGO_BIN_EXE_tenon"));
    let sanitized = "-fsanitize=address,undefined";
    let lib = prefix.join("lib").display().to_string();
    make.env("CFLAGS", format!("-O1 -g -Werror {sanitized}"));
    make.env("LDFLAGS", format!("{sanitized} -Wl,-rpath,{lib}"));
    succeeds(make.arg("--always-make"));
    folder
}

/// Runs a command, which has to succeed, and hands out what it prints.
fn succeeds(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The server of the example, which ends with this value.
struct Store {
    process: Child,
    addresses: Vec<String>,
}

impl Store {
    fn start(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name).display().to_string();
        let listening = [
            "tcp://127.0.0.1:0".to_owned(),
            "udp://127.0.0.1:0".to_owned(),
            format!("unix://{}", file("socket")),
            format!("shm://{}", file("memory")),
        ];
        let mut process = Command::new(folder.join("server"))
            .args(&listening)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let lines = output.lines().take(listening.len());
        let addresses = lines.map(|line| {
            let line = line.expect("the server says where it serves");
            line.strip_prefix("serving at ")
                .expect("an address")
                .to_owned()
        });
        Self {
            addresses: addresses.collect(),
            process,
        }
    }

    /// Interrupts it; it has lost nothing.
    fn stop(mut self) {
        let id = self.process.id().to_string();
        succeeds(Command::new("kill").args(["-INT", &id]));
        assert!(self.process.wait().expect("it ends").success());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn its_client_and_the_command_call_its_server() {
    let folder = build();
    let store = Store::start(&folder);
    let client = |arguments: &[&str]| {
        let mut command = Command::new(folder.join("client"));
        command.args(arguments).output().expect("it was built")
    };
    let prints = |arguments: &[&str]| {
        let output = client(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let plain = store.addresses.iter();
    let lean = plain.clone().filter(|address| !address.starts_with("shm"));
    let lean = lean.map(|address| format!("lean+{address}"));
    let all: Vec<String> = plain.cloned().chain(lean).collect();
    assert_eq!(all.len(), 7);
    for (index, address) in all.iter().enumerate() {
        let name = format!("name {index}");
        assert_eq!(prints(&[address, "get", &name]), "(nothing)\n");
        let count = index + 1;
        assert_eq!(
            prints(&[address, "put", &name, address]),
            format!("{count} in the store\n")
        );
        assert_eq!(prints(&[address, "get", &name]), format!("{address}\n"));
        assert_eq!(prints(&[address, "list"]).lines().count(), count);
        let file = "examples/c/store.x";
        let found = tenon(&["call", address, file, "GET", "\"name 0\""]).ok();
        assert!(found.contains(&all[0]), "{address}: {found}");
    }
    let refused = client(&[&all[6], "put", "", "nothing"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("an entry needs a name"), "{said}");
    let long_name = "x".repeat(65);
    let wrong = client(&[&all[0], "put", &long_name, "nothing"]);
    assert_eq!(wrong.status.code(), Some(1));
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("length 65 is over the bound 64"), "{said}");
    store.stop();
}
