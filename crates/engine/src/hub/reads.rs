//! Reads of a hub: queries and permission checks.
//!
//! Owns: the limits on concurrent reads, which run on blocking threads.

use super::Hub;
use crate::Fault;
use crate::cache::Cache;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries;
use crate::read_view::ReadView;
use parlor_model::query::NeedsSetup;
use parlor_model::{BlobDigest, Caller, Position, Refusal, Seq};
use std::any::Any;

impl Hub {
    pub async fn read<Q: queries::Query>(&self, caller: &Caller, query: Q) -> Result<Q::Answer, Refusal> {
        query.validate(&self.inner.limits)?;
        let search_permit = match query.is_search() {
            true => Some(self.inner.searches.clone().acquire_owned().await),
            false => None,
        };
        let caller = caller.clone();
        self.read_snapshot(move |hub, snapshot| {
            let _held = &search_permit;
            match hub.permitted(&caller, &query, snapshot)? {
                Ok(facts) => query.answer(facts, snapshot, &hub.inner.limits).map(Ok),
                Err(refusal) => Ok(Err(refusal)),
            }
        })
        .await?
    }

    /// Whether the caller may run this query, without computing the answer.
    pub async fn may<Q: queries::Query>(&self, caller: &Caller, query: Q) -> Result<(), Refusal> {
        let caller = caller.clone();
        self.read_snapshot(move |hub, snapshot| Ok(hub.permitted(&caller, &query, snapshot)?.map(drop)))
            .await?
    }

    /// Loads the facts of a query, or refuses it.
    pub(crate) fn permitted<Q: queries::Query>(
        &self,
        caller: &Caller,
        query: &Q,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Result<Q::Facts, Refusal>, Fault> {
        self.with_view(caller, snapshot, |caller, view| PermitError::split(query.permit(caller, view)))
    }

    /// Reads through a view of the snapshot, with a cache that lives as long as this read.
    pub(crate) fn with_view<T>(
        &self,
        caller: &Caller,
        snapshot: &mut dyn Snapshot,
        read: impl FnOnce(&CallerContext, &mut ReadView<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (head, limits) = (Position { epoch: self.inner.epoch, seq: Seq(0) }, &self.inner.limits);
        let mut cache = Cache::new(limits.cache_entries);
        let mut view = ReadView::new(self.now(), head, limits, snapshot, &mut cache);
        let caller = view.caller_context(caller)?;
        read(&caller, &mut view)
    }

    pub(super) fn admitted<Q: queries::Query>(&self, caller: &Caller, query: &Q) -> Result<bool, Fault> {
        let mut admitted = false;
        self.inner.reader.with(&mut |snapshot| {
            admitted = self.permitted(caller, query, snapshot)?.is_ok();
            Ok(())
        })?;
        Ok(admitted)
    }

    /// Waits until the first admin account exists.
    pub async fn wait_for_first_admin(&self) -> Result<(), Refusal> {
        let mut published = self.inner.fanout.watch();
        while self.read(&Caller::ANONYMOUS, NeedsSetup).await? {
            // The fan-out, which owns the sender, lives as long as this hub, so waiting cannot fail.
            let _ = published.changed().await;
        }
        Ok(())
    }

    /// Whether an upload refers to this content. Blocks, and bypasses the limit on concurrent reads: only for
    /// the garbage collector of blobs.
    pub(crate) fn refers_to(&self, digest: &BlobDigest) -> Result<bool, Fault> {
        let mut refers = true;
        self.inner.reader.with(&mut |snapshot| {
            refers = snapshot.refers_to(digest)?;
            Ok(())
        })?;
        Ok(refers)
    }

    /// Blocks, and bypasses the limit on concurrent reads: for callers that hold the fan-out's lock.
    pub(crate) fn with_snapshot(
        &self,
        read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.inner.reader.with(read)
    }

    pub(crate) async fn read_snapshot<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&Hub, &mut dyn Snapshot) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.inner.reads.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let (hub, traced) = (self.clone(), tracing::debug_span!("read"));
        blocking(move || {
            let _traced = traced.entered();
            // The closure holds the permit, not the caller's future: the thread stays busy even if the caller
            // stops waiting.
            let _held = permit;
            let mut found = None;
            hub.inner.reader.with(&mut |snapshot| {
                found = Some(read(&hub, snapshot)?);
                Ok(())
            })?;
            Ok(found.expect("`with` runs the closure before it returns `Ok`"))
        })
        .await
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Refusal> {
    let found = blocking_any(Box::new(|| work().map(|found| Box::new(found) as AnyResult))).await?;
    Ok(*found.downcast().expect("the closure boxes a value of type `T`"))
}

type AnyResult = Box<dyn Any + Send>;

/// Type-erased form of [`blocking`]: tokio monomorphises the task code for each type of closure it is given.
async fn blocking_any(
    work: Box<dyn FnOnce() -> Result<AnyResult, Fault> + Send>,
) -> Result<AnyResult, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(fault)) => {
            tracing::error!(%fault, "a read failed");
            Err(Refusal::Unavailable)
        }
        Err(_) => Err(Refusal::Unavailable),
    }
}
