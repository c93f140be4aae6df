//! One program against the generated trait of calls from tasks: its calls go over a connection, to a server in the same
//! process, or to a mock, and it cannot tell which. Options of some calls hold for these and no others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::obliging;
use crate::common::obliging::{every_way, in_time};
use crate::tasks::{
    Job, Jobs, TASKS_ADD, TasksV1AddError, TasksV1Async, TasksV1AsyncCalls, TasksV1AsyncClient,
    TasksV1AsyncInProcess, TasksV1AsyncService, TasksV1DoError, TasksV1ForgetError,
    TasksV1MeetError, TasksV1NameError, TasksV1NullError, TasksV1SortError,
};
use crate::tasks_onc::{
    Mark, Note, NotesV1Async, NotesV1AsyncCalls, NotesV1AsyncClient, NotesV1AsyncInProcess,
    NotesV1AsyncService,
};
use tenon::wire::{BString, EncodeError, Encoder, Representation};
use tenon::{CallError, CallInfo, LeanInput, Protocol, Refusal, Refused};
use tenon_tokio::{CallOptions, Server};
use tokio::task::yield_now;

/// Waits in some of its methods.
#[derive(Default)]
struct Worker {
    /// Handlers of `meet` that were dropped, as nothing ends them.
    dropped: Arc<AtomicU32>,
}

