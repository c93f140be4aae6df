//! Designs that learn the interface at run time: the interpreter, and machine code.

use std::hint::black_box;

use tenon_exec::{Interface, Message, Value};
use tenon_plan::Representation;
use tenon_schema::{Schema, TypeId};
use tenon_wire::{Buffer, Decoder, Encoder};

use super::{Contests, Stage, check_bytes, check_value};
use crate::design::{DESIGNS, Design, Engine};
use crate::study::StudyError;

const FILE: &str = "study.x";
const TEXT: &str = include_str!("../../study.x");

/// The interface of the study.
///
/// # Errors
/// There are none: a bug.
pub fn interface() -> Result<Schema, StudyError> {
    let parsed = tenon_idl::parse_text(FILE, TEXT, &tenon_idl::Options::default());
    parsed.schema.ok_or(StudyError::Interface)
}

/// The interface as each design that is not compiled wants it.
pub struct Interfaces(Vec<(Design, Interface)>);

impl Interfaces {
    /// Reads the interface and makes the plans of each design.
    ///
    /// # Errors
    /// There are none: a bug.
    pub fn new(representation: Representation) -> Result<Self, StudyError> {
        let schema = interface()?;
        let dynamic = DESIGNS
            .iter()
            .filter(|design| design.engine != Engine::Compiled);
        let interfaces = dynamic.map(|design| {
            let plans = design.plans(&schema, representation)?;
            Ok((*design, Interface::with_plans(schema.clone(), plans)?))
        });
        interfaces.collect::<Result<_, _>>().map(Self)
    }

    fn of(&self, design: &Design) -> &Interface {
        let found = self.0.iter().find(|(of, _)| of == design);
        match found {
            Some((_, interface)) => interface,
            None => unreachable!("each design that is not compiled has one"),
        }
    }
}

fn type_of(stage: &Stage<'_>, interface: &Interface) -> Result<TypeId, String> {
    let name = stage.work.type_name();
    let found = interface.schema().find_type(name);
    found.ok_or_else(|| format!("its interface has no {name}"))
}

/// Lets the interpreter enter the contests with the plans of a design.
pub fn enter_interpreted<'a>(
    design: &Design,
    stage: &Stage<'a>,
    contests: &mut Contests<'a>,
) -> Result<(), String> {
    let (interface, bytes) = (stage.interfaces.of(design), stage.bytes);
    let id = type_of(stage, interface)?;
    let value = stage.work.value(stage.sample);
    let mut buffer = Buffer::default();
    let mut encode = move |value: &Value| {
        buffer.clear();
        let done = interface.encode(id, value, &mut Encoder::new(&mut buffer));
        black_box(buffer.as_slice());
        done
    };
    let decode = move |bytes: &[u8]| interface.decode(id, &mut Decoder::new(bytes));
    let mut written = Buffer::default();
    let done = interface.encode(id, &value, &mut Encoder::new(&mut written));
    done.map_err(|error| error.to_string())?;
    check_bytes(written.as_slice(), bytes)?;
    check_value(&decode(bytes).map_err(|error| error.to_string())?, &value)?;
    contests
        .encode
        .enter(design.name(), move || encode(black_box(&value)));
    contests
        .decode
        .enter(design.name(), move || decode(black_box(bytes)));
    Ok(())
}

/// Lets machine code enter the contests.
pub fn enter_machine<'a>(
    design: &Design,
    stage: &Stage<'a>,
    contests: &mut Contests<'a>,
) -> Result<(), String> {
    let (interface, bytes) = (stage.interfaces.of(design), stage.bytes);
    let message = interface
        .message(type_of(stage, interface)?)
        .map_err(|error| error.to_string())?;
    let value = stage.work.value(stage.sample);
    let frame = message.frame(&value).map_err(|error| error.to_string())?;
    let mut buffer = Buffer::default();
    let refuses = || "machine code refuses".to_owned();
    let done = frame.encode_by_machine(&mut Encoder::new(&mut buffer));
    done.then_some(()).ok_or_else(refuses)?;
    check_bytes(buffer.as_slice(), bytes)?;
    let read = decode_by_machine(message, bytes).ok_or_else(refuses)?;
    check_value(&read, &value)?;
    contests.encode.enter(design.name(), move || {
        buffer.clear();
        let done = black_box(&frame).encode_by_machine(&mut Encoder::new(&mut buffer));
        black_box(buffer.as_slice());
        done
    });
    contests.decode.enter(design.name(), move || {
        message.decode_by_machine(&mut Decoder::new(black_box(bytes)))
    });
    Ok(())
}

fn decode_by_machine(message: Message<'_>, bytes: &[u8]) -> Option<Value> {
    let frame = message.decode_by_machine(&mut Decoder::new(bytes))?;
    Some(frame.value())
}
