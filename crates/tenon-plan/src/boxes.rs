//! Arms of unions in which a value contains another of its type in place, so that memory can hold it only behind a
//! pointer: `union u switch (int k) { case 0: void; case 1: w more; }; struct w { u rest; };`. On the wire there is
//! nothing of that pointer.

use std::collections::HashSet;

use tenon_schema::{Length, Schema, Type, TypeId, TypeKind};

use crate::graph;
use crate::links::{linked_list, memory_types};

/// The arms that lie behind pointers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoxedArms {
    arms: HashSet<(TypeId, usize)>,
    unions: HashSet<TypeId>,
}

impl BoxedArms {
    /// Finds those of an interface. A struct that contains itself in place with no union between has none: it has no
    /// end, and no plans.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn of(schema: &Schema) -> Self {
        let components = graph::components_by(schema, in_place);
        let mut component = vec![0; schema.types.len()];
        for (index, members) in components.order.iter().enumerate() {
            members
                .iter()
                .for_each(|id| component[id.0 as usize] = index);
        }
        let is_beside = |id: TypeId, ty: &Type| {
            let held = named_in_place(schema, ty);
            held.is_some_and(|held| component[held.0 as usize] == component[id.0 as usize])
        };
        let mut boxed = HashSet::new();
        for (def, id) in schema.types.iter().zip((0..).map(TypeId)) {
            if let TypeKind::Union(union) = &def.kind
                && components.is_cyclic(id)
            {
                let arms = union.alternatives().enumerate();
                let arms =
                    arms.filter(|(_, arm)| arm.is_some_and(|field| is_beside(id, &field.ty)));
                boxed.extend(arms.map(|(position, _)| (id, position)));
            }
        }
        let unions = boxed.iter().map(|(id, _)| *id).collect();
        Self {
            arms: boxed,
            unions,
        }
    }

    /// Returns whether the arm at `position` of the union `id` lies behind a pointer; the default arm is the last.
    pub fn contains(&self, id: TypeId, position: usize) -> bool {
        self.arms.contains(&(id, position))
    }

    /// The first union that has such an arm.
    pub fn first(&self) -> Option<TypeId> {
        self.unions.iter().min().copied()
    }

    /// Returns whether any arm of the union `id` lies behind a pointer.
    pub fn any_of(&self, id: TypeId) -> bool {
        self.unions.contains(&id)
    }
}

/// The named types that a value holds in place.
fn in_place(schema: &Schema, id: TypeId) -> Vec<TypeId> {
    let held = memory_types(schema, id).into_iter();
    held.filter_map(|ty| named_in_place(schema, ty)).collect()
}

fn named_in_place(schema: &Schema, ty: &Type) -> Option<TypeId> {
    match ty {
        _ if linked_list(schema, ty).is_some() => None,
        Type::Named(id) => Some(*id),
        Type::Array(element, Length::Fixed(_)) => named_in_place(schema, element),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_that_lead_back_in_place_are_boxed_and_no_others() {
        let text = "
            union u switch (int k) { case 0: void; case 1: w more; case 2: u *behind; case 3: u many<>;
                                     default: pair two; };
            struct w { u rest; };
            typedef u named;
            struct pair { named both[2]; };
            union flat switch (int k) { case 0: u inner; case 1: int x; };
        ";
        let parsed = tenon_idl::parse_text("test.x", text, &Default::default());
        let schema = parsed.schema.expect("an interface");
        let boxed = BoxedArms::of(&schema);
        let id = |name| schema.find_type(name).expect("a type");
        let of_u: Vec<bool> = (0..5).map(|arm| boxed.contains(id("u"), arm)).collect();
        assert_eq!(of_u, [false, true, false, false, true]);
        assert!(!boxed.contains(id("flat"), 0));
        assert!(boxed.any_of(id("u")) && !boxed.any_of(id("flat")));
    }
}
