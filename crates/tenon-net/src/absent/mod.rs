//! Stand-ins for transports that this system lacks, or that were left out by features: types without values, so that the
//! code above is the same, and the compiler drops what would use one.

use std::fmt::Display;
use std::io;

/// Methods of types without values: none is ever called.
macro_rules! absent {
    ($type:ty { $($visibility:vis fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        #[allow(missing_docs, reason = "the real type has the same, with words")]
        impl $type {
            $($visibility fn $name(&self, $(_: $argument),*) $(-> $result)? { match *self {} })*
        }
    };
}

#[cfg(not(feature = "udp"))]
pub(crate) mod datagram;
#[cfg(any(not(feature = "shm"), not(target_os = "linux"), tenon_portable))]
pub(crate) mod shm;
#[cfg(any(not(feature = "xdp"), not(target_os = "linux"), tenon_portable))]
pub(crate) mod xdp;

/// Returns the error of an address with a transport that is not here, that of a feature.
pub(crate) fn lacking(feature: &str, address: &dyn Display) -> io::Error {
    let has_all_but_linux = cfg!(any(not(target_os = "linux"), tenon_portable)) && feature != "udp";
    let message = match has_all_but_linux {
        true => format!("{address} needs Linux: use tcp:// or udp:// here"),
        false => {
            format!("{address} needs the feature `{feature}`, which this program was built without")
        }
    };
    io::Error::new(io::ErrorKind::Unsupported, message)
}
