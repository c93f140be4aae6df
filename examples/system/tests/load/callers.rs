//! The callers of a load process, written once for clients of threads and of tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tenon::ChannelOptions;
use tenon_example_system::jobs::{JobsV1AsyncClient, JobsV1Client};
use tenon_example_system::kv::{KvV1AsyncClient, KvV1Client};
use tenon_example_system::uploads::{UploadPosition, UploadsV1AsyncClient, UploadsV1Client};
use tokio::runtime::{Builder, Runtime};

use super::Report;

/// Callers in a process.
pub const CALLERS: usize = 8;

/// Tries of the last call: the first may find that the connection is gone.
const LAST_TRIES: usize = 3;

/// Milliseconds for which a worker waits for a job.
const POLL_MS: u32 = 200;

const CHUNK: usize = 1000;
const CHUNKS: usize = 3;

/// The client of a service, of threads or of tasks.
enum Either<T, A> {
    Threads(T),
    Tasks(A),
}

/// Calls a procedure by either client.
macro_rules! call {
    ($client:expr, $procedure:ident($($argument:expr),*)) => {
        match &$client {
            Either::Threads(client) => client.$procedure($($argument),*),
            Either::Tasks(client) => client.$procedure($($argument),*).await,
        }
    };
}

/// A process's clients of one kind, and what its callers have in common.
struct Load<'a> {
    /// A part of all that the callers send.
    name: String,
    kv: Either<KvV1Client, KvV1AsyncClient>,
    jobs: Either<JobsV1Client, JobsV1AsyncClient>,
    uploads: Either<UploadsV1Client, UploadsV1AsyncClient>,
    over: &'a AtomicBool,
}

/// Calls by clients of tasks, on one thread.
pub fn run_tasks([kv, jobs, uploads]: [&str; 3], over: &AtomicBool) -> Report {
    let connect = async {
        let kv = KvV1AsyncClient::connect_with(kv, options()).await.unwrap();
        let jobs = JobsV1AsyncClient::connect_with(jobs, options())
            .await
            .unwrap();
        let uploads = UploadsV1AsyncClient::connect_with(uploads, options())
            .await
            .unwrap();
        Load {
            name: format!("{}-tasks", std::process::id()),
            kv: Either::Tasks(kv.with_timeout(patience())),
            jobs: Either::Tasks(jobs.with_timeout(patience())),
            uploads: Either::Tasks(uploads.with_timeout(patience())),
            over,
        }
    };
    runtime().block_on(async {
        let load = connect.await;
        let reports = tokio::join!(load.put(), load.submit(), load.work(), load.upload());
        sum([reports.0, reports.1, reports.2, reports.3])
    })
}

/// Calls by clients of threads, on a thread for each caller.
pub fn run_threads([kv, jobs, uploads]: [&str; 3], over: &AtomicBool) -> Report {
    let kv = KvV1Client::connect_with(kv, options()).unwrap();
    let jobs = JobsV1Client::connect_with(jobs, options()).unwrap();
    let uploads = UploadsV1Client::connect_with(uploads, options()).unwrap();
    let load = &Load {
        name: format!("{}-threads", std::process::id()),
        kv: Either::Threads(kv.with_timeout(patience())),
        jobs: Either::Threads(jobs.with_timeout(patience())),
        uploads: Either::Threads(uploads.with_timeout(patience())),
        over,
    };
    thread::scope(|scope| {
        let callers = [
            scope.spawn(move || runtime().block_on(load.put())),
            scope.spawn(move || runtime().block_on(load.submit())),
            scope.spawn(move || runtime().block_on(load.work())),
            scope.spawn(move || runtime().block_on(load.upload())),
        ];
        sum(callers.map(|caller| caller.join().unwrap()))
    })
}

