//! The arguments and results of procedures in C, and their messages.

use tenon_plan::ProcedurePlan;
use tenon_schema::written::Spelling;
use tenon_schema::{Field, FieldAnnotations, Length, Schema, Type};

use super::streams::{StubStreams, has_streams};
use crate::c::Interface;
use crate::c::declare::{CDeclaration, spaced};
use crate::c::procedures::VersionedProcedure;
use crate::c::spot::{CLvalue, no_such};

/// The table of the functions of a type.
pub fn message_name(ty: &str) -> String {
    format!("{ty}_message")
}

/// A procedure, and the plans of its messages.
#[derive(Debug, Clone, Copy)]
pub struct StubProcedure<'a> {
    pub procedure: VersionedProcedure<'a>,
    /// In each representation.
    pub plans: [&'a ProcedurePlan; 2],
    /// Its streams, which are missing in its messages and in its definition.
    pub streams: Option<StubStreams<'a>>,
    /// Its index among those of its version that have messages or another number than 0, or among those that have
    /// streams; `None` for procedure 0, which every server answers.
    pub index: Option<usize>,
}

/// A message of a procedure, which is its arguments or its result.
#[derive(Debug, Clone)]
pub enum StubMessage<'a> {
    /// None: it is empty.
    Nothing,
    /// That of a type that the interface names.
    Named(&'a str),
    /// That of a word of the language, which procedures share.
    Plain(UnnamedValue<'a>),
    /// One of its own.
    Own(UnnamedValue<'a>),
}

/// A value that has no name of its own in the interface.
#[derive(Debug, Clone)]
pub struct UnnamedValue<'a> {
    /// The name that its functions are called after.
    pub name: String,
    /// Its type in C.
    pub ty: String,
    /// The value in memory.
    pub spot: CLvalue<'a>,
}

impl<'a> StubProcedure<'a> {
    /// The message of the arguments.
    pub fn arguments(&self, of: Interface<'a>) -> StubMessage<'a> {
        let fields = &self.procedure.definition.arguments;
        let spellings = &self.procedure.written.arguments;
        match (fields.as_slice(), spellings.as_slice()) {
            ([], _) => StubMessage::Nothing,
            ([field], [spelling]) if !is_unnamed_array(&field.ty) => {
                let spot = CLvalue::sole_behind("it", field, spelling);
                of_type(of, &self.procedure.record_name(), &field.ty, spelling, spot)
            }
            _ => {
                let name = self.procedure.record_name();
                StubMessage::Own(UnnamedValue {
                    ty: name.clone(),
                    name,
                    spot: CLvalue::record_behind("it", fields, spellings),
                })
            }
        }
    }

    /// The message of the result. `result_name` is that of a type of its own, if it needs one.
    pub fn result(&self, of: Interface<'a>, result_name: &'a str) -> StubMessage<'a> {
        let Some((ty, spelling)) = self.procedure.result() else {
            return StubMessage::Nothing;
        };
        of_declared(of, ty, spelling, result_name)
    }

    /// The C type of the result, if it has one.
    pub fn result_type(&self, of: Interface<'a>) -> Option<String> {
        let (ty, spelling) = self.procedure.result()?;
        Some(match is_unnamed_array(ty) {
            true => self.result_name(),
            false => value_type(of, ty, spelling),
        })
    }

    /// Returns the name of the type of the result, if the interface has no name for it.
    pub fn result_name(&self) -> String {
        format!("{}_result", self.procedure.c_name())
    }

    /// Returns whether the result is of such a type.
    pub fn has_own_result(&self) -> bool {
        self.procedure
            .result()
            .is_some_and(|(ty, _)| is_unnamed_array(ty))
    }

    /// Returns whether a struct holds the arguments.
    pub fn has_record(&self) -> bool {
        let fields = &self.procedure.definition.arguments;
        match fields.as_slice() {
            [] => false,
            [only] => is_unnamed_array(&only.ty),
            _ => true,
        }
    }

    /// Its parameters.
    pub fn parameters(&self, of: Interface<'a>) -> Vec<StubParameter> {
        let fields = self.procedure.definition.arguments.iter();
        fields
            .zip(&self.procedure.written.arguments)
            .map(|(field, spelling)| StubParameter::new(of, field, spelling))
            .collect()
    }
}

/// The message of a value that is declared by itself. `own_name` is that of a type of its own, if it needs one.
pub fn of_declared<'a>(
    of: Interface<'a>,
    ty: &'a Type,
    spelling: &'a Spelling,
    own_name: &'a str,
) -> StubMessage<'a> {
    match is_unnamed_array(ty) {
        true => StubMessage::Own(UnnamedValue {
            name: own_name.to_owned(),
            ty: own_name.to_owned(),
            spot: CLvalue::declared_behind("it", ty, spelling, own_name),
        }),
        false => {
            let spot = CLvalue::declared_behind("it", ty, spelling, "value");
            of_type(of, own_name, ty, spelling, spot)
        }
    }
}

