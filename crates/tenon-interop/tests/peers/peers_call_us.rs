//! Clients that are not ours call our server: rpcgen's stubs on libtirpc over TCP, UDP and a Unix
//! socket, and python-vxi11's rpc.py over TCP and UDP. They check every answer themselves.

use std::time::Duration;

use tenon::wire::{Buffer, Decoder, Encoder};
use tenon::{Refusal, Service};
use tenon_interop::compiled::hprpc::HprpcVersionService;
use tenon_interop::compiled::torture::{TortureVersionService, TortureVersionThreeService};
use tenon_interop::services::{HprpcService, TortureService, serve};
use tenon_interop::{PeerAddresses, PeerTransport, peer, python_script, socket_path};
use tenon_tokio::{Answer, AsyncService, Call, Server, ServerBuilder};

#[test]
fn libtirpc_calls_hprpc() {
    let (_server, addresses) = serve(&socket_path("libtirpc-hprpc"));
    for transport in PeerTransport::ALL {
        peer("hprpc_client").check(&addresses, transport);
    }
}

#[test]
fn libtirpc_calls_torture() {
    let (_server, addresses) = serve(&socket_path("libtirpc-torture"));
    for transport in PeerTransport::ALL {
        peer("torture_client").check(&addresses, transport);
    }
}

#[test]
fn python_calls_hprpc() {
    let (_server, addresses) = serve(&socket_path("python-hprpc"));
    for transport in [PeerTransport::Tcp, PeerTransport::Udp] {
        python_script("hprpc_client.py").check(&addresses, transport);
    }
}

/// A service each of whose calls has a task.
struct InTasks<S>(S);

impl<S: Service> AsyncService for InTasks<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let arguments = call.decode(|input| Ok(input.take(input.left())?.to_vec()))?;
        tokio::task::yield_now().await;
        let mut result = Buffer::default();
        let (mut input, mut out) = (Decoder::new(&arguments), Encoder::new(&mut result));
        self.0.call(&call.info(), &mut input, &mut out)?;
        call.answer(|out| {
            out.room(result.len()).copy_from_slice(result.as_slice());
            Ok(())
        })
    }
}

#[test]
fn libtirpc_calls_servers_of_tasks() {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a run time");
    for is_inline in [true, false] {
        let (hprpc, torture) = (
            HprpcVersionService(HprpcService),
            TortureVersionService(TortureService),
        );
        let three = TortureVersionThreeService(TortureService);
        let path = socket_path("libtirpc-tasks");
        let unix = format!("unix://{}", path.display());
        let addresses = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", &unix];
        let builder = addresses
            .into_iter()
            .try_fold(Server::builder(), ServerBuilder::listen)
            .expect("these are addresses");
        let builder = if is_inline {
            builder
                .sync_service(hprpc)
                .sync_service(torture)
                .sync_service(three)
        } else {
            builder
                .service(InTasks(hprpc))
                .service(InTasks(torture))
                .service(InTasks(three))
        };
        let server = runtime.block_on(builder.start()).expect("it starts");
        let addresses = PeerAddresses::from_urls(server.addresses());
        for transport in PeerTransport::ALL {
            peer("hprpc_client").check(&addresses, transport);
            peer("torture_client").check(&addresses, transport);
        }
        runtime.block_on(server.shutdown(Duration::from_secs(60)));
    }
}
