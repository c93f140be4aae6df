//! Calls of a server to its clients: `crates/tenon-gen/tests/corpus/callbacks.x`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tenon::wire::BString;
use tenon::{
    Address, CallErrorKind, CallInfo, CallOptions, CallbackClient, Callbacks, Channel,
    ChannelOptions, ConnectError, Refusal, Server,
};

use crate::callback_stubs::{
    FollowerV1, FollowerV1Client, FollowerV1Service, FollowerV1TellError, JobsV1, JobsV1Client,
    JobsV1Service, Progress, TurnedDown,
};
use crate::common::place::fresh_path;

type Follower = FollowerV1Client<CallbackClient>;

/// Runs jobs, and tells its callers of them.
#[derive(Default)]
struct Jobs(Mutex<BTreeMap<BString, Follower>>);

impl JobsV1 for Jobs {
    fn run(&self, call: &CallInfo<'_>, steps: u32) -> Result<u32, Refusal> {
        let follower = FollowerV1Client::calling_back(call.callback_channel()?);
        let mut last = 0;
        for done in 0..steps {
            last = match follower.tell(&Progress { done, of: steps }) {
                Ok(told) => told,
                Err(FollowerV1TellError::Other(error)) => return Err(error.into()),
                Err(turned_down) => return Err(turned_down.into()),
            };
        }
        Ok(last)
    }

    fn nest(&self, call: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        let follower = FollowerV1Client::calling_back(call.callback_channel()?);
        match levels {
            0 => Ok(0),
            _ => Ok(1 + follower.nest(levels - 1)?),
        }
    }

    fn follow(&self, call: &CallInfo<'_>, name: BString) -> Result<(), Refusal> {
        let follower = FollowerV1Client::calling_back(call.callback_channel()?);
        self.0.lock().unwrap().insert(name, follower);
        Ok(())
    }

    fn tell(&self, _: &CallInfo<'_>, name: BString, news: Progress) -> Result<u32, Refusal> {
        let follower = self.0.lock().unwrap().get(&name).cloned();
        let follower = follower.ok_or_else(|| Refusal::InvalidArguments("no follower".into()))?;
        Ok(follower.tell(&news)?)
    }
}

/// Counts what it is told, and turns what it is to be done last down.
#[derive(Default)]
struct Counting {
    told: AtomicU32,
    /// The client that nested calls are made by.
    jobs: Arc<OnceLock<JobsV1Client>>,
    /// Waits for this before it answers.
    gate: Option<Mutex<Receiver<()>>>,
}

impl FollowerV1 for Counting {
    fn tell(&self, _: &CallInfo<'_>, news: Progress) -> Result<u32, FollowerV1TellError<Refusal>> {
        if let Some(gate) = &self.gate {
            let _ = gate.lock().unwrap().recv();
        }
        if news.of == 0 {
            let reason = "nothing to do".into();
            return Err(TurnedDown { reason }.into());
        }
        Ok(self.told.fetch_add(1, Ordering::Relaxed))
    }

    fn nest(&self, _: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        let jobs = self.jobs.get().expect("it was set");
        match levels {
            0 => Ok(0),
            _ => Ok(1 + jobs.nest(levels - 1)?),
        }
    }
}

fn serving(address: &str, follower: Counting) -> JobsV1Client {
    let callbacks = Callbacks::new().service(FollowerV1Service(follower));
    let address: Address = address.parse().unwrap();
    let channel = Channel::connect_serving(&address, ChannelOptions::default(), callbacks);
    JobsV1Client::over(channel.unwrap())
}

fn start_server() -> (Server, Vec<String>) {
    let path = || fresh_path().display().to_string();
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.listen(&format!("unix://{}", path())).unwrap();
    let builder = builder.listen(&format!("shm://{}", path())).unwrap();
    let server = builder
        .service(JobsV1Service(Jobs::default()))
        .start()
        .unwrap();
    let addresses = server.addresses().iter().map(ToString::to_string);
    let addresses = addresses.flat_map(|address| match address.starts_with("shm") {
        true => vec![address],
        false => vec![address.clone(), format!("lean+{address}")],
    });
    let addresses = addresses.collect();
    (server, addresses)
}

