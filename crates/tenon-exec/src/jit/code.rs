//! The code that was made for interfaces. Equal interfaces share it, whoever made them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cranelift_codegen::Context;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::FuncId;

use super::emit::Emitter;
use super::given::{Given, Way};
use super::helpers::Opaque;
use super::linker::{Linker, Part, Task, Unsupported};
use crate::Interface;
use crate::frame::Key;

/// The code there is, as long as somebody uses it.
static CODES: Mutex<Vec<Weak<Code>>> = Mutex::new(Vec::new());

/// The code of an interface, as much as was asked for.
pub(super) struct Code {
    given: Given,
    making: Mutex<Making>,
}

/// What moves a message.
pub(super) struct Made {
    /// Where it begins. It can be entered as long as the code lives.
    pub entry: *const u8,
}

/// What a message is entered by.
enum Entry {
    /// A function that was there before.
    Ready(*const u8),
    Made(FuncId),
}

/// Code is only made when it is needed.
enum Making {
    Not,
    With(Box<Maker>),
    /// Cranelift has no target here.
    Failed,
}

/// What functions are made with, and what holds them.
struct Maker {
    /// Whether a function may be missing that others call.
    has_failed: bool,
    linker: Linker,
    context: Context,
    builder: FunctionBuilderContext,
}

impl Code {
    /// The code of interfaces like this one. `None` if no frame can hold its values, or they are
    /// to be moved in a way that is for comparison only, or padded as nothing here does it.
    pub fn of(interface: &Interface) -> Option<Arc<Self>> {
        let plans = interface.plans().stripped();
        if plans.moves != tenon_plan::Moves::default() {
            return None;
        }
        Opaque::of(plans.representation.padding, false)?;
        let layouts = interface.layouts().ok()?;
        let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|code| code.strong_count() > 0);
        let known = codes.iter().filter_map(Weak::upgrade);
        let is_equal = |code: &Arc<Self>| {
            code.given.plans == plans && code.given.schema == *interface.schema()
        };
        if let Some(code) = known.into_iter().find(is_equal) {
            return Some(code);
        }
        let code = Arc::new(Self {
            given: Given::new(interface.schema().clone(), plans, layouts.clone()),
            making: Mutex::new(Making::Not),
        });
        codes.push(Arc::downgrade(&code));
        Some(code)
    }

    /// Makes what moves these messages, and all that it calls.
    pub fn make(&self, messages: &[(Key, Way)]) -> Result<Vec<Made>, Unsupported> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Making::Not = &*making {
            *making = Maker::new().map_or(Making::Failed, Making::With);
        }
        match &mut *making {
            Making::With(maker) if !maker.has_failed => {
                let made = maker.make(&self.given, messages);
                // What was made before stays: it calls nothing that is not there.
                maker.has_failed = made.is_err();
                made
            }
            Making::With(_) | Making::Failed | Making::Not => Err(Unsupported),
        }
    }
}

impl Maker {
    fn new() -> Result<Box<Self>, Unsupported> {
        Ok(Box::new(Self {
            has_failed: false,
            linker: Linker::new()?,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
        }))
    }

    fn make(&mut self, given: &Given, messages: &[(Key, Way)]) -> Result<Vec<Made>, Unsupported> {
        let wanted = messages.iter().map(|(key, way)| {
            let (routine, bytes) = given.message(*key);
            Ok::<_, Unsupported>(match given.ready_entry(*way, routine, bytes) {
                Some(entry) => Entry::Ready(entry),
                None => Entry::Made(self.linker.want((*way, routine, Part::Entry(bytes)))?),
            })
        });
        let wanted: Vec<_> = wanted.collect::<Result<_, _>>()?;
        while let Some((task, function)) = self.linker.next_wanted() {
            self.emit(given, task);
            self.linker.define(function, &mut self.context)?;
        }
        self.linker.finish()?;
        let made = wanted.into_iter().map(|entry| Made {
            entry: match entry {
                Entry::Ready(entry) => entry,
                Entry::Made(function) => self.linker.address(function),
            },
        });
        Ok(made.collect())
    }

    fn emit(&mut self, given: &Given, task: Task) {
        self.context.func.signature = self.linker.signature(task);
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let (emitter, parameters) = Emitter::begin(given, task.0, &mut self.linker, builder);
        match task {
            (_, routine, Part::Entry(bytes)) => emitter.entry(&parameters, routine, bytes),
            (_, routine, Part::Inside) => emitter.inside(&parameters, routine),
        }
    }
}
