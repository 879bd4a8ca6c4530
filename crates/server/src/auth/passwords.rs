//! Password hashing with argon2id, on dedicated low-priority threads with bounded concurrency and a bounded
//! queue.

use super::low_priority::LowPriority;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use parlor_model::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Maximum hashes that run or wait. Further ones are rejected, so that a flood of sign-ins cannot pile up.
const MAX_QUEUED_HASHES: usize = 64;

/// Maximum hashes, running or waiting, that count as normal load and run niced. Beyond it, new ones run with
/// idle priority.
const NICED_JOBS_LIMIT: usize = 4;
/// Salt and hash that no password matches, verified against when an account does not exist.
const DUMMY_HASH: &str = "bm9ib2R5IGF0IGFsbCEhIQ$bm9ib2R5IGhhcyB0aGlzIHBhc3N3b3JkLCBldmVyLi4";

/// Argon2 parameters for new hashes. Each stored hash names its own, so a change does not lock out existing
/// accounts.
#[derive(Clone, Copy, Debug)]
pub struct PasswordCost {
    memory_kib: u32,
    passes: u32,
}

impl PasswordCost {
    /// Minimum cost that argon2id allows. Offers no protection; for tests that sign in thousands of times.
    pub const MINIMUM: Self = Self { memory_kib: Params::MIN_M_COST, passes: Params::MIN_T_COST };

    /// Returns a hash that no password matches and that takes as long to verify as a real one, so that the
    /// response time does not reveal whether an account exists.
    fn dummy_hash(self) -> Box<str> {
        let Self { memory_kib, passes } = self;
        format!("$argon2id$v=19$m={memory_kib},t={passes},p=1${DUMMY_HASH}").into()
    }

    fn hasher(self) -> Argon2<'static> {
        let params = Params::new(self.memory_kib, self.passes, 1, None);
        Argon2::new(
            Algorithm::Argon2id,
            Version::V0x13,
            params.expect("both costs are within the bounds of argon2"),
        )
    }
}

impl Default for PasswordCost {
    fn default() -> Self {
        Self { memory_kib: Params::DEFAULT_M_COST, passes: Params::DEFAULT_T_COST }
    }
}

#[derive(Clone)]
pub struct Passwords {
    cost: PasswordCost,
    jobs: Arc<Semaphore>,
    max_jobs: u32,
    queue: Arc<Semaphore>,
    low_priority: LowPriority,
}

impl Passwords {
    pub fn new(jobs: usize, cost: PasswordCost) -> Self {
        let max_jobs = u32::try_from(jobs).unwrap_or(u32::MAX).max(1);
        Self {
            cost,
            jobs: Arc::new(Semaphore::new(max_jobs as usize)),
            max_jobs,
            queue: Arc::new(Semaphore::new(MAX_QUEUED_HASHES)),
            low_priority: LowPriority::default(),
        }
    }

    /// Number of hashes that run or wait.
    pub fn waiting(&self) -> usize {
        MAX_QUEUED_HASHES - self.queue.available_permits()
    }

    pub async fn hash(&self, password: &str) -> Result<Box<str>, Refusal> {
        let (password, cost) = (password.to_owned(), self.cost);
        self.run(move || hash(&password, cost).into()).await
    }

    /// Verifies a password against the account's hash. Without an account (`None`) the result is `false`,
    /// after the same amount of work.
    pub async fn verify(&self, password: &str, stored: Option<&str>) -> Result<bool, Refusal> {
        let password = password.to_owned();
        let exists = stored.is_some();
        let stored: Box<str> = stored.map_or_else(|| self.cost.dummy_hash(), Into::into);
        self.run(move || exists & matches(&password, &stored)).await
    }

    /// Refuses further hashes and waits for the threads of those that run.
    pub async fn end(&self) {
        self.queue.close();
        // Each thread holds a permit until its work has ended.
        let _ = self.jobs.acquire_many(self.max_jobs).await;
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let busy = || Refusal::RateLimited { retry_after: Duration::from_secs(2) };
        let queued = self.queue.clone().try_acquire_owned().map_err(|_| busy())?;
        let job = self.jobs.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let overloaded = self.waiting() > NICED_JOBS_LIMIT;
        let low_priority = self.low_priority.clone();
        let (sender, receiver) = oneshot::channel();
        // One thread per hash: starting it is cheap compared to the hash, its priority cannot be raised again
        // without privileges, and its memory returns to the system when it ends.
        let thread = std::thread::Builder::new().name("parlor-password".into());
        let started = thread.spawn(move || {
            // Held until the work ends: the core stays busy even if the client disconnects.
            let _permits = (queued, job);
            let done = if overloaded { low_priority.run_idle(work) } else { LowPriority::run_niced(work) };
            let _ = sender.send(done);
        });
        started.map_err(|_| Refusal::Unavailable)?;
        receiver.await.map_err(|_| Refusal::Unavailable)
    }
}