/// The message of a value; `own` is the name of its functions if nothing else has them.
fn of_type<'a>(
    of: Interface<'a>,
    own: &str,
    ty: &'a Type,
    spelling: &'a Spelling,
    spot: CLvalue<'a>,
) -> StubMessage<'a> {
    let c_type = value_type(of, ty, spelling);
    let value = |name: String| UnnamedValue {
        name,
        ty: c_type,
        spot,
    };
    match ty {
        Type::Named(id) => StubMessage::Named(&of.schema.type_def(*id).name),
        Type::String(u32::MAX) => StubMessage::Plain(value("string".to_owned())),
        Type::String(bound) => StubMessage::Plain(value(format!("string_{bound}"))),
        Type::Optional(_) => StubMessage::Own(value(own.to_owned())),
        _ => {
            let name = value_type(of, ty, spelling);
            StubMessage::Plain(value(name))
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

/// Returns whether it is an array that has no name as a type, and so no type that C passes.
pub fn is_unnamed_array(ty: &Type) -> bool {
    matches!(ty, Type::Array(..) | Type::Opaque(_))
}

/// A parameter: how it is declared, handed on and received.
#[derive(Debug, Clone)]
pub struct StubParameter {
    /// Its name, as a field of a record.
    field: String,
    /// Its name in lists of parameters.
    name: String,
    passed: PassMode,
}

/// The way in which an argument is passed.
#[derive(Debug, Clone)]
enum PassMode {
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

/// The names of the parameters that every stub has.
const OWN_PARAMETERS: [&str; 13] = [
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

/// Returns whether every stub of an interface has a parameter of this name.
pub fn is_own_parameter(schema: &Schema, name: &str) -> bool {
    OWN_PARAMETERS.contains(&name) || (name == "stream" && has_streams(schema))
}

impl StubParameter {
    /// An item of a stream; `own_type` is the name of its type if the interface has none.
    pub fn of_item(
        of: Interface<'_>,
        ty: &Type,
        spelling: &Spelling,
        own_type: Option<&str>,
    ) -> Self {
        let field = Field {
            name: "item".to_owned(),
            doc: String::new(),
            annotations: FieldAnnotations::default(),
            ty: ty.clone(),
        };
        let parameter = Self::new(of, &field, spelling);
        let Some(name) = own_type.map(str::to_owned) else {
            return parameter;
        };
        let passed = match ty {
            Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)) => {
                PassMode::Vector(name)
            }
            _ => PassMode::Behind(name),
        };
        Self {
            passed,
            ..parameter
        }
    }

    fn new(of: Interface<'_>, field: &Field, spelling: &Spelling) -> Self {
        let words = of.c_type(&field.ty, spelling);
        let passed = match (&field.ty, of.schema.resolve(&field.ty)) {
            (Type::Array(_, Length::Counted(_)) | Type::Opaque(Length::Counted(_)), _) => {
                PassMode::Counted(words)
            }
            (Type::Array(..) | Type::Opaque(_), _) => {
                let declared = CDeclaration {
                    name: &field.name,
                    ty: &field.ty,
                    spelling,
                };
                PassMode::Elements(words, declared.bound(of.dialect))
            }
            (_, Type::String(_)) => PassMode::Pointer("char".to_owned()),
            (Type::Optional(_), _) => PassMode::Pointer(words),
            (_, Type::Optional(_)) => PassMode::Pointer(pointed_at(of, &field.ty)),
            (_, Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_))) => {
                PassMode::Vector(words)
            }
            (_, Type::Array(..) | Type::Opaque(_)) => PassMode::Behind(words),
            (_, Type::Named(id)) => match of.schema.type_def(*id).kind {
                tenon_schema::TypeKind::Enum(_) => PassMode::Value(words),
                _ => PassMode::Behind(words),
            },
            _ => PassMode::Value(words),
        };
        let is_taken =
            is_own_parameter(of.schema, &field.name) || of.schema.find_type(&field.name).is_some();
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

    /// Returns its declaration in a client's stub.
    pub fn declared(&self) -> String {
        let name = &self.name;
        match &self.passed {
            PassMode::Value(ty) => format!("{}{name}", spaced(ty)),
            PassMode::Pointer(to) | PassMode::Behind(to) => format!("const {}*{name}", spaced(to)),
            PassMode::Vector(ty) => format!("const {ty} {name}"),
            PassMode::Elements(of, count) => format!("const {}{name}[{count}]", spaced(of)),
            PassMode::Counted(of) => {
                format!("uint32_t {name}_len, const {}*{name}_val", spaced(of))
            }
        }
    }

    /// Returns its declaration in a handler, which may take what it is handed.
    pub fn received(&self) -> String {
        self.declared().replace("const ", "")
    }

    /// Lines that put it into the record called `tenon_arguments`.
    pub fn fill(&self) -> Vec<String> {
        let (name, field) = (&self.name, format!("tenon_arguments.{}", self.field));
        match &self.passed {
            PassMode::Value(_) => vec![format!("{field} = {name};")],
            PassMode::Pointer(to) => vec![format!("{field} = ({}*) {name};", spaced(to))],
            PassMode::Behind(_) => vec![format!("{field} = *{name};")],
            PassMode::Vector(_) | PassMode::Elements(..) => {
                vec![format!("memcpy ({field}, {name}, sizeof ({field}));")]
            }
            PassMode::Counted(of) => vec![
                format!("{field}.{}_len = {name}_len;", self.field),
                format!("{field}.{}_val = ({}*) {name}_val;", self.field, spaced(of)),
            ],
        }
    }

    /// Returns the condition that it is a null pointer, so that it cannot be copied into a record; `None` if nothing is
    /// copied from behind a pointer.
    pub fn missing(&self) -> Option<String> {
        match self.passed {
            PassMode::Behind(_) | PassMode::Vector(_) | PassMode::Elements(..) => {
                Some(format!("{} == NULL", self.name))
            }
            PassMode::Value(_) | PassMode::Pointer(_) | PassMode::Counted(_) => None,
        }
    }

    /// A pointer to its value, if it is the only one.
    pub fn pointer(&self) -> String {
        match &self.passed {
            PassMode::Value(_) | PassMode::Pointer(_) => format!("&{}", self.name),
            PassMode::Behind(_) | PassMode::Vector(_) => self.name.clone(),
            PassMode::Elements(..) | PassMode::Counted(_) => self.not_alone(),
        }
    }

    /// Returns the argument for a handler, out of the record `it`.
    pub fn out_of_record(&self) -> String {
        let field = format!("it->{}", self.field);
        match &self.passed {
            PassMode::Behind(_) => format!("&{field}"),
            PassMode::Counted(_) => {
                format!("{field}.{0}_len, {field}.{0}_val", self.field)
            }
            PassMode::Value(_)
            | PassMode::Pointer(_)
            | PassMode::Vector(_)
            | PassMode::Elements(..) => field,
        }
    }

    /// Returns the argument for a handler, where `arguments` leads to the only one.
    pub fn alone(&self) -> String {
        match &self.passed {
            PassMode::Value(ty) | PassMode::Vector(ty) => format!("*({}*) arguments", spaced(ty)),
            PassMode::Pointer(to) => format!("*({}**) arguments", spaced(to)),
            PassMode::Behind(ty) => format!("({}*) arguments", spaced(ty)),
            PassMode::Elements(..) | PassMode::Counted(_) => self.not_alone(),
        }
    }

    /// Takes the place of an argument by itself that is an array without a name.
    fn not_alone(&self) -> ! {
        let name = &self.name;
        unreachable!("the array {name} is of no type of its own, so a record is around it")
    }
}

/// Returns the type of the target of a type that is a pointer under another name.
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
    no_such("pointer")
}
