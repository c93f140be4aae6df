//! Rules of who may call what.

use std::net::IpAddr;
use std::str::FromStr;

use tenon::{CallScope, Middleware, Rejection, Transport};

/// Lets calls in by rules. The first rule decides of which all conditions hold; a call of which none holds is refused, as
/// [`Denied`](tenon::CallErrorKind::Denied).
///
/// A rule is a line: `allow` or `deny`, what is called, and conditions. What is called is `SERVICE.PROCEDURE` by the names
/// of the interface, with `*` in the place of the procedure or of both. Empty lines and what follows `#` say nothing.
///
/// | condition | holds if |
/// | --- | --- |
/// | `user=0,1000` | the caller's process runs as one of these users, as the kernel says: over Unix sockets and shared memory |
/// | `net=10.0.0.0/8,::1` | the caller's address is in one of these networks |
/// | `transport=unix,shm` | the call came over one of these transports |
/// | `KEY:VALUE` | the metadata of the call has this value of this key. Callers write what they like there: a middleware that stands further out, such as [`BearerCheck`](crate::BearerCheck), has to set it |
///
/// What a caller claims to be (AUTH_SYS) is no condition, as everybody can claim it.
///
/// ```
/// use tenon_middleware::Authorization;
///
/// let rules: Authorization = "
///     allow GREETER_V1.GREET  transport=unix,shm
///     deny  GREETER_V1.*      net=10.0.66.0/24      # the guests' network
///     allow GREETER_V1.*      net=10.0.0.0/8 tenant:ada
///     allow *                 user=0
/// "
/// .parse()?;
/// # drop(rules);
/// let error = "allow GREETER_V1 user=zero".parse::<Authorization>().unwrap_err();
/// assert_eq!(error.to_string(), "line 1: zero is no number of a user");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Authorization {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    allows: bool,
    /// The service, unless it is any.
    service: Option<String>,
    /// The procedure, unless it is any.
    procedure: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone)]
enum Condition {
    Users(Vec<u32>),
    Networks(Vec<Network>),
    Transports(Vec<Transport>),
    Metadata { key: String, value: String },
}

/// A network: addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

/// Why a text is no rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RuleError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl FromStr for Authorization {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let rule = line.split('#').next().unwrap_or_default();
            let mut words = rule.split_whitespace();
            let Some(verb) = words.next() else {
                continue;
            };
            let at_line = |reason| RuleError {
                line: index + 1,
                reason,
            };
            rules.push(Rule::parse(verb, words).map_err(at_line)?);
        }
        Ok(Self { rules })
    }
}

impl Rule {
    fn parse<'a>(verb: &str, mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let allows = match verb {
            "allow" => true,
            "deny" => false,
            other => {
                return Err(format!(
                    "a rule begins with allow or deny, not with {other}"
                ));
            }
        };
        let called = words
            .next()
            .ok_or("a rule says what is called: SERVICE.PROCEDURE, SERVICE.* or *")?;
        let (service, procedure) = match called.rsplit_once('.') {
            None if called == "*" => (None, None),
            // Without a procedure all are meant.
            None => (Some(called.to_owned()), None),
            Some((service, "*")) => (Some(service.to_owned()), None),
            Some((service, procedure)) => (Some(service.to_owned()), Some(procedure.to_owned())),
        };
        Ok(Self {
            allows,
            service,
            procedure,
            conditions: words.map(Condition::parse).collect::<Result<_, _>>()?,
        })
    }

    fn decides(&self, call: &CallScope<'_>) -> bool {
        let is = |name: &Option<String>, called: &str| match name {
            None => true,
            Some(name) => name == called,
        };
        is(&self.service, call.procedure().service)
            && is(&self.procedure, call.procedure().name)
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(call))
    }
}

impl Condition {
    fn parse(word: &str) -> Result<Self, String> {
        if let Some((name, values)) = word.split_once('=') {
            let values = values.split(',');
            return match name {
                "user" => values
                    .map(parse_user)
                    .collect::<Result<_, _>>()
                    .map(Self::Users),
                "net" => values
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map(Self::Networks),
                "transport" => values
                    .map(parse_transport)
                    .collect::<Result<_, _>>()
                    .map(Self::Transports),
                other => Err(format!(
                    "{other} is no condition; there are user=, net=, transport= and KEY:VALUE"
                )),
            };
        }
        match word.split_once(':') {
            Some((key, value)) => Ok(Self::Metadata {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            None => Err(format!(
                "{word} is no condition; there are user=, net=, transport= and KEY:VALUE"
            )),
        }
    }

    fn holds(&self, call: &CallScope<'_>) -> bool {
        let peer = call.peer();
        match self {
            Self::Users(users) => {
                let user = peer.and_then(|peer| peer.user);
                user.is_some_and(|user| users.contains(&user))
            }
            Self::Networks(networks) => {
                let address = peer.and_then(|peer| peer.address);
                address
                    .is_some_and(|address| networks.iter().any(|network| network.has(address.ip())))
            }
            Self::Transports(transports) => {
                let transport = call.info().and_then(|info| info.transport());
                transport.is_some_and(|transport| transports.contains(&transport))
            }
            Self::Metadata { key, value } => call.metadata().get(key) == Some(value.as_str()),
        }
    }
}

fn parse_user(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text} is no number of a user"))
}

fn parse_transport(text: &str) -> Result<Transport, String> {
    Transport::by_name(text).ok_or_else(|| {
        let names = Transport::ALL.map(Transport::name).join(", ");
        format!("{text} is no transport; there are {names}")
    })
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits)),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("{text} is no network, such as 10.0.0.0/8 or fd00::/8"))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => longest,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= longest)
                .ok_or_else(|| format!("a network has 0 to {longest} bits, not {bits}"))?,
        };
        Ok(Self { address, bits })
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        // A socket for both families says an IPv4 address as an IPv6 one.
        let address = address.to_canonical();
        let [own, other] = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                [own, other].map(|address| u128::from(address.to_bits()) << 96)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => [own.to_bits(), other.to_bits()],
            _ => return false,
        };
        let differing = (own ^ other).leading_zeros();
        differing >= self.bits
    }
}

