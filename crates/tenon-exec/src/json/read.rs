//! JSON to values.

use std::collections::HashSet;

use bstr::BString;
use serde_json::{Map, Value as Json};
use tenon_plan::links::{LinkedList, linked_list, memory_fields};
use tenon_schema::{EnumMember, Field, Length, Schema, Type, TypeId, TypeKind, Union};

use super::bytes::{self, StringEncoding};
use super::number::{read_float, read_integer};
use super::{JsonError, arm_key, may_be_null};
use crate::Value;

/// Reads a value of type `ty`.
///
/// # Errors
/// The JSON is not a value of this type; the path says which part and the problem says what was
/// expected.
pub fn read(schema: &Schema, ty: &Type, json: &Json) -> Result<Value, JsonError> {
    JsonReader { schema }
        .item(ty, json)
        .map_err(JsonError::at_root)
}

/// Reads the arguments of a procedure: nothing (or `null`) for none, the value or an object by name for one, and
/// for several an object by name or an array by position.
///
/// `{"NAME": VALUE}` gives the only argument by its name unless it is already a way to write the value itself: as
/// a struct that has one field, of that name, for instance.
///
/// # Errors
/// As [`read`].
pub fn read_arguments(
    schema: &Schema,
    parameters: &[Field],
    json: Option<&Json>,
) -> Result<Value, JsonError> {
    let reader = JsonReader { schema };
    reader
        .arguments(parameters, json.unwrap_or(&Json::Null))
        .map_err(JsonError::at_root)
}

struct JsonReader<'a> {
    schema: &'a Schema,
}

impl<'a> JsonReader<'a> {
    fn arguments(&self, parameters: &[Field], json: &Json) -> Result<Value, JsonError> {
        let values = match (parameters, json) {
            ([], Json::Null) => Vec::new(),
            ([], json) => return Err(JsonError::expected("no arguments", json)),
            ([one], Json::Object(members)) if self.is_by_name(one, members) => {
                self.by_name(parameters, members)?
            }
            ([one], json) => vec![self.item(&one.ty, json)?],
            (several, Json::Array(items)) if items.len() == several.len() => {
                self.by_position(several, items)?
            }
            (several, Json::Object(members)) => self.by_name(several, members)?,
            (several, json) => {
                let names: Vec<_> = several.iter().map(|field| field.name.as_str()).collect();
                let count = several.len();
                let expected = format!(
                    "{count} arguments, an array of {count} or an object with `{}`",
                    names.join("`, `")
                );
                return Err(JsonError::expected(&expected, json));
            }
        };
        Ok(Value::Struct(values))
    }

    /// Returns whether `members` give the only parameter by its name, and are not the value itself.
    fn is_by_name(&self, parameter: &Field, members: &Map<String, Json>) -> bool {
        members.len() == 1
            && members.contains_key(&parameter.name)
            && !self.is_written_with(&parameter.ty, &parameter.name)
    }

