//! Policies of calls for each procedure, from a file that is read again when it changes.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use tenon::{CallErrorKind, CallOutcome, CallScope, Middleware, Rejection};

use crate::hedge::Hedge;
use crate::retry::{Backoff, Retry};
use crate::retry_budget::RetryBudget;
use crate::timeout::Timeout;

/// Time after which the file is looked at again, by the call that comes then.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Most attempts of a call, as gRPC's service config has it.
const ATTEMPTS_MAX: u32 = 5;

/// Bytes of the largest file.
const FILE_MAX: u64 = 1 << 20;

/// Gives the calls of a client their timeouts, retries and hedging by a file: JSON of the form of gRPC's [service
/// config](https://github.com/grpc/grpc/blob/master/doc/service_config.md). The file is looked at once a second; when it
/// has changed it holds for the next calls. One that is wrong is logged, and the policies before it stay.
///
/// ```json
/// {
///   "methodConfig": [
///     {
///       "name": [{ "service": "KEYS_V1", "method": "KEYS_GET" }],
///       "timeout": "0.5s",
///       "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.02s" }
///     },
///     {
///       "name": [{ "service": "KEYS_V1" }],
///       "timeout": "2s",
///       "retryPolicy": {
///         "maxAttempts": 4,
///         "initialBackoff": "0.05s",
///         "maxBackoff": "1s",
///         "backoffMultiplier": 2,
///         "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
///       }
///     },
///     { "name": [{}], "timeout": "10s" }
///   ],
///   "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
/// }
/// ```
///
/// Names are those of the interface; without a method all of the service are meant, without either all. The most particular
/// name holds. Retries and hedging follow the rules of [`Retry`] and [`Hedge`](crate::Hedge). Of the status codes
/// `UNAVAILABLE` stands for what cannot be reached, breaks or stops, `RESOURCE_EXHAUSTED` for what is busy,
/// `DEADLINE_EXCEEDED` for time that ran out, `INTERNAL` and `UNKNOWN` for what failed, and `CANCELLED` for itself.
/// `retryThrottling` says how many repetitions are saved up, and which part of one each call adds.
pub struct Policy {
    path: Option<PathBuf>,
    rules: RwLock<Arc<PolicyRules>>,
    looked: Mutex<Looked>,
}

/// When the file was looked at, and what it was then.
#[derive(Debug)]
struct Looked {
    at: Instant,
    file: Option<(SystemTime, u64)>,
}

/// Why a text is no policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// The text is not JSON of the form.
    #[error("no policy: {0}")]
    Form(#[from] serde_json::Error),
    /// A value is none that is possible.
    #[error("no policy: {0}")]
    Value(String),
}

/// The policies of a file.
#[derive(Debug, Default)]
struct PolicyRules {
    services: HashMap<String, ServiceRules>,
    others: Option<Arc<ProcedureRule>>,
}

/// The policies of a service.
#[derive(Debug, Default)]
struct ServiceRules {
    named: HashMap<String, Option<Arc<ProcedureRule>>>,
    others: Option<Arc<ProcedureRule>>,
}

/// The policy of some procedures.
#[derive(Debug, Default)]
struct ProcedureRule {
    timeout: Option<Timeout>,
    retry: Option<Retry>,
    hedge: Option<Hedge>,
}

