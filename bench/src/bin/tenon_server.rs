//! The operations of the section `rpc`, served by Tenon.
//!
//! With `+middleware` behind the wait policy five middlewares stand around the service.
//!
//! usage: `tenon_server block|spin|adaptive[+middleware] tcp|udp|unix=PATH|shm=PATH|TRANSPORT=HOST:PORT`

use std::error::Error;
use std::time::Duration;

use tenon::{Layered, Server, Service, Waiting};
use tenon_bench::operations::{Operations, as_arguments, listen_url};
use tenon_bench::stubs::BenchVersionService;
use tenon_middleware::{AccessLog, Authorization, ConcurrencyLimit, LoadShed, Metrics};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, transport] = &arguments[..] else {
        return Err("usage: tenon_server block|spin|adaptive[+middleware] tcp|udp|unix=PATH|shm=PATH|TRANSPORT=HOST:PORT".into());
    };
    let service = BenchVersionService(Operations);
    let server = match waiting.strip_suffix("+middleware") {
        None => start(service, waiting, transport)?,
        Some(waiting) => {
            let service = Layered::new(service, AccessLog::new())
                .with(Metrics::new())
                .with(LoadShed::new(Duration::from_secs(10)))
                .with(ConcurrencyLimit::new(1000))
                .with("allow *".parse::<Authorization>()?);
            start(service, waiting, transport)?
        }
    };
    let address = server.addresses()[0].to_string();
    println!("{}\nready", as_arguments(&address));
    server.wait();
    Ok(())
}

fn start(service: impl Service, waiting: &str, transport: &str) -> Result<Server, Box<dyn Error>> {
    let builder = Server::builder().listen(&listen_url(transport))?;
    let builder = builder.waiting(waiting.parse::<Waiting>()?);
    Ok(builder.service(service).start()?)
}
