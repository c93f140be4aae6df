//! The machine code of an interface: made when it is needed, message by message and way by way.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::Context;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use tenon_schema::TypeId;
use tenon_wire::{Decoder, Encoder};

use super::context::{Cursor, Decoding, Encoding};
use super::emit::{Emitter, signature};
use super::given::{Given, Way, is_swapped};
use super::linker::{Linker, Routine, Unsupported};
use crate::Interface;
use crate::frame::Key;
use crate::frame::arena::Arena;
use crate::layout::Layouts;

/// `(context, value, at) -> at`, where the context is an [`Encoding`] or a [`Decoding`]. Null if
/// the value or the bytes are refused.
type Entry = unsafe extern "C" fn(*mut Cursor, *mut u8, *mut u8) -> *mut u8;

/// The machine code of an interface, freed with the last clone of this.
#[derive(Clone)]
pub(crate) struct Machine(Arc<Code>);

struct Code {
    given: Given,
    /// Of each message that there may be, in each way.
    slots: Box<[[Slot; Way::ALL.len()]]>,
    /// Holds the code that the slots lead to.
    making: Mutex<Making>,
}

/// The entry to one function.
#[derive(Default)]
struct Slot {
    /// Null until it is made.
    entry: AtomicPtr<u8>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({} types)", self.0.given.plans.types.len())
    }
}

impl Machine {
    /// A machine without code. `None` if Cranelift has no target here.
    pub fn new(interface: &Interface, layouts: &Layouts) -> Option<Self> {
        let given = Given::new(
            interface.schema().clone(),
            interface.plans().clone(),
            layouts.clone(),
        );
        let messages = given.plans.types.len() + 2 * given.plans.procedures.len();
        Some(Self(Arc::new(Code {
            given,
            slots: (0..messages).map(|_| Default::default()).collect(),
            making: Mutex::new(Making::Not),
        })))
    }

    /// Makes the code of every message, both ways. Whether that could be done.
    pub fn make_all(&self) -> bool {
        let code = &*self.0;
        let types = (0..code.given.plans.types.len() as u32).map(|id| Key::Type(TypeId(id)));
        let procedures = 0..code.given.plans.procedures.len();
        let messages = procedures.flat_map(|at| [Key::Arguments(at), Key::Result(at)]);
        let swapped = is_swapped(code.given.plans.representation.order);
        let ways = [Way::Encode { swapped }, Way::Decode { swapped }];
        let wanted = types.chain(messages);
        let wanted: Vec<_> = wanted.flat_map(|key| ways.map(|way| (key, way))).collect();
        code.make(&wanted).is_ok()
    }

    /// Appends the value at `from`. Whether that was done; if not nothing is appended.
    ///
    /// # Safety
    /// A value of this message lies at `from`, as the layouts say that the machine was made for.
    pub unsafe fn encode(&self, key: Key, from: *mut u8, out: &mut Encoder<'_>) -> bool {
        let swapped = is_swapped(self.0.given.plans.representation.order);
        let Some(entry) = self.0.entry(key, Way::Encode { swapped }) else {
            return false;
        };
        let mut context = Encoding::new(out);
        let first = context.first();
        // SAFETY: the caller's promise; the code only differs in lifetimes from what it is
        // called with, and keeps nothing.
        let behind = unsafe { entry((&raw mut context).cast(), from, first) };
        context.finish(behind)
    }

    /// Reads a value to `to`, which is `size` bytes long, and what it points to into `arena`.
    /// Whether that was done; if not nothing is read and there is nothing at `to`.
    ///
    /// # Safety
    /// At `to` there is room for a value of this message.
    pub unsafe fn decode(
        &self,
        key: Key,
        to: *mut u8,
        size: usize,
        arena: &mut Arena,
        input: &mut Decoder<'_>,
    ) -> bool {
        let swapped = is_swapped(self.0.given.plans.representation.order);
        let Some(entry) = self.0.entry(key, Way::Decode { swapped }) else {
            return false;
        };
        let Some(mut context) = Decoding::new(input, arena, size) else {
            return false;
        };
        let at = input.rest().as_ptr().cast_mut();
        // SAFETY: as in `encode`.
        let behind = unsafe { entry((&raw mut context).cast(), to, at) };
        context.commit(behind, input)
    }
}

