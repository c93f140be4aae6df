//! tenon-proto
