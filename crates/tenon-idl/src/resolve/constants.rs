//! The values of `const` definitions, of enum members, and of programs, versions and procedures, which are macros
//! in C. Each is computed on first use, so that it may be used in front of its definition.

use std::collections::{HashMap, HashSet};

use tenon_schema::{ConstantValue, local_name};

use crate::ast::{
    Definition, DefinitionKind, EnumeratorDef, Expression, ExpressionKind, ProgramDef, SpannedName,
    TypeBody,
};
use crate::diagnostics::{Diagnostic, DiagnosticCollector};
use crate::expression::{self, EvaluationError};
use crate::source::{SourceMap, Span};

use super::{known, namespaces};

/// Length of a chain of constants that depend on one another: longer ones are hostile.
const CHAIN_MAX: usize = 100;

/// Evaluates all names that have a value, lazily.
pub(super) struct ConstantEvaluator<'a> {
    sources: &'a SourceMap,
    entries: Vec<ConstantEntry>,
    names: HashMap<String, usize>,
    /// Members of enums, qualified with the names of the enums.
    members: HashMap<String, usize>,
    /// Names of members of several enums with different values: one of the enums has to be named.
    ambiguous: HashSet<String>,
    /// Programs, versions and procedures. Several versions may have a procedure of the same name.
    numbered: HashMap<String, NumberedName>,
    /// Number of constants that are being computed, each for the one before.
    depth: usize,
}

/// All programs, versions and procedures of one name.
#[derive(Default)]
struct NumberedName {
    entries: Vec<usize>,
    /// One that has another number than the first, once it has been searched for.
    other: Option<Option<usize>>,
}

struct ConstantEntry {
    name: SpannedName,
    initializer: ConstantInitializer,
    state: EvaluationState,
    /// The enum that it is a member of.
    of: Option<EnumIdentity>,
}

/// An enum by its name and the position of its definition, as it may be defined again.
#[derive(Clone, PartialEq)]
struct EnumIdentity {
    name: String,
    position: usize,
}

enum ConstantInitializer {
    Given(Expression),
    /// An enum member without a value: one more than that of the member in front.
    Next,
    /// The first member of an enum, without a value.
    Zero,
}

#[derive(Clone)]
enum EvaluationState {
    Unknown,
    Computing,
    Known(i128),
    Undefined(Span, String),
    Huge(Span),
    Reported,
}

