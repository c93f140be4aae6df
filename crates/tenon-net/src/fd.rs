//! Descriptors of sockets under one name on every system; Windows calls them sockets.

pub use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Implements `AsFd`, or what Windows has in its place, for a type that has a socket.
#[macro_export]
#[doc(hidden)]
macro_rules! impl_as_fd {
    ($type:ty, $self:ident => $descriptor:expr) => {
        #[cfg(unix)]
        impl ::std::os::fd::AsFd for $type {
            fn as_fd(&$self) -> $crate::fd::BorrowedFd<'_> {
                #[allow(unused_imports, reason = "a type without values has none")]
                use $crate::fd::AsFd as _;
                $descriptor
            }
        }

        #[cfg(windows)]
        impl ::std::os::windows::io::AsSocket for $type {
            fn as_socket(&$self) -> $crate::fd::BorrowedFd<'_> {
                #[allow(unused_imports, reason = "a type without values has none")]
                use $crate::fd::AsFd as _;
                $descriptor
            }
        }
    };
}
