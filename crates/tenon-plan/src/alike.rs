//! Finds values that two representations move by the same operations, but for alignment: then one piece of code that is
//! generic over the representation serves both, in which an alignment is nothing where items have none.

use tenon_schema::TypeId;

use crate::item::Scalar;
use crate::op::{Arm, Body, ElementSize, Op, Plan, Plans};
use crate::representation::Representation;
use crate::reserved::{FixedKind, ReservedBlock};

/// The values of an interface that two representations move alike, the second of which may align items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    types: Vec<bool>,
    arguments: Vec<bool>,
    results: Vec<bool>,
}

/// Two sets of plans of one interface.
struct PlansPair<'p> {
    plain: &'p Plans,
    aligned: &'p Plans,
}

impl Alike {
    /// Compares the plans of one interface.
    ///
    /// # Panics
    /// The plans are of different interfaces.
    pub fn new(plain: &Plans, aligned: &Plans) -> Self {
        let pair = PlansPair { plain, aligned };
        let types = plain.types.iter().zip(&aligned.types);
        let mut types: Vec<bool> = types
            .map(|(plain, aligned)| pair.is_plan(plain, aligned))
            .collect();
        // A type is only alike if those are that it runs the plans of; they may lead back to it.
        loop {
            let is_sure = |id: usize| types[id] && are_known(&aligned.types[id].body, &types);
            let surer: Vec<bool> = (0..types.len()).map(is_sure).collect();
            if surer == types {
                break;
            }
            types = surer;
        }
        let is_message = |(plain, aligned): (&Plan, &Plan)| {
            pair.is_plan(plain, aligned) && are_known(&aligned.body, &types)
        };
        let procedures = || plain.procedures.iter().zip(&aligned.procedures);
        let arguments =
            procedures().map(|(one, other)| is_message((&one.arguments, &other.arguments)));
        let results = procedures().map(|(one, other)| is_message((&one.result, &other.result)));
        Self {
            arguments: arguments.collect(),
            results: results.collect(),
            types,
        }
    }

    /// Returns whether the values of a type are moved alike.
    pub fn is_type(&self, id: TypeId) -> bool {
        self.types[id.0 as usize]
    }

    /// Returns whether the arguments and the result of the procedure at `index` of the plans are moved alike.
    pub fn is_procedure(&self, index: usize) -> bool {
        self.arguments[index] && self.results[index]
    }
}

/// Returns whether all types of which a body runs the plans are moved alike.
fn are_known(body: &Body, types: &[bool]) -> bool {
    body.iter().all(|op| {
        !matches!(op, Op::External { .. })
            && op.called().is_none_or(|id| types[id.0 as usize])
            && op.bodies().all(|body| are_known(body, types))
    })
}

