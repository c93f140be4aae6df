//! Plans: lowering, passes, the verifier, the text form, costs and fingerprints.

#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod cost;
mod fingerprint;
mod inline;
mod lowering_refuses;
mod merge_checks;
mod nesting;
mod passes;
mod stripped;
mod texts;
mod verifier;
