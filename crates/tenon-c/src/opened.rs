//! Opening of interfaces at run time: from a file or bytes to values that can be moved.

use std::ffi::c_long;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tenon_descriptor::{BYTES_MAX, Descriptor, MAGIC, is_descriptor};
use tenon_exec::layout::CDialect;
use tenon_exec::{CValues, CValuesError};
use tenon_idl::{FileSource, Options, Parsed};
use tenon_plan::Representation;
use tenon_schema::Schema;
use tenon_schema::written::{Spelling, Written, WrittenType};

use crate::report::ApiError;

/// The values of an opened interface, as both protocols move them.
#[derive(Debug)]
pub struct OpenedValues {
    /// As ONC RPC does.
    pub xdr: CValues,
    /// As the lean protocol does.
    pub lean: CValues,
}

/// The way in which an interface is opened.
#[derive(Debug)]
pub struct OpenOptions {
    /// The C that declares the types.
    pub dialect: CDialect,
    /// The time at which machine code is made.
    pub engine: MarshalEngine,
    /// The options of the parser.
    pub parser: Options,
}

/// The time at which machine code is made: `tenon_engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarshalEngine {
    /// When a message has been moved often.
    Adaptive,
    /// When the interface is opened.
    Compiled,
    /// Never.
    Interpreted,
}

/// An interface that was read, and its spelling unless it is a descriptor.
struct ReadInterface {
    schema: Schema,
    written: Option<Written>,
}

impl OpenedValues {
    /// Opens the interface in a file, which may be a descriptor.
    ///
    /// # Errors
    /// The file cannot be read or is no interface, by line and column; or C has no such values.
    pub fn of_file(path: &Path, options: &OpenOptions) -> Result<Self, ApiError> {
        let name = path.display().to_string();
        let read = match descriptor_in(path) {
            Some(bytes) => {
                let bytes =
                    bytes.map_err(|error| ApiError::Interface(format!("{name}: {error}")))?;
                ReadInterface::of_descriptor(&name, &bytes)
            }
            None => ReadInterface::of_parsed(tenon_idl::parse_file(path, &options.parser)),
        }?;
        Self::new(read, &name, options)
    }

    /// Opens the interface in `bytes`, a text or a descriptor, which errors call `name`. Bytes may come from anywhere, so
    /// no file is read for their `#include` lines, unless the options name folders.
    ///
    /// # Errors
    /// As [`of_file`](Self::of_file).
    pub fn of_bytes(bytes: &[u8], name: &str, options: &OpenOptions) -> Result<Self, ApiError> {
        let read = match is_descriptor(bytes) {
            true => ReadInterface::of_descriptor(name, bytes),
            false => {
                let mut parser = options.parser.clone();
                if parser.include_dirs.is_empty() {
                    parser.files = FileSource::Memory(Default::default());
                }
                ReadInterface::of_parsed(tenon_idl::parse_input(name, bytes, &parser))
            }
        }?;
        Self::new(read, name, options)
    }

    fn new(read: ReadInterface, name: &str, options: &OpenOptions) -> Result<Self, ApiError> {
        if options.dialect == CDialect::Rpcgen {
            read.check_for_rpcgen(name)?;
        }
        let is_interpreted = options.engine == MarshalEngine::Interpreted;
        let values = |schema, representation| {
            CValues::new(schema, representation, options.dialect, is_interpreted)
                .map_err(|error| refused(name, &error))
        };
        let opened = Self {
            xdr: values(read.schema.clone(), Representation::XDR)?,
            lean: values(read.schema, Representation::LEAN)?,
        };
        if options.engine == MarshalEngine::Compiled {
            // Where there is no machine code, the interpreter moves the values.
            opened.xdr.compile();
            opened.lean.compile();
        }
        Ok(opened)
    }

    /// The interface.
    pub fn schema(&self) -> &Schema {
        self.xdr.schema()
    }
}

