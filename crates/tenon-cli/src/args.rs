//! The command line: every option, and the help that teaches it.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments here are help texts, and `[...]` in them is what may be left out"
)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

/// RPC stubs cut to fit: from a `.x` interface file to running clients and servers, by ONC RPC or by
/// the lean protocol.
#[derive(Debug, Parser)]
#[command(
    name = "tenon",
    version,
    after_help = "\
Examples:
  tenon check nfs3.x                           is the interface right?
  tenon gen --lang rust nfs3.x -o src/         write Rust stubs to src/nfs3.rs
  tenon ping tcp://fileserver 100003.3         does an NFS version 3 server answer?
  tenon call tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'
  tenon demo                                   see it all at work

Exit status: 0 done, 1 the work failed (an error in a file, a call that was refused), 2 the \
command line is wrong."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check interface files and show what is wrong with them
    #[command(after_help = "\
Examples:
  tenon check nfs3.x mount3.x
  tenon check -I include -D WANT_NFS3 nfs_prot.x
  tenon check --strict-rpcgen old.x      would Debian's rpcgen take it, too?
  tenon check --json nfs3.x              one JSON object per diagnostic, on stdout")]
    Check(CheckArgs),

    /// Generate stubs from an interface file
    #[command(after_help = "\
Examples:
  tenon gen --lang rust nfs3.x -o src/   writes src/nfs3.rs
  tenon gen --lang rust nfs3.x           prints it

In a Cargo project the crate `tenon-build` does the same from build.rs.")]
    Gen(GenArgs),

    /// Write C as rpcgen does, for programs that stand on libtirpc
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tenon rpcgen nfs3.x                    writes nfs3.h, nfs3_xdr.c, nfs3_clnt.c and nfs3_svc.c
  tenon rpcgen -N -M -h -o nfs3.h nfs3.x
  ln -s tenon /usr/local/bin/rpcgen      the same under the old name

`tenon rpcgen --help` lists the options, which are rpcgen's. docs/c.md says what is the same and what is
better."
    )]
    Rpcgen {
        /// The command line of rpcgen
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },

    /// Show the plan by which a type or procedure is marshalled
    #[command(after_help = "\
Examples:
  tenon explain nfs3.x                   every type and procedure
  tenon explain nfs3.x entry3            one type
  tenon explain nfs3.x NFSPROC3_READ     one procedure: its arguments and its result
  tenon explain --passes nfs3.x fattr3   how its plan is made, and what blocks it moves
  tenon explain --representation lean nfs3.x fattr3")]
    Explain(ExplainArgs),

    /// Call a procedure: JSON in, JSON out, no generated code
    #[command(after_help = "\
Examples:
  tenon call tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'
  tenon call lean+tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'     by the lean protocol
  tenon call udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'
  tenon call lean+udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'     by the packet exchange
  tenon call tcp://fileserver mount3.x MOUNTPROC3_EXPORT          rpcbind knows the port
  tenon call tcp://fileserver mount3.x MOUNTPROC3_MNT '\"/export\"' --auth sys
  tenon call shm:///run/demo.shm demo.x AVERAGE '[1, 2, 6]'           through shared memory
  echo '[1, 2, 6]' | tenon call unix:///run/demo.sock demo.x AVERAGE -

