//! Designs that learn the interface at run time: the interpreter, and machine code.

use tenon_exec::{Interface, Message};
use tenon_schema::Schema;
use tenon_wire::{Lean, Representation, Xdr};

use super::{PreparedWorkload, check_bytes, check_value};
use crate::design::{DESIGNS, StubDesign, StubEngine};
use crate::entry::{
    CodecBenchmarks, EncodeBuffer, FrameCodec, MachineCodec, WithCodec, decoder, with_interpreter,
    write_frame,
};
use crate::study::{StudyError, WireFormat};

const FILE: &str = "study.x";
const TEXT: &str = include_str!("../../study.x");

/// Returns the interface of the study.
///
/// # Errors
/// There are none: a bug.
pub fn interface() -> Result<Schema, StudyError> {
    let parsed = tenon_idl::parse_text(FILE, TEXT, &tenon_idl::Options::default());
    parsed.schema.ok_or(StudyError::Interface)
}

/// The interface as each design that is not compiled wants it.
pub struct DesignInterfaces(Vec<(StubDesign, Interface)>);

impl DesignInterfaces {
    /// Reads the interface and makes the plans of each design.
    ///
    /// # Errors
    /// There are none: a bug.
    pub fn new(wire: WireFormat) -> Result<Self, StudyError> {
        let schema = interface()?;
        let dynamic = DESIGNS
            .iter()
            .filter(|design| design.engine != StubEngine::Compiled);
        let interfaces = dynamic.map(|design| {
            let plans = design.plans(&schema, wire.representation())?;
            Ok((*design, Interface::with_plans(schema.clone(), plans)?))
        });
        interfaces.collect::<Result<_, _>>().map(Self)
    }

    fn of(&self, design: &StubDesign) -> &Interface {
        let found = self.0.iter().find(|(of, _)| of == design);
        match found {
            Some((_, interface)) => interface,
            None => unreachable!("each design that is not compiled has one"),
        }
    }
}

/// Lets the interpreter enter the contests with the plans of a design.
pub fn enter_interpreted<'a>(
    design: &StubDesign,
    stage: &PreparedWorkload<'a>,
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), String> {
    let entry = DesignEntry {
        design,
        stage,
        contests,
    };
    with_interpreter(design.movement.moves(), entry)
}

/// Lets machine code enter the contests with the plans of a design.
pub fn enter_machine<'a>(
    design: &StubDesign,
    stage: &PreparedWorkload<'a>,
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), String> {
    let entry = DesignEntry {
        design,
        stage,
        contests,
    };
    entry.with::<MachineCodec>()
}

/// A design that enters the contests.
struct DesignEntry<'d, 'a> {
    design: &'d StubDesign,
    stage: &'d PreparedWorkload<'a>,
    contests: &'d mut CodecBenchmarks<'a>,
}

impl WithCodec for DesignEntry<'_, '_> {
    type Output = Result<(), String>;

    fn with<E: FrameCodec>(self) -> Self::Output {
        let Self {
            design,
            stage,
            contests,
        } = self;
        match stage.wire {
            WireFormat::Xdr => enter_as::<E, Xdr>(design, stage, contests),
            WireFormat::Lean => enter_as::<E, Lean>(design, stage, contests),
        }
    }
}

fn enter_as<'a, E: FrameCodec, R: Representation>(
    design: &StubDesign,
    stage: &PreparedWorkload<'a>,
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), String> {
    let bytes = stage.bytes;
    let message = message(stage, stage.interfaces.of(design))?;
    let value = stage.work.value(stage.sample);
    let frame = message.frame(&value).map_err(|error| error.to_string())?;
    let mut room = EncodeBuffer::default();
    write_frame::<E, R>(&frame, &mut room)?;
    check_bytes(room.message(), bytes)?;
    let read = E::decode(message, &mut decoder::<R>(bytes))?;
    check_value(&read.value(), &value)?;
    contests.enter_frame::<E, R>(&design.name(), (message, frame), bytes);
    Ok(())
}

fn message<'a>(
    stage: &PreparedWorkload<'a>,
    interface: &'a Interface,
) -> Result<Message<'a>, String> {
    let name = stage.work.type_name();
    let found = interface.schema().find_type(name);
    let id = found.ok_or_else(|| format!("its interface has no {name}"))?;
    interface.message(id).map_err(|error| error.to_string())
}
