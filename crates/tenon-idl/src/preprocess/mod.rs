//! The embedded preprocessor: files to the words that count, with macros expanded, comments and
//! `%` lines put aside.
//!
//! Covers what interfaces use of C's: `#include`, `#define` and `#undef`, macros with parameters among
//! them, all conditionals, `#line`, `#error`, and the macros that a C preprocessor defines by itself.

mod conditions;
mod directives;
mod include;
mod macros;
mod passthrough;
mod predefined;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::ast::Name;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::lexer::{Lexer, is_invisible};
use crate::options::Options;
use crate::source::{FileId, Sources, Span};
use crate::token::{Bad, Token, TokenKind};

use conditions::Condition;
use macros::{Line, Macro, Macros, Rest, Within};

/// What the preprocessor leaves for the parser.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    pub tokens: Vec<Token>,
    /// Where the text ends: what comes after the last word. `None` if there is no text.
    pub end: Option<Span>,
    pub comments: Vec<Aside>,
    pub passthrough: Vec<PassthroughLine>,
    pub macros: Vec<MacroConstant>,
}

impl Unit {
    fn length(&self) -> usize {
        self.tokens.len() + self.comments.len() + self.passthrough.len()
    }
}

/// Something that stands between words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aside {
    /// The position of the word behind it.
    pub position: usize,
    pub span: Span,
    pub first_on_line: bool,
}

/// A `%` line.
#[derive(Debug)]
pub(crate) struct PassthroughLine {
    pub aside: Aside,
    /// What it is with macros expanded, if there are any in it: all but the first `%`.
    pub expanded: Option<String>,
}

/// An object macro of the interface, which may turn out to be a constant.
#[derive(Debug)]
pub(crate) struct MacroConstant {
    pub name: Name,
    pub position: usize,
    /// Its body with macros expanded.
    pub body: Vec<Token>,
}

/// Reads the file at `path`, whose text is `text`, and what it includes.
pub(crate) fn preprocess(
    path: &Path,
    text: String,
    options: &Options,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Unit {
    let mut preprocessor = Preprocessor {
        options,
        sources,
        diagnostics,
        macros: Macros::new(options.limits.expansion_tokens_max),
        frames: Vec::new(),
        unit: Unit::default(),
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
    sources: &'a mut Sources,
    diagnostics: &'a mut Diagnostics,
    macros: Macros,
    /// The file that is being read, and those that include it in front.
    frames: Vec<Frame>,
    unit: Unit,
    /// The macros that the interface defined, in order, with the position of the next word.
    defined: Vec<(String, usize)>,
    /// Words that the bodies of macros are made of.
    macro_words: usize,
    /// The last file in which characters were found that stand for bytes that are not UTF-8.
    replaced: Option<FileId>,
    /// A comment that has begun in a `%` line goes on.
    is_in_comment: bool,
    text_bytes_left: usize,
}

/// A file that is being read.
struct Frame {
    lexer: Lexer,
    /// Where it is; the name that people are shown may lack bytes that are not UTF-8.
    folder: PathBuf,
    conditions: Vec<Condition>,
}

impl Preprocessor<'_> {
    /// Defines what every C preprocessor does, and what the options ask for.
    fn predefine(&mut self) {
        let file = self.sources.add("<built-in>", predefined::text(), true);
        let mut lexer = Lexer::new(file, self.sources.whole(file));
        loop {
            let name = lexer.next();
            if name.kind == TokenKind::End {
                break;
            }
            let body: Vec<Token> = std::iter::from_fn(|| lexer.next_on_line()).collect();
            let made = Macro {
                built_in: true,
                ..Macro::plain(name, &body)
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
            self.macros.define(name, Macro::plain(name_token, &body));
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

    /// Words that may still be taken in.
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
        let aside = self.aside(token);
        self.unit.comments.push(aside);
    }

    fn aside(&self, token: Token) -> Aside {
        Aside {
            position: self.unit.tokens.len(),
            span: token.span,
            first_on_line: token.first_on_line,
        }
    }

    fn identifier(&mut self, token: Token) {
        let name = self.sources.text(token.spelled);
        if self.macros.found(name, Within::Text).is_none() {
            return self.unit.tokens.push(token);
        }
        let position = self.unit.tokens.len();
        // There is one as long as anything is read.
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let mut rest = Behind {
            lexer: &mut frame.lexer,
            comments: &mut self.unit.comments,
            position,
        };
        let words = self
            .macros
            .expand(self.sources, Within::Text, token, &mut rest);
        match words {
            Ok(words) => {
                let tokens = words.into_iter().map(|word| word.token);
                self.unit.tokens.extend(tokens);
            }
            Err(error) => self.report(error),
        }
    }

    fn bad(&mut self, bad: Bad, span: Span) {
        let message = match bad {
            Bad::UnclosedComment => "this comment is not closed".to_string(),
            Bad::UnclosedText => "this string is not closed on its line".to_string(),
            Bad::UnclosedCharacter => "this character is not closed on its line".to_string(),
            Bad::Character => {
                let text = self.sources.text(span).escape_debug().to_string();
                format!("`{text}` does not belong into an interface")
            }
        };
        self.report(Diagnostic::error(span, message));
    }

    fn finish(mut self) -> Unit {
        self.collect_macros();
        self.unit
    }

    /// The macros that are still defined, as candidates for constants.
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
            let name = Name {
                text: name,
                span: token.span,
            };
            let nothing = &mut Line::of(&[]);
            let words = self
                .macros
                .expand(self.sources, Within::Text, token, nothing);
            if let Ok(words) = words {
                self.unit.macros.push(MacroConstant {
                    name,
                    position,
                    body: words.into_iter().map(|word| word.token).collect(),
                });
            }
        }
    }

    /// Warns once per file about characters that cannot be seen; strict reading refuses them.
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

    /// Warns once per file about bytes that are not UTF-8 where they reach what is generated.
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

    /// The file that is being read. There is one as long as anything is read.
    fn frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    fn frame_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

/// The words behind a macro in the text of the interface, where its arguments are.
struct Behind<'a> {
    lexer: &'a mut Lexer,
    comments: &'a mut Vec<Aside>,
    /// The position of the next word, for comments.
    position: usize,
}

impl Rest for Behind<'_> {
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
                TokenKind::Comment => self.comments.push(Aside {
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
