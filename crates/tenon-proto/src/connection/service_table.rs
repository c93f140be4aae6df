//! The programs and versions that an end serves, which peers of both protocols look up.

use std::sync::Arc;

use crate::codec::lean::{BindRequest, Interface, UnboundReason};
use crate::codec::onc::message::Refused;

/// The versions of programs that an end serves. It is made once and shared by all connections.
#[derive(Debug, Clone, Default)]
pub struct ServiceTable {
    entries: Vec<ServiceEntry>,
}

#[derive(Debug, Clone)]
struct ServiceEntry {
    program: u32,
    version: u32,
    /// The interface that lean clients may bind; `None` if the service speaks ONC RPC only.
    interface: Option<Arc<Interface>>,
}

impl ServiceTable {
    /// The table of an end that serves nothing.
    pub const EMPTY: &Self = &Self {
        entries: Vec::new(),
    };

    /// Adds a version of a program and returns its index: how many were added before it. `None` if it is there
    /// already. Lean clients may bind it if it has an `interface`.
    pub fn add(
        &mut self,
        program: u32,
        version: u32,
        interface: Option<Arc<Interface>>,
    ) -> Option<usize> {
        if self.position(program, version).is_some() {
            return None;
        }
        self.entries.push(ServiceEntry {
            program,
            version,
            interface,
        });
        Some(self.entries.len() - 1)
    }

    /// Returns the index of a version of a program.
    ///
    /// # Errors
    /// The refusal for a client of ONC RPC: the program is unavailable, or has other versions.
    #[inline]
    pub fn find(&self, program: u32, version: u32) -> Result<usize, Refused> {
        self.position(program, version)
            .ok_or_else(|| self.onc_refusal(program))
    }

    /// Returns what the service of an index was built from, if lean clients may bind it.
    pub fn interface(&self, index: usize) -> Option<&Interface> {
        self.entries.get(index)?.interface.as_deref()
    }

    #[inline]
    pub(super) fn position(&self, program: u32, version: u32) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| (entry.program, entry.version) == (program, version))
    }

    #[cold]
    fn onc_refusal(&self, program: u32) -> Refused {
        match self.versions(program, |_| true) {
            Some((low, high)) => Refused::ProgramMismatch { low, high },
            None => Refused::ProgramUnavailable,
        }
    }

    /// Finds what a lean client asks for.
    pub(crate) fn bind(
        &self,
        bind: &BindRequest,
    ) -> Result<(usize, &Interface), UnboundReason<'_>> {
        let index = self.position(bind.program, bind.version);
        let found =
            index.and_then(|index| Some((index, self.entries[index].interface.as_deref()?)));
        match found {
            Some((index, interface)) if interface.grants(bind) => Ok((index, interface)),
            Some((_, interface)) => Err(UnboundReason::OtherInterface(interface)),
            None => {
                let versions = self.versions(bind.program, |entry| entry.interface.is_some());
                Err(match versions {
                    Some((low, high)) => UnboundReason::NoVersion { low, high },
                    None => UnboundReason::NoProgram,
                })
            }
        }
    }

    /// The lowest and the highest version of a program among those entries.
    fn versions(
        &self,
        program: u32,
        is_meant: impl Fn(&ServiceEntry) -> bool,
    ) -> Option<(u32, u32)> {
        let of_program = |entry: &&ServiceEntry| entry.program == program && is_meant(entry);
        let versions = || {
            let entries = self.entries.iter().filter(of_program);
            entries.map(|entry| entry.version)
        };
        versions().min().zip(versions().max())
    }
}
