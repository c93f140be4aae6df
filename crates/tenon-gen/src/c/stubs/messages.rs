//! What procedures take and return in C, and which message each of it is.

use tenon_plan::ProcedurePlan;
use tenon_schema::written::Spelling;
use tenon_schema::{Field, Length, Type};

use crate::c::Interface;
use crate::c::declare::{Declared, spaced};
use crate::c::procedures::Procedure;
use crate::c::spot::Spot;

/// The table of the functions of a type.
pub fn message_name(ty: &str) -> String {
    format!("{ty}_message")
}

/// A procedure, and how it moves.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub procedure: Procedure<'a>,
    /// In each representation.
    pub plans: [&'a ProcedurePlan; 2],
    /// Where it stands among those of its version that have messages or another number than 0; `None` for
    /// procedure 0, which every server answers.
    pub index: Option<usize>,
}

/// A message of a procedure.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// None: it is empty.
    Nothing,
    /// That of a type that the interface names.
    Named(&'a str),
    /// That of a word of the language, which procedures share.
    Plain(Value<'a>),
    /// One of its own.
    Own(Value<'a>),
}

/// A value that has no name of its own in the interface.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    /// What its functions are called after.
    pub name: String,
    /// Its type in C.
    pub ty: String,
    /// Where it is.
    pub spot: Spot<'a>,
}

impl<'a> Call<'a> {
    /// The message of the arguments.
    pub fn arguments(&self, of: Interface<'a>) -> Message<'a> {
        let fields = &self.procedure.definition.arguments;
        let spellings = &self.procedure.written.arguments;
        match (fields.as_slice(), spellings.as_slice()) {
            ([], _) => Message::Nothing,
            ([field], [spelling]) if !is_unnamed_array(&field.ty) => {
                let spot = Spot::sole_behind("it", field, spelling);
                of_type(of, &self.procedure.record_name(), &field.ty, spelling, spot)
            }
            _ => {
                let name = self.procedure.record_name();
                Message::Own(Value {
                    ty: name.clone(),
                    name,
                    spot: Spot::record_behind("it", fields, spellings),
                })
            }
        }
    }

    /// The message of the result. `result_name` is that of a type of its own, if it needs one.
    pub fn result(&self, of: Interface<'a>, result_name: &'a str) -> Message<'a> {
        let Some((ty, spelling)) = self.procedure.result() else {
            return Message::Nothing;
        };
        match is_unnamed_array(ty) {
            true => Message::Own(Value {
                name: result_name.to_owned(),
                ty: result_name.to_owned(),
                spot: Spot::declared_behind("it", ty, spelling, result_name),
            }),
            false => {
                let spot = Spot::declared_behind("it", ty, spelling, "value");
                of_type(of, result_name, ty, spelling, spot)
            }
        }
    }

    /// The C type of the result, if it has one.
    pub fn result_type(&self, of: Interface<'a>) -> Option<String> {
        let (ty, spelling) = self.procedure.result()?;
        Some(match is_unnamed_array(ty) {
            true => self.result_name(),
            false => value_type(of, ty, spelling),
        })
    }

    /// What the type of the result is called, if the interface has no name for it.
    pub fn result_name(&self) -> String {
        format!("{}_result", self.procedure.c_name())
    }

    /// Whether the result is of such a type.
    pub fn has_own_result(&self) -> bool {
        self.procedure
            .result()
            .is_some_and(|(ty, _)| is_unnamed_array(ty))
    }

    /// Whether a struct holds the arguments.
    pub fn has_record(&self) -> bool {
        let fields = &self.procedure.definition.arguments;
        match fields.as_slice() {
            [] => false,
            [only] => is_unnamed_array(&only.ty),
            _ => true,
        }
    }

    /// Its parameters.
    pub fn parameters(&self, of: Interface<'a>) -> Vec<Parameter> {
        let fields = self.procedure.definition.arguments.iter();
        fields
            .zip(&self.procedure.written.arguments)
            .map(|(field, spelling)| Parameter::new(of, field, spelling))
            .collect()
    }
}

/// The message of a value; `own` is the name of its functions if nothing else has them.
fn of_type<'a>(
    of: Interface<'a>,
    own: &str,
    ty: &'a Type,
    spelling: &'a Spelling,
    spot: Spot<'a>,
) -> Message<'a> {
    let c_type = value_type(of, ty, spelling);
    let value = |name: String| Value {
        name,
        ty: c_type,
        spot,
    };
    match ty {
        Type::Named(id) => Message::Named(&of.schema.type_def(*id).name),
        Type::String(u32::MAX) => Message::Plain(value("string".to_owned())),
        Type::String(bound) => Message::Plain(value(format!("string_{bound}"))),
        Type::Optional(_) => Message::Own(value(own.to_owned())),
        _ => {
            let name = value_type(of, ty, spelling);
            Message::Plain(value(name))
        }
    }
}

