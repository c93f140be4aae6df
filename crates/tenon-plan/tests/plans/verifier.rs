//! The verifier refuses plans that are wrong: every operation of good plans is spoilt in every
//! way that changes it.

use crate::support::{sample, schema};
use tenon_plan::{
    BlockPart, Body, Count, FixedKind, Op, Pass, Place, Plan, Plans, Representation, ReservedBlock,
    Scalar, VerifyErrorKind, lower, specialize, verify,
};
use tenon_schema::{Schema, TypeId};

/// A way to spoil the operation at a position of a body.
type Spoil = (&'static str, fn(&mut Body, usize));

const SPOILS: &[Spoil] = &[
    ("left out", |body, at| drop(body.remove(at))),
    ("twice", |body, at| body.insert(at, body[at].clone())),
    ("before its predecessor", |body, at| {
        body.swap(at.saturating_sub(1), at)
    }),
    ("at another place", |body, at| another_place(&mut body[at])),
    ("inside another place", |body, at| {
        inner_place(&mut body[at])
    }),
    ("of another length", |body, at| {
        another_length(&mut body[at])
    }),
    ("aligned to twice as much", |body, at| {
        aligned_to_more(&mut body[at])
    }),
    ("of another type", |body, at| another_type(&mut body[at])),
    ("with other elements", |body, at| {
        other_elements(&mut body[at])
    }),
    ("with other arms", |body, at| other_arms(&mut body[at])),
    ("with fewer arms", |body, at| fewer_arms(&mut body[at])),
    ("with another default", |body, at| {
        another_default(&mut body[at])
    }),
];

/// A way to spoil the part at a position of a block.
type SpoilPart = (&'static str, fn(&mut Vec<BlockPart>, usize));

const SPOILS_OF_PARTS: &[SpoilPart] = &[
    ("left out", |parts, at| drop(parts.remove(at))),
    ("twice", |parts, at| parts.insert(at, parts[at].clone())),
    ("before its predecessor", |parts, at| {
        parts.swap(at.saturating_sub(1), at)
    }),
    ("at another place", |parts, at| {
        if let BlockPart::Item(item) = &mut parts[at]
            && let Some(last) = item.place.0.last_mut()
        {
            *last += 1;
        }
    }),
    ("inside another place", |parts, at| {
        if let BlockPart::Item(item) = &mut parts[at] {
            item.place.0.push(0);
        }
    }),
    ("at another offset", |parts, at| {
        *part_offset(&mut parts[at]) += 4;
    }),
    ("of another length", |parts, at| {
        part_of_another_length(&mut parts[at])
    }),
    ("of another type", |parts, at| {
        part_of_another_type(&mut parts[at])
    }),
];

fn part_offset(part: &mut BlockPart) -> &mut u32 {
    match part {
        BlockPart::Hole(hole) => &mut hole.offset,
        BlockPart::Item(item) => &mut item.offset,
    }
}

fn part_of_another_length(part: &mut BlockPart) {
    match part {
        BlockPart::Hole(hole) => hole.bytes += 4,
        BlockPart::Item(item) => match &mut item.kind {
            FixedKind::Put { .. } => {}
            FixedKind::PutArray { count, .. } | FixedKind::Blit { count, .. } => *count += 1,
            FixedKind::Copy { bytes } => *bytes += 1,
        },
    }
}

fn part_of_another_type(part: &mut BlockPart) {
    let BlockPart::Item(item) = part else { return };
    match &mut item.kind {
        FixedKind::Put { scalar } | FixedKind::PutArray { scalar, .. } => {
            *scalar = another_scalar(*scalar);
        }
        FixedKind::Blit { item, .. } => item.runs[0].unit = item.runs[0].unit % 8 * 2 + 1,
        FixedKind::Copy { .. } => {}
    }
}

fn another_scalar(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::I32 => Scalar::U32,
        Scalar::I64 => Scalar::F64,
        Scalar::F64 => Scalar::I64,
        _ => Scalar::I32,
    }
}

fn place(op: &mut Op) -> Option<&mut Place> {
    match op {
        Op::Reserve(_) | Op::Align { .. } => None,
        Op::BlitCounted { place, .. }
        | Op::PutElements { place, .. }
        | Op::CopyCounted { place, .. }
        | Op::PutCounted { place, .. }
        | Op::Loop { place, .. }
        | Op::Switch { place, .. }
        | Op::Optional { place, .. }
        | Op::List { place, .. }
        | Op::Call { place, .. }
        | Op::External { place, .. } => Some(place),
    }
}

fn another_place(op: &mut Op) {
    if let Some(last) = place(op).and_then(|place| place.0.last_mut()) {
        *last += 1;
    }
}

fn inner_place(op: &mut Op) {
    if let Some(place) = place(op) {
        place.0.push(0);
    }
}

fn another_length(op: &mut Op) {
    match op {
        Op::Reserve(block) => block.bytes += 4,
        Op::Align { to, .. } => *to /= 2,
        Op::BlitCounted { bound, .. } => *bound ^= 1,
        Op::CopyCounted { bound, .. } | Op::PutCounted { bound, .. } => *bound ^= 1,
        Op::Loop { count, .. } | Op::PutElements { count, .. } => {
            *count = match *count {
                Count::Fixed(count) => Count::Counted(count),
                Count::Counted(bound) => Count::Fixed(bound),
            }
        }
        Op::List { first_bare, .. } => *first_bare = !*first_bare,
        _ => {}
    }
}

fn aligned_to_more(op: &mut Op) {
    match op {
        Op::Align { to, .. } => *to *= 2,
        Op::PutElements { align, .. } => *align *= 2,
        _ => {}
    }
}

fn another_type(op: &mut Op) {
    match op {
        Op::PutCounted { scalar, .. }
        | Op::Switch {
            discriminant: scalar,
            ..
        } => *scalar = another_scalar(*scalar),
        Op::BlitCounted { item, .. } => {
            item.runs[0].unit = item.runs[0].unit % 8 * 2 + 1;
        }
        Op::CopyCounted { text, .. } => *text = !*text,
        Op::Call { plan, .. } => plan.0 ^= 1,
        Op::List { element, .. } => element.0 -= 1,
        _ => {}
    }
}

fn other_elements(op: &mut Op) {
    match op {
        Op::Loop { element, .. } => element.min += 4,
        Op::PutElements { element, .. } => element.bytes += 4,
        Op::Optional { body, .. } => body.clear(),
        _ => {}
    }
}

fn other_arms(op: &mut Op) {
    if let Op::Switch { arms, .. } = op {
        arms[0].values[0] += 7;
    }
}

fn fewer_arms(op: &mut Op) {
    if let Op::Switch { arms, .. } = op {
        arms.pop();
    }
}

fn another_default(op: &mut Op) {
    if let Op::Switch { default, .. } = op {
        *default = match default {
            Some(_) => None,
            None => Some(Body::new()),
        };
    }
}

/// Runs `f` on the operation with number `*number`, counting those inside others too.
fn with_operation(body: &mut Body, number: &mut usize, f: fn(&mut Body, usize)) -> bool {
    for at in 0..body.len() {
        if *number == 0 {
            f(body, at);
            return true;
        }
        *number -= 1;
        let mut inner = bodies(&mut body[at]).into_iter();
        if inner.any(|body| with_operation(body, number, f)) {
            return true;
        }
    }
    false
}

/// Runs `f` on the part of a block with number `*number`, counting those inside of operations too.
fn with_part(body: &mut Body, number: &mut usize, f: fn(&mut Vec<BlockPart>, usize)) -> bool {
    for op in body {
        if let Some(block) = block(op) {
            if *number < block.parts.len() {
                f(&mut block.parts, *number);
                return true;
            }
            *number -= block.parts.len();
        }
        let mut inner = bodies(op).into_iter();
        if inner.any(|body| with_part(body, number, f)) {
            return true;
        }
    }
    false
}

fn block(op: &mut Op) -> Option<&mut ReservedBlock> {
    match op {
        Op::Reserve(block) | Op::PutElements { element: block, .. } => Some(block),
        _ => None,
    }
}

fn bodies(op: &mut Op) -> Vec<&mut Body> {
    match op {
        Op::Loop { body, .. } | Op::Optional { body, .. } => vec![body],
        Op::Switch { arms, default, .. } => {
            let arms = arms.iter_mut().map(|arm| &mut arm.body);
            arms.chain(default).collect()
        }
        _ => Vec::new(),
    }
}

fn plans_of(plans: &mut Plans) -> Vec<&mut Plan> {
    let procedures = plans.procedures.iter_mut();
    let messages = procedures.flat_map(|plan| [&mut plan.arguments, &mut plan.result]);
    plans.types.iter_mut().chain(messages).collect()
}

/// Every plan that comes of spoiling one operation in one way, and what was done.
fn spoilt(good: &Plans) -> Vec<(Plans, String)> {
    let mut found = Vec::new();
    for position in 0..plans_of(&mut good.clone()).len() {
        for (how, spoil) in SPOILS {
            for number in 0.. {
                let mut plans = good.clone();
                let body = &mut plans_of(&mut plans)[position].body;
                if !with_operation(body, &mut number.clone(), *spoil) {
                    break;
                }
                if plans != *good {
                    found.push((plans, format!("plan {position}, operation {number} {how}")));
                }
            }
        }
        for (how, spoil) in SPOILS_OF_PARTS {
            for number in 0.. {
                let mut plans = good.clone();
                let body = &mut plans_of(&mut plans)[position].body;
                if !with_part(body, &mut number.clone(), *spoil) {
                    break;
                }
                if plans != *good {
                    found.push((plans, format!("plan {position}, part {number} {how}")));
                }
            }
        }
    }
    found
}

fn assert_refuses_all(schema: &Schema, good: &Plans) {
    assert_eq!(verify(schema, good), Ok(()));
    let spoilt = spoilt(good);
    assert!(spoilt.len() > 250, "only {}", spoilt.len());
    let folded =
        |mut plans: Plans| specialize(schema, &mut plans, &[Pass::FoldAligns]).map(|()| plans);
    for (plans, what) in spoilt {
        // To align what is aligned already means nothing.
        let is_same = || folded(plans.clone()) == folded(good.clone());
        assert!(
            verify(schema, &plans).is_err() || is_same(),
            "accepted: {what}"
        );
    }
}

const REPRESENTATIONS: [Representation; 2] = [Representation::XDR, Representation::LEAN];

#[test]
fn every_spoilt_operation_of_lowered_plans_is_refused() {
    let schema = sample();
    for representation in REPRESENTATIONS {
        assert_refuses_all(&schema, &lower(&schema, representation).unwrap());
    }
}

#[test]
fn every_spoilt_operation_of_specialised_plans_is_refused() {
    let schema = sample();
    for representation in REPRESENTATIONS {
        for passes in (1..=Pass::ALL.len()).map(|count| &Pass::ALL[..count]) {
            let mut plans = lower(&schema, representation).unwrap();
            specialize(&schema, &mut plans, passes).unwrap();
            assert_refuses_all(&schema, &plans);
        }
    }
}

#[test]
fn sizes_and_recursion_are_checked() {
    let schema = sample();
    let good = lower(&schema, Representation::XDR).unwrap();
    let refusal = |spoil: fn(&mut Plan)| {
        let mut plans = good.clone();
        spoil(&mut plans.types[4]);
        verify(&schema, &plans).unwrap_err().problem
    };
    assert_eq!(refusal(|plan| plan.size.min += 4), VerifyErrorKind::Size);
    assert_eq!(
        refusal(|plan| plan.size.max = Some(8)),
        VerifyErrorKind::Size
    );
    assert_eq!(
        refusal(|plan| plan.recursive = !plan.recursive),
        VerifyErrorKind::Recursion
    );
}

#[test]
fn there_is_one_plan_for_each_type_and_procedure() {
    let schema = sample();
    let good = lower(&schema, Representation::XDR).unwrap();
    let refusal = |spoil: fn(&mut Plans)| {
        let mut plans = good.clone();
        spoil(&mut plans);
        verify(&schema, &plans).unwrap_err().problem
    };
    assert_eq!(
        refusal(|plans| drop(plans.types.pop())),
        VerifyErrorKind::Plans
    );
    assert_eq!(
        refusal(|plans| drop(plans.procedures.pop())),
        VerifyErrorKind::Plans
    );
    assert_eq!(
        refusal(|plans| plans.procedures.swap(0, 1)),
        VerifyErrorKind::Plans
    );
    assert_eq!(
        refusal(|plans| plans.procedures.push(plans.procedures[0].clone())),
        VerifyErrorKind::Plans
    );
}

#[test]
fn a_union_does_not_call_itself_instead_of_having_arms() {
    let schema = sample();
    let mut plans = lower(&schema, Representation::XDR).unwrap();
    let id = schema.find_type("shape").unwrap();
    let TypeId(position) = id;
    plans.types[position as usize].body = vec![Op::Call {
        place: Place::it(),
        plan: id,
    }];
    assert_eq!(
        verify(&schema, &plans).unwrap_err().problem,
        VerifyErrorKind::Type
    );
}

/// Structs inside of others with holes in front of them, in them and behind them.
const HOLES: &str = "
    struct behind { hyper a; int b; };
    struct inside { int a; hyper b; };
    struct twice { behind a; short b; };
    struct s {
        int a; behind b; int c; inside d; behind e; hyper f<>; int g; behind h; twice i; char j;
        behind k; string l<>; int m; behind n; hyper *o; behind p; behind q; bool r;
    };";

#[test]
fn every_spoilt_hole_of_an_inlined_struct_is_refused() {
    let schema = schema(HOLES);
    let mut plans = lower(&schema, Representation::LEAN).unwrap();
    specialize(&schema, &mut plans, Pass::ALL).unwrap();
    assert_refuses_all(&schema, &plans);
    let mut changed = 0;
    for change in [-12, -8, -4, 4, 8, 12] {
        for number in 0.. {
            let mut plans = plans.clone();
            let Some(is_zero) = with_hole_changed(&mut plans.types[3].body, number, change) else {
                break;
            };
            if is_zero {
                let verified = verify(&schema, &plans);
                assert!(verified.is_err(), "hole {number} by {change}: {plans:?}");
                changed += 1;
            }
        }
    }
    assert!(changed > 30, "{changed}");
}

/// Makes the part with this number so much larger, and what is behind it in its block lie as much
/// further, if it fills a hole that is large enough. `None`: there are fewer parts.
fn with_hole_changed(body: &mut Body, number: usize, change: i32) -> Option<bool> {
    let mut number = number;
    let block = body.iter_mut().filter_map(block).find_map(|block| {
        let is_here = number < block.parts.len();
        number -= if is_here { 0 } else { block.parts.len() };
        is_here.then_some(block)
    })?;
    let BlockPart::Hole(hole) = &mut block.parts[number] else {
        return Some(false);
    };
    let Some(changed) = hole.bytes.checked_add_signed(change) else {
        return Some(false);
    };
    hole.bytes = changed;
    for offset in block.parts[number + 1..].iter_mut().map(part_offset) {
        *offset = offset.checked_add_signed(change).expect("it is behind");
    }
    block.bytes = block.bytes.checked_add_signed(change).expect("it is in it");
    Some(true)
}
