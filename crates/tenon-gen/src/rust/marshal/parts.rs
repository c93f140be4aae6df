//! Structs of very many fields: their methods are cut into parts of a size that compilers digest,
//! for they need more than linear time, and stack, for one long function or expression.
//!
//! No struct is inlined into a body of so many items, so a cut goes through none.

use tenon_plan::{Body, Op, Plan, Representation};
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
    let mut parts: Vec<Body> = Vec::new();
    let (mut items, mut block) = (PART, None);
    for op in body.iter().filter(|op| !op.is_reserve()) {
        if items == PART {
            parts.push(Body::new());
            (items, block) = (0, None);
        }
        if let Some(part) = parts.last_mut() {
            push(part, &mut block, op.clone(), representation);
        }
        items += 1;
    }
    parts
}

/// Appends `op` to a part, an item of fixed size to the block that begins at `block`.
fn push(part: &mut Body, block: &mut Option<usize>, mut op: Op, representation: &Representation) {
    let Some((_, size)) = op.fixed(representation) else {
        *block = None;
        return part.push(op);
    };
    let start = *block.get_or_insert_with(|| {
        part.push(Op::Reserve { bytes: 0 });
        part.len() - 1
    });
    if let (Op::Reserve { bytes }, Some(offset)) = (&mut part[start], op.offset_mut()) {
        *offset = *bytes;
        *bytes += size as u32;
        block.take_if(|_| *bytes > BLOCK_MAX);
    }
    part.push(op);
}
