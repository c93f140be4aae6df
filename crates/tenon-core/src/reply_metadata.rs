//! Metadata of a reply, which a handler adds and a caller reads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon_proto::lean::{Metadata, MetadataError};

use crate::client::ReplyExtensions;
use crate::error::CallError;

/// Metadata of a reply. A server has one for each call, to which a handler adds by
/// [`CallInfo::append_reply_metadata`](crate::service::CallInfo::append_reply_metadata). A caller that wants to see what
/// the server said makes one, and gives it to a call by
/// [`CallOptions::reply_metadata`](crate::options::CallOptions::reply_metadata): when the call is over, the metadata of
/// the reply, or of the exception in its place, is in it.
#[derive(Debug, Default)]
pub struct ReplyMetadata(Mutex<Metadata>);

impl ReplyMetadata {
    /// No metadata yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Metadata::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Metadata> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a pair behind those that there are.
    ///
    /// # Errors
    /// The key or the value has a character that it may not have, or there would be more than
    /// [`Metadata::ACCEPTED`] bytes, which is as much as every caller accepts.
    pub fn append(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), MetadataError> {
        let mut pair = Metadata::new();
        pair.append(key, value)?;
        let mut metadata = self.lock();
        let (size, limit) = (metadata.size() + pair.size(), Metadata::ACCEPTED);
        if size > limit {
            return Err(MetadataError::TooLarge { size, limit });
        }
        metadata.append_all(pair.view())
    }

    /// Returns a copy of the metadata.
    pub fn get(&self) -> Metadata {
        self.lock().clone()
    }

    /// Replaces the metadata by that of a reply, or of the exception in its place.
    #[doc(hidden)]
    #[cold]
    pub fn set_of(&self, replied: Result<Option<&ReplyExtensions>, &CallError>) {
        let metadata = match replied {
            Ok(extensions) => extensions.map(|extensions| &extensions.metadata),
            Err(error) => error.exception().map(|exception| &exception.metadata),
        };
        *self.lock() = metadata.cloned().unwrap_or_default();
    }

    /// Returns the metadata, if there is any, after the handler has returned.
    #[doc(hidden)]
    #[inline]
    pub fn into_metadata(self) -> Option<Metadata> {
        let metadata = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        match metadata.is_empty() {
            true => None,
            false => Some(metadata),
        }
    }
}
