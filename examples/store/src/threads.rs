//! The service of `store-server`: each call with a stream has a thread.

use std::sync::Arc;
use std::time::Duration;

use tenon::{CallInfo, ItemReader, ItemWriter, Refusal};

use crate::objects::ObjectStore;
use crate::store::{
    Chunk, Object, ObjectPage, StoreEvent, StoreV1, StoreV1GetError, StoreV1PutError,
    StoreV1RemoveError, StoreV1WatchError,
};

/// Longest time for which a watcher that waits for events does not look whether its caller is still there.
const CANCELLED_WITHIN: Duration = Duration::from_millis(200);

/// Serves a store by threads.
#[derive(Debug)]
pub struct ThreadedStore(pub Arc<ObjectStore>);

impl StoreV1 for ThreadedStore {
    /// When the caller gives the put up, or is gone, the stream ends with an error: what was written goes away with the
    /// pending object.
    fn put(
        &self,
        _call: &CallInfo<'_>,
        name: String,
        chunks: ItemReader<Chunk>,
    ) -> Result<Object, StoreV1PutError<Refusal>> {
        let mut pending = self.0.begin_put(name)?;
        for chunk in chunks {
            pending.write(&chunk?)?;
        }
        Ok(pending.commit()?)
    }

    fn get(
        &self,
        _call: &CallInfo<'_>,
        name: String,
        offset: u64,
        chunks: &mut ItemWriter<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let mut reader = self.0.begin_get(name, offset)?;
        while let Some(chunk) = reader.next_chunk()? {
            chunks.send(&chunk)?;
        }
        Ok(())
    }

    fn watch(
        &self,
        call: &CallInfo<'_>,
        prefix: String,
        after: Option<u64>,
        events: &mut ItemWriter<StoreEvent>,
    ) -> Result<(), StoreV1WatchError<Refusal>> {
        let mut watcher = self.0.watch(prefix, after)?;
        // A caller that is gone is told by `send_all` when there are events, and by the call when there are none.
        while !call.is_cancelled() {
            let next = self.0.next_events(&mut watcher)?;
            if next.is_empty() {
                self.0.wait_for_events(&watcher, CANCELLED_WITHIN);
            } else {
                events.send_all(&next)?;
            }
        }
        Ok(())
    }

    fn list(
        &self,
        _call: &CallInfo<'_>,
        prefix: String,
        cursor: Option<String>,
    ) -> Result<ObjectPage, Refusal> {
        Ok(self.0.list(&prefix, cursor.as_deref()))
    }

    fn remove(
        &self,
        _call: &CallInfo<'_>,
        name: String,
    ) -> Result<u64, StoreV1RemoveError<Refusal>> {
        self.0.remove(name)
    }
}
