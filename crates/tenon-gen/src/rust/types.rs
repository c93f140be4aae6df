//! Declarations: constants, enums, structs, unions and typedefs.

use std::collections::HashSet;

use tenon_plan::links::is_link;
use tenon_schema::{Constant, ConstantValue, EnumMember, Type, TypeDef, TypeId, TypeKind, Union};

use super::code::{BlockExpr, Expr};
use super::marshal;
use super::members;
use super::sensitive::{is_sensitive, write_debug};
use super::serde;
use super::shape::TypeShape;
use super::variants::{self, UnionVariants};
use super::{RustFile, names::TypeNames};
use crate::writer::{HoleContent, SourceWriter, comment, literal};

/// Writes a constant of the interface.
pub fn write_constant(w: &mut SourceWriter, constant: &Constant, name: &str) {
    let (ty, value) = match &constant.value {
        ConstantValue::Number(number) => (number_type(*number), number.to_string()),
        ConstantValue::Text(text) => ("&str", literal(text)),
        ConstantValue::Unresolved(expression) => {
            let (name, expression) = (comment(&constant.name), comment(expression));
            return w.line(format!(
                "// {name} = {expression}: names that are not defined here."
            ));
        }
    };
    w.doc("///", &constant.doc);
    w.line(format!("pub const {name}: {ty} = {value};"));
}

/// The smallest type of 32 bits or more that holds `number`, unsigned if possible.
fn number_type(number: i128) -> &'static str {
    match number {
        0..=0xffff_ffff => "u32",
        0x1_0000_0000..=0xffff_ffff_ffff_ffff => "u64",
        -0x8000_0000..0 => "i32",
        -0x8000_0000_0000_0000..-0x8000_0000 => "i64",
        _ => "i128",
    }
}

/// Writes the declaration of the type `id`.
pub fn write(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    let def = rust.schema.type_def(id);
    if !matches!(def.kind, TypeKind::Struct(_)) {
        write_doc(w, def);
    }
    match &def.kind {
        TypeKind::Enum(members) => write_enum(w, rust, id, members),
        TypeKind::Struct(_) => write_struct(w, rust, id),
        TypeKind::Union(union) => write_union(w, rust, id, union),
        TypeKind::Typedef(to) => write_typedef(w, rust, id, to),
        TypeKind::External => write_external(w, rust, id),
    }
}

fn write_doc(w: &mut SourceWriter, def: &TypeDef) {
    match def.doc.trim().is_empty() {
        true => w.line(format!("/// `{}` of the interface.", comment(&def.name))),
        false => w.doc("///", &def.doc),
    }
    write_deprecated(w, def.annotations.deprecated.as_ref());
}

/// Writes the attribute by which a compiler warns of the use of what follows, if the interface advises against it.
pub fn write_deprecated(w: &mut SourceWriter, reason: Option<&String>) {
    match reason.map(String::as_str) {
        None => {}
        Some("") => w.line("#[deprecated]"),
        Some(reason) => w.line(format!("#[deprecated = {}]", literal(reason))),
    }
}

/// The documentation of the element of a linked list.
const DOC_OF_ELEMENT: &str = "
It is the element of a linked list, which is a `Vec` of them: `encode` and `decode` move one element
alone, `Encoder::put_list` and `Decoder::get_list` a list, and `put_bare_list` and `get_bare_list`
one that is never empty, as a field that is no pointer holds it.";