impl<'a> ConstantEvaluator<'a> {
    pub(super) fn collect(
        definitions: &[Definition],
        sources: &'a SourceMap,
        diagnostics: &mut DiagnosticCollector,
    ) -> ConstantEvaluator<'a> {
        let mut constants = ConstantEvaluator {
            sources,
            entries: Vec::new(),
            names: HashMap::new(),
            members: HashMap::new(),
            ambiguous: HashSet::new(),
            numbered: HashMap::new(),
            depth: 0,
        };
        let mut twice = Vec::new();
        for definition in definitions {
            constants.collect_definition(definition, &mut twice);
        }
        for (first, second) in twice {
            constants.report_twice(first, second, diagnostics);
        }
        constants
    }

    fn collect_definition(&mut self, definition: &Definition, twice: &mut Vec<(usize, usize)>) {
        match &definition.kind {
            DefinitionKind::Constant(constant) if !constant.from_macro => {
                let initializer = ConstantInitializer::Given(constant.value.clone());
                twice.extend(self.add(&definition.name, initializer, None));
            }
            DefinitionKind::Type(TypeBody::Enum(members)) => {
                for (index, member) in members.iter().enumerate() {
                    let initializer = member_initializer(member, index);
                    let of = EnumIdentity {
                        name: definition.name.text.clone(),
                        position: definition.position,
                    };
                    let name = SpannedName {
                        text: namespaces::path(&definition.namespace, &member.name.text),
                        span: member.name.span,
                    };
                    let inside = format!("{}::{}", of.name, member.name.text);
                    self.members.entry(inside).or_insert(self.entries.len());
                    twice.extend(self.add(&name, initializer, Some(of)));
                }
            }
            DefinitionKind::Program(program) => self.collect_program(definition, program),
            _ => {}
        }
    }

    fn collect_program(&mut self, definition: &Definition, program: &ProgramDef) {
        self.add_numbered(&definition.name, &program.number);
        for version in &program.versions {
            let procedures = version.procedures.iter().map(|of| (&of.name, &of.number));
            let all = std::iter::once((&version.name, &version.number)).chain(procedures);
            for (name, number) in all {
                let text = namespaces::path(&definition.namespace, &name.text);
                let span = name.span;
                self.add_numbered(&SpannedName { text, span }, number);
            }
        }
    }

    fn add_numbered(&mut self, name: &SpannedName, number: &Expression) {
        let index = self.entries.len();
        self.entries.push(ConstantEntry {
            name: name.clone(),
            initializer: ConstantInitializer::Given(number.clone()),
            state: EvaluationState::Unknown,
            of: None,
        });
        let numbered = self.numbered.entry(name.text.clone());
        numbered.or_default().entries.push(index);
    }

    /// Adds an entry; returns both entries if there is one of its name already.
    fn add(
        &mut self,
        name: &SpannedName,
        initializer: ConstantInitializer,
        of: Option<EnumIdentity>,
    ) -> Option<(usize, usize)> {
        let index = self.entries.len();
        self.entries.push(ConstantEntry {
            name: name.clone(),
            initializer,
            state: EvaluationState::Unknown,
            of,
        });
        match self.names.get(&name.text) {
            Some(first) => Some((*first, index)),
            None => {
                self.names.insert(name.text.clone(), index);
                None
            }
        }
    }

    /// Reports a name that is defined twice: an error, unless it means the same both times, or the members of two enums
    /// have it.
    fn report_twice(&mut self, first: usize, second: usize, diagnostics: &mut DiagnosticCollector) {
        let enums = [first, second].map(|index| self.entries[index].of.clone());
        let values = (
            self.entry(first, diagnostics),
            self.entry(second, diagnostics),
        );
        let name = &self.entries[second].name;
        let message = format!("`{}` is defined twice", name.text);
        let is_same = matches!(values, (Ok(one), Ok(other)) if one == other);
        let diagnostic = match enums {
            [Some(one), Some(other)] if one == other => Diagnostic::error(name.span, message),
            // The enum itself is reported as defined twice.
            [Some(one), Some(other)] if one.name == other.name => return,
            _ if is_same => Diagnostic::warning(name.span, message).label("with the same value"),
            [Some(one), Some(other)] => {
                self.ambiguous.insert(name.text.clone());
                let local = local_name(&name.text);
                let [one, other] = [one, other].map(|of| format!("`{}::{local}`", of.name));
                let hint = format!("write {one} or {other} where one is used; C cannot have both");
                Diagnostic::warning(name.span, message).hint(hint)
            }
            _ => Diagnostic::error(name.span, message),
        };
        diagnostics.push(diagnostic.related(self.entries[first].name.span, "the first definition"));
    }

    /// Returns the enum that `name` is a member of.
    pub(super) fn enum_of(&self, name: &str) -> Option<&str> {
        let index = self.members.get(name).or_else(|| self.names.get(name))?;
        self.entries[*index].of.as_ref().map(|of| of.name.as_str())
    }

    /// Returns the qualified name of `name` as a member of `of`, if it is one.
    pub(super) fn member(&self, of: &str, name: &str) -> Option<String> {
        let inside = format!("{of}::{}", local_name(name));
        self.members.contains_key(&inside).then_some(inside)
    }

    /// Evaluates `expression`. Errors in it are reported, undefined names are not.
    pub(super) fn value(
        &mut self,
        expression: &Expression,
        diagnostics: &mut DiagnosticCollector,
    ) -> Result<i128, EvaluationError> {
        let result = expression::evaluate(expression, &mut |name, span| {
            self.named(name, span, diagnostics)
        });
        result.map_err(|error| match error {
            EvaluationError::Wrong(diagnostic) => {
                diagnostics.push(*diagnostic);
                EvaluationError::Reported
            }
            other => other,
        })
    }

    /// Evaluates the body of a macro, if it has a value at all.
    pub(super) fn of_macro(&mut self, expression: &Expression) -> Option<i128> {
        let mut unheard = DiagnosticCollector::new();
        self.value(expression, &mut unheard).ok()
    }

    /// Evaluates a `const`.
    pub(super) fn of_constant(
        &mut self,
        definition: &Definition,
        expression: &Expression,
        diagnostics: &mut DiagnosticCollector,
    ) -> ConstantValue {
        if let Some(text) = text(expression) {
            return text;
        }
        let written = || ConstantValue::Unresolved(self.sources.text(expression.span).to_string());
        let index = self.names.get(&definition.name.text).copied();
        let result = match index {
            Some(index) => self.entry(index, diagnostics),
            None => self.value(expression, diagnostics),
        };
        match result {
            Ok(value) => {
                warn_of_64_bits(value, expression.span, diagnostics);
                ConstantValue::Number(value)
            }
            Err(EvaluationError::Huge(_)) => {
                warn_of_64_bits(i128::MAX, expression.span, diagnostics);
                written()
            }
            Err(EvaluationError::Undefined(span, name)) => {
                let message = format!("`{name}` is not defined in this interface");
                let warning = Diagnostic::warning(span, message);
                let warning = warning.label("this constant is left to the target language");
                diagnostics.push(warning.hint(remedy(&name)));
                written()
            }
            Err(_) => written(),
        }
    }

    /// Evaluates a name.
    fn named(
        &mut self,
        name: &str,
        span: Span,
        diagnostics: &mut DiagnosticCollector,
    ) -> Result<i128, EvaluationError> {
        if self.ambiguous.contains(name) {
            let message = format!("`{name}` is a member of several enums");
            let error = Diagnostic::error(span, message);
            let hint = format!("name the enum in front of it: `ENUM::{}`", local_name(name));
            return Err(error.hint(hint).into());
        }
        if let Some(index) = self.names.get(name).or_else(|| self.members.get(name)) {
            return self.entry(*index, diagnostics);
        }
        if self.numbered.contains_key(name) {
            return self.number_of(name, span, diagnostics);
        }
        let undefined = || EvaluationError::Undefined(span, name.to_string());
        known::number_called(name).ok_or_else(undefined)
    }

    /// Returns the number of all programs, versions and procedures that are called `name`.
    fn number_of(
        &mut self,
        name: &str,
        span: Span,
        diagnostics: &mut DiagnosticCollector,
    ) -> Result<i128, EvaluationError> {
        let numbered = self.numbered.entry(name.to_owned()).or_default();
        let (entries, known) = match numbered.other {
            Some(other) => (numbered.entries[..1].to_vec(), Some(other)),
            None => (numbered.entries.clone(), None),
        };
        let first = self.entry(entries[0], diagnostics)?;
        let other = known.unwrap_or_else(|| {
            let mut others = entries.iter().copied();
            others.find(|index| self.entry(*index, diagnostics).is_ok_and(|it| it != first))
        });
        if let Some(numbered) = self.numbered.get_mut(name) {
            numbered.other = Some(other);
        }
        let Some(other) = other else {
            return Ok(first);
        };
        let message = format!("`{name}` is the name of procedures with different numbers");
        let error = Diagnostic::error(span, message).hint("write the number");
        Err(error
            .related(self.entries[other].name.span, "one of them")
            .into())
    }

    fn entry(
        &mut self,
        index: usize,
        diagnostics: &mut DiagnosticCollector,
    ) -> Result<i128, EvaluationError> {
        // Members without values are computed in a loop: there may be thousands in a row.
        let mut first = index;
        while matches!(self.entries[first].initializer, ConstantInitializer::Next)
            && matches!(self.entries[first].state, EvaluationState::Unknown)
        {
            first -= 1;
        }
        for index in first..index {
            self.compute(index, diagnostics);
        }
        self.compute(index, diagnostics);
        match &self.entries[index].state {
            EvaluationState::Known(value) => Ok(*value),
            EvaluationState::Undefined(span, name) => {
                Err(EvaluationError::Undefined(*span, name.clone()))
            }
            EvaluationState::Huge(span) => Err(EvaluationError::Huge(*span)),
            EvaluationState::Unknown | EvaluationState::Computing | EvaluationState::Reported => {
                Err(EvaluationError::Reported)
            }
        }
    }

    fn compute(&mut self, index: usize, diagnostics: &mut DiagnosticCollector) {
        match self.entries[index].state {
            EvaluationState::Unknown => {}
            EvaluationState::Computing => return self.report_cycle(index, diagnostics),
            _ => return,
        }
        let state = match &self.entries[index].initializer {
            ConstantInitializer::Zero => EvaluationState::Known(0),
            ConstantInitializer::Next => self.one_more(index),
            ConstantInitializer::Given(expression) => {
                let expression = expression.clone();
                self.compute_given(index, &expression, diagnostics)
            }
        };
        self.entries[index].state = state;
    }

    fn one_more(&self, index: usize) -> EvaluationState {
        match &self.entries[index - 1].state {
            // Saturates only for a member that is rejected as too big.
            EvaluationState::Known(value) => EvaluationState::Known(value.saturating_add(1)),
            EvaluationState::Undefined(span, name) => {
                EvaluationState::Undefined(*span, name.clone())
            }
            _ => EvaluationState::Reported,
        }
    }

    fn compute_given(
        &mut self,
        index: usize,
        expression: &Expression,
        diagnostics: &mut DiagnosticCollector,
    ) -> EvaluationState {
        if self.depth >= CHAIN_MAX {
            let error =
                Diagnostic::error(expression.span, "too many constants depend on one another");
            diagnostics.push(error.hint("define them in front of their use"));
            return EvaluationState::Reported;
        }
        self.entries[index].state = EvaluationState::Computing;
        self.depth += 1;
        let value = match &expression.kind {
            ExpressionKind::Text(_) => Err(EvaluationError::Reported),
            _ => self.value(expression, diagnostics),
        };
        self.depth -= 1;
        match value {
            Ok(value) => EvaluationState::Known(value),
            Err(EvaluationError::Undefined(span, name)) => EvaluationState::Undefined(span, name),
            Err(EvaluationError::Huge(span)) => EvaluationState::Huge(span),
            Err(_) => EvaluationState::Reported,
        }
    }

    fn report_cycle(&mut self, index: usize, diagnostics: &mut DiagnosticCollector) {
        let name = &self.entries[index].name;
        let message = format!("the value of `{}` depends on itself", name.text);
        diagnostics.push(Diagnostic::error(name.span, message));
        self.entries[index].state = EvaluationState::Reported;
    }
}