impl PlansPair<'_> {
    fn representations(&self) -> [&Representation; 2] {
        [&self.plain.representation, &self.aligned.representation]
    }

    fn is_plan(&self, plain: &Plan, aligned: &Plan) -> bool {
        plain.size.min == aligned.size.min
            && plain.recursive == aligned.recursive
            && self.is_body(&plain.body, &aligned.body)
    }

    /// Returns whether the operations are the same, but for alignment.
    fn is_body(&self, plain: &Body, aligned: &Body) -> bool {
        let is_moving = |op: &&Op| !matches!(op, Op::Align { .. });
        let (mut plain, mut aligned) = (
            plain.iter().filter(is_moving),
            aligned.iter().filter(is_moving),
        );
        loop {
            match (plain.next(), aligned.next()) {
                (None, None) => return true,
                (Some(plain), Some(aligned)) if self.is_op(plain, aligned) => {}
                _ => return false,
            }
        }
    }

    fn is_op(&self, plain: &Op, aligned: &Op) -> bool {
        match (plain, aligned) {
            (Op::Reserve(one), Op::Reserve(other)) => self.is_block(one, other),
            (
                Op::PutElements {
                    place,
                    count,
                    element,
                    ..
                },
                Op::PutElements {
                    place: place_2,
                    count: count_2,
                    element: element_2,
                    ..
                },
            ) => (place, count) == (place_2, count_2) && self.is_block(element, element_2),
            (
                Op::Loop {
                    place,
                    count,
                    element,
                    body,
                },
                Op::Loop {
                    place: place_2,
                    count: count_2,
                    element: element_2,
                    body: body_2,
                },
            ) => {
                (place, count) == (place_2, count_2)
                    && is_element(element, element_2)
                    && self.is_body(body, body_2)
            }
            (
                Op::Switch {
                    place,
                    discriminant,
                    arms,
                    default,
                },
                Op::Switch {
                    place: place_2,
                    discriminant: discriminant_2,
                    arms: arms_2,
                    default: default_2,
                },
            ) => {
                (place, discriminant) == (place_2, discriminant_2)
                    && self.is_scalar(*discriminant)
                    && self.are_arms(arms, arms_2)
                    && match (default, default_2) {
                        (Some(one), Some(other)) => self.is_body(one, other),
                        (one, other) => one.is_none() && other.is_none(),
                    }
            }
            (
                Op::Optional { place, body },
                Op::Optional {
                    place: place_2,
                    body: body_2,
                },
            ) => place == place_2 && self.is_body(body, body_2),
            (Op::PutCounted { scalar, .. }, _) => plain == aligned && self.is_scalar(*scalar),
            (Op::Align { .. } | Op::BlitCounted { .. } | Op::CopyCounted { .. }, _) => {
                plain == aligned
            }
            (Op::List { .. } | Op::Call { .. } | Op::External { .. }, _) => plain == aligned,
            // The other one is of another kind.
            (Op::Reserve(_) | Op::PutElements { .. }, _) => false,
            (Op::Loop { .. } | Op::Switch { .. } | Op::Optional { .. }, _) => false,
        }
    }

    fn is_block(&self, plain: &ReservedBlock, aligned: &ReservedBlock) -> bool {
        plain == aligned && plain.items().all(|item| self.is_fixed(&item.kind))
    }

    /// Returns whether an item of a block has the same bytes in both.
    fn is_fixed(&self, kind: &FixedKind) -> bool {
        match kind {
            FixedKind::Put { scalar } | FixedKind::PutArray { scalar, .. } => {
                self.is_scalar(*scalar)
            }
            FixedKind::Copy { bytes } => {
                let [one, other] = self
                    .representations()
                    .map(|of| of.padded(u64::from(*bytes)));
                one == other
            }
            FixedKind::Blit { .. } => true,
        }
    }

    fn are_arms(&self, arms: &[Arm], others: &[Arm]) -> bool {
        let mut pairs = arms.iter().zip(others);
        arms.len() == others.len()
            && pairs.all(|(one, other)| {
                one.values == other.values && self.is_body(&one.body, &other.body)
            })
    }

    /// Returns whether a number takes as many bytes in both, and each value of them means the same.
    fn is_scalar(&self, scalar: Scalar) -> bool {
        let [one, other] = self
            .representations()
            .map(|of| (of.bytes(scalar), of.is_checked(scalar)));
        one == other
    }
}

fn is_element(plain: &ElementSize, aligned: &ElementSize) -> bool {
    let bytes = |element: &ElementSize| element.extent.map(|extent| extent.bytes);
    plain.min == aligned.min && bytes(plain) == bytes(aligned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pass;

    /// The names of the types and procedures of an interface that XDR and the lean representation move alike.
    fn alike(text: &str) -> Vec<String> {
        let parsed = tenon_idl::parse_text("alike.x", text, &Default::default());
        let schema = parsed.schema.expect("it is an interface");
        let [xdr, lean] = [Representation::XDR, Representation::LEAN].map(|representation| {
            Plans::new(&schema, representation, Pass::ALL).expect("it has plans")
        });
        let alike = Alike::new(&xdr, &lean);
        let types = schema.types.iter().enumerate();
        let types = types.filter(|(index, _)| alike.is_type(TypeId(*index as u32)));
        let types = types.map(|(_, def)| def.name.clone());
        let procedures = schema.programs.iter().flat_map(|of| &of.versions);
        let procedures = procedures.flat_map(|of| &of.procedures).enumerate();
        let procedures = procedures.filter(|(index, _)| alike.is_procedure(*index));
        types
            .chain(procedures.map(|(_, of)| of.name.clone()))
            .collect()
    }

    #[test]
    fn what_differs_by_alignment_alone_is_alike() {
        let text = "enum color { RED }; struct named { string name<>; int value; color of; };
                    struct nested { named first; hyper second; named all<>; };";
        assert_eq!(alike(text), ["color", "named", "nested"]);
    }

    #[test]
    fn what_differs_in_bytes_is_not_nor_is_what_holds_it() {
        let text = "struct flag { bool set; }; struct small { opaque id[3]; int value; }; struct holds { flag a<>; };
                    struct pointer { int *to; }; struct fine { int value; };";
        assert_eq!(alike(text), ["fine"]);
    }

    #[test]
    fn what_leads_back_to_itself_is_alike_if_all_on_the_way_is() {
        let text = "struct tree { int value; tree children<>; }; struct flagged { bool set; flagged children<>; };
                    struct link { int value; link *next; };
                    program P { version V { int LENGTH(link) = 1; bool IS_EMPTY(tree) = 2; } = 1; } = 9;";
        assert_eq!(alike(text), ["tree", "link", "LENGTH"]);
    }
}
