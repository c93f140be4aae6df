//! What a caller may choose about reading an interface.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// How an interface is read. `Options::default()` accepts every known dialect.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where `#include` looks, in order, behind the folder of the including file (`-I`).
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined from the start (`-D`).
    pub defines: Vec<Define>,
    /// Which of rpcgen's outputs the interface is read for.
    pub output: Output,
    /// Refuse what Debian's rpcgen 1.4.3 refuses; see the crate's documentation for the list.
    pub strict_rpcgen: bool,
    /// What is known of names that are not declared.
    pub undeclared: Undeclared,
    /// Where files come from.
    pub files: Files,
    /// How much a file may ask for.
    pub limits: Limits,
}

/// A macro from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Define {
    /// The macro's name.
    pub name: String,
    /// What it stands for.
    pub value: String,
}

impl Define {
    /// From what follows `-D`: `NAME`, which stands for 1, or `NAME=VALUE`.
    pub fn parse(argument: &str) -> Define {
        let (name, value) = argument.split_once('=').unwrap_or((argument, "1"));
        Define {
            name: name.to_string(),
            value: value.to_string(),
        }
    }
}

/// What is known of names that an interface uses and does not declare: of types, and of constants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Undeclared {
    /// Types that C's headers declare by these names. Any other is an error, as stubs would not compile, unless the
    /// interface has `%` lines: one of them may declare it, so that is a warning. A constant without a value is an
    /// error where the value decides what a message is made of.
    #[default]
    Usual,
    /// The same, and any other is a warning: something beside the stubs declares it.
    Allowed,
    /// The numbers of libtirpc's own `xdr_` routines. Any other type is the program's, and so is its routine,
    /// as rpcgen has it: not worth a warning. So is a constant: only the C compiler learns its value. The schema has
    /// [placeholders](tenon_schema::written) there, which only a back end of C can do without.
    OfLibtirpc,
}

/// rpcgen reads an interface once per output file, each time with another symbol defined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// `RPC_HDR`, the header file: what declares all types, hence the default for a schema.
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
    /// The macro that rpcgen defines as 1 for this output.
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

/// Where the text of files comes from.
#[derive(Debug, Clone, Default)]
pub enum Files {
    /// The file system.
    #[default]
    Disk,
    /// Texts by path; the file system is left alone.
    Memory(BTreeMap<PathBuf, String>),
}

/// Bounds on what a hostile interface can make the front end do.
#[derive(Debug, Clone)]
pub struct Limits {
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

impl Default for Limits {
    fn default() -> Limits {
        Limits {
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
