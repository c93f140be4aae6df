//! Identifiers. The one place where a name of an interface becomes a name of Rust.
//!
//! 1. A name is split into words: at `_`, where a small letter or a digit meets a capital
//!    (`fooBar`, `NFS3ERR`), where the last of several capitals starts a word (`XDRFile`), and
//!    where small letters follow capitals and digits (`LOOKUP3args`).
//! 2. Types, traits and variants join the words as `UpperCamelCase`, fields, methods and
//!    functions as `snake_case`, constants as `SCREAMING_SNAKE_CASE`.
//! 3. The procedures of a version and the members of an enum lose the words that all of them
//!    start with, if there are at least two of them and a name that starts with a letter is left
//!    for each: `NFSPROC3_READ` is the method `read`, `NFS3ERR_IO` the variant `ErrIo`.
//! 4. The variants of a union are called as the members of the enum, or the constants, that are its
//!    case labels. Where a label is a number or a boolean, the variant is called as the field that it
//!    selects, and `Void` if that is none; where several labels select a field or nothing, each stands
//!    behind that: `Value7`, `VoidMinus1`. A default arm that stands for several values is called as
//!    its field, or `Default`.
//! 5. The variants of a procedure's error are called as the types of what it raises.
//! 6. A keyword, or a name that the generated code needs for itself, gets a `_` at its end.
//! 7. A namespace is a module; its name is in `snake_case`.
//! 8. Of names that are now the same in one scope, the first in the interface keeps it and the
//!    others get `2`, `3`, ... at the end (`_2`, `_3` unless in `UpperCamelCase`).

use std::collections::{HashMap, HashSet};

use tenon_plan::Scalar;
use tenon_schema::{
    EnumMember, Field, Procedure, Program, Schema, TypeDef, TypeId, TypeKind, Union, Version,
    local_name,
};

use super::modules::ModuleTree;

/// The three ways to join words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifierCase {
    /// `UpperCamelCase`
    Camel,
    /// `snake_case`
    Snake,
    /// `SCREAMING_SNAKE_CASE`
    Screaming,
}

/// Names that must differ from each other.
#[derive(Debug, Clone, Default)]
pub struct NameScope {
    reserved: &'static [&'static str],
    /// The names that are taken, with the number to try next.
    taken: HashMap<String, u32>,
}

impl NameScope {
    /// A scope in which the generated code needs `reserved` for itself.
    pub fn new(reserved: &'static [&'static str]) -> Self {
        let taken = HashMap::new();
        Self { reserved, taken }
    }

    /// The identifier for `name`, different from all handed out before.
    pub fn name(&mut self, name: &str, case: IdentifierCase) -> String {
        let mut wanted = join(&words(name), case);
        if KEYWORDS.contains(&wanted.as_str()) || self.reserved.contains(&wanted.as_str()) {
            wanted.push('_');
        }
        let mut name = wanted.clone();
        while self.taken.contains_key(&name) {
            let number = self.taken.entry(wanted.clone()).or_insert(1);
            *number += 1;
            let stem = wanted.trim_end_matches('_');
            let separator = if case == IdentifierCase::Camel {
                ""
            } else {
                "_"
            };
            name = format!("{stem}{separator}{number}");
        }
        self.taken.insert(name.clone(), 1);
        name
    }
}

