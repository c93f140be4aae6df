//! `tenon_interface_file`: interfaces that are opened at run time.

use std::ffi::{OsStr, c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use tenon_exec::layout::CDialect;
use tenon_idl::{Define, Options};

use super::channel::{CChannel, tenon_call};
use super::error::{CError, done, told};
use super::interface::{bytes, list};
use super::tables::OpenedTables;
use super::types::{CInterface, CMessage, CProcedure, CRaisedType};
use crate::opened::{MarshalEngine, OpenOptions, OpenedValues};
use crate::report::ApiError;

/// `tenon_interface_file`.
pub struct CInterfaceFile {
    tables: OpenedTables,
}

/// `tenon_open_options`.
#[repr(C)]
#[derive(Debug)]
pub struct COpenOptions {
    /// Bytes of it that the program knows.
    pub size: usize,
    /// A `tenon_layout`.
    pub layout: u32,
    /// A `tenon_engine`.
    pub engine: u32,
    /// Folders in which `#include` lines are looked up.
    pub include: *const *const c_char,
    /// The number of those.
    pub include_count: usize,
    /// Macros, as `NAME` or `NAME=VALUE`.
    pub define: *const *const c_char,
    /// The number of those.
    pub define_count: usize,
}

/// Bytes of the first version of the options.
const SIZE_FIRST: usize = offset_of!(COpenOptions, define_count) + size_of::<usize>();

const NO_FILE: ApiError = ApiError::Caller("the interface file is NULL");
const NO_INTERFACE: ApiError = ApiError::Caller("the interface is NULL");
const NO_NAME: ApiError = ApiError::Caller("the name is NULL or not UTF-8");

impl COpenOptions {
    /// # Errors
    /// The program sets options that this version does not have, or its size is none.
    ///
    /// # Safety
    /// It is NULL or leads to as many bytes as its size says, and is complete.
    unsafe fn read(from: *const Self) -> Result<OpenOptions, ApiError> {
        let mut options = MaybeUninit::<Self>::zeroed();
        if !from.is_null() {
            // SAFETY: every version begins with its size.
            let size = match unsafe { (*from).size } {
                0 => SIZE_FIRST,
                size if size < SIZE_FIRST => {
                    let why = "size in tenon_open_options is none: use TENON_OPEN_OPTIONS";
                    return Err(ApiError::Caller(why));
                }
                size => size,
            };
            let known = size.min(size_of::<Self>());
            // SAFETY: there are so many bytes.
            let more = unsafe { list(from.cast::<u8>().add(known), size - known) };
            if more.iter().any(|byte| *byte != 0) {
                return Err(ApiError::Caller(
                    "tenon_open_options has options that this version of the library does not know",
                ));
            }
            // SAFETY: there are so many bytes and so much room.
            unsafe {
                ptr::copy_nonoverlapping(from.cast::<u8>(), options.as_mut_ptr().cast(), known);
            }
        }
        // SAFETY: all zero is a value of it, and so is what C has.
        let options = unsafe { options.assume_init() };
        // SAFETY: the caller's promise.
        let (include, define) = unsafe {
            (
                texts(options.include, options.include_count),
                texts(options.define, options.define_count),
            )
        };
        let define = define.map(|text| Define::parse(&String::from_utf8_lossy(text)));
        Ok(OpenOptions {
            dialect: dialect(options.layout)?,
            engine: engine(options.engine)?,
            parser: Options {
                include_dirs: include.map(path).collect(),
                defines: define.collect(),
                ..Options::default()
            },
        })
    }
}

/// # Safety
/// There are so many texts of C's, which stay as long as `'t`, or it is NULL.
unsafe fn texts<'t>(first: *const *const c_char, count: usize) -> impl Iterator<Item = &'t [u8]> {
    // SAFETY: the caller's promise.
    let texts = unsafe { list(first, count) };
    // SAFETY: the same.
    texts.iter().map(|text| unsafe { bytes(*text) })
}

fn path(text: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text))
}

/// A `tenon_layout`.
fn dialect(number: u32) -> Result<CDialect, ApiError> {
    match number {
        0 => Ok(CDialect::Tenon),
        1 => Ok(CDialect::Rpcgen),
        _ => Err(ApiError::Caller("there is no such layout")),
    }
}

/// A `tenon_engine`.
fn engine(number: u32) -> Result<MarshalEngine, ApiError> {
    match number {
        0 => Ok(MarshalEngine::Adaptive),
        1 => Ok(MarshalEngine::Compiled),
        2 => Ok(MarshalEngine::Interpreted),
        _ => Err(ApiError::Caller("there is no such engine")),
    }
}

/// A name of something in an interface.
///
/// # Safety
/// It is NULL or a text of C's that stays as long as `'t`.
unsafe fn name<'t>(text: *const c_char) -> Result<&'t str, ApiError> {
    // SAFETY: the caller's promise.
    unsafe { super::words(text) }.ok_or(NO_NAME)
}

fn handed_out(values: OpenedValues) -> *mut CInterfaceFile {
    let tables = OpenedTables::new(values);
    Box::into_raw(Box::new(CInterfaceFile { tables }))
}

