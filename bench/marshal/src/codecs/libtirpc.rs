//! libtirpc with rpcgen's routines, in C. This is the section's room for `unsafe`: a value in C is
//! known by its pointer.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::hint::black_box;
use std::rc::Rc;

use crate::entrant::{Entrant, Timed};

/// A row of the table in `libtirpc.c`, which lives as long as the process.
#[repr(C)]
struct Row {
    opaque: [u8; 0],
}

unsafe extern "C" {
    fn marshal_work(name: *const c_char) -> *const Row;
    fn marshal_room(work: *const Row) -> *mut c_void;
    fn marshal_encode(
        work: *const Row,
        value: *mut c_void,
        bytes: *mut c_char,
        room: c_uint,
    ) -> c_uint;
    fn marshal_decode(
        work: *const Row,
        value: *mut c_void,
        bytes: *const c_char,
        length: c_uint,
    ) -> c_int;
    fn marshal_decode_fresh(
        work: *const Row,
        room: *mut c_void,
        bytes: *const c_char,
        length: c_uint,
    ) -> c_int;
    fn marshal_free(work: *const Row, value: *mut c_void);
    safe fn free(value: *mut c_void);
}

/// libtirpc for the work that C calls `name`, and the same decoding into memory that is there
/// already. It has to read and write the very `bytes` that Tenon writes.
pub fn libtirpc(name: &str, bytes: &[u8]) -> Result<[Entrant; 2], String> {
    let value = Rc::new(CValue::new(name)?);
    let bytes: Rc<[u8]> = bytes.into();
    let mut room = vec![0; bytes.len()];
    if !value.decode(&bytes) || value.encode(&mut room) != bytes.len() || *room != *bytes {
        return Err("libtirpc reads or writes another value".to_owned());
    }
    let fresh = CValue::new(name)?;
    if !fresh.decode_fresh(&bytes) {
        return Err("libtirpc cannot decode".to_owned());
    }
    Ok([
        Entrant {
            name: "libtirpc",
            bytes: bytes.len(),
            encode: Some(encoding(Rc::clone(&value), room)),
            decode: Some(decoding(Rc::clone(&bytes), move |it| {
                fresh.decode_fresh(it)
            })),
            view: None,
        },
        Entrant {
            name: "libtirpc reused",
            bytes: bytes.len(),
            encode: None,
            decode: Some(decoding(bytes, move |it| value.decode(it))),
            view: None,
        },
    ])
}

fn encoding(value: Rc<CValue>, mut room: Vec<u8>) -> Timed {
    Box::new(move |times| {
        for _ in 0..times {
            black_box(value.encode(black_box(&mut room)));
        }
    })
}

fn decoding(bytes: Rc<[u8]>, decode: impl Fn(&[u8]) -> bool + 'static) -> Timed {
    Box::new(move |times| {
        for _ in 0..times {
            black_box(decode(black_box(&bytes)));
        }
    })
}

/// A value in C.
struct CValue {
    work: *const Row,
    value: *mut c_void,
}

impl CValue {
    fn new(name: &str) -> Result<Self, String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the name ends with a zero.
        let work = unsafe { marshal_work(name.as_ptr()) };
        if work.is_null() {
            return Err("libtirpc.c does not know the work".to_owned());
        }
        // SAFETY: the row is one.
        let value = unsafe { marshal_room(work) };
        match value.is_null() {
            true => Err("no memory".to_owned()),
            false => Ok(Self { work, value }),
        }
    }

    /// The bytes written; 0 if `room` is too small.
    fn encode(&self, room: &mut [u8]) -> usize {
        let bytes = room.as_mut_ptr().cast();
        // SAFETY: the value is one of this work, and there is as much room as is said.
        unsafe { marshal_encode(self.work, self.value, bytes, room.len() as c_uint) as usize }
    }

    /// Decodes over what is there.
    fn decode(&self, bytes: &[u8]) -> bool {
        let length = bytes.len() as c_uint;
        // SAFETY: the value is one of this work or all zeroes, and there are as many bytes as is
        // said, which are only read.
        unsafe { marshal_decode(self.work, self.value, bytes.as_ptr().cast(), length) != 0 }
    }

    /// Decodes into new memory and frees that again. The value has to be all zeroes.
    fn decode_fresh(&self, bytes: &[u8]) -> bool {
        let length = bytes.len() as c_uint;
        // SAFETY: as `decode`; what is allocated is freed.
        unsafe { marshal_decode_fresh(self.work, self.value, bytes.as_ptr().cast(), length) != 0 }
    }
}

impl Drop for CValue {
    fn drop(&mut self) {
        // SAFETY: nobody else has the value; what is in it was made by the work's own routine.
        unsafe { marshal_free(self.work, self.value) };
        free(self.value);
    }
}
