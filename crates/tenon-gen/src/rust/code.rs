//! Statements and expressions of generated functions, and how they are laid out. The layout is
//! that of rustfmt, so that nobody needs to run it.

use crate::writer::Writer;

/// Most columns of a line.
const WIDTH: usize = 100;

/// Columns of one level of indentation.
const INDENT: usize = 4;

/// Most columns of the arguments of a call that stands on one line.
const ARGUMENTS_WIDTH: usize = 60;

/// An expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// Anything that stays on one line.
    Text(String),
    /// `path(arguments)`
    Call(String, Vec<Expr>),
    /// `|parameters| body`
    Closure(&'static str, Box<Block>),
    /// `of.field("name")`
    InField(Box<Expr>, String),
    /// `of?`
    Try(Box<Expr>),
    /// `path { name: value, .. }`
    Struct(&'static str, Vec<(String, Expr)>),
    /// `match on { pattern => .., }`
    Match(Box<Expr>, Vec<(String, Block)>),
}

/// Statements and what they come to.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// In order.
    pub statements: Vec<Statement>,
    /// The value; none is `()`.
    pub value: Option<Expr>,
}

/// A statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `let name = value;`
    Let(String, Expr),
    /// `name = value;`
    Assign(String, Expr),
    /// `value;`
    Do(Expr),
}

impl Expr {
    /// Anything that stays on one line.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// `path(arguments)`
    pub fn call(path: impl Into<String>, arguments: impl IntoIterator<Item = Expr>) -> Self {
        Self::Call(path.into(), arguments.into_iter().collect())
    }

    /// `|parameters| body`
    pub fn closure(parameters: &'static str, body: Block) -> Self {
        Self::Closure(parameters, Box::new(body))
    }

    /// `Ok(value)`
    pub fn ok(value: Expr) -> Self {
        Self::call("Ok", [value])
    }

    /// The expression on one line, if it can stand there.
    fn flat(&self) -> Option<String> {
        Some(match self {
            Self::Text(text) => text.clone(),
            Self::Call(path, arguments) => format!("{path}({})", flat_arguments(arguments)?),
            Self::Closure(parameters, body) => {
                let value = body.value.as_ref().filter(|_| body.statements.is_empty())?;
                format!("{parameters} {}", value.flat()?)
            }
            Self::InField(of, name) => format!("{}.field({name})", of.flat()?),
            Self::Try(of) => format!("{}?", of.flat()?),
            Self::Struct(..) | Self::Match(..) => return None,
        })
    }

    /// Writes the expression between `before` and `after`, on as many lines as it needs.
    fn write(&self, w: &mut Writer, before: &str, after: &str) {
        if let Some(flat) = self.flat()
            && w.column() + before.len() + flat.len() + after.len() <= self.width()
        {
            return w.line(format!("{before}{flat}{after}"));
        }
        if self.write_on_next_line(w, before, after) {
            return;
        }
        match self {
            Self::Text(text) => w.line(format!("{before}{text}{after}")),
            Self::Try(of) => of.write(w, before, &format!("?{after}")),
            Self::InField(of, name) => write_in_field(w, of, name, before, after),
            Self::Call(path, arguments) => write_call(w, path, arguments, before, after),
            Self::Closure(parameters, body) => {
                body.write_braced(w, &format!("{before}{parameters}"), after);
            }
            Self::Struct(path, fields) => {
                w.line(format!("{before}{path} {{"));
                w.indented(|w| fields.iter().for_each(|field| write_field(w, field)));
                w.line(format!("}}{after}"));
            }
            Self::Match(on, arms) => {
                on.write(w, &format!("{before}match "), " {");
                w.indented(|w| arms.iter().for_each(|arm| write_arm(w, arm)));
                w.line(format!("}}{after}"));
            }
        }
    }
}

impl Expr {
    /// Most columns of the line that the expression is on: chains of calls get less.
    fn width(&self) -> usize {
        match self {
            Self::InField(..) => WIDTH - 2,
            Self::Try(of) => of.width(),
            _ => WIDTH,
        }
    }

    /// Writes the expression behind `name =` on the next line, if it fits there as a whole.
    fn write_on_next_line(&self, w: &mut Writer, before: &str, after: &str) -> bool {
        let (Some(flat), Some(name)) = (self.flat(), before.strip_suffix(' ')) else {
            return false;
        };
        let fits = w.column() + INDENT + flat.len() + after.len() <= WIDTH;
        if fits && name.ends_with('=') {
            w.line(name);
            w.indented(|w| w.line(format!("{flat}{after}")));
        }
        fits && name.ends_with('=')
    }
}

