//! Dispatch tables: for each version, the functions that carry procedures out and the routines that move their
//! parameters.

use super::procedures::{VersionedProcedure, procedures};
use super::{Interface, Options, heading, names};
use crate::writer::SourceWriter;

/// The file of the tables; empty if there are no programs.
pub fn write(of: Interface<'_>, options: &Options) -> String {
    if of.schema.programs.is_empty() {
        return String::new();
    }
    let mut w = SourceWriter::with_tabs();
    heading(&mut w, options);
    of.passthrough(&mut w);
    for (position, program) in of.schema.programs.iter().enumerate() {
        for index in 0..program.versions.len() {
            let mine = procedures(of).filter(|of| (of.program, of.version) == (position, index));
            let name = of.dispatcher(position, index);
            w.line("");
            w.line(format!("struct rpcgen_table {name}_table[] = {{"));
            w.indented(|w| entries(w, mine.collect(), options));
            w.line("};");
            w.line(format!("int {name}_nproc ="));
            w.indented(|w| w.line(format!("sizeof({name}_table)/sizeof({name}_table[0]);")));
        }
    }
    w.finish()
}

/// One entry for each number from 0 on, so that a number is the index of its procedure: the tables say
/// where they have to leave that out.
fn entries(w: &mut SourceWriter, procedures: Vec<VersionedProcedure<'_>>, options: &Options) {
    let mut next = 0;
    for procedure in procedures {
        if procedure.definition.number != next {
            w.line("");
            w.line("/*");
            w.line(" * WARNING: table out of order");
            w.line(" */");
        }
        next = procedure.definition.number.wrapping_add(1);
        let argument = procedure.written.arguments.first();
        let result = procedure.written.result.as_ref();
        let size = |of: Option<&tenon_schema::written::Spelling>| match of {
            Some(spelling) => format!("sizeof ( {} )", names::c_type(spelling)),
            None => "0".to_owned(),
        };
        w.line("");
        w.line("{");
        w.line(format!(
            "(char *(*)())RPCGEN_ACTION({}_svc),",
            procedure.c_name()
        ));
        for (routine, size) in [
            (procedure.argument_routine(options), size(argument)),
            (procedure.result_routine(), size(result)),
        ] {
            w.line(format!("{},\t{size},", names::cast_routine(&routine)));
        }
        w.line("},");
    }
}
