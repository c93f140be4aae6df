//! The command `tenon`, run as a user would.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tenon-gen/tests/golden/raises_views.rs"]
mod raises_views;

mod account;
mod c_example;
mod calls;
mod cost;
mod descriptor;
mod health;
mod interfaces;
mod interrupted;
mod past_the_kernel;
mod reflection;
mod rpcgen;
mod serve;
mod study;
