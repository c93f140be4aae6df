//! A call of this end that has its number.

/// The identity of a call that was started, and of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartedCall {
    /// Its number: the xid of ONC RPC.
    pub number: u32,
    /// The service's number on this connection, by the lean protocol.
    pub service: u16,
    /// The procedure's number, by the lean protocol.
    pub procedure: u16,
}
