//! tenon-net
