//! Owner of background tasks: awaits or aborts them at shutdown.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// A set of background tasks. Dropping the set aborts its tasks. Unlike a `JoinSet`, it keeps no memory of ended
/// tasks.
pub struct Tasks {
    running: Arc<Mutex<Running>>,
    /// Each task holds a receiver until its future is dropped.
    ended: watch::Sender<()>,
}

#[derive(Default)]
struct Running {
    next: u64,
    /// A task is listed before it is spawned, without a handle.
    tasks: HashMap<u64, Option<AbortHandle>>,
    aborting: bool,
}

/// Removes a task from the list when its future is dropped.
struct Listed {
    id: u64,
    running: Arc<Mutex<Running>>,
    _ended: watch::Receiver<()>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.running.lock().tasks.remove(&self.id);
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self { running: Arc::default(), ended: watch::Sender::new(()) }
    }
}

impl Tasks {
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let id = {
            let mut running = self.running.lock();
            running.next += 1;
            let id = running.next;
            running.tasks.insert(id, None);
            id
        };
        let listed = Listed { id, running: self.running.clone(), _ended: self.ended.subscribe() };
        // Spawned without the lock: a runtime that has ended drops the future at once.
        let handle = tokio::spawn(async move {
            let _listed = listed;
            task.await
        });
        let mut running = self.running.lock();
        let aborting = running.aborting;
        if let Some(listed) = running.tasks.get_mut(&id) {
            *listed = Some(handle.abort_handle());
        }
        drop(running);
        if aborting {
            handle.abort();
        }
        handle
    }

    /// Waits until all tasks have ended.
    pub async fn ended(&self) {
        self.ended.closed().await;
    }

    /// Aborts all tasks, also those that are spawned later, without waiting for their end.
    pub fn begin_abort(&self) {
        let handles: Vec<AbortHandle> = {
            let mut running = self.running.lock();
            running.aborting = true;
            running.tasks.values().flatten().cloned().collect()
        };
        // Without the lock, because an aborted task takes it.
        handles.iter().for_each(AbortHandle::abort);
    }

    /// Aborts all tasks and waits until they have ended.
    pub async fn abort(&self) {
        self.begin_abort();
        self.ended().await;
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.begin_abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn aborted_tasks_have_released_everything() {
        let (tasks, held) = (Tasks::default(), Arc::new(()));
        let hold = || {
            let held = held.clone();
            async move {
                std::future::pending::<()>().await;
                drop(held);
            }
        };
        tasks.spawn(hold());
        tokio::task::yield_now().await;
        tasks.spawn(hold());
        tasks.abort().await;
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(tasks.spawn(hold()).await.unwrap_err().is_cancelled(), "a later task is aborted too");
    }

    #[tokio::test]
    async fn tasks_that_end_by_themselves_are_awaited_and_forgotten() {
        let (tasks, (end, wait)) = (Tasks::default(), oneshot::channel::<u8>());
        let task = tasks.spawn(wait);
        end.send(7).unwrap();
        tasks.ended().await;
        assert_eq!(task.await.unwrap(), Ok(7));
        assert!(tasks.running.lock().tasks.is_empty());
    }
}
