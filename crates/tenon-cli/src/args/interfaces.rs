//! What commands take that read interfaces.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

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

    /// Take types that are not defined to be declared elsewhere, as in a file with `%` lines: a warning, no error
    #[arg(long)]
    pub allow_undefined: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Interface files; `-` reads one from stdin
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// Print diagnostics as JSON, one object per line, on stdout
    #[arg(long)]
    pub json: bool,

    /// Fail if there are warnings
    #[arg(long)]
    pub deny_warnings: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LanguageArg {
    /// Rust stubs that stand on the crate `tenon`
    Rust,

    /// C stubs, a header and a source file, that stand on the library of `tenon.h`
    C,
}

#[derive(Debug, Args)]
pub struct GenArgs {
    /// The interface file; `-` reads it from stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The language to generate
    #[arg(long, value_enum)]
    pub lang: LanguageArg,

    /// Rust only: how items lie on the wire, with commas. Clients and services speak ONC RPC with `xdr`,
    /// and the lean protocol beside with `lean`; those in C always speak both
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "xdr,lean"
    )]
    pub representation: Vec<RepresentationArg>,

    /// Rust only: add types that borrow what they can from the message that they are read from; servers are
    /// handed their arguments so
    #[arg(long)]
    pub views: bool,

    /// Rust only: have servers write results of known size, which consist of numbers or opaque data, where they
    /// are sent from: methods are handed a `&mut` of them
    #[arg(long)]
    pub reserved: bool,

    /// Rust only: add clients whose calls are awaited and services whose methods are asynchronous, which stand on
    /// the crate `tenon-tokio`
    #[arg(long)]
    pub tokio: bool,

    /// Rust only: make strings `String`, so that ones that are not UTF-8 are refused, instead of `BString`, which
    /// holds any bytes
    #[arg(long)]
    pub utf8_strings: bool,

    /// Rust only: derive a further trait, such as `serde::Serialize`, for every type; again for more
    #[arg(long, value_name = "TRAIT")]
    pub derive: Vec<String>,

    /// Write into DIR instead of to stdout; C needs it, as its stubs are two files
    #[arg(short = 'o', long = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Args)]
pub struct DescriptorArgs {
    /// The interface file, or a descriptor; `-` reads it from stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The file to write; without it, stdout
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Print the SHA-256 of the descriptor instead
    #[arg(long, conflicts_with = "out")]
    pub identity: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The interface file; `-` reads it from stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A type or procedure; all of them if left out
    pub name: Option<String>,

    /// Show the plan after each pass, and where blocks of memory are broken and why
    #[arg(long)]
    pub passes: bool,

    /// How items lie on the wire
    #[arg(long, value_name = "NAME", default_value = "xdr")]
    pub representation: RepresentationArg,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RepresentationArg {
    /// External Data Representation, RFC 4506: what ONC RPC speaks
    Xdr,
    /// As numbers lie in the sender's memory: between two ends that are both Tenon
    Lean,
}

impl RepresentationArg {
    /// What plans are made by.
    pub fn plan(self) -> tenon_plan::Representation {
        match self {
            Self::Xdr => tenon_plan::Representation::XDR,
            Self::Lean => tenon_plan::Representation::LEAN,
        }
    }
}
