//! Generated services whose methods are asynchronous, called by generated clients in threads and in
//! tasks, by both protocols.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::lean_caller::LeanCaller;
use crate::common::obliging;
use crate::common::obliging::{every_way, in_time};
use crate::tasks;
use crate::tasks::{
    Job, Jobs, TASKS_ADD, TasksV1Async, TasksV1AsyncClient, TasksV1AsyncService, TasksV1Client,
};
use crate::tasks_onc;
use crate::tasks_onc::{
    Mark, Note, NotesV1Async, NotesV1AsyncClient, NotesV1AsyncService, NotesV1Client,
};
use tenon::lean::{ByteOrder, Extras, Preamble};
use tenon::wire::{BString, Buffer, Encoder, Lean, Swapped};
use tenon::{CallError, CallInfo, Protocol, Refusal, Refused};
use tenon_tokio::Server;
use tokio::sync::Notify;
use tokio::task::{JoinSet, spawn_blocking, yield_now};

/// Waits in each of its methods.
#[derive(Default)]
struct Worker {
    met: AtomicU32,
    all_are_there: Notify,
}

impl TasksV1Async for Worker {
    async fn do_(&self, call: &CallInfo<'_>, job: Job) -> Result<u32, Refusal> {
        yield_now().await;
        assert_eq!(call.procedure(), tasks::TASKS_DO);
        match job.work {
            0 => Err(Refusal::SystemError("there is no work".to_owned())),
            13 => panic!("as the test asked"),
            _ => Ok(job.name.len() as u32),
        }
    }

    async fn add(&self, _: &CallInfo<'_>, left: u64, right: u64) -> Result<u64, Refusal> {
        yield_now().await;
        Ok(left.wrapping_add(right))
    }

    async fn sort(
        &self,
        _: &CallInfo<'_>,
        mut jobs: Jobs,
        descending: bool,
    ) -> Result<Jobs, Refusal> {
        jobs.sort_by_key(|job| job.work);
        yield_now().await;
        if descending {
            jobs.reverse();
        }
        // One more than the interface allows, if there is no room for it.
        jobs.extend((jobs.len() == 8).then(Job::default));
        Ok(jobs)
    }

    async fn name(&self, _: &CallInfo<'_>, job: Job) -> Result<BString, Refusal> {
        Ok(job.name)
    }

    async fn meet(&self, _: &CallInfo<'_>, count: u32) -> Result<(), Refusal> {
        let all_are_there = self.all_are_there.notified();
        if self.met.fetch_add(1, Ordering::SeqCst) + 1 == count {
            self.met.store(0, Ordering::SeqCst);
            self.all_are_there.notify_waiters();
            return Ok(());
        }
        all_are_there.await;
        Ok(())
    }

    async fn forget(&self, _: &CallInfo<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

async fn server() -> Server {
    let service = TasksV1AsyncService(Worker::default());
    let builder = obliging::listening_in_tasks().service(service);
    builder.start().await.unwrap()
}

fn job(name: &str, work: u64) -> Job {
    Job {
        name: name.into(),
        work,
    }
}

fn jobs(count: u64) -> Jobs {
    (0..count).map(|work| job("sweep", count - work)).collect()
}

/// The work of each.
fn works(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.work).collect()
}

#[tokio::test]
async fn tasks_are_served_by_both_protocols() {
    let server = server().await;
    let mut lean = 0;
    for address in every_way(server.addresses()) {
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        lean += u32::from(client.0.protocol() == Protocol::Lean);
        in_time(client.null()).await.unwrap();
        in_time(client.forget()).await.unwrap();
        let done = in_time(client.do_(&job("sweep", 1))).await;
        assert_eq!(done.unwrap(), 5, "{address}");
        assert_eq!(in_time(client.add(u64::MAX, 2)).await.unwrap(), 1);
        let sorted = in_time(client.sort(&jobs(3), false)).await.unwrap();
        assert_eq!(works(&sorted), [1, 2, 3], "{address}");
        assert_eq!(sorted[0].name, "sweep");
        let sorted = in_time(client.sort(&jobs(3), true)).await.unwrap();
        assert_eq!(works(&sorted), [3, 2, 1], "{address}");
        let name = in_time(client.name(&job("\u{fc}ben", 1))).await;
        assert_eq!(name.unwrap(), "\u{fc}ben", "{address}");
    }
    assert_eq!(lean, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_served_by_tasks() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let called = spawn_blocking(move || {
            let client = TasksV1Client::connect(&address).unwrap();
            let started = client.start_do(&job("sweep", 1)).unwrap();
            assert_eq!(client.name(&job("x", 0)).unwrap(), "x", "{address}");
            assert_eq!(started.wait().unwrap(), 5, "{address}");
        });
        in_time(called).await.unwrap();
    }
}

/// Each call of MEET waits for all others: on one connection they are carried out at the same time.
#[tokio::test]
async fn calls_of_one_connection_wait_for_each_other() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..10 {
            let client = client.clone();
            calls.spawn(async move { in_time(client.meet(10)).await });
        }
        while let Some(met) = calls.join_next().await {
            met.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_the_connection_goes_on() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        let is_lean = client.0.protocol() == Protocol::Lean;
        for work in [0, 13] {
            let failed = in_time(client.do_(&job("sweep", work))).await.unwrap_err();
            match (&failed, is_lean) {
                (CallError::Refused(Refused::SystemError), false) => {}
                (CallError::Exception(_), true) => {}
                (error, _) => panic!("{address}: {error:?}"),
            }
        }
        let too_many = in_time(client.sort(&jobs(8), false)).await;
        let is_told = matches!(
            too_many,
            Err(CallError::Refused(_) | CallError::Exception(_))
        );
        assert!(is_told, "{address}: {too_many:?}");
        for procedure in [TASKS_ADD, 99] {
            let wrong = in_time(call_with_four_bytes(&client, procedure)).await;
            assert!(wrong.is_err(), "{address}: {procedure}");
        }
        assert_eq!(in_time(client.add(40, 2)).await.unwrap(), 42, "{address}");
    }
}

