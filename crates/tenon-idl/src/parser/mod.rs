//! Tokens to the syntax tree, by recursive descent with error recovery.

mod annotations;
mod bodies;
mod namespaces;
mod programs;
mod types;

use std::collections::HashSet;

use crate::ast::{
    ConstantDef, Definition, DefinitionKind, Expression, ExpressionKind, SpannedName,
};
use crate::cursor::TokenCursor;
use crate::diagnostics::{Diagnostic, DiagnosticCollector};
use crate::docs::DocComments;
use crate::expression::{self, ExpressionContext};
use crate::options::Options;
use crate::preprocess::{MacroConstant, TranslationUnit};
use crate::source::{FileId, SourceMap, Span};
use crate::token::{Token, TokenKind};

use namespaces::NamespaceScope;

/// An error has been reported: the caller recovers.
pub(crate) struct ErrorReported;

type ParseResult<T> = Result<T, ErrorReported>;

/// Parses the output of the preprocessor.
pub(crate) fn parse(
    unit: &TranslationUnit,
    sources: &SourceMap,
    options: &Options,
    diagnostics: &mut DiagnosticCollector,
) -> Vec<Definition> {
    // An unexpected end is reported at the last token.
    let end = unit.tokens.last().map(|token| token.span).or(unit.end);
    let Some(end) = end else { return Vec::new() };
    let mut parser = Parser {
        cursor: TokenCursor::new(sources, &unit.tokens, end),
        comments: DocComments {
            sources,
            list: &unit.comments,
        },
        options,
        diagnostics,
        depth: 0,
        scope: NamespaceScope::outermost(),
        attached: HashSet::new(),
    };
    // A macro's position is that of the next token, so that it comes first of two that are equal.
    let mut definitions = parser.macro_constants(unit);
    definitions.extend(parser.specification());
    parser.check_annotations();
    definitions.sort_by_key(|definition| definition.position);
    definitions
}

struct Parser<'a> {
    cursor: TokenCursor<'a>,
    comments: DocComments<'a>,
    options: &'a Options,
    diagnostics: &'a mut DiagnosticCollector,
    /// Number of type bodies and namespaces that are open around the current token.
    depth: usize,
    scope: NamespaceScope,
    /// The comments with annotations that belong to something, each by its file and its first byte.
    attached: HashSet<(FileId, u32)>,
}

/// The start of an item, to find its documentation.
#[derive(Clone, Copy)]
struct ItemStart {
    position: usize,
    span: Span,
}

