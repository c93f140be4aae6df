//! Gives the shared library its name for the dynamic linker: programs ask for the version of the interface
//! that they were built for, and not for the file's name in cargo's folder.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtenon.so.0");
}
