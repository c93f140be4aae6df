//! A process that calls the three servers without a pause, by clients of threads and of tasks, until its stdin ends, and
//! then writes down what it was told of every call.

mod callers;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tenon::CallError;

use crate::support::{Folder, ServerPlace};

pub use callers::{CALLERS, value_of};

/// Tell a process of this test that it is to make calls: where, and where to write its report.
const ADDRESSES: &str = "TENON_SYSTEM_ADDRESSES";
const REPORT: &str = "TENON_SYSTEM_REPORT";

/// A call, and what its caller was told.
#[derive(Debug)]
pub struct CallOutcome {
    /// The kind of the call.
    pub what: String,
    /// A text that no other call of this kind has carried.
    pub name: String,
    pub error: String,
}

/// The outcomes of all calls of a process, as its callers were told.
#[derive(Debug, Default)]
pub struct Report {
    /// Calls with results.
    pub done: Vec<CallOutcome>,
    /// Calls that were not carried out, as their callers were told.
    pub denied: Vec<CallOutcome>,
    /// Calls of which their callers were told that it is unknown.
    pub unknown: Vec<CallOutcome>,
}

impl Report {
    /// Notes what became of a call, and returns its result if there is one.
    pub fn note<T>(&mut self, what: &str, name: &str, result: Result<T, CallError>) -> Option<T> {
        let (list, error, result) = match result {
            Ok(result) => (&mut self.done, String::new(), Some(result)),
            Err(error) if error.may_have_executed() => (&mut self.unknown, error.to_string(), None),
            Err(error) => (&mut self.denied, error.to_string(), None),
        };
        list.push(CallOutcome {
            what: what.to_owned(),
            name: name.to_owned(),
            error,
        });
        result
    }

    /// Takes the last call for one that changed nothing, as its result says.
    pub fn last_changed_nothing(&mut self) {
        self.denied.extend(self.done.pop());
    }

    pub fn summary(&self) -> String {
        let [done, denied, unknown] = [&self.done, &self.denied, &self.unknown].map(Vec::len);
        format!("{done} calls done, {denied} not carried out, {unknown} unknown")
    }

    fn add(&mut self, other: Self) {
        self.done.extend(other.done);
        self.denied.extend(other.denied);
        self.unknown.extend(other.unknown);
    }

    fn write(&self, path: &Path) {
        let mut text = String::new();
        let lists = [&self.done, &self.denied, &self.unknown];
        for (outcome, calls) in ["done", "denied", "unknown"].iter().zip(lists) {
            for CallOutcome { what, name, error } in calls {
                text += &format!("{outcome}\t{what}\t{name}\t{error}\n");
            }
        }
        fs::write(path, text).unwrap();
    }

    fn read(path: &Path) -> Self {
        let mut report = Self::default();
        for line in fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            let [outcome, what, name, error] = fields.try_into().expect("a line of four");
            let list = match outcome {
                "done" => &mut report.done,
                "denied" => &mut report.denied,
                _ => &mut report.unknown,
            };
            list.push(CallOutcome {
                what: what.to_owned(),
                name: name.to_owned(),
                error: error.to_owned(),
            });
        }
        report
    }
}

/// Returns what the calls of one kind have carried.
pub fn names_of<'a>(calls: &'a [CallOutcome], what: &'a str) -> impl Iterator<Item = &'a str> {
    let calls = calls.iter().filter(move |call| call.what == what);
    calls.map(|call| call.name.as_str())
}

/// A process that makes calls.
pub struct LoadProcess {
    child: Child,
    report: PathBuf,
}

impl LoadProcess {
    /// Starts one that reaches the servers in one `way`.
    pub fn start(folder: &Folder, way: &str, places: &[ServerPlace; 3]) -> Self {
        let report = folder.0.join(format!("{way}.report"));
        let addresses = places.each_ref().map(|place| place.address(way));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "load_of_one_process", "--nocapture"])
            .env(ADDRESSES, addresses.join(" "))
            .env(REPORT, &report)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, report }
    }

    /// Has every caller make a last call, which has a result as all servers are there, and returns the report.
    pub fn stop(mut self) -> Report {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        Report::read(&self.report)
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes calls until stdin ends, if this process is one that was started for that.
pub fn run_if_asked() {
    let (Ok(addresses), Ok(path)) = (std::env::var(ADDRESSES), std::env::var(REPORT)) else {
        return;
    };
    let addresses: Vec<&str> = addresses.split(' ').collect();
    let addresses = addresses.try_into().expect("three addresses");
    let over = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            over.store(true, Ordering::Relaxed);
        });
        let tasks = scope.spawn(|| callers::run_tasks(addresses, &over));
        let mut report = callers::run_threads(addresses, &over);
        report.add(tasks.join().unwrap());
        report
    });
    report.write(Path::new(&path));
}
