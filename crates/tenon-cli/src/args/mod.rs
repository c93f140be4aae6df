//! The command line: every option, and the help that teaches it.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments here are help texts, and `[...]` in them is what may be left out"
)]

mod calls;
mod interfaces;
mod measuring;
mod serving;
mod what_if;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use calls::{
    AccountArgs, AuthArg, CallArgs, CallOptionArgs, CallTarget, DemoArgs, DescribeArgs, HealthArgs,
    ListArgs, PingArgs, StreamArgs, parse_duration,
};
pub use interfaces::{
    CheckArgs, DescriptorArgs, ExplainArgs, GenArgs, InterfaceArgs, LanguageArg, RepresentationArg,
};
pub use measuring::{CostArgs, EngineArg, StudyArgs};
pub use serving::ServeArgs;
pub use what_if::{Factor, FactorName};

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
  tenon serve demo.x                           a mock server, for those who write clients
  tenon demo                                   see it all at work

Exit status: 0 done, 1 the work failed (an error in a file, a call that was refused), 2 the \
command line is wrong."
)]
pub struct CliArgs {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Check interface files and show what is wrong with them
    #[command(after_help = "\
Examples:
  tenon check nfs3.x mount3.x
  tenon check -I include -D WANT_NFS3 nfs_prot.x
  tenon check --strict-rpcgen old.x      would Debian's rpcgen take it, too?
  tenon check --deny-warnings mine.x     for a build that is to stop at whatever looks wrong
  tenon check --json nfs3.x              one JSON object per diagnostic, on stdout
  git show v1:nfs3.x | tenon check -     an interface from stdin")]
    Check(CheckArgs),

    /// Generate stubs from an interface file
    #[command(after_help = "\
Examples:
  tenon gen --lang rust nfs3.x -o src/   writes src/nfs3.rs
  tenon gen --lang rust nfs3.x           prints it
  tenon gen --lang rust --views --tokio nfs3.x -o src/
  tenon gen --lang c nfs3.x -o src/      writes src/nfs3.h and src/nfs3.c

C stubs stand on tenon.h and speak both protocols: docs/c-stubs.md says how they are used. In a
Cargo project the crate `tenon-build` does the same from build.rs.")]
    Gen(GenArgs),

    /// Write C as rpcgen does, for programs that stand on libtirpc
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tenon rpcgen nfs3.x                    writes nfs3.h, nfs3_xdr.c, nfs3_clnt.c and nfs3_svc.c
  tenon rpcgen -N -M -h -o nfs3.h nfs3.x
  ln -s \"$(command -v tenon)\" ~/bin/rpcgen    the same under the old name

`tenon rpcgen --help` lists the options, which are rpcgen's. docs/c.md says what is the same and
what is better."
    )]
    Rpcgen {
        /// The command line of rpcgen
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },

    /// Write an interface as a descriptor: bytes that stand for the file wherever one is read
    #[command(after_help = "\
Examples:
  tenon descriptor nfs3.x -o nfs3.descriptor
  tenon descriptor nfs3.x > nfs3.descriptor
  tenon descriptor --identity nfs3.x         its SHA-256, by which equal interfaces are known
  tenon call tcp://fileserver nfs3.descriptor NFSPROC3_NULL

A descriptor has the names, numbers, types, constants and annotations of an interface, those of
included files too, but no comments. The order of definitions does not matter. docs/descriptor.md
specifies it.")]
    Descriptor(DescriptorArgs),

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
    #[command(
        override_usage = "tenon call [OPTIONS] <ADDRESS> [FILE] <PROCEDURE> [JSON]",
        after_help = "\
Examples:
  tenon call tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'
  tenon call lean+tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'     by the lean protocol
  tenon call udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'
  tenon call lean+udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'     by the packet exchange
  tenon call tcp://fileserver mount3.x MOUNTPROC3_EXPORT          rpcbind knows the port
  tenon call tcp://fileserver mount3.x MOUNTPROC3_MNT '\"/export\"' --auth sys
  tenon call shm:///run/demo.shm demo.x AVERAGE '[1, 2, 6]'           through shared memory
  tenon call xdp://192.0.2.2:4000 demo.x AVERAGE '[1, 2, 6]'          past the kernel, for root
  tenon call onc+xdp://192.0.2.2:4000 demo.x AVERAGE '[1, 2, 6]'      the same by ONC RPC
  echo '[1, 2, 6]' | tenon call unix:///run/demo.sock demo.x AVERAGE -
  tenon call tcp://127.0.0.1:4000 SAY_HELLO '\"Ada\"'      the server has reflection

