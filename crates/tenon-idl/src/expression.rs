//! Constant expressions: of `const`, lengths, labels and numbers, and of `#if`.
//!
//! Values are 128 bits wide, so that everything a signed or unsigned 64-bit constant can be
//! computed from fits; what does not fit has no value, and is an error where one is needed. Nothing wraps around.

use crate::ast::{Expression, ExpressionKind};
use crate::cursor::TokenCursor;
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use crate::token::TokenKind;

/// The binary operators with their precedences.
const BINARY: &[(&str, u8)] = &[
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<", 7),
    (">", 7),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// The context of an expression, which decides the lowest precedence of its operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpressionContext {
    /// All operators are allowed.
    Anywhere,
    /// Between `<` and `>`, where `>` is the end; parentheses lift it.
    Angles,
}

impl ExpressionContext {
    fn strength_min(self) -> u8 {
        match self {
            ExpressionContext::Anywhere => 1,
            ExpressionContext::Angles => 9,
        }
    }
}

/// Parses an expression at the cursor. `nesting_max` bounds parentheses and unary operators.
pub(crate) fn parse(
    cursor: &mut TokenCursor<'_>,
    within: ExpressionContext,
    nesting_max: usize,
) -> Result<Expression, Diagnostic> {
    binary(cursor, within.strength_min(), nesting_max)
}

/// Parses binary operators by precedence climbing. A chain of operators is a loop, but the tree it builds leans to the
/// left and is as deep as the chain is long, so each operator costs a level of nesting, too.
fn binary(
    cursor: &mut TokenCursor<'_>,
    strength_min: u8,
    levels: usize,
) -> Result<Expression, Diagnostic> {
    let mut left = unary(cursor, levels)?;
    let mut levels = levels;
    while let Some((operator, strength)) = operator_at(cursor, strength_min) {
        levels = deeper(levels, cursor.peek().span)?;
        cursor.advance();
        let right = binary(cursor, strength + 1, levels)?;
        left = Expression {
            span: left.span.to(right.span),
            kind: ExpressionKind::Binary(operator, Box::new(left), Box::new(right)),
        };
    }
    Ok(left)
}

fn operator_at(cursor: &TokenCursor<'_>, strength_min: u8) -> Option<(&'static str, u8)> {
    BINARY
        .iter()
        .copied()
        .find(|(mark, strength)| *strength >= strength_min && cursor.peek().is(mark))
}

fn unary(cursor: &mut TokenCursor<'_>, levels: usize) -> Result<Expression, Diagnostic> {
    let start = cursor.peek().span;
    let operators = ["-", "+", "~", "!"];
    let Some(operator) = operators.into_iter().find(|mark| cursor.eat(mark)) else {
        return primary(cursor, levels);
    };
    let operand = unary(cursor, deeper(levels, start)?)?;
    Ok(Expression {
        span: start.to(operand.span),
        kind: ExpressionKind::Unary(operator, Box::new(operand)),
    })
}

fn primary(cursor: &mut TokenCursor<'_>, levels: usize) -> Result<Expression, Diagnostic> {
    let token = cursor.peek();
    let text = cursor.text(token);
    let kind = match token.kind {
        TokenKind::Number => number(text, token.span)?,
        TokenKind::Character => ExpressionKind::Number(character(text, token.span)?),
        TokenKind::Text => ExpressionKind::Text(text[1..text.len() - 1].to_string()),
        TokenKind::Identifier | TokenKind::Punctuation("::") => return path(cursor),
        TokenKind::Defined(yes) => ExpressionKind::Number(i128::from(yes)),
        TokenKind::Punctuation("(") => return parenthesised(cursor, levels),
        _ => return Err(expected_value(cursor)),
    };
    cursor.advance();
    Ok(Expression {
        span: token.span,
        kind,
    })
}

/// The name of a constant.
fn path(cursor: &mut TokenCursor<'_>) -> Result<Expression, Diagnostic> {
    let name = cursor.path().ok_or_else(|| expected_value(cursor))?;
    Ok(Expression {
        span: name.span,
        kind: ExpressionKind::Name(name.text),
    })
}

fn parenthesised(cursor: &mut TokenCursor<'_>, levels: usize) -> Result<Expression, Diagnostic> {
    let open = cursor.advance().span;
    let inner = binary(
        cursor,
        ExpressionContext::Anywhere.strength_min(),
        deeper(levels, open)?,
    )?;
    if !cursor.eat(")") {
        let message = format!("expected `)`, found {}", cursor.describe());
        return Err(Diagnostic::error(cursor.peek().span, message).related(open, "opened here"));
    }
    Ok(inner)
}

fn expected_value(cursor: &TokenCursor<'_>) -> Diagnostic {
    let message = format!("expected a number or a name, found {}", cursor.describe());
    Diagnostic::error(cursor.peek().span, message)
}