impl Load<'_> {
    /// Sets a fresh key, again and again.
    async fn put(&self) -> Report {
        let (mut report, mut last) = (Report::default(), LastCall::new(self.over));
        for number in 0.. {
            last.begin();
            let key = format!("{}-{number}", self.name);
            let put = call!(self.kv, put(&key, value_of(&key)));
            if last.is_over(report.note("put", &key, put).is_some()) {
                break;
            }
        }
        report
    }

    /// Submits a fresh job, again and again.
    async fn submit(&self) -> Report {
        let (mut report, mut last) = (Report::default(), LastCall::new(self.over));
        for number in 0.. {
            last.begin();
            let work = format!("{}-{number}", self.name);
            let submitted = call!(self.jobs, submit(&work));
            if last.is_over(report.note("submit", &work, submitted).is_some()) {
                break;
            }
        }
        report
    }

    /// Takes jobs, and finishes each with a fresh result.
    async fn work(&self) -> Report {
        let (mut report, mut last) = (Report::default(), LastCall::new(self.over));
        for number in 0.. {
            last.begin();
            let taken = call!(self.jobs, take(POLL_MS));
            let taken = report.note("take", "", taken);
            if let Some(Some(job)) = &taken {
                let result = format!("{}-{number}", self.name);
                let finished = call!(self.jobs, finish(job.id, &result));
                if report.note("finish", &result, finished) == Some(false) {
                    report.last_changed_nothing();
                }
            }
            if last.is_over(taken.is_some()) {
                break;
            }
        }
        report
    }

    /// Sends a fresh file, fetches it and removes it, again and again.
    async fn upload(&self) -> Report {
        let (mut report, mut last) = (Report::default(), LastCall::new(self.over));
        for number in 0.. {
            last.begin();
            let name = format!("{}-{number}", self.name);
            let uploaded = self.upload_file(&name, &mut report).await;
            if last.is_over(uploaded.is_some()) {
                break;
            }
        }
        report
    }

    /// Returns `None` if one of the calls that are made once only has no result.
    async fn upload_file(&self, name: &str, report: &mut Report) -> Option<()> {
        let content = content_of(name);
        let begun = call!(self.uploads, begin(name));
        let id = report.note("begin", name, begun)?;
        let mut next = 0;
        while let Some(chunk) = content[next..].chunks(CHUNK).next() {
            let written = call!(self.uploads, write(id, next as u64, chunk));
            next = match report.note("write", name, written) {
                Some(UploadPosition::Ok(next)) => next as usize,
                Some(other) => panic!("{other:?}"),
                None => self.position(id, report).await,
            };
        }
        let finished = call!(self.uploads, finish(id, next as u64));
        match report.note("complete", name, finished)? {
            UploadPosition::Ok(_) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(self.read(name, report).await, content);
        let removed = call!(self.uploads, remove(name));
        assert!(report.note("remove", name, removed)?);
        Some(())
    }

    /// Asks until it is answered where the next chunk belongs.
    async fn position(&self, id: u64, report: &mut Report) -> usize {
        loop {
            let position = call!(self.uploads, position(id));
            match report.note("position", "", position) {
                Some(UploadPosition::Ok(next)) => return next as usize,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
    }

    /// Reads a file that is complete, until it is answered.
    async fn read(&self, name: &str, report: &mut Report) -> Vec<u8> {
        loop {
            let piece = call!(self.uploads, read(name, 0, (2 * CHUNK * CHUNKS) as u32));
            if let Some(piece) = report.note("read", "", piece) {
                return piece.expect("it was acknowledged").bytes;
            }
        }
    }
}

/// The last call of a caller, which begins when the test is over.
struct LastCall<'a> {
    over: &'a AtomicBool,
    is_last: bool,
    tries: usize,
}

impl<'a> LastCall<'a> {
    fn new(over: &'a AtomicBool) -> Self {
        Self {
            over,
            is_last: false,
            tries: 0,
        }
    }

    fn begin(&mut self) {
        self.is_last = self.over.load(Ordering::Relaxed);
    }

    /// Returns whether the caller may end. The servers are all there, so its last call has a result.
    fn is_over(&mut self, has_result: bool) -> bool {
        if self.is_last && !has_result {
            self.tries += 1;
            assert!(
                self.tries < LAST_TRIES,
                "a server that was started again does not answer"
            );
        }
        self.is_last && has_result
    }
}

/// The value that belongs to a key.
pub fn value_of(key: &str) -> String {
    format!("value of {key}")
}

fn content_of(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(CHUNK * CHUNKS).collect()
}

fn sum(reports: [Report; 4]) -> Report {
    let mut total = Report::default();
    for report in reports {
        total.add(report);
    }
    total
}

/// A server may be killed while its clients connect.
fn options() -> ChannelOptions {
    ChannelOptions::default()
        .connect_lazily(true)
        .wait_for_ready(true)
}

fn patience() -> Duration {
    Duration::from_secs(60)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
