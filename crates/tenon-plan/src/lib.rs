//! The plan: what is to be moved, in which order and with which checks, for every type and
//! procedure of an interface. One plan serves both directions and every way to run it: source
//! back ends print it, the interpreter walks it, machine code is made from it.
//!
//! ```
//! use tenon_plan::{Pass, Plans, Representation};
//!
//! let text = "struct point { int x; int y; }; struct line { point ends[2]; string name<8>; };";
//! let parsed = tenon_idl::parse_text("line.x", text, &Default::default());
//! let schema = parsed.schema.ok_or("no interface")?;
//! let plans = Plans::new(&schema, Representation::XDR, Pass::ALL)?;
//! let explained = tenon_plan::explain(&schema, &plans, Some("line"))?;
//! // Four integers have become one block, with one look whether there is room for it.
//! assert!(explained.contains("blit ends: [2] 2 of 4 @0"), "{explained}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod blittable;
mod blocks;
mod boxes;
mod cluster;
#[cfg(feature = "cost")]
pub mod cost;
mod explain;
mod fingerprint;
#[cfg_attr(
    not(feature = "cost"),
    allow(dead_code, reason = "some of it only equations need")
)]
mod graph;
mod item;
mod layout;
pub mod links;
mod lower;
mod memory;
mod nothing;
mod op;
mod passes;
mod position;
mod representation;
mod reserved;
mod size;
mod text;
mod verify;

pub use alike::Alike;
pub use blittable::{ARRAY_MAX, NESTED_ARRAY_MAX};
pub use boxes::BoxedArms;
pub use cluster::Cluster;
pub use explain::{ExplainError, UnknownName, explain, explain_passes};
pub use fingerprint::{FingerprintedPart, Fingerprints};
pub use item::{Blittable, Place, Run, Scalar, TypeClass};
pub use layout::Layout;
pub use lower::{LowerError, lower};
pub use op::{
    Arm, Body, Count, ElementSize, Op, Plan, Plans, ProcedurePlan, StreamPlans, WireSize,
};
pub use passes::{Pass, PlanError, specialize};
pub use representation::{COUNT_BYTES, Lists, Order, Representation, WireExtent};
pub use reserved::{BlockHole, BlockPart, FixedItem, FixedKind, ReservedBlock};
pub use size::Sizes;
pub use text::text;
pub use verify::{VerifyError, VerifyErrorKind, verify};
