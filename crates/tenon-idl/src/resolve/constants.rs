//! The values of `const` definitions and enum members. Each is computed when it is first asked
//! for, so that it may be used in front of its definition.

use std::collections::HashMap;

use tenon_schema::ConstantValue;

use crate::ast::{Body, Definition, DefinitionKind, Expression, ExpressionKind, Member, Name};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::expression::{self, NoValue};
use crate::source::{Sources, Span};

/// Constants that are made of constants, and so on, beyond this are no honest interface.
const CHAIN_MAX: usize = 100;

/// All names that have a value.
pub(super) struct Constants<'a> {
    sources: &'a Sources,
    entries: Vec<Entry>,
    names: HashMap<String, usize>,
    /// How many constants are being computed, one for the other.
    depth: usize,
}

struct Entry {
    name: Name,
    formula: Formula,
    state: State,
    /// Which enum it is a member of, by the enum's name.
    of: Option<String>,
}

enum Formula {
    Given(Expression),
    /// An enum member without a value: the one in front and one more.
    Next,
    /// The first member of an enum, without a value.
    Zero,
}

#[derive(Clone)]
enum State {
    Unknown,
    Computing,
    Known(i128),
    Undefined(Span, String),
    Reported,
}

impl<'a> Constants<'a> {
    pub(super) fn collect(
        definitions: &[Definition],
        sources: &'a Sources,
        diagnostics: &mut Diagnostics,
    ) -> Constants<'a> {
        let mut constants = Constants {
            sources,
            entries: Vec::new(),
            names: HashMap::new(),
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
                let formula = Formula::Given(constant.value.clone());
                twice.extend(self.add(&definition.name, formula, None));
            }
            DefinitionKind::Type(Body::Enum(members)) => {
                for (index, member) in members.iter().enumerate() {
                    let formula = member_formula(member, index);
                    let of = Some(definition.name.text.clone());
                    twice.extend(self.add(&member.name, formula, of));
                }
            }
            _ => {}
        }
    }

    /// Takes an entry in; answers both entries if there is one of its name already.
    fn add(&mut self, name: &Name, formula: Formula, of: Option<String>) -> Option<(usize, usize)> {
        let index = self.entries.len();
        self.entries.push(Entry {
            name: name.clone(),
            formula,
            state: State::Unknown,
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

    /// The same name twice is an error, unless it means the same both times.
    fn report_twice(&mut self, first: usize, second: usize, diagnostics: &mut Diagnostics) {
        let same_enum =
            self.entries[first].of.is_some() && self.entries[first].of == self.entries[second].of;
        let values = (
            self.entry(first, diagnostics),
            self.entry(second, diagnostics),
        );
        let name = &self.entries[second].name;
        let message = format!("`{}` is defined twice", name.text);
        let diagnostic = match values {
            (Ok(one), Ok(other)) if one == other && !same_enum => {
                Diagnostic::warning(name.span, message).label("with the same value")
            }
            _ => Diagnostic::error(name.span, message),
        };
        diagnostics.push(diagnostic.related(self.entries[first].name.span, "the first definition"));
    }

    /// The enum that `name` is a member of.
    pub(super) fn enum_of(&self, name: &str) -> Option<&str> {
        let index = self.names.get(name)?;
        self.entries[*index].of.as_deref()
    }

    /// Computes `expression`. What is wrong in it is reported, undefined names are not.
    pub(super) fn value(
        &mut self,
        expression: &Expression,
        diagnostics: &mut Diagnostics,
    ) -> Result<i128, NoValue> {
        let result = expression::evaluate(expression, &mut |name, span| {
            self.named(name, span, diagnostics)
        });
        result.map_err(|error| match error {
            NoValue::Wrong(diagnostic) => {
                diagnostics.push(*diagnostic);
                NoValue::Reported
            }
            other => other,
        })
    }

    /// Computes what a macro stands for, if it has a value at all.
    pub(super) fn of_macro(&mut self, expression: &Expression) -> Option<i128> {
        let mut unheard = Diagnostics::new();
        self.value(expression, &mut unheard).ok()
    }

    /// The value of a `const`.
    pub(super) fn of_constant(
        &mut self,
        definition: &Definition,
        expression: &Expression,
        diagnostics: &mut Diagnostics,
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
                check_64_bits(value, expression.span, diagnostics);
                ConstantValue::Number(value)
            }
            Err(NoValue::Undefined(span, name)) => {
                let message = format!("`{name}` is not defined in this interface");
                let warning = Diagnostic::warning(span, message);
                let warning = warning.label("this constant is left to the target language");
                diagnostics.push(warning.hint(format!("give it a value with `-D {name}=..`")));
                written()
            }
            Err(_) => written(),
        }
    }

    /// The value of a name.
    fn named(
        &mut self,
        name: &str,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Result<i128, NoValue> {
        match (self.names.get(name), name) {
            (Some(index), _) => self.entry(*index, diagnostics),
            // RFC 4506 section 4.4
            (None, "TRUE") => Ok(1),
            (None, "FALSE") => Ok(0),
            _ => Err(NoValue::Undefined(span, name.to_string())),
        }
    }

    fn entry(&mut self, index: usize, diagnostics: &mut Diagnostics) -> Result<i128, NoValue> {
        // Members without values are computed in a loop: there may be thousands in a row.
        let mut first = index;
        while matches!(self.entries[first].formula, Formula::Next)
            && matches!(self.entries[first].state, State::Unknown)
        {
            first -= 1;
        }
        for index in first..index {
            self.compute(index, diagnostics);
        }
        self.compute(index, diagnostics);
        match &self.entries[index].state {
            State::Known(value) => Ok(*value),
            State::Undefined(span, name) => Err(NoValue::Undefined(*span, name.clone())),
            State::Unknown | State::Computing | State::Reported => Err(NoValue::Reported),
        }
    }

    fn compute(&mut self, index: usize, diagnostics: &mut Diagnostics) {
        match self.entries[index].state {
            State::Unknown => {}
            State::Computing => return self.report_cycle(index, diagnostics),
            _ => return,
        }
        let state = match &self.entries[index].formula {
            Formula::Zero => State::Known(0),
            Formula::Next => self.one_more(index),
            Formula::Given(expression) => {
                let expression = expression.clone();
                self.compute_given(index, &expression, diagnostics)
            }
        };
        self.entries[index].state = state;
    }

    fn one_more(&self, index: usize) -> State {
        match &self.entries[index - 1].state {
            // Of a member that is refused, as it is far too big.
            State::Known(value) => State::Known(value.saturating_add(1)),
            State::Undefined(span, name) => State::Undefined(*span, name.clone()),
            _ => State::Reported,
        }
    }

    fn compute_given(
        &mut self,
        index: usize,
        expression: &Expression,
        diagnostics: &mut Diagnostics,
    ) -> State {
        if self.depth >= CHAIN_MAX {
            let error =
                Diagnostic::error(expression.span, "too many constants depend on one another");
            diagnostics.push(error.hint("define them in front of their use"));
            return State::Reported;
        }
        self.entries[index].state = State::Computing;
        self.depth += 1;
        let value = match &expression.kind {
            ExpressionKind::Text(_) => Err(NoValue::Reported),
            _ => self.value(expression, diagnostics),
        };
        self.depth -= 1;
        match value {
            Ok(value) => State::Known(value),
            Err(NoValue::Undefined(span, name)) => State::Undefined(span, name),
            Err(_) => State::Reported,
        }
    }

    fn report_cycle(&mut self, index: usize, diagnostics: &mut Diagnostics) {
        let name = &self.entries[index].name;
        let message = format!("the value of `{}` depends on itself", name.text);
        diagnostics.push(Diagnostic::error(name.span, message));
        self.entries[index].state = State::Reported;
    }
}

fn member_formula(member: &Member, index: usize) -> Formula {
    match (&member.value, index) {
        (Some(value), _) => Formula::Given(value.clone()),
        (None, 0) => Formula::Zero,
        (None, _) => Formula::Next,
    }
}

/// The string that an expression is.
pub(super) fn text(expression: &Expression) -> Option<ConstantValue> {
    match &expression.kind {
        ExpressionKind::Text(text) => Some(ConstantValue::Text(text.clone())),
        _ => None,
    }
}

fn check_64_bits(value: i128, span: Span, diagnostics: &mut Diagnostics) {
    if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) {
        diagnostics.push(Diagnostic::error(
            span,
            "this constant does not fit into 64 bits",
        ));
    }
}
