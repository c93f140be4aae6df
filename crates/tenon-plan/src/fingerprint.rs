//! Fingerprints: numbers by which two ends find out whether they were built from the same interface.
//! How they are made is specified in `docs/lean-protocol.md`.
//!
//! A fingerprint is the hash of a text that has everything that decides the bytes of a value in the
//! lean representation, or which bytes are accepted, and the names that tell its parts apart: those of
//! fields, of enum members, of arms and of procedures. Names of types, comments and typedefs are free.
//! It protects from mistakes, not from malice.

use tenon_schema::{
    Field, Length, Procedure, Schema, Streams, Type, TypeId, TypeKind, Union, Version,
};

use crate::graph::{components, contained};
use crate::links::{is_link, linked_list, memory_fields};

/// Types that contain each other, beyond this, have no fingerprint: the work grows with the square.
const COMPONENT_MAX: usize = 1000;

/// Typedefs of typedefs among types that contain each other, beyond this, have none either.
const DEPTH_MAX: usize = 1000;

/// The fingerprint of what has none: it is not compared.
const UNKNOWN: u64 = 0;

/// A procedure or a type of a version, as two ends compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FingerprintedPart {
    /// Its name in an error.
    pub name: String,
    /// Its fingerprint; 0 if it has none.
    pub fingerprint: u64,
    /// Its fingerprint without the names in it; 0 if it has none.
    pub layout: u64,
    /// The number of a procedure; 0 for a type.
    pub procedure: u32,
}

/// The fingerprints of an interface's types, procedures and versions.
#[derive(Debug)]
pub struct Fingerprints<'s> {
    schema: &'s Schema,
    /// Whether texts have the names of fields, members, arms and procedures.
    has_names: bool,
    /// All types, those that others are made of first.
    order: Vec<TypeId>,
    /// The text of each type where it is used: what it is, if that is short, or `#` and its
    /// fingerprint. `None` if it has none.
    references: Vec<Option<String>>,
    types: Vec<u64>,
}

impl<'s> Fingerprints<'s> {
    /// Finds those of all types.
    pub fn new(schema: &'s Schema) -> Self {
        Self::with_names(schema, true)
    }

    fn with_names(schema: &'s Schema, has_names: bool) -> Self {
        let mut all = Self {
            schema,
            has_names,
            order: Vec::new(),
            references: vec![None; schema.types.len()],
            types: vec![UNKNOWN; schema.types.len()],
        };
        // A union has no edge to its discriminant's type, which has none to others.
        let ids = (0..schema.types.len() as u32).map(TypeId);
        ids.filter(|id| matches!(schema.type_def(*id).kind, TypeKind::Enum(_)))
            .for_each(|id| all.add_component(&[id]));
        for component in components(schema).order {
            match component[..] {
                [id] if all.references[id.0 as usize].is_some() => {}
                _ => all.add_component(&component),
            }
        }
        all
    }

    fn add_component(&mut self, members: &[TypeId]) {
        self.order.extend(members);
        if members.len() > COMPONENT_MAX {
            return;
        }
        let is_typedef = |id: TypeId| typedef_target(self.schema, id).is_some();
        let found: Vec<(TypeId, Option<u64>)> = members
            .iter()
            .filter(|id| !is_typedef(**id))
            .map(|id| (*id, self.text_of(*id).map(|text| hash(&text))))
            .collect();
        for (id, fingerprint) in found {
            self.types[id.0 as usize] = fingerprint.unwrap_or(UNKNOWN);
            self.references[id.0 as usize] = fingerprint.map(hashed);
        }
        for id in members {
            if let Some(to) = typedef_target(self.schema, *id) {
                self.references[id.0 as usize] = FingerprintTextWriter::new(self).reference(to, 0);
            }
        }
    }

    /// The text of a type that is no typedef, and of those among which it contains itself.
    fn text_of(&self, root: TypeId) -> Option<String> {
        let mut writer = FingerprintTextWriter::new(self);
        writer.members.push(root);
        let mut texts = Vec::new();
        while let Some(id) = writer.members.get(texts.len()) {
            texts.push(writer.definition(*id)?);
        }
        Some(texts.join(";"))
    }

    /// The fingerprint of a struct, a union, an enum or a type that is only named. 0 for a typedef,
    /// and for a type that has none.
    pub fn of_type(&self, id: TypeId) -> u64 {
        self.types[id.0 as usize]
    }

    /// The fingerprint of a procedure; 0 if it has none.
    pub fn of_procedure(&self, procedure: &Procedure) -> u64 {
        let mut writer = FingerprintTextWriter::new(self);
        let arguments = writer.arguments(&procedure.arguments);
        let result = match &procedure.result {
            Some(ty) => writer.reference(ty, 0),
            None => Some("void".to_owned()),
        };
        let errors = writer.errors(&procedure.annotations.raises);
        match (arguments, result, errors) {
            (Some(arguments), Some(result), Some(errors)) => {
                let name = self.named(&procedure.name);
                let streams = streams(procedure.annotations.streams);
                hash(&format!(
                    "{} {name}({arguments}){result}{streams}{errors}",
                    procedure.number
                ))
            }
            _ => UNKNOWN,
        }
    }

