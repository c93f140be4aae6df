//! The header file: constants, types, programs, and the prototypes of all routines.

use tenon_schema::written::{Item, Spelling, WrittenType, WrittenUnion};
use tenon_schema::{EnumMember, Field, Length, Type, TypeDef, TypeId, TypeKind, Union};

use super::declare::CDeclaration;
use super::procedures::{StubSide, VersionedProcedure, has_record, procedures};
use super::{Dialect, Interface, Options, heading, names};
use crate::writer::{HoleContent, SourceWriter, c_comment};

/// The text of the header.
pub fn write(of: Interface<'_>, options: &Options) -> String {
    let mut w = SourceWriter::with_tabs();
    heading(&mut w, options);
    w.skeleton(
        "
#ifndef $guard$
#define $guard$

#include <rpc/rpc.h>

$run_time$
$threads$

#ifdef __cplusplus
extern \"C\" {
#endif

$items$
$prototypes$

#ifdef __cplusplus
}
#endif

#endif /* !$guard$ */
",
        &[
            ("guard", HoleContent::Text(&names::guard(&options.header))),
            ("run_time", HoleContent::Lines(&|w| run_time(w, options))),
            (
                "threads",
                HoleContent::Lines(&|w| {
                    if options.reentrant {
                        w.line("#include <pthread.h>");
                    }
                }),
            ),
            ("items", HoleContent::Lines(&|w| items(w, of, options))),
            (
                "prototypes",
                HoleContent::Lines(&|w| prototypes(w, of, options)),
            ),
        ],
    );
    w.finish()
}

/// Includes the header that selects Tenon's clients and servers, if they are not to be libtirpc's.
fn run_time(w: &mut SourceWriter, options: &Options) {
    if options.fast {
        w.line("#include <tenon/tirpc.h>");
    }
}

fn items(w: &mut SourceWriter, of: Interface<'_>, options: &Options) {
    for (position, item) in of.written.items.iter().enumerate() {
        match item {
            Item::Passthrough(line) => w.raw(&line.text),
            Item::Constant { name, value } => w.line(format!("#define {name} {value}")),
            Item::Type(id) => {
                w.line("");
                define(w, of, *id, position);
            }
            Item::Program(_) => {}
        }
    }
    if options.tables && !of.schema.programs.is_empty() {
        w.line("");
        table_type(w);
    }
    // Programs come last, so that their prototypes know all types.
    for program in 0..of.schema.programs.len() {
        write_records(w, of, options, program);
        w.line("");
        write_program(w, of, options, program);
    }
}

/// Writes the definition of a type, which stands at `position` among the items.
pub fn define(w: &mut SourceWriter, of: Interface<'_>, id: TypeId, position: usize) {
    let def = of.schema.type_def(id);
    match (&def.kind, of.written_type(id)) {
        (TypeKind::Enum(members), WrittenType::Enum(values)) => {
            enumeration(w, of.dialect, &def.name, members, values);
        }
        (TypeKind::Struct(fields), WrittenType::Struct(spellings)) => {
            record(w, of, &def.name, fields, spellings);
        }
        (TypeKind::Union(union), WrittenType::Union(written)) => {
            write_union(w, of, &def.name, union, written);
        }
        (TypeKind::Typedef(ty), WrittenType::Typedef(spelling)) => {
            let declared = CDeclaration {
                name: &def.name,
                ty,
                spelling,
            };
            let words = match of.dialect {
                Dialect::Libtirpc => aliased(of, spelling, position),
                Dialect::Plain => of.c_type(ty, spelling),
            };
            declared.typedef(w, of.dialect, &words);
        }
        _ => {}
    }
}

/// Returns the C type that a typedef stands for. Once a type is defined it has a name without `struct`.
fn aliased(of: Interface<'_>, spelling: &Spelling, position: usize) -> String {
    let is_known = of
        .defined_before(position)
        .any(|id| of.schema.type_def(id).name == spelling.base);
    match is_known {
        true => names::bare_type(spelling).to_owned(),
        false => names::c_type(spelling),
    }
}

