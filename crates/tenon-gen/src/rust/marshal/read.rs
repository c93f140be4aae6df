//! Expressions that read an item, and the names of variables around it.

use super::{ItemOperand, MarshalGenerator};
use crate::rust::code::Expr;

/// An expression and whether it can fail.
pub struct ReadExpr {
    expr: Expr,
    /// It comes to a `Result`.
    fallible: bool,
    /// A failure inside of it is handed on.
    pub leaves: bool,
}

impl ReadExpr {
    pub fn sure(expr: Expr) -> Self {
        Self::value_of(expr, false)
    }

    pub fn fallible(expr: Expr) -> Self {
        Self {
            fallible: true,
            ..Self::value_of(expr, true)
        }
    }

    /// An expression that comes to a value, or leaves the function.
    pub fn value_of(expr: Expr, leaves: bool) -> Self {
        let fallible = false;
        Self {
            expr,
            fallible,
            leaves,
        }
    }

    /// The value itself, a failure handed on.
    pub fn value(self) -> Expr {
        match self.fallible {
            true => Expr::Try(Box::new(self.expr)),
            false => self.expr,
        }
    }

    pub fn result(self) -> Expr {
        match self.fallible {
            true => self.expr,
            false => Expr::ok(self.expr),
        }
    }

    pub fn labelled(self, with: MarshalGenerator<'_>, item: &ItemOperand) -> Self {
        match self.fallible {
            true => Self::fallible(with.labelled(self.expr, item.label.as_ref())),
            false => self,
        }
    }
}

/// Names of the variables for the blocks of a body.
pub struct BlockNames {
    /// The number of names that were given; none if all are alike.
    given: Option<usize>,
}

impl BlockNames {
    /// A name for each block: all of them are at hand to the end of the body.
    pub fn numbered() -> Self {
        Self { given: Some(0) }
    }

    /// The same name for each block, which hides the one before.
    pub fn alike() -> Self {
        Self { given: None }
    }

    /// Returns the name of the next block.
    pub fn next(&mut self) -> String {
        match &mut self.given {
            None => BLOCK.to_owned(),
            Some(given) => {
                *given += 1;
                match *given {
                    1 => BLOCK.to_owned(),
                    number => format!("{BLOCK}_{number}"),
                }
            }
        }
    }
}

/// The prefix of the name of a variable for a block.
pub const BLOCK: &str = "block";

/// Returns whether a variable of this name is for a block.
fn is_of_a_block(name: &str) -> bool {
    match name.strip_prefix(BLOCK) {
        Some("") => true,
        Some(further) => further
            .strip_prefix('_')
            .is_some_and(|number| number.parse::<usize>().is_ok()),
        None => false,
    }
}

/// A field's name as that of a variable, out of the way of those that the code itself has.
pub fn local_name(field: &str) -> String {
    match field {
        "input" | "value" => format!("{field}_"),
        field if is_of_a_block(field) => format!("{field}_"),
        field => field.to_owned(),
    }
}
