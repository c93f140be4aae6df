//! The embedded preprocessor: files to tokens, with macros expanded, and comments and `%` lines
//! stored apart.
//!
//! Supports the directives of C that interfaces use: `#include`, `#define` and `#undef`, macros with parameters among
//! them, all conditionals, `#line`, `#error`, and the macros that a C preprocessor defines by itself.

mod conditions;
mod directives;
mod include;
mod macros;
mod passthrough;
mod predefined;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::ast::SpannedName;
use crate::diagnostics::{Diagnostic, DiagnosticCollector};
use crate::lexer::{Lexer, is_invisible};
use crate::options::Options;
use crate::source::{FileId, SourceMap, Span};
use crate::token::{LexError, Token, TokenKind};

use conditions::ConditionalBlock;
use macros::{ExpansionContext, LineTokens, MacroDefinition, MacroTable, TokenSource};

/// The output of the preprocessor, and the input of the parser.
#[derive(Debug, Default)]
pub(crate) struct TranslationUnit {
    pub tokens: Vec<Token>,
    /// The end of the text, behind the last token. `None` if there is no text.
    pub end: Option<Span>,
    pub comments: Vec<TokenTrivia>,
    pub passthrough: Vec<PassthroughLine>,
    pub macros: Vec<MacroConstant>,
}

impl TranslationUnit {
    fn length(&self) -> usize {
        self.tokens.len() + self.comments.len() + self.passthrough.len()
    }
}

/// The position of a comment or a `%` line, which stands between tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenTrivia {
    /// The position of the token behind it.
    pub position: usize,
    pub span: Span,
    pub first_on_line: bool,
}

/// A `%` line.
#[derive(Debug)]
pub(crate) struct PassthroughLine {
    pub trivia: TokenTrivia,
    /// The line with macros expanded, if there are any in it: all but the first `%`.
    pub expanded: Option<String>,
}

/// An object macro of the interface, which may turn out to be a constant.
#[derive(Debug)]
pub(crate) struct MacroConstant {
    pub name: SpannedName,
    pub position: usize,
    /// Its body with macros expanded.
    pub body: Vec<Token>,
}

/// Preprocesses the file at `path` with the text `text`, and what it includes.
pub(crate) fn preprocess(
    path: &Path,
    text: String,
    options: &Options,
    sources: &mut SourceMap,
    diagnostics: &mut DiagnosticCollector,
) -> TranslationUnit {
    let mut preprocessor = Preprocessor {
        options,
        sources,
        diagnostics,
        macros: MacroTable::new(options.limits.expansion_tokens_max),
        frames: Vec::new(),
        unit: TranslationUnit::default(),
        defined: Vec::new(),
        macro_words: 0,
        replaced: None,
        is_in_comment: false,
        text_bytes_left: options.limits.text_bytes_max,
    };
    preprocessor.predefine();
    preprocessor.open(path, text, None);
    preprocessor.run();
    preprocessor.finish()
}

struct Preprocessor<'a> {
    options: &'a Options,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut DiagnosticCollector,
    macros: MacroTable,
    /// The file that is being read, and in front of it those that include it.
    frames: Vec<IncludeFrame>,
    unit: TranslationUnit,
    /// The macros that the interface defined, in order, with the position of the next token.
    defined: Vec<(String, usize)>,
    /// Number of tokens in the bodies of macros.
    macro_words: usize,
    /// The last file in which replacement characters were found, which stand for bytes that are not UTF-8.
    replaced: Option<FileId>,
    /// A comment that began in a `%` line continues.
    is_in_comment: bool,
    text_bytes_left: usize,
}

/// A file that is being read.
struct IncludeFrame {
    lexer: Lexer,
    /// The folder of the file; the name that is shown to the user may lack bytes that are not UTF-8.
    folder: PathBuf,
    conditions: Vec<ConditionalBlock>,
}

