//! Calls of a server in the same process, without a connection: what generated wrappers stand on.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
//! # use example::{Host, greeter::{GreeterV1Calls, GreeterV1Client, GreeterV1InProcess, Greeting, Visitor}, start_server};
//! # let (server, address) = start_server();
//! use tenon::CallError;
//!
//! /// Takes whatever makes calls: a client, a server of the same process, or a mock of a test.
//! fn is_known(greeter: &dyn GreeterV1Calls, visitor: &Visitor) -> Result<bool, CallError> {
//!     Ok(matches!(greeter.greet(visitor)?, Greeting::Text(_)))
//! }
//!
//! let ada = Visitor { name: "Ada".into(), visits: 1 };
//! assert!(is_known(&GreeterV1Client::connect(&address)?, &ada)?);
//! assert!(is_known(&GreeterV1InProcess(Host), &ada)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tenon_wire::{Buffer, Decoder, Encoder, Xdr};

use crate::error::{CallError, LeanException};
use crate::procedure::{CallCodec, CalledProcedure};
use crate::refusal::Refusal;
use crate::serve::{lean_status, onc_status};
use crate::service::CallInfo;

/// Returns the error that a caller over a connection would see of a call that was refused. If the interface was made
/// for the lean protocol, it is that of a lean call, with the details of what was raised.
pub fn error<P: CalledProcedure>(refusal: Refusal) -> P::Error {
    let error = if P::HAS_LEAN {
        let (status, message, details) = lean_status(&refusal);
        CallError::Exception(LeanException {
            details: details.to_vec(),
            ..LeanException::new(status, message)
        })
    } else {
        CallError::Refused(onc_status(&refusal))
    };
    error.into()
}

/// Has `handler` carry `call` out, which reads its arguments from a message.
///
/// # Errors
/// The arguments break a bound of the interface, or the call is refused.
pub fn call_with_message<P: CallCodec<Xdr>>(
    call: &P,
    handler: impl FnOnce(&CallInfo<'_>, &mut Decoder<'_>) -> Result<P::Result, Refusal>,
) -> Result<P::Result, P::Error> {
    let mut message = Buffer::default();
    if let Err(error) = CallCodec::<Xdr>::encode(call, &mut Encoder::new(&mut message)) {
        return Err(CallError::from(error).into());
    }
    let info = CallInfo::in_process(P::PROCEDURE);
    handler(&info, &mut Decoder::new(message.as_slice())).map_err(error::<P>)
}
