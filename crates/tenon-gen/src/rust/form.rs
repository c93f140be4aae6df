//! The representations that stubs are made for, as generated code names them.

use tenon_plan::{Plans, Representation};

/// The plans of an interface in one representation, and what generated code calls that.
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
    /// What has to be imported for that from the module `wire` of the run time.
    pub imports: Vec<&'static str>,
    /// What the names of the functions of a typedef end with, so that several representations may
    /// have such functions in one file.
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
    /// Of XDR, which the run time takes if nothing else is said.
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

    /// Of a representation that the run time has a type for.
    pub fn of(representation: &Representation) -> Option<Self> {
        match *representation {
            Representation::XDR => Some(Self::xdr()),
            Representation::LEAN => Some(Self::lean()),
            _ => None,
        }
    }

    /// Whether it is the one that need not be named.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::xdr()
    }

    /// The parameters between angle brackets, if there are any.
    pub(super) fn generics(&self) -> String {
        match self.parameters.as_str() {
            "" => String::new(),
            parameters => format!("<{parameters}>"),
        }
    }

    /// A cursor of the representation: `Encoder` or `Decoder`.
    pub(super) fn cursor(&self, name: &str) -> String {
        match self.is_default() {
            true => format!("{name}<'_>"),
            false => format!("{name}<'_, {}>", self.path),
        }
    }
}
