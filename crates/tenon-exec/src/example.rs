//! Small values, which show what values of a type look like.

use bstr::BString;
use tenon_plan::links::{linked_list, memory_fields};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};

use crate::Value;

/// Most items of an example: a larger one would not be understood at a glance.
const ITEMS_MAX: usize = 64;

/// Makes a value of a struct with these fields in which everything occurs that has room: counted arrays, lists and
/// pointers hold one element, unless it would be a value of a type that it lies in itself, and unions the first arm
/// that holds something. `None` if it would be large, or has a type that the interface only names.
pub(crate) fn record(schema: &Schema, fields: &[Field]) -> Option<Value> {
    ExampleBuilder::new(schema).record(fields)
}

/// Makes a value of this type in the same way.
pub(crate) fn item(schema: &Schema, ty: &Type) -> Option<Value> {
    ExampleBuilder::new(schema).item(ty)
}

struct ExampleBuilder<'a> {
    schema: &'a Schema,
    /// Types of which values are being made.
    open: Vec<TypeId>,
    /// Items that may still be made, including those that are discarded again: this bounds the work.
    left: usize,
}

impl<'a> ExampleBuilder<'a> {
    fn new(schema: &'a Schema) -> Self {
        Self {
            schema,
            open: Vec::new(),
            left: ITEMS_MAX,
        }
    }

    fn record(&mut self, fields: &[Field]) -> Option<Value> {
        let values = fields.iter().map(|field| self.item(&field.ty));
        values.collect::<Option<_>>().map(Value::Struct)
    }

    fn item(&mut self, ty: &Type) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if let Some(list) = linked_list(self.schema, ty) {
            let first = self.named(list.element);
            return match list.first_bare && first.is_none() {
                true => None,
                false => Some(Value::Array(first.into_iter().collect())),
            };
        }
        Some(match self.schema.resolve(ty) {
            Type::Int => Value::Int(0),
            Type::Uint => Value::Uint(0),
            Type::Hyper => Value::Hyper(0),
            Type::Uhyper => Value::Uhyper(0),
            Type::Short => Value::Short(0),
            Type::Ushort => Value::Ushort(0),
            Type::Char => Value::Char(0),
            Type::Uchar => Value::Uchar(0),
            Type::Float => Value::Float(0.5),
            Type::Double => Value::Double(0.5),
            Type::Quadruple => Value::Quadruple([0; 16]),
            Type::Bool => Value::Bool(false),
            Type::Opaque(Length::Counted(bound)) => Value::Opaque(vec![0; 2.min(*bound as usize)]),
            Type::Opaque(Length::Fixed(count)) => {
                let count = *count as usize;
                if count > ITEMS_MAX {
                    return None;
                }
                Value::Opaque(vec![0; count])
            }
            Type::String(bound) => {
                let text = b"text";
                Value::String(BString::from(&text[..text.len().min(*bound as usize)]))
            }
            Type::Array(_, Length::Counted(0)) => Value::Array(Vec::new()),
            Type::Array(element, Length::Counted(_)) => {
                Value::Array(self.item(element).into_iter().collect())
            }
            Type::Array(element, Length::Fixed(count)) => {
                let items = (0..*count).map(|_| self.item(element));
                Value::Array(items.collect::<Option<_>>()?)
            }
            Type::Optional(to) => Value::Optional(self.item(to).map(Box::new)),
            Type::Named(id) => return self.named(*id),
        })
    }

    fn named(&mut self, id: TypeId) -> Option<Value> {
        if self.open.contains(&id) {
            return None;
        }
        self.open.push(id);
        let schema = self.schema;
        let value = match &schema.type_def(id).kind {
            TypeKind::Enum(members) => members.first().map(|member| Value::Enum(member.value)),
            TypeKind::Struct(_) => self.record(memory_fields(schema, id).unwrap_or_default()),
            TypeKind::Union(union) => self.union(union),
            TypeKind::Typedef(_) | TypeKind::External => None,
        };
        self.open.pop();
        value
    }

    fn union(&mut self, union: &Union) -> Option<Value> {
        let labels = union.arms.iter().flat_map(|arm| &arm.cases);
        let labels = labels.map(|case| case.value);
        let others = match self.schema.resolve(&union.discriminant_type) {
            Type::Bool => vec![1, 0],
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Enum(members) => members.iter().map(|member| member.value).collect(),
                _ => Vec::new(),
            },
            // One of them is no label.
            _ => (0..=union.arms.iter().map(|arm| arm.cases.len() as i32).sum()).collect(),
        };
        let mut empty = None;
        for discriminant in labels.chain(others) {
            match union.selected(discriminant) {
                Some(Some(field)) => {
                    if let Some(held) = self.item(&field.ty) {
                        return Some(Value::union(discriminant, held));
                    }
                }
                Some(None) => empty = empty.or(Some(discriminant)),
                None => {}
            }
        }
        empty.map(|discriminant| Value::union(discriminant, Value::Void))
    }
}