    /// A name in a text that has names, otherwise nothing.
    fn named<'n>(&self, name: &'n str) -> &'n str {
        if self.has_names { name } else { "" }
    }

    /// The fingerprint of a version of a program; 0 if it has none.
    pub fn of_version(&self, version: &Version) -> u64 {
        let found: Vec<u64> = compared_procedures(version)
            .iter()
            .map(|procedure| self.of_procedure(procedure))
            .collect();
        if found.contains(&UNKNOWN) {
            return UNKNOWN;
        }
        let digits: Vec<String> = found.iter().map(|found| format!("{found:016x}")).collect();
        hash(&digits.join(","))
    }

    /// Returns the parts of a version: its procedures in ascending order of their numbers, then the structs, unions and
    /// enums that it uses, those that others are made of first.
    pub fn parts(&self, version: &Version) -> Vec<FingerprintedPart> {
        let used = self.used_by(version);
        let layouts = Self::with_names(self.schema, false);
        let types = self
            .order
            .iter()
            .filter(|id| used[id.0 as usize] && typedef_target(self.schema, **id).is_none());
        let types = types.map(|id| FingerprintedPart {
            name: self.schema.type_def(*id).name.clone(),
            fingerprint: self.of_type(*id),
            layout: layouts.of_type(*id),
            procedure: 0,
        });
        let procedures = compared_procedures(version).into_iter();
        let procedures = procedures.map(|procedure| FingerprintedPart {
            name: format!("procedure {}", procedure.name),
            fingerprint: self.of_procedure(procedure),
            layout: layouts.of_procedure(procedure),
            procedure: procedure.number,
        });
        procedures.chain(types).collect()
    }

    /// Returns for each type whether the procedures of a version use it, directly or not.
    fn used_by(&self, version: &Version) -> Vec<bool> {
        let arguments = version.procedures.iter().flat_map(|p| &p.arguments);
        let results = version.procedures.iter().flat_map(|p| &p.result);
        let raised = version
            .procedures
            .iter()
            .flat_map(|p| &p.annotations.raises);
        let mut left: Vec<TypeId> = arguments
            .map(|field| &field.ty)
            .chain(results)
            .filter_map(Type::innermost_name)
            .chain(raised.copied())
            .collect();
        let mut used = vec![false; self.schema.types.len()];
        while let Some(id) = left.pop() {
            if std::mem::replace(&mut used[id.0 as usize], true) {
                continue;
            }
            left.extend(contained(self.schema, id));
            if let TypeKind::Union(union) = &self.schema.type_def(id).kind {
                left.extend(union.discriminant_type.innermost_name());
            }
        }
        used
    }
}

/// The directions in which a procedure has a stream: nothing if it has none.
fn streams(of: Streams) -> &'static str {
    match (of.arguments, of.result) {
        (false, false) => "",
        (true, false) => " stream(arguments)",
        (false, true) => " stream(result)",
        (true, true) => " stream(arguments,result)",
    }
}

/// Writes texts. What is known of types is taken from it; the others are numbered.
struct FingerprintTextWriter<'a> {
    all: &'a Fingerprints<'a>,
    /// Types without a fingerprint yet, in the order in which they were mentioned.
    members: Vec<TypeId>,
}

impl<'a> FingerprintTextWriter<'a> {
    fn new(all: &'a Fingerprints<'a>) -> Self {
        Self {
            all,
            members: Vec::new(),
        }
    }

    /// Writes what a type that is no typedef is made of.
    fn definition(&mut self, id: TypeId) -> Option<String> {
        let def = self.all.schema.type_def(id);
        Some(match &def.kind {
            TypeKind::Enum(members) => {
                let mut members: Vec<(i32, &str)> = members
                    .iter()
                    .map(|member| (member.value, self.all.named(&member.name)))
                    .collect();
                members.sort_unstable();
                let members: Vec<String> = members
                    .iter()
                    .map(|(value, name)| format!("{name}={value}"))
                    .collect();
                format!("enum({})", members.join(","))
            }
            TypeKind::Struct(_) => {
                let fields = memory_fields(self.all.schema, id).unwrap_or_default();
                let what = match is_link(self.all.schema, id) {
                    true => "link",
                    false => "struct",
                };
                format!("{what}({})", self.fields(fields)?)
            }
            TypeKind::Union(union) => self.union(union)?,
            TypeKind::Typedef(to) => self.reference(to, 0)?,
            TypeKind::External => format!("external({})", def.name),
        })
    }

    fn union(&mut self, union: &Union) -> Option<String> {
        let mut text = format!("union({}", self.reference(&union.discriminant_type, 0)?);
        let cases = union.arms.iter().flat_map(|arm| {
            let cases = arm.cases.iter();
            cases.map(|case| (case.value, arm.field.as_ref()))
        });
        let mut cases: Vec<(i32, Option<&Field>)> = cases.collect();
        cases.sort_by_key(|(value, _)| *value);
        for (value, field) in cases {
            text += &format!(",{value}:{}", self.arm(field)?);
        }
        if let Some(default) = &union.default {
            text += &format!(",default:{}", self.arm(default.as_ref())?);
        }
        Some(text + ")")
    }