impl Preprocessor<'_> {
    /// Defines the macros of every C preprocessor, and those of the options.
    fn predefine(&mut self) {
        let file = self.sources.add("<built-in>", predefined::text(), true);
        let mut lexer = Lexer::new(file, self.sources.whole(file));
        loop {
            let name = lexer.next();
            if name.kind == TokenKind::End {
                break;
            }
            let body: Vec<Token> = std::iter::from_fn(|| lexer.next_on_line()).collect();
            let made = MacroDefinition {
                built_in: true,
                ..MacroDefinition::plain(name, &body)
            };
            self.macros.define(self.sources.text(name.spelled), made);
        }
        let symbol = self.options.output.symbol().map(|name| (name, "1"));
        let given = self.options.defines.iter();
        let given = given.map(|define| (define.name.as_str(), define.value.as_str()));
        for (name, value) in symbol.into_iter().chain(given) {
            let text = format!("{name} {value}");
            let file = self.sources.add_command_line(text);
            let mut lexer = Lexer::new(file, self.sources.whole(file));
            let name_token = lexer.next();
            let body: Vec<Token> = std::iter::from_fn(|| lexer.next_on_line()).collect();
            self.macros
                .define(name, MacroDefinition::plain(name_token, &body));
        }
    }

    fn run(&mut self) {
        while !self.frames.is_empty() && !self.diagnostics.exhausted() {
            let token = self.frame_mut().lexer.next();
            if self.words_left() == 0 {
                let error = Diagnostic::error(token.span, "the interface is too long");
                return self.report(error.hint("split it, or raise the limit of words"));
            }
            self.take(token);
        }
    }

    /// Returns the number of tokens that may still be read.
    fn words_left(&self) -> usize {
        let words = self.unit.length() + self.macro_words;
        self.options.limits.tokens_max.saturating_sub(words)
    }

    fn take(&mut self, token: Token) {
        if token.kind != TokenKind::Passthrough {
            self.is_in_comment = false;
        }
        match token.kind {
            TokenKind::End => {
                self.unit.end = Some(token.span);
                self.close_file();
            }
            TokenKind::Punctuation("#") if token.first_on_line => self.directive(token),
            _ if self.skipping() => {}
            TokenKind::Comment => self.comment(token),
            TokenKind::Passthrough => {
                self.warn_replaced(token);
                self.passthrough(token);
            }
            TokenKind::Identifier => self.identifier(token),
            TokenKind::Bad(bad) => self.bad(bad, token.span),
            TokenKind::Text => {
                self.warn_replaced(token);
                self.unit.tokens.push(token);
            }
            _ => self.unit.tokens.push(token),
        }
    }

    fn comment(&mut self, token: Token) {
        let is_line = self.sources.text(token.spelled).starts_with("//");
        if is_line && self.options.strict_rpcgen {
            let error = Diagnostic::error(token.span, "rpcgen knows no `//` comments");
            self.report(error.label("refused by rpcgen"));
        }
        let trivia = self.trivia(token);
        self.unit.comments.push(trivia);
    }

    fn trivia(&self, token: Token) -> TokenTrivia {
        TokenTrivia {
            position: self.unit.tokens.len(),
            span: token.span,
            first_on_line: token.first_on_line,
        }
    }

    fn identifier(&mut self, token: Token) {
        let name = self.sources.text(token.spelled);
        if self.macros.found(name, ExpansionContext::Text).is_none() {
            return self.unit.tokens.push(token);
        }
        let position = self.unit.tokens.len();
        // There is one as long as a file is read.
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let mut rest = LexerTokens {
            lexer: &mut frame.lexer,
            comments: &mut self.unit.comments,
            position,
        };
        let words = self
            .macros
            .expand(self.sources, ExpansionContext::Text, token, &mut rest);
        match words {
            Ok(words) => {
                let tokens = words.into_iter().map(|word| word.token);
                self.unit.tokens.extend(tokens);
            }
            Err(error) => self.report(error),
        }
    }

    fn bad(&mut self, bad: LexError, span: Span) {
        let message = match bad {
            LexError::UnclosedComment => "this comment is not closed".to_string(),
            LexError::UnclosedText => "this string is not closed on its line".to_string(),
            LexError::UnclosedCharacter => "this character is not closed on its line".to_string(),
            LexError::Character => {
                let text = self.sources.text(span).escape_debug().to_string();
                format!("`{text}` does not belong into an interface")
            }
        };
        self.report(Diagnostic::error(span, message));
    }

    fn finish(mut self) -> TranslationUnit {
        self.collect_macros();
        self.unit
    }

    /// Collects the macros that are still defined, as candidates for constants.
    fn collect_macros(&mut self) {
        let mut seen = HashSet::new();
        for (name, position) in std::mem::take(&mut self.defined) {
            if !seen.insert(name.clone()) {
                continue; // defined again after an `#undef`
            }
            let Some(made) = self.macros.get(&name) else {
                continue;
            };
            if made.parameters.is_some() || made.body.is_empty() {
                continue;
            }
            let token = made.name;
            let name = SpannedName {
                text: name,
                span: token.span,
            };
            let nothing = &mut LineTokens::of(&[]);
            let words = self
                .macros
                .expand(self.sources, ExpansionContext::Text, token, nothing);
            if let Ok(words) = words {
                self.unit.macros.push(MacroConstant {
                    name,
                    position,
                    body: words.into_iter().map(|word| word.token).collect(),
                });
            }
        }
    }

    /// Warns once per file about invisible characters; strict mode rejects them.
    fn warn_invisible(&mut self, file: FileId) {
        let text = self.sources.whole(file);
        let Some((at, char)) = text
            .char_indices()
            .skip(1)
            .find(|(_, char)| is_invisible(*char))
        else {
            return;
        };
        let span = Span {
            file,
            start: at as u32,
            end: (at + char.len_utf8()) as u32,
        };
        let message = format!("an invisible character (U+{:04X})", u32::from(char));
        let diagnostic = match self.options.strict_rpcgen {
            true => Diagnostic::error(span, message),
            false => Diagnostic::warning(span, message).label("read as white space"),
        };
        self.report(diagnostic.hint("remove it; such characters come with pasted text"));
    }

    /// Warns once per file about bytes that are not UTF-8 if they reach the generated code.
    fn warn_replaced(&mut self, token: Token) {
        let file = token.span.file;
        let text = self.sources.text(token.span);
        let Some(at) = text.find(char::REPLACEMENT_CHARACTER) else {
            return;
        };
        if self.replaced.replace(file) == Some(file) {
            return;
        }
        let start = token.span.start + at as u32;
        let span = Span {
            start,
            end: start + char::REPLACEMENT_CHARACTER.len_utf8() as u32,
            file,
        };
        let warning = Diagnostic::warning(span, "this is not UTF-8")
            .label("read as U+FFFD, and generated so");
        self.report(warning.hint("save the file as UTF-8"));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Returns the file that is being read. There is one as long as a file is read.
    fn frame(&self) -> &IncludeFrame {
        &self.frames[self.frames.len() - 1]
    }

    fn frame_mut(&mut self) -> &mut IncludeFrame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

/// The tokens behind a macro in the text of the interface, which hold its arguments.
struct LexerTokens<'a> {
    lexer: &'a mut Lexer,
    comments: &'a mut Vec<TokenTrivia>,
    /// The position of the next token, for comments.
    position: usize,
}

impl TokenSource for LexerTokens<'_> {
    fn opens(&mut self) -> bool {
        let mut ahead = self.lexer.clone();
        let mut words = std::iter::from_fn(|| Some(ahead.next()));
        let next = words.find(|token| token.kind != TokenKind::Comment);
        next.is_some_and(|token| token.is("("))
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            let before = self.lexer.clone();
            let token = self.lexer.next();
            match token.kind {
                TokenKind::Comment => self.comments.push(TokenTrivia {
                    position: self.position,
                    span: token.span,
                    first_on_line: token.first_on_line,
                }),
                TokenKind::End | TokenKind::Passthrough => *self.lexer = before,
                TokenKind::Punctuation("#") if token.first_on_line => *self.lexer = before,
                _ => return Some(token),
            }
            if token.kind != TokenKind::Comment {
                return None;
            }
        }
    }
}
