//! The peers agree among themselves, so that a later disagreement is ours.

use tenon_interop::{PeerTransport, peer, python_script, socket_path};

fn libtirpc_agrees_with_itself(interface: &str) {
    let path = socket_path(&format!("peers-agree-{interface}"));
    let unix = format!("unix={}", path.display());
    let (_server, addresses) = peer(&format!("{interface}_server")).serve(&["tcp", "udp", &unix]);
    for transport in PeerTransport::ALL {
        peer(&format!("{interface}_client")).check(&addresses, transport);
    }
}

#[test]
fn libtirpc_and_libtirpc_on_hprpc() {
    libtirpc_agrees_with_itself("hprpc");
}

#[test]
fn libtirpc_and_libtirpc_on_torture() {
    libtirpc_agrees_with_itself("torture");
}

#[test]
fn libtirpc_and_python() {
    for transport in [PeerTransport::Tcp, PeerTransport::Udp] {
        let (_server, addresses) = peer("hprpc_server").serve(&[transport.word()]);
        python_script("hprpc_client.py").check(&addresses, transport);
        let (_server, addresses) = python_script("hprpc_server.py").serve(&[transport.word()]);
        peer("hprpc_client").check(&addresses, transport);
    }
}
