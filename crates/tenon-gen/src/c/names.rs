//! Names and words of an interface in C: the one place where they are decided.

use tenon_schema::written::{Item, Spelling, WrittenType};
use tenon_schema::{Length, Type, TypeDef, TypeId, TypeKind};

use super::{Dialect, Interface};

/// Returns the words of a type in C for libtirpc: `u_int`, `struct node`, `char *`.
pub fn c_type(spelling: &Spelling) -> String {
    match &spelling.tag {
        Some(tag) => format!("{tag} {}", spelling.base),
        None => words(&spelling.base).to_owned(),
    }
}

/// The same without `struct`, `union` or `enum`.
pub fn bare_type(spelling: &Spelling) -> &str {
    words(&spelling.base)
}

/// The routine that moves such a value.
pub fn routine(spelling: &Spelling) -> String {
    match spelling.base.as_str() {
        "bool" => "xdr_bool".to_owned(),
        "string" => "xdr_wrapstring".to_owned(),
        _ => format!("xdr_{}", bare_type(spelling)),
    }
}

/// A routine as clients and servers of libtirpc take it. `xdr_void` is declared without parameters, so
/// compilers are told that the cast is meant.
pub fn cast_routine(routine: &str) -> String {
    match routine {
        "xdr_void" => "(xdrproc_t) (void (*) (void)) xdr_void".to_owned(),
        routine => format!("(xdrproc_t) {routine}"),
    }
}

/// C's name of what the language has words for; any other name is C's, too.
fn words(base: &str) -> &str {
    let has = |wanted: &str| base.split(' ').any(|word| word == wanted);
    let longs = base.split(' ').filter(|word| *word == "long").count();
    let integers = match () {
        () if has("hyper") || longs > 1 => ("quad_t", "u_quad_t"),
        () if has("char") => ("char", "u_char"),
        () if has("short") => ("short", "u_short"),
        () if longs > 0 => ("long", "u_long"),
        () => ("int", "u_int"),
    };
    match base {
        "bool" => "bool_t",
        "string" => "char *",
        "opaque" => "char",
        _ if has("unsigned") => integers.1,
        "int" | "long" | "short" | "char" | "hyper" => integers.0,
        _ if base.contains(' ') || base == "signed" => integers.0,
        name => name,
    }
}

/// Returns the C type of a type, or of the elements of an array, where libtirpc is not needed: `uint32_t`, `node`.
fn plain_type(ty: &Type, spelling: &Spelling) -> String {
    let name = match ty {
        Type::Array(inner, _) | Type::Optional(inner) => return plain_type(inner, spelling),
        Type::Int => "int32_t",
        Type::Uint => "uint32_t",
        Type::Hyper => "int64_t",
        Type::Uhyper => "uint64_t",
        Type::Short => "int16_t",
        Type::Ushort => "uint16_t",
        Type::Char => "int8_t",
        Type::Uchar => "uint8_t",
        Type::Float => "float",
        Type::Double => "double",
        Type::Bool => "bool",
        Type::Opaque(_) => "uint8_t",
        Type::String(_) => "char *",
        Type::Quadruple => no_quadruple(),
        // Every struct and union has its name as a typedef, in front of all definitions.
        Type::Named(_) => &spelling.base,
    };
    name.to_owned()
}

/// Takes the place of code for a `quadruple`.
pub fn no_quadruple() -> ! {
    unreachable!(
        "C has no quadruple precision, so interfaces with it are refused before they are printed"
    )
}

/// Returns whether the words are a C integer that has in memory the size of a pointer and not its size on the
/// wire.
pub fn is_long(spelling: &Spelling) -> bool {
    matches!(words(&spelling.base), "long" | "u_long")
}

/// The name of a procedure in C, or of the dispatcher of a program: in lower case, with the version behind it.
pub fn procedure(name: &str, version: VersionSuffix<'_>) -> String {
    match version {
        VersionSuffix::Number(version) => format!("{}_{version}", name.to_lowercase()),
        VersionSuffix::Written(version) => format!("{}_{version}", name.to_lowercase()),
    }
}

/// The part of a name that tells the version.
#[derive(Debug, Clone, Copy)]
pub enum VersionSuffix<'a> {
    /// Its number.
    Number(u32),
    /// The text in the place of its number: `0x1`, or the name of a constant.
    Written(&'a str),
}