/// `tenon_interface_open`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_open(
    path: *const c_char,
    options: *const COpenOptions,
    error: *mut CError,
) -> *mut CInterfaceFile {
    let open = || {
        if path.is_null() {
            return Err(ApiError::Caller("the path is NULL"));
        }
        // SAFETY: the path is a text; the options are NULL or complete.
        let (path, options) = unsafe { (bytes(path), COpenOptions::read(options)?) };
        let path = Path::new(OsStr::from_bytes(path));
        Ok(handed_out(OpenedValues::of_file(path, &options)?))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, open) }.unwrap_or(ptr::null_mut())
}

/// `tenon_interface_parse`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_parse(
    text: *const c_void,
    length: usize,
    name: *const c_char,
    options: *const COpenOptions,
    error: *mut CError,
) -> *mut CInterfaceFile {
    let parse = || {
        if text.is_null() && length > 0 {
            return Err(ApiError::Caller("the interface is NULL"));
        }
        // SAFETY: there are so many bytes; the name is NULL or a text, the options are NULL or complete.
        let (text, name, options) = unsafe {
            let text = list(text.cast::<u8>(), length);
            (text, bytes(name), COpenOptions::read(options)?)
        };
        let name = match name {
            [] => "interface".into(),
            name => String::from_utf8_lossy(name),
        };
        Ok(handed_out(OpenedValues::of_bytes(text, &name, &options)?))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, parse) }.unwrap_or(ptr::null_mut())
}

/// `tenon_interface_free`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_free(file: *mut CInterfaceFile) {
    if !file.is_null() {
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        done((), || drop(unsafe { Box::from_raw(file) }));
    }
}

/// `tenon_interface_version`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_version(
    file: *const CInterfaceFile,
    program: *const c_char,
    version: u32,
    error: *mut CError,
) -> *const CInterface {
    let find = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let file = unsafe { file.as_ref() }.ok_or(NO_FILE)?;
        let program = match program.is_null() {
            true => None,
            // SAFETY: it is a text.
            false => Some(unsafe { name(program) }?),
        };
        let found = file.tables.version(program, version);
        found.ok_or_else(|| {
            let program = program.map_or("no single program".to_owned(), |name| {
                format!("no program `{name}`")
            });
            let version = match version {
                0 => String::new(),
                version => format!(" that has version {version}"),
            };
            ApiError::Interface(format!("the interface has {program}{version}"))
        })
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, find) }.unwrap_or(ptr::null())
}

/// `tenon_interface_procedure`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_procedure(
    interface: *const CInterface,
    procedure: *const c_char,
    error: *mut CError,
) -> *const CProcedure {
    // SAFETY: both are NULL or what `tenon.h` says.
    let find = || unsafe { procedure_called(interface, name(procedure)?) };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, find) }.unwrap_or(ptr::null())
}

/// # Safety
/// The interface is NULL or complete.
unsafe fn procedure_called(
    interface: *const CInterface,
    name: &str,
) -> Result<*const CProcedure, ApiError> {
    // SAFETY: the caller's promise.
    let interface = unsafe { interface.as_ref() }.ok_or(NO_INTERFACE)?;
    // SAFETY: the same.
    let procedures = unsafe { list(interface.procedures, interface.procedure_count) };
    // SAFETY: the same.
    let is_called = |it: &&CProcedure| unsafe { bytes(it.name) } == name.as_bytes();
    let found = procedures.iter().find(is_called);
    found.map(|found| &raw const *found).ok_or_else(|| {
        // SAFETY: the caller's promise.
        let version = String::from_utf8_lossy(unsafe { bytes(interface.name) });
        ApiError::Interface(format!(
            "{version} has no procedure `{name}` that can be called without streams"
        ))
    })
}

/// `tenon_interface_type`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_type(
    file: *const CInterfaceFile,
    type_name: *const c_char,
    error: *mut CError,
) -> *const CMessage {
    let find = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let (file, name) = unsafe { (file.as_ref().ok_or(NO_FILE)?, name(type_name)?) };
        let found = file.tables.of_type(name);
        found.ok_or_else(|| ApiError::Interface(format!("the interface has no type `{name}`")))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, find) }.unwrap_or(ptr::null())
}

/// `tenon_interface_raised`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_raised(
    file: *const CInterfaceFile,
    interface: *const CInterface,
    procedure: *const c_char,
    type_name: *const c_char,
    error: *mut CError,
) -> *const CRaisedType {
    let find = || {
        // SAFETY: all are NULL or what `tenon.h` says.
        let (file, procedure, raised) = unsafe {
            let file = file.as_ref().ok_or(NO_FILE)?;
            (file, name(procedure)?, name(type_name)?)
        };
        let found = file.tables.raised(interface, procedure, raised);
        found.ok_or_else(|| {
            let what = format!("`{procedure}` that raises `{raised}`");
            ApiError::Interface(format!("the interface has no {what} there"))
        })
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, find) }.unwrap_or(ptr::null())
}

/// `tenon_interface_call`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_interface_call(
    interface: *const CInterface,
    channel: *mut CChannel,
    procedure: *const c_char,
    arguments: *const c_void,
    result: *mut c_void,
    error: *mut CError,
) -> bool {
    // SAFETY: the caller's promises are those of both functions.
    unsafe {
        let found = tenon_interface_procedure(interface, procedure, error);
        !found.is_null() && tenon_call(channel, found, arguments, result, error)
    }
}
