//! The modules of a crate import each other in one direction: no file uses what stands in a file that uses what
//! stands in it, over however many others. Checked for the crates on the road of a call.
//!
//! A file uses another if a path in it, of an import or in the middle of code, of a macro's arguments too, leads to
//! an item that is defined there, by whatever names it is re-exported on the way: `use super::Name` in a child is a use of
//! the file of `Name`, and no use of the parent that re-exports it. So these are no uses by themselves:
//!
//! - `mod child;`, and a parent's re-export of what its children define, unless the parent uses the name as well;
//! - an import of a module, but what is reached through it is;
//! - methods that a child adds to a type of its parent (`impl super::Connection`), and that the parent calls: the child
//!   uses the parent, and the parent names nothing of the child.
//!
//! Modules of tests within a file do not count.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMacro, ItemMod, ItemUse, Macro, UseTree, Visibility};

use tenon_interop::root;

/// The crates that a call goes through.
const CRATES: [&str; 8] = [
    "tenon",
    "tenon-proto",
    "tenon-net",
    "tenon-tokio",
    "tenon-shm",
    "tenon-core",
    "tenon-wire",
    "tenon-sync",
];

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    let mut cycles = Vec::new();
    for name in CRATES {
        let folder = root().join("crates").join(name).join("src");
        let library = Library::load(|path| fs::read_to_string(folder.join(path)).ok());
        assert!(
            !library.uses().is_empty(),
            "{name} has no files that use each other"
        );
        cycles.extend(
            library
                .cycles()
                .into_iter()
                .map(|cycle| format!("{name}: {cycle}")),
        );
    }
    assert!(
        cycles.is_empty(),
        "these files import each other in a circle; move what they share into a file below:\n{}",
        cycles.join("\n")
    );
}

/// Parses the files of a library, and returns its cycles.
fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    let text = |path: &Path| {
        files
            .get(path.to_str().unwrap())
            .map(|text| (*text).to_owned())
    };
    Library::load(text).cycles()
}

#[test]
fn cycles_are_found_however_the_path_is_written() {
    let b = "pub struct B(pub crate::a::A);";
    let ways = [
        "pub struct A; use crate::b::B;",
        "pub struct A; use super::b::{self, B as Other};",
        "pub struct A; use super::{b::*}; fn f(_: B) {}",
        "pub struct A; fn f() -> super::b::B { todo!() }",
        "pub struct A; use super::b; fn f() -> b::B { todo!() }",
        "pub struct A; fn f() { assert!(matches!(0, crate::b::B)); }",
        "pub struct A; use crate::Again;",
        "pub struct A; mod inner { use super::super::b::B; }",
    ];
    for a in ways {
        let lib = "mod a; mod b; pub use b::B as Again;";
        let found = cycles_of(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found.len(), 1, "{a}");
        assert!(
            found[0].contains("a.rs") && found[0].contains("b.rs"),
            "{found:?}"
        );
    }
}

#[test]
fn what_is_no_cycle_is_none() {
    let library = [
        ("lib.rs", "mod parent; pub use parent::{Child, Parent};"),
        (
            "parent/mod.rs",
            "mod child; mod other; pub use child::Child; pub struct Parent;",
        ),
        // It uses its parent, which only re-exports it, and a sibling by the parent's name for that.
        (
            "parent/child.rs",
            "use super::Parent; pub struct Child; impl Parent { fn child() {} } #[cfg(test)] mod tests { use super::super::other::Other; }",
        ),
        (
            "parent/other.rs",
            "pub struct Other(super::Child, Vec<u8>);",
        ),
    ];
    assert_eq!(cycles_of(&library), Vec::<String>::new());
}

