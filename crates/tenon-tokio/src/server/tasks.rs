//! The calls of a port that have tasks, and those that wait for one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tenon_proto::exchange::server::CallKey as ExchangeKey;
use tokio::task::AbortHandle;

use super::begin::Errand;
use super::line::{Completion, Line, To};
use super::service::{Call, Spawn};
use super::shared::Handler;

/// The calls of a port that have tasks, and those that wait for one.
#[derive(Default)]
pub(super) struct Tasks {
    /// Calls of the exchange, whose clients can give them up.
    running: HashMap<ExchangeKey, AbortHandle>,
    /// The call that is carried out of services that carry out one at a time.
    in_order: Option<To>,
    /// Further calls of such services.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    service: Arc<dyn Spawn>,
    to: To,
    call: Call,
    completion: Completion,
}

impl Tasks {
    /// Gives a call a task or a thread, or has it wait for its turn.
    pub(super) fn begin(&mut self, errand: Errand<'_>, handler: &Handler, line: &Arc<Line>) {
        let to = errand.to;
        if let Handler::Task(service, true) = handler {
            let (call, completion) = errand.prepare(line);
            self.waiting.push_back(Waiting {
                service: Arc::clone(service),
                to,
                call,
                completion,
            });
            return self.begin_next();
        }
        let task = errand.begin(handler, line);
        self.keep(to, task);
    }

    /// A call has been answered.
    pub(super) fn ended(&mut self, to: &To) {
        if let To::Packet(key, _) = to {
            self.running.remove(key);
        }
        if self.in_order.as_ref() == Some(to) {
            self.in_order = None;
            self.begin_next();
        }
    }

    /// Gives up a call for which nobody waits any more.
    pub(super) fn cancel(&mut self, key: ExchangeKey) {
        self.running.get(&key).inspect(|task| task.abort());
        self.waiting
            .retain(|waiting| !matches!(waiting.to, To::Packet(other, _) if other == key));
    }

    fn begin_next(&mut self) {
        if self.in_order.is_some() {
            return;
        }
        if let Some(next) = self.waiting.pop_front() {
            self.in_order = Some(next.to);
            let task = next.service.spawn(next.call, next.completion);
            self.keep(next.to, task);
        }
    }

    fn keep(&mut self, to: To, task: AbortHandle) {
        if let To::Packet(key, _) = to {
            self.running.insert(key, task);
        }
    }
}
