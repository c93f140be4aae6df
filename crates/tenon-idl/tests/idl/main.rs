//! Reading interface files.

mod annotations;
mod dialects;
mod for_c;
mod language;
mod namespaces;
mod numbers;
mod preprocessor;
mod recursion;
