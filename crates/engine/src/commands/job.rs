//! A command in the writer's queue, and the future of its receipt.
//!
//! The queue holds trait objects: a slot is two words, and each job sends a receipt of its own type.

use super::{Batch, Command};
use crate::Fault;
use crate::metrics::WriterMetrics;
use parlor_model::{Caller, Refusal};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::oneshot;

/// A command of any type in the writer's queue.
pub trait QueuedJob: Send {
    /// Decides the command inside the batch's transaction, and keeps the result until the commit.
    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault>;

    /// Sends the result, or `Unavailable` if the batch was not committed.
    fn answer(self: Box<Self>, committed: bool, now: Instant, metrics: &WriterMetrics);
}

pub struct Job<C: Command> {
    caller: Caller,
    state: JobState<C>,
    reply: oneshot::Sender<Result<C::Receipt, Refusal>>,
    queued_at: Instant,
}

enum JobState<C: Command> {
    Queued(C),
    Decided(Result<C::Receipt, Refusal>),
    /// The batch failed while the command was decided.
    Failed,
}

impl<C: Command> Job<C> {
    pub fn new(caller: Caller, command: C) -> (Self, PendingReceipt<C::Receipt>) {
        let (reply, receiver) = oneshot::channel();
        let job = Self { caller, state: JobState::Queued(command), reply, queued_at: Instant::now() };
        (job, PendingReceipt(Ok(receiver)))
    }
}

impl<C: Command> QueuedJob for Job<C> {
    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        if let JobState::Queued(command) = std::mem::replace(&mut self.state, JobState::Failed) {
            self.state = JobState::Decided(batch.decide(&self.caller, command)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: bool, now: Instant, metrics: &WriterMetrics) {
        let result = match self.state {
            JobState::Decided(result) if committed => result,
            _ => Err(Refusal::Unavailable),
        };
        metrics.answered(result.as_ref().err(), now - self.queued_at);
        // The caller may have stopped waiting; the commit stays valid.
        let _ = self.reply.send(result);
    }
}

/// Future of a submitted command's receipt. Dropping it does not undo the command.
pub struct PendingReceipt<R>(Result<oneshot::Receiver<Result<R, Refusal>>, Option<Refusal>>);

impl<R> PendingReceipt<R> {
    /// For a command that was not queued.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self(Err(Some(refusal)))
    }
}

impl<R> Future for PendingReceipt<R> {
    type Output = Result<R, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or(Err(Refusal::Unavailable)))
            }
            Err(refusal) => Poll::Ready(Err(refusal.take().unwrap_or(Refusal::Unavailable))),
        }
    }
}
