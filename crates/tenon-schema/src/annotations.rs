//! What an interface says of its parts in comments of the form `/*@ ... */`, which other generators skip.

use crate::{Schema, Type, TypeId, TypeKind};

/// Annotations of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeAnnotations {
    /// `deprecated`: the reason, empty if none is given.
    pub deprecated: Option<String>,
    /// `alias`: the names that the type had before.
    pub aliases: Vec<String>,
}

/// Annotations of a component of a struct or of an arm of a union.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldAnnotations {
    /// `deprecated`: the reason, empty if none is given.
    pub deprecated: Option<String>,
    /// `sensitive`: its value is not to be shown, in logs for instance.
    pub sensitive: bool,
    /// `alias`: the names that it had before.
    pub aliases: Vec<String>,
    /// `default`: its value where a sender does not have it yet.
    pub default: Option<DefaultValue>,
}

/// The value of a field that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultValue {
    /// Of a number, a boolean or an enum. It fits the type.
    Number(i128),
    /// Of a string. It is not longer than the type allows.
    Text(String),
}

/// Annotations of a member of an enum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberAnnotations {
    /// `deprecated`: the reason, empty if none is given.
    pub deprecated: Option<String>,
    /// `alias`: the names that it had before.
    pub aliases: Vec<String>,
    /// `default`: it stands for values that the reader does not know. One member of an enum at most.
    pub is_default: bool,
}

/// Annotations of a version of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionAnnotations {
    /// `deprecated`: the reason, empty if none is given.
    pub deprecated: Option<String>,
}

/// Annotations of a procedure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcedureAnnotations {
    /// `idempotent`: a call that is carried out twice does what one does.
    pub idempotent: bool,
    /// `raises`: the types of its errors, each once. The position is the number of the error.
    pub raises: Vec<TypeId>,
    /// `stream`: what there are any number of.
    pub streams: Streams,
    /// `deprecated`: the reason, empty if none is given.
    pub deprecated: Option<String>,
}

/// Directions in which a procedure has a stream instead of one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streams {
    /// `stream arguments`: of its last argument.
    pub arguments: bool,
    /// `stream result`: of its result.
    pub result: bool,
}

impl DefaultValue {
    /// Returns why values of `ty` cannot have this default; `None` if they can.
    pub fn unfit(&self, schema: &Schema, ty: &Type) -> Option<String> {
        let range = match (schema.resolve(ty), self) {
            (Type::String(max), Self::Text(text)) => {
                return (text.len() > *max as usize)
                    .then(|| format!("the default is longer than {max} bytes"));
            }
            (Type::Named(id), Self::Number(number)) => {
                return match &schema.type_def(*id).kind {
                    TypeKind::Enum(members) => {
                        let is_member = members.iter().any(|it| i128::from(it.value) == *number);
                        let message = || format!("no member of this enum is {number}");
                        (!is_member).then(message)
                    }
                    _ => Some("only numbers, booleans, enums and strings have defaults".to_owned()),
                };
            }
            (Type::Bool, Self::Number(_)) => 0..=1,
            (Type::Int | Type::Float | Type::Double, Self::Number(_)) => {
                i128::from(i32::MIN)..=i128::from(i32::MAX)
            }
            (Type::Uint, Self::Number(_)) => 0..=i128::from(u32::MAX),
            (Type::Hyper, Self::Number(_)) => i128::from(i64::MIN)..=i128::from(i64::MAX),
            (Type::Uhyper, Self::Number(_)) => 0..=i128::from(u64::MAX),
            (Type::Short, Self::Number(_)) => i128::from(i16::MIN)..=i128::from(i16::MAX),
            (Type::Ushort, Self::Number(_)) => 0..=i128::from(u16::MAX),
            (Type::Char, Self::Number(_)) => i128::from(i8::MIN)..=i128::from(i8::MAX),
            (Type::Uchar, Self::Number(_)) => 0..=i128::from(u8::MAX),
            (Type::String(_), _) => return Some("the default of a string is a string".to_owned()),
            (_, Self::Text(_)) => {
                return Some("only a string has a default that is a string".to_owned());
            }
            _ => return Some("only numbers, booleans, enums and strings have defaults".to_owned()),
        };
        let Self::Number(number) = self else {
            return None;
        };
        let (least, most) = (range.start(), range.end());
        (!range.contains(number)).then(|| format!("the default is {number}, not {least} to {most}"))
    }
}

impl TypeAnnotations {
    /// Returns them as they are written in an interface file, one by one.
    pub fn statements(&self) -> Vec<String> {
        let all = [deprecated(&self.deprecated), alias(&self.aliases)];
        all.into_iter().flatten().collect()
    }
}

impl FieldAnnotations {
    /// Returns them as they are written in an interface file, one by one.
    pub fn statements(&self) -> Vec<String> {
        let default = self.default.as_ref().map(|default| match default {
            DefaultValue::Number(number) => format!("default {number}"),
            DefaultValue::Text(text) => format!("default \"{text}\""),
        });
        let all = [
            deprecated(&self.deprecated),
            self.sensitive.then(|| "sensitive".to_owned()),
            alias(&self.aliases),
            default,
        ];
        all.into_iter().flatten().collect()
    }
}

impl MemberAnnotations {
    /// Returns them as they are written in an interface file, one by one.
    pub fn statements(&self) -> Vec<String> {
        let all = [
            deprecated(&self.deprecated),
            alias(&self.aliases),
            self.is_default.then(|| "default".to_owned()),
        ];
        all.into_iter().flatten().collect()
    }
}

impl VersionAnnotations {
    /// Returns them as they are written in an interface file, one by one.
    pub fn statements(&self) -> Vec<String> {
        deprecated(&self.deprecated).into_iter().collect()
    }
}

impl ProcedureAnnotations {
    /// Returns them as they are written in an interface file, one by one.
    ///
    /// # Panics
    /// If an error is no type of `schema`.
    pub fn statements(&self, schema: &Schema) -> Vec<String> {
        let raised = self.raises.iter().map(|id| &*schema.type_def(*id).name);
        let raised: Vec<&str> = raised.collect();
        let all = [
            self.idempotent.then(|| "idempotent".to_owned()),
            (!raised.is_empty()).then(|| format!("raises {}", raised.join(", "))),
            self.streams.statement(),
            deprecated(&self.deprecated),
        ];
        all.into_iter().flatten().collect()
    }
}

impl Streams {
    fn statement(self) -> Option<String> {
        let directions = [(self.arguments, "arguments"), (self.result, "result")];
        let directions = directions.into_iter().filter(|(is_stream, _)| *is_stream);
        let directions: Vec<&str> = directions.map(|(_, name)| name).collect();
        (!directions.is_empty()).then(|| format!("stream {}", directions.join(", ")))
    }
}

fn deprecated(reason: &Option<String>) -> Option<String> {
    let reason = reason.as_ref()?;
    Some(match reason.is_empty() {
        true => "deprecated".to_owned(),
        false => format!("deprecated \"{reason}\""),
    })
}

fn alias(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("alias {}", names.join(", ")))
}