fn hash(password: &str, cost: PasswordCost) -> String {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).expect("the operating system provides random numbers");
    let hash: PasswordHash = cost
        .hasher()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .expect("16 bytes are a valid salt length");
    hash.to_string()
}

fn matches(password: &str, stored: &str) -> bool {
    let Ok(stored) = PasswordHash::new(stored) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &stored).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::mpsc;

    #[test]
    fn an_unknown_username_costs_as_much_as_a_known_one() {
        let parameters = |hash: &str| {
            let hash = PasswordHash::new(hash).unwrap();
            let lengths = (hash.salt.unwrap().len(), hash.hash.unwrap().as_bytes().len());
            (hash.algorithm, hash.version, hash.params, lengths)
        };
        for cost in [PasswordCost::default(), PasswordCost::MINIMUM] {
            assert_eq!(parameters(&cost.dummy_hash()), parameters(&hash("Correct-horse-1", cost)));
        }
    }

    #[tokio::test]
    async fn the_end_waits_for_running_hashes_and_refuses_later_ones() {
        let passwords = Passwords::new(2, PasswordCost::MINIMUM);
        let (finish, finishes) = mpsc::channel::<()>();
        let first = passwords.clone();
        let first = tokio::spawn(async move { first.run(move || finishes.recv().unwrap()).await });
        while passwords.waiting() < 1 {
            tokio::task::yield_now().await;
        }
        let mut ending = std::pin::pin!(passwords.end());
        assert!((&mut ending).now_or_never().is_none(), "a hash runs");
        assert!(passwords.hash("Correct-horse-1").await.is_err());
        finish.send(()).unwrap();
        ending.await;
        first.await.unwrap().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_burst_of_hashes_runs_with_idle_priority_and_a_single_one_does_not() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // The scheduling policy is the 39th field after the process name, which may contain spaces; 5 is
            // SCHED_IDLE.
            stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
        };
        let passwords = Passwords::new(1, PasswordCost::MINIMUM);
        let (finish, finishes) = mpsc::channel::<()>();
        let first = passwords.clone();
        let first = tokio::spawn(async move { first.run(move || finishes.recv().unwrap()).await });
        let mut all: tokio::task::JoinSet<_> = (0..NICED_JOBS_LIMIT + 1)
            .map(|_| {
                let passwords = passwords.clone();
                async move { passwords.run(policy).await.unwrap() }
            })
            .collect();
        // Wait until all of them are queued behind the first.
        while passwords.waiting() < NICED_JOBS_LIMIT + 2 {
            tokio::task::yield_now().await;
        }
        finish.send(()).unwrap();
        first.await.unwrap().unwrap();
        let mut policies = Vec::new();
        while let Some(policy) = all.join_next().await {
            policies.push(policy.unwrap());
        }
        assert!(policies.iter().any(|policy| policy == "5"), "{policies:?}");
        assert_eq!(passwords.run(policy).await.unwrap(), "0");
    }

    #[tokio::test]
    async fn a_client_that_disconnects_does_not_free_the_permit_of_running_work() {
        let passwords = Passwords::new(1, PasswordCost::MINIMUM);
        let (started, starts) = tokio::sync::oneshot::channel();
        let (finish, finishes) = mpsc::channel::<()>();
        let work = passwords.run(move || {
            started.send(()).unwrap();
            finishes.recv().unwrap();
        });
        let mut work = Box::pin(work);
        tokio::select! {
            _ = &mut work => panic!("the work must not be finished yet"),
            began = starts => began.unwrap(),
        }
        drop(work);
        assert_eq!(passwords.waiting(), 1);
        finish.send(()).unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), passwords.run(|| 7)).await;
        assert_eq!(next.unwrap().unwrap(), 7);
    }
}
