//! A service that is a function, the same in both protocols.

use std::sync::Arc;

use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, Service};

/// Serves an interface by what makes a result of a procedure's number and its arguments, all of them encoded.
pub struct Serving<F> {
    pub interface: Interface,
    pub body: F,
}

/// Everything that is left of lean arguments or results.
pub fn rest<'m>(input: &LeanInput<'m>) -> &'m [u8] {
    match input {
        LeanInput::Native(input) => input.rest(),
        LeanInput::Swapped(input) => input.rest(),
    }
}

impl<F> Service for Serving<F>
where
    F: Fn(u32, &[u8]) -> Result<Vec<u8>, Refusal> + Send + Sync + 'static,
{
    fn program(&self) -> u32 {
        self.interface.program
    }

    fn version(&self) -> u32 {
        self.interface.version
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let made = (self.body)(call.procedure(), arguments.rest())?;
        result.room(made.len()).copy_from_slice(&made);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl<F> LeanService for Serving<F>
where
    F: Fn(u32, &[u8]) -> Result<Vec<u8>, Refusal> + Send + Sync + 'static,
{
    fn interface(&self) -> Arc<Interface> {
        Arc::new(self.interface.clone())
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let made = (self.body)(call.procedure(), rest(&arguments))?;
        result.room(made.len()).copy_from_slice(&made);
        Ok(())
    }
}
