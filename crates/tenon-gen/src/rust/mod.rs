//! The Rust back end: one source file for one interface.
//!
//! Names are decided in [`names`], memory in `shape`, traits in `traits`; the items that are moved
//! in the plan. The file needs the crate `tenon` alone.

mod code;
mod form;
mod marshal;
mod members;
mod modules;
pub mod names;
mod sensitive;
mod serde;
mod service;
mod shape;
mod stack;
mod traits;
mod types;
mod variants;
mod views;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::slice;

use tenon_plan::{Alike, Fingerprints, Scalar};
use tenon_schema::{Origin, Schema, TypeId, TypeKind};

pub use form::{Form, Marker};
pub use stack::Refused;

use crate::writer::{SourceWriter, comment};
use marshal::MarshalGenerator;
use modules::RustModule;
use names::{IdentifierCase, NameScope, Names};
use shape::{TypeShape, TypeShapes};
use traits::TypeTraits;

/// Options of the generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The interface file's name, for the heading.
    pub source: String,
    /// The path of the crate `tenon`.
    pub tenon: String,
    /// Set if the file is brought in by `include!`, which permits no heading of a module.
    pub for_include: bool,
    /// Derives that every type gets beside its own, such as `serde::Serialize`.
    pub derives: Vec<String>,
    /// Set if definitions of included files are left out; then they are looked for in the module
    /// around this one.
    pub skip_included: bool,
    /// Set if there are views beside the types: values that borrow what they can from a message.
    /// Servers are then handed views of the arguments.
    pub views: bool,
    /// Set if servers are handed room for results that are blittable, and write them where they are
    /// sent from.
    pub reserved: bool,
    /// Set if strings are `String`, which is checked where one is read, and not `BString`, which holds any bytes.
    pub utf8_strings: bool,
    /// The path of the crate `tenon-tokio` if there are to be asynchronous clients and services.
    pub tokio: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: String::new(),
            tenon: "::tenon".to_owned(),
            for_include: false,
            derives: Vec::new(),
            skip_included: false,
            views: false,
            reserved: false,
            utf8_strings: false,
            tokio: None,
        }
    }
}

/// The source text for an interface in one representation or several, laid out as rustfmt does.
/// Clients and servers speak ONC RPC in XDR: they are left out if that is not among them. If the lean
/// representation is, too, they also speak the lean protocol.
///
/// # Errors
/// A value of the interface would take too much of the stack of the thread that reads it.
///
/// # Panics
/// If there is no form, or the plans of one are not those of `schema`.
pub fn generate(schema: &Schema, forms: &[Form<'_>], options: &Options) -> Result<String, Refused> {
    let shapes = TypeShapes::new(schema, forms[0].plans);
    stack::check(schema, &shapes)?;
    let suffixes: Vec<&str> = forms.iter().map(|form| &*form.marker.suffix).collect();
    let rust = RustFile {
        schema,
        forms,
        shared: SharedForm::of(forms),
        options,
        names: Names::of(schema, &suffixes),
        module: Cell::new(modules::ROOT),
        borrowing: RefCell::default(),
        traits: TypeTraits::new(&shapes),
        shapes: &shapes,
        imports: RefCell::default(),
    };
    let mut file = SourceWriter::new();
    rust.write_heading(&mut file);
    rust.write_module(&mut file, modules::ROOT);
    Ok(file.finish())
}

/// Names the file that holds the stubs of an interface file as the module that it is: `nfs-prot.x` becomes
/// `nfs_prot.rs`, and `BlobStore.x` `blob_store.rs`.
pub fn file_name(interface: &Path) -> String {
    let stem = interface.file_stem().unwrap_or_default();
    let stem = stem.to_string_lossy();
    let legal = |it: char| match it.is_ascii_alphanumeric() || it.is_alphabetic() {
        true => it,
        false => '_',
    };
    let name: String = stem.chars().map(legal).collect();
    format!(
        "{}.rs",
        NameScope::default().name(&name, IdentifierCase::Snake)
    )
}

/// The form of code that is written once for XDR and the lean representation.
struct SharedForm<'a> {
    alike: Alike,
    form: Form<'a>,
}

