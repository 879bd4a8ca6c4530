//! Feeds that are being opened with a backlog, in tasks of their own: a long backlog delays only its own channel.
//!
//! Frames about a channel wait for its task, so that the frames of one channel stay in order.

use parlor_wire::ably::codes::ErrorInfo;
use std::collections::HashMap;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of feeds that one connection opens at the same time. Further ones are opened by its loop.
const MAX_OPENINGS: usize = 8;

#[derive(Default)]
pub struct Openings {
    tasks: JoinSet<()>,
    by_name: HashMap<Box<str>, Opening>,
}

struct Opening {
    task: AbortHandle,
    /// Receives whether the feed is open. The task has told the client about an error.
    done: oneshot::Receiver<bool>,
}

impl Openings {
    pub fn has_capacity(&self) -> bool {
        self.by_name.len() < MAX_OPENINGS
    }

    /// Opens the feed of a channel in a task. `fail` sends an error to the client.
    pub fn begin(
        &mut self,
        name: &str,
        open: impl Future<Output = Result<(), ErrorInfo>> + Send + 'static,
        fail: impl FnOnce(ErrorInfo) + Send + 'static,
    ) {
        let (sender, done) = oneshot::channel();
        let task = self.tasks.spawn(async move {
            let opened = open.await;
            // The connection has ended if there is no receiver.
            let _ = sender.send(opened.is_ok());
            if let Err(error) = opened {
                fail(error);
            }
        });
        self.by_name.insert(name.into(), Opening { task, done });
    }

    /// Returns the channels whose feeds could not be opened, of those whose tasks have ended.
    pub fn failed(&mut self) -> Vec<Box<str>> {
        while self.tasks.try_join_next().is_some() {}
        let mut failed = Vec::new();
        self.by_name.retain(|name, opening| match opening.done.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => true,
            Ok(true) => false,
            Ok(false) | Err(oneshot::error::TryRecvError::Closed) => {
                failed.push(name.clone());
                false
            }
        });
        failed
    }

    /// Waits until the feed of a channel is open. Returns `false` if it could not be opened.
    pub async fn settle(&mut self, name: &str) -> bool {
        match self.by_name.remove(name) {
            Some(opening) => opening.done.await.unwrap_or(false),
            None => true,
        }
    }

    /// Waits until all feeds are open. Returns the channels whose feeds could not be opened.
    pub async fn settle_all(&mut self) -> Vec<Box<str>> {
        let mut failed = Vec::new();
        for (name, opening) in self.by_name.drain() {
            if !opening.done.await.unwrap_or(false) {
                failed.push(name);
            }
        }
        failed
    }

    /// Stops to open the feed of a channel.
    pub async fn cancel(&mut self, name: &str) {
        if let Some(opening) = self.by_name.remove(name) {
            opening.task.abort();
            // The sender is dropped with the task.
            let _ = opening.done.await;
        }
    }

    /// Ends all tasks.
    pub async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}