/// The bytes of the descriptor in a file; `None` if it is something else, or cannot be read, which its parser says.
fn descriptor_in(path: &Path) -> Option<io::Result<Vec<u8>>> {
    let mut file = File::open(path).ok()?;
    let mut bytes = vec![0; MAGIC.len()];
    file.read_exact(&mut bytes).ok()?;
    is_descriptor(&bytes).then(|| {
        // One byte more than a descriptor may have is refused as too many.
        let left = BYTES_MAX - MAGIC.len() + 1;
        file.take(left as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

impl ReadInterface {
    fn of_descriptor(name: &str, bytes: &[u8]) -> Result<Self, ApiError> {
        let descriptor = Descriptor::parse(bytes);
        let descriptor =
            descriptor.map_err(|error| ApiError::Interface(format!("{name}: {error}")))?;
        Ok(Self {
            schema: descriptor.into_schema(),
            written: None,
        })
    }

    fn of_parsed(parsed: Parsed) -> Result<Self, ApiError> {
        if parsed.schema.is_none() {
            return Err(ApiError::Interface(first_error(&parsed)));
        }
        let Parsed {
            schema, written, ..
        } = parsed;
        let Some(schema) = schema else {
            unreachable!("it was just found to be there")
        };
        Ok(Self { schema, written })
    }

    /// Refuses what has another size in rpcgen's C than on the wire, and a descriptor, which does not say.
    fn check_for_rpcgen(&self, name: &str) -> Result<(), ApiError> {
        if size_of::<c_long>() == size_of::<i32>() {
            return Ok(());
        }
        let Some(written) = &self.written else {
            let why = "a descriptor does not say which types are spelled `long`, which rpcgen's C has otherwise";
            return Err(ApiError::Interface(format!("{name}: {why}")));
        };
        let mut types = self.schema.types.iter().zip(&written.types);
        let long = types.find(|(_, written)| spellings(written).into_iter().any(is_long));
        if let Some((def, _)) = long {
            return Err(long_in(name, &def.name));
        }
        let procedures = written.procedures.iter();
        let mut spellings = procedures.flat_map(|it| it.arguments.iter().chain(&it.result));
        match spellings.any(is_long) {
            true => Err(long_in(name, "a procedure")),
            false => Ok(()),
        }
    }
}

fn long_in(name: &str, place: &str) -> ApiError {
    let why = "`long` is as wide as a pointer in rpcgen's C, and no layout for it is known here; say `int`";
    ApiError::Interface(format!("{name}: {place}: {why}"))
}

/// The spellings of the parts of a type.
fn spellings(written: &WrittenType) -> Vec<&Spelling> {
    match written {
        WrittenType::Enum(_) | WrittenType::External => Vec::new(),
        WrittenType::Struct(fields) => fields.iter().collect(),
        WrittenType::Typedef(of) => vec![of],
        WrittenType::Union(union) => {
            let arms = union.arms.iter().flatten();
            let default = union.default.iter().flatten();
            arms.chain(default).chain([&union.discriminant]).collect()
        }
    }
}

/// Returns whether rpcgen writes `long` for it, as it does for `u_long`.
fn is_long(spelling: &Spelling) -> bool {
    let words = || spelling.base.split(' ');
    let longs = words().filter(|word| *word == "long").count();
    let is_other = words().any(|word| matches!(word, "hyper" | "char" | "short"));
    spelling.base == "u_long" || (longs == 1 && !is_other)
}

/// The first error of a parser, behind its file, line and column.
fn first_error(parsed: &Parsed) -> String {
    let reports = parsed.reports();
    let Some(first) = reports.iter().find(|report| report.severity == "error") else {
        return "the interface cannot be read".to_owned();
    };
    // Some hints are about options of the command.
    let hint = first.hint.as_deref().filter(|hint| !hint.contains("`--"));
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    let place = match first.line {
        0 => String::new(),
        line => format!("{}:{line}:{}: ", first.file, first.column),
    };
    format!("{place}{}{hint}", first.message)
}

fn refused(name: &str, error: &CValuesError) -> ApiError {
    ApiError::Interface(format!("{name}: {error}"))
}
