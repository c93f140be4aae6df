//! Refuses types with values that would take too much of a stack. A value is put together on the stack
//! of the thread that reads it, field by field, and so is each value that it holds in place; of a type
//! that contains itself the peer chooses how many there are.

use std::collections::HashMap;
use std::fmt;

use tenon_schema::{Schema, TypeId};

use super::shape::{TypeShape, TypeShapes};

/// Most bytes of values that are put together at a time. Threads have two mebibytes; a build that is
/// not optimised keeps a dozen copies of each value.
const STACK_MAX: u64 = 128 << 10;

/// Most levels of nested values, by the default limits of a decoder.
const LEVELS: u64 = 128;

/// The error that no stubs are made: no thread could read such a value on an ordinary stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Of a type that contains itself: its name, and the bytes of a value.
    TooDeep(String, u64),
    /// Of any other type, or of the arguments of a procedure: its name, and the bytes of a value and of
    /// those inside it that it is put together from.
    TooLarge(String, u64),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep(name, bytes) => write!(
                f,
                "{name}: a value takes {bytes} bytes of a stack, and {LEVELS} of them may lie in each other"
            )?,
            Self::TooLarge(name, bytes) => {
                write!(f, "{name}: to read a value takes {bytes} bytes of a stack")?;
            }
        }
        write!(
            f,
            ": more than {STACK_MAX} are too many; let some of its fields be pointers, or arrays of no fixed length"
        )
    }
}

impl std::error::Error for Refused {}

/// Refuses an interface with values that are too large for the stack of a thread.
pub(super) fn check(schema: &Schema, shapes: &TypeShapes<'_>) -> Result<(), Refused> {
    let mut needs = StackUsage {
        shapes,
        known: HashMap::new(),
    };
    for (def, id) in schema.types.iter().zip((0..).map(TypeId)) {
        let name = || def.name.clone();
        if shapes.is_recursive(id) {
            let size = shapes.size(&TypeShape::Named(id));
            let inside = needs.inside(id);
            if size.saturating_mul(LEVELS).saturating_add(inside) > STACK_MAX {
                return Err(Refused::TooDeep(name(), size));
            }
        } else if needs.of(id) > STACK_MAX {
            return Err(Refused::TooLarge(name(), needs.of(id)));
        }
    }
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    for procedure in versions.flat_map(|version| &version.procedures) {
        let arguments = procedure.arguments.iter();
        let sizes = arguments.map(|field| shapes.size(&shapes.of(&field.ty)));
        let all = sizes.fold(0, u64::saturating_add);
        if all > STACK_MAX {
            return Err(Refused::TooLarge(procedure.name.clone(), all));
        }
    }
    Ok(())
}

/// The stack that types need that do not contain themselves.
struct StackUsage<'a> {
    shapes: &'a TypeShapes<'a>,
    known: HashMap<TypeId, u64>,
}

impl StackUsage<'_> {
    /// Bytes of a value and of those inside it that are being put together at a time.
    fn of(&mut self, id: TypeId) -> u64 {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let size = self.shapes.size(&TypeShape::Named(id));
        let need = size.saturating_add(self.inside(id));
        self.known.insert(id, need);
        need
    }

    /// The same of what a value holds alone. Types that contain themselves are judged on their own.
    fn inside(&mut self, id: TypeId) -> u64 {
        let parts = self.shapes.parts(id).into_iter().flatten();
        let held: Vec<TypeId> = parts.filter_map(|shape| held(&shape)).collect();
        let flat = held.into_iter().filter(|id| !self.shapes.is_recursive(*id));
        let flat: Vec<TypeId> = flat.collect();
        flat.into_iter().map(|id| self.of(id)).max().unwrap_or(0)
    }
}

/// The named type that a shape leads to.
fn held(shape: &TypeShape) -> Option<TypeId> {
    match shape {
        TypeShape::Named(id) => Some(*id),
        TypeShape::Array(to, _) | TypeShape::Vec(to) | TypeShape::Option(to) => held(to),
        TypeShape::Boxed(to) | TypeShape::Alias(_, to) => held(to),
        TypeShape::Scalar(_) | TypeShape::Bytes(_) | TypeShape::Opaque | TypeShape::Text => None,
    }
}
