//! Code common to encoding and decoding: the position in a stream, and the bytes at hand behind it.

use tenon_plan::{Count, Op, Scalar};
use tenon_schema::TypeId;

use super::generic;
use super::routine::RoutineWriter;
use crate::c::spot::CLvalue;
use crate::writer::SourceWriter;

/// Bytes of a count, a discriminant, or what says whether there is a value.
pub const WORD: u32 = 4;

/// Most numbers of an array that are reversed where they are used.
const FEW: u32 = 16;

/// The direction in which values are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdrDirection {
    Encode,
    Decode,
}

impl<'a> RoutineWriter<'a> {
    /// Ensures that so many bytes, or room for them, are at hand.
    pub fn need(&self, w: &mut SourceWriter, way: XdrDirection, bytes: u32) {
        if self.at_hand.get() >= bytes {
            return;
        }
        let more = match way {
            XdrDirection::Encode => format!("tenon_room (_s, _at, {bytes})"),
            XdrDirection::Decode => format!("tenon_fetch (_s, {bytes})"),
        };
        refuse_if(
            w,
            &format!("tenon_lacks (_s, _at, {bytes}) && (_at = {more}) == NULL"),
        );
        self.at_hand.set(bytes);
    }

    /// Steps over bytes that are at hand.
    pub fn step(&self, w: &mut SourceWriter, bytes: u32) {
        w.line(format!("_at += {bytes};"));
        self.at_hand.set(self.at_hand.get().saturating_sub(bytes));
    }

    /// Forgets the bytes at hand: behind items of varying size, and where branches join.
    pub fn forget(&self) {
        self.at_hand.set(0);
    }

    /// Calls a function that moves something and returns the position behind it.
    pub fn must(&self, w: &mut SourceWriter, call: &str) {
        refuse_if(w, &format!("(_at = {call}) == NULL"));
        self.forget();
    }

    /// Calls the function of a type, or its routine where it stands by itself.
    pub fn call(&self, w: &mut SourceWriter, way: XdrDirection, at: &CLvalue<'a>, id: TypeId) {
        if self.of.is_elsewhere(id) {
            return self.external(w, at);
        }
        if self.is_alone(id) {
            return self.alone(w, at);
        }
        let (verb, pointer) = (way.verb(), at.pointer());
        let name = &self.of.schema.type_def(id).name;
        self.must(w, &format!("tenon_{verb}_{name} (_s, _at, {pointer})"));
    }

    /// Calls a routine that stands by itself, where it may be.
    pub fn alone(&self, w: &mut SourceWriter, at: &CLvalue<'a>) {
        match generic::routine(self.of, at) {
            Some(routine) => {
                let to = at.address(self.of);
                let call = format!("tenon_call_alone (_s, _at, (xdrproc_t) {routine}, {to})");
                self.must(w, &call);
            }
            None => self.external(w, at),
        }
    }

    /// Calls the program's own routine, or one of libtirpc's. As rpcgen's code, it compiles if nothing declares that.
    pub fn external(&self, w: &mut SourceWriter, at: &CLvalue<'a>) {
        let call = self.generic.call(at, "_s->xdrs");
        refuse_if(w, &format!("!tenon_leave (_s, _at) || !{call}"));
        w.line("_at = tenon_enter (_s, _s->xdrs);");
        self.forget();
    }

    /// Bytes that an operation wants at hand before it begins, beside those of the block in front of it.
    pub fn word_of(&self, way: XdrDirection, spot: &CLvalue<'a>, next: Option<&'a Op>) -> u32 {
        let Some(op) = next else {
            return 0;
        };
        let has_word = match op {
            Op::Switch { place, .. } => !self.is_left_to_c(&spot.at(self.of, place)),
            Op::Optional { .. } => true,
            Op::List { first_bare, .. } => !first_bare && way == XdrDirection::Encode,
            Op::Loop { count, .. } | Op::PutElements { count, .. } => {
                matches!(count, Count::Counted(_))
            }
            // Functions see to the room for their counts themselves.
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::BlitCounted { .. } => {
                way == XdrDirection::Decode
            }
            _ => false,
        };
        if has_word { WORD } else { 0 }
    }

    /// Returns whether a body calls routines or functions with the stream when it is freed.
    pub fn passes_stream(&self, body: &[Op]) -> bool {
        body.iter().any(|op| {
            self.owners.owns_op(op)
                && (matches!(op, Op::External { .. })
                    || op.called().is_some()
                    || op.bodies().any(|body| self.passes_stream(body)))
        })
    }
}

impl XdrDirection {
    /// Returns the verb in the names of functions.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

/// Takes the place of code for an alignment.
pub fn no_alignment() -> ! {
    unreachable!("routines are made of plans of XDR, whose representation aligns nothing")
}

/// `if (condition) return NULL;`
pub fn refuse_if(w: &mut SourceWriter, condition: &str) {
    w.line(format!("if ({condition})"));
    w.indented(|w| w.line("return NULL;"));
}

/// The position so many bytes behind the one at hand.
pub fn position(offset: u32) -> String {
    match offset {
        0 => "_at".to_owned(),
        offset => format!("_at + {offset}"),
    }
}

/// The function that reverses so many numbers of 4 or 8 bytes.
pub fn swap(unit: u32, numbers: u64) -> String {
    match unit {
        4 if numbers < FEW.into() => "tenon_swap4_few".to_owned(),
        unit => format!("tenon_swap{unit}"),
    }
}

/// Bytes of an item of its own.
pub fn bytes_of(scalar: Scalar) -> u32 {
    tenon_plan::Representation::XDR.bytes(scalar)
}
