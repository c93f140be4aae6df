//! What is timed: a message that an engine writes, and one that it reads.

use tenon_exec::Value;
use tenon_plan as plan;
use tenon_plan::cost::Engine;
use tenon_schema::TypeId;
use tenon_wire::{Buffer, Encoder, Lean, Representation, Xdr};

use super::planned::PlannedInterface;
use super::{CostError, compiled};
use crate::entry::{
    CodecBenchmarks, EncodeBuffer, FrameCodec, MachineCodec, WithCodec, decoder, with_interpreter,
    write_frame,
};

/// A message of a type.
pub struct EncodedMessage {
    /// The type.
    pub id: TypeId,
    /// The value.
    pub value: Value,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl EncodedMessage {
    /// Encodes a value as a message, by the interpreter.
    ///
    /// # Errors
    /// The value is not one of the type.
    pub fn new(planned: &PlannedInterface, id: TypeId, value: Value) -> Result<Self, CostError> {
        let mut buffer = Buffer::default();
        let done = match planned.interface.plans().representation {
            plan::Representation::LEAN => {
                let mut out = Encoder::<Lean>::over(&mut buffer);
                planned.interface.encode(id, &value, &mut out)
            }
            _ => {
                let mut out = Encoder::new(&mut buffer);
                planned.interface.encode(id, &value, &mut out)
            }
        };
        done.map_err(|_| refused(planned, id))?;
        let bytes = buffer.as_slice().to_vec();
        Ok(Self { id, value, bytes })
    }
}

fn refused(planned: &PlannedInterface, id: TypeId) -> CostError {
    let name = planned.name_of(id).to_owned();
    match planned.engine {
        Engine::Compiled => CostError::NotCompiled(name),
        Engine::Machine | Engine::Interpreter => CostError::Refused(name),
    }
}

impl<'a> CodecBenchmarks<'a> {
    /// Lets an engine enter with a message.
    ///
    /// # Errors
    /// It refuses the message.
    pub fn enter(
        &mut self,
        planned: &'a PlannedInterface,
        message: &'a EncodedMessage,
    ) -> Result<(), CostError> {
        let done = match planned.engine {
            Engine::Compiled => self.enter_compiled(planned, message),
            Engine::Machine | Engine::Interpreter => self.enter_dynamic(planned, message),
        };
        done.ok_or_else(|| refused(planned, message.id))
    }

    fn enter_compiled(
        &mut self,
        planned: &'a PlannedInterface,
        message: &'a EncodedMessage,
    ) -> Option<()> {
        let name = planned.name_of(message.id);
        let representation = planned.interface.plans().representation;
        let enter = compiled::find(
            planned.known_as?,
            representation,
            planned.design.movement,
            name,
        )?;
        enter(name, &message.bytes, self)
    }

    fn enter_dynamic(
        &mut self,
        planned: &'a PlannedInterface,
        message: &'a EncodedMessage,
    ) -> Option<()> {
        let entry = MessageEntry {
            contests: self,
            planned,
            message,
        };
        match planned.engine {
            Engine::Machine => entry.with::<MachineCodec>(),
            _ => with_interpreter(planned.design.movement.moves(), entry),
        }
    }

    fn enter_by<E: FrameCodec, R: Representation>(
        &mut self,
        planned: &'a PlannedInterface,
        message: &'a EncodedMessage,
    ) -> Option<()> {
        let name = planned.name_of(message.id);
        let EncodedMessage { id, value, bytes } = message;
        let message = planned.interface.message(*id).ok()?;
        let frame = message.frame(value).ok()?;
        let mut room = EncodeBuffer::default();
        write_frame::<E, R>(&frame, &mut room).ok()?;
        E::decode::<R>(message, &mut decoder(bytes)).ok()?;
        if room.message() != bytes {
            return None;
        }
        self.enter_frame::<E, R>(name, (message, frame), bytes);
        Some(())
    }
}

/// A message that an engine enters with.
struct MessageEntry<'e, 'a> {
    contests: &'e mut CodecBenchmarks<'a>,
    planned: &'a PlannedInterface,
    message: &'a EncodedMessage,
}

impl WithCodec for MessageEntry<'_, '_> {
    type Output = Option<()>;

    fn with<E: FrameCodec>(self) -> Self::Output {
        let Self {
            contests,
            planned,
            message,
        } = self;
        match planned.interface.plans().representation {
            plan::Representation::XDR => contests.enter_by::<E, Xdr>(planned, message),
            plan::Representation::LEAN => contests.enter_by::<E, Lean>(planned, message),
            _ => None,
        }
    }
}
