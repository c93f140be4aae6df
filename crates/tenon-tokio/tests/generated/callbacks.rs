//! Calls of a server to its clients, by tasks: `crates/tenon-gen/tests/corpus/callbacks_async.x`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tenon::wire::BString;
use tenon::{Address, CallErrorKind, CallInfo, CallOptions, CallbackClient, ConnectError, Refusal};
use tenon_tokio::{AsyncCallbacks, Channel, ChannelOptions, Server};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::callback_stubs::{
    FollowerV1, FollowerV1Async, FollowerV1AsyncClient, FollowerV1AsyncService, FollowerV1Client,
    FollowerV1Service, FollowerV1TellError, JobsV1, JobsV1Async, JobsV1AsyncClient,
    JobsV1AsyncService, JobsV1Client, JobsV1Service, Progress, TurnedDown,
};
use crate::common::place::fresh_path;

type Follower = FollowerV1AsyncClient<CallbackClient>;

/// Runs jobs, and tells its callers of them.
#[derive(Default)]
struct Jobs(Mutex<BTreeMap<BString, Follower>>);

fn follower_of(call: &CallInfo<'_>) -> Result<Follower, Refusal> {
    Ok(FollowerV1AsyncClient::calling_back(
        call.callback_channel()?,
    ))
}

impl JobsV1Async for Jobs {
    async fn run(&self, call: &CallInfo<'_>, steps: u32) -> Result<u32, Refusal> {
        let follower = follower_of(call)?;
        let mut last = 0;
        for done in 0..steps {
            last = match follower.tell(&Progress { done, of: steps }).await {
                Ok(told) => told,
                Err(FollowerV1TellError::Other(error)) => return Err(error.into()),
                Err(turned_down) => return Err(turned_down.into()),
            };
        }
        Ok(last)
    }

    async fn nest(&self, call: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        let follower = follower_of(call)?;
        match levels {
            0 => Ok(0),
            _ => Ok(1 + follower.nest(levels - 1).await?),
        }
    }

    async fn follow(&self, call: &CallInfo<'_>, name: BString) -> Result<(), Refusal> {
        let follower = follower_of(call)?;
        self.0.lock().unwrap().insert(name, follower);
        Ok(())
    }

    async fn tell(&self, _: &CallInfo<'_>, name: BString, news: Progress) -> Result<u32, Refusal> {
        let follower = self.0.lock().unwrap().get(&name).cloned();
        let follower = follower.ok_or_else(|| Refusal::InvalidArguments("no follower".into()))?;
        Ok(follower.tell(&news).await?)
    }
}

/// The same by threads that block.
struct BlockingJobs;

