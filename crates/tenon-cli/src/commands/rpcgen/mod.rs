//! `tenon rpcgen`, and `tenon` under the name `rpcgen`.

mod options;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tenon_descriptor::is_descriptor;
use tenon_gen::c::{self, Dialect, Interface, Server, Transport};
use tenon_idl::{Output, Parsed, Undeclared};
use tenon_plan::BoxedArms;
use tenon_schema::{Schema, Type};

use crate::failure::CommandFailure;
use crate::interface;
use crate::output;

use options::{OutputKind, RpcgenOptions, RpcgenRequest};

/// Output of `--version`: programs look for the last word.
const VERSION: &str = concat!(
    "rpcgen (tenon ",
    env!("CARGO_PKG_VERSION"),
    ", in place of rpcsvc-proto) 1.4.3\n"
);

const USAGE: &str = "\
usage: rpcgen infile
	rpcgen [-abkCLNTM][-Dname[=value]] [-i size] [-I [-K seconds]] [-Y path] infile
	rpcgen [-c | -h | -l | -m | -t | -Sc | -Ss | -Sm] [-o outfile] [infile]
	rpcgen [-s nettype]* [-o outfile] [infile]
options:
-a		every file, samples too
-b		accepted: sockets are what servers stand on anyway
-c		xdr routines
-C		accepted: ANSI C is what is written anyway
-Dname[=value]	define a symbol
-h		header file
-i size		accepted: --small and --large choose what is specialised
-I		server that inetd may start
-K seconds	such a server ends after so many seconds without a call (-1: never)
-l		client stubs
-L		server tells the system's log of errors
-m		server stubs without main
-M		reentrant stubs: the caller says where results go
-n netid	refused, as there is no TLI
-N		several arguments, passed by value
-o outfile	name of the output file
-s nettype	server with main, for udp or tcp
-Sc		sample client
-Ss		sample server
-Sm 		Makefile template
-t		dispatch table
-T		dispatch tables, too
-Y path		accepted: the preprocessor is built in
--small		routines about as small as rpcgen's: none is specialised
--large		every routine is specialised, not only those of messages with many items
--fast		clients and servers of Tenon's run time by libtirpc's names; link tenon-tirpc
--help		this list
--version	version of the program
";

/// Runs the command with the arguments behind its name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let outcome = match options::parse(arguments) {
        Ok(RpcgenRequest::Version) => output::print(VERSION),
        Ok(RpcgenRequest::Help) => output::print(USAGE),
        Ok(RpcgenRequest::Generate(options)) => generate(&options),
        Err(reason) => {
            if !reason.is_empty() {
                eprintln!("{reason}");
            }
            eprint!("{USAGE}");
            return ExitCode::from(1);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// A file in the making.
struct OutputFile {
    path: Option<PathBuf>,
    text: String,
}

fn generate(options: &RpcgenOptions) -> Result<(), CommandFailure> {
    let run = RpcgenRun::new(options)?;
    let made = match options.only {
        Some(only) => vec![OutputFile {
            path: options.out.clone(),
            text: or_nothing(run.text(only)?),
        }],
        None => run.all()?,
    };
    if let Some(path) = options.out.as_ref().filter(|path| path.exists()) {
        let path = path.display();
        return Err(CommandFailure::new(format!(
            "file `{path}' already exists and may be overwritten"
        )));
    }
    made.iter().try_for_each(write)
}

/// A file that is asked for by name is there, whatever it holds: rules of Makefiles want it.
fn or_nothing(text: String) -> String {
    match text.is_empty() {
        true => "/* Nothing in the interface belongs here. */\n".to_owned(),
        false => text,
    }
}

fn write(made: &OutputFile) -> Result<(), CommandFailure> {
    match &made.path {
        None => output::print(&made.text),
        Some(_) if made.text.is_empty() => Ok(()),
        Some(path) => fs::write(path, &made.text).map_err(|error| {
            CommandFailure::new(format!("unable to open {}: {error}", path.display()))
        }),
    }
}

/// One interface and what is to be made of it.
struct RpcgenRun<'a> {
    options: &'a RpcgenOptions,
    /// The interface file as the user names it, or `stdin`.
    name: PathBuf,
    text: String,
}

