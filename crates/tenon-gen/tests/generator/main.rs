//! What the generator writes, as text: it is held to the files in `tests/golden`, which are there to be read, and what
//! it cannot write it refuses. `UPDATE_EXPECT=1` writes those files anew.

#[path = "../common/mod.rs"]
mod common;

mod c;
mod rust;
mod stack;
