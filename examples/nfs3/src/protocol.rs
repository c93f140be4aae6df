//! The stubs that the build script generates: types, clients and server traits.
// The interfaces explain each type, but not each field.
#![allow(missing_docs)]

/// NFS, from `interfaces/nfs3.x`.
pub mod nfs3 {
    include!(concat!(env!("OUT_DIR"), "/nfs3.rs"));
}

/// MOUNT, from `interfaces/mount3.x`.
pub mod mount3 {
    include!(concat!(env!("OUT_DIR"), "/mount3.rs"));
}