Values: numbers (64-bit ones too, also as strings), true and false, enum members by name,
strings, {\"hex\": \"00ff\"} for opaque bytes and for strings that are not UTF-8, arrays for
arrays and linked lists, null for an absent optional, objects for structs, and
{\"discriminant\": LABEL, \"arm\": VALUE} by their names for unions. Several arguments: an object
by name or an array by position. `tenon explain FILE PROCEDURE` shows what is asked for.

The scheme of the address says what is spoken: ONC RPC, or with lean+tcp://, lean+udp://, lean+unix://
and shm:// the lean protocol, between two ends that are both Tenon. A lean server compares FILE with what it was built
from: if a type differs, the error names it.")]
    Call(CallArgs),

    /// Ask whether a program answers (procedure 0) and how fast
    #[command(after_help = "\
Examples:
  tenon ping tcp://fileserver 100003.3     NFS version 3; rpcbind knows the port
  tenon ping udp://127.0.0.1:111 100000    rpcbind itself; which versions are there?
  tenon ping tcp://127.0.0.1:4000 0x2000d340.1 --count 10
  tenon ping tcp://127.0.0.1:4000 0x2000d340.1 --count 1000 --wait spin    how fast can it be?
  tenon ping lean+tcp://127.0.0.1:4000 0x2000d340    does it speak the lean protocol, too?")]
    Ping(PingArgs),

    /// Find out where the time of a call goes, step by step, at both ends
    #[command(after_help = "\
The procedure is called many times, and the tables say what its steps take: first by whose time it is, the
client's, the server's, or that of the kernels and the wire between them; then step by step in the order
of the way. By the lean protocol the server's time stamps come back with the reply; by ONC RPC only the
client's side is known.

Two procedures are shown side by side, Null and one that carries many bytes, for instance: what the first
takes is the price of a call, and what the other takes more is the price of its bytes.

Examples:
  tenon account lean+tcp://127.0.0.1:4000 demo.x NULL --beside 'COUNT_TO 360'
  tenon account lean+tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'
  tenon account lean+unix:///run/demo.sock demo.x AVERAGE '[1, 2, 6]' --calls 10000
  tenon account udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'     the client's side
  tenon account lean+tcp://127.0.0.1:4000 demo.x COUNT_TO 1000 --svg count.svg     as a time line
  tenon account lean+tcp://127.0.0.1:4000 demo.x COUNT_TO 1000 --json | jq .parts

The procedure is carried out every time: do not ask for one that changes what it should not. Arguments are
written as for `tenon call`. docs/account.md says how to read the tables.")]
    Account(AccountArgs),

    /// Run a server and a client process and show calls over every transport, by both protocols
    #[command(after_help = "\
A bundled interface file is read at run time, a server process is started, and a client process
calls it over TCP, UDP and a Unix socket, by ONC RPC and over the streams by the lean protocol at the
same ports, checks every answer and prints a table with both side by side.

Examples:
  tenon demo
  tenon demo --calls 20000
  tenon demo --wait block    what does looking for a reply gain over sleeping until it comes?
  tenon demo --json
  tenon demo --serve         only the server, until Enter or end of input: try `tenon call` on it")]
    Demo(DemoArgs),

    /// Measure what each choice in a stub costs on this machine: the HRPC study of stubs
    #[command(after_help = "\
The study asks what a stub should do: be compiled or interpret a description of the interface, move
numbers inline or call a procedure for each, whole or byte by byte, or whole blocks. Its three
procedures take (I), an integer; (A[256] I), an array; and a structure of both, of 86 records and
of text. Tenon makes all of its designs by switching passes and engines, and adds its own: every
pass, and machine code. Each design first shows that it writes the same bytes and reads the same
value as all others; then they take turns. The tables are those of the paper, and times are also
given as multiples of one design's, here and in the paper.

Examples:
  tenon study                          tables 1 to 4, in some ten seconds
  tenon study --quick                  does it work? The figures are not to be believed
  tenon study --svg plots/             draws the tables, too
  tenon study --representation lean    nobody has to change the order of bytes
  tenon study --json study.json        everything that was measured, beside the tables
  tenon study --json - | jq '.cells[] | select(.design == \"compiled, every pass\")'

For figures to be believed, build with --release and leave the machine alone. docs/study.md says how
to read them.")]
    Study(StudyArgs),

    /// Predict what marshalling costs on this machine, from the plans
    #[command(after_help = "\
Examples:
  tenon cost nfs3.x                            what each procedure's messages should take
  tenon cost nfs3.x NFSPROC3_READ              its equations, and what dominates them
  tenon cost nfs3.x NFSPROC3_READ --lengths data=8192 --arm post_op_attr=FALSE
  tenon cost nfs3.x --engine interp            by the interpreter
  tenon cost nfs3.x --check                    measured (predicted), with the errors

The first use measures this machine for some seconds; what it finds is kept in
$XDG_CACHE_HOME/tenon/cost.json or ~/.cache/tenon/cost.json. Lengths and arms are those of the
fields and unions that equations name: `data`, or `READ3resok.data` where that is not enough. An
optional value counts as an array of at most one.")]
    Cost(CostArgs),

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  tenon completions bash > /etc/bash_completion.d/tenon
  tenon completions zsh  > ~/.zfunc/_tenon
  tenon completions fish > ~/.config/fish/completions/tenon.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How an interface file is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading the interface")]
pub struct InterfaceArgs {
    /// Look for included files in DIR, too (repeatable)
    #[arg(short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,

    /// Define a preprocessor symbol, as 1 or as VALUE (repeatable)
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,

    /// Refuse what Debian's rpcgen refuses
    #[arg(long)]
    pub strict_rpcgen: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Interface files
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub interface: InterfaceArgs,

    /// Print diagnostics as JSON, one object per line, on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Language {
    /// Rust stubs that stand on the crate `tenon`
    Rust,
}

#[derive(Debug, Args)]
pub struct GenArgs {
    /// The interface file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The language to generate
    #[arg(long, value_enum)]
    pub lang: Language,

    /// How items lie on the wire, with commas. Clients and services speak ONC RPC with `xdr`, and the
    /// lean protocol beside with `lean`
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "xdr,lean"
    )]
    pub representation: Vec<Representation>,

    /// Add types that borrow what they can from the message that they are read from; servers are
    /// handed their arguments so
    #[arg(long)]
    pub views: bool,

    /// Have servers write results of known size, which consist of numbers or opaque data, where they
    /// are sent from: methods are handed a `&mut` of them
    #[arg(long)]
    pub reserved: bool,

    /// Add clients whose calls are awaited and services whose methods are asynchronous, which stand on
    /// the crate `tenon-tokio`
    #[arg(long)]
    pub tokio: bool,

    /// Write into DIR instead of to stdout
    #[arg(short = 'o', long = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The interface file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A type or procedure; all of them if left out
    pub name: Option<String>,

    /// Show the plan after each pass, and where blocks of memory are broken and why
    #[arg(long)]
    pub passes: bool,

    /// How items lie on the wire
    #[arg(long, value_name = "NAME", default_value = "xdr")]
    pub representation: Representation,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Representation {
    /// External Data Representation, RFC 4506: what ONC RPC speaks
    Xdr,
    /// As numbers lie in the sender's memory: between two ends that are both Tenon
    Lean,
}

impl Representation {
    /// What plans are made by.
    pub fn plan(self) -> tenon_plan::Representation {
        match self {
            Self::Xdr => tenon_plan::Representation::XDR,
            Self::Lean => tenon_plan::Representation::LEAN,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Auth {
    /// AUTH_NONE: nobody in particular
    None,
    /// AUTH_SYS: this process's user, group and host name
    Sys,
}

/// How to wait for what the other end sends.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Wait {
    /// Sleep until it comes
    Block,
    /// Look until it comes: for who has processors to spare at both ends
    Spin,
    /// Look for about as long as waking up takes, then sleep
    Adaptive,
}

impl Wait {
    /// What the run time calls it.
    pub fn policy(self) -> tenon::Waiting {
        match self {
            Self::Block => tenon::Waiting::Block,
            Self::Spin => tenon::Waiting::Spin,
            Self::Adaptive => tenon::Waiting::Adaptive,
        }
    }
}

/// How a call is made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Calling")]
pub struct CallOptions {
    /// Who the caller says that it is; the lean protocol says nothing of it
    #[arg(long, value_enum, default_value = "none")]
    pub auth: Auth,

    /// Give up after so long: 500ms, 5s, 2m
    #[arg(long, value_name = "TIME", default_value = "25s", value_parser = parse_duration)]
    pub timeout: Duration,

    /// How to wait for a reply
    #[arg(long, value_enum, default_value = "adaptive")]
    pub wait: Wait,

    /// Refuse replies that bend their representation (padding that is not zero, a boolean of 2)
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT] or unix:///PATH, or lean+tcp://, lean+udp://, lean+unix://
    /// and shm:// for the lean protocol; without a port, rpcbind is asked
    pub address: String,

    /// The interface file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The procedure, by its name in the interface
    pub procedure: String,

    /// The arguments as JSON; `-` reads them from stdin
    #[arg(allow_negative_numbers = true)]
    pub json: Option<String>,

    /// The version to call, if the procedure's name occurs in several
    #[arg(long = "version", value_name = "NUMBER")]
    pub version: Option<u32>,

    #[command(flatten)]
    pub options: CallOptions,

    /// Print the answer on one line
    #[arg(long)]
    pub compact: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Args)]
pub struct AccountArgs {
    /// lean+tcp://HOST[:PORT], lean+unix:///PATH or shm:///PATH; with tcp://, udp://, unix:// and lean+udp:// only
    /// the client's side is known
    pub address: String,

    /// The interface file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The procedure, by its name in the interface; NULL is procedure 0. Without one, Null is shown beside
    /// the largest result of known size that takes no arguments
    pub procedure: Option<String>,

    /// The arguments as JSON; `-` reads them from stdin
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    pub arguments: Option<String>,

    /// Show this procedure beside the first, and what each byte costs: its name and, behind a space, its
    /// arguments as JSON
    #[arg(long, value_name = "PROCEDURE JSON")]
    pub beside: Option<String>,

    /// How many calls, after a hundred that do not count
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: u32,

    /// The version to call, if the procedure's name occurs in several
    #[arg(long = "version", value_name = "NUMBER")]
    pub version: Option<u32>,

    #[command(flatten)]
    pub options: CallOptions,

    /// Print the account as JSON
    #[arg(long)]
    pub json: bool,

    /// Draw the time line into FILE, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Clone, Copy)]
pub struct ProgramVersion {
    pub program: u32,
    pub version: Option<u32>,
}

#[derive(Debug, Args)]
pub struct PingArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT] or unix:///PATH, or lean+tcp://, lean+udp://, lean+unix://
    /// and shm:// for the lean protocol; without a port, rpcbind is asked
    pub address: String,

    /// PROGRAM or PROGRAM.VERSION, in numbers (0x... too); without a version, all are looked for
    #[arg(value_parser = parse_program)]
    pub program: ProgramVersion,

    /// How many calls
    #[arg(short = 'c', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,

    #[command(flatten)]
    pub options: CallOptions,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Calls per procedure, transport and protocol
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub calls: u32,

    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,

    /// How both ends wait
    #[arg(long, value_enum, default_value = "adaptive")]
    pub wait: Wait,

    /// Only serve, and print the addresses
    #[arg(long, conflicts_with_all = ["calls", "json"])]
    pub serve: bool,
}

