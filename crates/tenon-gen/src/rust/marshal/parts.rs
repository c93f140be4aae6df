//! Structs of very many fields: their methods are cut into parts of a size that compilers digest,
//! for they need more than linear time, and stack, for one long function or expression.
//!
//! No struct is inlined into a body of so many items, so a cut goes through none.

use tenon_plan::{Body, Op, Plan, Representation};
use tenon_schema::TypeId;

use super::{decode, encode, record_of, write_impl};
use crate::rust::Rust;
use crate::rust::code::{Block, Expr, Statement};
use crate::writer::Writer;

/// Most fields of a struct that is dealt with in one piece.
const WHOLE_MAX: usize = 256;

/// Bytes behind which a part begins another block.
const BLOCK_MAX: u32 = 1 << 16;

/// Fields of one part.
pub const PART: usize = 128;

/// Whether a struct of so many fields is cut into parts.
pub fn is_wide(fields: usize) -> bool {
    fields > WHOLE_MAX
}

/// Writes `impl Xdr` and the parts that it calls.
pub fn write_wide(w: &mut Writer, rust: &Rust<'_>, id: TypeId, plan: &Plan) {
    let parts = cut(&plan.body);
    let call = |method: &str, cursor: &str| {
        let calls = (1..=parts.len()).map(|part| format!("{method}_part_{part}({cursor})?"));
        calls.collect::<Vec<_>>()
    };
    let encode = call("self.encode", "out");
    let mut decode = vec!["let mut value = Self::default()".to_owned()];
    decode.extend(call("value.decode", "input"));
    let bodies = (
        statements(encode, plan.recursive.then_some("out"), "Ok(())"),
        statements(decode, plan.recursive.then_some("input"), "Ok(value)"),
    );
    write_impl(w, rust, id, plan, bodies);
    w.gap();
    write_parts(w, rust, id, &parts);
}

fn statements(mut lines: Vec<String>, nested_in: Option<&str>, value: &str) -> Block {
    if let Some(cursor) = nested_in {
        lines.insert(0, format!("{cursor}.enter()?"));
        lines.push(format!("{cursor}.leave()"));
    }
    Block {
        statements: lines
            .into_iter()
            .map(|line| Statement::Do(Expr::text(line)))
            .collect(),
        value: Some(Expr::text(value)),
    }
}

fn write_parts(w: &mut Writer, rust: &Rust<'_>, id: TypeId, parts: &[Body]) {
    let subject = record_of(rust, id);
    w.braces(&format!("impl {}", rust.names.of_type(id).name), |w| {
        for (index, body) in parts.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            let part = index + 1;
            let encode = encode::item(rust, body, &subject);
            let head = "(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError>";
            w.line("#[inline(never)]");
            w.braces(&format!("fn encode_part_{part}{head}"), |w| encode.write(w));
            w.gap();
            let decode = decode::assignments(rust, body, &subject);
            let head = "(&mut self, input: &mut Decoder<'_>) -> Result<(), DecodeError>";
            w.line("#[inline(never)]");
            w.braces(&format!("fn decode_part_{part}{head}"), |w| decode.write(w));
        }
    });
}

/// Cuts a body into bodies of at most [`PART`] items, each with checks of its own.
fn cut(body: &Body) -> Vec<Body> {
    let mut parts: Vec<Body> = Vec::new();
    let (mut items, mut block) = (PART, None);
    for op in body.iter().filter(|op| !op.is_reserve()) {
        if items == PART {
            parts.push(Body::new());
            (items, block) = (0, None);
        }
        if let Some(part) = parts.last_mut() {
            push(part, &mut block, op.clone());
        }
        items += 1;
    }
    parts
}

/// Appends `op` to a part, an item of fixed size to the block that begins at `block`.
fn push(part: &mut Body, block: &mut Option<usize>, mut op: Op) {
    let Some((_, size)) = op.fixed(&Representation::XDR) else {
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
