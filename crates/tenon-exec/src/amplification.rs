//! Finds the types of which long messages are refused for the memory that they take, though they follow the
//! interface.
//!
//! A message pays for memory by its bytes ([`Limits`]), 64 for each and 64 KiB beside, which is more
//! than values of almost any type take. The exception are unions: where values lie as in C, as here
//! and in C's stubs, each has the room of its largest arm, whatever arm is sent. So an array of
//! unions with large and small arms takes more memory than its bytes pay for when it is long
//! enough and holds small arms. Rust's stubs hold large arms elsewhere, and take such a message.

use tenon_plan::links::{LinkedList, is_link, linked_list, memory_fields, memory_types};
use tenon_plan::{COUNT_BYTES, Layout, Lists, Representation, Scalar, Sizes};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};
use tenon_wire::Limits;

use crate::layout::TypeLayouts;

/// No memory is larger, and what is multiplied by a count fits into 128 bits still.
const ENDLESS: i128 = 1 << 90;

/// Most passes over all types: no type is nested deeper, so that a type that still takes more in each pass takes
/// as much as its message nests.
const ROUNDS: usize = 72;

/// Items of which a long enough message is refused, because it does not pay for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmplifyingType {
    /// The type or procedure that has them.
    pub name: String,
    /// Bytes of memory that one may take beyond what its bytes in a message pay for.
    pub bytes: u64,
}

/// Finds all such items of an interface in one representation, by the default limits. There are none in an
/// interface of which no frame can hold the values.
///
/// # Panics
/// If the schema refers to a type that it does not have, or holds types without an end, which
/// [`lower`](tenon_plan::lower) refuses.
pub fn amplifying_types(schema: &Schema, representation: Representation) -> Vec<AmplifyingType> {
    let Ok(layouts) = TypeLayouts::new(schema) else {
        return Vec::new();
    };
    let mut analysis = BudgetAnalysis {
        schema,
        layouts: &layouts,
        sizes: Sizes::new(schema, representation),
        limits: Limits::default(),
        types: vec![None; schema.types.len()],
    };
    analysis.settle();
    analysis.all()
}

struct BudgetAnalysis<'a> {
    schema: &'a Schema,
    layouts: &'a TypeLayouts,
    sizes: Sizes<'a>,
    limits: Limits,
    /// Of each named type, the most memory elsewhere that a value takes beyond what its bytes pay
    /// for; `None` as long as no value is known that ends.
    types: Vec<Option<i128>>,
}

/// Items that follow a count, a flag or each other.
struct RepeatedItems {
    /// Memory that one takes beyond what its bytes pay for, with the room that it lies in.
    debt: i128,
    /// The same of its room and of a value of the fewest bytes.
    own: i128,
    /// Most items that there may be; `None` if there is no bound.
    most: Option<u32>,
}

impl<'a> BudgetAnalysis<'a> {
    fn settle(&mut self) {
        for round in 0..2 * ROUNDS {
            let mut is_settled = true;
            for id in (0..self.types.len() as u32).map(TypeId) {
                let found = self.definition(id).map(|debt| match round < ROUNDS {
                    true => debt,
                    // It has grown in every round so far.
                    false if self.types[id.0 as usize] != Some(debt) => ENDLESS,
                    false => debt,
                });
                is_settled &= found == self.types[id.0 as usize];
                self.types[id.0 as usize] = found;
            }
            if is_settled {
                return;
            }
        }
    }