    /// Returns whether an object with a single member called `key` may be a value of type `ty`.
    fn is_written_with(&self, ty: &Type, key: &str) -> bool {
        if linked_list(self.schema, ty).is_some() {
            return false;
        }
        match self.schema.resolve(ty) {
            Type::Opaque(_) | Type::String(_) | Type::Quadruple => bytes::FORMS.contains(&key),
            // A value that may be null at two levels is written as an array.
            Type::Optional(to) => !may_be_null(self.schema, to) && self.is_written_with(to, key),
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Struct(_) => {
                    let fields = memory_fields(self.schema, *id).unwrap_or_default();
                    let mut others = fields.iter().filter(|field| field.name != key);
                    let has_key = fields.iter().any(|field| field.name == key);
                    has_key && others.all(|field| self.may_be_left_out(field))
                }
                TypeKind::Union(union) => union.discriminant == key,
                TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => false,
            },
            _ => false,
        }
    }

    fn may_be_left_out(&self, field: &Field) -> bool {
        matches!(self.schema.resolve(&field.ty), Type::Optional(_))
    }

    fn item(&self, ty: &Type, json: &Json) -> Result<Value, JsonError> {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.list(list, json).map(Value::Array);
        }
        match self.schema.resolve(ty) {
            Type::Int => read_integer(json, "an int (-2^31 to 2^31 - 1)").map(Value::Int),
            Type::Uint => read_integer(json, "an unsigned int (0 to 2^32 - 1)").map(Value::Uint),
            Type::Hyper => read_integer(json, "a hyper (-2^63 to 2^63 - 1)").map(Value::Hyper),
            Type::Uhyper => {
                read_integer(json, "an unsigned hyper (0 to 2^64 - 1)").map(Value::Uhyper)
            }
            Type::Short => read_integer(json, "a short (-32768 to 32767)").map(Value::Short),
            Type::Ushort => read_integer(json, "an unsigned short (0 to 65535)").map(Value::Ushort),
            Type::Char => read_integer(json, "a char (-128 to 127)").map(Value::Char),
            Type::Uchar => read_integer(json, "an unsigned char (0 to 255)").map(Value::Uchar),
            Type::Float => read_float(json).map(Value::Float),
            Type::Double => read_float(json).map(Value::Double),
            Type::Quadruple => quadruple(json),
            Type::Bool => boolean(json).map(Value::Bool),
            Type::Opaque(length) => opaque(*length, json),
            Type::String(bound) => string(*bound, json),
            Type::Array(element, length) => {
                let items = self.elements(json, |item| self.item(element, item))?;
                check_length(items.len(), *length, "elements")?;
                Ok(Value::Array(items))
            }
            Type::Optional(to) => self.optional(to, json),
            Type::Named(id) => self.named(*id, json),
        }
    }

    fn named(&self, id: TypeId, json: &Json) -> Result<Value, JsonError> {
        let def = self.schema.type_def(id);
        match &def.kind {
            TypeKind::Enum(members) => member(members, json).map(Value::Enum),
            TypeKind::Struct(_) => self.structure(id, json),
            TypeKind::Union(union) => self.union(union, json),
            TypeKind::Typedef(_) | TypeKind::External => Err(JsonError::new(format!(
                "`{}` is declared outside the interface, so that its values are unknown",
                def.name
            ))),
        }
    }

    fn optional(&self, to: &Type, json: &Json) -> Result<Value, JsonError> {
        let held = match (may_be_null(self.schema, to), json) {
            (_, Json::Null) => return Ok(Value::Optional(None)),
            (false, held) => held,
            (true, Json::Array(items)) if items.len() == 1 => &items[0],
            (true, json) => return Err(JsonError::expected("null or an array of one", json)),
        };
        self.item(to, held).map(Value::some)
    }

    fn list(&self, list: LinkedList, json: &Json) -> Result<Vec<Value>, JsonError> {
        if !list.first_bare && json.is_null() {
            return Ok(Vec::new());
        }
        let items = self.elements(json, |item| self.structure(list.element, item))?;
        match list.first_bare && items.is_empty() {
            true => Err(JsonError::expected("at least one element", json)),
            false => Ok(items),
        }
    }

    fn elements(
        &self,
        json: &Json,
        read: impl Fn(&Json) -> Result<Value, JsonError>,
    ) -> Result<Vec<Value>, JsonError> {
        let Json::Array(items) = json else {
            return Err(JsonError::expected("an array", json));
        };
        let read = items
            .iter()
            .enumerate()
            .map(|(position, item)| read(item).map_err(|error| error.in_element(position)));
        read.collect()
    }

    fn structure(&self, id: TypeId, json: &Json) -> Result<Value, JsonError> {
        let fields = memory_fields(self.schema, id).unwrap_or_default();
        let Json::Object(members) = json else {
            let expected = format!("an object ({})", self.schema.type_def(id).name);
            return Err(JsonError::expected(&expected, json));
        };
        self.by_name(fields, members).map(Value::Struct)
    }

    fn by_position(&self, fields: &[Field], items: &[Json]) -> Result<Vec<Value>, JsonError> {
        let read = fields
            .iter()
            .zip(items)
            .enumerate()
            .map(|(position, (field, item))| {
                let value = self.item(&field.ty, item);
                value.map_err(|error| error.in_element(position))
            });
        read.collect()
    }

    fn by_name(
        &self,
        fields: &[Field],
        members: &Map<String, Json>,
    ) -> Result<Vec<Value>, JsonError> {
        let known = fields.iter().filter(|it| members.contains_key(&it.name));
        if known.count() < members.len() {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            only(members, &names)?;
        }
        fields
            .iter()
            .map(|field| self.field(field, &field.name, members))
            .collect()
    }

    fn field(
        &self,
        field: &Field,
        key: &str,
        members: &Map<String, Json>,
    ) -> Result<Value, JsonError> {
        let value = match members.get(key) {
            Some(json) => self.item(&field.ty, json),
            None if self.may_be_left_out(field) => self.item(&field.ty, &Json::Null),
            None => Err(missing()),
        };
        value.map_err(|error| error.in_field(key))
    }

    fn union(&self, union: &Union, json: &Json) -> Result<Value, JsonError> {
        let Json::Object(members) = json else {
            let expected = format!("an object with `{}` and its arm", union.discriminant);
            return Err(JsonError::expected(&expected, json));
        };
        let discriminant = self.discriminant(union, members)?;
        let key = |field: &Field| arm_key(union, &field.name);
        let Some(field) = union.selected(discriminant) else {
            let problem = format!("{} selects no arm", members[&union.discriminant]);
            return Err(JsonError::new(problem).in_field(&union.discriminant));
        };
        let arm = field.map(key);
        let names = [Some(union.discriminant.as_str()), arm.as_deref()];
        only(members, &names.into_iter().flatten().collect::<Vec<_>>())?;
        let held = match (field, &arm) {
            (Some(field), Some(key)) => self.field(field, key, members)?,
            _ => Value::Void,
        };
        Ok(Value::union(discriminant, held))
    }

    fn discriminant(&self, union: &Union, members: &Map<String, Json>) -> Result<i32, JsonError> {
        let Some(json) = members.get(&union.discriminant) else {
            return Err(missing().in_field(&union.discriminant));
        };
        let value = match self.item(&union.discriminant_type, json) {
            Ok(Value::Int(value) | Value::Enum(value)) => Ok(value),
            Ok(Value::Uint(value)) => Ok(value as i32),
            Ok(Value::Short(value)) => Ok(value.into()),
            Ok(Value::Ushort(value)) => Ok(value.into()),
            Ok(Value::Char(value)) => Ok(value.into()),
            Ok(Value::Uchar(value)) => Ok(value.into()),
            Ok(Value::Bool(value)) => Ok(value.into()),
            Ok(_) => Err(JsonError::expected("a discriminant", json)),
            Err(error) => Err(error),
        };
        value.map_err(|error| error.in_field(&union.discriminant))
    }
}

