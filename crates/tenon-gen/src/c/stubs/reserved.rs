//! Names that stubs cannot have in C as the interface has them: they get a `_` at their end.

use tenon_plan::links::is_link;
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use super::library;
use super::messages::is_own_parameter;
use crate::c::rename::NameKind;

/// The words of C, and of the headers that stubs include.
const WORDS: [&str; 61] = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Generic",
    "_Imaginary",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "bool",
    "true",
    "false",
    "size_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "NULL",
    "SIZE_MAX",
    "asm",
    "errno",
    "defined",
];

/// Variables of codecs, where types are named too.
const BESIDE_TYPES: [&str; 9] = ["in", "out", "it", "from", "value", "swapped", "i", "j", "k"];

/// The one of them that numbers become enums from.
const BESIDE_ENUMS: &str = "number";

/// Variables of functions that go along linked lists, where the type of the links is named too.
const BESIDE_LINKS: [&str; 2] = ["at", "count"];

/// Variables of codecs, where members of enums are named too.
const BESIDE_MEMBERS: [&str; 8] = [
    "in", "out", "it", "from", "to", "value", "swapped", "number",
];

/// Returns whether a definition is to have another name in C than `name`.
pub fn is_reserved(schema: &Schema, what: NameKind, name: &str) -> bool {
    // Definitions of C's own headers keep the name that they have there.
    if matches!(what, NameKind::Type(id) if schema.type_def(id).kind == TypeKind::External) {
        return false;
    }
    if WORDS.contains(&name) || library::defines(name) {
        // A name with the same meaning in C and in the interface is as good as C's own.
        return !matches!(what, NameKind::Type(id) if is_standard(schema, id, name));
    }
    match what {
        NameKind::Type(id) => {
            library::has(name) && !is_declared_alike(schema, id, name)
                || is_hidden(schema, id, name)
        }
        NameKind::Member => library::has(name) || BESIDE_MEMBERS.contains(&name),
        // A macro of the name would break programs that include the header.
        NameKind::Number => library::has(name),
        NameKind::Part => false,
    }
}

/// Returns whether the type `id` is a typedef that C's headers have, too, with the same meaning.
pub fn is_standard(schema: &Schema, id: TypeId, name: &str) -> bool {
    let TypeKind::Typedef(to) = &schema.type_def(id).kind else {
        return false;
    };
    match schema.resolve(to) {
        Type::Int => name == "int32_t",
        Type::Uint => name == "uint32_t",
        Type::Hyper => name == "int64_t",
        Type::Uhyper => name == "uint64_t",
        Type::Short => name == "int16_t",
        Type::Ushort => name == "uint16_t",
        Type::Char => name == "int8_t",
        Type::Uchar => name == "uint8_t",
        _ => false,
    }
}

/// Returns whether the type `id` is a typedef that glibc's headers may have, too, with the same meaning: C lets both stand.
fn is_declared_alike(schema: &Schema, id: TypeId, name: &str) -> bool {
    let TypeKind::Typedef(to) = &schema.type_def(id).kind else {
        return false;
    };
    let alike: &[&str] = match schema.resolve(to) {
        Type::Int => &["pid_t", "key_t", "clockid_t", "daddr_t"],
        Type::Uint => &[
            "u_int",
            "uint",
            "u_int32_t",
            "uid_t",
            "gid_t",
            "mode_t",
            "id_t",
        ],
        Type::Hyper => &["quad_t"],
        Type::Uhyper => &["u_int64_t", "u_quad_t"],
        Type::Ushort => &["u_int16_t", "u_short", "ushort"],
        Type::Uchar => &["u_int8_t", "u_char"],
        _ => &[],
    };
    alike.contains(&name)
}

/// Returns whether a variable has the name of a type where stubs name that.
fn is_hidden(schema: &Schema, id: TypeId, name: &str) -> bool {
    let has_procedures = !schema.programs.is_empty();
    let is_enum = || match schema.resolve(&Type::Named(id)) {
        Type::Named(id) => matches!(schema.type_def(*id).kind, TypeKind::Enum(_)),
        _ => false,
    };
    BESIDE_TYPES.contains(&name)
        || (has_procedures && is_own_parameter(schema, name))
        || (name == BESIDE_ENUMS && is_enum())
        || (BESIDE_LINKS.contains(&name) && is_link(schema, id))
}
