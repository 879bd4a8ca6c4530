//! Password hashing: argon2id, on threads of its own, a few at a time, behind everything else.

use super::low_priority::LowPriority;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use parlor_model::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// How many may wait for a free place; more are turned away, so that a flood of sign-ins cannot pile up.
const MAX_QUEUED_HASHES: usize = 64;

/// So many at once are people who come in; more are a storm, which gets what nobody else wants of the machine.
const NICED_JOBS_LIMIT: usize = 4;
/// Salt and hash of a password that does not exist, compared with when there is no such account: no password fits.
const DUMMY_HASH: &str = "bm9ib2R5IGF0IGFsbCEhIQ$bm9ib2R5IGhhcyB0aGlzIHBhc3N3b3JkLCBldmVyLi4";

/// Argon2 parameters for new hashes. Each stored hash names its own, so a change does not lock out existing accounts.
#[derive(Clone, Copy, Debug)]
pub struct PasswordCost {
    memory_kib: u32,
    passes: u32,
}

impl PasswordCost {
    /// The least that argon2id allows: protects nothing, for tests that sign in a thousand times.
    pub const LEAST: Self = Self { memory_kib: Params::MIN_M_COST, passes: Params::MIN_T_COST };

    /// A hash that no password matches and that takes as long to compare as a real one, so that the time of an answer
    /// does not tell whether the account exists.
    fn nobody(self) -> Box<str> {
        let Self { memory_kib, passes } = self;
        format!("$argon2id$v=19$m={memory_kib},t={passes},p=1${DUMMY_HASH}").into()
    }

    fn hasher(self) -> Argon2<'static> {
        let params = Params::new(self.memory_kib, self.passes, 1, None);
        Argon2::new(
            Algorithm::Argon2id,
            Version::V0x13,
            params.expect("both costs are within argon2's bounds"),
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
    queue: Arc<Semaphore>,
    low_priority: LowPriority,
}

impl Passwords {
    pub fn new(jobs: usize, cost: PasswordCost) -> Self {
        Self {
            cost,
            jobs: Arc::new(Semaphore::new(jobs.max(1))),
            queue: Arc::new(Semaphore::new(MAX_QUEUED_HASHES)),
            low_priority: LowPriority::default(),
        }
    }

    /// How many are hashed or wait for it.
    pub fn waiting(&self) -> usize {
        MAX_QUEUED_HASHES - self.queue.available_permits()
    }

    pub async fn hash(&self, password: &str) -> Result<Box<str>, Refusal> {
        let (password, cost) = (password.to_owned(), self.cost);
        self.run(move || hash(&password, cost).into()).await
    }

    /// `known` is the account's hash, if there is an account.
    pub async fn verify(&self, password: &str, known: Option<&str>) -> Result<bool, Refusal> {
        let password = password.to_owned();
        let exists = known.is_some();
        let known: Box<str> = known.map_or_else(|| self.cost.nobody(), Into::into);
        self.run(move || exists & matches(&password, &known)).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let busy = || Refusal::RateLimited { retry_after: Duration::from_secs(2) };
        let waiting = self.queue.clone().try_acquire_owned().map_err(|_| busy())?;
        let job = self.jobs.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let storm = self.waiting() > NICED_JOBS_LIMIT;
        let low_priority = self.low_priority.clone();
        let (answer, answered) = oneshot::channel();
        // A thread for each: beside the hash it costs nothing, how far it stands back cannot be taken back without
        // privileges, and when it ends its memory is the system's again.
        let thread = std::thread::Builder::new().name("parlor-password".into());
        let started = thread.spawn(move || {
            // To the end of the work: whoever asked may hang up, and the core is busy still.
            let _held = (waiting, job);
            let done = if storm { low_priority.run_idle(work) } else { LowPriority::run_niced(work) };
            let _ = answer.send(done);
        });
        started.map_err(|_| Refusal::Unavailable)?;
        answered.await.map_err(|_| Refusal::Unavailable)
    }
}

fn hash(password: &str, cost: PasswordCost) -> String {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).expect("the operating system gives random numbers");
    let hash: PasswordHash = cost
        .hasher()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .expect("a salt of 16 bytes is valid");
    hash.to_string()
}

fn matches(password: &str, known: &str) -> bool {
    let Ok(known) = PasswordHash::new(known) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &known).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_name_that_nobody_has_costs_as_much_as_one_that_somebody_has() {
        let parameters = |hash: &str| {
            let hash = PasswordHash::new(hash).unwrap();
            let lengths = (hash.salt.unwrap().len(), hash.hash.unwrap().as_bytes().len());
            (hash.algorithm, hash.version, hash.params, lengths)
        };
        for cost in [PasswordCost::default(), PasswordCost::LEAST] {
            assert_eq!(parameters(&cost.nobody()), parameters(&hash("Correct-horse-1", cost)));
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_storm_gets_what_nobody_else_wants_and_a_single_one_its_share() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // After the name, which may hold anything, the policy is the 39th field; 5 is SCHED_IDLE.
            stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
        };
        let passwords = Passwords::new(1, PasswordCost::LEAST);
        let (finish, finishes) = mpsc::channel::<()>();
        let first = passwords.clone();
        let first = tokio::spawn(async move { first.run(move || finishes.recv().unwrap()).await });
        let mut all: tokio::task::JoinSet<_> = (0..NICED_JOBS_LIMIT + 1)
            .map(|_| {
                let passwords = passwords.clone();
                async move { passwords.run(policy).await.unwrap() }
            })
            .collect();
        // All of them wait for the first.
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
    async fn who_hangs_up_does_not_free_the_place_of_the_work() {
        let passwords = Passwords::new(1, PasswordCost::LEAST);
        let (started, starts) = tokio::sync::oneshot::channel();
        let (finish, finishes) = mpsc::channel::<()>();
        let work = passwords.run(move || {
            started.send(()).unwrap();
            finishes.recv().unwrap();
        });
        let mut work = Box::pin(work);
        tokio::select! {
            _ = &mut work => panic!("the work is not done"),
            began = starts => began.unwrap(),
        }
        drop(work);
        assert_eq!(passwords.waiting(), 1);
        finish.send(()).unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), passwords.run(|| 7)).await;
        assert_eq!(next.unwrap().unwrap(), 7);
    }
}
