//! Clients that are not ours call our server: rpcgen's stubs on libtirpc over TCP, UDP and a Unix
//! socket, and python-vxi11's rpc.py over TCP and UDP. They check every answer themselves.

use tenon_interop::services::serve;
use tenon_interop::{Transport, peer, python_script, socket_path};

#[test]
fn libtirpc_calls_hprpc() {
    let (_server, addresses) = serve(&socket_path("libtirpc-hprpc"));
    for transport in Transport::ALL {
        peer("hprpc_client").check(&addresses, transport);
    }
}

#[test]
fn libtirpc_calls_torture() {
    let (_server, addresses) = serve(&socket_path("libtirpc-torture"));
    for transport in Transport::ALL {
        peer("torture_client").check(&addresses, transport);
    }
}

#[test]
fn python_calls_hprpc() {
    let (_server, addresses) = serve(&socket_path("python-hprpc"));
    for transport in [Transport::Tcp, Transport::Udp] {
        python_script("hprpc_client.py").check(&addresses, transport);
    }
}