/// The C type of a value that is no array without a name.
pub fn value_type(of: Interface<'_>, ty: &Type, spelling: &Spelling) -> String {
    let words = of.c_type(ty, spelling);
    match ty {
        Type::Optional(_) => format!("{}*", spaced(&words)),
        _ => words,
    }
}

/// Whether it is an array that has no name as a type, and so no type that C passes.
fn is_unnamed_array(ty: &Type) -> bool {
    matches!(ty, Type::Array(..) | Type::Opaque(_))
}

/// A parameter: how it is declared, handed on and received.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name, as a field of a record.
    field: String,
    /// Its name in lists of parameters.
    name: String,
    passed: Passed,
}

/// How an argument is passed.
#[derive(Debug, Clone)]
enum Passed {
    /// By value, as this type.
    Value(String),
    /// As a pointer to this type, which is its value.
    Pointer(String),
    /// As a pointer to a value of this type.
    Behind(String),
    /// As an array that has this type.
    Vector(String),
    /// As an array of elements of this type; so many.
    Elements(String, String),
    /// As a count and a pointer to elements of this type.
    Counted(String),
}

/// What the parameters are called that every stub has.
pub const OWN_PARAMETERS: [&str; 13] = [
    "channel",
    "result",
    "error",
    "context",
    "request",
    "arguments",
    "methods",
    "server",
    "service",
    "it",
    "in",
    "out",
    "memcpy",
];

