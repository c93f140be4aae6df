//! What was measured, for people and for machines.

mod charts;
mod figures;
mod json;
mod tables;

pub use charts::SvgChart;