fn enumeration(
    w: &mut SourceWriter,
    dialect: Dialect,
    name: &str,
    members: &[EnumMember],
    values: &[Option<String>],
) {
    w.line(format!("enum {name} {{"));
    w.indented(|w| {
        let mut last: Option<(&str, u32)> = None;
        for (member, value) in members.iter().zip(values) {
            let text = match (value, last) {
                (Some(value), _) => value.clone(),
                (None, Some((base, behind))) => format!("{base} + {}", behind + 1),
                (None, None) => member.value.to_string(),
            };
            last = match (value, last) {
                (Some(value), _) => Some((value, 0)),
                (None, Some((base, behind))) => Some((base, behind + 1)),
                (None, None) => None,
            };
            document(w, dialect, &member.doc);
            w.line(format!("{} = {text},", member.name));
        }
    });
    w.line("};");
    w.line(format!("typedef enum {name} {name};"));
}

/// A struct, or the record of the arguments of a procedure.
pub fn record(
    w: &mut SourceWriter,
    of: Interface<'_>,
    name: &str,
    fields: &[Field],
    spellings: &[Spelling],
) {
    w.line(format!("struct {name} {{"));
    w.indented(|w| {
        for (field, spelling) in fields.iter().zip(spellings) {
            member(w, of, name, field, spelling);
        }
        if fields.is_empty() {
            nothing(w, of.dialect);
        }
    });
    w.line("};");
    name_it(w, of.dialect, name);
}

/// Writes the body of a struct without members. To libtirpc's C that is a value of no bytes, which routines and
/// programs are compiled for; C++ gives it one, and would look for the member behind it at another offset.
fn nothing(w: &mut SourceWriter, dialect: Dialect) {
    match dialect {
        Dialect::Plain => w.line("char tenon_nothing; /* C wants a member */"),
        Dialect::Libtirpc => {
            w.raw("#ifdef __cplusplus");
            w.line("char tenon_nothing[0]; /* as in C, it takes no bytes */");
            w.raw("#endif");
        }
    }
}

/// Names a struct without `struct`; where all of them are announced, that is done.
fn name_it(w: &mut SourceWriter, dialect: Dialect, name: &str) {
    match dialect {
        Dialect::Libtirpc => w.line(format!("typedef struct {name} {name};")),
        Dialect::Plain => {}
    }
}

/// Carries over what the interface says; rpcgen does not.
fn document(w: &mut SourceWriter, dialect: Dialect, doc: &str) {
    match dialect {
        Dialect::Libtirpc => {}
        Dialect::Plain => c_comment(w, doc),
    }
}

fn member(
    w: &mut SourceWriter,
    of: Interface<'_>,
    owner: &str,
    field: &Field,
    spelling: &Spelling,
) {
    document(w, of.dialect, &field.doc);
    let declared = CDeclaration {
        name: &field.name,
        ty: &field.ty,
        spelling,
    };
    declared.member(w, of, owner);
}

fn write_union(
    w: &mut SourceWriter,
    of: Interface<'_>,
    name: &str,
    union: &Union,
    written: &WrittenUnion,
) {
    w.line(format!("struct {name} {{"));
    w.indented(|w| {
        let discriminant = CDeclaration {
            name: &union.discriminant,
            ty: &union.discriminant_type,
            spelling: &written.discriminant,
        };
        discriminant.member(w, of, name);
        let arms = union.arms.iter().zip(&written.arms);
        let arms = arms.map(|(arm, spelling)| (arm.field.as_ref(), spelling.as_ref()));
        let default = union.default.iter().zip(&written.default);
        let default = default.map(|(field, spelling)| (field.as_ref(), spelling.as_ref()));
        let held = arms.chain(default);
        let held = held.filter_map(|(field, spelling)| field.zip(spelling));
        let held: Vec<_> = held.collect();
        if held.is_empty() && of.dialect == Dialect::Plain {
            return;
        }
        w.line("union {");
        w.indented(|w| {
            if held.is_empty() {
                nothing(w, of.dialect);
            }
            for (field, spelling) in held {
                member(w, of, name, field, spelling);
            }
        });
        w.line(format!("}} {name}_u;"));
    });
    w.line("};");
    name_it(w, of.dialect, name);
}

