//! Types and declarations (RFC 4506 section 6.3, and dialects).

use tenon_schema::Type;

use crate::ast::{
    Declaration, Definition, DefinitionKind, LengthBound, SpannedName, TypeBody, TypeUse,
    TypeUseKind,
};
use crate::diagnostics::Diagnostic;
use crate::expression::ExpressionContext;
use crate::source::Span;
use crate::token::TokenKind;

use super::{ErrorReported, ParseResult, Parser};

/// The type in front of the name in a declaration.
pub(super) enum TypeSpecifier {
    Void(Span),
    String(Span),
    Opaque(Span),
    Type(TypeUse),
}

impl TypeSpecifier {
    pub(super) fn span(&self) -> Span {
        match self {
            TypeSpecifier::Void(span)
            | TypeSpecifier::String(span)
            | TypeSpecifier::Opaque(span) => *span,
            TypeSpecifier::Type(ty) => ty.span,
        }
    }
}

impl Parser<'_> {
    /// Parses `typedef` and a declaration. `None` for `typedef struct x x;`, a habit from C that has no
    /// meaning here.
    pub(super) fn typedef(&mut self) -> ParseResult<Option<Definition>> {
        self.cursor.advance();
        let specifier = self.specifier()?;
        let declared = self.declarator(specifier, "the name of the new type")?;
        self.semicolon()?;
        let Declaration { name, ty, .. } = declared;
        let kind = match ty.kind {
            TypeUseKind::Named(of) if of.text == name.text && is_tagged(&of, ty.span) => {
                return Ok(None);
            }
            TypeUseKind::Inline(None, body) => DefinitionKind::Type(*body),
            TypeUseKind::Inline(Some(tag), body) if tag.text == name.text => {
                DefinitionKind::Type(*body)
            }
            kind => DefinitionKind::Typedef(TypeUse {
                kind,
                span: ty.span,
            }),
        };
        Ok(Some(Definition::new(name, kind)))
    }

    /// Parses `enum`, `struct` or `union` with a name and a body.
    pub(super) fn type_definition(&mut self) -> ParseResult<Definition> {
        let keyword = self.cursor.word().unwrap_or_default();
        let start = self.cursor.advance().span;
        let optional = self.optional();
        let name = self.name(&format!("the name of the {keyword}"))?;
        let body = self.body(keyword)?;
        let span = start.to(self.cursor.previous().span);
        self.variable(&name);
        self.semicolon()?;
        let kind = match optional {
            Some(star) => self.optional_definition(body, span, star),
            None => DefinitionKind::Type(body),
        };
        Ok(Definition::new(name, kind))
    }

    /// Defines the type of `struct *name { .. };`, as RFC 1833 has `pmaplist`: a pointer to the struct.
    fn optional_definition(&mut self, body: TypeBody, span: Span, star: Span) -> DefinitionKind {
        self.dialect(star, "rpcgen wants a `typedef` for a pointer");
        let inner = TypeUse {
            span,
            kind: TypeUseKind::Inline(None, Box::new(body)),
        };
        DefinitionKind::Typedef(TypeUse {
            span,
            kind: TypeUseKind::Optional(Box::new(inner)),
        })
    }

    /// Skips the name of a variable behind the definition of a type, as RFC 5531 has it once (`} reply;`): C would
    /// declare one, and it has no meaning here.
    fn variable(&mut self, of: &SpannedName) {
        let token = self.cursor.peek();
        let is_name = token.kind == TokenKind::Identifier && !token.first_on_line;
        if !is_name || !self.cursor.peek_by(1).is(";") {
            return;
        }
        self.cursor.advance();
        let name = self.cursor.text(token);
        self.dialect(token.span, "a definition has no name behind it");
        let message = format!(
            "`{name}` means nothing here: the type is called `{}`",
            of.text
        );
        let warning = Diagnostic::warning(token.span, message);
        self.diagnostics.push(warning.hint("leave it out"));
    }

    /// Parses a declaration with its `;`; `None` for `void`.
    pub(super) fn declaration(&mut self) -> ParseResult<Option<Declaration>> {
        let start = self.start();
        let specifier = self.specifier()?;
        if let TypeSpecifier::Void(_) = specifier {
            self.void_end()?;
            return Ok(None);
        }
        let mut declaration = self.declarator(specifier, "the name of the field")?;
        self.semicolon()?;
        declaration.doc = self.doc(start);
        declaration.annotations = self.annotations(start);
        Ok(Some(declaration))
    }

    fn void_end(&mut self) -> ParseResult<()> {
        if self.cursor.peek().kind == TokenKind::Identifier && !self.cursor.peek().first_on_line {
            return Err(self.expected("`;`", "`void` holds nothing, so it has no name"));
        }
        self.semicolon()
    }

    /// Parses the type at the start of a declaration.
    pub(super) fn specifier(&mut self) -> ParseResult<TypeSpecifier> {
        let span = self.cursor.peek().span;
        let word = match self.cursor.word() {
            Some(word) => word,
            None if self.cursor.peek().is("::") => "::",
            None => return Err(self.expected("a type", "")),
        };
        match word {
            "void" | "string" | "opaque" => {
                self.cursor.advance();
                Ok(match word {
                    "void" => TypeSpecifier::Void(span),
                    "string" => TypeSpecifier::String(span),
                    _ => TypeSpecifier::Opaque(span),
                })
            }
            "struct" | "union" | "enum" => Ok(TypeSpecifier::Type(self.tagged_type(word)?)),
            "const" | "typedef" | "case" | "default" | "switch" => Err(self.expected("a type", "")),
            _ => Ok(TypeSpecifier::Type(self.plain_type()?)),
        }
    }

    /// Parses `struct name`, or a struct that is defined inline.
    fn tagged_type(&mut self, keyword: &str) -> ParseResult<TypeUse> {
        let start = self.cursor.advance().span;
        let has_body = |parser: &Self| {
            parser.cursor.peek().is("{") || (keyword == "union" && parser.cursor.at_word("switch"))
        };
        let tag = match has_body(self) {
            true => None,
            false if self.is_path() => Some(self.type_path()?),
            false => Some(self.name(&format!("the name of the {keyword}, or its body"))?),
        };
        let kind = match tag {
            Some(name) if !has_body(self) => TypeUseKind::Named(name),
            tag => {
                self.dialect(start, "rpcgen wants every type to be defined on its own");
                TypeUseKind::Inline(tag, Box::new(self.nested_body(keyword)?))
            }
        };
        Ok(TypeUse {
            span: start.to(self.cursor.previous().span),
            kind,
        })
    }

    fn nested_body(&mut self, keyword: &str) -> ParseResult<TypeBody> {
        if self.depth >= self.options.limits.nesting_max {
            let span = self.cursor.peek().span;
            let error = Diagnostic::error(span, "types are nested too deeply here");
            return Err(self.fail(error.hint("give the inner types names of their own")));
        }
        self.depth += 1;
        let body = self.body(keyword);
        self.depth -= 1;
        body
    }

    /// Parses a type that is one word, or several words of C's integers.
    fn plain_type(&mut self) -> ParseResult<TypeUse> {
        let start = self.cursor.peek().span;
        let mut words = Vec::new();
        while let Some(word) = self
            .cursor
            .word()
            .filter(|word| extends_integer(&words, word))
        {
            words.push(word);
            self.cursor.advance();
        }
        if words.is_empty() {
            return self.word_type(start);
        }
        if words.iter().filter(|word| **word == "long").count() > 1 {
            self.dialect(start, "rpcgen knows no `long long`: use `hyper`");
        }
        let kind = TypeUseKind::Builtin(integer_type(&words));
        Ok(TypeUse {
            span: start.to(self.cursor.previous().span),
            kind,
        })
    }

    /// Parses a type that is one word or a path.
    fn word_type(&mut self, start: Span) -> ParseResult<TypeUse> {
        let keyword = self.cursor.word().and_then(keyword_type);
        let kind = match keyword {
            Some(ty) => {
                self.cursor.advance();
                TypeUseKind::Builtin(ty)
            }
            None => TypeUseKind::Named(self.type_path()?),
        };
        Ok(TypeUse {
            span: start.to(self.cursor.previous().span),
            kind,
        })
    }

    fn is_path(&self) -> bool {
        self.cursor.peek().is("::") || self.cursor.peek_by(1).is("::")
    }

    /// Parses the name of a type, with the namespaces in front of it.
    fn type_path(&mut self) -> ParseResult<SpannedName> {
        let is_path = self.is_path();
        let Some(path) = self.cursor.path() else {
            return Err(self.expected("the name of a type", ""));
        };
        if is_path {
            self.dialect(path.span, "rpcgen knows no namespaces");
        }
        Ok(path)
    }

    /// Parses the declarator behind a type: `*`, the name, `[n]` or `<n>`.
    pub(super) fn declarator(
        &mut self,
        specifier: TypeSpecifier,
        what: &str,
    ) -> ParseResult<Declaration> {
        let optional = self.optional();
        let name = self.name(what)?;
        let ty = self.declared_type(specifier, optional)?;
        Ok(Declaration {
            name,
            doc: String::new(),
            annotations: Vec::new(),
            ty,
        })
    }

    pub(super) fn optional(&mut self) -> Option<Span> {
        let span = self.cursor.peek().span;
        self.cursor.eat("*").then_some(span)
    }

    /// Parses the bound behind the name and joins it with the type in front of the name.
    pub(super) fn declared_type(
        &mut self,
        specifier: TypeSpecifier,
        optional: Option<Span>,
    ) -> ParseResult<TypeUse> {
        let bound = self.bound()?;
        let span = specifier.span();
        let kind = match specifier {
            TypeSpecifier::Void(span) => return Err(self.void_declared(span)),
            _ if optional.is_some() && bound.is_some() => {
                return Err(self.pointer_and_bound(span));
            }
            TypeSpecifier::String(span) => self.string_type(span, optional, bound)?,
            TypeSpecifier::Opaque(span) => self.opaque_type(span, optional, bound)?,
            TypeSpecifier::Type(ty) => match (optional, bound) {
                (Some(_), _) => TypeUseKind::Optional(Box::new(ty)),
                (None, Some(bound)) => TypeUseKind::Array(Box::new(ty), bound),
                (None, None) => return Ok(ty),
            },
        };
        Ok(TypeUse { span, kind })
    }

    /// Parses `[n]`, `<n>`, `<>` or nothing.
    fn bound(&mut self) -> ParseResult<Option<LengthBound>> {
        if self.cursor.eat("[") {
            let length = self.expression(ExpressionContext::Anywhere)?;
            self.expect("]", "")?;
            self.refuse_second_bound()?;
            return Ok(Some(LengthBound::Fixed(length)));
        }
        if !self.cursor.eat("<") {
            return Ok(None);
        }
        let max = match self.cursor.peek().is(">") {
            true => None,
            false => Some(self.expression(ExpressionContext::Angles)?),
        };
        self.expect(">", "")?;
        self.refuse_second_bound()?;
        Ok(Some(LengthBound::Counted(max)))
    }

    fn refuse_second_bound(&mut self) -> ParseResult<()> {
        let token = self.cursor.peek();
        if !token.is("[") && !token.is("<") {
            return Ok(());
        }
        let error = Diagnostic::error(token.span, "an array has one dimension only")
            .hint("give the inner array a name with `typedef`");
        Err(self.fail(error))
    }

    fn string_type(
        &mut self,
        span: Span,
        optional: Option<Span>,
        bound: Option<LengthBound>,
    ) -> ParseResult<TypeUseKind> {
        let ty = match bound {
            Some(LengthBound::Counted(max)) => TypeUseKind::String(max),
            None => {
                self.dialect(span, "a string has a bound: `<n>` or `<>`");
                TypeUseKind::String(None)
            }
            Some(LengthBound::Fixed(length)) => {
                let error = Diagnostic::error(length.span, "a string has no fixed length")
                    .hint("write `<n>` for at most n bytes, or make it `opaque`");
                return Err(self.fail(error));
            }
        };
        Ok(match optional {
            Some(_) => {
                self.dialect(span, "rpcgen has no pointer to a string");
                TypeUseKind::Optional(Box::new(TypeUse { span, kind: ty }))
            }
            None => ty,
        })
    }

    fn opaque_type(
        &mut self,
        span: Span,
        optional: Option<Span>,
        bound: Option<LengthBound>,
    ) -> ParseResult<TypeUseKind> {
        match bound {
            Some(bound) if optional.is_none() => Ok(TypeUseKind::Opaque(bound)),
            _ => {
                let error = Diagnostic::error(span, "opaque data needs a length")
                    .hint("write `[n]` for exactly n bytes, `<n>` for at most n, or `<>`");
                Err(self.fail(error))
            }
        }
    }

    fn void_declared(&mut self, span: Span) -> ErrorReported {
        let error = Diagnostic::error(span, "nothing can be declared to be `void`");
        self.fail(error.hint("leave it out"))
    }

    fn pointer_and_bound(&mut self, span: Span) -> ErrorReported {
        let error = Diagnostic::error(span, "this is both optional (`*`) and an array")
            .hint("give one of the two a name with `typedef`");
        self.fail(error)
    }
}

