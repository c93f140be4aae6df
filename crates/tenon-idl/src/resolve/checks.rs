//! Limits on the size and the nesting of types by value.
//!
//! Traverses with an explicit stack: a chain of types is as long as the file makes it.

use std::collections::{HashMap, HashSet};

use tenon_schema::{Length, Type, TypeId, TypeKind};

use crate::diagnostics::Diagnostic;

use super::SchemaResolver;

/// The size and depth of a type that has been visited.
#[derive(Clone, Copy, Default)]
struct TypeExtent {
    /// Bytes on the wire of the part that is always present.
    bytes: u64,
    /// Nesting depth of types by value.
    depth: usize,
}

/// Reports every type that is nested too deeply or is too big, and typedefs that lead to themselves.
pub(super) fn check_sizes(resolver: &mut SchemaResolver<'_>) {
    let mut checker = SizeChecker {
        resolver,
        extents: HashMap::new(),
        open: HashSet::new(),
    };
    for index in 0..checker.resolver.schema.types.len() {
        checker.from(TypeId(index as u32));
    }
    check_typedefs(resolver);
}

struct SizeChecker<'w, 'r> {
    resolver: &'w mut SchemaResolver<'r>,
    extents: HashMap<TypeId, TypeExtent>,
    /// The types that contain the current one.
    open: HashSet<TypeId>,
}

/// A type on the stack, and the next of its parts.
struct TraversalFrame {
    id: TypeId,
    parts: Vec<TypeId>,
    next: usize,
}

impl SizeChecker<'_, '_> {
    fn from(&mut self, root: TypeId) {
        let mut stack = Vec::new();
        self.enter(root, &mut stack);
        while let Some(step) = stack.last_mut() {
            let part = step.parts.get(step.next).copied();
            step.next += 1;
            match part {
                Some(part) => self.enter(part, &mut stack),
                None => self.leave(&mut stack),
            }
        }
    }

    fn enter(&mut self, id: TypeId, stack: &mut Vec<TraversalFrame>) {
        if self.extents.contains_key(&id) {
            return;
        }
        // A value that contains another of its type ends in an arm of a union, or has been reported.
        if !self.open.insert(id) {
            return;
        }
        let mut parts = Vec::new();
        by_value(&self.resolver.schema.type_def(id).kind, &mut |part| {
            parts.push(part)
        });
        stack.push(TraversalFrame { id, parts, next: 0 });
    }

    fn leave(&mut self, stack: &mut Vec<TraversalFrame>) {
        let Some(step) = stack.pop() else { return };
        self.open.remove(&step.id);
        let extent = self.extent(step.id);
        self.extents.insert(step.id, extent);
        self.check_extent(step.id, extent);
    }

    fn check_extent(&mut self, id: TypeId, extent: TypeExtent) {
        let limits = &self.resolver.options.limits;
        let too_deep = extent.depth > limits.type_depth_max;
        let too_big = extent.bytes > limits.fixed_bytes_max;
        if !too_deep && !too_big {
            return;
        }
        // The types that contain it need not be reported, too.
        self.extents.insert(id, TypeExtent::default());
        let name = &self.resolver.schema.type_def(id).name;
        let (message, hint) = match too_deep {
            true => (
                format!(
                    "`{name}` nests types by value more than {} deep",
                    limits.type_depth_max
                ),
                "put a pointer (`*`) between them",
            ),
            false => (
                format!(
                    "`{name}` takes {} bytes at least, more than {}",
                    extent.bytes, limits.fixed_bytes_max
                ),
                "use a counted array (`<>`) instead of a fixed one",
            ),
        };
        let error = Diagnostic::error(self.resolver.spans[id.0 as usize], message);
        self.resolver.diagnostics.push(error.hint(hint));
    }

