//! Middleware that is made for tower, around clients and services of tasks.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tenon::lean::Interface;
use tenon::{ProcedureCall, ProcedureInfo, Refusal};
use tenon_tokio::{Answer, AsyncService, Call, MakeAsyncCalls};
use tower_service::Service;

/// A future in a box, as services of tower name theirs.
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A service of tasks as one of tower, to put tower's layers around it; [`TowerService`] makes a service of tasks of the
/// whole. Its requests are [`Call`]s, its responses [`Answer`]s.
#[derive(Debug)]
pub struct InnerService<S>(Arc<S>);

impl<S> Clone for InnerService<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncService> Service<Call> for InnerService<S> {
    type Response = Answer;
    type Error = TowerRefusal;
    type Future = BoxFuture<Result<Answer, TowerRefusal>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TowerRefusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let service = Arc::clone(&self.0);
        Box::pin(async move { service.call(call).await.map_err(TowerRefusal) })
    }
}

/// A service of tasks with layers of tower around it.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon-tokio/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1AsyncClient, GreeterV1AsyncService, Visitor}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenon_middleware::TowerService;
/// use tenon_tokio::Server;
/// use tower::limit::ConcurrencyLimit;
///
/// let service = TowerService::new(GreeterV1AsyncService(Host), |service| ConcurrencyLimit::new(service, 10));
/// let builder = Server::builder().listen("tcp://127.0.0.1:0")?;
/// let server = builder.service(service).start().await?;
/// let greeter = GreeterV1AsyncClient::connect(&server.addresses()[0].to_string()).await?;
/// greeter.greet(&Visitor::default()).await?;
/// # Ok(())
/// # }
/// ```
pub struct TowerService<S, T> {
    inner: Arc<S>,
    layered: T,
}

impl<S: AsyncService, T> TowerService<S, T> {
    /// Puts around `service` what `layer` puts around it as a service of tower. What that makes is cloned for each call.
    pub fn new(service: S, layer: impl FnOnce(InnerService<S>) -> T) -> Self {
        let inner = Arc::new(service);
        Self {
            layered: layer(InnerService(Arc::clone(&inner))),
            inner,
        }
    }
}

impl<S, T> AsyncService for TowerService<S, T>
where
    S: AsyncService,
    T: Service<Call, Response = Answer> + Clone + Send + Sync + 'static,
    T::Error: TowerFailure,
    T::Future: Send,
{
    fn program(&self) -> u32 {
        self.inner.program()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        self.inner.interface()
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.inner.procedure(number)
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let mut service = self.layered.clone();
        if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
            return Ok(call.refuse(error.into_refusal()));
        }
        service.call(call).await.map_err(T::Error::into_refusal)
    }
}

impl<S, T> fmt::Debug for TowerService<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerService").finish_non_exhaustive()
    }
}

/// A refusal as an error of tower's services, which layers put into boxes.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct TowerRefusal(pub Refusal);

/// An error of services of tower, of which a refusal can be made: that of [`InnerService`], or a box of any error, as the
/// layers of tower have it. Of an error that is no refusal the caller learns that the call failed, the log the text.
pub trait TowerFailure {
    /// Returns what the caller is told.
    fn into_refusal(self) -> Refusal;
}

impl TowerFailure for TowerRefusal {
    fn into_refusal(self) -> Refusal {
        self.0
    }
}

impl TowerFailure for Box<dyn Error + Send + Sync> {
    fn into_refusal(self) -> Refusal {
        match self.downcast::<TowerRefusal>() {
            Ok(refusal) => refusal.0,
            Err(other) => Refusal::SystemError(other.to_string()),
        }
    }
}

/// A client of tasks as a service of tower: its requests are calls of procedures, whichever, its responses their results.
/// Layers of tower can be put around it.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon-tokio/docs/example.rs")); }
/// # use example::{greeter::GreeterV1AsyncClient, start_server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (server, address) = start_server().await;
/// use std::time::Duration;
/// use tenon::Ping;
/// use tenon_middleware::TowerCalls;
/// use tower::{ServiceExt, timeout::Timeout};
///
/// let client = GreeterV1AsyncClient::connect(&address).await?.0;
/// let calls = Timeout::new(TowerCalls::new(client), Duration::from_secs(1));
/// calls.oneshot(Ping).await.map_err(|error| error.to_string())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TowerCalls<C>(C);

impl<C: MakeAsyncCalls + Clone + Send + 'static> TowerCalls<C> {
    /// Makes the calls by this client.
    pub fn new(client: C) -> Self {
        Self(client)
    }
}

impl<C, P> Service<P> for TowerCalls<C>
where
    C: MakeAsyncCalls + Clone + Send + 'static,
    P: ProcedureCall + Send + Sync + 'static,
{
    type Response = P::Result;
    type Error = P::Error;
    type Future = BoxFuture<Result<P::Result, P::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), P::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: P) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.call(&call).await })
    }
}
