//! All functions of an interface.

use std::collections::HashMap;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Mutex;

use cranelift_codegen::settings::{self, Configurable, SetError};
use cranelift_codegen::{Context, ir};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};
use tenon_plan::{Layout, links};
use tenon_schema::TypeId;
use tenon_wire::{Decoder, Encoder};

use super::context::{Decoding, Encoding};
use super::emit::{Emitter, Move, Spot, Surroundings};
use crate::Interface;
use crate::frame::Key;
use crate::frame::arena::Arena;
use crate::layout::Layouts;

/// Address space that the code of one interface may take. So near to each other its functions
/// can call each other directly.
const MOST_CODE: usize = 64 << 20;

/// `(context, value) -> done`, where the context is an [`Encoding`] or a [`Decoding`].
type Entry<C> = unsafe extern "C" fn(*mut C, *mut u8) -> u64;

/// The machine code of an interface; freed when this is dropped.
pub(crate) struct Machine {
    /// Of the named types, in their order.
    types: Vec<Entries>,
    /// Of the procedures' arguments and results, in their order.
    procedures: Vec<[Entries; 2]>,
    /// Holds the code that the entries lead to.
    module: ManuallyDrop<Mutex<JITModule>>,
}

#[derive(Clone, Copy)]
struct Entries {
    encode: Entry<Encoding<'static, 'static>>,
    decode: Entry<Decoding<'static>>,
}

/// Something cannot be compiled, or not here.
struct Unsupported;

impl<E: std::error::Error> From<E> for Unsupported {
    fn from(_: E) -> Self {
        Self
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({} types)", self.types.len())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: the module is not used after this.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        if let Ok(module) = module.into_inner() {
            // SAFETY: whoever runs the code borrows this machine, so that nobody does; and the
            // entries go with it.
            unsafe { module.free_memory() };
        }
    }
}

impl Machine {
    /// Compiles everything. `None` if Cranelift cannot do so on this machine.
    pub fn new(interface: &Interface, layouts: &Layouts) -> Option<Self> {
        Self::compile(interface, layouts).ok()
    }

    fn compile(interface: &Interface, layouts: &Layouts) -> Result<Self, Unsupported> {
        let mut module = module()?;
        let encode = Direction {
            move_body: |emitter, body, layout, it| emitter.encode(body, layout, it),
            move_list: |emitter, element, it| emitter.put_list(true, element, it),
        };
        let decode = Direction {
            move_body: |emitter, body, layout, it| emitter.decode(body, layout, it),
            move_list: |emitter, element, it| emitter.get_list(true, element, it),
        };
        let encoders = encode.compile(interface, layouts, &mut module)?;
        let decoders = decode.compile(interface, layouts, &mut module)?;
        module.finalize_definitions()?;
        let entries = |key: Key| {
            let encode = module.get_finalized_function(encoders[&key]);
            let decode = module.get_finalized_function(decoders[&key]);
            // SAFETY: these functions were made with this signature, for such contexts.
            unsafe {
                Entries {
                    encode: std::mem::transmute::<*const u8, Entry<_>>(encode),
                    decode: std::mem::transmute::<*const u8, Entry<_>>(decode),
                }
            }
        };
        let types = (0..interface.schema().types.len() as u32).map(TypeId);
        let procedures = 0..interface.plans().procedures.len();
        Ok(Self {
            types: types.map(|id| entries(Key::Type(id))).collect(),
            procedures: procedures
                .map(|at| [Key::Arguments(at), Key::Result(at)].map(entries))
                .collect(),
            module: ManuallyDrop::new(Mutex::new(module)),
        })
    }

    fn entries(&self, key: Key) -> &Entries {
        match key {
            Key::Type(id) => &self.types[id.0 as usize],
            Key::Arguments(at) => &self.procedures[at][0],
            Key::Result(at) => &self.procedures[at][1],
        }
    }

    /// Appends the value at `from`. Whether that was done; if not nothing is appended.
    ///
    /// # Safety
    /// A value of this message lies at `from`, as the layouts say that the machine was made for.
    pub unsafe fn encode(&self, key: Key, from: *mut u8, out: &mut Encoder<'_>) -> bool {
        let mut context = Encoding::new(out);
        let entry = self.entries(key).encode;
        // SAFETY: the caller's promise; the code only differs in lifetimes from what it is
        // called with, and keeps nothing.
        let done = unsafe { entry((&raw mut context).cast(), from) } != 0;
        context.finish(done);
        done
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
        let Some(mut context) = Decoding::new(input, arena, size) else {
            return false;
        };
        let entry = self.entries(key).decode;
        // SAFETY: as in `encode`.
        let done = unsafe { entry((&raw mut context).cast(), to) } != 0;
        done && context.commit(input)
    }
}