fn write_enum(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId, members: &[EnumMember]) {
    let names = rust.names.of_type(id);
    let mut values = HashSet::new();
    let named = members.iter().zip(&names.parts);
    let (variants, aliases): (Vec<_>, Vec<_>) =
        named.partition(|(member, _)| values.insert(member.value));
    w.skeleton(
        "
#[repr(i32)]
#[derive($derives$)]
pub enum $name$ {
    $variants$
}

$aliases$
",
        &[
            (
                "derives",
                HoleContent::Text(
                    &rust.derives("Debug, Clone, Copy, PartialEq, Eq, Hash, Default"),
                ),
            ),
            ("name", HoleContent::Text(&names.name)),
            (
                "variants",
                HoleContent::Lines(&|w| write_members(w, &variants)),
            ),
            (
                "aliases",
                HoleContent::Lines(&|w| write_aliases(w, names, &aliases, &variants)),
            ),
        ],
    );
    members::write(w, rust, &names.name, &variants);
    w.gap();
    marshal::write_word(w, rust, id);
}

fn write_members(w: &mut SourceWriter, variants: &[(&EnumMember, &String)]) {
    for (index, (member, name)) in variants.iter().enumerate() {
        w.doc("///", &member.doc);
        write_deprecated(w, member.annotations.deprecated.as_ref());
        if index == 0 {
            w.line("#[default]");
        }
        w.line(format!("{name} = {},", member.value));
    }
}

/// Members that share the value of an earlier one.
fn write_aliases(
    w: &mut SourceWriter,
    names: &TypeNames,
    aliases: &[(&EnumMember, &String)],
    variants: &[(&EnumMember, &String)],
) {
    if aliases.is_empty() {
        return;
    }
    w.braces(&format!("impl {}", names.name), |w| {
        for (alias, name) in aliases {
            let same = |(member, _): &&(&EnumMember, &String)| member.value == alias.value;
            if let Some((_, variant)) = variants.iter().find(same) {
                w.doc("///", &alias.doc);
                write_deprecated(w, alias.annotations.deprecated.as_ref());
                w.line(format!("pub const {name}: Self = Self::{variant};"));
            }
        }
    });
    w.gap();
}

fn write_struct(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    let names = rust.names.of_type(id);
    let fields: Vec<_> = rust
        .shapes
        .fields(id)
        .into_iter()
        .zip(&names.parts)
        .collect();
    let is_wide = marshal::is_wide(fields.len());
    let is_whole = is_wide && rust.is_block(id);
    let hides = is_sensitive(rust.schema.type_def(id));
    let has_default = fields
        .iter()
        .all(|((_, shape), _)| rust.traits.has_default(shape));
    let declare = |w: &mut SourceWriter| {
        write_doc(w, rust.schema.type_def(id));
        if is_link(rust.schema, id) {
            w.doc("///", DOC_OF_ELEMENT);
        }
        match is_whole {
            true => write_own_derives(w, rust, if hides { "" } else { "Debug" }),
            false => write_derives(w, rust, id, is_wide, has_default),
        }
        let head = format!("pub struct {}", names.name);
        match fields.is_empty() {
            true => w.line(format!("{head} {{}}")),
            false => w.braces(&head, |w| {
                for ((field, shape), name) in &fields {
                    w.doc("///", &field.doc);
                    write_deprecated(w, field.annotations.deprecated.as_ref());
                    if let Some(attribute) = serde::attribute(rust, shape) {
                        w.line(attribute);
                    }
                    w.line(format!("pub {name}: {},", rust.type_text(shape)));
                }
            }),
        }
    };
    match rust.is_block(id) {
        // The macro proves that the struct lies on the wire as it lies in memory.
        true => w.braces(
            &format!("{}::wire::blittable!", rust.options.tenon),
            declare,
        ),
        false => declare(w),
    }
    if hides {
        let shown = fields.iter().map(|((field, _), name)| (*field, *name));
        write_debug(w, (&names.name, ""), shown);
    }
    if is_wide && !(is_whole && rust.traits.is_exact(id)) {
        write_equality(w, names);
    }
    if is_whole {
        return write_whole(w, rust, id);
    }
    if !has_default {
        let values = fields
            .iter()
            .map(|((_, shape), name)| ((*name).clone(), default(rust, shape)));
        write_default(
            w,
            &names.name,
            Expr::Struct("Self".to_owned(), values.collect()),
        );
    }
}

