//! Statements and expressions of generated functions, and how they are laid out. The layout is
//! that of rustfmt, so that nobody needs to run it.

use crate::writer::{Writer, literal};

/// Most columns of a line.
const WIDTH: usize = 100;

/// Most columns of the fields of a literal that stands on one line.
const LITERAL_WIDTH: usize = 18;

/// Columns of one level of indentation.
const INDENT: usize = 4;

/// Most columns of the arguments of a call that stands on one line, if there are several.
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
    /// `return of`
    Return(Box<Expr>),
    /// `path { name: value, .. }`
    Struct(String, Vec<(String, Expr)>),
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
            Self::InField(of, name) => format!("{}.field({})", of.flat()?, literal(name)),
            Self::Try(of) => format!("{}?", of.flat()?),
            Self::Return(value) => format!("return {}", value.flat()?),
            Self::Struct(path, fields) => format!("{path} {{ {} }}", flat_fields(fields)?),
            Self::Match(..) => return None,
        })
    }

    /// Writes the expression between `before` and `after`, on as many lines as it needs.
    fn write(&self, w: &mut Writer, before: &str, after: &str) {
        if let Some(flat) = self.flat()
            && w.column() + before.len() + flat.len() + after.len() <= self.width()
        {
            return w.line(format!("{before}{flat}{after}"));
        }
        if !self.write_on_next_line(w, before, after) {
            self.write_broken(w, before, after);
        }
    }

    /// Writes the expression on several lines, if it can be broken.
    fn write_broken(&self, w: &mut Writer, before: &str, after: &str) {
        match self {
            Self::Text(text) => w.line(format!("{before}{text}{after}")),
            Self::Try(of) => of.write_broken(w, before, &format!("?{after}")),
            Self::InField(of, name) => write_in_field(w, of, name, before, after),
            Self::Return(of) => of.write(w, &format!("{before}return "), after),
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

/// What stands before the body of a function.
#[derive(Debug, Clone)]
pub struct Head {
    /// Everything up to the name.
    pub name: String,
    /// The parameters with their types.
    pub parameters: Vec<String>,
    /// The type of the result.
    pub result: String,
}

impl Head {
    /// Writes the head and `after`, on one line if there is room.
    pub fn write(&self, w: &mut Writer, after: &str) {
        let (name, result) = (&self.name, &self.result);
        let flat = format!("{name}({}) -> {result}{after}", self.parameters.join(", "));
        match w.column() + flat.len() {
            // Where the `;` alone would be too much, rustfmt moves the result to the next line.
            WIDTH if after == ";" => {
                w.line(format!("{name}({})", self.parameters.join(", ")));
                return w.line(format!("-> {result};"));
            }
            0..=WIDTH => return w.line(flat),
            _ => {}
        }
        w.line(format!("{name}("));
        w.indented(|w| {
            for parameter in &self.parameters {
                w.line(format!("{parameter},"));
            }
        });
        w.line(format!(") -> {result}{after}"));
    }

    /// Writes the head and the body.
    pub fn write_function(&self, w: &mut Writer, body: &Block) {
        self.write(w, " {");
        w.indented(|w| body.write(w));
        w.line("}");
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
        match &self.value {
            Some(value @ Expr::Return(_)) => value.write(w, "", ";"),
            Some(value) => value.write(w, "", ""),
            None => {}
        }
    }

    fn write_braced(&self, w: &mut Writer, before: &str, after: &str) {
        w.line(format!("{before} {{"));
        w.indented(|w| self.write(w));
        w.line(format!("}}{after}"));
    }
}

/// The fields of a literal that is short enough for one line.
fn flat_fields(fields: &[(String, Expr)]) -> Option<String> {
    let flat = fields.iter().map(|(name, value)| match value {
        Expr::Text(text) if text == name => Some(name.clone()),
        value => Some(format!("{name}: {}", value.flat()?)),
    });
    let flat = flat.collect::<Option<Vec<_>>>()?.join(", ");
    (flat.len() <= LITERAL_WIDTH).then_some(flat)
}

fn flat_arguments(arguments: &[Expr]) -> Option<String> {
    let flat: Option<Vec<_>> = arguments.iter().map(Expr::flat).collect();
    let flat = flat?.join(", ");
    let is_chain = matches!(arguments, [only] if !only.is_call());
    (flat.len() <= ARGUMENTS_WIDTH || is_chain).then_some(flat)
}

/// `of.field(name)`, the call on a line of its own.
fn write_in_field(w: &mut Writer, of: &Expr, name: &str, before: &str, after: &str) {
    let call = format!(".field({}){after}", literal(name));
    let width = |flat: String| w.column() + flat.len();
    let width = of.flat().map_or(usize::MAX, width);
    if before.ends_with("= ") && width > WIDTH - before.len() && width <= WIDTH - INDENT {
        w.line(before.trim_end());
        return w.indented(|w| write_in_field(w, of, name, "", after));
    }
    let is_one_line = width <= WIDTH - before.len();
    of.write(w, before, "");
    match is_one_line {
        true => w.indented(|w| w.line(call)),
        false => w.line(call),
    }
}

/// A call on several lines: either only its last argument, a closure, needs them, or each
/// argument gets its own.
fn write_call(w: &mut Writer, path: &str, arguments: &[Expr], before: &str, after: &str) {
    if let [only] = arguments
        && only.is_call()
    {
        return only.write_broken(w, &format!("{before}{path}("), &format!("){after}"));
    }
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
    /// Whether the expression ends with the arguments of a call.
    fn is_call(&self) -> bool {
        match self {
            Self::Call(..) => true,
            Self::Try(of) => of.is_call(),
            _ => false,
        }
    }

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
            let flat = value.flat().map_or(WIDTH, |flat| w.column() + flat.len());
            let fits_behind = flat + before.len() + " ,".len() <= value.width();
            match !fits_behind && flat + INDENT <= value.width() {
                true => body.write_braced(w, &before, ""),
                false => value.write(w, &format!("{before} "), ","),
            }
        }
        _ => body.write_braced(w, &before, ""),
    }
}