    fn definition(&self, id: TypeId) -> Option<i128> {
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => Some(self.bytes(Scalar::Enum(id))),
            TypeKind::Typedef(to) => self.of(to),
            TypeKind::Struct(_) => self.fields(memory_fields(self.schema, id).unwrap_or_default()),
            TypeKind::Union(union) => {
                let arms = union.alternatives().enumerate();
                let held = arms.filter_map(|(position, arm)| match arm {
                    Some(field) => {
                        let layout = Layout::Use(&field.ty);
                        let boxed = self.layouts.boxed_arm(self.schema, id, position, layout);
                        Some(sum(
                            self.of(&field.ty)?,
                            boxed.map_or(0, |room| room.max(1).into()),
                        ))
                    }
                    None => Some(0),
                });
                let discriminant = self.of(&union.discriminant_type)?;
                held.max().map(|held| sum(discriminant, held))
            }
            TypeKind::External => Some(0),
        }
    }

    fn fields(&self, fields: &[Field]) -> Option<i128> {
        let mut each = fields.iter().map(|field| self.of(&field.ty));
        each.try_fold(0, |all, debt| Some(sum(all, debt?)))
    }

    /// The memory that the bytes of a scalar pay for, as a negative debt.
    fn bytes(&self, scalar: Scalar) -> i128 {
        self.paid(self.sizes.representation().bytes(scalar).into())
    }

    fn paid(&self, bytes: u64) -> i128 {
        -i128::from(bytes).saturating_mul(self.limits.memory_per_byte as i128)
    }

    /// As [`types`](Self::types), of a type as it is used.
    fn of(&self, ty: &Type) -> Option<i128> {
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return Some(self.bytes(scalar));
        }
        if let Some((head, repeated)) = self.repeated(ty) {
            // None of them, if they pay for themselves.
            let all = repeated.map_or(0, |repeated| repeated.debts());
            return Some(sum(head, all));
        }
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => Some(self.paid((*bytes).into())),
            Type::Array(element, Length::Fixed(count)) => Some(times(self.of(element)?, *count)),
            Type::Named(id) => self.types[id.0 as usize],
            // Bytes, each of which pays for itself.
            _ => Some(self.paid(COUNT_BYTES.into())),
        }
    }

    /// Returns the memory that a count or flag in front of optional or repeated items pays for, and the items; `None`
    /// in place of the items if no value of them is known that ends.
    fn repeated(&self, ty: &Type) -> Option<(i128, Option<RepeatedItems>)> {
        if let Some(list) = linked_list(self.schema, ty) {
            return Some((self.paid(COUNT_BYTES.into()), self.list(list)));
        }
        match self.schema.resolve(ty) {
            Type::Array(element, Length::Counted(bound)) => {
                let most = (*bound < u32::MAX).then_some(*bound);
                let items = self.items(element, most);
                Some((self.paid(COUNT_BYTES.into()), items))
            }
            Type::Optional(to) => Some((self.bytes(Scalar::Bool), self.items(to, Some(1)))),
            _ => None,
        }
    }

    fn items(&self, ty: &Type, most: Option<u32>) -> Option<RepeatedItems> {
        let room = self.layouts.extent(self.schema, Layout::Use(ty)).size;
        Some(RepeatedItems {
            debt: sum(self.of(ty)?, room.max(1).into()),
            own: sum(self.paid(self.sizes.of(ty).min), room.into()),
            most,
        })
    }

    /// The elements of a linked list. If they are flagged, the room of the list doubles when it is full, and the
    /// smaller rooms stay paid for: the element that is one too many costs four times its own room.
    fn list(&self, list: LinkedList) -> Option<RepeatedItems> {
        let layout = Layout::of_type(self.schema, list.element);
        let room = i128::from(self.layouts.extent(self.schema, layout).size.max(1));
        let (rooms, flag) = match self.sizes.representation().lists {
            Lists::Flagged => (4, self.bytes(Scalar::Bool)),
            Lists::Counted => (1, 0),
        };
        let held = self.types[list.element.0 as usize]?;
        Some(RepeatedItems {
            debt: sum(sum(held, flag), rooms * room),
            own: sum(self.paid(self.sizes.of_named(list.element).min), room),
            most: None,
        })
    }

    /// Reports each type and procedure once, by its first items.
    fn all(&self) -> Vec<AmplifyingType> {
        let ids = (0..self.types.len() as u32).map(TypeId);
        let types = ids.map(|id| {
            let mut used = memory_types(self.schema, id);
            // A list repeats its link, which lies nowhere.
            if let TypeKind::Struct(fields) = &self.schema.type_def(id).kind
                && is_link(self.schema, id)
            {
                used.extend(fields.last().map(|field| &field.ty));
            }
            (&self.schema.type_def(id).name, used)
        });
        let versions = self.schema.programs.iter().flat_map(|it| &it.versions);
        let procedures = versions.flat_map(|version| &version.procedures);
        let procedures = procedures.map(|procedure| {
            let arguments = procedure.arguments.iter().map(|field| &field.ty);
            let uses: Vec<&Type> = arguments.chain(&procedure.result).collect();
            (&procedure.name, uses)
        });
        let each = types.chain(procedures).filter_map(|(name, uses)| {
            let bytes = uses.into_iter().find_map(|ty| self.found(ty))?;
            let name = name.clone();
            Some(AmplifyingType { name, bytes })
        });
        each.collect()
    }

    /// Returns the memory that one of the items that a use repeats takes too much, if it does and the types inside
    /// it are not the only cause.
    fn found(&self, ty: &Type) -> Option<u64> {
        // Where a name stands for a type, the name is to blame.
        if let Type::Named(id) = ty
            && matches!(self.schema.type_def(*id).kind, TypeKind::Typedef(_))
        {
            return None;
        }
        let items = self.repeated(ty).and_then(|(_, items)| items);
        if let Some(items) = items
            && items.debts() > self.limits.memory_base as i128
        {
            // Where it has no end, the item holds its like, or items that are to blame.
            let debt = match items.debt < ENDLESS / 2 {
                true => items.debt,
                false => items.own,
            };
            if debt > 0 {
                return u64::try_from(debt).ok();
            }
        }
        match ty {
            Type::Array(inner, _) | Type::Optional(inner) => self.found(inner),
            _ => None,
        }
    }
}

impl RepeatedItems {
    fn debts(&self) -> i128 {
        match (self.debt.max(0), self.most) {
            (0, _) => 0,
            (debt, Some(most)) => times(debt, most),
            (_, None) => ENDLESS,
        }
    }
}

fn sum(a: i128, b: i128) -> i128 {
    (a + b).clamp(-ENDLESS, ENDLESS)
}

fn times(debt: i128, count: u32) -> i128 {
    (debt * i128::from(count)).clamp(-ENDLESS, ENDLESS)
}