impl Policy {
    /// Reads a file, and looks at it again while calls are made.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub fn watch(path: impl Into<PathBuf>) -> Result<Self, PolicyError> {
        let path = path.into();
        let looked = Looked {
            at: Instant::now(),
            file: state_of(&path),
        };
        Ok(Self {
            rules: RwLock::new(Arc::new(read(&path)?)),
            path: Some(path),
            looked: Mutex::new(looked),
        })
    }

    /// Takes the policies of a text.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        Ok(Self {
            path: None,
            rules: RwLock::new(Arc::new(PolicyRules::parse(text)?)),
            looked: Mutex::new(Looked {
                at: Instant::now(),
                file: None,
            }),
        })
    }

    fn rule(&self, call: &CallScope<'_>) -> Option<Arc<ProcedureRule>> {
        if let Some(path) = &self.path {
            self.look(path, call.started_at());
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.of(call.procedure().service, call.procedure().name)
    }

    /// Reads the file again if it is time to, and it has changed.
    fn look(&self, path: &Path, now: Instant) {
        // One call looks; the others go on.
        let Ok(mut looked) = self.looked.try_lock() else {
            return;
        };
        if now.saturating_duration_since(looked.at) < LOOK_INTERVAL {
            return;
        }
        looked.at = now;
        let file = state_of(path);
        if file.is_none() || file == looked.file {
            return;
        }
        looked.file = file;
        match read(path) {
            Ok(rules) => {
                *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
                tracing::info!(path = %path.display(), "policies of calls have changed");
            }
            Err(error) => {
                tracing::error!(%error, "policies of calls stay as they were");
            }
        }
    }
}

/// Returns by what a file is seen to have changed.
fn state_of(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path) -> Result<PolicyRules, PolicyError> {
    let failed = |cause| PolicyError::File {
        path: path.display().to_string(),
        cause,
    };
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > FILE_MAX {
        let reason = format!(
            "{} has {size} bytes, and may have {FILE_MAX}",
            path.display()
        );
        return Err(PolicyError::Value(reason));
    }
    PolicyRules::parse(&fs::read_to_string(path).map_err(failed)?)
}

/// A call that is made by a rule.
#[derive(Debug)]
pub struct CallByRule {
    rule: Arc<ProcedureRule>,
    /// The state of its retry.
    repetitions: u32,
}

impl Middleware for Policy {
    type State = Option<CallByRule>;

    fn begin(&self, call: &mut CallScope<'_>) -> Result<Option<CallByRule>, Rejection> {
        if call.is_at_server() {
            return Ok(None);
        }
        let Some(rule) = self.rule(call) else {
            return Ok(None);
        };
        if let Some(timeout) = &rule.timeout {
            timeout.begin(call)?;
        }
        let repetitions = match &rule.retry {
            None => 0,
            Some(retry) => retry.begin(call)?,
        };
        if let Some(hedge) = &rule.hedge {
            hedge.begin(call)?;
        }
        Ok(Some(CallByRule { rule, repetitions }))
    }

    fn repeat_after(
        &self,
        made: &mut Option<CallByRule>,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        let made = made.as_mut()?;
        let retry = made.rule.retry.as_ref()?;
        retry.repeat_after(&mut made.repetitions, call, outcome)
    }

    fn end(&self, made: Option<CallByRule>, call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        if let Some(made) = made
            && let Some(hedge) = &made.rule.hedge
        {
            hedge.end(Some(0), call, outcome);
        }
    }
}

impl PolicyRules {
    fn of(&self, service: &str, procedure: &str) -> Option<Arc<ProcedureRule>> {
        let service = self.services.get(service);
        let named = service.and_then(|of| of.named.get(procedure)?.as_ref());
        let rule = named
            .or_else(|| service.and_then(|of| of.others.as_ref()))
            .or(self.others.as_ref());
        rule.map(Arc::clone)
    }

    fn parse(text: &str) -> Result<Self, PolicyError> {
        let config: ServiceConfig = serde_json::from_str(text)?;
        let budget = Arc::new(match config.retry_throttling {
            None => RetryBudget::default(),
            Some(throttling) => throttling.budget()?,
        });
        let mut rules = Self::default();
        for method in config.method_config {
            let rule = Arc::new(method.rule(&budget)?);
            for name in method.name {
                rules.add(name, &rule)?;
            }
        }
        Ok(rules)
    }