#[test]
fn a_parent_that_uses_what_it_re_exports_is_in_the_circle() {
    let library = [
        (
            "lib.rs",
            "mod child; pub use child::Child; pub struct Root(Child);",
        ),
        ("child.rs", "pub struct Child; use super::Root;"),
    ];
    let found = cycles_of(&library);
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Names of modules, from the root of the crate, for which it is empty.
type ModulePath = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
struct Library {
    modules: BTreeMap<ModulePath, Module>,
    /// Paths by the file that says them, and the module of it.
    paths: BTreeMap<PathBuf, Vec<(ModulePath, Vec<String>)>>,
}

/// What the names of a module mean.
struct Module {
    file: PathBuf,
    /// What is defined in it, without modules.
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// What a path leads to.
enum Target {
    Module(ModulePath),
    Item(PathBuf),
}

impl Library {
    /// Loads the modules of a crate out of the texts of its files, beginning with `lib.rs`.
    fn load(text: impl Fn(&Path) -> Option<String>) -> Self {
        let mut library = Self::default();
        let mut waiting = VecDeque::from([(Vec::new(), PathBuf::from("lib.rs"))]);
        while let Some((path, file)) = waiting.pop_front() {
            let source = text(&file).unwrap_or_else(|| panic!("{} is there", file.display()));
            let parsed = syn::parse_file(&source);
            let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            library.add_module(&path, &file, &parsed.items);
            for (child, folder) in children(&path, &file, &parsed.items) {
                let name = child.last().unwrap();
                let places = [
                    folder.join(format!("{name}.rs")),
                    folder.join(name).join("mod.rs"),
                ];
                let place = places.iter().find(|place| text(place).is_some());
                let place = place.unwrap_or_else(|| panic!("no file of module {child:?}"));
                waiting.push_back((child, place.clone()));
            }
        }
        library
    }

    /// Notes the names of a module and of those that are written within it, and the paths in them.
    fn add_module(&mut self, path: &[String], file: &Path, items: &[Item]) {
        let mut module = Module {
            file: file.to_owned(),
            items: BTreeSet::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
        };
        let mut said = SaidPaths::default();
        for item in items.iter().filter(|item| !is_of_tests(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    if let Some((_, items)) = &inner.content {
                        let inner = child_of(path, &inner.ident.to_string());
                        self.add_module(&inner, file, items);
                    }
                }
                Item::Use(import) => module.add_import(&import.tree),
                _ => {
                    module.items.extend(defined_name(item));
                    said.visit_item(item);
                }
            }
        }
        let used = said.words;
        let exports = re_exports(items);
        let imported = module.imports.iter().filter(|(name, _)| {
            // A re-export is a use only if the name is used as well.
            !exports.contains(*name) || used.contains(*name)
        });
        let mut paths = said.paths;
        paths.extend(imported.map(|(_, path)| path.clone()));
        // The names that a glob stands for are found when code says them.
        let words = used
            .iter()
            .filter(|word| !module.imports.contains_key(*word));
        paths.extend(words.map(|word| vec![word.clone()]));
        let of_file = self.paths.entry(file.to_owned()).or_default();
        of_file.extend(paths.into_iter().map(|said| (path.to_vec(), said)));
        self.modules.insert(path.to_vec(), module);
    }

    /// Finds what a path means that is said in module `from`; `None` if it leads out of the crate, or is no path.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Target> {
        // Globs may stand for each other.
        const DEPTH_MAX: usize = 16;
        if depth > DEPTH_MAX {
            return None;
        }
        let mut at = from.to_vec();
        let mut rest = path;
        while let Some((name, behind)) = rest.split_first() {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                _ => match self.look_up(&at, name, depth)? {
                    Target::Module(module) => at = module,
                    item @ Target::Item(_) => return Some(item),
                },
            }
            rest = behind;
        }
        Some(Target::Module(at))
    }

    /// Finds what a name means in a module.
    fn look_up(&self, module: &[String], name: &str, depth: usize) -> Option<Target> {
        let child = child_of(module, name);
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        let names = &self.modules[module];
        if names.items.contains(name) {
            return Some(Target::Item(names.file.clone()));
        }
        if let Some(path) = names.imports.get(name) {
            // `use name;` alone would lead to itself.
            let is_itself = path.len() == 1 && path[0] == name;
            return (!is_itself)
                .then(|| self.resolve(module, path, depth + 1))
                .flatten();
        }
        names.globs.iter().find_map(|glob| {
            let Target::Module(inside) = self.resolve(module, glob, depth + 1)? else {
                return None;
            };
            if inside == module {
                return None;
            }
            self.look_up(&inside, name, depth + 1)
        })
    }

    /// The files that each file uses, and a path by which it does.
    fn uses(&self) -> BTreeMap<&Path, BTreeMap<PathBuf, String>> {
        let mut uses = BTreeMap::<&Path, BTreeMap<PathBuf, String>>::new();
        for (file, paths) in &self.paths {
            for (module, path) in paths {
                let Some(Target::Item(target)) = self.resolve(module, path, 0) else {
                    continue;
                };
                if target != *file {
                    let by = uses.entry(file).or_default();
                    by.entry(target).or_insert_with(|| path.join("::"));
                }
            }
        }
        uses
    }

    /// Describes a shortest cycle through each file that is in one, each cycle once.
    fn cycles(&self) -> Vec<String> {
        let uses = self.uses();
        let mut told = BTreeSet::new();
        let mut cycles = Vec::new();
        for file in uses.keys() {
            let Some(cycle) = shortest_cycle(&uses, file) else {
                continue;
            };
            if told.insert(cycle.iter().copied().collect::<BTreeSet<_>>()) {
                let steps = (0..cycle.len()).map(|index| {
                    let (from, to) = (cycle[index], cycle[(index + 1) % cycle.len()]);
                    let by = &uses[from][to];
                    format!("{} uses {by} of {}", from.display(), to.display())
                });
                cycles.push(steps.collect::<Vec<_>>().join(", "));
            }
        }
        cycles
    }
}