    fn arm(&mut self, field: Option<&Field>) -> Option<String> {
        match field {
            Some(field) => self.field(field),
            None => Some("void".to_owned()),
        }
    }

    /// A field: its name and its type.
    fn field(&mut self, field: &Field) -> Option<String> {
        let ty = self.reference(&field.ty, 0)?;
        Some(match self.all.has_names {
            true => format!("{} {ty}", field.name),
            false => ty,
        })
    }

    fn fields(&mut self, fields: &[Field]) -> Option<String> {
        let texts: Option<Vec<String>> = fields.iter().map(|field| self.field(field)).collect();
        texts.map(|texts| texts.join(","))
    }

    /// The arguments of a procedure. One without a name of its own is written by its type alone.
    fn arguments(&mut self, arguments: &[Field]) -> Option<String> {
        let texts: Option<Vec<String>> = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                if argument.name == format!("arg{}", index + 1) {
                    self.reference(&argument.ty, 0)
                } else {
                    self.field(argument)
                }
            })
            .collect();
        texts.map(|texts| texts.join(","))
    }

    /// The errors of a procedure, in the order of their numbers: nothing if it has none.
    fn errors(&mut self, raised: &[TypeId]) -> Option<String> {
        if raised.is_empty() {
            return Some(String::new());
        }
        let texts: Option<Vec<String>> = raised
            .iter()
            .map(|id| {
                let ty = self.reference(&Type::Named(*id), 0)?;
                let name = &self.all.schema.type_def(*id).name;
                Some(match self.all.has_names {
                    true => format!("{name} {ty}"),
                    false => ty,
                })
            })
            .collect();
        texts.map(|texts| format!(" raises({})", texts.join(",")))
    }

    /// A type as it is used. `depth` counts the typedefs on the way.
    fn reference(&mut self, ty: &Type, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(list) = linked_list(self.all.schema, ty) {
            let element = self.named(list.element)?;
            let what = match list.first_bare {
                true => "list+",
                false => "list",
            };
            return Some(hashed(hash(&format!("{what}({element})"))));
        }
        Some(match ty {
            Type::Named(id) => match (typedef_target(self.all.schema, *id), self.known(*id)) {
                (_, Some(known)) => known,
                (Some(to), None) => self.reference(to, depth + 1)?,
                (None, None) => self.named(*id)?,
            },
            Type::Array(element, length) => {
                let element = self.reference(element, depth + 1)?;
                hashed(hash(&format!("{element}{}", bounds(*length))))
            }
            Type::Optional(to) => {
                let to = self.reference(to, depth + 1)?;
                hashed(hash(&format!("*{to}")))
            }
            Type::Opaque(length) => format!("opaque{}", bounds(*length)),
            Type::String(bound) => format!("string<{bound}>"),
            Type::Int => "int".to_owned(),
            Type::Uint => "uint".to_owned(),
            Type::Hyper => "hyper".to_owned(),
            Type::Uhyper => "uhyper".to_owned(),
            Type::Short => "short".to_owned(),
            Type::Ushort => "ushort".to_owned(),
            Type::Char => "char".to_owned(),
            Type::Uchar => "uchar".to_owned(),
            Type::Float => "float".to_owned(),
            Type::Double => "double".to_owned(),
            Type::Quadruple => "quadruple".to_owned(),
            Type::Bool => "bool".to_owned(),
        })
    }

    fn known(&self, id: TypeId) -> Option<String> {
        self.all.references[id.0 as usize].clone()
    }

    /// A type that is no typedef: by its fingerprint, or by its number if it has none yet.
    fn named(&mut self, id: TypeId) -> Option<String> {
        if let Some(known) = self.known(id) {
            return Some(known);
        }
        // Only where a text is written of a type itself there are others without a fingerprint yet.
        if self.members.is_empty() {
            return None;
        }
        let number = match self.members.iter().position(|member| *member == id) {
            Some(number) => number,
            None => {
                self.members.push(id);
                self.members.len() - 1
            }
        };
        (number < COMPONENT_MAX).then(|| format!("^{number}"))
    }
}

fn typedef_target(schema: &Schema, id: TypeId) -> Option<&Type> {
    match &schema.type_def(id).kind {
        TypeKind::Typedef(to) => Some(to),
        _ => None,
    }
}

/// Returns the procedures of a version that a service carries out, in ascending order of their numbers. The protocol
/// itself answers procedure 0.
fn compared_procedures(version: &Version) -> Vec<&Procedure> {
    let mut procedures: Vec<&Procedure> = version.procedures.iter().collect();
    procedures.retain(|procedure| procedure.number != 0);
    procedures.sort_by_key(|procedure| procedure.number);
    procedures
}

fn bounds(length: Length) -> String {
    match length {
        Length::Fixed(count) => format!("[{count}]"),
        Length::Counted(bound) => format!("<{bound}>"),
    }
}

fn hashed(fingerprint: u64) -> String {
    format!("#{fingerprint:016x}")
}

/// FNV-1a of 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
