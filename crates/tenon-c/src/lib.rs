//! The run time for C programs: what `include/tenon.h` declares, by the crate `tenon`.
//!
//! All that C sees is in [`abi`], the room for unsafe code; what can be decided without a pointer is
//! decided outside. The header is the documentation for programs, `docs/c-library.md`
//! its introduction.

pub mod abi;
mod failure;
mod habits;
mod limits;
mod log;
mod opened;
mod presence;
mod report;
mod text;
