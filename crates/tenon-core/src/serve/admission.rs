//! Connections that are not taken in: their peers are told why, and they are counted and logged.

use std::time::Instant;

use tenon_net::{ExcessConnection, Stream};
use tenon_proto::lean::{MAGIC, Preamble, RefusalReason};

use super::hosts::HostShare;
use super::shared::ServerShared;

impl ServerShared {
    /// Closes a connection, as there are as many as [`ServerLimits::connections`](super::ServerLimits::connections).
    #[cold]
    pub fn refuse_one_too_many(&self, stream: &Stream) {
        self.tally.connections_refused.up();
        tell(stream, RefusalReason::BUSY);
        let limit = self.limits.connections;
        if let Some(times) = self.logs.connections.note(Instant::now()) {
            let peer = stream.peer();
            tracing::warn!(
                ?peer,
                limit,
                times,
                "too many connections: closing the newest"
            );
        }
    }

    /// Counts a connection to its host. If that has as many as
    /// [`ServerLimits::connections_of_host`](super::ServerLimits::connections_of_host), the connection is to be closed.
    pub fn admit_host(&self, stream: &Stream) -> Option<HostShare> {
        let share = self.hosts.admit(stream);
        if share.is_none() {
            self.refuse_host(stream);
        }
        share
    }

    #[cold]
    fn refuse_host(&self, stream: &Stream) {
        self.tally.hosts_refused.up();
        tell(stream, RefusalReason::HOST);
        let limit = self.limits.connections_of_host;
        if let Some(times) = self.logs.hosts.note(Instant::now()) {
            let peer = stream.peer();
            tracing::warn!(
                ?peer,
                limit,
                times,
                "too many connections of one host: closing the newest"
            );
        }
    }

    /// Closes a connection for which no descriptor is left. `None` if it is closed already.
    #[cold]
    pub fn refuse_excess(&self, connection: &ExcessConnection) {
        self.tally.descriptors_exhausted.up();
        if let Some(stream) = connection.stream() {
            tell(stream, RefusalReason::BUSY);
        }
        if let Some(times) = self.logs.descriptors.note(Instant::now()) {
            tracing::warn!(
                times,
                "no descriptors are left (ulimit -n): closing new connections"
            );
        }
    }

    /// Counts and logs that a connection cannot be accepted, and still waits.
    #[cold]
    pub fn note_accept_failure(&self, error: &std::io::Error) {
        self.tally.accept_failures.up();
        if let Some(times) = self.logs.accept_failures.note(Instant::now()) {
            tracing::warn!(%error, times, "cannot accept a connection; trying again soon");
        }
    }
}

/// Tells the peer why its connection is closed, if it is known to speak the lean protocol: a refusal is no message of
/// ONC RPC.
fn tell(stream: &Stream, reason: RefusalReason) {
    let mut first = [0; MAGIC.len()];
    let is_lean =
        !stream.transport().carries_onc() || stream.try_recv(&mut first).is_ok() && first == MAGIC;
    if is_lean {
        // A peer that is gone need not be told.
        let _ = stream.try_send(&Preamble::server(0, 0).refusing(reason).encode());
    }
}
