//! Options for reading an interface.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options for reading an interface. `Options::default()` accepts every known dialect.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folders that `#include` searches, in order, after that of the including file (`-I`).
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined from the start (`-D`).
    pub defines: Vec<Define>,
    /// The output of rpcgen that the interface is read for.
    pub output: Output,
    /// Reject what Debian's rpcgen 1.4.3 rejects; see the crate's documentation for the list.
    pub strict_rpcgen: bool,
    /// The treatment of names that are not declared.
    pub undeclared: Undeclared,
    /// The source of the files' texts.
    pub files: FileSource,
    /// Limits on the resources that an interface may use.
    pub limits: ParseLimits,
}

/// A macro from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Define {
    /// The macro's name.
    pub name: String,
    /// The text that replaces it.
    pub value: String,
}

impl Define {
    /// Parses the argument of `-D`: `NAME`, which stands for 1, or `NAME=VALUE`.
    pub fn parse(argument: &str) -> Define {
        let (name, value) = argument.split_once('=').unwrap_or((argument, "1"));
        Define {
            name: name.to_string(),
            value: value.to_string(),
        }
    }
}

/// The treatment of names of types and constants that an interface uses and does not declare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Undeclared {
    /// Types that C's headers declare by these names. Any other is an error, as stubs would not compile, unless the
    /// interface has `%` lines: one of them may declare it, so that is a warning. A constant without a value is an
    /// error where the value decides the layout of a message.
    #[default]
    Usual,
    /// The same, but any other is a warning: it is declared outside of the stubs.
    Allowed,
    /// The numbers of libtirpc's own `xdr_` routines. Any other type is the program's, and so is its routine,
    /// as rpcgen has it: not worth a warning. So is a constant: only the C compiler knows its value. The schema has
    /// [placeholders](tenon_schema::written) there, which only a back end of C can do without.
    OfLibtirpc,
}

/// An output of rpcgen, which reads an interface once per output file, each time with another symbol defined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// `RPC_HDR`, the header file: it declares all types, hence the default for a schema.
    #[default]
    Header,
    /// `RPC_XDR`, the marshalling routines.
    Xdr,
    /// `RPC_SVC`, the server.
    Server,
    /// `RPC_CLNT`, the client.
    Client,
    /// `RPC_TBL`, the dispatch table.
    Table,
    /// None of them.
    Nothing,
}

impl Output {
    /// Returns the macro that rpcgen defines as 1 for this output.
    pub fn symbol(self) -> Option<&'static str> {
        match self {
            Output::Header => Some("RPC_HDR"),
            Output::Xdr => Some("RPC_XDR"),
            Output::Server => Some("RPC_SVC"),
            Output::Client => Some("RPC_CLNT"),
            Output::Table => Some("RPC_TBL"),
            Output::Nothing => None,
        }
    }
}

/// The source of the text of files.
#[derive(Debug, Clone, Default)]
pub enum FileSource {
    /// The file system.
    #[default]
    Disk,
    /// Texts by path; the file system is not accessed.
    Memory(BTreeMap<PathBuf, String>),
}

/// Limits on the resources that a hostile interface can make the front end use.
#[derive(Debug, Clone)]
pub struct ParseLimits {
    /// Bytes of all texts of a run together, every inclusion counted.
    pub text_bytes_max: usize,
    /// Tokens, comments and `%` lines behind the preprocessor, and tokens of macros' bodies, together.
    pub tokens_max: usize,
    /// Files that may be open in one another through `#include`.
    pub include_depth_max: usize,
    /// Tokens that macros may produce.
    pub expansion_tokens_max: usize,
    /// Types nested in one another in the text, parentheses, unary operators.
    pub nesting_max: usize,
    /// Types that hold one another by value, through their names.
    pub type_depth_max: usize,
    /// Bytes on the wire of the fixed part of a type.
    pub fixed_bytes_max: u64,
}

impl Default for ParseLimits {
    fn default() -> ParseLimits {
        ParseLimits {
            text_bytes_max: 16 << 20,
            tokens_max: 2_000_000,
            include_depth_max: 32,
            expansion_tokens_max: 500_000,
            nesting_max: 64,
            type_depth_max: 200,
            fixed_bytes_max: 64 << 20,
        }
    }
}
