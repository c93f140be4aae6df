//! tenon-idl