impl Module {
    fn add_import(&mut self, tree: &UseTree) {
        self.add_tree(&mut Vec::new(), tree);
    }

    fn add_tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        let with = |last: &syn::Ident| {
            let mut path = before.clone();
            if last != "self" {
                path.push(last.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
                before.pop();
            }
            UseTree::Name(name) => {
                let path = with(&name.ident);
                if let Some(last) = path.last().cloned() {
                    self.imports.insert(last, path);
                }
            }
            UseTree::Rename(renamed) => {
                // What is imported as `_` is used by its methods.
                let name = renamed.rename.to_string();
                self.imports.insert(name, with(&renamed.ident));
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(before, tree);
                }
            }
        }
    }
}

fn child_of(module: &[String], name: &str) -> ModulePath {
    let mut child = module.to_vec();
    child.push(name.to_owned());
    child
}

/// The modules of a file that stand in files of their own, and the folder of each.
fn children(path: &[String], file: &Path, items: &[Item]) -> Vec<(ModulePath, PathBuf)> {
    let stem = file.file_stem().unwrap();
    let parent = file.parent().unwrap();
    let folder = if stem == "lib" || stem == "mod" {
        parent.to_owned()
    } else {
        parent.join(stem)
    };
    children_in(path, &folder, items)
}

fn children_in(path: &[String], folder: &Path, items: &[Item]) -> Vec<(ModulePath, PathBuf)> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) if !is_of_tests(&module.attrs) => Some(module),
        _ => None,
    });
    modules
        .flat_map(|module: &ItemMod| {
            let name = module.ident.to_string();
            let child = child_of(path, &name);
            match &module.content {
                Some((_, items)) => children_in(&child, &folder.join(name), items),
                None => vec![(child, folder.to_owned())],
            }
        })
        .collect()
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test")
    })
}

/// The name that an item gives to something other than a module.
fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(ItemMacro { ident, .. }) => ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The names that a module's imports hand on to others.
fn re_exports(items: &[Item]) -> BTreeSet<String> {
    let mut module = Module {
        file: PathBuf::new(),
        items: BTreeSet::new(),
        imports: BTreeMap::new(),
        globs: Vec::new(),
    };
    for item in items {
        if let Item::Use(ItemUse { vis, tree, .. }) = item
            && !matches!(vis, Visibility::Inherited)
        {
            module.add_import(tree);
        }
    }
    module.imports.into_keys().collect()
}

/// The paths and words of code.
#[derive(Default)]
struct SaidPaths {
    paths: Vec<Vec<String>>,
    words: BTreeSet<String>,
}

impl SaidPaths {
    fn add(&mut self, path: Vec<String>) {
        self.words.insert(path[0].clone());
        if path.len() > 1 {
            self.paths.push(path);
        }
    }

    /// Adds what looks like a path among the tokens of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::<String>::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.add(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(point) if point.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            colons = 0;
            if !path.is_empty() {
                self.add(std::mem::take(&mut path));
            }
        }
        if !path.is_empty() {
            self.add(path);
        }
    }
}

impl<'ast> Visit<'ast> for SaidPaths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.add(segments.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        self.add_tokens(invoked.tokens.clone());
    }

    // Imports within a function.
    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        let mut module = Module {
            file: PathBuf::new(),
            items: BTreeSet::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
        };
        module.add_import(&import.tree);
        self.paths.extend(module.imports.into_values());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Returns the files of a shortest cycle that begins with `start`.
fn shortest_cycle<'g>(
    uses: &'g BTreeMap<&'g Path, BTreeMap<PathBuf, String>>,
    start: &'g Path,
) -> Option<Vec<&'g Path>> {
    let mut before = BTreeMap::<&Path, &Path>::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(file) = waiting.pop_front() {
        for next in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut cycle = vec![file];
                while let Some(previous) = before.get(cycle[cycle.len() - 1]) {
                    cycle.push(previous);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !before.contains_key(next.as_path()) {
                before.insert(next, file);
                waiting.push_back(next);
            }
        }
    }
    None
}
