//! The source file: the functions of all types and messages, their tables, clients and services.

use std::collections::BTreeSet;

use tenon_plan::links::is_link;
use tenon_plan::{FixedKind, Op, Order, Plan, ProcedurePlan, Representation};
use tenon_schema::{TypeId, TypeKind};

use super::StubPrinter;
use super::chunks::{self, CFunction};
use super::codec::{CodecDirection, CodecWriter, LabelledLvalue, member_test};
use super::encode::plain;
use super::free::FreeWriter;
use super::messages::{StubMessage, UnnamedValue, message_name};
use super::procedures::plain_key;
use super::streams::StubStreams;
use crate::c::planned::LoweringSchema;
use crate::c::xdr::free::HeapOwnership;
use crate::c::xdr::runtime;
use crate::writer::SourceWriter;

/// The code that functions share, in C.
const RUNTIME: &str = include_str!("runtime.c");

/// A table of the functions that move and free a message, and the functions.
struct CodecTable {
    text: String,
    chunks: Vec<CFunction>,
}

impl<'a> StubPrinter<'a> {
    /// The text of the source file.
    pub fn source(&self) -> String {
        let planned = LoweringSchema::new(self.of.schema);
        let owners = HeapOwnership::with(&planned, &self.plans[0], |id| self.boxed.any_of(id));
        let maker = TableBuilder {
            file: self,
            codecs: self
                .plans
                .each_ref()
                .map(|plans| CodecWriter::new(self.of, plans, self.boxed)),
            frees: FreeWriter {
                of: self.of,
                owners: &owners,
                plans: &self.plans[0],
                boxed: self.boxed,
            },
        };
        let mut tables: Vec<CodecTable> = self
            .defined()
            .into_iter()
            .map(|id| maker.of_type(id))
            .collect();
        tables.extend(maker.of_procedures());
        let roots: String = tables.iter().map(|table| table.text.as_str()).collect();
        let functions: Vec<CFunction> = tables.into_iter().flat_map(|table| table.chunks).collect();
        let mut body = SourceWriter::with_tabs();
        chunks::write(&mut body, &functions, &roots);
        body.raw_text(roots.strip_suffix('\n').unwrap_or(&roots));
        for version in &self.versions {
            body.line("");
            self.write_version(&mut body, version);
        }
        let body = body.finish();
        let mut w = SourceWriter::with_tabs();
        self.heading(&mut w);
        for header in ["stdlib.h", "string.h", "tenon.h"] {
            w.line(format!("#include <{header}>"));
        }
        w.line("");
        // All of this is read before the interface's macros are there, which may have names that it has.
        runtime::write_with(&mut w, &body, RUNTIME);
        w.line(format!("#include \"{}.h\"", self.stem));
        w.line("");
        w.finish() + &body
    }
}

/// Builds tables of functions.
struct TableBuilder<'f, 'a> {
    file: &'f StubPrinter<'a>,
    codecs: [CodecWriter<'a>; 2],
    frees: FreeWriter<'f>,
}

impl<'f, 'a: 'f> TableBuilder<'f, 'a> {
    fn of_type(&self, id: TypeId) -> CodecTable {
        let def = self.file.of.schema.type_def(id);
        let mut chunks = Vec::new();
        if let TypeKind::Enum(members) = &def.kind {
            let mut values = BTreeSet::new();
            let members = members.iter().filter(|member| values.insert(member.value));
            let names: Vec<&str> = members.map(|member| member.name.as_str()).collect();
            chunks.push(member_chunk(&def.name, &names));
        }
        for codec in &self.codecs {
            chunks.extend(codec.of_type(id));
        }
        chunks.extend(self.frees.of_type(id));
        let names = self.codecs.each_ref().map(|codec| {
            [CodecDirection::Encode, CodecDirection::Decode]
                .map(|way| codec.function_name(way, &def.name))
        });
        let lead = format!("const tenon_message {}", message_name(&def.name));
        CodecTable {
            text: table(
                &lead,
                &def.name,
                &names,
                &self.frees.of_named(id),
                self.file.plans.each_ref().map(|plans| {
                    let plan = plans.of_type(id);
                    let is_link = is_link(self.file.of.schema, id);
                    unit(plans.representation, plan).filter(|_| !is_link)
                }),
            ),
            chunks,
        }
    }

