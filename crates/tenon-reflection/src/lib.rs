//! Reflection: a server tells tools which interfaces it has, so that they call it without an interface file. It is off
//! unless a server adds it, and goes through the same [`Layered`](tenon::Layered) checks as any service. The interface
//! is `interfaces/reflection.x`; `tenon list`, `tenon describe` and `tenon call` ask it.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
//! # use example::{Host, greeter::GreeterV1Service};
//! # let interface = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/greeter/greeter.x");
//! # let parsed = tenon_idl::parse_file(interface.as_ref(), &Default::default());
//! # let descriptor = tenon_descriptor::Descriptor::new(&parsed.schema.ok_or("no interface")?)?;
//! # let descriptor = descriptor.bytes();
//! use tenon::Server;
//! use tenon_reflection::{Reflection, ReflectionClient};
//!
//! // A program has its descriptor from `build.rs`, by `descriptor(true)`, as
//! // let descriptor = include_bytes!(concat!(env!("OUT_DIR"), "/greeter.descriptor"));
//! let reflection = Reflection::new().with_descriptor(descriptor)?;
//! let server = Server::builder()
//!     .listen("tcp://127.0.0.1:0")?
//!     .service(GreeterV1Service(Host))
//!     .service(reflection.service())
//!     .start()?;
//!
//! // What a tool does that knows nothing but the address.
//! let client = ReflectionClient::connect(&server.addresses()[0].to_string())?;
//! let listed = client.versions()?;
//! assert_eq!(listed[0].version_name, "GREETER_V1");
//! let descriptor = client.descriptor(listed[0].identity)?;
//! assert_eq!(descriptor.schema().programs[0].name, "GREETER");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod generated;
mod service;

use std::fmt;
use std::sync::Arc;

use tenon::Service;
use tenon_descriptor::{Descriptor, DescriptorError, DescriptorIdentity};

pub use client::{ReflectionClient, ReflectionError};
pub use generated::{REFLECTION, REFLECTION_V1};

use generated::ReflectionV1Service;
use service::{ReflectedDescriptors, ReflectionHandlers};

/// A version of a program that a server has, and the identity of the descriptor that says what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReflectedVersion {
    /// The number of the program.
    pub program: u32,
    /// The number of the version.
    pub version: u32,
    /// The name of the program, with its namespace.
    pub program_name: String,
    /// The name of the version.
    pub version_name: String,
    /// The identity of the descriptor.
    pub identity: DescriptorIdentity,
}

/// The interfaces of which a server tells. Clones are the same.
#[derive(Clone, Default)]
pub struct Reflection {
    described: Arc<ReflectedDescriptors>,
}

/// Why a server cannot tell of an interface.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The bytes are no descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// Another descriptor has a version of the same numbers.
    #[error("version {version} of program {program} is described twice")]
    Twice {
        /// The number of the program.
        program: u32,
        /// The number of the version.
        version: u32,
    },
}

impl Reflection {
    /// Tells of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells also of all versions in a descriptor: the bytes that `tenon descriptor` or `tenon-build` writes. It is for
    /// the program to serve them, too.
    ///
    /// # Errors
    /// The bytes are no descriptor, or another descriptor has one of its versions.
    pub fn with_descriptor(self, bytes: &[u8]) -> Result<Self, DescribeError> {
        self.with(Descriptor::parse(bytes)?)
    }

    /// Tells also of all versions in a descriptor that was read already.
    ///
    /// # Errors
    /// Another descriptor has one of its versions.
    pub fn with(mut self, descriptor: Descriptor) -> Result<Self, DescribeError> {
        Arc::make_mut(&mut self.described).add(&descriptor)?;
        Ok(self)
    }

    /// Returns the versions that it tells of, in the order of their numbers.
    pub fn versions(&self) -> &[ReflectedVersion] {
        self.described.versions()
    }

    /// Returns the service that tells of them, for servers of threads (`service`) and of tasks (`sync_service`). Without
    /// a check [around](tenon::Layered) it, every caller is told.
    pub fn service(&self) -> impl Service + use<> {
        ReflectionV1Service(ReflectionHandlers(Arc::clone(&self.described)))
    }
}

impl fmt::Debug for Reflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reflection").field(&self.versions()).finish()
    }
}