/// Runs a test at each address that carries calls back: by either protocol over TCP and Unix sockets, and in shared memory.
fn each(test: impl Fn(&str)) {
    let (server, addresses) = start_server();
    assert_eq!(addresses.len(), 5);
    for address in &addresses {
        eprintln!("{address}");
        test(address);
    }
    server.shutdown(Duration::from_secs(5));
}

#[test]
fn a_handler_calls_its_caller_back() {
    each(|address| {
        let jobs = serving(address, Counting::default());
        assert_eq!(jobs.run(10).unwrap(), 9);
        assert_eq!(jobs.run(300).unwrap(), 309);
        jobs.ping().unwrap();
    });
}

#[test]
fn calls_of_both_ends_nest() {
    each(|address| {
        let jobs = Arc::<OnceLock<JobsV1Client>>::default();
        let follower = Counting {
            jobs: Arc::clone(&jobs),
            ..Counting::default()
        };
        let client = serving(address, follower);
        jobs.set(client.clone()).unwrap();
        for levels in [1, 2, 3, 9] {
            assert_eq!(client.nest(levels).unwrap(), levels);
        }
    });
}

#[test]
fn a_way_back_is_used_when_its_handler_has_returned() {
    each(|address| {
        let jobs = serving(address, Counting::default());
        jobs.follow("one").unwrap();
        let other = JobsV1Client::connect(address).unwrap();
        let news = Progress { done: 1, of: 2 };
        for told in 0..3 {
            // Nobody of this end waits for anything but that.
            assert_eq!(other.tell("one", &news).unwrap(), told);
        }
        drop(jobs);
        let until = Instant::now() + Duration::from_secs(5);
        while other.tell("one", &news).is_ok() {
            assert!(Instant::now() < until, "the follower is gone");
        }
        // It is not waited for until the time is over.
        let lost = other.tell("one", &news).unwrap_err();
        assert_eq!(lost.kind(), CallErrorKind::Failed, "{lost}");
        assert!(Instant::now() < until);
    });
}

#[test]
fn errors_of_the_interface_come_back_by_the_lean_protocol() {
    struct Asking(Mutex<Sender<Result<u32, FollowerV1TellError>>>);

    impl JobsV1 for Asking {
        fn run(&self, call: &CallInfo<'_>, steps: u32) -> Result<u32, Refusal> {
            let follower = FollowerV1Client::calling_back(call.callback_channel()?);
            let told = follower.tell(&Progress { done: 0, of: steps });
            self.0.lock().unwrap().send(told).unwrap();
            Ok(0)
        }

        fn nest(&self, _: &CallInfo<'_>, _: u32) -> Result<u32, Refusal> {
            Ok(0)
        }

        fn follow(&self, _: &CallInfo<'_>, _: BString) -> Result<(), Refusal> {
            Ok(())
        }

        fn tell(&self, _: &CallInfo<'_>, _: BString, _: Progress) -> Result<u32, Refusal> {
            Ok(0)
        }
    }

    let (told, results) = channel();
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.service(JobsV1Service(Asking(Mutex::new(told))));
    let server = builder.start().unwrap();
    let address = server.addresses()[0].to_string();
    let jobs = serving(&format!("lean+{address}"), Counting::default());
    jobs.run(0).unwrap();
    let Err(FollowerV1TellError::TurnedDown(down)) = results.recv().unwrap() else {
        panic!("another outcome");
    };
    assert_eq!(down.reason, "nothing to do");
    let jobs = serving(&address, Counting::default());
    jobs.run(0).unwrap();
    let failed = results.recv().unwrap().unwrap_err();
    assert_eq!(failed.kind(), CallErrorKind::Failed, "{failed}");
}

#[test]
fn a_client_that_serves_nothing_is_not_called() {
    let (server, addresses) = start_server();
    let lean = addresses
        .iter()
        .find(|address| address.starts_with("lean+tcp"))
        .unwrap();
    let jobs = JobsV1Client::connect(lean).unwrap();
    let refused = jobs.run(1).unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::Failed, "{refused}");
    jobs.ping().unwrap();
    drop(server);
}

