//! Calls back: a server calls its client over the connection that the client has opened, for each kind of server and client;
//! where nothing carries them, that is said.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tenon::wire::BString;
use tenon::{
    Address, CallErrorKind, CallInfo, Callbacks, Channel, ChannelOptions, ConnectError, Refusal,
};
use tenon_tokio::AsyncCallbacks;

use crate::job_stubs::{
    FollowerV1, FollowerV1Async, FollowerV1AsyncClient, FollowerV1AsyncService, FollowerV1Client,
    FollowerV1Service, FollowerV1TellError, JobsV1, JobsV1Async, JobsV1AsyncClient,
    JobsV1AsyncService, JobsV1Client, JobsV1Service, Progress,
};
use crate::rows::{Driven, Row, Server, rows};

/// Calls its callers back.
struct Jobs;

impl JobsV1 for Jobs {
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

impl JobsV1Async for Jobs {
    async fn run(&self, call: &CallInfo<'_>, steps: u32) -> Result<u32, Refusal> {
        let follower = FollowerV1AsyncClient::calling_back(call.callback_channel()?);
        let mut last = 0;
        for done in 0..steps {
            last = follower.tell(&Progress { done, of: steps }).await?;
        }
        Ok(last)
    }

    async fn nest(&self, call: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        let follower = FollowerV1AsyncClient::calling_back(call.callback_channel()?);
        match levels {
            0 => Ok(0),
            _ => Ok(1 + follower.nest(levels - 1).await?),
        }
    }

    async fn follow(&self, _: &CallInfo<'_>, _: BString) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    async fn tell(&self, _: &CallInfo<'_>, _: BString, _: Progress) -> Result<u32, Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

/// Counts what it is told, and calls its server by `C`.
struct Follower<C> {
    told: AtomicU32,
    jobs: Arc<OnceLock<C>>,
}

impl<C> Follower<C> {
    fn new(jobs: &Arc<OnceLock<C>>) -> Self {
        Self {
            told: AtomicU32::new(0),
            jobs: Arc::clone(jobs),
        }
    }
}

impl FollowerV1 for Follower<JobsV1Client> {
    fn tell(&self, _: &CallInfo<'_>, _: Progress) -> Result<u32, FollowerV1TellError<Refusal>> {
        Ok(self.told.fetch_add(1, Ordering::Relaxed))
    }

    fn nest(&self, _: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        match levels {
            0 => Ok(0),
            _ => Ok(1 + self.jobs.get().unwrap().nest(levels - 1)?),
        }
    }
}

impl FollowerV1Async for Follower<JobsV1AsyncClient> {
    async fn tell(
        &self,
        _: &CallInfo<'_>,
        _: Progress,
    ) -> Result<u32, FollowerV1TellError<Refusal>> {
        Ok(self.told.fetch_add(1, Ordering::Relaxed))
    }

    async fn nest(&self, _: &CallInfo<'_>, levels: u32) -> Result<u32, Refusal> {
        match levels {
            0 => Ok(0),
            _ => Ok(1 + self.jobs.get().unwrap().nest(levels - 1).await?),
        }
    }
}

fn serve(row: &Row) -> Server {
    row.serve_by(
        |builder| builder.service(JobsV1Service(Jobs)),
        |builder| builder.service(JobsV1AsyncService(Jobs)),
    )
}

type Connected = Result<Driven<JobsV1Client, JobsV1AsyncClient>, ConnectError>;

/// Connects a client that serves its server.
fn connect(row: &Row, server: &Server) -> Connected {
    let of = |address: &str| address.parse::<Address>().unwrap();
    let options = ChannelOptions::default();
    let connected = row.connect_by(
        server,
        |address| {
            let jobs = Arc::default();
            let callbacks = Callbacks::new().service(FollowerV1Service(Follower::new(&jobs)));
            let channel = Channel::connect_serving(&of(address), options.clone(), callbacks)?;
            let client = JobsV1Client::over(channel);
            let _ = jobs.set(client.clone());
            Ok::<_, ConnectError>(client)
        },
        async |address| {
            let jobs = Arc::default();
            let service = FollowerV1AsyncService(Follower::new(&jobs));
            let callbacks = AsyncCallbacks::new().service(service);
            let (address, options) = (of(address), options.clone());
            let channel = tenon_tokio::Channel::connect_serving(&address, options, callbacks);
            let client = JobsV1AsyncClient::over(channel.await?);
            let _ = jobs.set(client.clone());
            Ok::<_, ConnectError>(client)
        },
    );
    Ok(match connected {
        Driven::Threads(client) => Driven::Threads(client?),
        Driven::Tasks(client, runtime) => Driven::Tasks(client?, runtime),
    })
}

#[test]
fn a_server_calls_its_client_and_calls_of_both_nest() {
    let carried = |row: &Row| row.carrier.no_connection.is_none();
    for row in rows().into_iter().filter(carried) {
        let server = serve(&row);
        let results = match connect(&row, &server).unwrap() {
            Driven::Threads(jobs) => [jobs.run(10), jobs.nest(5), jobs.run(10)],
            Driven::Tasks(jobs, runtime) => runtime.block_on(async {
                let results = [jobs.run(10).await, jobs.nest(5).await, jobs.run(10).await];
                jobs.0.channel().close().await;
                results
            }),
        };
        let results = results.map(Result::unwrap);
        assert_eq!(results, [9, 5, 19], "{row}");
        server.shutdown();
    }
}

#[test]
fn where_nothing_carries_calls_back_that_is_said() {
    let carried = |row: &Row| row.carrier.no_connection.is_none();
    for row in rows().into_iter().filter(|row| !carried(row)) {
        let server = serve(&row);
        let Err(refused) = connect(&row, &server) else {
            panic!("{row}: a channel that serves");
        };
        assert!(
            matches!(refused, ConnectError::Callbacks { .. }),
            "{row}: {refused}"
        );
        let failed = row.connect_by(
            &server,
            |address| JobsV1Client::connect(address).unwrap().run(1),
            async |address| {
                let jobs = JobsV1AsyncClient::connect(address).await.unwrap();
                jobs.run(1).await
            },
        );
        let (Driven::Threads(failed) | Driven::Tasks(failed, _)) = failed;
        assert_eq!(failed.unwrap_err().kind(), CallErrorKind::Failed, "{row}");
        server.shutdown();
    }
}
