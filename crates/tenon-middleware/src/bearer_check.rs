//! A check of the tokens that callers send.

use std::fmt;

use subtle::ConstantTimeEq;
use tenon::{CallScope, Metadata, Middleware, Rejection};

/// What says whether a token is good, and for what.
type Verify = dyn Fn(&str, &mut CallScope<'_>) -> Result<(), Rejection> + Send + Sync;

/// Lets calls in that carry a good bearer token (RFC 6750): the metadata `authorization: Bearer` and the token, as
/// [`Client::with_bearer_token`](tenon::Client::with_bearer_token) sends it. Others are refused as
/// [`Unauthenticated`](tenon::CallErrorKind::Unauthenticated), calls by ONC RPC among them, which carries no metadata.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1Client, GreeterV1Service, Visitor}};
/// use tenon::{CallErrorKind, ChannelOptions, Layered, Rejection, Server};
/// use tenon_middleware::BearerCheck;
///
/// // What the token says becomes metadata, which handlers and rules of authorization see.
/// let check = BearerCheck::new(|token, call| {
///     let Some(tenant) = token.strip_prefix("token-of-") else {
///         return Err(Rejection::unauthenticated("the token is unknown"));
///     };
///     let denied = |_| Rejection::denied("the tenant has no name");
///     call.metadata_mut().set("tenant", tenant).map_err(denied)
/// });
/// let service = Layered::new(GreeterV1Service(Host), check);
/// let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(service).start()?;
///
/// // Loopback cannot be read by other machines; a network needs encryption.
/// let options = ChannelOptions::default().allow_insecure(true);
/// let address = format!("lean+{}", server.addresses()[0]);
/// let greeter = GreeterV1Client::connect_with(&address, options)?;
/// let error = greeter.greet(&Visitor::default()).unwrap_err();
/// assert_eq!(error.kind(), CallErrorKind::Unauthenticated);
/// let known = GreeterV1Client(greeter.0.with_bearer_token("token-of-ada")?);
/// known.greet(&Visitor::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BearerCheck {
    verify: Box<Verify>,
}

impl BearerCheck {
    /// Has `verify` say whether a token is good. It may change the metadata that the handler sees: by
    /// [`CallScope::metadata_mut`], for example to the name that the token stands for.
    pub fn new(
        verify: impl Fn(&str, &mut CallScope<'_>) -> Result<(), Rejection> + Send + Sync + 'static,
    ) -> Self {
        Self {
            verify: Box::new(verify),
        }
    }

    /// Lets calls in that carry one of these tokens. How long the comparison takes does not say how much of a token was
    /// guessed right.
    pub fn tokens<T: Into<String>>(tokens: impl IntoIterator<Item = T>) -> Self {
        let tokens: Vec<String> = tokens.into_iter().map(Into::into).collect();
        Self::new(move |token, _call| {
            let known = tokens.iter().fold(subtle::Choice::from(0), |found, known| {
                found | known.as_bytes().ct_eq(token.as_bytes())
            });
            match bool::from(known) {
                true => Ok(()),
                false => Err(Rejection::unauthenticated("the token is unknown")),
            }
        })
    }
}

/// Returns the token of a call.
fn token_of(call: &CallScope<'_>) -> Result<String, Rejection> {
    let said = call
        .metadata()
        .get(Metadata::AUTHORIZATION)
        .ok_or_else(|| Rejection::unauthenticated("the call carries no token"))?;
    // The name of the scheme has no case (RFC 9110 section 11.1).
    match said.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            Ok(token.trim().to_owned())
        }
        _ => Err(Rejection::unauthenticated(
            "the call carries no bearer token",
        )),
    }
}

impl Middleware for BearerCheck {
    type State = ();

    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        if !call.is_at_server() {
            return Ok(());
        }
        let token = token_of(call)?;
        (self.verify)(&token, call)
    }
}

/// Does not show the tokens.
impl fmt::Debug for BearerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerCheck").finish_non_exhaustive()
    }
}
