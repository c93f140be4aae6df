//! What the figures were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Machine, versions and date.
pub fn describe() -> Value {
    let mut described = json!({
        "date": said_by("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        "cpu": cpu(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": said_by("uname", &["-sr"]),
        "rustc": said_by("rustc", &["--version"]),
        "gcc": said_by("gcc", &["-dumpfullversion"]),
        "libtirpc": said_by("pkg-config", &["--modversion", "libtirpc"]),
        "commit": said_by("git", &["describe", "--always", "--dirty"]),
    });
    if let Ok(time) = std::env::var("BENCH_WIDE_STUBS") {
        described["stubs of 8192 members compile in"] = time.into();
    }
    described
}

/// Adds the versions of the peers of the section `rpc` to a description.
pub fn add_peers(described: &mut Value) {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap_or_default();
    for peer in [
        "tonic",
        "prost",
        "tarpc",
        "capnp-rpc",
        "volo",
        "iceoryx2",
        "tokio",
    ] {
        let heading = format!("name = \"{peer}\"\nversion = \"");
        if let Some((_, from)) = lock.split_once(&heading) {
            described[peer] = from.split('"').next().into();
        }
    }
    for package in ["grpc++", "protobuf"] {
        described[package] = said_by("pkg-config", &["--modversion", package]).into();
    }
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model
        .and_then(|line| line.split(": ").nth(1))
        .unwrap_or("unknown")
        .to_owned()
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => "unknown".to_owned(),
    }
}