/// The structs that hold several arguments of a procedure.
fn write_records(w: &mut SourceWriter, of: Interface<'_>, options: &Options, program: usize) {
    for procedure in procedures(of).filter(|procedure| procedure.program == program) {
        if has_record(&procedure, options) {
            w.line("");
            let name = procedure.record_name();
            record(
                w,
                of,
                &name,
                &procedure.definition.arguments,
                &procedure.written.arguments,
            );
        }
    }
}

fn write_program(w: &mut SourceWriter, of: Interface<'_>, options: &Options, position: usize) {
    let program = &of.schema.programs[position];
    let written = &of.written.programs[position];
    w.line(format!("#define {} {}", program.name, written.number));
    for (index, version) in program.versions.iter().enumerate() {
        let mine: Vec<_> = procedures(of)
            .filter(|procedure| (procedure.program, procedure.version) == (position, index))
            .collect();
        let dispatcher = of.dispatcher(position, index);
        if options.tables {
            w.line(format!("extern struct rpcgen_table {dispatcher}_table[];"));
            w.line(format!("extern int {dispatcher}_nproc;"));
        }
        w.line(format!(
            "#define {} {}",
            version.name, written.versions[index]
        ));
        w.line("");
        w.line("#if defined(__STDC__) || defined(__cplusplus)");
        for procedure in &mine {
            number(w, of, procedure);
            for side in [StubSide::Client, StubSide::Server] {
                w.line(procedure.prototype(of, options, side));
            }
        }
        w.line(format!(
            "extern int {dispatcher}_freeresult (SVCXPRT *, xdrproc_t, caddr_t);"
        ));
        w.line("");
        w.line("#else /* K&R C */");
        for procedure in &mine {
            number(w, of, procedure);
            for side in [StubSide::Client, StubSide::Server] {
                w.line(procedure.old_prototype(of, options, side));
            }
        }
        w.line(format!("extern int {dispatcher}_freeresult ();"));
        w.line("#endif /* K&R C */");
    }
}

/// The number of a procedure, unless a version in front has a procedure of this name.
fn number(w: &mut SourceWriter, of: Interface<'_>, procedure: &VersionedProcedure<'_>) {
    let versions = &of.schema.programs[procedure.program].versions[..procedure.version];
    let name = &procedure.definition.name;
    let mut before = versions.iter().flat_map(|version| &version.procedures);
    if !before.any(|other| other.name == *name) {
        w.line(format!("#define {name} {}", procedure.written.number));
    }
}

fn prototypes(w: &mut SourceWriter, of: Interface<'_>, options: &Options) {
    let types = of.defined_before(of.written.items.len());
    let mut routines: Vec<(String, String)> =
        types.map(|id| parameter(of.schema.type_def(id))).collect();
    let records = procedures(of).filter(|procedure| has_record(procedure, options));
    routines.extend(records.map(|procedure| {
        let name = procedure.record_name();
        (name.clone(), format!("{name}*"))
    }));
    if routines.is_empty() {
        return;
    }
    w.line("");
    w.line("/* the xdr functions */");
    w.line("");
    w.line("#if defined(__STDC__) || defined(__cplusplus)");
    for (name, parameter) in &routines {
        w.line(format!("extern  bool_t xdr_{name} (XDR *, {parameter});"));
    }
    w.line("");
    w.line("#else /* K&R C */");
    for (name, _) in &routines {
        w.line(format!("extern bool_t xdr_{name} ();"));
    }
    w.line("");
    w.line("#endif /* K&R C */");
}

/// The name of a type, and what its routine takes.
fn parameter(def: &TypeDef) -> (String, String) {
    let name = def.name.clone();
    let star = match &def.kind {
        TypeKind::Typedef(Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_))) => "",
        _ => "*",
    };
    (name.clone(), format!("{name}{star}"))
}

fn table_type(w: &mut SourceWriter) {
    w.raw_text(
        "struct rpcgen_table {
	char	*(*proc)();
	xdrproc_t	xdr_arg;
	unsigned	len_arg;
	xdrproc_t	xdr_res;
	unsigned	len_res;
};
",
    );
}
