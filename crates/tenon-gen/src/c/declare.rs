//! Declarations in C: what rpcgen makes of arrays, pointers and strings.

use tenon_schema::written::Spelling;
use tenon_schema::{Length, Type};

use super::{Dialect, Interface};
use crate::writer::SourceWriter;

/// A declaration in C: a name and a type.
#[derive(Debug, Clone, Copy)]
pub struct CDeclaration<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: &'a Type,
    /// The spelling of the type in the interface file.
    pub spelling: &'a Spelling,
}

impl CDeclaration<'_> {
    /// As a part of a struct or union; `owner` is the type that the part may point to before it has
    /// a name without `struct`.
    pub fn member(self, w: &mut SourceWriter, of: Interface<'_>, owner: &str) {
        let words = match of.dialect {
            Dialect::Libtirpc => self.own_or(owner, of.c_type(self.ty, self.spelling)),
            Dialect::Plain => of.c_type_beside(self.ty, self.spelling, self.name),
        };
        self.write(w, of.dialect, &words, "");
    }

    /// The words of a type, with `struct` in front if it is the owner, which has no other name yet.
    fn own_or(self, owner: &str, words: String) -> String {
        let is_own = self.spelling.base == owner && self.spelling.tag.is_none();
        match is_own && matches!(self.ty, Type::Optional(_)) {
            true => format!("struct {owner}"),
            false => words,
        }
    }

    /// As a typedef; `words` is what its words are there.
    pub fn typedef(self, w: &mut SourceWriter, dialect: Dialect, words: &str) {
        self.write(w, dialect, words, "typedef ");
    }

    /// Returns the number of elements of an array. Names that C's headers declare are arrays without a bound.
    pub fn bound(self, dialect: Dialect) -> String {
        match (dialect, self.ty, &self.spelling.bound) {
            (_, _, Some(bound)) => bound.clone(),
            (Dialect::Plain, Type::Array(_, Length::Fixed(count)), None)
            | (Dialect::Plain, Type::Opaque(Length::Fixed(count)), None) => count.to_string(),
            (_, _, None) => "0".to_owned(),
        }
    }

    fn write(self, w: &mut SourceWriter, dialect: Dialect, of: &str, lead: &str) {
        let (name, bound) = (self.name, self.bound(dialect));
        let count = match dialect {
            Dialect::Libtirpc => "u_int",
            Dialect::Plain => "uint32_t",
        };
        match self.ty {
            Type::String(_) => w.line(format!("{lead}char *{name};")),
            Type::Optional(_) => w.line(format!("{lead}{}*{name};", spaced(of))),
            Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)) => {
                w.line(format!("{lead}{}{name}[{bound}];", spaced(of)));
            }
            Type::Array(_, Length::Counted(_)) | Type::Opaque(Length::Counted(_)) => {
                w.line(format!("{lead}struct {{"));
                w.indented(|w| {
                    w.line(format!("{count} {name}_len;"));
                    w.line(format!("{}*{name}_val;", spaced(of)));
                });
                w.line(format!("}} {name};"));
            }
            _ => w.line(format!("{lead}{}{name};", spaced(of))),
        }
    }
}

/// A type in front of a name: with a space between them, unless a star ends it.
pub fn spaced(of: &str) -> String {
    match of.ends_with('*') {
        true => of.to_owned(),
        false => format!("{of} "),
    }
}
