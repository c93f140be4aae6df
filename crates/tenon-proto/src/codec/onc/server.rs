//! The server's side of a call: what is asked of whom, and how the answer begins.
//!
//! Nothing is kept between messages. [`Programs`] is made once and shared; a reply is written
//! behind the header that [`Reply::begin`] wrote, and turned into a refusal by [`Reply::refuse`].

use tenon_wire::Decoder;

use super::auth::Credential;
use super::message::{BadCall, CallHeader, Refused, Violation};

pub use super::reply::ReplyDraft as Reply;

/// The procedure that every program answers without arguments and results.
const NULL_PROCEDURE: u32 = 0;

/// What a server has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Calls handed to a service.
    pub calls: u64,
    /// Calls of procedure 0.
    pub pings: u64,
    /// Calls refused before a service saw them.
    pub refusals: u64,
    /// Messages that could not be answered.
    pub violations: u64,
}

/// The programs and versions that a server has.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    versions: Vec<(u32, u32)>,
}

/// What to do with a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'m> {
    /// Hand the call to its service.
    Call(Call<'m>),
    /// Answer this xid with success and no results.
    Ping(u32),
    /// Answer this xid with a refusal.
    Refuse(u32, Refused),
    /// Nobody can be answered: drop the datagram, close the stream.
    Unanswerable(Violation),
}

/// A call for a service.
#[derive(Debug, PartialEq, Eq)]
pub struct Call<'m> {
    /// The number of the service: how many were [added](Programs::add) before it.
    pub service: usize,
    /// Matches the reply to the call.
    pub xid: u32,
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure number, not 0.
    pub procedure: u32,
    /// Who calls.
    pub credential: Credential<'m>,
    /// The encoded arguments.
    pub arguments: &'m [u8],
}

impl Programs {
    /// Adds a version of a program and gives its service the next number. `None` if it is there
    /// already.
    pub fn add(&mut self, program: u32, version: u32) -> Option<usize> {
        if self.versions.contains(&(program, version)) {
            return None;
        }
        self.versions.push((program, version));
        Some(self.versions.len() - 1)
    }

    /// Finds out what a message asks for. The credential is judged before the program, as libtirpc
    /// does it, and for procedure 0 as for any other.
    pub fn handle_message<'m>(
        &self,
        message: &'m [u8],
        counters: &mut ServerCounters,
    ) -> Received<'m> {
        let received = match self.understand(message) {
            Ok(call) if call.procedure == NULL_PROCEDURE => Received::Ping(call.xid),
            Ok(call) => Received::Call(call),
            Err(BadCall::Refuse { xid, refused }) => Received::Refuse(xid, refused),
            Err(BadCall::Unanswerable(violation)) => Received::Unanswerable(violation),
        };
        *match received {
            Received::Call(_) => &mut counters.calls,
            Received::Ping(_) => &mut counters.pings,
            Received::Refuse(..) => &mut counters.refusals,
            Received::Unanswerable(_) => &mut counters.violations,
        } += 1;
        received
    }

    fn understand<'m>(&self, message: &'m [u8]) -> Result<Call<'m>, BadCall> {
        let mut input = Decoder::new(message);
        let header = CallHeader::decode(&mut input)?;
        let xid = header.xid;
        let refuse = |refused| BadCall::Refuse { xid, refused };
        let credential = Credential::from_opaque(header.credential)
            .map_err(|stat| refuse(Refused::Authentication(stat)))?;
        let service = self.find(header.program, header.version).map_err(refuse)?;
        Ok(Call {
            service,
            xid,
            program: header.program,
            version: header.version,
            procedure: header.procedure,
            credential,
            arguments: input.rest(),
        })
    }

    fn find(&self, program: u32, version: u32) -> Result<usize, Refused> {
        self.versions
            .iter()
            .position(|&entry| entry == (program, version))
            .ok_or_else(|| self.why_not(program))
    }

    #[cold]
    fn why_not(&self, program: u32) -> Refused {
        let versions = || {
            let of_program = self.versions.iter().filter(|entry| entry.0 == program);
            of_program.map(|entry| entry.1)
        };
        match (versions().min(), versions().max()) {
            (Some(low), Some(high)) => Refused::ProgramMismatch { low, high },
            _ => Refused::ProgramUnavailable,
        }
    }
}
