//! tenon-exec