    /// The messages of procedures that are not those of types.
    fn of_procedures(&self) -> Vec<CodecTable> {
        let mut tables = Vec::new();
        let mut plain = BTreeSet::new();
        for version in &self.file.versions {
            let calls = version.calls.iter();
            for (position, call) in calls.filter(|(_, call)| call.index.is_some()) {
                let of = self.file.of;
                let result_name = &self.file.result_names[*position];
                let arguments: fn(&ProcedurePlan) -> &Plan = |plan| &plan.arguments;
                let result: fn(&ProcedurePlan) -> &Plan = |plan| &plan.result;
                let items = call.streams.into_iter().flat_map(StubStreams::items);
                let items = items.map(|item| (item.message(of), item.plans));
                let messages = [
                    (call.arguments(of), call.plans.map(arguments)),
                    (call.result(of, result_name), call.plans.map(result)),
                ];
                for (message, plans) in messages.into_iter().chain(items) {
                    match message {
                        StubMessage::Nothing | StubMessage::Named(_) => {}
                        StubMessage::Plain(value) => {
                            let key = plain_key(&value.name);
                            if plain.insert(key.clone()) {
                                tables.push(self.of_value(("plain", &key), &value, plans));
                            }
                        }
                        StubMessage::Own(value) => {
                            tables.push(self.of_value(("own", &value.name), &value, plans));
                        }
                    }
                }
            }
        }
        tables
    }

    fn of_value(
        &self,
        (kind, name): (&str, &str),
        value: &UnnamedValue<'a>,
        plans: [&'a Plan; 2],
    ) -> CodecTable {
        let here = LabelledLvalue {
            spot: value.spot.clone(),
            label: value.name.clone(),
        };
        let mut chunks = Vec::new();
        let mut names: [[String; 2]; 2] = Default::default();
        for (index, (codec, plan)) in self.codecs.iter().zip(plans).enumerate() {
            let made = codec.both(&format!("{kind}_"), name, &value.ty, &here, plan);
            names[index] = made.each_ref().map(|chunk| chunk.name.clone());
            chunks.extend(made);
        }
        let mut free = "NULL".to_owned();
        if self.frees.owners.owns_body(&plans[0].body) {
            free = format!("tenon_{kind}_free_{name}");
            chunks.push(
                self.frees
                    .function(free.clone(), &value.ty, &here, &plans[0].body),
            );
        }
        let lead = format!("static const tenon_message tenon_message_{kind}_{name}");
        let [xdr, lean] = self.file.plans;
        let units = [
            unit(xdr.representation, plans[0]),
            unit(lean.representation, plans[1]),
        ];
        CodecTable {
            text: table(&lead, &value.ty, &names, &free, units),
            chunks,
        }
    }
}

fn table(
    lead: &str,
    ty: &str,
    names: &[[String; 2]; 2],
    free: &str,
    units: [Option<u32>; 2],
) -> String {
    let functions: Vec<String> = names
        .iter()
        .map(|[encode, decode]| format!("\t{encode}, {decode},\n"))
        .collect();
    let [xdr, lean] = units.map(Option::unwrap_or_default);
    format!(
        "{lead} = {{\n\tsizeof ({ty}), _Alignof ({ty}),\n{}\t{free}, NULL, {xdr}, {lean}\n}};\n\n",
        functions.concat()
    )
}

/// Returns the size of the numbers of a value that lies in messages as in memory, but for the order of their bytes: 1 if
/// they have several sizes and no order but the machine's. A single number is not worth it.
fn unit(representation: Representation, plan: &Plan) -> Option<u32> {
    let [Op::Reserve(block)] = plan.body.as_slice() else {
        return None;
    };
    let only = block.only().filter(|only| only.place.0.is_empty())?;
    match &only.kind {
        FixedKind::Put { .. } => None,
        FixedKind::PutArray { scalar, .. } => plain(representation, *scalar),
        FixedKind::Copy { bytes } => {
            let bytes = u64::from(*bytes);
            (representation.padded(bytes) == bytes).then_some(1)
        }
        FixedKind::Blit { item, .. } => {
            let has_own_order = representation.order == Order::Sender;
            item.unit().or(has_own_order.then_some(1))
        }
    }
}

/// The function that says whether a number belongs to an enum.
fn member_chunk(name: &str, members: &[&str]) -> CFunction {
    let function = member_test(name);
    let head = format!("{function} (int32_t number)");
    let cases: String = members
        .iter()
        .map(|member| format!("\tcase {member}:\n"))
        .collect();
    let text = match members {
        [] => format!("static bool\n{head}\n{{\n\t(void) number;\n\treturn false;\n}}\n"),
        _ => format!(
            "static bool\n{head}\n{{\n\tswitch (number) {{\n{cases}\t\treturn true;\n\tdefault:\n\t\treturn false;\n\t}}\n}}\n"
        ),
    };
    CFunction {
        prototype: format!("static bool {head};"),
        name: function,
        text,
    }
}
