//! tenon-gen