fn missing() -> JsonError {
    JsonError::new("this field is missing".to_owned())
}

/// Refuses members that have other names than these.
fn only(members: &Map<String, Json>, names: &[&str]) -> Result<(), JsonError> {
    let known: HashSet<&str> = names.iter().copied().collect();
    let Some(stranger) = members.keys().find(|name| !known.contains(name.as_str())) else {
        return Ok(());
    };
    let problem = match names {
        [] => "there is no such field here, and no other".to_owned(),
        names => format!(
            "there is no such field here; there are: {}",
            listed(names.iter().copied())
        ),
    };
    Err(JsonError::new(problem).in_field(stranger))
}

fn boolean(json: &Json) -> Result<bool, JsonError> {
    json.as_bool()
        .ok_or_else(|| JsonError::expected("true or false", json))
}

fn member(members: &[EnumMember], json: &Json) -> Result<i32, JsonError> {
    let by_name = json
        .as_str()
        .and_then(|name| members.iter().find(|it| it.name == name));
    let by_value = || {
        let value: i32 = read_integer(json, "").ok()?;
        members.iter().find(|member| member.value == value)
    };
    match by_name.or_else(by_value) {
        Some(member) => Ok(member.value),
        None => Err(JsonError::expected(&one_of(members), json)),
    }
}

fn one_of(members: &[EnumMember]) -> String {
    let names = members.iter().map(|member| member.name.as_str());
    format!("one of {}", listed(names))
}

/// The first of some names.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const MOST: usize = 8;
    let more = if names.len() > MOST { ", ..." } else { "" };
    let names: Vec<_> = names.take(MOST).collect();
    format!("{}{more}", names.join(", "))
}

fn quadruple(json: &Json) -> Result<Value, JsonError> {
    let bytes = bytes::read(json, StringEncoding::Hex)?;
    let bytes = <[u8; 16]>::try_from(bytes);
    bytes
        .map(Value::Quadruple)
        .map_err(|_| JsonError::expected("16 bytes", json))
}

fn opaque(length: Length, json: &Json) -> Result<Value, JsonError> {
    let bytes = bytes::read(json, StringEncoding::Hex)?;
    check_length(bytes.len(), length, "bytes")?;
    Ok(Value::Opaque(bytes))
}

fn string(bound: u32, json: &Json) -> Result<Value, JsonError> {
    let bytes = bytes::read(json, StringEncoding::Text)?;
    check_length(bytes.len(), Length::Counted(bound), "bytes")?;
    Ok(Value::String(BString::from(bytes)))
}

fn check_length(found: usize, length: Length, what: &str) -> Result<(), JsonError> {
    let problem = match length {
        Length::Fixed(count) if found != count as usize => {
            format!("expected exactly {count} {what}, found {found}")
        }
        Length::Counted(bound) if found > bound as usize => {
            format!("expected at most {bound} {what}, found {found}")
        }
        _ => return Ok(()),
    };
    Err(JsonError::new(problem))
}
