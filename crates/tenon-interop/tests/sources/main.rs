//! Rules that the sources of the workspace keep.

mod layers;
mod module_cycles;
