//! Statements and expressions of generated functions, and their layout. It is that of rustfmt, so
//! that users need not run it.

use crate::writer::{SourceWriter, literal};

/// Most columns of a line.
const WIDTH: usize = 100;

/// Most columns of the fields of a literal that stands on one line.
const LITERAL_WIDTH: usize = 18;

/// Most columns of a chain of several methods that stands on one line.
const CHAIN_WIDTH: usize = 60;

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
    Closure(&'static str, Box<BlockExpr>),
    /// `of.field("name")`
    InField(Box<Expr>, String),
    /// `of.method`
    Then(Box<Expr>, &'static str),
    /// `of?`
    Try(Box<Expr>),
    /// `return of`
    Return(Box<Expr>),
    /// `&[items]`
    Array(Vec<Expr>),
    /// `path { name: value, .. }`
    Struct(String, Vec<(String, Expr)>),
    /// `match on { pattern => .., }`
    Match(Box<Expr>, Vec<(String, BlockExpr)>),
}

/// A block: statements, and the expression of its value.
#[derive(Debug, Clone, Default)]
pub struct BlockExpr {
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
    pub fn closure(parameters: &'static str, body: BlockExpr) -> Self {
        Self::Closure(parameters, Box::new(body))
    }

    /// `Ok(value)`
    pub fn ok(value: Expr) -> Self {
        Self::call("Ok", [value])
    }

    /// The expression on one line, if it can stand there.
    fn flat(&self) -> Option<String> {
        let flat = match self {
            Self::Text(text) => text.clone(),
            Self::Call(path, arguments) => format!("{path}({})", flat_arguments(arguments)?),
            Self::Closure(parameters, body) => {
                let value = body.value.as_ref().filter(|_| body.statements.is_empty())?;
                format!("{parameters} {}", value.flat()?)
            }
            Self::InField(of, name) => format!("{}.field({})", of.unchained()?, literal(name)),
            Self::Then(of, method) => format!("{}.{method}", of.unchained()?),
            Self::Try(of) => format!("{}?", of.unchained()?),
            Self::Return(value) => format!("return {}", value.flat()?),
            Self::Array(items) => format!("&[{}]", flat_arguments(items)?),
            Self::Struct(path, fields) => format!("{path} {{ {} }}", flat_fields(fields)?),
            Self::Match(..) => return None,
        };
        (!self.is_long_chain(&flat)).then_some(flat)
    }

    /// The beginning of a chain on one line, however long.
    fn unchained(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Call(path, arguments) => Some(format!("{path}({})", flat_arguments(arguments)?)),
            Self::InField(of, name) => {
                Some(format!("{}.field({})", of.unchained()?, literal(name)))
            }
            Self::Then(of, method) => Some(format!("{}.{method}", of.unchained()?)),
            other => other.flat(),
        }
    }

    /// Returns whether it is a chain of several methods that gets several lines.
    fn is_long_chain(&self, flat: &str) -> bool {
        // rustfmt counts a `?` at the end twice.
        let tries = flat.len() - flat.trim_end_matches('?').len();
        flat.len() + tries > CHAIN_WIDTH && self.chain().links.len() > 1
    }

    /// Writes a public static that has this value.
    pub fn write_static(&self, w: &mut SourceWriter, name: &str, ty: &str) {
        self.write(w, &format!("pub static {name}: {ty} = "), ";");
    }

    /// Writes a constant of a trait that has this value.
    pub fn write_constant(&self, w: &mut SourceWriter, name: &str, ty: &str) {
        self.write(w, &format!("const {name}: {ty} = "), ";");
    }

    /// Writes the expression between `before` and `after`, on as many lines as it needs.
    fn write(&self, w: &mut SourceWriter, before: &str, after: &str) {
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
    fn write_broken(&self, w: &mut SourceWriter, before: &str, after: &str) {
        let chain = self.chain();
        if chain.links.len() > 1 {
            return chain.write(w, before, after);
        }
        match self {
            Self::Text(text) => w.line(format!("{before}{text}{after}")),
            Self::Try(of) => of.write_broken(w, before, &format!("?{after}")),
            Self::InField(of, name) => write_in_field(w, of, name, before, after),
            Self::Then(of, method) => of.write_broken(w, before, &format!(".{method}{after}")),
            Self::Return(of) => of.write(w, &format!("{before}return "), after),
            Self::Call(path, arguments) => write_call(w, path, arguments, before, after),
            Self::Closure(parameters, body) => {
                body.write_braced(w, &format!("{before}{parameters}"), after);
            }
            Self::Array(items) => {
                w.line(format!("{before}&["));
                w.indented(|w| items.iter().for_each(|item| item.write(w, "", ",")));
                w.line(format!("]{after}"));
            }
            Self::Struct(path, fields) => {
                w.line(format!("{before}{path} {{"));
                w.indented(|w| fields.iter().for_each(|field| write_field(w, field)));
                w.line(format!("}}{after}"));
            }
            Self::Match(on, arms) => {
                write_head_of_match(w, on, &format!("{before}match "));
                w.indented(|w| arms.iter().for_each(|arm| write_arm(w, arm)));
                w.line(format!("}}{after}"));
            }
        }
    }

    /// The methods that are called one behind the other, `?` with each.
    fn chain(&self) -> MethodChain {
        match self {
            Self::Text(text) => MethodChain::of(text),
            Self::Call(path, arguments) => {
                let mut chain = MethodChain::of(path);
                let last = chain.links.last_mut().unwrap_or(&mut chain.root);
                if let Self::Text(path) = last {
                    *last = Self::call(std::mem::take(path), arguments.iter().cloned());
                }
                chain
            }
            Self::InField(of, name) => {
                let mut chain = of.chain();
                let field = format!(".field({})", literal(name));
                chain.links.push(Self::text(field));
                chain
            }
            Self::Then(of, method) => {
                let mut chain = of.chain();
                chain.links.push(Self::text(format!(".{method}")));
                chain
            }
            Self::Try(of) => {
                let mut chain = of.chain();
                let last = chain.links.last_mut().unwrap_or(&mut chain.root);
                *last = Self::Try(Box::new(last.clone()));
                chain
            }
            other => MethodChain {
                root: other.clone(),
                links: Vec::new(),
            },
        }
    }
}

/// Methods that are called one behind the other.
struct MethodChain {
    root: Expr,
    /// Each begins with a dot.
    links: Vec<Expr>,
}

impl MethodChain {
    /// The chain in a text that stays on one line: cut at each dot that is in no brackets.
    fn of(text: &str) -> Self {
        let (mut depth, mut cuts) = (0, Vec::new());
        for (index, char) in text.char_indices() {
            match char {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                '.' if depth == 0 && index > 0 => cuts.push(index),
                _ => {}
            }
        }
        let ends = cuts.iter().skip(1).copied().chain([text.len()]);
        let links = cuts.iter().zip(ends);
        Self {
            root: Expr::text(&text[..cuts.first().copied().unwrap_or(text.len())]),
            links: links
                .map(|(start, end)| Expr::text(&text[*start..end]))
                .collect(),
        }
    }

    /// Writes each method on a line of its own, but for one behind a root that is no wider than
    /// the indentation.
    fn write(mut self, w: &mut SourceWriter, before: &str, after: &str) {
        let root = self.root.flat().unwrap_or_default();
        // A last method with arguments that run over several lines stays behind those before it.
        if let Some(last) = self.links.pop_if(|last| last.flat().is_none()) {
            let before_it: Option<String> = self.links.iter().map(Expr::flat).collect();
            match before_it {
                Some(before_it) if root.len() + before_it.len() < CHAIN_WIDTH => {
                    return last.write_link(w, &format!("{before}{root}{before_it}"), after);
                }
                _ => self.links.push(last),
            }
        }
        let mut links = self.links.into_iter();
        if root.len() + before.len() > INDENT {
            w.line(format!("{before}{root}"));
            return w.indented(|w| write_links(w, links, after));
        }
        let Some(first) = links.next() else { return };
        match first.flat() {
            Some(first) if w.column() + root.len() + first.len() < WIDTH => {
                w.line(format!("{before}{root}{first}"));
                w.indented(|w| write_links(w, links, after));
            }
            _ => {
                first.write_link(w, &format!("{before}{root}"), "");
                write_links(w, links, after);
            }
        }
    }
}

fn write_links(w: &mut SourceWriter, links: impl ExactSizeIterator<Item = Expr>, after: &str) {
    let count = links.len();
    for (index, link) in links.enumerate() {
        let after = if index + 1 == count { after } else { "" };
        match link.flat() {
            Some(flat) if w.column() + flat.len() + after.len() <= WIDTH => {
                w.line(format!("{flat}{after}"));
            }
            _ => link.write_link(w, "", after),
        }
    }
}

impl Expr {
    /// Writes a method of a chain on several lines.
    fn write_link(&self, w: &mut SourceWriter, before: &str, after: &str) {
        match self {
            Self::Try(of) => of.write_link(w, before, &format!("?{after}")),
            Self::Call(path, arguments) => write_call(w, path, arguments, before, after),
            other => w.line(format!(
                "{before}{}{after}",
                other.flat().unwrap_or_default()
            )),
        }
    }
}

/// `match on {`, the brace on a line of its own if the expression needs several.
fn write_head_of_match(w: &mut SourceWriter, on: &Expr, before: &str) {
    match on.flat() {
        Some(flat) if w.column() + before.len() + flat.len() + 2 <= WIDTH => {
            w.line(format!("{before}{flat} {{"));
        }
        _ => {
            on.write_broken(w, before, "");
            w.line("{");
        }
    }
}

impl Expr {
    /// Most columns of the line that the expression is on: some get less.
    fn width(&self) -> usize {
        match self {
            Self::InField(..) => WIDTH - 2,
            Self::Return(_) => WIDTH - 1,
            Self::Try(of) => of.width(),
            _ => WIDTH,
        }
    }

    /// Writes the expression behind `name =` on the next line, if it fits there as a whole.
    fn write_on_next_line(&self, w: &mut SourceWriter, before: &str, after: &str) -> bool {
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

/// The signature of a function: everything before its body.
#[derive(Debug, Clone)]
pub struct FunctionSignature {
    /// Everything up to the name.
    pub name: String,
    /// The parameters with their types.
    pub parameters: Vec<String>,
    /// The type of the result.
    pub result: String,
}

impl FunctionSignature {
    /// Writes the signature and `after`, on one line if there is room.
    pub fn write(&self, w: &mut SourceWriter, after: &str) {
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
        let flat = format!(") -> {result}{after}");
        // In front of a brace rustfmt counts the indentation twice.
        let indentation = if after == " {" { w.column() } else { 0 };
        if indentation + w.column() + flat.len() <= WIDTH {
            return w.line(flat);
        }
        if w.column() + flat.len() - after.len() <= WIDTH && after == " {" {
            w.line(format!(") -> {result}"));
            return w.line("{");
        }
        match generic_arguments(result) {
            Some((path, arguments)) => {
                w.line(format!(") -> {path}<"));
                w.indented(|w| arguments.iter().for_each(|of| w.line(format!("{of},"))));
                w.line(format!(">{after}"));
            }
            None => w.line(flat),
        }
    }

    /// Writes the signature and the body.
    pub fn write_function(&self, w: &mut SourceWriter, body: &BlockExpr) {
        self.write(w, " {");
        w.indented(|w| body.write(w));
        w.line("}");
    }
}

impl BlockExpr {
    /// Only a value.
    pub fn value(value: Expr) -> Self {
        Self {
            statements: Vec::new(),
            value: Some(value),
        }
    }

    /// Writes the statements and the value, a line or more each.
    pub fn write(&self, w: &mut SourceWriter) {
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

    fn write_braced(&self, w: &mut SourceWriter, before: &str, after: &str) {
        w.line(format!("{before} {{"));
        w.indented(|w| self.write(w));
        w.line(format!("}}{after}"));
    }
}

/// Splits `path<arguments>` into the path and the arguments.
fn generic_arguments(ty: &str) -> Option<(&str, Vec<&str>)> {
    let (path, inside) = ty.strip_suffix('>')?.split_once('<')?;
    let (mut depth, mut start, mut arguments) = (0, 0, Vec::new());
    for (index, char) in inside.char_indices() {
        match char {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(inside[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    arguments.push(inside[start..].trim());
    Some((path, arguments))
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
fn write_in_field(w: &mut SourceWriter, of: &Expr, name: &str, before: &str, after: &str) {
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
fn write_call(w: &mut SourceWriter, path: &str, arguments: &[Expr], before: &str, after: &str) {
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
    /// Returns whether the expression ends with the arguments of a call.
    fn is_call(&self) -> bool {
        match self {
            Self::Call(..) => true,
            Self::Try(of) => of.is_call(),
            _ => false,
        }
    }

    /// Returns the beginning of the first line of a last argument that may run over several.
    fn tail(&self) -> Option<String> {
        match self {
            Self::Closure(parameters, _) => Some(format!("{parameters} {{")),
            Self::Struct(path, _) => Some(format!("{path} {{")),
            _ => None,
        }
    }

    fn write_tail(&self, w: &mut SourceWriter, before: &str, after: &str) {
        match self {
            Self::Closure(parameters, body) => {
                body.write_braced(w, &format!("{before}{parameters}"), after);
            }
            other => other.write(w, before, after),
        }
    }
}

fn write_field(w: &mut SourceWriter, (name, value): &(String, Expr)) {
    match value {
        Expr::Text(text) if text == name => w.line(format!("{name},")),
        value => value.write(w, &format!("{name}: "), ","),
    }
}

fn write_arm(w: &mut SourceWriter, (pattern, body): &(String, BlockExpr)) {
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
