//! A contestant with its value in hand: it has shown that its answers are right, and can be timed.

use std::hint::black_box;
use std::rc::Rc;

use crate::places::elsewhere;

/// How a contestant marshals `T`.
pub trait Codec<T>: 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Marshals into memory that is used again and again; hands out the bytes.
    fn encode(&mut self, value: &T) -> &[u8];

    /// Makes an owned value of the bytes.
    fn decode(&mut self, bytes: &[u8]) -> T;

    /// Makes an owned value of the bytes, and drops it or the one before: what is timed.
    #[inline]
    fn spend(&mut self, bytes: &[u8]) {
        black_box(self.decode(bytes));
    }

    /// Makes a view that borrows from the bytes, if there is such a thing, and drops it.
    const VIEW: Option<View> = None;
}

/// What came out well. Who panics with an error in hand, as `expect` does, keeps it for that on all ways,
/// which takes a cycle where the error has something to give back.
#[inline]
pub fn good<T, E>(done: Result<T, E>) -> T {
    let Ok(done) = done else {
        panic!("a contestant has shown that it can marshal this value")
    };
    done
}

/// Makes a view of bytes, and drops it.
pub type View = fn(&[u8]);

/// Does a thing so many times.
pub type Timed = Box<dyn FnMut(u64)>;

/// A contestant ready for one work.
pub struct Entrant {
    /// Who.
    pub name: &'static str,
    /// What the value takes in its representation.
    pub bytes: usize,
    /// Encodes into a reused buffer.
    pub encode: Option<Timed>,
    /// Decodes to an owned value, and drops it.
    pub decode: Option<Timed>,
    /// Makes a view that borrows from the bytes, if the contestant can.
    pub view: Option<Timed>,
}

impl Entrant {
    /// Lets a codec show that it can marshal `value`.
    ///
    /// # Errors
    /// What it decodes is not what it has encoded.
    pub fn of<T: PartialEq + 'static, C: Codec<T>>(
        make: impl Fn() -> C,
        value: &Rc<T>,
    ) -> Result<Self, String> {
        elsewhere();
        let mut codec = make();
        elsewhere();
        let bytes = codec.encode(value).to_vec();
        if codec.decode(&bytes) != **value {
            return Err(format!("{} decodes another value", C::NAME));
        }
        Ok(Self {
            name: C::NAME,
            bytes: bytes.len(),
            encode: Some(encoding(make(), Rc::clone(value))),
            view: C::VIEW.map(|view| viewing(view, bytes.clone())),
            decode: Some(decoding(codec, bytes)),
        })
    }
}

// Each contestant does its work behind one call. Were it inlined into the loop, which happens to
// some and not to others, compilers would do there once what users pay for every time, such as to
// look whether there is room.

fn encoding<T: 'static, C: Codec<T>>(mut codec: C, value: Rc<T>) -> Timed {
    Box::new(move |times| {
        for _ in 0..times {
            black_box(encode_once(&mut codec, black_box(&value)));
        }
    })
}

#[inline(never)]
fn encode_once<'a, T, C: Codec<T>>(codec: &'a mut C, value: &T) -> &'a [u8] {
    codec.encode(value)
}

fn decoding<T: 'static, C: Codec<T>>(mut codec: C, bytes: Vec<u8>) -> Timed {
    Box::new(move |times| {
        // Where the bytes are is in registers. Who keeps something from one to the next would else read it
        // from memory each time, and all others not.
        let bytes = bytes.as_slice();
        for _ in 0..times {
            spend_once(&mut codec, black_box(bytes));
        }
    })
}

#[inline(never)]
fn spend_once<T, C: Codec<T>>(codec: &mut C, bytes: &[u8]) {
    codec.spend(bytes);
}

fn viewing(view: View, bytes: Vec<u8>) -> Timed {
    Box::new(move |times| {
        for _ in 0..times {
            view(black_box(&bytes));
        }
    })
}
