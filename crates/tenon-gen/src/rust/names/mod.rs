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

mod identifier;
mod reserved;
mod variants;

use std::collections::HashMap;

use tenon_schema::{
    Field, Procedure, Program, Schema, TypeDef, TypeId, TypeKind, Version, local_name,
};

pub use identifier::{IdentifierCase, NameScope};

use self::identifier::{common_words, without_words};
use self::reserved::{RESERVED_METHODS, RESERVED_PARAMETERS, RESERVED_TYPES};
use self::variants::{member_names, variant_names};
use super::modules::ModuleTree;

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

fn field_names(fields: &[Field]) -> Vec<String> {
    let mut scope = NameScope::new(&[]);
    let names = fields
        .iter()
        .map(|field| scope.name(&field.name, IdentifierCase::Snake));
    names.collect()
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
