//! Bringing generated stubs in.

/// Declares a module of the stubs that a build script made with `tenon-build` from the interface
/// of the same name: `mod nfs3;` holds what was made from `nfs3.x`.
///
/// A program that uses a part of an interface, or an interface without comments, is not warned of
/// it, nor of what clippy has against what is generated, its pedantic lints included.
///
/// ```ignore
/// tenon::stubs!(pub mod nfs3;);
/// ```
#[macro_export]
macro_rules! stubs {
    ($(#[$attribute:meta])* $visibility:vis mod $name:ident;) => {
        $(#[$attribute])*
        #[allow(dead_code, deprecated, missing_docs, unreachable_pub)]
        #[allow(clippy::all, clippy::pedantic)]
        $visibility mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
        }
    };
}
