//! `#include`: finding files and reading them, within limits.

use std::path::{Path, PathBuf};

use crate::diagnostics::Diagnostic;
use crate::lexer::Lexer;
use crate::load;
use crate::source::Span;

use super::{IncludeFrame, Preprocessor};

/// The file that an `#include` names.
enum IncludeTarget {
    /// `"name"`: the folder of the including file comes first.
    Quoted(String),
    /// `<name>`.
    Angled(String),
}

impl Preprocessor<'_> {
    /// Handles the rest of an `#include` directive; the word itself has been read and stands at `at`.
    pub(super) fn include_line(&mut self, at: Span) {
        let rest = self.frame().lexer.rest_of_line();
        let target = parse_target(self.sources.text(rest));
        self.line();
        if self.skipping() {
            return;
        }
        match target {
            Some(target) => self.include(&target, at),
            None => {
                let error = Diagnostic::error(at, "expected the name of a file");
                self.report(error.hint("write `#include \"file.x\"` or `#include <file.x>`"));
            }
        }
    }

    fn include(&mut self, target: &IncludeTarget, at: Span) {
        if self.frames.len() > self.options.limits.include_depth_max {
            let error = Diagnostic::error(at, "files include one another too deeply");
            return self.report(error.hint("does a file include itself? guard it with `#ifndef`"));
        }
        let candidates = self.candidates(target);
        for path in &candidates {
            match load::read(path, &self.options.files, self.text_bytes_left) {
                Ok(Some(text)) => {
                    return self.open(path, text, Some(at));
                }
                Ok(None) => {}
                Err(message) => return self.report(Diagnostic::error(at, message)),
            }
        }
        let (IncludeTarget::Quoted(name) | IncludeTarget::Angled(name)) = target;
        let error = Diagnostic::error(at, format!("there is no file `{name}`"));
        self.report(error.hint("name its folder with `-I FOLDER`"));
    }

    fn candidates(&self, target: &IncludeTarget) -> Vec<PathBuf> {
        let own = &self.frame().folder;
        let dirs = self.options.include_dirs.iter();
        match target {
            IncludeTarget::Angled(name) => dirs.map(|dir| dir.join(name)).collect(),
            IncludeTarget::Quoted(name) => std::iter::once(own.join(name))
                .chain(dirs.map(|dir| dir.join(name)))
                .collect(),
        }
    }

    /// Continues with a text; `included` is the span of the `#include`.
    pub(super) fn open(&mut self, path: &Path, text: String, included: Option<Span>) {
        let name = path.display().to_string();
        let Some(left) = self.text_bytes_left.checked_sub(text.len()) else {
            let error = match included {
                Some(at) => Diagnostic::error(at, "the interface is too long with this file"),
                None => Diagnostic::without_place(format!("`{name}` is too long")),
            };
            return self.report(error);
        };
        self.text_bytes_left = left;
        let file = self.sources.add(&name, text, included.is_some());
        self.warn_invisible(file);
        let lexer = Lexer::new(file, self.sources.whole(file));
        self.frames.push(IncludeFrame {
            lexer,
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            conditions: Vec::new(),
        });
    }

    /// Returns to the including file.
    pub(super) fn close_file(&mut self) {
        let frame = self.frames.pop();
        let open = frame.into_iter().flat_map(|frame| frame.conditions);
        for condition in open {
            self.report(Diagnostic::error(
                condition.opened,
                "this condition has no `#endif`",
            ));
        }
    }
}

fn parse_target(rest: &str) -> Option<IncludeTarget> {
    let rest = rest.trim_start();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let angled = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match (quoted, angled) {
        (Some((name, _)), _) => Some(IncludeTarget::Quoted(name.to_string())),
        (_, Some((name, _))) => Some(IncludeTarget::Angled(name.to_string())),
        _ => None,
    }
}
