//! What the figures were measured on.

use std::fs;
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
