//! The mailbox that the task of a connection, or of a port, shares with those that carry out its calls elsewhere.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tenon_core::callbacks::{CallbackPort, PendingCallback};
use tenon_core::serve::{CallTally, ServerShared, lost_callback};
use tenon_core::service::Origin;
use tenon_core::streams::StreamPort;
use tenon_proto::connection::{DeferredId, UnsentCall};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_wire::Buffer;

/// A connection or a port as those see it that answer its calls.
#[derive(Debug)]
pub(super) struct ReplyMailbox {
    pub(super) id: usize,
    /// What is served, and within which limits.
    pub(super) shared: Arc<ServerShared>,
    /// The origin of calls; those at a port have each a peer of its own.
    pub(super) origin: Origin,
    pub(super) tally: CallTally,
    content: Mutex<MailboxContent>,
    /// True if answers were left that the task has not taken, or it has not said yet how it is woken.
    has_news: AtomicBool,
    /// True once a call with streams has come.
    has_streams: AtomicBool,
    /// True if the calls with streams are to be ended.
    ends_streams: AtomicBool,
    /// True once the server waits for nothing any more.
    is_abandoned: AtomicBool,
}

/// The call that an answer is to.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReplyTarget {
    /// One of a stream.
    Stream(DeferredId),
    /// None: of a stream, items of the result of the call of this number.
    Items(u32),
    /// None: of a stream, items of the argument of the call of this number were taken, of so many bytes of credit.
    ItemsTaken(u32, u64),
    /// None: of a stream, no further items of the argument of the call of this number are wanted.
    ItemsUnwanted(u32),
    /// One of a port.
    Datagram(DatagramCallKey<SocketAddr>),
}

impl StreamPort for ReplyMailbox {
    fn send(&self, number: u32, messages: Buffer) {
        self.leave(ReplyTarget::Items(number), messages);
    }

    fn give_back(&self, number: u32, bytes: u64) {
        self.leave(ReplyTarget::ItemsTaken(number, bytes), Buffer::default());
    }

    fn stop_receiving(&self, number: u32) {
        self.leave(ReplyTarget::ItemsUnwanted(number), Buffer::default());
    }
}

impl CallbackPort for ReplyMailbox {
    fn call(&self, call: UnsentCall, pending: Arc<PendingCallback>) {
        let mut content = self.lock();
        if content.is_over {
            drop(content);
            return pending.finish(lost_callback(false));
        }
        content.callbacks.push(CallbackNews::Start(call, pending));
        self.tell(content);
    }

    fn cancel(&self, pending: Arc<PendingCallback>) {
        let mut content = self.lock();
        if !content.is_over {
            content.callbacks.push(CallbackNews::Cancel(pending));
            self.tell(content);
        }
    }
}

/// What a handler leaves of a call back.
#[derive(Debug)]
pub(super) enum CallbackNews {
    /// It is to be made, and this waits for its outcome.
    Start(UnsentCall, Arc<PendingCallback>),
    /// It is not waited for any more.
    Cancel(Arc<PendingCallback>),
}

#[derive(Debug, Default)]
struct MailboxContent {
    answers: Vec<(ReplyTarget, Buffer)>,
    callbacks: Vec<CallbackNews>,
    /// True once the connection has ended.
    is_over: bool,
    /// The task of the connection.
    task: Option<Waker>,
}

impl ReplyMailbox {
    pub(super) fn new(id: usize, shared: &Arc<ServerShared>, origin: Origin) -> Self {
        Self {
            id,
            shared: Arc::clone(shared),
            origin,
            tally: CallTally::default(),
            content: Mutex::default(),
            has_news: AtomicBool::new(true),
            has_streams: AtomicBool::new(false),
            ends_streams: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answers that were left into `answers`, and has `task` woken when there are more. It is always the same
    /// task. Returns whether something of calls back was left, too.
    #[inline]
    pub(super) fn take_answers(
        &self,
        task: &Waker,
        answers: &mut Vec<(ReplyTarget, Buffer)>,
    ) -> bool {
        self.has_news.load(Ordering::Acquire) && self.take_news(task, answers)
    }

    #[cold]
    fn take_news(&self, task: &Waker, answers: &mut Vec<(ReplyTarget, Buffer)>) -> bool {
        let mut content = self.lock();
        self.has_news.store(false, Ordering::Relaxed);
        match &mut content.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        answers.append(&mut content.answers);
        !content.callbacks.is_empty()
    }

    /// Takes what was left of calls back, behind the [answers](Self::take_answers).
    pub(super) fn take_callbacks(&self) -> Vec<CallbackNews> {
        std::mem::take(&mut self.lock().callbacks)
    }

    /// Leaves an answer.
    pub(super) fn leave(&self, to: ReplyTarget, reply: Buffer) {
        let mut content = self.lock();
        content.answers.push((to, reply));
        self.tell(content);
    }

    /// Wakes the task, for which something was left.
    fn tell(&self, content: MutexGuard<'_, MailboxContent>) {
        self.has_news.store(true, Ordering::Release);
        let task = content.task.clone();
        drop(content);
        task.into_iter().for_each(Waker::wake);
    }

    /// Notes that the connection has ended, and ends the calls back that were left for it.
    pub(super) fn end(&self) {
        let mut content = self.lock();
        content.is_over = true;
        let callbacks = std::mem::take(&mut content.callbacks);
        drop(content);
        for news in callbacks {
            if let CallbackNews::Start(_, pending) = news {
                pending.finish(lost_callback(false));
            }
        }
    }

    /// Wakes the task of the connection.
    pub(super) fn wake(&self) {
        let task = self.lock().task.clone();
        task.into_iter().for_each(Waker::wake);
    }

    /// Notes that a call with streams has come.
    pub(super) fn note_streams(&self) {
        self.has_streams.store(true, Ordering::Relaxed);
    }

    /// Returns whether a call with streams has come.
    pub(super) fn has_had_streams(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    /// Has the calls with streams of the connection end.
    pub(super) fn end_streams(&self) {
        self.ends_streams.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns whether the calls with streams are to be ended, once.
    pub(super) fn take_end_of_streams(&self) -> bool {
        self.ends_streams.load(Ordering::Relaxed)
            && self.ends_streams.swap(false, Ordering::Acquire)
    }

    /// Has the connection end, whatever is still carried out.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }
}
