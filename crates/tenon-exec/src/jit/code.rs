//! The code that was made for interfaces. All interfaces that are equal share it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cranelift_codegen::Context;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::FuncId;

use super::emit::FunctionEmitter;
use super::given::{CompilationInput, MarshalDirection};
use super::helpers::{OpaqueForm, OpaqueHelpers};
use super::linker::{CompileError, FunctionKey, JitLinker, RoutinePart};
use crate::Interface;
use crate::frame::MessageId;

/// All code that is in use.
static CODES: Mutex<Vec<Weak<InterfaceCode>>> = Mutex::new(Vec::new());

/// The code of an interface, as much as was asked for.
pub(super) struct InterfaceCode {
    given: CompilationInput,
    compiler: Mutex<CompilerState>,
}

/// The function that moves a message.
pub(super) struct CompiledEntry {
    /// Its address. It can be called as long as the code lives.
    pub entry: *const u8,
}

/// The function by which the code of a message is entered.
enum EntryFunction {
    /// A function of the library.
    Ready(*const u8),
    Compiled(FuncId),
}

/// The compiler, which is only made when it is needed.
enum CompilerState {
    NotStarted,
    Ready(Box<JitCompiler>),
    /// Cranelift has no target here.
    Failed,
}

/// Compiles functions, and owns them.
struct JitCompiler {
    /// Set if a function may be missing that others call.
    has_failed: bool,
    linker: JitLinker,
    context: Context,
    builder: FunctionBuilderContext,
}

impl InterfaceCode {
    /// Returns the code of interfaces with plans that are resolved to the same as those of this one. `None` if no frame
    /// can hold its values, or its plans demand a padding that is not supported here.
    pub fn of(interface: &Interface) -> Option<Arc<Self>> {
        let plans = &interface.resolved().ok()?.plans;
        OpaqueHelpers::of(OpaqueForm::Frame, plans.representation.padding, false)?;
        let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|code| code.strong_count() > 0);
        let known = codes.iter().filter_map(Weak::upgrade);
        let is_equal = |code: &Arc<Self>| code.given.plans == *plans;
        if let Some(code) = known.into_iter().find(is_equal) {
            return Some(code);
        }
        let code = Arc::new(Self {
            given: CompilationInput::new(Arc::clone(plans)),
            compiler: Mutex::new(CompilerState::NotStarted),
        });
        codes.push(Arc::downgrade(&code));
        Some(code)
    }

    /// Compiles the functions that move these messages, and all that they call.
    pub fn make(
        &self,
        messages: &[(MessageId, MarshalDirection)],
    ) -> Result<Vec<CompiledEntry>, CompileError> {
        let mut compiler = self.compiler.lock().unwrap_or_else(PoisonError::into_inner);
        if let CompilerState::NotStarted = &*compiler {
            *compiler = JitCompiler::new().map_or(CompilerState::Failed, CompilerState::Ready);
        }
        match &mut *compiler {
            CompilerState::Ready(jit) if !jit.has_failed => {
                let made = jit.make(&self.given, messages);
                // What was made before stays: it calls nothing that is not there.
                jit.has_failed = made.is_err();
                made
            }
            CompilerState::Ready(_) | CompilerState::Failed | CompilerState::NotStarted => {
                Err(CompileError)
            }
        }
    }
}

impl JitCompiler {
    fn new() -> Result<Box<Self>, CompileError> {
        Ok(Box::new(Self {
            has_failed: false,
            linker: JitLinker::new()?,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
        }))
    }

    fn make(
        &mut self,
        given: &CompilationInput,
        messages: &[(MessageId, MarshalDirection)],
    ) -> Result<Vec<CompiledEntry>, CompileError> {
        let wanted = messages.iter().map(|(key, way)| {
            let (routine, bytes) = given.message(*key);
            Ok::<_, CompileError>(match given.ready_entry(*way, routine, bytes) {
                Some(entry) => EntryFunction::Ready(entry),
                None => EntryFunction::Compiled(self.linker.want((
                    *way,
                    routine,
                    RoutinePart::Entry(bytes),
                ))?),
            })
        });
        let wanted: Vec<_> = wanted.collect::<Result<_, _>>()?;
        while let Some((key, function)) = self.linker.next_wanted() {
            self.emit(given, key);
            self.linker.define(function, &mut self.context)?;
        }
        self.linker.finish()?;
        let made = wanted.into_iter().map(|entry| CompiledEntry {
            entry: match entry {
                EntryFunction::Ready(entry) => entry,
                EntryFunction::Compiled(function) => self.linker.address(function),
            },
        });
        Ok(made.collect())
    }

    fn emit(&mut self, given: &CompilationInput, key: FunctionKey) {
        self.context.func.signature = self.linker.signature(key);
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let (emitter, parameters) = FunctionEmitter::begin(given, key.0, &mut self.linker, builder);
        match key {
            (_, routine, RoutinePart::Entry(bytes)) => emitter.entry(&parameters, routine, bytes),
            (_, routine, RoutinePart::Inside) => emitter.inside(&parameters, routine),
        }
    }
}
