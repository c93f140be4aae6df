//! The operations of the section `rpc`, served by Tenon.
//!
//! usage: `tenon_server block|spin|adaptive tcp|udp|unix=PATH|shm=PATH|TRANSPORT=HOST:PORT`

use std::error::Error;

use tenon::{Server, Waiting};
use tenon_bench::operations::{Operations, as_arguments, listen_url};
use tenon_bench::stubs::BenchVersionService;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, transport] = &arguments[..] else {
        return Err("usage: tenon_server block|spin|adaptive tcp|udp|unix=PATH|shm=PATH|TRANSPORT=HOST:PORT".into());
    };
    let server = Server::builder()
        .listen(&listen_url(transport))?
        .service(BenchVersionService(Operations))
        .waiting(waiting.parse::<Waiting>()?)
        .start()?;
    let address = server.addresses()[0].to_string();
    println!("{}\nready", as_arguments(&address));
    server.wait();
    Ok(())
}
