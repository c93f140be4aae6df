//! The functions of an interface: those that are made, and those that others ask for.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use cranelift_codegen::ir::{self, FuncRef};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable, SetError};
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};
use tenon_schema::TypeId;

use super::emit::signature;
use super::entry;
use super::given::{Places, Way};

/// Address space that the code of one interface may take. So near to each other its functions
/// can call each other directly.
const MOST_CODE: usize = 64 << 20;

/// What one function moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Routine {
    /// What the plan of a named type moves: of a link, an element.
    Type(TypeId),
    /// A whole list whose first element comes bare.
    List(TypeId),
    /// The arguments of a procedure, by its position in the plans.
    Arguments(usize),
    /// Its result.
    Result(usize),
}

/// Which part of a routine a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// What programs call, for a message of so many bytes.
    Entry(u32),
    /// What other functions call: `(context, value, at) -> at`.
    Inside,
}

/// What a function does.
pub(super) type Task = (Way, Routine, Part);

/// Something cannot be compiled, or not here.
#[derive(Debug)]
pub(super) struct Unsupported;

impl<E: std::error::Error> From<E> for Unsupported {
    fn from(_: E) -> Self {
        Self
    }
}

/// Memory with machine code in it, freed when this is dropped.
pub(super) struct Linker {
    module: ManuallyDrop<JITModule>,
    functions: HashMap<Task, FuncId>,
    /// Those that are called and not made yet.
    wanted: Vec<(Task, FuncId)>,
    pub places: Places,
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: the module is not used after this.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: whoever runs the code borrows the machine that this is a part of, so that nobody
        // does; and the machine's entries go with it.
        unsafe { module.free_memory() };
    }
}

impl Linker {
    pub fn new() -> Result<Self, Unsupported> {
        let mut builder = JITBuilder::with_isa(target()?, default_libcall_names());
        let memory = ArenaMemoryProvider::new_with_size(MOST_CODE)?;
        builder.memory_provider(Box::new(memory));
        Ok(Self {
            module: ManuallyDrop::new(JITModule::new(builder)),
            functions: HashMap::new(),
            wanted: Vec::new(),
            places: Places::default(),
        })
    }

    pub fn call_conv(&self) -> CallConv {
        self.module.isa().default_call_conv()
    }

    /// Asks for a function.
    pub fn want(&mut self, task: Task) -> Result<FuncId, Unsupported> {
        if let Some(function) = self.functions.get(&task) {
            return Ok(*function);
        }
        let signature = self.signature(task);
        let function = self.module.declare_anonymous_function(&signature)?;
        self.functions.insert(task, function);
        self.wanted.push((task, function));
        Ok(function)
    }

    /// What a function takes and gives.
    pub fn signature(&self, (way, _, part): Task) -> ir::Signature {
        let words = match part {
            Part::Entry(_) => (entry::PARAMETERS, way.given()),
            Part::Inside => (3, 1),
        };
        signature(words, self.call_conv())
    }

    /// One that is asked for and not made yet.
    pub fn next_wanted(&mut self) -> Option<(Task, FuncId)> {
        self.wanted.pop()
    }

    /// A function, to be called by another one.
    pub fn function(&mut self, task: Task, caller: &mut ir::Function) -> Option<FuncRef> {
        let function = self.want(task).ok()?;
        Some(self.module.declare_func_in_func(function, caller))
    }

    /// Makes the code of a function; it can be entered when all that it calls are made and
    /// [`finish`](Self::finish) was called.
    pub fn define(
        &mut self,
        function: FuncId,
        context: &mut cranelift_codegen::Context,
    ) -> Result<(), Unsupported> {
        self.module.define_function(function, context)?;
        self.module.clear_context(context);
        Ok(())
    }

    /// Makes what is defined executable, and no longer writable.
    pub fn finish(&mut self) -> Result<(), Unsupported> {
        Ok(self.module.finalize_definitions()?)
    }

    /// Where a finished function begins.
    pub fn address(&self, function: FuncId) -> *const u8 {
        self.module.get_finalized_function(function)
    }
}

/// The processor that this runs on; the same for all interfaces.
fn target() -> Result<OwnedTargetIsa, Unsupported> {
    static TARGET: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let flags = settings::Flags::new(flags().ok()?);
        let target = cranelift_native::builder().ok()?.finish(flags).ok()?;
        // There two words are given as C gives a struct of two: in registers.
        let call_conv = target.default_call_conv();
        let gives_two = matches!(call_conv, CallConv::SystemV | CallConv::AppleAarch64);
        (gives_two && target.pointer_bytes() == 8).then_some(target)
    });
    target.clone().ok_or(Unsupported)
}

fn flags() -> Result<settings::Builder, SetError> {
    let mut flags = settings::builder();
    // Optimised code takes a quarter longer to make and runs no faster: there is little to find in
    // loads, swaps and stores.
    flags.set("opt_level", "none")?;
    flags.set("unwind_info", "false")?;
    let verifier = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    flags.set("enable_verifier", verifier)?;
    Ok(flags)
}
