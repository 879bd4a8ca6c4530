//! Programs as tools: the port that runs them, and the limits on how many run and wait at the same time.

use super::AgentEnvironment;
use crate::App;
use parlor_engine::ports::ToolProgram;
use parlor_model::{Caller, Payload, ToolCall, ToolFailure, ToolFailureCode};
use std::pin::Pin;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum number of programs that run at the same time.
const MAX_RUNNING: usize = 16;
/// Maximum number of calls that wait for a running program to end. Further calls are refused.
const MAX_WAITING: usize = 64;

pub type ToolFuture = Pin<Box<dyn Future<Output = Result<Payload, ToolFailure>> + Send>>;

/// Port to the code that starts programs. Implemented outside this crate.
pub trait ToolPrograms: Send + Sync {
    /// Runs a program once, within its time limit. Dropping the future ends the program.
    fn run(&self, call: ProgramCall) -> ToolFuture;
}

#[derive(Debug)]
pub struct ProgramCall {
    pub program: ToolProgram,
    pub input: Payload,
    pub environment: AgentEnvironment,
}

/// Limits the programs of all agents.
pub struct ProgramSlots {
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for ProgramSlots {
    fn default() -> Self {
        Self { running: Semaphore::new(MAX_RUNNING), waiting: Semaphore::new(MAX_WAITING) }
    }
}

impl ProgramSlots {
    /// Waits for a slot. A call that finds all places in the queue taken is refused at once.
    async fn acquire(&self) -> Result<SemaphorePermit<'_>, ToolFailure> {
        if let Ok(slot) = self.running.try_acquire() {
            return Ok(slot);
        }
        let busy =
            || ToolFailure::new(ToolFailureCode::Busy, "too many programs are running: try again later");
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        self.running.acquire().await.map_err(|_| busy())
    }
}

pub async fn call(
    app: &App,
    caller: &Caller,
    program: ToolProgram,
    call: &ToolCall,
) -> Result<Payload, ToolFailure> {
    let _slot = app.tools.slots.acquire().await?;
    let (agent, session) = (call.agent.clone(), call.session.clone());
    // Only a caller with an account may use tools.
    let environment = app.environment_of_call(caller, agent, session, program.timeout);
    let environment = environment
        .ok_or_else(|| ToolFailure::new(ToolFailureCode::NotAllowed, "the caller has no account"))?;
    app.config.tools.run(ProgramCall { program, input: call.input.clone(), environment }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn calls_wait_for_a_slot_and_are_refused_when_the_queue_is_full() {
        let slots = ProgramSlots::default();
        let mut running = Vec::new();
        for _ in 0..MAX_RUNNING {
            running.push(slots.acquire().await.unwrap());
        }
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(slots.acquire())).collect();
        for call in &mut waiting {
            assert!(call.now_or_never_pinned().is_none());
        }
        assert_eq!(slots.acquire().await.unwrap_err().code, ToolFailureCode::Busy);
        running.pop();
        let first = waiting.remove(0);
        running.push(first.await.unwrap());
        let mut next = Box::pin(slots.acquire());
        assert!(next.now_or_never_pinned().is_none(), "a place in the queue is free again");
    }

    trait PollOnce: Future {
        fn now_or_never_pinned(&mut self) -> Option<Self::Output>;
    }

    impl<F: Future + ?Sized> PollOnce for Pin<Box<F>> {
        fn now_or_never_pinned(&mut self) -> Option<Self::Output> {
            self.as_mut().now_or_never()
        }
    }
}