impl Parser<'_> {
    fn specification(&mut self) -> Vec<Definition> {
        let mut definitions = Vec::new();
        while !self.at_end() && !self.diagnostics.exhausted() {
            let before = self.cursor.position();
            if let Err(ErrorReported) = self.definition(&mut definitions) {
                self.recover(before);
            }
        }
        definitions
    }

    /// Appends one definition, or those of a namespace, to `definitions`.
    fn definition(&mut self, definitions: &mut Vec<Definition>) -> ParseResult<()> {
        let start = self.start();
        let word = self.cursor.word();
        let mut definition = match word {
            Some("const") => self.constant()?,
            Some("typedef") => match self.typedef()? {
                Some(definition) => definition,
                None => return Ok(()),
            },
            Some("enum" | "struct" | "union") => self.type_definition()?,
            Some("program") => self.program()?,
            Some("namespace") => return self.namespace(definitions),
            Some("pragma") => return self.skip_pragma(),
            _ if self.cursor.peek().is(";") => return self.stray_semicolon(),
            _ => return Err(self.no_definition()),
        };
        definition.doc = self.doc(start);
        definition.annotations = self.annotations(start);
        definition.namespace.clone_from(&self.scope.namespace);
        definition.position = start.position;
        definition.end = self.cursor.position();
        definitions.push(definition);
        Ok(())
    }

    /// Parses `const NAME = value;`.
    fn constant(&mut self) -> ParseResult<Definition> {
        self.cursor.advance();
        let name = self.name("the name of the constant")?;
        self.expect("=", "and the value of the constant")?;
        let value = self.expression(ExpressionContext::Anywhere)?;
        self.semicolon()?;
        let constant = ConstantDef {
            value,
            from_macro: false,
        };
        Ok(Definition::new(name, DefinitionKind::Constant(constant)))
    }

    /// Skips `pragma ..`, up to a `;` or the end of the line: it does not affect the wire format.
    fn skip_pragma(&mut self) -> ParseResult<()> {
        let first = self.cursor.advance();
        self.dialect(first.span, "`pragma` is not known to rpcgen");
        while !self.at_end() && !self.cursor.peek().first_on_line {
            if self.cursor.advance().is(";") {
                break;
            }
        }
        Ok(())
    }

    fn stray_semicolon(&mut self) -> ParseResult<()> {
        let token = self.cursor.advance();
        self.dialect(token.span, "a `;` that ends nothing");
        Ok(())
    }

    fn no_definition(&mut self) -> ErrorReported {
        let found = self.cursor.describe();
        let span = self.cursor.peek().span;
        let error = Diagnostic::error(span, format!("expected a definition, found {found}")).label(
            "`const`, `typedef`, `enum`, `struct`, `union`, `program` or `namespace` starts one",
        );
        self.fail(error)
    }

    /// Skips to the next start of a definition, at least one token behind `before`, or in front of the `}` that ends
    /// the namespace.
    fn recover(&mut self, before: usize) {
        if self.cursor.position() == before {
            self.cursor.advance();
        }
        while !self.at_end() {
            let token = self.cursor.peek();
            if self.starts_definition(token) || self.ends_namespace(token) {
                return;
            }
            self.cursor.advance();
        }
    }

    /// Returns whether `token`, the current one, starts a definition. Fields may start with `struct`, too, but are
    /// indented.
    fn starts_definition(&self, token: Token) -> bool {
        token.first_on_line && self.at_definition() && self.column(token) == self.scope.column
    }

    fn column(&self, token: Token) -> u32 {
        self.cursor.sources.locate(token.span).column
    }

    fn at_definition(&self) -> bool {
        let words = [
            "const",
            "typedef",
            "enum",
            "struct",
            "union",
            "program",
            "namespace",
        ];
        self.cursor.word().is_some_and(|word| words.contains(&word))
    }

    /// Skips to the `;` that ends a part of a body, or in front of the `}` that ends the body.
    /// False if neither is found before the next definition.
    fn recover_in_body(&mut self) -> bool {
        let mut open = 0usize;
        while !self.at_end() {
            let token = self.cursor.peek();
            match token.kind {
                TokenKind::Punctuation("{") => open += 1,
                TokenKind::Punctuation("}") if open == 0 => return true,
                TokenKind::Punctuation("}") => open -= 1,
                TokenKind::Punctuation(";") if open == 0 => {
                    self.cursor.advance();
                    return true;
                }
                _ if self.starts_definition(token) => return false,
                _ => {}
            }
            self.cursor.advance();
        }
        false
    }

    /// Returns the object macros of the interface that have expressions as their bodies.
    fn macro_constants(&mut self, unit: &TranslationUnit) -> Vec<Definition> {
        unit.macros
            .iter()
            .filter_map(|made| self.macro_constant(made))
            .collect()
    }

    fn macro_constant(&self, made: &MacroConstant) -> Option<Definition> {
        let end = made.body.last()?.span;
        let mut cursor = TokenCursor::new(self.cursor.sources, &made.body, end);
        let nesting_max = self.options.limits.nesting_max;
        let value =
            expression::parse(&mut cursor, ExpressionContext::Anywhere, nesting_max).ok()?;
        if cursor.peek().kind != TokenKind::End {
            return None;
        }
        let constant = ConstantDef {
            value,
            from_macro: true,
        };
        let mut definition = Definition::new(made.name.clone(), DefinitionKind::Constant(constant));
        definition.position = made.position;
        definition.end = made.position;
        definition.doc = self.macro_doc(made.position, made.name.span);
        Some(definition)
    }

    fn macro_doc(&self, position: usize, span: Span) -> String {
        let behind = self.comments.behind_macro(position, span);
        both(self.comments.leading(position, span), behind)
    }

    fn expression(&mut self, within: ExpressionContext) -> ParseResult<Expression> {
        let first = self.cursor.position();
        let parsed = expression::parse(&mut self.cursor, within, self.options.limits.nesting_max);
        let value = parsed.map_err(|error| self.fail(error))?;
        let words = self.cursor.position() - first;
        let negative = matches!(value.kind, ExpressionKind::Unary("-", _));
        if words > 1 + usize::from(negative) {
            self.dialect(
                value.span,
                "rpcgen does not compute: it takes a number or a name",
            );
        }
        self.check_number_form(&value);
        Ok(value)
    }

    /// Reports forms of numbers that C accepts and rpcgen does not: `0X1F`, `5L` and `'\n'`.
    fn check_number_form(&mut self, value: &Expression) {
        if matches!(&value.kind, ExpressionKind::Name(name) if name.contains("::")) {
            self.dialect(value.span, "rpcgen knows no namespaces");
        }
        let text = self.cursor.text(self.cursor.previous());
        let is_number = text.starts_with(|char: char| char.is_ascii_digit());
        let is_odd = is_number
            && (text.starts_with("0X")
                || text.ends_with(['u', 'U', 'l', 'L'])
                || text.contains('\''));
        if is_odd || text.starts_with("'\\") {
            self.dialect(value.span, "rpcgen does not know this form of a number");
        }
    }

    /// Parses a name; `what` describes it for the error message.
    fn name(&mut self, what: &str) -> ParseResult<SpannedName> {
        let token = self.cursor.peek();
        if let Some(name) = self.name_of_define(token) {
            return Ok(name);
        }
        let reserved = self.cursor.word().is_none_or(is_reserved);
        if reserved {
            let hint = match token.kind {
                TokenKind::Identifier => "this word has a meaning in the language",
                _ => "",
            };
            return Err(self.expected(what, hint));
        }
        if self.cursor.word().is_some_and(is_keyword_of_rpcgen) {
            self.dialect(token.span, "this word is a keyword of rpcgen");
        }
        self.cursor.advance();
        Ok(SpannedName {
            text: self.cursor.text(token).to_string(),
            span: token.span,
        })
    }

    /// Parses a name that `-D` has replaced by a value, at its definition: `-D NAME=7` gives the value of its uses.
    fn name_of_define(&mut self, token: Token) -> Option<SpannedName> {
        let sources = self.cursor.sources;
        let text = sources.text(token.span);
        let is_name = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
        if !sources.is_command_line(token.spelled) || !is_name {
            return None;
        }
        // All tokens that replaced the name.
        while self.cursor.peek().span == token.span && !self.at_end() {
            self.cursor.advance();
        }
        Some(SpannedName {
            text: text.to_string(),
            span: token.span,
        })
    }

    fn expect(&mut self, mark: &str, and: &str) -> ParseResult<()> {
        match self.cursor.eat(mark) {
            true => Ok(()),
            false if and.is_empty() => Err(self.expected(&format!("`{mark}`"), "")),
            false => Err(self.expected(&format!("`{mark}` {and}"), "")),
        }
    }

    /// Parses a `;`. A missing one is reported behind the token it should follow.
    fn semicolon(&mut self) -> ParseResult<()> {
        if self.cursor.eat(";") {
            return Ok(());
        }
        let next = self.cursor.peek();
        if !next.first_on_line && next.kind != TokenKind::End {
            return Err(self.expected("`;`", ""));
        }
        let end = self.cursor.previous().span;
        let found = self.cursor.describe();
        let place = Span {
            start: end.end,
            ..end
        };
        let error = Diagnostic::error(place, format!("expected `;`, found {found}"));
        Err(self.fail(error.label("`;` is missing here")))
    }

    fn expected(&mut self, what: &str, hint: &str) -> ErrorReported {
        let message = format!("expected {what}, found {}", self.cursor.describe());
        let mut error = Diagnostic::error(self.cursor.peek().span, message);
        if !hint.is_empty() {
            error = error.hint(hint);
        }
        self.fail(error)
    }

    fn fail(&mut self, error: Diagnostic) -> ErrorReported {
        self.diagnostics.push(error);
        ErrorReported
    }

    /// Reports a construct that rpcgen rejects: an error in strict mode, accepted otherwise.
    fn dialect(&mut self, span: Span, message: impl Into<String>) {
        if self.options.strict_rpcgen {
            let error = Diagnostic::error(span, message);
            self.diagnostics.push(error.label("refused by rpcgen"));
        }
    }

    fn at_end(&self) -> bool {
        self.cursor.peek().kind == TokenKind::End
    }

    fn start(&self) -> ItemStart {
        ItemStart {
            position: self.cursor.position(),
            span: self.cursor.peek().span,
        }
    }

    /// Returns the documentation of the item that started at `start` and ends in front of the current token.
    fn doc(&self, start: ItemStart) -> String {
        let leading = self.comments.leading(start.position, start.span);
        let end = self.cursor.previous().span;
        let trailing = self
            .comments
            .trailing(start.position, self.cursor.position(), end);
        both(leading, trailing)
    }
}

impl Definition {
    fn new(name: SpannedName, kind: DefinitionKind) -> Definition {
        Definition {
            namespace: String::new(),
            name,
            doc: String::new(),
            annotations: Vec::new(),
            position: 0,
            end: 0,
            kind,
        }
    }
}

fn both(leading: String, trailing: String) -> String {
    match (leading.is_empty(), trailing.is_empty()) {
        (_, true) => leading,
        (true, _) => trailing,
        _ => format!("{leading}\n{trailing}"),
    }
}

/// Returns whether `word` cannot be a name anywhere. `program`, `version`, `string` and the like can: files
/// have fields of these names, and their position distinguishes them.
fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "const"
            | "typedef"
            | "struct"
            | "union"
            | "enum"
            | "switch"
            | "case"
            | "default"
            | "void"
            | "int"
            | "unsigned"
            | "bool"
            | "float"
            | "double"
    )
}

/// Returns whether `word` is rejected as a name by rpcgen only.
fn is_keyword_of_rpcgen(word: &str) -> bool {
    matches!(
        word,
        "program" | "version" | "string" | "opaque" | "char" | "short" | "long" | "hyper"
    )
}
