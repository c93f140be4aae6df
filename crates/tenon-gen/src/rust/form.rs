//! The representations that stubs are made for, as generated code names them.

use tenon_plan::{Plans, Representation};

/// The plans of an interface in one representation, and its name in generated code.
#[derive(Debug, Clone)]
pub struct Form<'a> {
    /// The plans.
    pub plans: &'a Plans,
    /// The representation in Rust.
    pub marker: Marker,
}

/// The type that stands for a representation in Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The type as it is written behind the imports, `Lean<O>` for example.
    pub path: String,
    /// The parameters that the type needs, as they are declared: `O: Order`.
    pub parameters: String,
    /// Names that have to be imported for that from the module `wire` of the run time.
    pub imports: Vec<&'static str>,
    /// The suffix of the names of functions of a typedef, so that several representations may have
    /// such functions in one file.
    pub suffix: String,
}

impl<'a> Form<'a> {
    /// Plans of a representation that the run time has a type for.
    pub fn of(plans: &'a Plans) -> Option<Self> {
        let marker = Marker::of(&plans.representation)?;
        Some(Self { plans, marker })
    }
}

impl Marker {
    /// Of XDR, which the run time takes by default.
    pub fn xdr() -> Self {
        Self {
            path: "Xdr".to_owned(),
            parameters: String::new(),
            imports: vec!["wire::Xdr"],
            suffix: String::new(),
        }
    }

    /// Of the lean representation, for senders of either order.
    pub fn lean() -> Self {
        Self {
            path: "Lean<O>".to_owned(),
            parameters: "O: Order".to_owned(),
            imports: vec!["wire::Lean", "wire::Order"],
            suffix: "_lean".to_owned(),
        }
    }

    /// Of any representation, for what XDR and the lean one move [alike](tenon_plan::Alike).
    pub(super) fn any() -> Self {
        Self {
            path: "R".to_owned(),
            parameters: "R: Representation".to_owned(),
            imports: vec!["wire::Representation"],
            suffix: String::new(),
        }
    }

    /// Of a representation that the run time has a type for.
    pub fn of(representation: &Representation) -> Option<Self> {
        match *representation {
            Representation::XDR => Some(Self::xdr()),
            Representation::LEAN => Some(Self::lean()),
            _ => None,
        }
    }

    /// Returns whether it is the one that need not be named.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::xdr()
    }

    /// Returns whether it is the one that the lean protocol carries.
    pub(super) fn is_lean(&self) -> bool {
        *self == Self::lean()
    }

    /// The parameters between angle brackets, if there are any.
    pub(super) fn generics(&self) -> String {
        match self.parameters.as_str() {
            "" => String::new(),
            parameters => format!("<{parameters}>"),
        }
    }

    /// The parameters behind that of a lifetime.
    pub(super) fn generics_with(&self, lifetime: &str) -> String {
        match self.parameters.as_str() {
            "" => format!("<{lifetime}>"),
            parameters => format!("<{lifetime}, {parameters}>"),
        }
    }

    /// A cursor of the representation: `Encoder` or `Decoder`.
    pub(super) fn cursor(&self, name: &str) -> String {
        self.cursor_of(name, "'_")
    }

    /// A cursor that borrows for a lifetime.
    pub(super) fn cursor_of(&self, name: &str, lifetime: &str) -> String {
        match self.is_default() {
            true => format!("{name}<{lifetime}>"),
            false => format!("{name}<{lifetime}, {}>", self.path),
        }
    }
}
