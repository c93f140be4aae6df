//! Calls with values.

use tenon::{CallError, ClientView, LeanInput, Protocol};
use tenon_exec::{Procedure, RaisedError, Value};

/// Calls a procedure of an interface that was made for the protocol of the client, with a [`Value::Struct`] of its
/// arguments, and returns its result; [`Value::Void`] if there is none. The client is a [`&Client`](tenon::Client), or
/// one [with options](tenon::Client::with_options) of the call.
///
/// # Errors
/// By blame; see [`CallError`]. Arguments that are none of the procedure are the caller's mistake.
pub fn call<'c>(
    client: impl Into<ClientView<'c>>,
    procedure: Procedure<'_>,
    arguments: &Value,
) -> Result<Value, CallError> {
    let client = client.into();
    match client.protocol() {
        Protocol::Onc => client.onc().call(
            procedure.number(),
            |out| procedure.encode_arguments(arguments, out),
            |input| procedure.decode_result(input),
        ),
        Protocol::Lean => client.lean().call(
            procedure.number(),
            |out| procedure.encode_arguments(arguments, out),
            |input| match input {
                LeanInput::Native(input) => procedure.decode_result(input),
                LeanInput::Swapped(input) => procedure.decode_result(input),
            },
        ),
    }
}

/// Returns the error of the interface that the procedure raised, if that is why a call has no result. It must be a
/// procedure of an interface that was made for the lean protocol: ONC RPC carries no such errors.
pub fn raised(procedure: Procedure<'_>, error: &CallError) -> Option<RaisedError> {
    let exception = error.exception()?;
    exception.raised()?;
    let raised = match exception.details() {
        LeanInput::Native(mut input) => procedure.decode_raised(&mut input),
        LeanInput::Swapped(mut input) => procedure.decode_raised(&mut input),
    };
    raised.ok().flatten()
}
