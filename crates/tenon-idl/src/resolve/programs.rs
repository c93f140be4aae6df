//! Programs, versions and procedures, and the check that their names and numbers differ (RFC 5531
//! section 12.3).

use std::collections::HashMap;

use tenon_schema::{Field, FieldAnnotations, Procedure, Program, Version};

use crate::ast::{self, Definition, Expression, ProcedureParameter, SpannedName};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

use super::{SchemaResolver, foreign};

impl SchemaResolver<'_> {
    pub(super) fn program(&mut self, definition: &Definition, program: &ast::ProgramDef) {
        let number = self.number_u32(&program.number, "program number");
        self.refuse_twice(
            "version",
            program.versions.iter().map(|version| &version.name),
        );
        let numbers = program.versions.iter().map(|version| &version.number);
        let numbers = self.numbers(numbers, ["version number", "versions"]);
        let versions = program.versions.iter().zip(numbers);
        let versions: Vec<Version> = versions
            .map(|(version, number)| self.version(version, number))
            .collect();
        let mut numbers =
            std::iter::once(&program.number).chain(program.versions.iter().map(|it| &it.number));
        self.programs.push(ProgramIdentity {
            name: definition.name.clone(),
            number: program.number.span,
            is_foreign: numbers.any(|number| self.foreign.has(number)),
        });
        self.schema.programs.push(Program {
            name: definition.name.text.clone(),
            doc: definition.doc.clone(),
            origin: self.sources.origin(definition.name.span),
            number: number.unwrap_or_default(),
            versions,
        });
    }

    fn version(&mut self, version: &ast::VersionDef, number: u32) -> Version {
        self.refuse_twice(
            "procedure",
            version.procedures.iter().map(|procedure| &procedure.name),
        );
        let numbers = version.procedures.iter().map(|procedure| &procedure.number);
        let numbers = self.numbers(numbers, ["procedure number", "procedures"]);
        let procedures = version.procedures.iter().zip(numbers);
        let procedures: Vec<Procedure> = procedures
            .map(|(procedure, number)| self.procedure(procedure, number))
            .collect();
        Version {
            name: version.name.text.clone(),
            doc: version.doc.clone(),
            annotations: self.version_annotations(&version.annotations),
            number,
            procedures,
        }
    }

    fn procedure(&mut self, procedure: &ast::ProcedureDef, number: u32) -> Procedure {
        let names = procedure
            .arguments
            .iter()
            .filter_map(|argument| argument.name.as_ref())
            .chain(&procedure.outputs);
        self.refuse_twice("parameter", names);
        let arguments = procedure.arguments.iter().enumerate();
        if number == 0 && !self.diagnostics.has_errors() {
            self.warn_unless_null(procedure);
        }
        Procedure {
            name: procedure.name.text.clone(),
            doc: procedure.doc.clone(),
            annotations: self.procedure_annotations(procedure),
            number,
            arguments: arguments
                .map(|(index, argument)| self.argument(index, argument))
                .collect(),
            result: procedure.result.as_ref().map(|ty| self.type_use(ty)),
        }
    }

    /// Warns of a procedure 0 that has arguments or a result: by convention it has none (RFC 5531 section 12.1).
    fn warn_unless_null(&mut self, procedure: &ast::ProcedureDef) {
        if procedure.arguments.is_empty() && procedure.result.is_none() {
            return;
        }
        let message = "procedure 0 takes nothing and returns nothing in every program";
        let warning = Diagnostic::warning(procedure.number.span, message)
            .label("servers answer it by themselves")
            .hint("give this procedure another number");
        self.diagnostics.push(warning);
    }

    fn argument(&mut self, index: usize, argument: &ProcedureParameter) -> Field {
        let name = argument.name.as_ref().map(|name| name.text.clone());
        Field {
            name: name.unwrap_or_else(|| format!("arg{}", index + 1)),
            doc: String::new(),
            annotations: FieldAnnotations::default(),
            ty: self.type_use(&argument.ty),
        }
    }

    /// Evaluates a number of 32 bits; `None` if C alone knows it, or if it is invalid, which has been reported.
    fn number_u32(&mut self, expression: &Expression, what: &str) -> Option<u32> {
        let value = self.number(expression, what)?;
        Some(self.u32(value, expression.span, what))
    }

    /// Evaluates the numbers of sibling items, which have to differ. `words` describes one number, and the items.
    fn numbers<'n>(
        &mut self,
        expressions: impl Iterator<Item = &'n Expression> + Clone,
        words: [&str; 2],
    ) -> Vec<u32> {
        let [one, whose] = words;
        let numbers: Vec<Option<u32>> = expressions
            .clone()
            .map(|expression| self.number_u32(expression, one))
            .collect();
        self.refuse_same(whose, numbers.iter().copied().zip(expressions));
        foreign::fill_numbers(&numbers)
    }

    fn refuse_same<'n>(
        &mut self,
        what: &str,
        numbers: impl Iterator<Item = (Option<u32>, &'n Expression)>,
    ) {
        let mut seen: HashMap<u32, Span> = HashMap::new();
        for (number, expression) in numbers {
            let Some(number) = number else { continue };
            if let Some(first) = seen.insert(number, expression.span) {
                let message = format!("two {what} have the number {number}");
                let error = Diagnostic::error(expression.span, message);
                self.diagnostics.push(error.related(first, "the first one"));
            }
        }
    }

    /// Checks that programs have different names. The same program may be spread over several
    /// definitions only if their versions differ.
    pub(super) fn check_programs_apart(&mut self) {
        let programs = std::mem::take(&mut self.programs);
        self.refuse_twice("program", programs.iter().map(|named| &named.name));
        let mut seen: HashMap<(u32, u32), Span> = HashMap::new();
        let mut errors = Vec::new();
        for (program, named) in self.schema.programs.iter().zip(&programs) {
            if named.is_foreign {
                continue;
            }
            let (name, span) = (&named.name, named.number);
            for version in &program.versions {
                let Some(first) = seen.insert((program.number, version.number), span) else {
                    continue;
                };
                if first == span {
                    continue; // two versions of one program, which has been reported
                }
                let message = format!(
                    "program {}, version {} is defined twice, here as `{}`",
                    program.number, version.number, name.text
                );
                errors.push(Diagnostic::error(span, message).related(first, "the first one"));
            }
        }
        errors
            .into_iter()
            .for_each(|error| self.diagnostics.push(error));
    }
}

/// The name and number of a program, to tell programs apart.
pub(super) struct ProgramIdentity {
    name: SpannedName,
    /// The span of its number.
    number: Span,
    /// C alone knows its number, or that of a version.
    is_foreign: bool,
}
