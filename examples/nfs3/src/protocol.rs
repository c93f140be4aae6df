//! The stubs that the build script generates: types, clients and server traits.

tenon::stubs!(
    /// NFS, from `interfaces/nfs3.x`.
    pub mod nfs3;
);

tenon::stubs!(
    /// MOUNT, from `interfaces/mount3.x`.
    pub mod mount3;
);
