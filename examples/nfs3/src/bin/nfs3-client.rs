//! Lists, reads, writes and removes files of an NFS version 3 server.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tenon::wire::BStr;
use tenon::{Address, AuthSys, Credential};
use tenon_example_nfs3::client::{ClientError, Remote};
use tenon_example_nfs3::protocol::mount3::MountV3Client;
use tenon_example_nfs3::protocol::nfs3::{Entryplus3, Fattr3, Ftype3, NfsV3Client, PostOpAttr};

/// Lists, reads, writes and removes files of an NFS version 3 server.
#[derive(Debug, Parser)]
#[command(
    name = "nfs3-client",
    after_help = "\
Examples:
  nfs3-client tcp://fileserver /export ls
  nfs3-client tcp://127.0.0.1:2049 --mount-port 20048 /export put local.txt remote.txt
  nfs3-client tcp://127.0.0.1:2049 /export get remote.txt local.txt

Exit status: 0 done, 1 it failed, 2 the command line is wrong."
)]
struct Args {
    /// The server: tcp://HOST:PORT or udp://HOST:PORT; without `:PORT` its rpcbind is asked
    address: Address,

    /// The port of the server's mount daemon; without it the port of ADDRESS, or what rpcbind says
    #[arg(long, value_name = "PORT")]
    mount_port: Option<u16>,

    /// The path that the server exports
    export: OsString,

    #[command(subcommand)]
    command: Command,
}

/// What to do. Paths of the server are relative to the export.
#[derive(Debug, Subcommand)]
enum Command {
    /// List a directory
    Ls {
        /// The directory; the export itself if there is none
        #[arg(default_value = "/")]
        path: OsString,
    },
    /// Copy a file from the server
    Get {
        /// The file on the server
        remote: OsString,
        /// The local file, which is replaced
        local: PathBuf,
    },
    /// Copy a file to the server
    Put {
        /// The local file
        local: PathBuf,
        /// The file on the server, which is replaced
        remote: OsString,
    },
    /// Remove files
    Rm {
        /// The files on the server
        #[arg(required = true)]
        paths: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nfs3-client: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let remote = mount(args)?;
    carry_out(&args.command, &remote)?;
    remote.unmount()?;
    Ok(())
}

fn mount(args: &Args) -> Result<Remote, ClientError> {
    let mount_address = match args.mount_port {
        Some(port) => args.address.clone().with_port(port),
        None => args.address.clone(),
    };
    let machine = rustix::system::uname();
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let caller = AuthSys::new(
        machine.nodename().to_bytes(),
        uid.as_raw(),
        gid.as_raw(),
        &[],
    )?;
    let caller = Credential::Sys(caller);
    let mount = MountV3Client::connect(&mount_address.to_string())?.with_credential(&caller);
    let nfs = NfsV3Client::connect(&args.address.to_string())?.with_credential(&caller);
    Remote::mount(nfs, mount, bytes(&args.export).to_owned())
}

fn carry_out(command: &Command, remote: &Remote) -> Result<(), ClientError> {
    match command {
        Command::Ls { path } => print(&remote.list(bytes(path))?)?,
        Command::Get {
            remote: from,
            local,
        } => {
            remote.read_file(bytes(from), &mut File::create(local)?)?;
        }
        Command::Put { local, remote: to } => {
            remote.write_file(bytes(to), &mut File::open(local)?)?;
        }
        Command::Rm { paths } => {
            for path in paths {
                remote.remove(bytes(path))?;
            }
        }
    }
    Ok(())
}

fn bytes(text: &OsStr) -> &BStr {
    BStr::new(text.as_bytes())
}

fn print(entries: &[Entryplus3]) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for entry in entries {
        writeln!(out, "{}", line(entry))?;
    }
    out.flush()
}

/// An entry as `ls -l` shows it. A name may hold anything, but not disturb the terminal.
fn line(entry: &Entryplus3) -> String {
    let name = entry.name.to_string().replace(char::is_control, "?");
    match &entry.name_attributes {
        PostOpAttr::Attributes(attributes) => format!("{} {name}", details(attributes)),
        PostOpAttr::Void => format!("?--------- {name}"),
    }
}

fn details(attributes: &Fattr3) -> String {
    let Fattr3 {
        nlink,
        uid,
        gid,
        size,
        ..
    } = attributes;
    format!(
        "{} {nlink:>3} {uid:>5} {gid:>5} {size:>12}",
        mode(attributes)
    )
}

fn mode(attributes: &Fattr3) -> String {
    let kind = match attributes.type_ {
        Ftype3::Reg => '-',
        Ftype3::Dir => 'd',
        Ftype3::Blk => 'b',
        Ftype3::Chr => 'c',
        Ftype3::Lnk => 'l',
        Ftype3::Sock => 's',
        Ftype3::Fifo => 'p',
    };
    let bits = "rwxrwxrwx".chars().enumerate();
    let permissions = bits.map(|(at, letter)| match attributes.mode & (0o400 >> at) {
        0 => '-',
        _ => letter,
    });
    std::iter::once(kind).chain(permissions).collect()
}
