//! What is timed: a message that an engine writes, and one that it reads.

use std::hint::black_box;

use tenon_exec::{Frame, Value};
use tenon_plan as plan;
use tenon_plan::cost::Engine;
use tenon_schema::TypeId;
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Representation, Xdr};

use super::planned::Planned;
use super::{CostError, compiled};
use crate::engine::Contests;

/// A message of a type.
pub struct Message {
    /// The type.
    pub id: TypeId,
    /// The value.
    pub value: Value,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Message {
    /// Of a value, by the interpreter.
    ///
    /// # Errors
    /// The value is not one of the type.
    pub fn new(planned: &Planned, id: TypeId, value: Value) -> Result<Self, CostError> {
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

fn refused(planned: &Planned, id: TypeId) -> CostError {
    let name = planned.name_of(id).to_owned();
    match planned.engine {
        Engine::Compiled => CostError::NotCompiled(name),
        Engine::Machine | Engine::Interpreter => CostError::Refused(name),
    }
}

impl<'a> Contests<'a> {
    /// Lets an engine enter with a message.
    ///
    /// # Errors
    /// It refuses the message.
    pub fn enter(&mut self, planned: &'a Planned, message: &'a Message) -> Result<(), CostError> {
        let done = match planned.engine {
            Engine::Compiled => self.enter_compiled(planned, message),
            Engine::Machine | Engine::Interpreter => self.enter_dynamic(planned, message),
        };
        done.ok_or_else(|| refused(planned, message.id))
    }

    fn enter_compiled(&mut self, planned: &'a Planned, message: &'a Message) -> Option<()> {
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

    fn enter_dynamic(&mut self, planned: &'a Planned, message: &'a Message) -> Option<()> {
        let is_machine = planned.engine == Engine::Machine;
        match (is_machine, planned.interface.plans().representation) {
            (true, plan::Representation::XDR) => self.enter_by::<ByMachine, Xdr>(planned, message),
            (true, plan::Representation::LEAN) => {
                self.enter_by::<ByMachine, Lean>(planned, message)
            }
            (false, plan::Representation::XDR) => {
                self.enter_by::<ByInterpreter, Xdr>(planned, message)
            }
            (false, plan::Representation::LEAN) => {
                self.enter_by::<ByInterpreter, Lean>(planned, message)
            }
            _ => None,
        }
    }

    fn enter_by<E: Run, R: Representation>(
        &mut self,
        planned: &'a Planned,
        message: &'a Message,
    ) -> Option<()> {
        let name = planned.name_of(message.id);
        let Message { id, value, bytes } = message;
        let message = planned.interface.message(*id).ok()?;
        let frame = message.frame(value).ok()?;
        let mut buffer = Buffer::default();
        let done = E::encode::<R>(&frame, &mut Encoder::over(&mut buffer));
        E::decode::<R>(message, &mut decoder(bytes))?;
        if !done || buffer.as_slice() != bytes {
            return None;
        }
        self.encode.enter(name, move || {
            buffer.clear();
            let done = E::encode::<R>(black_box(&frame), &mut Encoder::over(&mut buffer));
            // Somebody might read them.
            black_box(buffer.as_slice());
            done
        });
        self.decode.enter(name, move || {
            E::decode::<R>(message, &mut decoder(black_box(bytes)))
        });
        Some(())
    }
}

/// How an engine that learns interfaces at run time moves a frame.
trait Run {
    fn encode<R: Representation>(frame: &Frame<'_>, out: &mut Encoder<'_, R>) -> bool;

    fn decode<'i, R: Representation>(
        message: tenon_exec::Message<'i>,
        input: &mut Decoder<'_, R>,
    ) -> Option<Frame<'i>>;
}

struct ByMachine;

impl Run for ByMachine {
    #[inline]
    fn encode<R: Representation>(frame: &Frame<'_>, out: &mut Encoder<'_, R>) -> bool {
        frame.encode_by_machine(out)
    }

    #[inline]
    fn decode<'i, R: Representation>(
        message: tenon_exec::Message<'i>,
        input: &mut Decoder<'_, R>,
    ) -> Option<Frame<'i>> {
        message.decode_by_machine(input)
    }
}

struct ByInterpreter;

impl Run for ByInterpreter {
    #[inline]
    fn encode<R: Representation>(frame: &Frame<'_>, out: &mut Encoder<'_, R>) -> bool {
        frame.encode_by_interpreter(out).is_ok()
    }

    #[inline]
    fn decode<'i, R: Representation>(
        message: tenon_exec::Message<'i>,
        input: &mut Decoder<'_, R>,
    ) -> Option<Frame<'i>> {
        message.decode_by_interpreter(input).ok()
    }
}

/// A decoder within the usual limits.
#[inline]
pub fn decoder<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Lenient, Limits::default())
}