/// Calls with four bytes, which are too few for the arguments of any procedure that is called so.
async fn call_with_four_bytes(
    client: &TasksV1AsyncClient,
    procedure: u32,
) -> Result<(), CallError> {
    let client = &client.0;
    match client.protocol() {
        Protocol::Onc => {
            client
                .onc()
                .call(procedure, |out| out.put_opaque(b"", 0), |_| Ok(()))
                .await
        }
        Protocol::Lean => {
            let call = client
                .lean()
                .call(procedure, |out| out.put_opaque(b"", 0), |_| Ok(()));
            call.await
        }
    }
}

/// A lean client whose numbers have the order of bytes that this machine does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_other_order_is_served() {
    let server = server().await;
    let order = match ByteOrder::NATIVE {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    };
    let preamble = Preamble {
        order,
        ..Preamble::client(1 << 20)
    };
    let mut arguments = Buffer::default();
    let mut out = Encoder::<Lean<Swapped>>::over(&mut arguments);
    out.put(0x0102_0304_0506_0708_u64);
    out.put(1_u64);
    for address in server.addresses().iter().map(ToString::to_string) {
        let arguments = arguments.as_slice().to_vec();
        let called = spawn_blocking(move || {
            let mut caller = LeanCaller::connect_as(&address, &preamble);
            let interface = tasks::TASKS_V1_INTERFACE.shared();
            caller.call_of(&interface, TASKS_ADD as u16, &arguments, &Extras::default())
        });
        let answer = in_time(called).await.unwrap();
        let sum = 0x0102_0304_0506_0709_u64.to_ne_bytes();
        let sum = format!(": {}", sum.escape_ascii());
        assert!(answer.ends_with(&sum), "{answer}");
    }
}

/// Keeps notes.
#[derive(Default)]
struct Board(Mutex<HashMap<i32, Note>>);

impl NotesV1Async for Board {
    async fn clear(&self, _: &CallInfo<'_>) -> Result<(), Refusal> {
        self.0.lock().unwrap().clear();
        Ok(())
    }

    async fn read(&self, call: &CallInfo<'_>, at: i32) -> Result<Note, Refusal> {
        yield_now().await;
        assert_eq!(call.procedure(), tasks_onc::NOTES_READ);
        let notes = self.0.lock().unwrap();
        let found = notes.get(&at).cloned();
        found.ok_or_else(|| Refusal::SystemError("there is none".to_owned()))
    }

    async fn write(&self, _: &CallInfo<'_>, at: i32, what: Note) -> Result<(), Refusal> {
        yield_now().await;
        self.0.lock().unwrap().insert(at, what);
        Ok(())
    }

    async fn mark(&self, _: &CallInfo<'_>, note: i32, reply: &mut Mark) -> Result<(), Refusal> {
        *reply = Mark { note, line: -1 };
        yield_now().await;
        let notes = self.0.lock().unwrap();
        match notes.contains_key(&note) {
            true => Ok(()),
            false => Err(Refusal::SystemError("there is none".to_owned())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_without_the_lean_protocol_is_served_by_the_other() {
    let service = NotesV1AsyncService(Board::default());
    let builder = obliging::listening_in_tasks().service(service);
    let server = builder.start().await.unwrap();
    let note = Note {
        text: "buy milk".into(),
        next: Some(2),
    };
    for address in server.addresses().iter().map(ToString::to_string) {
        let client = NotesV1AsyncClient::connect(&address).await.unwrap();
        in_time(client.write(1, &note)).await.unwrap();
        assert_eq!(in_time(client.read(1)).await.unwrap(), note, "{address}");
        let mark = Mark { note: 1, line: -1 };
        assert_eq!(in_time(client.mark(1)).await.unwrap(), mark, "{address}");
        assert!(in_time(client.mark(2)).await.is_err(), "{address}");
        let same = note.clone();
        let called = spawn_blocking(move || {
            let client = NotesV1Client::connect(&address).unwrap();
            assert_eq!(client.read(1).unwrap(), same, "{address}");
            client.clear().unwrap();
            assert!(client.read(1).is_err(), "{address}");
        });
        in_time(called).await.unwrap();
    }
}
