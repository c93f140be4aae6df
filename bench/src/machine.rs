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
    let begin = std::env::var("BENCH_PROCESSOR_TIMES").unwrap_or_default();
    let end = fs::read_to_string("/proc/stat").unwrap_or_default();
    if let Some(share) = stolen_share(&begin, &end) {
        let percent = format!("{:.1} % of the processors' time", 100.0 * share);
        described["stolen by the host while this was measured"] = percent.into();
    }
    described
}

/// The share of the processors' time between two states of `/proc/stat` in which the host of a virtual machine had
/// others run.
fn stolen_share(begin: &str, end: &str) -> Option<f64> {
    // user nice system idle iowait irq softirq steal; what follows is counted in these.
    let times = |text: &str| -> Option<Vec<u64>> {
        let times = text.lines().next()?.strip_prefix("cpu ")?;
        let times = times.split_ascii_whitespace().take(8);
        times.map(|time| time.parse().ok()).collect()
    };
    let (begin, end) = (times(begin)?, times(end)?);
    let passed: Vec<u64> = end
        .iter()
        .zip(&begin)
        .map(|(end, begin)| end.saturating_sub(*begin))
        .collect();
    let (stolen, all) = (*passed.get(7)?, passed.iter().sum::<u64>());
    (all > 0).then(|| stolen as f64 / all as f64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_stolen_is_of_the_time_between() {
        let begin = "cpu  10 0 10 100 0 0 0 50 7 0\ncpu0 1 2\n";
        let end = "cpu  40 0 20 140 0 0 0 70 9 0\n";
        assert_eq!(stolen_share(begin, end), Some(0.2));
        assert_eq!(stolen_share(begin, begin), None);
        for incomplete in ["", "cpu  1 2 3", "intr 5"] {
            assert_eq!(stolen_share(incomplete, end), None, "{incomplete}");
        }
    }
}
