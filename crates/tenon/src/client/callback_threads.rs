//! The threads of a channel that serves calls of its server: one receives, as no caller may be there to do so, and others
//! run the handlers, as many as there are calls. All are there from the moment on that the channel is made, or that a call
//! needs one, until the last clone of the channel is gone.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tenon_core::Destination;
use tenon_core::callbacks::{Callbacks, ReceivedCallback};
use tenon_core::error::ConnectError;
use tenon_core::options::{ChannelOptions, FOR_EVER};
use tenon_core::serve::CallContext;
use tenon_core::service::{Cancellation, Origin};
use tenon_net::Address;
use tenon_proto::connection::{DeferredId, ReceivedCall};
use tenon_wire::Buffer;

use super::callback_pool::CallbackPool;
use super::channel::Channel;
use super::link::{CallbackJob, ConnectionSocket};
use super::state::{Calls, ChannelState};
use crate::spawn::spawn;

impl Channel {
    /// Connects as [`connect_with`](Self::connect_with) does, and serves calls of the server over the connection. A thread
    /// receives them from now on, and each is carried out by a thread. They end when the last clone of the channel is
    /// dropped: a service that keeps one itself never lets them end. If the connection is lost, calls of the server are
    /// served again once a call of this end has made it anew.
    ///
    /// By ONC RPC nothing tells the server that it may call: it has to know from the interface of its program.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with); [`ConnectError::Callbacks`]: two services have the same program and
    /// version, the address is one for datagrams, or there is no thread.
    pub fn connect_serving(
        address: &Address,
        options: ChannelOptions,
        callbacks: Callbacks,
    ) -> Result<Self, ConnectError> {
        let pool = CallbackPool::new(callbacks, address)?;
        let destination = Destination::at(address.clone())?;
        Self::connect_by(destination, options, Some(&pool))?.start_callbacks(&pool)
    }

    fn start_callbacks(self, pool: &Arc<CallbackPool>) -> Result<Self, ConnectError> {
        let (of_thread, receiver) = (Arc::clone(pool), self.unguarded());
        match spawn("tenon-callbacks", move || {
            receiver.receive_callbacks(&of_thread)
        }) {
            Ok(()) => Ok(self.guarded(pool)),
            Err(error) => Err(ConnectError::Callbacks {
                reason: format!("there is no thread: {error}"),
            }),
        }
    }

    /// Receives for all callers and for the calls of the server, until the pool is closed.
    fn receive_callbacks(&self, pool: &CallbackPool) {
        let mut state = self.lock();
        let waiter = state.waiters.take();
        while !pool.is_closed() {
            if state.link.is_some() {
                state = self.wait_once(state, waiter, Instant::now() + FOR_EVER);
                continue;
            }
            // The next call of this end connects again.
            let woken = self.connected().wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.release(waiter);
    }

    /// Has threads carry calls of the server out.
    #[cold]
    pub(super) fn run_callbacks(&self, jobs: &mut Vec<CallbackJob>) {
        let Some(pool) = self.callback_pool() else {
            return;
        };
        for job in jobs.drain(..) {
            if pool.push(job) {
                self.start_callback_thread(pool);
            }
        }
    }

    fn start_callback_thread(&self, pool: &Arc<CallbackPool>) {
        let (of_thread, channel) = (Arc::clone(pool), self.unguarded());
        let started = spawn("tenon-callback", move || {
            while let Some(job) = of_thread.next_job() {
                channel.carry_out(&of_thread, job);
            }
        });
        if let Err(error) = started {
            // A thread that is there carries the call out later.
            tracing::warn!(%error, "there is no thread for a call of the server");
        }
    }

    fn carry_out(&self, pool: &CallbackPool, job: CallbackJob) {
        let (callback, socket) = job;
        let ReceivedCallback {
            call,
            received,
            id,
            cancelled,
        } = callback;
        let mut reply = Buffer::default();
        let context = CallContext {
            attachments: received.attachments(),
            origin: Origin {
                transport: self.address().transport(),
                peer: socket.socket.stream().and_then(tenon_net::Stream::peer),
                user: None,
            },
            cancellation: Cancellation::Flag(&cancelled),
            streams: None,
            callbacks: None,
        };
        let arguments = received.arguments();
        (pool.registry).execute(&call, context, arguments, &pool.tally, &mut reply);
        let mut state = self.lock();
        if !state.is_linked(&socket) {
            return;
        }
        state.answer_callback(id, &mut reply);
        if state.needs_sender() {
            let until = Instant::now() + FOR_EVER;
            drop(self.transmit(state, until));
        }
    }
}

impl ChannelState {
    /// Takes in a call of the server; it is to be carried out, unless it is refused.
    #[cold]
    pub(super) fn begin_callback(
        &mut self,
        received: ReceivedCall,
        socket: &Arc<ConnectionSocket>,
    ) -> Option<CallbackJob> {
        let Calls::Stream(connection) = &mut self.calls else {
            return None;
        };
        let callback = self.callbacks.begin(connection, received)?;
        Some((callback, Arc::clone(socket)))
    }

    fn answer_callback(&mut self, id: DeferredId, reply: &mut Buffer) {
        if let Calls::Stream(connection) = &mut self.calls {
            self.callbacks.answer(connection, id, reply);
        }
    }
}