impl<'a> SharedForm<'a> {
    fn of(forms: &[Form<'a>]) -> Option<Self> {
        let [xdr, lean] = forms else {
            return None;
        };
        let are_both = xdr.marker.is_default() && lean.marker.is_lean();
        are_both.then(|| Self {
            alike: Alike::new(xdr.plans, lean.plans),
            form: Form {
                plans: lean.plans,
                marker: Marker::any(),
            },
        })
    }
}

/// The generated file: all that is decided about it before it is written.
struct RustFile<'a> {
    schema: &'a Schema,
    forms: &'a [Form<'a>],
    /// If there are two: the form that is written once for both.
    shared: Option<SharedForm<'a>>,
    options: &'a Options,
    names: Names,
    /// The module that is being written.
    module: Cell<usize>,
    shapes: &'a TypeShapes<'a>,
    traits: TypeTraits<'a>,
    /// The types with values that a view borrows from, once they have been determined.
    borrowing: RefCell<Option<HashSet<TypeId>>>,
    /// Paths below `tenon` that the module names.
    imports: RefCell<BTreeSet<&'static str>>,
}

impl RustFile<'_> {
    /// Notes that the module names these paths below the crate `tenon`.
    fn uses(&self, paths: &[&'static str]) {
        self.imports.borrow_mut().extend(paths);
    }

    fn write_heading(&self, w: &mut SourceWriter) {
        let marker = if self.options.for_include {
            "//"
        } else {
            "//!"
        };
        let source = comment(&self.options.source);
        w.line(format!(
            "{marker} Generated by tenon from {source}. Do not edit."
        ));
        // The attributes that `tenon::stubs!` gives to stubs that it includes. The module that includes the file may
        // have some of them already.
        if !self.options.for_include {
            w.line("#![allow(dead_code, deprecated, missing_docs, unreachable_pub)]");
            // The interface decides on names and on the number of parameters, whatever lints of Rust say.
            w.line("#![allow(clippy::all, clippy::pedantic)]");
        }
    }

    /// Writes the items of a module: its imports, its definitions, and the modules inside.
    fn write_module(&self, w: &mut SourceWriter, module: usize) {
        let around = self.module.replace(module);
        let mut body = w.beside();
        self.write_constants(&mut body);
        self.write_types(&mut body);
        self.write_services(&mut body);
        self.write_imports(w, module);
        w.raw_text(&body.finish());
        for inner in self.here().inside.iter().copied() {
            w.gap();
            w.braces(&format!("pub mod {}", self.names.of_module(inner)), |w| {
                self.write_module(w, inner);
            });
        }
        self.module.set(around);
    }

    /// Writes the imports of the module, in front of its definitions.
    fn write_imports(&self, w: &mut SourceWriter, module: usize) {
        let imports = self.imports.take();
        let (wire, top): (Vec<&str>, Vec<&str>) =
            imports.iter().partition(|path| path.starts_with("wire::"));
        let wire: Vec<&str> = wire
            .iter()
            .filter_map(|path| path.strip_prefix("wire::"))
            .collect();
        if !imports.is_empty() && module == modules::ROOT {
            w.gap();
        }
        write_use(w, &format!("{}::wire", self.options.tenon), wire);
        write_use(w, &self.options.tenon, top);
    }

    fn write_constants(&self, w: &mut SourceWriter) {
        let here = self.here().constants.iter();
        let here = here.map(|position| (&self.schema.constants[*position], position));
        for (constant, position) in here.filter(|(constant, _)| self.is_wanted(&constant.origin)) {
            w.line("");
            types::write_constant(w, constant, &self.names.constants[*position]);
        }
    }

    fn write_types(&self, w: &mut SourceWriter) {
        for id in self.here().types.iter().copied() {
            let def = self.schema.type_def(id);
            w.line("");
            if !self.is_wanted(&def.origin) {
                w.line(format!("pub use {};", self.outside(id)));
                continue;
            }
            types::write(w, self, id);
            if def.kind == TypeKind::External {
                continue;
            }
            for form in self.forms_of(id) {
                w.line("");
                MarshalGenerator::of(self, form).write(w, id);
            }
            if self.options.views {
                views::write(w, self, id);
            }
        }
    }

    fn write_services(&self, w: &mut SourceWriter) {
        let find = |is: fn(&Marker) -> bool| self.forms.iter().find(|form| is(&form.marker));
        let Some(onc) = find(Marker::is_default) else {
            return;
        };
        let fingerprints = Fingerprints::new(self.schema);
        let lean = find(Marker::is_lean).map(|form| service::LeanMarshalling {
            with: MarshalGenerator::of(self, form),
            fingerprints: &fingerprints,
        });
        let onc = MarshalGenerator::of(self, onc);
        service::write(w, service::ProtocolSet { onc, lean });
    }

    /// Returns the representations that the marshalling of a type is written for: one, if that serves all.
    fn forms_of(&self, id: TypeId) -> &[Form<'_>] {
        let shared = self.shared.as_ref();
        match shared.filter(|shared| shared.alike.is_type(id)) {
            Some(shared) => slice::from_ref(&shared.form),
            None => self.forms,
        }
    }

    /// Returns whether the struct `id` is blittable, in some representation.
    fn is_block(&self, id: TypeId) -> bool {
        let mut plans = self.forms.iter().map(|form| form.plans.of_type(id));
        plans.any(marshal::is_block)
    }

    fn is_wanted(&self, origin: &Origin) -> bool {
        !(origin.included && self.options.skip_included)
    }

    /// The arguments of a `derive`, those that the user asks for last.
    fn derives(&self, own: &str) -> String {
        let further = self
            .options
            .derives
            .iter()
            .map(|derive| format!(", {derive}"));
        format!("{own}{}", further.collect::<String>())
    }

    /// The type as it is written.
    fn type_text(&self, shape: &TypeShape) -> String {
        match shape {
            TypeShape::Scalar(scalar) => self.scalar_text(*scalar),
            TypeShape::Bytes(bytes) => format!("[u8; {bytes}]"),
            TypeShape::Opaque => "Vec<u8>".to_owned(),
            TypeShape::Text if self.options.utf8_strings => "String".to_owned(),
            TypeShape::Text => {
                self.uses(&["wire::BString"]);
                "BString".to_owned()
            }
            TypeShape::Array(element, count) => format!("[{}; {count}]", self.type_text(element)),
            TypeShape::Vec(element) => format!("Vec<{}>", self.type_text(element)),
            TypeShape::Option(to) => format!("Option<{}>", self.type_text(to)),
            TypeShape::Boxed(to) => format!("Box<{}>", self.type_text(to)),
            TypeShape::Named(id) | TypeShape::Alias(id, _) => self.type_name(*id),
        }
    }

    /// The name of a type, as the module that is being written has it.
    fn type_name(&self, id: TypeId) -> String {
        self.path_to(id) + &self.names.of_type(id).name
    }

    /// Returns the path in front of the names of a type in the module that is being written.
    fn path_to(&self, id: TypeId) -> String {
        let module = self.names.modules().of(&self.schema.type_def(id).name);
        self.names.path(self.module.get(), module)
    }

    /// A type that the module around the file defines, in a module like the one that is being written.
    fn outside(&self, id: TypeId) -> String {
        self.names.path_outside(self.module.get()) + &self.names.of_type(id).name
    }

    /// Returns the module that is being written.
    fn here(&self) -> &RustModule {
        self.names.modules().get(self.module.get())
    }

    fn scalar_text(&self, scalar: Scalar) -> String {
        let text = match scalar {
            Scalar::I32 => "i32",
            Scalar::U32 => "u32",
            Scalar::I64 => "i64",
            Scalar::U64 => "u64",
            Scalar::I16 => "i16",
            Scalar::U16 => "u16",
            Scalar::I8 => "i8",
            Scalar::U8 => "u8",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::F128 => "[u8; 16]",
            Scalar::Bool => "bool",
            Scalar::Enum(id) => return self.type_name(id),
        };
        text.to_owned()
    }
}

/// A `use` as rustfmt sorts and breaks it.
fn write_use(w: &mut SourceWriter, path: &str, mut names: Vec<&str>) {
    names.sort_unstable();
    match names.as_slice() {
        [] => {}
        [name] => w.line(format!("use {path}::{name};")),
        names => {
            let flat = format!("use {path}::{{{}}};", names.join(", "));
            if w.column() + flat.len() < 100 {
                return w.line(flat);
            }
            w.line(format!("use {path}::{{"));
            w.indented(|w| write_wrapped(w, names));
            w.line("};");
        }
    }
}

/// Names with commas, as many on a line as there is room for.
fn write_wrapped(w: &mut SourceWriter, names: &[&str]) {
    let mut line = String::new();
    let mut is_first_line = true;
    for (index, name) in names.iter().enumerate() {
        // rustfmt leaves the last column free, but at the end of a list of one line that is in no module.
        let is_free = w.column() > 4 || !is_first_line || index + 1 < names.len();
        let width = if is_free { 99 } else { 100 };
        if w.column() + line.len() + 1 + name.len() + 1 > width {
            w.line(std::mem::take(&mut line));
            is_first_line = false;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(name);
        line.push(',');
    }
    w.line(line);
}
