//! The spelling of the definitions: the words and numbers that a schema does not hold.

use std::collections::HashMap;

use tenon_schema::written::{
    Item, Spelling, Written, WrittenProcedure, WrittenProgram, WrittenType, WrittenUnion,
};
use tenon_schema::{Schema, Type, TypeId};

use crate::ast::{
    Definition, DefinitionKind, Expression, ExpressionKind, ProgramDef, TypeBody, TypeUse,
    TypeUseKind, UnionBody,
};
use crate::preprocess::PassthroughLine;
use crate::source::SourceMap;

use super::foreign::ForeignExpressions;

/// The results of name resolution.
#[derive(Clone, Copy)]
pub(super) struct ResolvedNames<'a> {
    /// The types.
    pub types: &'a HashMap<String, TypeId>,
    /// The numbers that C alone knows.
    pub foreign: &'a ForeignExpressions,
}

/// Returns the spelling of flattened definitions and of the `%` lines between them, for their complete schema and the
/// names that it was resolved with.
pub(super) fn written(
    definitions: &[Definition],
    lines: &[PassthroughLine],
    schema: &Schema,
    named: ResolvedNames<'_>,
    sources: &SourceMap,
) -> Written {
    let mut of = WrittenBuilder {
        named,
        sources,
        written: Written::default(),
    };
    of.written.types = vec![WrittenType::External; schema.types.len()];
    let mut lines = lines.iter().zip(&schema.passthrough).peekable();
    for definition in definitions {
        while let Some((_, line)) = lines.next_if(|(line, _)| line.trivia.position < definition.end)
        {
            of.written.items.push(Item::Passthrough(line.clone()));
        }
        of.definition(definition);
    }
    let rest = lines.map(|(_, line)| Item::Passthrough(line.clone()));
    of.written.items.extend(rest);
    of.written
}

struct WrittenBuilder<'a> {
    named: ResolvedNames<'a>,
    sources: &'a SourceMap,
    written: Written,
}