    fn extent(&self, id: TypeId) -> TypeExtent {
        match &self.resolver.schema.type_def(id).kind {
            TypeKind::Enum(_) => TypeExtent { bytes: 4, depth: 1 },
            TypeKind::External => TypeExtent { bytes: 0, depth: 1 },
            TypeKind::Typedef(ty) => deeper(self.of(ty)),
            TypeKind::Struct(fields) => {
                let parts = fields.iter().map(|field| self.of(&field.ty));
                deeper(parts.fold(TypeExtent::default(), both))
            }
            TypeKind::Union(union) => {
                let widest = union
                    .fields()
                    .map(|field| self.of(&field.ty))
                    .fold(TypeExtent::default(), either);
                deeper(both(self.of(&union.discriminant_type), widest))
            }
        }
    }

    fn of(&self, ty: &Type) -> TypeExtent {
        match ty {
            Type::Named(id) => self.extents.get(id).copied().unwrap_or_default(),
            Type::Array(element, Length::Fixed(count)) => {
                let element = self.of(element);
                let bytes = element.bytes.saturating_mul(u64::from(*count));
                TypeExtent { bytes, ..element }
            }
            Type::Opaque(Length::Fixed(bytes)) => TypeExtent {
                bytes: u64::from(*bytes).next_multiple_of(4),
                depth: 0,
            },
            Type::Hyper | Type::Uhyper | Type::Double => TypeExtent { bytes: 8, depth: 0 },
            Type::Quadruple => TypeExtent {
                bytes: 16,
                depth: 0,
            },
            _ => TypeExtent { bytes: 4, depth: 0 },
        }
    }
}

fn deeper(extent: TypeExtent) -> TypeExtent {
    TypeExtent {
        depth: extent.depth + 1,
        ..extent
    }
}

fn both(one: TypeExtent, other: TypeExtent) -> TypeExtent {
    TypeExtent {
        bytes: one.bytes.saturating_add(other.bytes),
        depth: one.depth.max(other.depth),
    }
}

fn either(one: TypeExtent, other: TypeExtent) -> TypeExtent {
    TypeExtent {
        bytes: one.bytes.max(other.bytes),
        depth: one.depth.max(other.depth),
    }
}

/// Visits the named types that a type contains by value.
fn by_value(kind: &TypeKind, found: &mut dyn FnMut(TypeId)) {
    match kind {
        TypeKind::Enum(_) | TypeKind::External => {}
        TypeKind::Typedef(ty) => part_by_value(ty, found),
        TypeKind::Struct(fields) => fields
            .iter()
            .for_each(|field| part_by_value(&field.ty, found)),
        TypeKind::Union(union) => {
            part_by_value(&union.discriminant_type, found);
            let fields = union.fields();
            fields.for_each(|field| part_by_value(&field.ty, found));
        }
    }
}

fn part_by_value(ty: &Type, found: &mut dyn FnMut(TypeId)) {
    match ty {
        Type::Named(id) => found(*id),
        Type::Array(element, Length::Fixed(_)) => part_by_value(element, found),
        _ => {}
    }
}

/// Reports typedefs that lead to themselves by way of pointers and counted arrays alone. Their values are
/// finite on the wire, but no language can express them without a struct in between.
fn check_typedefs(resolver: &mut SchemaResolver<'_>) {
    let count = resolver.schema.types.len();
    let mut done = vec![false; count];
    for start in 0..count {
        let mut path: HashSet<usize> = HashSet::new();
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| !done[*index]) {
            if !path.insert(index) {
                report_typedef(resolver, index);
                break;
            }
            at = typedef_target(&resolver.schema.types[index].kind);
        }
        path.into_iter().for_each(|index| done[index] = true);
    }
}

/// Returns the type behind a typedef, inside arrays and optional data.
fn typedef_target(kind: &TypeKind) -> Option<usize> {
    let TypeKind::Typedef(ty) = kind else {
        return None;
    };
    ty.innermost_name().map(|id| id.0 as usize)
}

fn report_typedef(resolver: &mut SchemaResolver<'_>, index: usize) {
    let name = &resolver.schema.types[index].name;
    let message = format!("the typedef `{name}` leads back to itself");
    let error = Diagnostic::error(resolver.spans[index], message);
    resolver
        .diagnostics
        .push(error.hint("make it a struct with the pointer or array as its field"));
}