impl Middleware for Authorization {
    type State = ();

    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        if !call.is_at_server() {
            return Ok(());
        }
        let decides = self.rules.iter().find(|rule| rule.decides(call));
        match decides {
            Some(rule) if rule.allows => Ok(()),
            _ => {
                let reason = format!("no rule lets it call {}", call.procedure());
                Err(Rejection::denied(reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon::{CallInfo, Credential, Metadata, ProcedureInfo, Protocol, ReplyMetadata};

    const RULES: &str = "
        deny  KEYS_V1.CLOSE                     # nobody
        allow KEYS_V1.GET   transport=unix,shm
        allow KEYS_V1.*     user=0,7 transport=unix
        deny  KEYS_V1       net=10.66.0.0/16
        allow KEYS_V1.*     net=10.0.0.0/8,fd00::/8 tenant:ada
    ";

    /// Returns whether the rules let such a call in.
    fn lets_in(name: &str, info: &CallInfo<'_>) -> bool {
        let rules: Authorization = RULES.parse().unwrap();
        let procedure = ProcedureInfo::new("KEYS_V1", name, 1);
        let mut call = CallScope::at_server(procedure, (1, 1), Protocol::Lean, info);
        rules.begin(&mut call).is_ok()
    }

    #[test]
    fn the_first_rule_of_which_all_conditions_hold_decides() {
        let call = |transport| CallInfo::new(1, Credential::None, transport);
        assert!(lets_in("GET", &call(Transport::Unix)));
        assert!(!lets_in("GET", &call(Transport::Tcp)));
        assert!(!lets_in("PUT", &call(Transport::Unix)));
        assert!(lets_in("PUT", &call(Transport::Unix).from_user(7)));
        assert!(!lets_in("PUT", &call(Transport::Shm).from_user(7)));
        assert!(!lets_in("CLOSE", &call(Transport::Unix).from_user(0)));
    }

    #[test]
    fn networks_and_metadata_are_conditions() {
        let mut ada = Metadata::new();
        ada.append("tenant", "ada").unwrap();
        let place = ReplyMetadata::new();
        let from = |address: &str| {
            let call = CallInfo::new(1, Credential::None, Transport::Tcp);
            call.from_address(format!("{address}:700").parse().unwrap())
        };
        for (address, is_in) in [
            ("10.1.2.3", true),
            ("10.66.2.3", false),
            ("11.0.0.1", false),
            ("[::ffff:10.0.0.1]", true),
            ("[fd12::1]", true),
            ("[fe80::1]", false),
        ] {
            let call = from(address);
            assert!(!lets_in("PUT", &call), "{address}");
            let call = call.with_metadata(ada.view(), &place);
            assert_eq!(lets_in("PUT", &call), is_in, "{address}");
        }
    }

    #[test]
    fn wrong_rules_are_named_by_their_line() {
        for (text, error) in [
            (
                "\npermit *",
                "line 2: a rule begins with allow or deny, not with permit",
            ),
            (
                "allow",
                "line 1: a rule says what is called: SERVICE.PROCEDURE, SERVICE.* or *",
            ),
            (
                "allow * net=10.0.0.0/33",
                "line 1: a network has 0 to 32 bits, not 33",
            ),
            (
                "allow * net=home",
                "line 1: home is no network, such as 10.0.0.0/8 or fd00::/8",
            ),
            (
                "allow * group=1",
                "line 1: group is no condition; there are user=, net=, transport= and KEY:VALUE",
            ),
            (
                "allow * from",
                "line 1: from is no condition; there are user=, net=, transport= and KEY:VALUE",
            ),
            (
                "allow * transport=tls",
                "line 1: tls is no transport; there are tcp, udp, unix, shm, xdp",
            ),
        ] {
            assert_eq!(
                text.parse::<Authorization>().unwrap_err().to_string(),
                error
            );
        }
    }
}