/// Splits a name into words, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let chars: Vec<char> = name.chars().collect();
    for (index, char) in chars.iter().enumerate() {
        if *char == '_' || starts_word(&chars, index) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), *char != '_') {
            word.extend(char.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a word starts at `index` though no `_` stands before it.
fn starts_word(chars: &[char], index: usize) -> bool {
    let char = chars[index];
    let Some(before) = index.checked_sub(1).map(|before| chars[before]) else {
        return false;
    };
    let small_follows = chars.get(index + 1).is_some_and(|next| next.is_lowercase());
    if char.is_uppercase() {
        let ends_word = before.is_lowercase() || before.is_ascii_digit();
        return ends_word || before.is_uppercase() && small_follows;
    }
    let mut letters = chars[..index].iter().rev();
    let before_digits = letters.find(|char| !char.is_ascii_digit());
    char.is_lowercase()
        && before.is_ascii_digit()
        && before_digits.is_some_and(|char| char.is_uppercase())
}

fn join(words: &[String], case: IdentifierCase) -> String {
    let joined = match case {
        IdentifierCase::Camel => words.iter().map(|word| capitalized(word)).collect(),
        IdentifierCase::Snake => words.join("_"),
        IdentifierCase::Screaming => words.join("_").to_uppercase(),
    };
    match joined.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("_{joined}"),
        Some(_) => joined,
        None => join(&["underscore".to_owned()], case),
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Every identifier of the generated file, in the order of the schema. Names stand in the module of their namespace.
#[derive(Debug, Clone)]
pub struct Names {
    /// The modules in which they stand.
    modules: ModuleTree,
    /// Of these modules; that of the file itself is empty.
    module_names: Vec<String>,
    /// Of types.
    pub types: Vec<TypeNames>,
    /// Of constants.
    pub constants: Vec<String>,
    /// Of programs.
    pub programs: Vec<ProgramNames>,
}

/// The names that belong to a type.
#[derive(Debug, Clone)]
pub struct TypeNames {
    /// The type.
    pub name: String,
    /// The view of it.
    pub view: String,
    /// If it is a typedef, the functions that encode, decode and view it in each representation.
    pub functions: Vec<TypedefFunctions>,
    /// Fields of a struct, members of an enum, or the variants of a union: one for each case of
    /// each arm, and one for the default arm at the end.
    pub parts: Vec<String>,
}

/// The functions of a typedef in one representation.
#[derive(Debug, Clone)]
pub struct TypedefFunctions {
    /// Encodes.
    pub encode: String,
    /// Decodes.
    pub decode: String,
    /// Decodes what borrows from the message.
    pub view: String,
}

/// The names that belong to a program.
#[derive(Debug, Clone)]
pub struct ProgramNames {
    /// The constant of its number.
    pub number: String,
    /// Of its versions.
    pub versions: Vec<VersionNames>,
}

/// The names that belong to a version.
#[derive(Debug, Clone)]
pub struct VersionNames {
    /// The constant of its number.
    pub number: String,
    /// The trait that a server implements.
    pub server: String,
    /// The adapter from the trait to a service.
    pub service: String,
    /// The client.
    pub client: String,
    /// The trait of all that calls its procedures.
    pub calls: String,
    /// The adapter from a server to that trait.
    pub in_process: String,
    /// The asynchronous client.
    pub async_client: String,
    /// The trait that a server of tasks implements.
    pub async_server: String,
    /// The adapter from that trait to a service.
    pub async_service: String,
    /// The trait of all that calls its procedures from tasks.
    pub async_calls: String,
    /// The adapter from a server of tasks to that trait.
    pub async_in_process: String,
    /// The constant of the fingerprints of the version.
    pub interface: String,
    /// Of its procedures.
    pub procedures: Vec<ProcedureNames>,
}

/// The names that belong to a procedure.
#[derive(Debug, Clone)]
pub struct ProcedureNames {
    /// The constant of its number.
    pub number: String,
    /// An earlier procedure of the file has the same constant.
    pub number_is_known: bool,
    /// The method that calls it, and the one that serves it.
    pub method: String,
    /// The method that starts a call.
    pub start: String,
    /// The type of a call as a value.
    pub call: String,
    /// The error of a call that has no result.
    pub error: String,
    /// The variants of that for the errors that the procedure raises.
    pub raised: Vec<String>,
    /// The type of a call as it comes in.
    pub request: String,
    /// Its parameters.
    pub parameters: Vec<String>,
}

/// The scopes of names in one module.
struct ModuleScope {
    types: NameScope,
    values: NameScope,
    /// The constants of procedures, by their names and numbers.
    numbers: HashMap<(String, u32), String>,
}

impl ModuleScope {
    fn new() -> Self {
        Self {
            types: NameScope::new(RESERVED_TYPES),
            values: NameScope::new(&[]),
            numbers: HashMap::new(),
        }
    }
}

impl Names {
    /// The names of everything in `schema`, with functions of typedefs for the representations that
    /// have `suffixes`.
    pub fn of(schema: &Schema, suffixes: &[&str]) -> Self {
        let modules = ModuleTree::new(schema);
        let mut spaces: Vec<ModuleScope> = modules.ids().map(|_| ModuleScope::new()).collect();
        let types = schema.types.iter().map(|def| {
            let space = &mut spaces[modules.of(&def.name)];
            type_names(schema, def, suffixes, space)
        });
        let types = types.collect();
        let constants = schema.constants.iter().map(|constant| {
            let values = &mut spaces[modules.of(&constant.name)].values;
            values.name(local_name(&constant.name), IdentifierCase::Screaming)
        });
        let constants = constants.collect();
        let programs = schema.programs.iter().map(|program| {
            let space = &mut spaces[modules.of(&program.name)];
            program_names(program, space)
        });
        let programs = programs.collect();
        let mut names = Self {
            module_names: vec![String::new(); modules.ids().len()],
            modules,
            types,
            constants,
            programs,
        };
        names.add_behind(schema, &mut spaces);
        names
    }

    /// Adds names that must not make others step aside, and so come behind them.
    fn add_behind(&mut self, schema: &Schema, spaces: &mut [ModuleScope]) {
        let modules = &self.modules;
        for (names, def) in self.types.iter_mut().zip(&schema.types) {
            let types = &mut spaces[modules.of(&def.name)].types;
            names.view = types.name(
                &format!("{}_view", local_name(&def.name)),
                IdentifierCase::Camel,
            );
        }
        for (names, program) in self.programs.iter_mut().zip(&schema.programs) {
            let space = &mut spaces[modules.of(&program.name)];
            names.add_clients(schema, program, space);
        }
        for (names, program) in self.programs.iter_mut().zip(&schema.programs) {
            let space = &mut spaces[modules.of(&program.name)];
            names.add_tasks(program, space);
        }
        for id in modules.ids() {
            if let Some((around, name)) = modules.place(id) {
                self.module_names[id] = spaces[around].types.name(name, IdentifierCase::Snake);
            }
        }
    }

    /// The names of a type.
    pub fn of_type(&self, id: TypeId) -> &TypeNames {
        &self.types[id.0 as usize]
    }

    /// The modules in which names stand.
    pub fn modules(&self) -> &ModuleTree {
        &self.modules
    }

    /// The name of a module.
    pub fn of_module(&self, id: usize) -> &str {
        &self.module_names[id]
    }

    /// Returns the path in front of a name of the module `to` in the module `from`.
    pub fn path(&self, from: usize, to: usize) -> String {
        let (from, to) = (self.modules.way_to(from), self.modules.way_to(to));
        let shared = from.iter().zip(&to).take_while(|(from, to)| from == to);
        let shared = shared.count();
        "super::".repeat(from.len() - shared) + &self.down(&to[shared..])
    }

    /// Returns the path in front of a name in the module `id` that is defined in a module of the same path, below the
    /// module around the file.
    pub fn path_outside(&self, id: usize) -> String {
        let way = self.modules.way_to(id);
        "super::".repeat(way.len() + 1) + &self.down(&way)
    }

    fn down(&self, way: &[usize]) -> String {
        way.iter()
            .map(|id| format!("{}::", self.of_module(*id)))
            .collect()
    }
}

fn program_names(program: &Program, space: &mut ModuleScope) -> ProgramNames {
    let number = space
        .values
        .name(local_name(&program.name), IdentifierCase::Screaming);
    let versions = program.versions.iter();
    ProgramNames {
        number,
        versions: versions
            .map(|version| version_names(version, space))
            .collect(),
    }
}

fn version_names(version: &Version, space: &mut ModuleScope) -> VersionNames {
    let mut type_name = |ending: &str| {
        space
            .types
            .name(&format!("{}{ending}", version.name), IdentifierCase::Camel)
    };
    let (server, service, client) = (type_name(""), type_name("_service"), type_name("_client"));
    VersionNames {
        number: space.values.name(&version.name, IdentifierCase::Screaming),
        server,
        service,
        client,
        calls: String::new(),
        in_process: String::new(),
        async_client: String::new(),
        async_server: String::new(),
        async_service: String::new(),
        async_calls: String::new(),
        async_in_process: String::new(),
        interface: String::new(),
        procedures: procedure_names(&version.procedures, &mut space.values, &mut space.numbers),
    }
}

impl ProgramNames {
    /// Adds the names that clients need.
    fn add_clients(&mut self, schema: &Schema, program: &Program, space: &mut ModuleScope) {
        for (names, version) in self.versions.iter_mut().zip(&program.versions) {
            names.interface = space.values.name(
                &format!("{}_interface", version.name),
                IdentifierCase::Screaming,
            );
            let mut name = |rest: &str| {
                space
                    .types
                    .name(&format!("{}_{rest}", version.name), IdentifierCase::Camel)
            };
            names.async_client = name("async_client");
            names.calls = name("calls");
            names.in_process = name("in_process");
            for (names, procedure) in names.procedures.iter_mut().zip(&version.procedures) {
                names.error = name(&format!("{}_error", names.method));
                names.raised = raised_names(schema, procedure);
            }
            for names in &mut names.procedures {
                names.call = name(&names.method);
            }
        }
    }

    /// Adds the names that services for tasks need.
    fn add_tasks(&mut self, program: &Program, space: &mut ModuleScope) {
        for (names, version) in self.versions.iter_mut().zip(&program.versions) {
            let mut name = |rest: &str| {
                space
                    .types
                    .name(&format!("{}_{rest}", version.name), IdentifierCase::Camel)
            };
            names.async_server = name("async");
            names.async_service = name("async_service");
            names.async_calls = name("async_calls");
            names.async_in_process = name("async_in_process");
            for names in &mut names.procedures {
                names.request = name(&format!("{}_request", names.method));
            }
        }
    }
}

/// The variants of the errors of a procedure, beside that of other errors.
fn raised_names(schema: &Schema, procedure: &Procedure) -> Vec<String> {
    let mut scope = NameScope::new(&["Other"]);
    let raised = procedure.annotations.raises.iter();
    let names = raised.map(|id| {
        let declared = local_name(&schema.type_def(*id).name);
        scope.name(declared, IdentifierCase::Camel)
    });
    names.collect()
}

fn type_names(
    schema: &Schema,
    def: &TypeDef,
    suffixes: &[&str],
    space: &mut ModuleScope,
) -> TypeNames {
    let local = local_name(&def.name);
    let mut function = |does: &str, suffix: &str| {
        space
            .values
            .name(&format!("{does}_{local}{suffix}"), IdentifierCase::Snake)
    };
    let functions = match def.kind {
        TypeKind::Typedef(_) => suffixes
            .iter()
            .map(|suffix| TypedefFunctions {
                encode: function("encode", suffix),
                decode: function("decode", suffix),
                view: function("view", suffix),
            })
            .collect(),
        _ => Vec::new(),
    };
    TypeNames {
        name: space.types.name(local, IdentifierCase::Camel),
        view: String::new(),
        functions,
        parts: match &def.kind {
            TypeKind::Struct(fields) => field_names(fields),
            TypeKind::Enum(members) => member_names(members),
            TypeKind::Union(union) => variant_names(schema, union),
            TypeKind::Typedef(_) | TypeKind::External => Vec::new(),
        },
    }
}

/// The first member of a value is a variant, the others are constants.
fn member_names(members: &[EnumMember]) -> Vec<String> {
    let mut scope = NameScope::new(&[]);
    let mut values = HashSet::new();
    let common = common_words_of_members(members);
    let names = members.iter().map(|member| {
        let name = without_words(&member.name, common);
        match values.insert(member.value) {
            true => scope.name(&name, IdentifierCase::Camel),
            false => scope.name(&name, IdentifierCase::Screaming),
        }
    });
    names.collect()
}

fn common_words_of_members(members: &[EnumMember]) -> usize {
    common_words(members.iter().map(|member| member.name.as_str()))
}

fn field_names(fields: &[Field]) -> Vec<String> {
    let mut scope = NameScope::new(&[]);
    let names = fields
        .iter()
        .map(|field| scope.name(&field.name, IdentifierCase::Snake));
    names.collect()
}

/// The variants of a union: as the members of the enum that selects the arm, or else as what the arms hold.
fn variant_names(schema: &Schema, union: &Union) -> Vec<String> {
    let scalar = Scalar::of(schema, &union.discriminant_type);
    let members = match scalar {
        Some(Scalar::Enum(id)) => match &schema.type_def(id).kind {
            TypeKind::Enum(members) => Some(members.as_slice()),
            _ => None,
        },
        _ => None,
    };
    let names = match members {
        Some(members) => names_of_members(members, union),
        None => names_of_fields(union, scalar == Some(Scalar::Bool)),
    };
    let mut scope = NameScope::new(&[]);
    let names = names
        .iter()
        .map(|name| scope.name(name, IdentifierCase::Camel));
    names.collect()
}

fn names_of_members(members: &[EnumMember], union: &Union) -> Vec<String> {
    let common = common_words_of_members(members);
    let is_member = |label: &str| members.iter().any(|member| member.name == label);
    let cases = union.arms.iter().flat_map(|arm| &arm.cases);
    let names = cases.map(|case| match is_member(&case.label) {
        true => without_words(&case.label, common),
        false => label(&case.label),
    });
    names.chain(["default".to_owned()]).collect()
}

/// A number tells less than the field that it selects; a constant has been given a name to tell what it is.
fn names_of_fields(union: &Union, is_bool: bool) -> Vec<String> {
    let mut names = Vec::new();
    let voids = union.arms.iter().filter(|arm| arm.field.is_none());
    let voids: usize = voids.map(|arm| arm.cases.len()).sum();
    for arm in &union.arms {
        let held = arm.field.as_ref().map_or("void", |field| &field.name);
        let is_alone = match arm.field {
            Some(_) => arm.cases.len() == 1,
            None => voids == 1,
        };
        names.extend(arm.cases.iter().map(|case| match &*case.label {
            name if is_constant(name) => name.to_owned(),
            _ if is_alone => held.to_owned(),
            label => format!("{held}_{}", numeral(label)),
        }));
    }
    let is_other_bool = is_bool && names.len() == 1 && voids == 0;
    names.push(match &union.default {
        Some(Some(field)) => field.name.clone(),
        Some(None) if is_other_bool => "void".to_owned(),
        Some(None) | None => "default".to_owned(),
    });
    names
}

fn is_constant(label: &str) -> bool {
    let is_name = label.starts_with(|first: char| first.is_alphabetic() || first == '_');
    is_name && !["true", "false"].contains(&&*label.to_lowercase())
}

/// A case label as a name.
fn label(label: &str) -> String {
    match is_constant(label) {
        true => numeral(label),
        false => format!("case_{}", numeral(label)),
    }
}

/// A case label as the end of a name.
fn numeral(label: &str) -> String {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let (sign, digits) = match label.strip_prefix('-') {
        Some(digits) => ("minus_", digits.trim()),
        None => ("", label),
    };
    let digits = digits.replace(|char| !is_part(char), "_");
    format!("{sign}{digits}")
}

fn procedure_names(
    procedures: &[Procedure],
    values: &mut NameScope,
    numbers: &mut HashMap<(String, u32), String>,
) -> Vec<ProcedureNames> {
    let mut scope = NameScope::new(RESERVED_METHODS);
    let common = common_words(procedures.iter().map(|procedure| procedure.name.as_str()));
    let mut name_of = |procedure: &Procedure| {
        let key = (procedure.name.clone(), procedure.number);
        let number_is_known = numbers.contains_key(&key);
        let number = numbers
            .entry(key)
            .or_insert_with(|| values.name(&procedure.name, IdentifierCase::Screaming));
        ProcedureNames {
            number: number.clone(),
            number_is_known,
            method: scope.name(
                &without_words(&procedure.name, common),
                IdentifierCase::Snake,
            ),
            start: String::new(),
            call: String::new(),
            error: String::new(),
            raised: Vec::new(),
            request: String::new(),
            parameters: parameter_names(&procedure.arguments),
        }
    };
    let mut names: Vec<_> = procedures.iter().map(&mut name_of).collect();
    for name in &mut names {
        name.start = scope.name(&format!("start_{}", name.method), IdentifierCase::Snake);
    }
    names
}

fn parameter_names(arguments: &[Field]) -> Vec<String> {
    if let [Field { name, .. }] = arguments
        && name == "arg1"
    {
        return vec!["args".to_owned()];
    }
    let mut scope = NameScope::new(RESERVED_PARAMETERS);
    let names = arguments
        .iter()
        .map(|field| scope.name(&field.name, IdentifierCase::Snake));
    names.collect()
}

/// `name` without its first words.
fn without_words(name: &str, count: usize) -> String {
    words(name)[count..].join("_")
}

/// Returns the number of words that all names start with, such that each keeps a name of its own.
fn common_words<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let names: Vec<_> = names.map(words).collect();
    let [first, others @ ..] = names.as_slice() else {
        return 0;
    };
    if others.is_empty() {
        return 0;
    }
    let common = |other: &Vec<String>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let common = others.iter().map(common).min().unwrap_or(0);
    let keeps_name = |name: &Vec<String>| {
        let rest = name.get(common).and_then(|word| word.chars().next());
        rest.is_some_and(char::is_alphabetic)
    };
    if names.iter().all(keeps_name) {
        common
    } else {
        0
    }
}

/// Words that Rust keeps for itself, in every case in which a name can be one of them.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types, traits and crates that the generated code names.
const RESERVED_TYPES: &[&str] = &[
    "BStr",
    "BString",
    "Box",
    "ByNumber",
    "C",
    "CallCodec",
    "CallError",
    "CallErrorKind",
    "CallInfo",
    "CallOptions",
    "CalledProcedure",
    "Channel",
    "ChannelOptions",
    "Client",
    "Clone",
    "ConnectError",
    "Copy",
    "Cow",
    "Credential",
    "Debug",
    "DecodeError",
    "DecodeErrorKind",
    "Decoder",
    "Default",
    "Duration",
    "EncodeError",
    "EncodeErrorKind",
    "Encoder",
    "Eq",
    "Err",
    "F",
    "Field",
    "From",
    "Hash",
    "I",
    "Lean",
    "LeanInput",
    "LeanInterface",
    "LeanService",
    "MakeCalls",
    "Marshal",
    "None",
    "O",
    "Ok",
    "Option",
    "Order",
    "PartialEq",
    "PendingCall",
    "ProcedureError",
    "ProcedureInfo",
    "R",
    "Refusal",
    "Representation",
    "Result",
    "Service",
    "Some",
    "String",
    "T",
    "TryFrom",
    "Vec",
    "View",
    "WithOptions",
    "Word",
    "Xdr",
    "alloc",
    "core",
    "in_process",
    "std",
    "tenon",
];

/// Methods that every client has.
const RESERVED_METHODS: &[&str] = &[
    "clone",
    "connect",
    "connect_with",
    "over",
    "with_credential",
    "with_options",
    "with_timeout",
];

/// Names that the methods of clients and servers use while they still use parameters.
const RESERVED_PARAMETERS: &[&str] = &["block", "call", "input", "out", "reply"];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, case: IdentifierCase) -> String {
        NameScope::new(&["Vec"]).name(name, case)
    }

    #[test]
    fn words_are_found_and_joined() {
        for (given, camel, snake) in [
            ("nfs_fh3", "NfsFh3", "nfs_fh3"),
            ("LOOKUP3args", "Lookup3Args", "lookup3_args"),
            ("NFS3ERR_NOENT", "Nfs3ErrNoent", "nfs3_err_noent"),
            ("fooBar", "FooBar", "foo_bar"),
            ("XDRFile", "XdrFile", "xdr_file"),
            ("v3handle", "V3handle", "v3handle"),
            ("__a__b", "AB", "a_b"),
            ("_", "Underscore", "underscore"),
            ("_3d", "_3d", "_3d"),
        ] {
            assert_eq!(name(given, IdentifierCase::Camel), camel);
            assert_eq!(name(given, IdentifierCase::Snake), snake);
        }
        assert_eq!(name("maxSize", IdentifierCase::Screaming), "MAX_SIZE");
    }

    #[test]
    fn keywords_and_needed_names_step_aside() {
        assert_eq!(name("type", IdentifierCase::Snake), "type_");
        assert_eq!(name("self", IdentifierCase::Camel), "Self_");
        assert_eq!(name("vec", IdentifierCase::Camel), "Vec_");
    }

    #[test]
    fn the_first_of_equal_names_keeps_it() {
        let mut scope = NameScope::new(&[]);
        let mut next = |name| scope.name(name, IdentifierCase::Snake);
        assert_eq!(
            [next("a_b"), next("aB"), next("a_b_2"), next("A_B")],
            ["a_b", "a_b_2", "a_b_2_2", "a_b_3"]
        );
    }

    #[test]
    fn shared_words_are_dropped_only_where_names_remain() {
        let common = |names: &[&str]| common_words(names.iter().copied());
        assert_eq!(common(&["NFSPROC3_NULL", "NFSPROC3_READ"]), 1);
        assert_eq!(common(&["NFS3_OK", "NFS3ERR_IO"]), 1);
        assert_eq!(common(&["READ"]), 0);
        assert_eq!(common(&["READ", "READ_ALL"]), 0);
        assert_eq!(common(&["V_1", "V_2"]), 0);
    }
}