/// Counts when it is dropped.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl TasksV1Async for Worker {
    async fn do_(&self, _: &CallInfo<'_>, job: Job) -> Result<u32, Refusal> {
        yield_now().await;
        match job.work {
            0 => Err(Refusal::raise(0, "there is no work", &job)),
            _ => Ok(job.name.len() as u32),
        }
    }

    async fn add(&self, _: &CallInfo<'_>, left: u64, right: u64) -> Result<u64, Refusal> {
        Ok(left + right)
    }

    async fn sort(&self, _: &CallInfo<'_>, mut jobs: Jobs, _: bool) -> Result<Jobs, Refusal> {
        jobs.sort_by_key(|job| job.work);
        Ok(jobs)
    }

    async fn name(&self, call: &CallInfo<'_>, _: Job) -> Result<BString, Refusal> {
        Ok(format!("{:?}", call.transport()).into())
    }

    async fn meet(&self, _: &CallInfo<'_>, _: u32) -> Result<(), Refusal> {
        let _dropped = Dropped(Arc::clone(&self.dropped));
        std::future::pending().await
    }

    async fn forget(&self, _: &CallInfo<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// What a test hands a program in place of a client.
#[derive(Default)]
struct Mock {
    asked: Mutex<Vec<String>>,
}

impl TasksV1AsyncCalls for Mock {
    async fn null(&self) -> Result<(), TasksV1NullError> {
        Ok(())
    }

    async fn do_(&self, args: &Job) -> Result<u32, TasksV1DoError> {
        self.asked.lock().unwrap().push(args.name.to_string());
        Ok(5)
    }

    async fn add(&self, _: u64, _: u64) -> Result<u64, TasksV1AddError> {
        Ok(3)
    }

    async fn sort(&self, arg1: &[Job], _: bool) -> Result<Jobs, TasksV1SortError> {
        Ok(arg1.iter().rev().cloned().collect())
    }

    async fn name(&self, _: &Job) -> Result<BString, TasksV1NameError> {
        Ok("mock".into())
    }

    async fn meet(&self, _: u32) -> Result<(), TasksV1MeetError> {
        Ok(())
    }

    async fn forget(&self) -> Result<(), TasksV1ForgetError> {
        Err(CallError::Refused(Refused::SystemError))
    }
}

fn job(name: &str, work: u64) -> Job {
    Job {
        name: name.into(),
        work,
    }
}

/// A program that is handed what it calls.
async fn work_off<C: TasksV1AsyncCalls>(calls: &C) -> Result<(u32, u64, Jobs), CallError> {
    calls.null().await?;
    let done = calls.do_(&job("sweep", 1)).await?;
    let sum = calls.add(1, 2).await?;
    let jobs = calls.sort(&[job("b", 2), job("a", 1)], false).await?;
    Ok((done, sum, jobs))
}

/// The same as a task, which any thread may carry on.
async fn work_off_elsewhere<C>(calls: C) -> Result<(u32, u64, Jobs), CallError>
where
    C: TasksV1AsyncCalls + Send + Sync + 'static,
{
    let task = tokio::spawn(async move {
        let done = calls.do_(&job("sweep", 1)).await?;
        let sum = calls.add(1, 2).await?;
        let jobs = calls.sort(&[job("b", 2), job("a", 1)], false).await?;
        Ok((done, sum, jobs))
    });
    in_time(task).await.unwrap()
}

async fn server() -> Server {
    let builder = obliging::listening_in_tasks();
    let builder = builder.service(TasksV1AsyncService(Worker::default()));
    let builder = builder.service(NotesV1AsyncService(Notes));
    builder.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_a_server_in_the_process_and_a_mock_are_called_alike() {
    let expected = (5, 3, vec![job("a", 1), job("b", 2)]);
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        assert_eq!(
            in_time(work_off(&client)).await.unwrap(),
            expected,
            "{address}"
        );
        let options = CallOptions::new().timeout(obliging::PATIENCE);
        let patient = client.with_options(options);
        assert_eq!(
            in_time(work_off(&patient)).await.unwrap(),
            expected,
            "{address}"
        );
        assert_eq!(
            work_off_elsewhere(client).await.unwrap(),
            expected,
            "{address}"
        );
    }
    let inside = TasksV1AsyncInProcess(Worker::default());
    assert_eq!(in_time(work_off(&inside)).await.unwrap(), expected);
    assert_eq!(inside.name(&job("", 1)).await.unwrap(), "None");
    assert_eq!(work_off_elsewhere(inside).await.unwrap(), expected);
    let mock = Mock::default();
    assert_eq!(in_time(work_off(&mock)).await.unwrap(), expected);
    assert_eq!(*mock.asked.lock().unwrap(), ["sweep"]);
    assert_eq!(work_off_elsewhere(mock).await.unwrap(), expected);
}

#[tokio::test]
async fn refusals_in_the_process_are_those_of_a_connection() {
    let server = server().await;
    let lean = every_way(server.addresses())
        .into_iter()
        .find(|address| address.starts_with("lean"));
    let client = TasksV1AsyncClient::connect(&lean.unwrap()).await.unwrap();
    let inside = TasksV1AsyncInProcess(Worker::default());
    let lazy = job("rest", 0);
    let [near, far] = [inside.do_(&lazy).await, in_time(client.do_(&lazy)).await];
    let [near, far] = [near, far].map(Result::unwrap_err);
    assert_eq!(format!("{near:?}"), format!("{far:?}"));
    let CallError::Exception(exception) = near else {
        panic!("{near:?} is no exception");
    };
    assert_eq!(exception.raised_as::<Job>().unwrap(), lazy);
}

#[tokio::test]
async fn a_call_in_the_process_is_given_up_with_its_future() {
    let worker = Worker::default();
    let dropped = Arc::clone(&worker.dropped);
    let inside = TasksV1AsyncInProcess(worker);
    let waited = tokio::time::timeout(Duration::from_millis(20), inside.meet(2)).await;
    assert!(waited.is_err());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// Writes the arguments of a sum by hand.
fn put_numbers<R: Representation>(out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
    out.put(40_u64);
    out.put(2_u64);
    Ok(())
}

#[tokio::test]
async fn calls_are_started_and_have_options_of_their_own() {
    let server = server().await;
    let limit = Duration::from_millis(50);
    for address in every_way(server.addresses()) {
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        let [one, other] = [1, 2].map(|number| client.start_add(number, 1).unwrap());
        assert_eq!(in_time(other).await.unwrap(), 3, "{address}");
        assert_eq!(in_time(one).await.unwrap(), 2, "{address}");
        let by_hand = match client.0.protocol() {
            Protocol::Onc => client
                .0
                .onc()
                .start(TASKS_ADD, put_numbers, |input| input.get::<u64>()),
            Protocol::Lean => client
                .0
                .lean()
                .start(TASKS_ADD, put_numbers, |input| match input {
                    LeanInput::Native(input) => input.get(),
                    LeanInput::Swapped(input) => input.get(),
                }),
        };
        assert_eq!(
            in_time(by_hand.unwrap()).await.unwrap(),
            42_u64,
            "{address}"
        );
        let hurried = client.with_options(CallOptions::new().timeout(limit));
        let called = in_time(hurried.meet(2)).await;
        let started = in_time(hurried.start_meet(2).unwrap()).await;
        for error in [called, started].map(Result::unwrap_err) {
            assert!(
                matches!(&error, CallError::TimedOut { limit: is, .. } if *is == limit),
                "{address}: {error:?}"
            );
        }
        assert_eq!(in_time(client.add(1, 1)).await.unwrap(), 2, "{address}");
    }
}

/// Has one note.
struct Notes;

impl NotesV1Async for Notes {
    async fn clear(&self, _: &CallInfo<'_>) -> Result<(), Refusal> {
        Err(Refusal::SystemError("it is of stone".to_owned()))
    }

    async fn read(&self, _: &CallInfo<'_>, at: i32) -> Result<Note, Refusal> {
        Ok(Note {
            text: "stone".into(),
            next: Some(at + 1),
        })
    }

    async fn write(&self, _: &CallInfo<'_>, _: i32, what: Note) -> Result<(), Refusal> {
        Err(Refusal::InvalidArguments(what.text.to_string()))
    }

    async fn mark(&self, _: &CallInfo<'_>, note: i32, reply: &mut Mark) -> Result<(), Refusal> {
        reply.note = note;
        Ok(())
    }
}

#[tokio::test]
async fn an_interface_of_onc_rpc_alone_is_called_by_that_alone() {
    let inside = NotesV1AsyncInProcess(Notes);
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = NotesV1AsyncClient::connect(&address).await.unwrap();
        let read = in_time(client.read(1)).await;
        let started = client.start_read(1).map(drop);
        if client.0.protocol() == Protocol::Lean {
            for error in [read.map(drop), started].map(Result::unwrap_err) {
                let spoken = Protocol::Lean;
                assert!(
                    matches!(error, CallError::OtherProtocol { spoken: is } if is == spoken),
                    "{address}: {error:?}"
                );
            }
            continue;
        }
        assert_eq!(read.unwrap(), inside.read(1).await.unwrap(), "{address}");
        started.unwrap();
        let mark = in_time(client.mark(1)).await.unwrap();
        assert_eq!(mark, inside.mark(1).await.unwrap(), "{address}");
        let [near, far] = [inside.clear().await, in_time(client.clear()).await];
        let [near, far] = [near, far].map(Result::unwrap_err);
        assert_eq!(format!("{near:?}"), format!("{far:?}"), "{address}");
        assert!(
            matches!(near, CallError::Refused(Refused::SystemError)),
            "{near:?}"
        );
        let note = Note::default();
        let [near, far] = [
            inside.write(1, &note).await,
            in_time(client.write(1, &note)).await,
        ];
        let [near, far] = [near, far].map(Result::unwrap_err);
        assert_eq!(format!("{near:?}"), format!("{far:?}"), "{address}");
    }
}
