//! tenon