fn member_initializer(member: &EnumeratorDef, index: usize) -> ConstantInitializer {
    match (&member.value, index) {
        (Some(value), _) => ConstantInitializer::Given(value.clone()),
        (None, 0) => ConstantInitializer::Zero,
        (None, _) => ConstantInitializer::Next,
    }
}

/// Returns the hint for a name that is not defined.
pub(super) fn remedy(name: &str) -> String {
    match name.rsplit_once("::") {
        Some((namespace, local)) => {
            format!("give it a value with `namespace {namespace} {{ const {local} = ..; }}`")
        }
        None => format!("give it a value with `const {name} = ..;` or `-D {name}=..`"),
    }
}

/// Returns the string that an expression consists of.
pub(super) fn text(expression: &Expression) -> Option<ConstantValue> {
    match &expression.kind {
        ExpressionKind::Text(text) => Some(ConstantValue::Text(text.clone())),
        _ => None,
    }
}

/// Warns of a constant of more than 64 bits: no item of the language has so many. It is useless, but harmless.
fn warn_of_64_bits(value: i128, span: Span, diagnostics: &mut DiagnosticCollector) {
    if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) {
        let warning = Diagnostic::warning(span, "this constant does not fit into 64 bits");
        diagnostics.push(warning.label("no item has so many"));
    }
}
