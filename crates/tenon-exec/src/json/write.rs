//! Values to JSON.

use bstr::ByteSlice;
use serde_json::{Map, Value as Json};
use tenon_plan::links::{linked_list, memory_fields};
use tenon_schema::{EnumMember, Field, Schema, Type, TypeId, TypeKind, Union};

use super::bytes::{escaped, hex};
use super::number::write_float;
use super::{JsonError, arm_key, may_be_null};
use crate::{self as exec, Value};

/// Writes a value of type `ty`.
///
/// # Errors
/// The value is not one of this type.
pub fn write(schema: &Schema, ty: &Type, value: &Value) -> Result<Json, JsonError> {
    JsonWriter { schema }
        .item(ty, value)
        .map_err(JsonError::at_root)
}

/// Writes the arguments of a procedure: `null` for none, the value for one, and for several an
/// object by name.
///
/// # Errors
/// The value is not one of these types.
pub fn write_arguments(
    schema: &Schema,
    parameters: &[Field],
    arguments: &Value,
) -> Result<Json, JsonError> {
    let writer = JsonWriter { schema };
    let written = match (parameters, arguments) {
        ([], Value::Struct(values)) if values.is_empty() => Ok(Json::Null),
        ([one], Value::Struct(values)) if values.len() == 1 => writer.item(&one.ty, &values[0]),
        (several, arguments) => writer.fields(several, arguments),
    };
    written.map_err(JsonError::at_root)
}

struct JsonWriter<'a> {
    schema: &'a Schema,
}

impl JsonWriter<'_> {
    fn item(&self, ty: &Type, value: &Value) -> Result<Json, JsonError> {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.array(value, |item| self.structure(list.element, item));
        }
        match (self.schema.resolve(ty), value) {
            (Type::Array(element, _), value) => self.array(value, |item| self.item(element, item)),
            (Type::Optional(_), Value::Optional(None)) => Ok(Json::Null),
            (Type::Optional(to), Value::Optional(Some(held))) => {
                let held = self.item(to, held)?;
                Ok(match may_be_null(self.schema, to) {
                    true => Json::Array(vec![held]),
                    false => held,
                })
            }
            (Type::Named(id), value) => self.named(*id, value),
            (ty, value) => scalar(ty, value).ok_or_else(shape),
        }
    }

    fn named(&self, id: TypeId, value: &Value) -> Result<Json, JsonError> {
        match (&self.schema.type_def(id).kind, value) {
            (TypeKind::Enum(members), Value::Enum(value)) => Ok(member_name(members, *value)),
            (TypeKind::Struct(_), value) => self.structure(id, value),
            (TypeKind::Union(union), Value::Union(value)) => self.union(union, value),
            _ => Err(shape()),
        }
    }

    fn array(
        &self,
        value: &Value,
        write: impl Fn(&Value) -> Result<Json, JsonError>,
    ) -> Result<Json, JsonError> {
        let Value::Array(items) = value else {
            return Err(shape());
        };
        let written = items
            .iter()
            .enumerate()
            .map(|(position, item)| write(item).map_err(|error| error.in_element(position)));
        written.collect::<Result<_, _>>().map(Json::Array)
    }

    fn structure(&self, id: TypeId, value: &Value) -> Result<Json, JsonError> {
        self.fields(memory_fields(self.schema, id).unwrap_or_default(), value)
    }

    fn fields(&self, fields: &[Field], value: &Value) -> Result<Json, JsonError> {
        let Value::Struct(values) = value else {
            return Err(shape());
        };
        if values.len() != fields.len() {
            return Err(shape());
        }
        let written = fields.iter().zip(values).map(|(field, value)| {
            let value = self.field(field, value)?;
            Ok((field.name.clone(), value))
        });
        written.collect::<Result<_, _>>().map(Json::Object)
    }

    fn field(&self, field: &Field, value: &Value) -> Result<Json, JsonError> {
        let written = self.item(&field.ty, value);
        written.map_err(|error| error.in_field(&field.name))
    }

    fn union(&self, union: &Union, value: &exec::Union) -> Result<Json, JsonError> {
        let mut written = Map::new();
        let discriminant = self.discriminant(union, value.discriminant);
        written.insert(union.discriminant.clone(), discriminant);
        let field = union.selected(value.discriminant).ok_or_else(shape)?;
        if let Some(field) = field {
            let held = self.field(field, &value.value)?;
            written.insert(arm_key(union, &field.name), held);
        }
        Ok(Json::Object(written))
    }

    fn discriminant(&self, union: &Union, value: i32) -> Json {
        match self.schema.resolve(&union.discriminant_type) {
            Type::Bool => Json::Bool(value != 0),
            Type::Uint => Json::from(value as u32),
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Enum(members) => member_name(members, value),
                _ => Json::from(value),
            },
            _ => Json::from(value),
        }
    }
}

fn scalar(ty: &Type, value: &Value) -> Option<Json> {
    Some(match (ty, value) {
        (Type::Int, Value::Int(value)) => Json::from(*value),
        (Type::Uint, Value::Uint(value)) => Json::from(*value),
        (Type::Hyper, Value::Hyper(value)) => Json::from(*value),
        (Type::Uhyper, Value::Uhyper(value)) => Json::from(*value),
        (Type::Short, Value::Short(value)) => Json::from(*value),
        (Type::Ushort, Value::Ushort(value)) => Json::from(*value),
        (Type::Char, Value::Char(value)) => Json::from(*value),
        (Type::Uchar, Value::Uchar(value)) => Json::from(*value),
        (Type::Float, Value::Float(value)) => write_float(*value),
        (Type::Double, Value::Double(value)) => write_float(*value),
        (Type::Quadruple, Value::Quadruple(bytes)) => Json::from(hex(bytes)),
        (Type::Bool, Value::Bool(value)) => Json::from(*value),
        (Type::Opaque(_), Value::Opaque(bytes)) => Json::from(hex(bytes)),
        (Type::String(_), Value::String(text)) => match text.to_str() {
            Ok(text) => Json::from(text),
            Err(_) => escaped(text),
        },
        _ => return None,
    })
}

/// The first name of the value; the number if it has none.
fn member_name(members: &[EnumMember], value: i32) -> Json {
    match members.iter().find(|member| member.value == value) {
        Some(member) => Json::from(member.name.as_str()),
        None => Json::from(value),
    }
}

fn shape() -> JsonError {
    JsonError::new("the value does not have the interface's shape".to_owned())
}