/// The traits of a wide struct without holes, which work on all of it at once: the compiler takes
/// many seconds over what `derive` writes.
fn write_whole(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    rust.uses(&["wire::kernels"]);
    let name = &rust.names.of_type(id).name;
    let mut method = |of: &str, head: &str, value: &str| {
        w.gap();
        w.braces(&format!("impl {of} for {name}"), |w| {
            w.braces(head, |w| w.line(value));
        });
    };
    method(
        "Clone",
        "fn clone(&self) -> Self",
        "kernels::duplicate(self)",
    );
    method("Default", "fn default() -> Self", "kernels::zeroed()");
    if rust.traits.is_exact(id) {
        method(
            "PartialEq",
            "fn eq(&self, other: &Self) -> bool",
            "kernels::same(self, other)",
        );
        w.gap();
        w.line(format!("impl Eq for {name} {{}}"));
    }
}

fn write_derives(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    id: TypeId,
    is_wide: bool,
    has_default: bool,
) {
    let is_exact = rust.traits.is_exact(id);
    let mut derives = match is_sensitive(rust.schema.type_def(id)) {
        true => vec!["Clone"],
        false => vec!["Debug", "Clone"],
    };
    let mut derive = |name, is_wanted: bool| derives.extend(is_wanted.then_some(name));
    derive("Copy", rust.shapes.is_copy(&TypeShape::Named(id)));
    derive("PartialEq", !is_wide);
    derive("Eq", is_exact);
    derive("Hash", is_exact && !is_wide);
    derive("Default", has_default);
    write_own_derives(w, rust, &derives.join(", "));
}

/// Writes these derives, and those that every type gets.
fn write_own_derives(w: &mut SourceWriter, rust: &RustFile<'_>, own: &str) {
    let derives = rust.derives(own);
    match derives.trim_start_matches(", ") {
        "" => {}
        derives => w.line(format!("#[derive({derives})]")),
    }
}

/// Equality of a wide struct: what `derive` writes is one expression, too deep for the compiler.
fn write_equality(w: &mut SourceWriter, names: &TypeNames) {
    let parts = names.parts.chunks(marshal::PART);
    w.gap();
    w.braces(&format!("impl PartialEq for {}", names.name), |w| {
        w.braces("fn eq(&self, other: &Self) -> bool", |w| {
            for part in 1..=parts.len() {
                let and = if part > 1 { "    && " } else { "" };
                w.line(format!("{and}self.eq_part_{part}(other)"));
            }
        });
    });
    w.gap();
    w.braces(&format!("impl {}", names.name), |w| {
        for (index, part) in parts.enumerate() {
            if index > 0 {
                w.gap();
            }
            w.braces(
                &format!("fn eq_part_{}(&self, other: &Self) -> bool", index + 1),
                |w| {
                    for (index, field) in part.iter().enumerate() {
                        let and = if index > 0 { "    && " } else { "" };
                        w.line(format!("{and}self.{field} == other.{field}"));
                    }
                },
            );
        }
    });
}

fn write_default(w: &mut SourceWriter, name: &str, value: Expr) {
    w.gap();
    w.braces(&format!("impl Default for {name}"), |w| {
        w.braces("fn default() -> Self", |w| BlockExpr::value(value).write(w));
    });
}

/// An expression for the default of a shape.
pub fn default(rust: &RustFile<'_>, shape: &TypeShape) -> Expr {
    match shape.real() {
        shape if rust.traits.has_default(shape) => Expr::text("Default::default()"),
        TypeShape::Bytes(bytes) => Expr::text(format!("[0; {bytes}]")),
        TypeShape::Array(element, _) => {
            let element = BlockExpr::value(default(rust, element));
            Expr::call("core::array::from_fn", [Expr::closure("|_|", element)])
        }
        TypeShape::Boxed(array) => {
            rust.uses(&["wire::boxed_array"]);
            let element = match array.real() {
                TypeShape::Array(element, _) if rust.traits.has_default(element) => {
                    Expr::text("Default::default")
                }
                TypeShape::Array(element, _) => {
                    Expr::closure("||", BlockExpr::value(default(rust, element)))
                }
                _ => Expr::text("u8::default"),
            };
            Expr::call("boxed_array", [element])
        }
        _ => Expr::text("Default::default()"),
    }
}

