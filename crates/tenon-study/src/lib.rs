//! Measures marshalling: what each choice in a stub costs on this machine.
//!
//! [`study`] repeats the study of stubs of the HRPC project ("Performance Implications of Design
//! Alternatives for Remote Procedure Call Stubs"): its three procedures, its designs and those that
//! have come since, all made from one interface by switching passes and engines. A [`StudyResults`] is
//! printed as the paper's tables ([`StudyResults::tables`]), drawn ([`StudyResults::charts`]) or handed out as
//! JSON ([`StudyResults::json`]). [`measure`] is the core that times.

mod chart;
pub mod cost;
pub mod design;
mod engine;
mod entry;
pub mod measure;
mod model;
mod moving;
mod pace;
mod paper;
mod report;
mod study;
pub mod svg;
pub mod unrolling;
mod work;

pub use design::{DESIGNS, StubDesign};
pub use engine::interface;
pub use report::SvgChart;
pub use study::{
    StudyCell, StudyDirection, StudyError, StudyOptions, StudyResults, WireFormat, study,
};
pub use work::Workload;