fn module() -> Result<JITModule, Unsupported> {
    let flags = settings::Flags::new(flags()?);
    let target = cranelift_native::builder().map_err(|_| Unsupported)?;
    let target = target.finish(flags)?;
    if target.pointer_bytes() != 8 {
        return Err(Unsupported);
    }
    let mut builder = JITBuilder::with_isa(target, default_libcall_names());
    let memory = ArenaMemoryProvider::new_with_size(MOST_CODE)?;
    builder.memory_provider(Box::new(memory));
    Ok(JITModule::new(builder))
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

/// Encoding or decoding.
struct Direction {
    move_body: Move,
    /// A whole linked list whose first element comes bare.
    move_list: for<'e, 'a, 'f> fn(&'e mut Emitter<'a, 'f>, TypeId, Spot),
}

impl Direction {
    fn compile(
        &self,
        interface: &Interface,
        layouts: &Layouts,
        module: &mut JITModule,
    ) -> Result<HashMap<Key, FuncId>, Unsupported> {
        let signature = signature(module);
        let mut functions = HashMap::new();
        for id in (0..interface.schema().types.len() as u32).map(TypeId) {
            let function = module.declare_anonymous_function(&signature)?;
            functions.insert(id, function);
        }
        let mut making = Making {
            direction: self,
            interface,
            layouts,
            signature,
            functions: &functions,
            module,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
        };
        making.all()
    }
}

/// The functions of a direction in the making.
struct Making<'a, 'm> {
    direction: &'m Direction,
    interface: &'a Interface,
    layouts: &'a Layouts,
    signature: ir::Signature,
    /// Those that move a value of a named type, an element of a list.
    functions: &'m HashMap<TypeId, FuncId>,
    module: &'m mut JITModule,
    context: Context,
    builder: FunctionBuilderContext,
}

impl<'a> Making<'a, '_> {
    fn all(&mut self) -> Result<HashMap<Key, FuncId>, Unsupported> {
        let (interface, schema) = (self.interface, self.interface.schema());
        let mut entries = HashMap::new();
        for (id, function) in self.functions {
            let (id, mut function) = (*id, *function);
            let layout = Layout::of_type(schema, id);
            let plan = interface.plans().of_type(id);
            self.define(function, |emitter, it| emitter.plan(plan, layout, it))?;
            if links::is_link(schema, id) {
                let move_list = self.direction.move_list;
                function = self.module.declare_anonymous_function(&self.signature)?;
                self.define(function, |emitter, it| move_list(emitter, id, it))?;
            }
            entries.insert(Key::Type(id), function);
        }
        for (position, procedure) in interface.procedures().enumerate() {
            let plans = &interface.plans().procedures[position];
            let messages = [
                (
                    Key::Arguments(position),
                    &plans.arguments,
                    procedure.arguments_layout(),
                ),
                (
                    Key::Result(position),
                    &plans.result,
                    procedure.result_layout(),
                ),
            ];
            for (key, plan, layout) in messages {
                let function = self.module.declare_anonymous_function(&self.signature)?;
                self.define(function, |emitter, it| emitter.plan(plan, layout, it))?;
                entries.insert(key, function);
            }
        }
        Ok(entries)
    }

    fn define(
        &mut self,
        function: FuncId,
        emit: impl FnOnce(&mut Emitter<'a, '_>, Spot),
    ) -> Result<(), Unsupported> {
        self.context.func.signature = self.signature.clone();
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let with = Surroundings {
            interface: self.interface,
            layouts: self.layouts,
            module: self.module,
            functions: self.functions,
            move_body: self.direction.move_body,
        };
        let (mut emitter, it) = Emitter::begin(with, builder);
        emit(&mut emitter, it);
        emitter.finish();
        self.module.define_function(function, &mut self.context)?;
        self.module.clear_context(&mut self.context);
        Ok(())
    }
}

/// `(context, value) -> done`.
fn signature(module: &JITModule) -> ir::Signature {
    let mut signature = module.make_signature();
    signature.params = vec![ir::AbiParam::new(ir::types::I64); 2];
    signature.returns = vec![ir::AbiParam::new(ir::types::I64)];
    signature
}
