//! The command `tenon`.

fn main() {}
