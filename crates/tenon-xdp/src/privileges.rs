//! What a process must be allowed to do, and what it is told when it is not.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

/// Capabilities that are needed, and those that may stand in for them.
const NEEDED: [(CapabilitySet, CapabilitySet, &str); 3] = [
    (
        CapabilitySet::NET_RAW,
        CapabilitySet::empty(),
        "CAP_NET_RAW (to open an AF_XDP socket)",
    ),
    (
        CapabilitySet::NET_ADMIN,
        CapabilitySet::empty(),
        "CAP_NET_ADMIN (to have a filter run at an interface)",
    ),
    (
        CapabilitySet::BPF,
        CapabilitySet::SYS_ADMIN,
        "CAP_BPF (to load the filter)",
    ),
];

/// Returns those of the needed capabilities that a process with these lacks.
fn lacking(has: CapabilitySet) -> Vec<&'static str> {
    let lacking = NEEDED
        .iter()
        .filter(|(needed, instead, _)| !has.intersects(*needed | *instead));
    lacking.map(|(.., name)| *name).collect()
}

/// Checks that this process may use AF_XDP, as far as its capabilities say.
///
/// # Errors
/// `PermissionDenied`, with the names of the capabilities that it lacks.
pub fn check_privileges() -> io::Result<()> {
    match lacking(capabilities(None)?.effective).as_slice() {
        [] => Ok(()),
        lacking => Err(denied(&format!(
            "this process lacks {}; run it as root or give its program the capabilities \
             with setcap, or use lean+udp://, or udp:// for ONC RPC, which need none",
            lacking.join(" and ")
        ))),
    }
}

/// Returns the error for a step that the system refuses, though the process seemed to be allowed to take it.
pub(crate) fn explain(error: io::Error, step: &str) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => denied(&format!(
            "the system does not allow this process {step}; its capabilities may hold in a user \
             namespace only"
        )),
        _ if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => denied(&format!(
            "this process may not have so much memory that cannot be paged out (ulimit -l), {step}"
        )),
        kind => io::Error::new(kind, format!("{step}: {error}")),
    }
}

fn denied(what: &str) -> io::Error {
    let message = format!("xdp:// needs privileges: {what}");
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        let all = CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
        assert!(lacking(all).is_empty());
        let with_admin =
            CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        assert!(lacking(with_admin).is_empty());
        let names = lacking(CapabilitySet::NET_ADMIN).join(" ");
        assert!(names.contains("CAP_NET_RAW") && names.contains("CAP_BPF"));
        assert!(!names.contains("CAP_NET_ADMIN"));
        assert_eq!(lacking(CapabilitySet::empty()).len(), 3);
    }
}
