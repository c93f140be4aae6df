//! Namespaces as modules: the tree of modules, and their items.

use std::collections::HashMap;

use tenon_schema::{Schema, TypeId, local_name, namespace};

/// The module that the file itself is.
pub const ROOT: usize = 0;

/// The modules of a file, each behind the one that it stands in.
#[derive(Debug, Clone)]
pub struct ModuleTree {
    list: Vec<RustModule>,
    by_path: HashMap<String, usize>,
}

/// A module and its items, as positions in the schema.
#[derive(Debug, Clone, Default)]
pub struct RustModule {
    /// The path of the namespace.
    path: String,
    around: usize,
    /// The modules that stand right in it.
    pub inside: Vec<usize>,
    /// Its types.
    pub types: Vec<TypeId>,
    /// Its constants.
    pub constants: Vec<usize>,
    /// Its programs.
    pub programs: Vec<usize>,
}

impl ModuleTree {
    /// One for each namespace, in the order in which they first hold something.
    pub fn new(schema: &Schema) -> Self {
        let mut modules = Self {
            list: vec![RustModule::default()],
            by_path: HashMap::from([(String::new(), ROOT)]),
        };
        for (id, def) in (0..).map(TypeId).zip(&schema.types) {
            modules.add_name(&def.name).types.push(id);
        }
        for (position, constant) in schema.constants.iter().enumerate() {
            modules.add_name(&constant.name).constants.push(position);
        }
        for (position, program) in schema.programs.iter().enumerate() {
            modules.add_name(&program.name).programs.push(position);
        }
        modules
    }

    /// The module of the definition with the name `name`, which may be the first there.
    fn add_name(&mut self, name: &str) -> &mut RustModule {
        let id = self.add(namespace(name));
        &mut self.list[id]
    }

    fn add(&mut self, path: &str) -> usize {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let around = self.add(namespace(path));
        let id = self.list.len();
        self.list.push(RustModule {
            path: path.to_owned(),
            around,
            ..RustModule::default()
        });
        self.list[around].inside.push(id);
        self.by_path.insert(path.to_owned(), id);
        id
    }

    /// All modules, each behind the one that it stands in.
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.list.len()
    }

    /// Returns a module.
    pub fn get(&self, id: usize) -> &RustModule {
        &self.list[id]
    }

    /// The module of the definition that has the name `name` in the interface.
    pub fn of(&self, name: &str) -> usize {
        self.by_path.get(namespace(name)).copied().unwrap_or(ROOT)
    }

    /// The module around a module, and the name of the namespace in the one around it; `None` for the file.
    pub fn place(&self, id: usize) -> Option<(usize, &str)> {
        let module = &self.list[id];
        (id != ROOT).then(|| (module.around, local_name(&module.path)))
    }

    /// The path of modules from the file down to one, itself included and the file not.
    pub fn way_to(&self, id: usize) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = id;
        while at != ROOT {
            way.push(at);
            at = self.list[at].around;
        }
        way.reverse();
        way
    }
}
