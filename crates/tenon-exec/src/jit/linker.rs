//! The functions of an interface: those that are compiled, and those that are still to be.

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
use super::given::MarshalDirection;

/// Address space that the code of one interface may take. So near to each other its functions
/// can call each other directly.
const MOST_CODE: usize = 64 << 20;

/// Identifies the value that one function moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RoutineId {
    /// A value of a named type: of a link, an element.
    Type(TypeId),
    /// A whole list of which the first element is not optional.
    List(TypeId),
    /// The arguments of a procedure, by its position in the plans.
    Arguments(usize),
    /// Its result.
    Result(usize),
}

/// The part of a routine that a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RoutinePart {
    /// The function that programs call, for a message of so many bytes.
    Entry(u32),
    /// The function that other functions call: `(context, value, at) -> at`.
    Inside,
}

/// Identifies a function.
pub(super) type FunctionKey = (MarshalDirection, RoutineId, RoutinePart);

/// Something cannot be compiled, or not on this machine.
#[derive(Debug)]
pub(super) struct CompileError;

impl<E: std::error::Error> From<E> for CompileError {
    fn from(_: E) -> Self {
        Self
    }
}

/// Memory with machine code in it, freed when this is dropped.
pub(super) struct JitLinker {
    module: ManuallyDrop<JITModule>,
    functions: HashMap<FunctionKey, FuncId>,
    /// Those that are called and not compiled yet.
    wanted: Vec<(FunctionKey, FuncId)>,
}

impl Drop for JitLinker {
    fn drop(&mut self) {
        // SAFETY: the module is not used after this.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: running the code borrows the machine that this is a part of, so that it does not run now;
        // and the entry points of the machine are dropped with it.
        unsafe { module.free_memory() };
    }
}

impl JitLinker {
    pub fn new() -> Result<Self, CompileError> {
        let mut builder = JITBuilder::with_isa(target()?, default_libcall_names());
        let memory = ArenaMemoryProvider::new_with_size(MOST_CODE)?;
        builder.memory_provider(Box::new(memory));
        Ok(Self {
            module: ManuallyDrop::new(JITModule::new(builder)),
            functions: HashMap::new(),
            wanted: Vec::new(),
        })
    }

    pub fn call_conv(&self) -> CallConv {
        self.module.isa().default_call_conv()
    }

    /// Declares a function, and has it compiled unless it is already.
    pub fn want(&mut self, key: FunctionKey) -> Result<FuncId, CompileError> {
        if let Some(function) = self.functions.get(&key) {
            return Ok(*function);
        }
        let signature = self.signature(key);
        let function = self.module.declare_anonymous_function(&signature)?;
        self.functions.insert(key, function);
        self.wanted.push((key, function));
        Ok(function)
    }

    /// The parameters and results of a function.
    pub fn signature(&self, (way, _, part): FunctionKey) -> ir::Signature {
        let words = match part {
            RoutinePart::Entry(_) => (entry::PARAMETERS, way.given()),
            RoutinePart::Inside => (3, 1),
        };
        signature(words, self.call_conv())
    }

    /// Takes a function that is declared and not compiled yet.
    pub fn next_wanted(&mut self) -> Option<(FunctionKey, FuncId)> {
        self.wanted.pop()
    }

    /// Returns a reference to a function, to be called by another one.
    pub fn function(&mut self, key: FunctionKey, caller: &mut ir::Function) -> Option<FuncRef> {
        let function = self.want(key).ok()?;
        Some(self.module.declare_func_in_func(function, caller))
    }

    /// Compiles a function; it can be entered when all that it calls are compiled and [`finish`](Self::finish) was
    /// called.
    pub fn define(
        &mut self,
        function: FuncId,
        context: &mut cranelift_codegen::Context,
    ) -> Result<(), CompileError> {
        self.module.define_function(function, context)?;
        self.module.clear_context(context);
        Ok(())
    }

    /// Makes the defined functions executable, and no longer writable.
    pub fn finish(&mut self) -> Result<(), CompileError> {
        Ok(self.module.finalize_definitions()?)
    }

    /// Address of a finished function.
    pub fn address(&self, function: FuncId) -> *const u8 {
        self.module.get_finalized_function(function)
    }
}

/// The processor that this runs on; the same for all interfaces.
fn target() -> Result<OwnedTargetIsa, CompileError> {
    static TARGET: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let flags = settings::Flags::new(flags().ok()?);
        let target = cranelift_native::builder().ok()?.finish(flags).ok()?;
        // With these, two words are returned as C returns a struct of two: in registers.
        let call_conv = target.default_call_conv();
        let gives_two = matches!(call_conv, CallConv::SystemV | CallConv::AppleAarch64);
        (gives_two && target.pointer_bytes() == 8).then_some(target)
    });
    target.clone().ok_or(CompileError)
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