#[derive(Debug, Args)]
pub struct StudyArgs {
    /// Measure for a moment only
    #[arg(long)]
    pub quick: bool,

    /// How items lie on the wire; with `lean` no design has to change the order of bytes
    #[arg(long, value_enum, default_value = "xdr")]
    pub representation: Representation,

    /// Write everything that was measured to FILE; `-` prints it instead of the tables
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Draw the tables into DIR, which is made if need be
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Engine {
    /// Stubs made at build time
    Compiled,
    /// Machine code made at bind time
    Machine,
    /// The interpreter
    Interp,
}

#[derive(Debug, Args)]
pub struct CostArgs {
    /// The interface file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A type or procedure; all procedures if left out, or all types if there are none
    pub name: Option<String>,

    /// What runs the plans
    #[arg(long, value_enum, default_value = "compiled")]
    pub engine: Engine,

    /// How items lie on the wire
    #[arg(long, value_name = "NAME", default_value = "xdr")]
    pub representation: Representation,

    /// How long everything is that varies: bytes or elements, up to its bound
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub length: u64,

    /// How long one field is (repeatable)
    #[arg(long, value_name = "FIELD=N", value_parser = parse_length)]
    pub lengths: Vec<(String, u64)>,

    /// Which arm a union has, by a label; else the first one that holds something (repeatable)
    #[arg(long = "arm", value_name = "UNION=LABEL", value_parser = parse_arm)]
    pub arms: Vec<(String, String)>,

