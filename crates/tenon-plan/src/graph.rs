//! The graph of the types that contain each other: the order in which types can be understood, and which of them
//! contain themselves.

use tenon_schema::{Length, Schema, Type, TypeId, TypeKind};

use crate::links::{linked_list, memory_types};

/// The strongly connected components of the types, contained types before the containing.
#[derive(Debug)]
pub(crate) struct StronglyConnectedComponents {
    /// Each component's members, those that were reached last first.
    pub order: Vec<Vec<TypeId>>,
    cyclic: Vec<bool>,
}

impl StronglyConnectedComponents {
    /// Returns whether a value of this type can contain another of the same type.
    pub fn is_cyclic(&self, id: TypeId) -> bool {
        self.cyclic[id.0 as usize]
    }
}

/// Returns whether the plan of this type is recursive. A typedef's is not: it is never called.
pub(crate) fn is_recursive(
    schema: &Schema,
    components: &StronglyConnectedComponents,
    id: TypeId,
) -> bool {
    !matches!(schema.type_def(id).kind, TypeKind::Typedef(_)) && components.is_cyclic(id)
}

/// The named types that a value of this one holds directly. The link of a list is not one.
pub(crate) fn contained(schema: &Schema, id: TypeId) -> Vec<TypeId> {
    let types = memory_types(schema, id).into_iter();
    types.filter_map(Type::innermost_name).collect()
}

/// Those of [`contained`] that no sequence of any length lies between.
pub(crate) fn held(schema: &Schema, id: TypeId) -> Vec<TypeId> {
    let uses = memory_types(schema, id).into_iter();
    uses.filter_map(|ty| held_by(schema, ty)).collect()
}

fn held_by(schema: &Schema, ty: &Type) -> Option<TypeId> {
    match ty {
        _ if linked_list(schema, ty).is_some() => None,
        Type::Named(id) => Some(*id),
        Type::Array(to, Length::Fixed(_)) | Type::Optional(to) => held_by(schema, to),
        _ => None,
    }
}

/// The components by what values contain.
pub(crate) fn components(schema: &Schema) -> StronglyConnectedComponents {
    components_by(schema, contained)
}

/// Tarjan's algorithm, with its stack on the heap: an interface may nest as it likes. `to` are the
/// types that one leads to.
pub(crate) fn components_by(
    schema: &Schema,
    to: impl Fn(&Schema, TypeId) -> Vec<TypeId>,
) -> StronglyConnectedComponents {
    let count = schema.types.len();
    let mut search = TarjanSearch {
        edges: (0..count as u32).map(|id| to(schema, TypeId(id))).collect(),
        opened: 0,
        index: vec![None; count],
        low: vec![0; count],
        on_stack: vec![false; count],
        stack: Vec::new(),
        found: StronglyConnectedComponents {
            order: Vec::new(),
            cyclic: vec![false; count],
        },
    };
    for id in 0..count {
        if search.index[id].is_none() {
            search.from(id);
        }
    }
    search.found
}

struct TarjanSearch {
    edges: Vec<Vec<TypeId>>,
    opened: usize,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    found: StronglyConnectedComponents,
}

impl TarjanSearch {
    fn from(&mut self, root: usize) {
        let mut path = vec![(root, 0)];
        self.open(root);
        while let Some((at, next)) = path.last_mut() {
            let (at, edge) = (*at, *next);
            *next += 1;
            match self.edges[at].get(edge).map(|to| to.0 as usize) {
                Some(to) if self.index[to].is_none() => {
                    self.open(to);
                    path.push((to, 0));
                }
                Some(to) if self.on_stack[to] => {
                    self.low[at] = self.low[at].min(self.low[to]);
                }
                Some(_) => {}
                None => {
                    path.pop();
                    self.close(at, path.last().map(|(parent, _)| *parent));
                }
            }
        }
    }

    fn open(&mut self, id: usize) {
        let next = self.opened;
        self.opened += 1;
        self.index[id] = Some(next);
        self.low[id] = next;
        self.on_stack[id] = true;
        self.stack.push(id);
    }

    fn close(&mut self, id: usize, parent: Option<usize>) {
        if let Some(parent) = parent {
            self.low[parent] = self.low[parent].min(self.low[id]);
        }
        if Some(self.low[id]) != self.index[id] {
            return;
        }
        let start = self.stack.iter().rposition(|open| *open == id).unwrap_or(0);
        let mut members = self.stack.split_off(start);
        members.reverse();
        let cyclic = members.len() > 1 || self.edges[id].contains(&TypeId(id as u32));
        for member in &members {
            self.on_stack[*member] = false;
            self.found.cyclic[*member] = cyclic;
        }
        let members = members.into_iter().map(|id| TypeId(id as u32));
        self.found.order.push(members.collect());
    }
}
