//! The C back end: what rpcgen writes for an interface, with the same interface to the programs that
//! use it, and with `xdr_` routines that are made of the plan.
//!
//! C names things as the `.x` file does, so beside the schema the back end has what is
//! [`Written`]. What a name becomes is decided in `names`, how a type is declared in `declare`.

mod client;
mod declare;
mod header;
mod names;
mod planned;
mod procedures;
mod rename;
mod sample;
mod server;
mod spot;
pub mod stubs;
mod table;
mod xdr;

pub use rename::{NameCollision, for_c};

use tenon_plan::{Lists, Pass, PlanError, Plans, Representation};
use tenon_schema::Schema;
use tenon_schema::written::{Item, Written};

use crate::writer::{SourceWriter, comment};

/// Options of rpcgen that decide its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The header file, as `#include` names it.
    pub header: String,
    /// The interface file, for headings, and for the names of samples.
    pub source: String,
    /// `-M`: results are where the caller wants them, and nothing is static.
    pub reentrant: bool,
    /// `-N`: arguments are passed by value, and there may be several.
    pub by_value: bool,
    /// `-T`: there are dispatch tables.
    pub tables: bool,
    /// `--fast`: clients and servers are Tenon's, by libtirpc's names.
    pub fast: bool,
    /// The limit on the size of routines.
    pub size: Size,
    /// The parts of a server beside its dispatchers.
    pub server: Server,
}

/// The trade-off between the size and the speed of routines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Size {
    /// Types of many items are specialised, except for parts that only errors carry.
    #[default]
    Balanced,
    /// `--small`: no type is.
    Small,
    /// `--large`: every type is.
    Large,
}

/// The parts of a server beside its dispatchers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// The transports that `main` listens on; without any there is no `main`, and others call the
    /// dispatchers.
    pub transports: Vec<Transport>,
    /// `-I`: it may be started by inetd, and goes to the background otherwise.
    pub inetd: bool,
    /// `-K`: started by inetd, it ends after so many seconds without a call; `None` is never.
    pub idle_seconds: Option<u32>,
    /// `-L`: it tells the system's log and not its standard error.
    pub syslog: bool,
}

/// A transport that a server listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Streams.
    Tcp,
}

/// An interface that C is written for.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// The meaning of the interface.
    pub schema: &'a Schema,
    /// Its spelling in the interface file.
    pub written: &'a Written,
    /// The dialect of C.
    pub dialect: Dialect,
}

/// The dialect of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As rpcgen writes it: `u_int`, `bool_t`.
    Libtirpc,
    /// With the types of C's own headers: `uint32_t`, `bool`.
    Plain,
}

/// The passes that C profits from. Blocks of memory are told apart by what they hold, in `xdr`: C's
/// `long` has not the size that it has on the wire.
const PASSES: &[Pass] = Pass::ALL;

impl Interface<'_> {
    /// The header: `-h`.
    pub fn header(self, options: &Options) -> String {
        header::write(self, options)
    }

    /// The `xdr_` routines: `-c`. Empty if there are no types.
    ///
    /// # Errors
    /// The interface has types that no message can hold.
    pub fn xdr(self, options: &Options) -> Result<String, PlanError> {
        debug_assert_eq!(Representation::XDR.lists, Lists::Flagged);
        let plain: Vec<Pass> = PASSES.to_vec();
        let plain: Vec<Pass> = plain
            .into_iter()
            .filter(|pass| *pass != Pass::MergeBlocks)
            .collect();
        let planned = planned::schema(self);
        let plans = |passes: &[Pass]| {
            Plans::new(&planned.schema, Representation::XDR, passes).map(|plans| plans.stripped())
        };
        let plans = xdr::PlanVariants {
            blocks: plans(PASSES)?,
            items: plans(&plain)?,
        };
        Ok(xdr::write(self, &planned, &plans, options))
    }

    /// The client's stubs: `-l`. Empty if there are no programs.
    pub fn client(self, options: &Options) -> String {
        client::write(self, options)
    }

    /// The server's dispatchers: `-m`, and with transports `-s`. Empty if there are no programs.
    pub fn server(self, options: &Options) -> String {
        server::write(self, options)
    }

    /// A client to begin with: `-Sc`. Empty if there are no programs.
    pub fn sample_client(self, options: &Options) -> String {
        sample::client(self, options)
    }

    /// A server to begin with: `-Ss`. Empty if there are no programs.
    pub fn sample_server(self, options: &Options) -> String {
        sample::server(self, options)
    }

    /// A Makefile to begin with: `-Sm`. `flags` are those that the other files were made with, and
    /// `samples` says whether there are sample files.
    pub fn makefile(self, options: &Options, flags: &str, samples: bool) -> String {
        sample::makefile(options, flags, samples)
    }

    /// Dispatch tables: `-t`. Empty if there are no programs.
    pub fn table(self, options: &Options) -> String {
        table::write(self, options)
    }

    /// `%` lines, in their order.
    fn passthrough(self, w: &mut SourceWriter) {
        for item in &self.written.items {
            if let Item::Passthrough(line) = item {
                w.raw(&line.text);
            }
        }
    }
}

/// Writes the heading of a file.
fn heading(w: &mut SourceWriter, options: &Options) {
    let source = comment(&options.source).replace("*/", "* /");
    w.line("/*");
    w.line(" * Please do not edit this file.");
    w.line(format!(
        " * It was generated by tenon rpcgen from {source}."
    ));
    w.line(" */");
    w.line("");
}