    /// Measure this machine again
    #[arg(long)]
    pub calibrate: bool,

    /// Measure this machine for a moment only, and do not keep what is found
    #[arg(long)]
    pub quick: bool,

    /// Measure the messages, with random values, beside what is predicted of them
    #[arg(long, conflicts_with_all = ["name", "length", "lengths", "arms"])]
    pub check: bool,

    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

fn parse_length(text: &str) -> Result<(String, u64), String> {
    let (name, length) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not FIELD=N; write data=8192"))?;
    let length = length
        .parse()
        .map_err(|_| format!("`{length}` is no length"))?;
    Ok((name.to_owned(), length))
}

fn parse_arm(text: &str) -> Result<(String, String), String> {
    let (name, label) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not UNION=LABEL; write post_op_attr=FALSE"))?;
    Ok((name.to_owned(), label.to_owned()))
}

fn parse_program(text: &str) -> Result<ProgramVersion, String> {
    let (program, version) = match text.split_once('.') {
        Some((program, version)) => (program, Some(parse_number(version)?)),
        None => (text, None),
    };
    Ok(ProgramVersion {
        program: parse_number(program)?,
        version,
    })
}

fn parse_number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a 32-bit number; write 100003.3 or 0x186a3.3"))
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("`{unit}` is not a unit; write 500ms, 5s or 2m")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a time; write 500ms, 5s or 2m"))?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|e| e.to_string())?;
    if duration.is_zero() || duration > Duration::from_secs(86_400) {
        return Err("a timeout lies between 1us and 1440m".into());
    }
    Ok(duration)
}