impl JobsV1 for BlockingJobs {
    fn run(&self, call: &CallInfo<'_>, steps: u32) -> Result<u32, Refusal> {
        let follower = FollowerV1Client::calling_back(call.callback_channel()?);
        let mut last = 0;
        for done in 0..steps {
            last = follower.tell(&Progress { done, of: steps })?;
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

    fn follow(&self, _: &CallInfo<'_>, _: BString) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn tell(&self, _: &CallInfo<'_>, _: BString, _: Progress) -> Result<u32, Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

/// Counts what it is told, and turns what has nothing to do down.
#[derive(Default)]
struct Counting {
    told: AtomicU32,
    /// The client that nested calls are made by.
    jobs: Arc<OnceLock<JobsV1AsyncClient>>,
    /// Lets calls through.
    gate: Option<Arc<Semaphore>>,
}

impl FollowerV1Async for Counting {
    async fn tell(
        &self,
        _: &CallInfo<'_>,
        news: Progress,
    ) -> Result<u32, FollowerV1TellError<Refusal>> {
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        if news.of == 0 {
            let reason = "nothing to do".into();
            return Err(TurnedDown { reason }.into());
        }
        Ok(self.told.fetch_add(1, Ordering::Relaxed))
    }

    async fn nest(&self, _: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        let jobs = self.jobs.get().expect("it was set");
        match levels {
            0 => Ok(0),
            _ => Ok(1 + jobs.nest(levels - 1).await?),
        }
    }
}

/// The same by threads that block.
#[derive(Default)]
struct BlockingCounting {
    told: AtomicU32,
    jobs: Arc<OnceLock<JobsV1Client>>,
}

impl FollowerV1 for BlockingCounting {
    fn tell(&self, _: &CallInfo<'_>, _: Progress) -> Result<u32, FollowerV1TellError<Refusal>> {
        Ok(self.told.fetch_add(1, Ordering::Relaxed))
    }

    fn nest(&self, _: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        match (levels, self.jobs.get()) {
            (0, _) => Ok(0),
            (_, Some(jobs)) => Ok(1 + jobs.nest(levels - 1)?),
            (_, None) => Err(Refusal::SystemError("no client".into())),
        }
    }
}

async fn serving(address: &str, callbacks: AsyncCallbacks) -> JobsV1AsyncClient {
    let address: Address = address.parse().unwrap();
    let channel = Channel::connect_serving(&address, ChannelOptions::default(), callbacks).await;
    JobsV1AsyncClient::over(channel.unwrap())
}

fn counting() -> AsyncCallbacks {
    AsyncCallbacks::new().service(FollowerV1AsyncService(Counting::default()))
}

/// Starts a server of tasks, or one whose handlers block; its addresses by either protocol.
async fn start_server(blocks: bool) -> (Server, Vec<String>) {
    let path = || fresh_path().display().to_string();
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.listen(&format!("unix://{}", path())).unwrap();
    let builder = builder.listen(&format!("shm://{}", path())).unwrap();
    let builder = match blocks {
        true => builder.sync_service(JobsV1Service(BlockingJobs)),
        false => builder.service(JobsV1AsyncService(Jobs::default())),
    };
    let server = builder.start().await.unwrap();
    let addresses = server.addresses().iter().map(ToString::to_string);
    let addresses = addresses.flat_map(|address| match address.starts_with("shm") {
        true => vec![address],
        false => vec![address.clone(), format!("lean+{address}")],
    });
    let addresses = addresses.collect();
    (server, addresses)
}

async fn each(blocks: bool, test: impl AsyncFn(&str)) {
    let (server, addresses) = start_server(blocks).await;
    for address in &addresses {
        eprintln!("{address}");
        test(address).await;
    }
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_calls_its_caller_back() {
    for blocks in [false, true] {
        each(blocks, async |address| {
            let jobs = serving(address, counting()).await;
            assert_eq!(jobs.run(10).await.unwrap(), 9);
            assert_eq!(jobs.run(300).await.unwrap(), 309);
            jobs.ping().await.unwrap();
        })
        .await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn both_ends_run_on_one_thread() {
    each(false, async |address| {
        let jobs = serving(address, counting()).await;
        assert_eq!(jobs.run(10).await.unwrap(), 9);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_both_ends_nest() {
    for blocks in [false, true] {
        each(blocks, async |address| {
            let jobs = Arc::<OnceLock<JobsV1AsyncClient>>::default();
            let follower = Counting {
                jobs: Arc::clone(&jobs),
                ..Counting::default()
            };
            let callbacks = AsyncCallbacks::new().service(FollowerV1AsyncService(follower));
            let client = serving(address, callbacks).await;
            jobs.set(client.clone()).unwrap();
            for levels in [1, 2, 3, 9] {
                assert_eq!(client.nest(levels).await.unwrap(), levels);
            }
            client.0.channel().close().await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_threads_is_called_back() {
    each(false, async |address| {
        let address: Address = address.parse().unwrap();
        let called = tokio::task::spawn_blocking(move || {
            let jobs = Arc::<OnceLock<JobsV1Client>>::default();
            let follower = BlockingCounting {
                jobs: Arc::clone(&jobs),
                ..BlockingCounting::default()
            };
            let callbacks = tenon::Callbacks::new().service(FollowerV1Service(follower));
            let options = ChannelOptions::default();
            let channel = tenon::Channel::connect_serving(&address, options, callbacks);
            let client = JobsV1Client::over(channel.unwrap());
            assert_eq!(client.run(20).unwrap(), 19);
            jobs.set(client.clone()).unwrap();
            assert_eq!(client.nest(5).unwrap(), 5);
        });
        called.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_of_functions_are_called_back() {
    each(false, async |address| {
        let callbacks =
            AsyncCallbacks::new().sync_service(FollowerV1Service(BlockingCounting::default()));
        let jobs = serving(address, callbacks).await;
        assert_eq!(jobs.run(50).await.unwrap(), 49);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_back_is_used_when_its_handler_has_returned() {
    each(false, async |address| {
        let jobs = serving(address, counting()).await;
        jobs.follow("one").await.unwrap();
        let other = JobsV1AsyncClient::connect(address).await.unwrap();
        let news = Progress { done: 1, of: 2 };
        for told in 0..3 {
            assert_eq!(other.tell("one", &news).await.unwrap(), told);
        }
        drop(jobs);
        let until = Instant::now() + Duration::from_secs(5);
        while other.tell("one", &news).await.is_ok() {
            assert!(Instant::now() < until, "the follower is gone");
        }
        let lost = other.tell("one", &news).await.unwrap_err();
        assert_eq!(lost.kind(), CallErrorKind::Failed, "{lost}");
        assert!(Instant::now() < until);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_the_client_takes_wait() {
    let (server, addresses) = start_server(false).await;
    let lean = |address: &&String| !address.starts_with("tcp") && !address.starts_with("unix");
    for address in addresses.iter().filter(lean) {
        let gate = Arc::new(Semaphore::new(0));
        let follower = Counting {
            gate: Some(Arc::clone(&gate)),
            ..Counting::default()
        };
        let callbacks = AsyncCallbacks::new()
            .service(FollowerV1AsyncService(follower))
            .calls_max(2);
        let jobs = serving(address, callbacks).await;
        jobs.follow("slow").await.unwrap();
        let other = JobsV1AsyncClient::connect(address).await.unwrap();
        let callers: Vec<_> = (0..6)
            .map(|_| {
                let other = other.clone();
                tokio::spawn(async move { other.tell("slow", &Progress { done: 0, of: 1 }).await })
            })
            .collect();
        sleep(Duration::from_millis(20)).await;
        gate.add_permits(6);
        let mut told = Vec::new();
        for caller in callers {
            told.push(caller.await.unwrap().unwrap());
        }
        told.sort_unstable();
        assert_eq!(told, [0, 1, 2, 3, 4, 5]);
    }
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_back_has_no_more_time_than_the_call() {
    let (server, addresses) = start_server(false).await;
    let address = addresses.iter().find(|at| at.starts_with("lean+tcp"));
    let gate = Arc::new(Semaphore::new(0));
    let follower = Counting {
        gate: Some(Arc::clone(&gate)),
        ..Counting::default()
    };
    let callbacks = AsyncCallbacks::new().service(FollowerV1AsyncService(follower));
    let jobs = serving(address.unwrap(), callbacks).await;
    let hurried = CallOptions::new().timeout(Duration::from_millis(100));
    let late = jobs.with_options(hurried).run(1).await.unwrap_err();
    assert_eq!(late.kind(), CallErrorKind::TimedOut, "{late}");
    // One for the handler of the call back that was given up, if it does not know of that yet.
    gate.add_permits(2);
    assert!(jobs.run(1).await.is_ok());
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_serves_nothing_is_not_called() {
    let (server, addresses) = start_server(false).await;
    let address = addresses.iter().find(|at| at.starts_with("lean+tcp"));
    let jobs = JobsV1AsyncClient::connect(address.unwrap()).await.unwrap();
    let refused = jobs.run(1).await.unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::Failed, "{refused}");
    jobs.ping().await.unwrap();
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn datagrams_carry_no_calls_back() {
    let address: Address = "udp://127.0.0.1:9".parse().unwrap();
    for address in [address.clone(), address.over_lean()] {
        let options = ChannelOptions::default();
        let refused = Channel::connect_serving(&address, options, counting()).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, ConnectError::Callbacks { .. }),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_waits_for_calls_back_that_are_in_flight() {
    for name in ["lean+tcp", "lean+unix", "shm", "tcp"] {
        let (server, addresses) = start_server(false).await;
        let address = addresses.iter().find(|at| at.starts_with(name)).unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let follower = Counting {
            gate: Some(Arc::clone(&gate)),
            ..Counting::default()
        };
        let callbacks = AsyncCallbacks::new().service(FollowerV1AsyncService(follower));
        let jobs = serving(address, callbacks).await;
        let running = tokio::spawn(async move { jobs.run(1).await });
        sleep(Duration::from_millis(50)).await;
        let stopping = tokio::spawn(async move { server.shutdown(Duration::from_secs(10)).await });
        sleep(Duration::from_millis(50)).await;
        gate.add_permits(1);
        assert_eq!(running.await.unwrap().unwrap(), 0, "{name}");
        stopping.await.unwrap();
    }
}