impl Parameter {
    fn new(of: Interface<'_>, field: &Field, spelling: &Spelling) -> Self {
        let words = of.c_type(&field.ty, spelling);
        let passed = match (&field.ty, of.schema.resolve(&field.ty)) {
            (Type::Array(_, Length::Counted(_)) | Type::Opaque(Length::Counted(_)), _) => {
                Passed::Counted(words)
            }
            (Type::Array(..) | Type::Opaque(_), _) => {
                let declared = Declared {
                    name: &field.name,
                    ty: &field.ty,
                    spelling,
                };
                Passed::Elements(words, declared.bound(of.dialect))
            }
            (_, Type::String(_)) => Passed::Pointer("char".to_owned()),
            (Type::Optional(_), _) => Passed::Pointer(words),
            (_, Type::Optional(_)) => Passed::Pointer(pointed_at(of, &field.ty)),
            (_, Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_))) => {
                Passed::Vector(words)
            }
            (_, Type::Array(..) | Type::Opaque(_)) => Passed::Behind(words),
            (_, Type::Named(id)) => match of.schema.type_def(*id).kind {
                tenon_schema::TypeKind::Enum(_) => Passed::Value(words),
                _ => Passed::Behind(words),
            },
            _ => Passed::Value(words),
        };
        let is_taken = OWN_PARAMETERS.contains(&field.name.as_str())
            || of.schema.find_type(&field.name).is_some();
        let name = match is_taken {
            true => format!("{}_", field.name),
            false => field.name.clone(),
        };
        let field = field.name.clone();
        Self {
            field,
            name,
            passed,
        }
    }

    /// How a client's stub declares it.
    pub fn declared(&self) -> String {
        let name = &self.name;
        match &self.passed {
            Passed::Value(ty) => format!("{}{name}", spaced(ty)),
            Passed::Pointer(to) | Passed::Behind(to) => format!("const {}*{name}", spaced(to)),
            Passed::Vector(ty) => format!("const {ty} {name}"),
            Passed::Elements(of, count) => format!("const {}{name}[{count}]", spaced(of)),
            Passed::Counted(of) => {
                format!("uint32_t {name}_len, const {}*{name}_val", spaced(of))
            }
        }
    }

    /// How a handler declares it: what it is handed it may take.
    pub fn received(&self) -> String {
        self.declared().replace("const ", "")
    }

    /// Lines that put it into the record called `tenon_arguments`.
    pub fn fill(&self) -> Vec<String> {
        let (name, field) = (&self.name, format!("tenon_arguments.{}", self.field));
        match &self.passed {
            Passed::Value(_) => vec![format!("{field} = {name};")],
            Passed::Pointer(to) => vec![format!("{field} = ({}*) {name};", spaced(to))],
            Passed::Behind(_) => vec![format!("{field} = *{name};")],
            Passed::Vector(_) | Passed::Elements(..) => {
                vec![format!("memcpy ({field}, {name}, sizeof ({field}));")]
            }
            Passed::Counted(of) => vec![
                format!("{field}.{}_len = {name}_len;", self.field),
                format!("{field}.{}_val = ({}*) {name}_val;", self.field, spaced(of)),
            ],
        }
    }

    /// What is true if it leads to nothing that could be put into a record; `None` if nothing is copied from
    /// behind a pointer.
    pub fn missing(&self) -> Option<String> {
        match self.passed {
            Passed::Behind(_) | Passed::Vector(_) | Passed::Elements(..) => {
                Some(format!("{} == NULL", self.name))
            }
            Passed::Value(_) | Passed::Pointer(_) | Passed::Counted(_) => None,
        }
    }

    /// A pointer to its value, if it is the only one.
    pub fn pointer(&self) -> String {
        match &self.passed {
            Passed::Value(_) | Passed::Pointer(_) => format!("&{}", self.name),
            Passed::Behind(_) | Passed::Vector(_) => self.name.clone(),
            Passed::Elements(..) | Passed::Counted(_) => {
                unreachable!("an array without a name is part of a record")
            }
        }
    }

    /// What a handler is handed, out of the record `it`.
    pub fn out_of_record(&self) -> String {
        let field = format!("it->{}", self.field);
        match &self.passed {
            Passed::Behind(_) => format!("&{field}"),
            Passed::Counted(_) => {
                format!("{field}.{0}_len, {field}.{0}_val", self.field)
            }
            Passed::Value(_) | Passed::Pointer(_) | Passed::Vector(_) | Passed::Elements(..) => {
                field
            }
        }
    }

    /// What a handler is handed, where `arguments` leads to the only one.
    pub fn alone(&self) -> String {
        match &self.passed {
            Passed::Value(ty) | Passed::Vector(ty) => format!("*({}*) arguments", spaced(ty)),
            Passed::Pointer(to) => format!("*({}**) arguments", spaced(to)),
            Passed::Behind(ty) => format!("({}*) arguments", spaced(ty)),
            Passed::Elements(..) | Passed::Counted(_) => {
                unreachable!("an array without a name is part of a record")
            }
        }
    }
}

/// What a type that is a pointer under another name leads to.
fn pointed_at(of: Interface<'_>, ty: &Type) -> String {
    let mut at = ty;
    for _ in 0..=of.schema.types.len() {
        let Type::Named(id) = at else { break };
        let Some((to, spelling)) = of.alias(*id) else {
            break;
        };
        if let Type::Optional(_) = to {
            return of.c_type(to, spelling);
        }
        at = to;
    }
    unreachable!("it is a pointer")
}