Values: numbers (64-bit ones too, also as strings), true and false, enum members by name,
strings, {\"hex\": \"00ff\"} for opaque bytes and for strings that are not UTF-8, arrays for
arrays and linked lists, null for an absent optional, objects for structs, and
{\"discriminant\": LABEL, \"arm\": VALUE} by their names for unions. One argument: its value, or an
object with its name. Several: an object by name or an array by position. A call that lacks its
arguments is told how to write them, and `tenon explain FILE PROCEDURE` shows their bounds.

The scheme of the address says what is spoken: ONC RPC, or with lean+tcp://, lean+udp://,
lean+unix://, shm:// and xdp:// the lean protocol, between two ends that are both Tenon. A lean
server compares FILE with what it was built from: if a type differs, the error names it."
    )]
    Call(CallArgs),

    /// List the programs the server has reflection
    #[command(after_help = "\
Examples:
  tenon list tcp://127.0.0.1:4000
  tenon list lean+tcp://127.0.0.1:4000 --metadata 'authorization=Bearer ...' --allow-insecure
  tenon list tcp://127.0.0.1:4000 --json

Servers have reflection by the service of the crate `tenon-reflection`, and `tenon serve` has it
by --reflection; the interface is interfaces/reflection.x. `rpcinfo -p HOST` lists what rpcbind knows.")]
    List(ListArgs),

    /// Show an interface as text: of a server that has reflection, or of a descriptor
    #[command(after_help = "\
Examples:
  tenon describe tcp://127.0.0.1:4000                   all of its interfaces
  tenon describe tcp://127.0.0.1:4000 SAY_HELLO         a procedure
  tenon describe tcp://127.0.0.1:4000 statistics        a type
  tenon describe tcp://127.0.0.1:4000 > theirs.x        and write clients
  tenon describe nfs3.descriptor

Bounds are numbers, and comments are those of files alone: descriptors have none.")]
    Describe(DescribeArgs),

    /// Ask whether a program answers (procedure 0) and how fast
    #[command(after_help = "\
Examples:
  tenon ping tcp://fileserver 100003.3     NFS version 3; rpcbind knows the port
  tenon ping udp://127.0.0.1:111 100000    rpcbind itself; which versions are there?
  tenon ping tcp://127.0.0.1:4000 0x2000d340.1 --count 10
  tenon ping tcp://127.0.0.1:4000 0x2000d340.1 --count 1000 --wait spin    how fast can it be?
  tenon ping tcp://127.0.0.1:4000 0x2000d340.1 -c 1000000    until Ctrl-C, which shows what was measured
  tenon ping lean+tcp://127.0.0.1:4000 0x2000d340    does it speak the lean protocol, too?")]
    Ping(PingArgs),

    /// Ask a server whether it serves, or one of its services
    #[command(after_help = "\
The exit status is 0 if it serves, and 1 if it does not or cannot be asked: for supervisors and containers. A
server says so if it was built with `ServerBuilder::health`; the interface is interfaces/health.x.

Examples:
  tenon health tcp://127.0.0.1:4000                the server as a whole
  tenon health tcp://127.0.0.1:4000 GREETER_V1     one of its services
  tenon health tcp://127.0.0.1:4000 --list
  tenon health lean+unix:///run/greeter --watch
  HEALTHCHECK CMD tenon health tcp://127.0.0.1:4000      in a Dockerfile")]
    Health(HealthArgs),

    /// Find out where the time of a call goes, step by step, at both ends
    #[command(
        visible_alias = "profile",
        after_help = "\
The procedure is called many times, and the tables say what its steps take: first by whose time
it is, the client's, the server's, or that of the kernels and the wire between them; then step by
step in the order of the way. By the lean protocol the server's time stamps come back with the
reply; by ONC RPC only the client's side is known.

Two procedures are shown side by side, Null and one that carries many bytes, for instance: what
the first takes is the price of a call, and what the other takes more is the price of its bytes.

Examples:
  tenon account lean+tcp://127.0.0.1:4000 demo.x NULL --beside 'COUNT_TO 360'
  tenon account lean+tcp://127.0.0.1:4000 demo.x SAY_HELLO '\"Ada\"'
  tenon account lean+unix:///run/demo.sock demo.x AVERAGE '[1, 2, 6]' --calls 10000
  tenon account udp://127.0.0.1:4000 demo.x AVERAGE '[1, 2, 6]'     the client's side
  tenon account lean+tcp://127.0.0.1:4000 demo.x COUNT_TO 1000 --svg count.svg     as a time line
  tenon account lean+tcp://127.0.0.1:4000 demo.x COUNT_TO 1000 --json | jq .parts