fn deeper(levels: usize, span: Span) -> Result<usize, Diagnostic> {
    levels.checked_sub(1).ok_or_else(|| {
        Diagnostic::error(span, "this expression is nested too deeply")
            .hint("split it into several constants")
    })
}

/// Parses a number as C writes it: `0x`, octal with a leading zero, decimal, `1'000`; the suffixes `u` and `l`
/// are ignored.
fn number(text: &str, span: Span) -> Result<ExpressionKind, Diagnostic> {
    let lower = text.to_ascii_lowercase().replace('\'', "");
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (lower.as_str(), 10),
    };
    let digits = digits.trim_end_matches(['u', 'l']);
    if digits.is_empty() && radix == 8 {
        return Ok(ExpressionKind::Number(0));
    }
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        let message = format!("this is not {}", radix_name(radix));
        return Err(Diagnostic::error(span, message));
    }
    let value = i128::from_str_radix(digits, radix);
    Ok(value.map_or(ExpressionKind::Huge, ExpressionKind::Number))
}

fn radix_name(radix: u32) -> &'static str {
    match radix {
        16 => "a hexadecimal number",
        8 => "an octal number (a leading 0 makes it one)",
        _ => "a decimal number",
    }
}

fn character(text: &str, span: Span) -> Result<i128, Diagnostic> {
    let inner = &text[1..text.len() - 1];
    let mut chars = inner.chars();
    let value = match (chars.next(), chars.next(), chars.next()) {
        (Some(char), None, _) => Some(char),
        (Some('\\'), Some(escape), None) => escaped(escape),
        _ => None,
    };
    value
        .map(|char| i128::from(u32::from(char)))
        .ok_or_else(|| {
            Diagnostic::error(span, "this is not one character").hint(
                "write a single character or one of \\n \\t \\r \\0 \\\\ \\' between the quotes",
            )
        })
}

fn escaped(escape: char) -> Option<char> {
    match escape {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '0' => Some('\0'),
        '\\' | '\'' | '"' => Some(escape),
        _ => None,
    }
}

/// The reason why an expression has no value.
#[derive(Debug)]
pub(crate) enum EvaluationError {
    /// A name in it is not defined.
    Undefined(Span, String),
    /// It is invalid in itself; the diagnostic says how.
    Wrong(Box<Diagnostic>),
    /// It exceeds every type of the language.
    Huge(Span),
    /// It is invalid, and that has been reported.
    Reported,
}

impl From<Diagnostic> for EvaluationError {
    fn from(diagnostic: Diagnostic) -> EvaluationError {
        EvaluationError::Wrong(Box::new(diagnostic))
    }
}

/// Evaluates an expression; `name` looks the values of names up.
pub(crate) fn evaluate(
    expression: &Expression,
    name: &mut dyn FnMut(&str, Span) -> Result<i128, EvaluationError>,
) -> Result<i128, EvaluationError> {
    let span = expression.span;
    match &expression.kind {
        ExpressionKind::Number(number) => Ok(*number),
        ExpressionKind::Huge => Err(EvaluationError::Huge(span)),
        ExpressionKind::Name(text) => name(text, span),
        ExpressionKind::Text(_) => {
            Err(Diagnostic::error(span, "expected a number, found a string").into())
        }
        ExpressionKind::Unary(operator, operand) => {
            let operand = evaluate(operand, name)?;
            unary_value(operator, operand).ok_or(EvaluationError::Huge(span))
        }
        ExpressionKind::Binary(operator, left, right) => {
            let left = evaluate(left, name)?;
            // C's `&&` and `||` do not evaluate their right side if the left one decides.
            match (*operator, left != 0) {
                ("&&", false) => return Ok(0),
                ("||", true) => return Ok(1),
                _ => {}
            }
            let right = evaluate(right, name)?;
            if matches!(*operator, "/" | "%") && right == 0 {
                return Err(Diagnostic::error(span, "division by zero").into());
            }
            binary_value(operator, left, right).ok_or(EvaluationError::Huge(span))
        }
    }
}

fn unary_value(operator: &str, operand: i128) -> Option<i128> {
    match operator {
        "-" => operand.checked_neg(),
        "~" => Some(!operand),
        "!" => Some(i128::from(operand == 0)),
        _ => Some(operand),
    }
}

fn binary_value(operator: &str, left: i128, right: i128) -> Option<i128> {
    let shift = u32::try_from(right).ok().filter(|bits| *bits < 64);
    match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => left.checked_mul(1 << shift?),
        ">>" => Some(left >> shift?),
        "&" => Some(left & right),
        "^" => Some(left ^ right),
        "|" => Some(left | right),
        _ => Some(i128::from(compare(operator, left, right))),
    }
}

fn compare(operator: &str, left: i128, right: i128) -> bool {
    match operator {
        "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        ">" => left > right,
        "<=" => left <= right,
        ">=" => left >= right,
        "&&" => left != 0 && right != 0,
        _ => left != 0 || right != 0,
    }
}
