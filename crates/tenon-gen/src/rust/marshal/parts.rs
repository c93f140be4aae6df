//! Structs of very many fields: their methods are cut into parts of a size that compilers digest,
//! for they need more than linear time, and stack, for one long function or expression.
//!
//! No struct is inlined into a body of so many items, so a cut goes through none.

use tenon_plan::{BlockPart, Body, Op, Plan, Representation, ReservedBlock};
use tenon_schema::TypeId;

use super::MarshalGenerator;
use crate::rust::code::{BlockExpr, Expr, FunctionSignature, Statement};
use crate::writer::SourceWriter;

/// Most fields of a struct that is not cut.
const WHOLE_MAX: usize = 256;

/// Bytes behind which a part begins another block.
const BLOCK_MAX: u32 = 1 << 16;

/// Fields of one part.
pub const PART: usize = 128;

/// Returns whether a struct of so many fields is cut into parts.
pub fn is_wide(fields: usize) -> bool {
    fields > WHOLE_MAX
}

impl MarshalGenerator<'_> {
    /// Writes `impl Marshal` and the parts that it calls.
    pub(super) fn write_wide(self, w: &mut SourceWriter, id: TypeId, plan: &Plan) {
        let parts = cut(&plan.body, &self.form.plans.representation);
        let (encode_part, decode_part) = self.names_of_parts();
        let call = |method: &str, cursor: &str| {
            let calls = (1..=parts.len()).map(|part| format!("{method}_{part}({cursor})?"));
            calls.collect::<Vec<_>>()
        };
        let encode = call(&format!("self.{encode_part}"), "out");
        let mut decode = vec!["let mut value = Self::default()".to_owned()];
        decode.extend(call(&format!("value.{decode_part}"), "input"));
        let bodies = (
            statements(encode, plan.recursive.then_some("out"), "Ok(())"),
            statements(decode, plan.recursive.then_some("input"), "Ok(value)"),
        );
        self.write_impl(w, id, plan, bodies);
        w.gap();
        self.write_parts(w, id, &parts);
    }

    fn names_of_parts(self) -> (String, String) {
        let suffix = &self.form.marker.suffix;
        (
            format!("encode_part{suffix}"),
            format!("decode_part{suffix}"),
        )
    }

    fn write_parts(self, w: &mut SourceWriter, id: TypeId, parts: &[Body]) {
        let subject = self.record_of(id);
        let marker = &self.form.marker;
        let (encode_part, decode_part) = self.names_of_parts();
        w.braces(&format!("impl {}", self.rust.names.of_type(id).name), |w| {
            for (index, body) in parts.iter().enumerate() {
                if index > 0 {
                    w.gap();
                }
                let head = |name: &str, of: &str, cursor: String, error: &str| FunctionSignature {
                    name: format!("fn {name}_{}{}", index + 1, marker.generics()),
                    parameters: vec![of.to_owned(), cursor],
                    result: format!("Result<(), {error}>"),
                };
                let out = format!("out: &mut {}", marker.cursor("Encoder"));
                let encode = self.encode_item(body, &subject);
                w.line("#[inline(never)]");
                head(&encode_part, "&self", out, "EncodeError").write_function(w, &encode);
                w.gap();
                let input = format!("input: &mut {}", marker.cursor("Decoder"));
                let decode = self.decode_assignments(body, &subject);
                w.line("#[inline(never)]");
                head(&decode_part, "&mut self", input, "DecodeError").write_function(w, &decode);
            }
        });
    }
}

fn statements(mut lines: Vec<String>, nested_in: Option<&str>, value: &str) -> BlockExpr {
    if let Some(cursor) = nested_in {
        lines.insert(0, format!("{cursor}.enter()?"));
        lines.push(format!("{cursor}.leave()"));
    }
    BlockExpr {
        statements: lines
            .into_iter()
            .map(|line| Statement::Do(Expr::text(line)))
            .collect(),
        value: Some(Expr::text(value)),
    }
}

/// Cuts a body into bodies of at most [`PART`] items, each with checks of its own.
fn cut(body: &Body, representation: &Representation) -> Vec<Body> {
    let mut parts = BodyParts {
        representation,
        bodies: Vec::new(),
        items: PART,
    };
    for op in body {
        match op {
            Op::Reserve(block) => block.parts.iter().for_each(|part| parts.push_fixed(part)),
            op => parts.next().push(op.clone()),
        }
    }
    parts.bodies
}

/// The parts that a body has been cut into so far.
struct BodyParts<'a> {
    representation: &'a Representation,
    bodies: Vec<Body>,
    /// The number of items of the last part.
    items: usize,
}

impl BodyParts<'_> {
    /// Returns the part that the next item belongs to.
    fn next(&mut self) -> &mut Body {
        if self.items == PART {
            self.bodies.push(Body::new());
            self.items = 0;
        }
        self.items += 1;
        let last = self.bodies.len() - 1;
        &mut self.bodies[last]
    }

    /// Appends a part of a block, to the block that the last operation is if there is room in it.
    fn push_fixed(&mut self, part: &BlockPart) {
        let bytes = part.bytes(self.representation) as u32;
        let body = self.next();
        if let Some(Op::Reserve(block)) = body.last_mut()
            && block.bytes <= BLOCK_MAX
        {
            return block.push(part.clone(), bytes);
        }
        let mut block = ReservedBlock {
            bytes: 0,
            parts: Vec::new(),
        };
        block.push(part.clone(), bytes);
        body.push(Op::Reserve(block));
    }
}