The procedure is carried out every time: do not ask for one that changes what it should not.
Arguments are written as for `tenon call`. docs/account.md says how to read the tables."
    )]
    Account(AccountArgs),

    /// Run a mock server of an interface, which answers from a file, by a script, or with examples
    #[command(after_help = "\
Examples:
  tenon serve store.x                                     an example of each result
  tenon serve store.x --listen tcp://127.0.0.1:4000 --listen udp://127.0.0.1:4000
  tenon serve store.x --answers answers.json              prepared answers
  tenon serve store.x --script 'python3 answers.py'       answers of a program
  tenon serve old.x --listen tcp://0.0.0.0:0 --register   rpcbind tells clients the port

The addresses are printed on stdout, one a line, and calls on stderr. Each port speaks ONC RPC and
the lean protocol. Ctrl-C ends the server.

A file of answers is an object with a member for each procedure, called NAME, VERSION.NAME or
PROGRAM.NAME: an answer, or an array of answers of which the first is given whose `arguments` are
those of the call. One without `arguments` is for all.

  {
    \"GET\": [
      {\"arguments\": \"nothing\", \"raise\": {\"no_such_key\": {\"key\": \"nothing\"}}},
      {\"arguments\": \"slow\", \"delay\": \"2s\", \"result\": \"here it is\"},
      {\"result\": \"any other\"}
    ],
    \"PUT\": {\"fail\": \"the disk is full\"}
  }

`result` and `arguments` are written as for `tenon call`; `raise` is an error that the interface
declares, `fail` a failure of the server (SYSTEM_ERR), `invalid` one of the arguments
(GARBAGE_ARGS). A procedure without an answer is unavailable (PROC_UNAVAIL). `items` are those of a
result that is a stream, in an array; a `raise` or a `fail` comes behind them. A call with a stream
of arguments is answered when all items have come.

A script reads a line for each call and writes an answer in one, in the same words:
  {\"program\":\"STORE\",\"version\":1,\"procedure\":\"GET\",\"arguments\":\"a\"}
  {\"result\":\"here it is\"}
Of a stream of arguments it is told the `items`, too.")]
    Serve(ServeArgs),

    /// Run a server and a client process and show calls over every transport, by both protocols
    #[command(after_help = "\
A bundled interface file is read at run time, a server process is started, and a client process
calls it over TCP, UDP and a Unix socket, at the same ports by ONC RPC and by the lean protocol,
and through shared memory, which the lean protocol alone goes through; for root also past the
kernel, between two networks that are made for it. Every answer is checked. A table shows both
protocols side by side, and two more where the time of a call that brings nothing goes, over TCP
and through shared memory.

Examples:
  tenon demo
  tenon demo --calls 20000
  tenon demo --wait block    what does looking for a reply gain over sleeping until it comes?
  tenon demo --json
  tenon demo --serve         only the server, until Enter or end of input: try `tenon call` on it

The interface is interfaces/demo.x in the repository.")]
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
  tenon study                          tables 1 to 6, in some ten seconds
  tenon study --quick                  does it work? The figures are not to be believed
  tenon study --svg plots/             draws the tables, too
  tenon study --representation lean    nobody has to change the order of bytes
  tenon study --json study.json        everything that was measured, beside the tables
  tenon study --json - | jq '.cells[] | select(.design == \"compiled, every pass\")'

For figures to be believed, build with --release and leave the machine alone. docs/study.md says how
to read them.")]
    Study(StudyArgs),

    /// Predict what marshalling costs on this machine or another one, from the plans
    #[command(after_help = "\
Examples:
  tenon cost nfs3.x                            what each procedure's messages should take
  tenon cost nfs3.x NFSPROC3_READ              its equations, and what dominates them
  tenon cost nfs3.x NFSPROC3_READ --lengths data=8192 --arm post_op_attr=FALSE
  tenon cost nfs3.x --engine interp            by the interpreter
  tenon cost nfs3.x --check                    measured (predicted), with the errors
  tenon cost --export server.json              the parameters of this machine, for others
  tenon cost nfs3.x --machine server.json      what it should take there

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

    /// Write manual pages of all commands
    #[command(after_help = "\
Examples:
  tenon man /usr/local/share/man/man1
  tenon man . && man ./tenon-call.1")]
    Man {
        /// The folder that they are written into
        #[arg(value_name = "DIR")]
        folder: std::path::PathBuf,
    },
}
