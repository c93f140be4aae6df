//! What was measured, for people and for machines.

mod charts;
mod figures;
mod json;
mod tables;
mod unrolling;

pub use charts::SvgChart;