/// Returns whether `of` has `struct`, `union` or `enum` in front of it in the type at `span`.
fn is_tagged(of: &SpannedName, span: Span) -> bool {
    of.span.start != span.start
}

/// Returns whether `word` continues the words of an integer type such as `unsigned long int`.
fn extends_integer(words: &[&str], word: &str) -> bool {
    let modifier = matches!(word, "unsigned" | "signed" | "long" | "short");
    match words {
        [] => modifier || word == "char",
        [.., "int" | "char" | "hyper"] => false,
        _ => modifier || matches!(word, "int" | "char" | "hyper"),
    }
}

/// Returns the type that C's words for integers form together. A `long` has 32 bits on the wire, as in
/// rpcgen; two of them have 64.
fn integer_type(words: &[&str]) -> Type {
    let count = |wanted: &str| words.iter().filter(|word| **word == wanted).count();
    let unsigned = count("unsigned") > 0;
    let (signed_type, unsigned_type) = match () {
        () if count("hyper") > 0 || count("long") > 1 => (Type::Hyper, Type::Uhyper),
        () if count("char") > 0 => (Type::Char, Type::Uchar),
        () if count("short") > 0 => (Type::Short, Type::Ushort),
        () => (Type::Int, Type::Uint),
    };
    match unsigned {
        true => unsigned_type,
        false => signed_type,
    }
}

/// Returns the type of a word that is a type by itself and never a name.
fn keyword_type(word: &str) -> Option<Type> {
    Some(match word {
        "int" => Type::Int,
        "hyper" => Type::Hyper,
        "float" => Type::Float,
        "double" => Type::Double,
        "quadruple" => Type::Quadruple,
        "bool" => Type::Bool,
        _ => return None,
    })
}