fn write_union(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId, union: &Union) {
    let names = rust.names.of_type(id);
    let all = variants::of(rust, id, union);
    let arm = rust.traits.default_arm(id);
    let first = all
        .variants
        .iter()
        .position(|variant| variant.arm == arm)
        .unwrap_or(0);
    let is_unit = all
        .variants
        .get(first)
        .is_some_and(|variant| variant.held.is_none() && variant.value.is_some());
    write_derives(w, rust, id, false, is_unit);
    w.braces(&format!("pub enum {}", names.name), |w| {
        for (index, variant) in all.variants.iter().enumerate() {
            w.doc("///", &variant.doc);
            write_deprecated(w, variant.deprecated.as_ref());
            if is_unit && index == first {
                w.line("#[default]");
            }
            w.line(format!("{},", declared(rust, &all, variant)));
        }
    });
    if is_sensitive(rust.schema.type_def(id)) {
        write_debug(w, (&names.name, ""), std::iter::empty());
    }
    w.gap();
    write_discriminant(w, names, &all);
    if let (Some(variant), false) = (all.variants.get(first), is_unit) {
        let mut held = Vec::new();
        if variant.value.is_none() {
            held.push(Expr::text("Default::default()"));
        }
        held.extend(variant.held.as_ref().map(|shape| default(rust, shape)));
        write_default(
            w,
            &names.name,
            Expr::call(format!("Self::{}", variant.name), held),
        );
    }
}

fn declared(rust: &RustFile<'_>, all: &UnionVariants, variant: &variants::UnionVariant) -> String {
    let name = &variant.name;
    let held = variant.held.as_ref().map(|shape| {
        let attribute = serde::attribute(rust, shape);
        let attribute = attribute.map_or_else(String::new, |text| text + " ");
        attribute + &rust.type_text(shape)
    });
    match (&variant.value, held) {
        (Some(_), None) => name.clone(),
        (Some(_), Some(held)) => format!("{name}({held})"),
        (None, None) => format!("{name}({})", all.discriminant),
        (None, Some(held)) => format!("{name}({}, {held})", all.discriminant),
    }
}

fn write_discriminant(w: &mut SourceWriter, names: &TypeNames, all: &UnionVariants) {
    w.skeleton(
        "
impl $name$ {
    /// The discriminant, which selects the arm.
    pub fn discriminant(&self) -> $ty$ {
        match self {
            $arms$
        }
    }
}
",
        &[
            ("name", HoleContent::Text(&names.name)),
            ("ty", HoleContent::Text(&all.discriminant)),
            (
                "arms",
                HoleContent::Lines(&|w| {
                    for variant in &all.variants {
                        let value = variant.value.as_ref().map(|(_, pattern)| pattern.as_str());
                        let pattern = variant.pattern("discriminant", "_");
                        w.line(format!(
                            "{pattern} => {},",
                            value.unwrap_or("*discriminant")
                        ));
                    }
                }),
            ),
        ],
    );
}

fn write_typedef(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId, to: &Type) {
    let target = rust.type_text(&rust.shapes.target(id, to));
    w.line(format!(
        "pub type {} = {target};",
        rust.names.of_type(id).name
    ));
}

fn write_external(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    w.line("///");
    w.line("/// The interface only names it: the module around this one has to define it, with");
    w.line("/// `Marshal`, `Debug`, `Clone`, `PartialEq` and `Default`.");
    w.line(format!("pub use {};", rust.outside(id)));
}
