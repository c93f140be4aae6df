//! One call outstanding on each of many connections, each called by a task of its own, as programs on tokio do it.

use std::cell::RefCell;
use std::rc::Rc;

use tenon_bench_common::measure::{Round, Rounds};
use tenon_bench_common::operation::Operation;
use tenon_bench_common::task::Task;
use tokio::task::JoinSet;

use crate::Address;
use crate::peer::{Answer, Peer};

/// Connects as often as the task says, and measures Null calls.
///
/// # Errors
/// A connection cannot be made, a call fails, or the task is not of Null calls one at a time.
pub async fn measure<P: Peer + 'static>(
    task: &Task,
    connect: impl AsyncFn(Address) -> Answer<P>,
) -> Answer<()> {
    if (task.operation, task.in_flight) != (Operation::Null, 1) {
        return Err("over several connections only Null is called, once at a time on each".into());
    }
    let mut peers = Vec::with_capacity(task.connections);
    for made in 0..task.connections {
        let peer = connect_and_call(&task.address, &connect).await;
        let peer = peer.map_err(|error| format!("connection {}: {error}", made + 1))?;
        peers.push(Rc::new(peer));
    }
    let mut rounds = Rounds::begin()?;
    while let Some(round) = rounds.next_round()? {
        rounds.answer(call_on_each(&peers, round).await?)?;
    }
    Ok(())
}

/// Connects once. The call has the server accept the connection before the next is made: no listener has a queue for
/// a thousand.
async fn connect_and_call<P: Peer>(
    address: &Address,
    connect: &impl AsyncFn(Address) -> Answer<P>,
) -> Answer<P> {
    let peer = connect(address.clone()).await?;
    peer.null().await?;
    Ok(peer)
}

async fn call_on_each<P: Peer + 'static>(peers: &[Rc<P>], round: Round) -> Answer<Round> {
    let round = Rc::new(RefCell::new(round));
    let mut callers = JoinSet::new();
    for peer in peers {
        let (peer, round) = (Rc::clone(peer), Rc::clone(&round));
        callers.spawn_local(async move { call_again_and_again(&*peer, &round).await });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let round = Rc::into_inner(round).ok_or("a caller is still there")?;
    Ok(round.into_inner())
}

async fn call_again_and_again(peer: &impl Peer, round: &RefCell<Round>) -> Answer<()> {
    let mut before = round.borrow().start();
    while round.borrow().goes_on(before) {
        peer.null().await?;
        before = round.borrow_mut().record(before);
    }
    Ok(())
}