impl<'a> RpcgenRun<'a> {
    fn new(options: &'a RpcgenOptions) -> Result<Self, CommandFailure> {
        let (name, bytes) = match &options.file {
            Some(path) if path.as_os_str() != "-" => {
                let bytes = fs::read(path)
                    .map_err(|error| CommandFailure::new(format!("{}: {error}", path.display())))?;
                (path.clone(), bytes)
            }
            _ => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                (PathBuf::from("stdin"), bytes)
            }
        };
        if is_descriptor(&bytes) {
            return Err(interface::needs_file(&name.to_string_lossy()));
        }
        Ok(Self {
            options,
            name,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Returns every file: those that programs are built of, and samples if they are asked for.
    fn all(&self) -> Result<Vec<OutputFile>, CommandFailure> {
        let mut wanted = vec![
            (OutputKind::Xdr, "_xdr.c"),
            (OutputKind::Header, ".h"),
            (OutputKind::Client, "_clnt.c"),
            (OutputKind::Server, "_svc.c"),
        ];
        if self.options.tables {
            wanted.push((OutputKind::Table, "_tbl.i"));
        }
        if self.options.all {
            wanted.push((OutputKind::SampleServer, "_server.c"));
            wanted.push((OutputKind::SampleClient, "_client.c"));
        }
        let made = wanted.into_iter().map(|(only, ending)| {
            Ok(OutputFile {
                path: Some(self.beside(ending)),
                text: self.text(only)?,
            })
        });
        let mut made = made.collect::<Result<Vec<_>, CommandFailure>>()?;
        if self.options.all {
            let stem = self.name.file_stem().unwrap_or_default();
            let name = format!("Makefile.{}", stem.to_string_lossy());
            made.push(OutputFile {
                path: Some(self.name.with_file_name(name)),
                text: self.text(OutputKind::Makefile)?,
            });
        }
        Ok(made)
    }

    /// Returns the name of the interface file with another ending.
    fn beside(&self, ending: &str) -> PathBuf {
        let stem = self.name.file_stem().unwrap_or_default();
        let name = format!("{}{ending}", stem.to_string_lossy());
        self.name.with_file_name(name)
    }

    fn text(&self, only: OutputKind) -> Result<String, CommandFailure> {
        let parsed = self.parse(symbol(only));
        let (Some(schema), Some(written)) = (&parsed.schema, &parsed.written) else {
            interface::show(&parsed);
            return Err(CommandFailure::explained());
        };
        self.refuse_unwritable(schema)?;
        let (schema, written) = c::for_c(schema, written)
            .map_err(|error| CommandFailure::new(format!("{}: {error}", self.name.display())))?;
        let of = Interface {
            schema: &schema,
            written: &written,
            dialect: Dialect::Libtirpc,
        };
        let options = self.c_options(only);
        Ok(match only {
            OutputKind::Header => of.header(&options),
            OutputKind::Xdr => of.xdr(&options).map_err(|error| {
                CommandFailure::new(format!("{}: {error}", self.name.display()))
            })?,
            OutputKind::Client => of.client(&options),
            OutputKind::Dispatchers | OutputKind::Server => of.server(&options),
            OutputKind::Table => of.table(&options),
            OutputKind::SampleClient => of.sample_client(&options),
            OutputKind::SampleServer => of.sample_server(&options),
            OutputKind::Makefile => {
                of.makefile(&options, &self.options.flags.join(" "), self.options.all)
            }
        })
    }

    fn parse(&self, output: Output) -> Parsed {
        let options = tenon_idl::Options {
            defines: self.options.defines.clone(),
            output,
            undeclared: Undeclared::OfLibtirpc,
            ..tenon_idl::Options::default()
        };
        tenon_idl::parse_text(&self.name.to_string_lossy(), &self.text, &options)
    }

    fn c_options(&self, only: OutputKind) -> c::Options {
        let header = match (only, &self.options.out) {
            (OutputKind::Header, Some(out)) => out.clone(),
            _ => self.beside(".h"),
        };
        let with_main = only == OutputKind::Server;
        let transports = match with_main {
            true if self.options.transports.is_empty() => vec![Transport::Udp, Transport::Tcp],
            true => self.options.transports.clone(),
            false => Vec::new(),
        };
        c::Options {
            header: header.to_string_lossy().into_owned(),
            source: file_name(&self.name),
            reentrant: self.options.reentrant,
            by_value: self.options.by_value,
            tables: self.options.tables,
            fast: self.options.fast,
            size: self.options.size,
            server: Server {
                transports,
                inetd: self.options.inetd,
                idle_seconds: self.options.idle_seconds,
                syslog: self.options.syslog,
            },
        }
    }

    /// Refuses what the language has and C, as rpcgen writes it, has not.
    fn refuse_unwritable(&self, schema: &Schema) -> Result<(), CommandFailure> {
        let name = self.name.display();
        let programs = schema.programs.iter();
        let versions = programs.flat_map(|program| &program.versions);
        for procedure in versions.flat_map(|version| &version.procedures) {
            if procedure.arguments.len() > 1 && !self.options.by_value {
                let message = format!("{name}: {}: only one argument is allowed", procedure.name);
                return Err(CommandFailure::new(message).hint("-N allows several"));
            }
        }
        if let Some(id) = BoxedArms::of(schema).first() {
            let union = &schema.type_def(id).name;
            let message =
                format!("{name}: `{union}` contains itself in place, and C cannot hold that");
            let failure = CommandFailure::new(message);
            return Err(failure.hint("`tenon gen --lang c` has a pointer there"));
        }
        let is_quadruple = |(_, ty): &(&str, &Type)| *ty.innermost() == Type::Quadruple;
        match schema.uses().find(is_quadruple) {
            Some((user, _)) => Err(CommandFailure::new(format!(
                "{name}: {user}: C has no type for `quadruple`"
            ))),
            None => Ok(()),
        }
    }
}

/// Returns the output that an interface is read for.
fn symbol(only: OutputKind) -> Output {
    match only {
        OutputKind::Header => Output::Header,
        OutputKind::Xdr => Output::Xdr,
        OutputKind::Client => Output::Client,
        OutputKind::Dispatchers | OutputKind::Server => Output::Server,
        OutputKind::Table => Output::Table,
        OutputKind::SampleClient | OutputKind::SampleServer | OutputKind::Makefile => {
            Output::Nothing
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