/// The guard of a header file.
pub fn guard(header: &str) -> String {
    let name = header.rsplit('/').next().unwrap_or(header);
    let stem = name.strip_suffix(".h").unwrap_or(name);
    let letters = stem.chars().map(|char| match char {
        char if char.is_ascii_alphanumeric() => char.to_ascii_uppercase(),
        _ => '_',
    });
    format!("_{}_H_RPCGEN", letters.collect::<String>())
}

impl<'a> Interface<'a> {
    /// Returns the C type of a type, of the elements of an array, or of the target of a pointer.
    pub fn c_type(self, ty: &Type, spelling: &Spelling) -> String {
        match self.dialect {
            Dialect::Libtirpc => c_type(spelling),
            Dialect::Plain => plain_type(ty, spelling),
        }
    }

    /// The same beside something that is called `name`: C++ does not let it have the name of its type alone.
    pub fn c_type_beside(self, ty: &Type, spelling: &Spelling, name: &str) -> String {
        let words = self.c_type(ty, spelling);
        match self.tag(ty).filter(|_| words == name) {
            Some(tag) => format!("{tag} {words}"),
            None => words,
        }
    }

    /// Returns the tag in front of the name of a type in C, of the elements of an array, or of the target of a
    /// pointer; a typedef has none.
    fn tag(self, ty: &Type) -> Option<&'static str> {
        match ty {
            Type::Array(inner, _) | Type::Optional(inner) => self.tag(inner),
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Struct(_) | TypeKind::Union(_) => Some("struct"),
                TypeKind::Enum(_) => Some("enum"),
                TypeKind::Typedef(_) | TypeKind::External => None,
            },
            _ => None,
        }
    }

    /// Returns the suffix of the names of a version: as in rpcgen the number as it is written, if that is a word.
    pub fn version_suffix(self, program: usize, version: usize) -> VersionSuffix<'a> {
        let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
        match self.written.programs[program].versions[version].as_str() {
            written if self.dialect == Dialect::Libtirpc && written.chars().all(is_letter) => {
                VersionSuffix::Written(written)
            }
            _ => VersionSuffix::Number(self.schema.programs[program].versions[version].number),
        }
    }

    /// The name of the dispatcher of a version, which is the prefix of names that belong to the whole version.
    pub fn dispatcher(self, program: usize, version: usize) -> String {
        let name = &self.schema.programs[program].name;
        procedure(name, self.version_suffix(program, version))
    }

    /// Returns whether a type of a plan is declared elsewhere, or stands for an array of a length that only C knows.
    pub fn is_elsewhere(self, id: TypeId) -> bool {
        let def = self.schema.types.get(id.0 as usize);
        def.is_none_or(|def| def.kind == TypeKind::External)
    }

    /// Returns the spelling of the type `id` in the interface file.
    pub fn written_type(self, id: TypeId) -> &'a WrittenType {
        &self.written.types[id.0 as usize]
    }

    /// Returns the type that a typedef stands for, if `id` is one.
    pub fn alias(self, id: TypeId) -> Option<(&'a Type, &'a Spelling)> {
        match (&self.schema.type_def(id).kind, self.written_type(id)) {
            (TypeKind::Typedef(ty), WrittenType::Typedef(spelling)) => Some((ty, spelling)),
            _ => None,
        }
    }

    /// The definition of a type, and what it stands for, if `ty` is the name of an array of fixed
    /// length: what C passes as a pointer to its first element.
    pub fn vector(self, ty: &'a Type) -> Option<(&'a TypeDef, &'a Spelling)> {
        let mut at = ty;
        for _ in 0..=self.schema.types.len() {
            let Type::Named(id) = at else { return None };
            let (to, spelling) = self.alias(*id)?;
            if let Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)) = to {
                return Some((self.schema.type_def(*id), spelling));
            }
            at = to;
        }
        None
    }

    /// The types that are defined in front of the item at `position`.
    pub fn defined_before(self, position: usize) -> impl Iterator<Item = TypeId> {
        let items = self.written.items[..position].iter();
        items.filter_map(|item| match item {
            Item::Type(id) => Some(*id),
            Item::Passthrough(_) | Item::Constant { .. } | Item::Program(_) => None,
        })
    }
}
