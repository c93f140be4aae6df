//! A service that has its calls carried out in their order.

use tenon_wire::{Decoder, Encoder};

use crate::procedure::ProcedureInfo;
use crate::refusal::Refusal;
use crate::service::{CallInfo, LeanService, Service};

/// A service, generated or not, of which the calls of one connection are carried out one after the other, in their order:
/// [`Service::keeps_order`] says so for it.
///
/// ```
/// use tenon::wire::{Decoder, Encoder};
/// use tenon::{CallInfo, InOrder, Refusal, Server, Service};
///
/// struct Log;
///
/// impl Service for Log {
///     fn program(&self) -> u32 {
///         0x2000_0001
///     }
///     fn version(&self) -> u32 {
///         1
///     }
///     fn call(
///         &self,
///         _: &CallInfo<'_>,
///         _: &mut Decoder<'_>,
///         _: &mut Encoder<'_>,
///     ) -> Result<(), Refusal> {
///         Ok(())
///     }
/// }
///
/// let builder = Server::builder().service(InOrder(Log));
/// # drop(builder);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InOrder<S>(pub S);

impl<S: Service> Service for InOrder<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.0.call(call, arguments, result)
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.0.procedure(number)
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.0.lean()
    }
}