#[test]
fn datagrams_carry_no_calls_back() {
    let builder = Server::builder().listen("udp://127.0.0.1:0").unwrap();
    let server = builder
        .service(JobsV1Service(Jobs::default()))
        .start()
        .unwrap();
    for address in [
        server.addresses()[0].to_string(),
        format!("lean+{}", server.addresses()[0]),
    ] {
        let callbacks = Callbacks::new().service(FollowerV1Service(Counting::default()));
        let options = ChannelOptions::default();
        let refused = Channel::connect_serving(&address.parse().unwrap(), options, callbacks);
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, ConnectError::Callbacks { .. }),
            "{refused}"
        );
        let jobs = JobsV1Client::connect(&address).unwrap();
        assert_eq!(jobs.run(1).unwrap_err().kind(), CallErrorKind::Failed);
    }
}

#[test]
fn more_calls_than_the_client_takes_wait() {
    let (server, addresses) = start_server();
    for address in addresses
        .iter()
        .filter(|address| !address.starts_with("tcp") && !address.starts_with("unix"))
    {
        let (open, gate) = channel();
        let follower = Counting {
            gate: Some(Mutex::new(gate)),
            ..Counting::default()
        };
        let callbacks = Callbacks::new()
            .service(FollowerV1Service(follower))
            .calls_max(2);
        let options = ChannelOptions::default();
        let channel = Channel::connect_serving(&address.parse().unwrap(), options, callbacks);
        let jobs = JobsV1Client::over(channel.unwrap());
        jobs.follow("slow").unwrap();
        let other = JobsV1Client::connect(address).unwrap();
        thread::scope(|scope| {
            let callers: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| other.tell("slow", &Progress { done: 0, of: 1 })))
                .collect();
            for _ in 0..6 {
                open.send(()).unwrap();
            }
            let mut told: Vec<u32> = callers
                .into_iter()
                .map(|caller| caller.join().unwrap().unwrap())
                .collect();
            told.sort_unstable();
            assert_eq!(told, [0, 1, 2, 3, 4, 5]);
        });
    }
    server.shutdown(Duration::from_secs(5));
}

#[test]
fn a_call_back_has_no_more_time_than_the_call() {
    let (server, addresses) = start_server();
    let lean = addresses
        .iter()
        .find(|address| address.starts_with("lean+tcp"))
        .unwrap();
    let (open, gate) = channel();
    let follower = Counting {
        gate: Some(Mutex::new(gate)),
        ..Counting::default()
    };
    let jobs = serving(lean, follower);
    let hurried = CallOptions::new().timeout(Duration::from_millis(100));
    let late = jobs.with_options(hurried).run(1).unwrap_err();
    assert_eq!(late.kind(), CallErrorKind::TimedOut, "{late}");
    for _ in 0..3 {
        open.send(()).unwrap();
    }
    // Both ends go on.
    let next = jobs.run(1);
    assert!(next.is_ok(), "{next:?}");
    server.shutdown(Duration::from_secs(5));
}

#[test]
fn a_server_that_stops_waits_for_calls_back_that_are_in_flight() {
    let (server, addresses) = start_server();
    let lean = addresses
        .iter()
        .find(|address| address.starts_with("lean+unix"))
        .unwrap();
    let (open, gate) = channel();
    let (began, begun) = channel();
    let follower = Counting {
        gate: Some(Mutex::new(gate)),
        ..Counting::default()
    };
    let jobs = serving(lean, follower);
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            began.send(()).unwrap();
            jobs.run(1)
        });
        begun.recv().unwrap();
        thread::sleep(Duration::from_millis(50));
        let stopping = scope.spawn(move || server.shutdown(Duration::from_secs(10)));
        thread::sleep(Duration::from_millis(50));
        open.send(()).unwrap();
        assert_eq!(running.join().unwrap().unwrap(), 0);
        stopping.join().unwrap();
    });
}
