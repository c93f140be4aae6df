//! tenon-build