impl Block {
    /// Only a value.
    pub fn value(value: Expr) -> Self {
        Self {
            statements: Vec::new(),
            value: Some(value),
        }
    }

    /// Writes the statements and the value, a line or more each.
    pub fn write(&self, w: &mut Writer) {
        for statement in &self.statements {
            match statement {
                Statement::Let(name, value) => value.write(w, &format!("let {name} = "), ";"),
                Statement::Assign(name, value) => value.write(w, &format!("{name} = "), ";"),
                Statement::Do(value @ Expr::Match(..)) => value.write(w, "", ""),
                Statement::Do(value) => value.write(w, "", ";"),
            }
        }
        if let Some(value) = &self.value {
            value.write(w, "", "");
        }
    }

    fn write_braced(&self, w: &mut Writer, before: &str, after: &str) {
        w.line(format!("{before} {{"));
        w.indented(|w| self.write(w));
        w.line(format!("}}{after}"));
    }
}

fn flat_arguments(arguments: &[Expr]) -> Option<String> {
    let flat: Option<Vec<_>> = arguments.iter().map(Expr::flat).collect();
    let flat = flat?.join(", ");
    (flat.len() <= ARGUMENTS_WIDTH).then_some(flat)
}

/// `of.field(name)`, the call on a line of its own.
fn write_in_field(w: &mut Writer, of: &Expr, name: &str, before: &str, after: &str) {
    let fits = |flat: String| w.column() + before.len() + flat.len() <= WIDTH;
    let is_one_line = of.flat().is_some_and(fits);
    of.write(w, before, "");
    let call = format!(".field({name}){after}");
    match is_one_line {
        true => w.indented(|w| w.line(call)),
        false => w.line(call),
    }
}

/// A call on several lines: either only its last argument, a closure, needs them, or each
/// argument gets its own.
fn write_call(w: &mut Writer, path: &str, arguments: &[Expr], before: &str, after: &str) {
    if let [first @ .., last] = arguments
        && !first
            .iter()
            .any(|argument| matches!(argument, Expr::Closure(..)))
        && let (Some(head), Some(body)) = (flat_arguments(first), last.tail())
    {
        let separator = if head.is_empty() { "" } else { ", " };
        let head = format!("{before}{path}({head}{separator}");
        if w.column() + head.len() + body.len() <= WIDTH {
            return last.write_tail(w, &head, &format!("){after}"));
        }
    }
    w.line(format!("{before}{path}("));
    w.indented(|w| {
        arguments
            .iter()
            .for_each(|argument| argument.write(w, "", ","))
    });
    w.line(format!("){after}"));
}

impl Expr {
    /// How the first line of a last argument begins that may run over several.
    fn tail(&self) -> Option<String> {
        match self {
            Self::Closure(parameters, _) => Some(format!("{parameters} {{")),
            Self::Struct(path, _) => Some(format!("{path} {{")),
            _ => None,
        }
    }

    fn write_tail(&self, w: &mut Writer, before: &str, after: &str) {
        match self {
            Self::Closure(parameters, body) => {
                body.write_braced(w, &format!("{before}{parameters}"), after);
            }
            other => other.write(w, before, after),
        }
    }
}

fn write_field(w: &mut Writer, (name, value): &(String, Expr)) {
    match value {
        Expr::Text(text) if text == name => w.line(format!("{name},")),
        value => value.write(w, &format!("{name}: "), ","),
    }
}

fn write_arm(w: &mut Writer, (pattern, body): &(String, Block)) {
    let before = format!("{pattern} =>");
    match (body.statements.as_slice(), &body.value) {
        ([], None) => w.line(format!("{before} {{}}")),
        ([], Some(value)) => {
            let width = |flat: String| w.column() + before.len() + 1 + flat.len() + 1;
            match value.flat().map(width).is_none_or(|width| width > WIDTH) && !value.hugs() {
                true => body.write_braced(w, &before, ""),
                false => value.write(w, &format!("{before} "), ","),
            }
        }
        _ => body.write_braced(w, &before, ""),
    }
}

impl Expr {
    /// Whether the expression stays behind a `=>` though it takes several lines.
    fn hugs(&self) -> bool {
        match self {
            Self::Call(..) | Self::Struct(..) | Self::Match(..) => true,
            Self::Try(of) => of.hugs(),
            Self::InField(of, _) => of.flat().is_none(),
            Self::Text(_) | Self::Closure(..) => false,
        }
    }
}
