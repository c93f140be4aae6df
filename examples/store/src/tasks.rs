//! The service of `store-server-tokio`: each call with a stream is a task.

use std::pin::pin;
use std::sync::Arc;

use tenon::{CallInfo, Refusal};
use tenon_tokio::{ItemSink, ItemStream};
use tokio::task::block_in_place;

use crate::objects::ObjectStore;
use crate::store::{
    Chunk, Object, ObjectPage, StoreEvent, StoreV1Async, StoreV1GetError, StoreV1PutError,
    StoreV1RemoveError, StoreV1WatchError,
};

/// Serves a store by tasks. It needs a tokio run time of several threads, as files block: other tasks of the thread go
/// on elsewhere meanwhile.
///
/// The future of a call is dropped where it waits when its caller gives it up, or is gone: a watcher needs nothing for
/// that, and of a put that is not complete the pending object goes away.
#[derive(Debug)]
pub struct TaskedStore(pub Arc<ObjectStore>);

impl StoreV1Async for TaskedStore {
    async fn put(
        &self,
        _call: &CallInfo<'_>,
        name: String,
        mut chunks: ItemStream<Chunk>,
    ) -> Result<Object, StoreV1PutError<Refusal>> {
        let mut pending = block_in_place(|| self.0.begin_put(name))?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            block_in_place(|| pending.write(&chunk))?;
        }
        Ok(block_in_place(|| pending.commit())?)
    }

    async fn get(
        &self,
        _call: &CallInfo<'_>,
        name: String,
        offset: u64,
        chunks: &mut ItemSink<Chunk>,
    ) -> Result<(), StoreV1GetError<Refusal>> {
        let mut reader = block_in_place(|| self.0.begin_get(name, offset))?;
        while let Some(chunk) = block_in_place(|| reader.next_chunk())? {
            chunks.send(&chunk).await?;
        }
        Ok(())
    }

    async fn watch(
        &self,
        _call: &CallInfo<'_>,
        prefix: String,
        after: Option<u64>,
        events: &mut ItemSink<StoreEvent>,
    ) -> Result<(), StoreV1WatchError<Refusal>> {
        let mut watcher = self.0.watch(prefix, after)?;
        loop {
            // Registered before the look, so that no change in between is missed.
            let mut changed = pin!(self.0.changed());
            changed.as_mut().enable();
            let next = self.0.next_events(&mut watcher)?;
            if next.is_empty() {
                changed.await;
            } else {
                events.send_all(&next).await?;
            }
        }
    }

    async fn list(
        &self,
        _call: &CallInfo<'_>,
        prefix: String,
        cursor: Option<String>,
    ) -> Result<ObjectPage, Refusal> {
        Ok(self.0.list(&prefix, cursor.as_deref()))
    }

    async fn remove(
        &self,
        _call: &CallInfo<'_>,
        name: String,
    ) -> Result<u64, StoreV1RemoveError<Refusal>> {
        block_in_place(|| self.0.remove(name))
    }
}