impl WrittenBuilder<'_> {
    fn definition(&mut self, definition: &Definition) {
        let name = &definition.name.text;
        let kind = match &definition.kind {
            DefinitionKind::Constant(constant) if constant.from_macro => return,
            DefinitionKind::Constant(constant) => {
                self.written.items.push(Item::Constant {
                    name: name.clone(),
                    value: self.expression(&constant.value),
                });
                return;
            }
            DefinitionKind::Program(program) => return self.program(program),
            DefinitionKind::Typedef(ty) => WrittenType::Typedef(self.spelling(ty)),
            DefinitionKind::Type(body) => self.body(body),
        };
        let Some(&id) = self.named.types.get(name) else {
            return;
        };
        // A second definition is the same.
        let known = &mut self.written.types[id.0 as usize];
        if *known == WrittenType::External {
            *known = kind;
            self.written.items.push(Item::Type(id));
        }
    }

    fn body(&self, body: &TypeBody) -> WrittenType {
        match body {
            TypeBody::Enum(members) => {
                let values = members.iter().map(|member| member.value.as_ref());
                let values = values.map(|value| value.map(|value| self.expression(value)));
                WrittenType::Enum(values.collect())
            }
            TypeBody::Struct(fields) => {
                let spellings = fields.iter().map(|field| self.spelling(&field.ty));
                WrittenType::Struct(spellings.collect())
            }
            TypeBody::Union(union) => WrittenType::Union(self.union(union)),
        }
    }

    fn union(&self, union: &UnionBody) -> WrittenUnion {
        let labels = union.arms.iter().map(|arm| {
            let labels = arm.cases.iter().map(|case| self.expression(case));
            labels.collect()
        });
        let arms = union.arms.iter().map(|arm| arm.field.as_ref());
        let default = union.default.as_ref().map(Option::as_ref);
        WrittenUnion {
            discriminant: self.spelling(&union.discriminant.ty),
            arms: arms
                .map(|field| field.map(|field| self.spelling(&field.ty)))
                .collect(),
            labels: labels.collect(),
            default: default.map(|field| field.map(|field| self.spelling(&field.ty))),
        }
    }

    fn program(&mut self, program: &ProgramDef) {
        for procedure in program.versions.iter().flat_map(|of| &of.procedures) {
            let arguments = procedure.arguments.iter();
            let made = WrittenProcedure {
                number: self.expression(&procedure.number),
                arguments: arguments.map(|of| self.spelling(&of.ty)).collect(),
                result: procedure.result.as_ref().map(|ty| self.spelling(ty)),
            };
            self.written.procedures.push(made);
        }
        let versions = program.versions.iter();
        let made = WrittenProgram {
            number: self.expression(&program.number),
            versions: versions.map(|of| self.expression(&of.number)).collect(),
        };
        let position = self.written.programs.len();
        self.written.items.push(Item::Program(position));
        self.written.programs.push(made);
    }

    fn spelling(&self, ty: &TypeUse) -> Spelling {
        let named = |base: &str| Spelling {
            base: base.to_owned(),
            ..Spelling::default()
        };
        match &ty.kind {
            TypeUseKind::Builtin(of) => named(&self.builtin(ty, of)),
            TypeUseKind::Named(name) => Spelling {
                tag: self.tag(ty),
                ..named(&name.text)
            },
            TypeUseKind::String(max) => self.bounded(named("string"), max.as_ref()),
            TypeUseKind::Opaque(bound) => self.bounded(named("opaque"), bound.number()),
            TypeUseKind::Array(element, bound) => {
                self.bounded(self.spelling(element), bound.number())
            }
            TypeUseKind::Optional(to) => self.spelling(to),
            TypeUseKind::Inline(..) => unreachable!("flattening leaves none"),
        }
    }

    /// Adds the number behind the name to the words of a type.
    fn bounded(&self, words: Spelling, number: Option<&Expression>) -> Spelling {
        Spelling {
            bound: number.map(|number| self.expression(number)),
            foreign: number.is_some_and(|number| self.named.foreign.has(number)),
            ..words
        }
    }

    /// Returns the words of a built-in type. One that a macro stands for is written in the usual words.
    fn builtin(&self, ty: &TypeUse, of: &Type) -> String {
        const WORDS: [&str; 12] = [
            "unsigned",
            "signed",
            "int",
            "long",
            "short",
            "char",
            "hyper",
            "float",
            "double",
            "quadruple",
            "bool",
            "u_int",
        ];
        let text = self.sources.text(ty.span);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.iter().all(|word| WORDS.contains(word)) {
            true => words.join(" "),
            false => usual_words(of).to_owned(),
        }
    }

    /// Returns `struct`, `union` or `enum` in front of a name.
    fn tag(&self, ty: &TypeUse) -> Option<String> {
        let text = self.sources.text(ty.span);
        let (tag, rest) = text.split_once(|char: char| char.is_whitespace())?;
        let is_tag = matches!(tag, "struct" | "union" | "enum") && !rest.is_empty();
        is_tag.then(|| tag.to_owned())
    }

    /// Writes an expression in C. For a macro its value is written: C does not know its name.
    fn expression(&self, expression: &Expression) -> String {
        let text = self.sources.text(expression.span);
        match &expression.kind {
            ExpressionKind::Number(_) if is_number(text) => text.to_owned(),
            ExpressionKind::Number(value) => value.to_string(),
            ExpressionKind::Huge => text.to_owned(),
            ExpressionKind::Text(text) => format!("\"{text}\""),
            ExpressionKind::Name(name) => name.clone(),
            ExpressionKind::Unary(operator, operand) => {
                let operand_text = self.expression(operand);
                match operand.kind {
                    ExpressionKind::Number(_) | ExpressionKind::Name(_) => {
                        format!("{operator}{operand_text}")
                    }
                    _ => format!("{operator}({operand_text})"),
                }
            }
            ExpressionKind::Binary(operator, left, right) => {
                let sides = (self.expression(left), self.expression(right));
                format!("({} {operator} {})", sides.0, sides.1)
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    let is_digits = text.starts_with(|char: char| char.is_ascii_digit());
    let is_character = text.starts_with('\'') && text.len() > 2 && text.ends_with('\'');
    (is_digits && text.chars().all(|char| char.is_ascii_alphanumeric())) || is_character
}

fn usual_words(ty: &Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Uint => "unsigned int",
        Type::Hyper => "hyper",
        Type::Uhyper => "unsigned hyper",
        Type::Short => "short",
        Type::Ushort => "unsigned short",
        Type::Char => "char",
        Type::Uchar => "unsigned char",
        Type::Float => "float",
        Type::Double => "double",
        Type::Quadruple => "quadruple",
        Type::Bool => "bool",
        Type::Opaque(_)
        | Type::String(_)
        | Type::Array(..)
        | Type::Optional(_)
        | Type::Named(_) => unreachable!("not a word of the language"),
    }
}
