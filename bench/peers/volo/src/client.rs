//! Calls one operation of the section `rpc` by volo, again and again.

use std::os::unix::net::SocketAddr;
use std::sync::Arc;

use tenon_bench_asynchronous::peer::{Answer, Peer, measure_echo, record};
use tenon_bench_asynchronous::{Address, Outcome, run_client};
use tenon_bench_volo::bench::{BenchClient, BenchClientBuilder};
use volo::net;
use volo::net::shmipc::config::{Config, DEFAULT_SESSION_MANAGER_CONFIG, SessionManagerConfig};

use crate::memory_at;

struct Client(BenchClient);

/// Runs the client.
pub fn run(arguments: &[String]) -> Outcome {
    run_client(arguments, async |address| {
        let address = match address {
            Address::Tcp(socket) => net::Address::Ip(socket.parse()?),
            Address::Unix(path) => net::Address::Unix(SocketAddr::from_pathname(path)?),
            Address::Shm(path) => {
                wake_as_recommended();
                net::Address::Shmipc(memory_at(&path)?)
            }
            Address::Udp(_) | Address::Xdp(_) => return Err("no packets".into()),
        };
        Ok(Client(
            BenchClientBuilder::new("bench").address(address).build(),
        ))
    })
}

/// Has the ends of shared memory wake each other as shmipc recommends it for small messages. Servers do as they are
/// asked.
fn wake_as_recommended() {
    let config = Config::new().with_v4_eventfd();
    let config = SessionManagerConfig::new().with_config(config);
    DEFAULT_SESSION_MANAGER_CONFIG.store(Arc::new(config));
}

macro_rules! echo {
    ($peer:ident, $members:ident, $in_flight:ident, $($count:literal: $call:ident),*) => {
        match $members {
            $($count => {
                let sent = Arc::new(record::<_, $count>()?);
                let call = async |data: &Arc<_>| Ok($peer.0.$call(Arc::clone(data)).await?);
                measure_echo($in_flight, &sent, call).await
            })*
            other => Err(format!("no record of {other} members").into()),
        }
    };
}

impl Peer for Client {
    async fn null(&self) -> Answer<()> {
        Ok(self.0.null_call().await?)
    }

    async fn max_result(&self) -> Answer<impl AsRef<[u8]>> {
        Ok(self.0.max_result().await?)
    }

    async fn say_hello(&self, name: &str) -> Answer<impl AsRef<str>> {
        Ok(self.0.say_hello(name.to_owned().into()).await?)
    }

    async fn average(&self, numbers: &[i32]) -> Answer<f64> {
        Ok(self.0.average(numbers.to_vec()).await?)
    }

    async fn get_rand_nums(&self, count: u32) -> Answer<Vec<i32>> {
        Ok(self.0.get_rand_nums(i32::try_from(count)?).await?)
    }

    async fn measure_large(&self, members: u32, in_flight: usize) -> Answer<()> {
        echo!(self, members, in_flight, 128: large128)
    }
}