    fn add(&mut self, name: MethodName, rule: &Arc<ProcedureRule>) -> Result<(), PolicyError> {
        let shown = format!("{}.{}", name.service, name.method);
        let place = match (name.service.is_empty(), name.method.is_empty()) {
            (true, true) => &mut self.others,
            (true, false) => {
                let reason = format!("the method {} is one of no service", name.method);
                return Err(PolicyError::Value(reason));
            }
            (false, true) => &mut self.services.entry(name.service).or_default().others,
            (false, false) => {
                let service = self.services.entry(name.service).or_default();
                service.named.entry(name.method).or_default()
            }
        };
        match place.replace(Arc::clone(rule)) {
            None => Ok(()),
            Some(_) => Err(PolicyError::Value(format!("{shown} is named twice"))),
        }
    }
}

/// The file, as gRPC has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ServiceConfig {
    #[serde(default)]
    method_config: Vec<MethodConfig>,
    retry_throttling: Option<RetryThrottling>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MethodConfig {
    name: Vec<MethodName>,
    timeout: Option<String>,
    retry_policy: Option<RetryPolicy>,
    hedging_policy: Option<HedgingPolicy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodName {
    #[serde(default)]
    service: String,
    #[serde(default)]
    method: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f64,
    retryable_status_codes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HedgingPolicy {
    max_attempts: u32,
    hedging_delay: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RetryThrottling {
    max_tokens: f64,
    token_ratio: f64,
}

impl MethodConfig {
    fn rule(&self, budget: &Arc<RetryBudget>) -> Result<ProcedureRule, PolicyError> {
        if self.retry_policy.is_some() && self.hedging_policy.is_some() {
            let reason = "a method has a retryPolicy or a hedgingPolicy, not both".to_owned();
            return Err(PolicyError::Value(reason));
        }
        let timeout = self.timeout.as_deref();
        let timeout = timeout.map(|text| duration("timeout", text)).transpose()?;
        let retry = self.retry_policy.as_ref();
        let hedge = self.hedging_policy.as_ref();
        Ok(ProcedureRule {
            timeout: timeout.map(Timeout::new),
            retry: retry.map(|policy| policy.retry(budget)).transpose()?,
            hedge: hedge.map(|policy| policy.hedge(budget)).transpose()?,
        })
    }
}

impl RetryPolicy {
    fn retry(&self, budget: &Arc<RetryBudget>) -> Result<Retry, PolicyError> {
        if self.backoff_multiplier.is_nan() || self.backoff_multiplier <= 0.0 {
            let reason = format!(
                "backoffMultiplier is above 0, not {}",
                self.backoff_multiplier
            );
            return Err(PolicyError::Value(reason));
        }
        let backoff = Backoff {
            first: duration("initialBackoff", &self.initial_backoff)?,
            longest: duration("maxBackoff", &self.max_backoff)?,
            factor: self.backoff_multiplier,
        };
        let mut kinds = Vec::new();
        for code in &self.retryable_status_codes {
            kinds.extend_from_slice(kinds_of(code)?);
        }
        Ok(Retry::new(attempts(self.max_attempts)?)
            .with_backoff(backoff)
            .kinds(kinds)
            .budget(Arc::clone(budget)))
    }
}

impl HedgingPolicy {
    fn hedge(&self, budget: &Arc<RetryBudget>) -> Result<Hedge, PolicyError> {
        let delay = duration("hedgingDelay", &self.hedging_delay)?;
        Ok(Hedge::new(delay, attempts(self.max_attempts)?).budget(Arc::clone(budget)))
    }
}

impl RetryThrottling {
    fn budget(&self) -> Result<RetryBudget, PolicyError> {
        let is_legal = |value: f64, limit: f64| value > 0.0 && value <= limit;
        if !is_legal(self.max_tokens, 1000.0) || !is_legal(self.token_ratio, 1000.0) {
            let reason = "maxTokens and tokenRatio are above 0, and 1000 at most".to_owned();
            return Err(PolicyError::Value(reason));
        }
        Ok(RetryBudget::saving(self.max_tokens, self.token_ratio))
    }
}

/// Returns a number of attempts, of which gRPC has five at most.
fn attempts(attempts: u32) -> Result<u32, PolicyError> {
    match attempts {
        2.. => Ok(attempts.min(ATTEMPTS_MAX)),
        _ => Err(PolicyError::Value(format!(
            "maxAttempts is 2 or more, not {attempts}"
        ))),
    }
}

/// Reads a duration as JSON has those of protocol buffers: seconds, perhaps with a fraction, and an `s`.
fn duration(member: &str, text: &str) -> Result<Duration, PolicyError> {
    let seconds = text
        .strip_suffix('s')
        .and_then(|seconds| seconds.parse().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| PolicyError::Value(format!("{member} is seconds, such as 0.5s, not {text}")))
}

/// Returns what a status code of gRPC stands for here.
fn kinds_of(code: &str) -> Result<&'static [CallErrorKind], PolicyError> {
    Ok(match code {
        "UNAVAILABLE" => &[
            CallErrorKind::Unreachable,
            CallErrorKind::Disconnected,
            CallErrorKind::Stopping,
        ],
        "RESOURCE_EXHAUSTED" => &[CallErrorKind::Busy],
        "DEADLINE_EXCEEDED" => &[CallErrorKind::TimedOut],
        "INTERNAL" | "UNKNOWN" => &[CallErrorKind::Failed],
        "CANCELLED" => &[CallErrorKind::Cancelled],
        other => {
            return Err(PolicyError::Value(format!(
                "{other} is no status code to try again by; there are UNAVAILABLE, RESOURCE_EXHAUSTED, \
                 DEADLINE_EXCEEDED, INTERNAL, UNKNOWN and CANCELLED"
            )));
        }
    })
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Policy::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_most_particular_name_holds() {
        let text = r#"{ "methodConfig": [
            { "name": [{}], "timeout": "3s" },
            { "name": [{ "service": "A" }], "timeout": "2s" },
            { "name": [{ "service": "A", "method": "GET" }, { "service": "B", "method": "GET" }], "timeout": "0.25s" }
        ] }"#;
        let rules = PolicyRules::parse(text).unwrap();
        let timeout = |service, procedure| {
            let rule = rules.of(service, procedure).unwrap();
            format!("{:?}", rule.timeout.unwrap())
        };
        assert_eq!(timeout("A", "GET"), "Timeout(250ms)");
        assert_eq!(timeout("A", "PUT"), "Timeout(2s)");
        assert_eq!(timeout("B", "GET"), "Timeout(250ms)");
        assert_eq!(timeout("B", "PUT"), "Timeout(3s)");
        assert!(PolicyRules::parse("{}").unwrap().of("A", "GET").is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let method =
            |members: &str| format!(r#"{{ "methodConfig": [{{ "name": [{{}}], {members} }}] }}"#);
        assert!(error("{").contains("line 1"), "{}", error("{"));
        assert!(error(r#"{ "methodConfigs": [] }"#).contains("unknown field `methodConfigs`"));
        assert_eq!(
            error(&method(r#""timeout": "500ms""#)),
            "no policy: timeout is seconds, such as 0.5s, not 500ms"
        );
        let retry = |attempts, code| {
            method(&format!(
                r#""retryPolicy": {{ "maxAttempts": {attempts}, "initialBackoff": "0.1s", "maxBackoff": "1s",
                    "backoffMultiplier": 2, "retryableStatusCodes": ["{code}"] }}"#
            ))
        };
        assert_eq!(
            error(&retry(1, "UNAVAILABLE")),
            "no policy: maxAttempts is 2 or more, not 1"
        );
        assert!(error(&retry(2, "DATA_LOSS")).contains("DATA_LOSS is no status code"));
        let twice = r#"{ "methodConfig": [{ "name": [{ "service": "A" }, { "service": "A" }] }] }"#;
        assert_eq!(error(twice), "no policy: A. is named twice");
    }
}