impl Code {
    fn slot(&self, key: Key, way: Way) -> &Slot {
        let types = self.given.plans.types.len();
        let message = match key {
            Key::Type(id) => id.0 as usize,
            Key::Arguments(at) => types + 2 * at,
            Key::Result(at) => types + 2 * at + 1,
        };
        &self.slots[message][way.index()]
    }

    /// The code of a message, which is made now if it is not there.
    #[inline]
    fn entry(&self, key: Key, way: Way) -> Option<Entry> {
        let mut entry = self.slot(key, way).entry.load(Ordering::Acquire);
        if entry.is_null() {
            entry = self.make_one(key, way);
        }
        if entry.is_null() {
            return None;
        }
        // SAFETY: functions are made with this signature, for the contexts of their way, and
        // nothing else is stored there.
        Some(unsafe { std::mem::transmute::<*mut u8, Entry>(entry) })
    }

    #[cold]
    fn make_one(&self, key: Key, way: Way) -> *mut u8 {
        match self.make(&[(key, way)]) {
            Ok(()) => self.slot(key, way).entry.load(Ordering::Acquire),
            Err(Unsupported) => ptr::null_mut(),
        }
    }

    /// Makes the code of messages and of all that they call.
    fn make(&self, messages: &[(Key, Way)]) -> Result<(), Unsupported> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Making::Not = &*making {
            *making = Maker::new().map_or(Making::Failed, Making::With);
        }
        let outcome = match &mut *making {
            Making::With(maker) if maker.is_complete => self.make_with(maker, messages),
            Making::With(_) | Making::Not | Making::Failed => Err(Unsupported),
        };
        if let (Err(_), Making::With(maker)) = (&outcome, &mut *making) {
            // Functions may be missing that others call.
            maker.is_complete = false;
        }
        outcome
    }

    fn make_with(&self, maker: &mut Maker, messages: &[(Key, Way)]) -> Result<(), Unsupported> {
        let mut functions = Vec::new();
        for (key, way) in messages {
            let routine = self.given.message(*key);
            functions.push(maker.linker.want(*way, routine)?);
        }
        maker.make_wanted(&self.given)?;
        for ((key, way), function) in messages.iter().zip(functions) {
            let entry = maker.linker.address(function).cast_mut();
            self.slot(*key, *way).entry.store(entry, Ordering::Release);
        }
        Ok(())
    }
}

/// Code is only made when it is needed.
enum Making {
    Not,
    With(Box<Maker>),
    /// Cranelift has no target here.
    Failed,
}

/// What functions are made with.
struct Maker {
    /// Whether every function that is called was made.
    is_complete: bool,
    linker: Linker,
    context: Context,
    builder: FunctionBuilderContext,
}

impl Maker {
    fn new() -> Result<Box<Self>, Unsupported> {
        Ok(Box::new(Self {
            is_complete: true,
            linker: Linker::new()?,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
        }))
    }

    /// Makes every function that is asked for, and those that they ask for.
    fn make_wanted(&mut self, given: &Given) -> Result<(), Unsupported> {
        while let Some((way, routine, function)) = self.linker.next_wanted() {
            self.context.func.signature = signature(3, self.linker.call_conv());
            let builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
            let (mut emitter, it) = Emitter::begin(given, way, &mut self.linker, builder);
            let (plan, layout) = given.routine(routine);
            match (routine, way) {
                (Routine::List(id), Way::Encode { .. }) => emitter.put_list(true, id, it),
                (Routine::List(id), Way::Decode { .. }) => emitter.get_list(true, id, it),
                _ => emitter.plan(plan, layout, it),
            }
            emitter.finish();
            self.linker.define(function, &mut self.context)?;
        }
        self.linker.finish()
    }
}
