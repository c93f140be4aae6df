//! Serves NFS and MOUNT, version 3, over a file system in memory.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use tenon::Server;
use tenon::rpcbind::LocalRpcbind;
use tenon_example_nfs3::fs::FileSystem;
use tenon_example_nfs3::protocol::{mount3::MountV3Service, nfs3::NfsV3Service};
use tenon_example_nfs3::server::{Export, Nfs, SharedFs};

/// Serves NFS version 3, and MOUNT on the same ports, over a file system in memory that is empty at
/// the start and gone at the end. A client that reaches it may read and change everything: it is an
/// example.
#[derive(Debug, Parser)]
#[command(
    name = "nfs3-server",
    after_help = "\
Prints one address per line and then `ready`. Ends when it is killed (there is nothing to save), or
with --until-eof when its standard input ends.

Examples:
  nfs3-server                                    TCP on any port of this machine
  nfs3-server --listen tcp://0.0.0.0:2049 --listen udp://0.0.0.0:2049
  nfs-ls 'nfs://127.0.0.1/export?nfsport=2049&mountport=2049'"
)]
struct Args {
    /// Where to listen: tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH; port 0 is any
    #[arg(
        long = "listen",
        value_name = "ADDRESS",
        default_value = "tcp://127.0.0.1:0"
    )]
    addresses: Vec<String>,

    /// Memory for files and names, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    memory: u32,

    /// The path that clients mount
    #[arg(long, value_name = "PATH", default_value = "/export")]
    export: String,

    /// Register with this machine's rpcbind, so that clients need no port; undone with --until-eof
    #[arg(long)]
    register: bool,

    /// Stop when standard input ends, after the calls that were begun
    #[arg(long)]
    until_eof: bool,
}

/// How long calls may still run when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nfs3-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let server = start(args)?;
    announce(&server)?;
    if args.until_eof {
        io::copy(&mut io::stdin(), &mut io::sink())?;
        server.shutdown(DRAIN);
    }
    server.wait();
    Ok(())
}

fn start(args: &Args) -> Result<Server, Box<dyn Error>> {
    let memory = u64::from(args.memory) << 20;
    let fs = SharedFs::new(FileSystem::new(instance()?, memory));
    let export = Export::new(fs.clone(), &args.export)?;
    let mut server = Server::builder()
        .service(NfsV3Service(Nfs(fs)))
        .service(MountV3Service(export));
    if args.register {
        server = server.register_with(LocalRpcbind);
    }
    for address in &args.addresses {
        server = server.listen(address)?;
    }
    Ok(server.start()?)
}

/// What tells this start of the server from all others: the time in nanoseconds.
fn instance() -> Result<u64, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(now.as_nanos().try_into()?)
}

fn announce(server: &Server) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for address in server.addresses() {
        writeln!(out, "{address}")?;
    }
    writeln!(out, "ready")?;
    out.flush()
}
