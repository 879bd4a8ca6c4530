//! Password hashing: argon2id, on threads of its own, a few at a time, behind everything else.

use super::background::Background;
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use parlor_model::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// How many may wait for a free place; more are turned away, so that a flood of sign-ins cannot pile up.
const WAITING: usize = 64;

/// So many at once are people who come in; more are a storm, which gets what nobody else wants of the machine.
const STORM: usize = 4;
/// What a password is compared with when there is no such account: the answer takes as long. No password fits.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGF0IGFsbCEhIQ$bm9ib2R5IGhhcyB0aGlzIHBhc3N3b3JkLCBldmVyLi4";

#[derive(Clone)]
pub struct Passwords {
    jobs: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    background: Background,
}

impl Passwords {
    pub fn new(jobs: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs.max(1))),
            queue: Arc::new(Semaphore::new(WAITING)),
            background: Background::default(),
        }
    }

    /// How many are hashed or wait for it.
    pub fn waiting(&self) -> usize {
        WAITING - self.queue.available_permits()
    }

    pub async fn hash(&self, password: &str) -> Result<Box<str>, Refusal> {
        let password = password.to_owned();
        self.run(move || hash(&password).into()).await
    }

    /// `known` is the account's hash, if there is an account.
    pub async fn verify(&self, password: &str, known: Option<&str>) -> Result<bool, Refusal> {
        let password = password.to_owned();
        let exists = known.is_some();
        let known: Box<str> = known.unwrap_or(NOBODY).into();
        self.run(move || exists & matches(&password, &known)).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let busy = || Refusal::RateLimited { retry_after: Duration::from_secs(2) };
        let waiting = self.queue.clone().try_acquire_owned().map_err(|_| busy())?;
        let job = self.jobs.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let storm = self.waiting() > STORM;
        let background = self.background.clone();
        let (answer, answered) = oneshot::channel();
        // A thread for each: beside the hash it costs nothing, how far it stands back cannot be taken back without
        // privileges, and when it ends its memory is the system's again.
        let thread = std::thread::Builder::new().name("parlor-password".into());
        let started = thread.spawn(move || {
            // To the end of the work: whoever asked may hang up, and the core is busy still.
            let _held = (waiting, job);
            let done = if storm { background.with_the_rest(work) } else { Background::with_a_share(work) };
            let _ = answer.send(done);
        });
        started.map_err(|_| Refusal::Unavailable)?;
        answered.await.map_err(|_| Refusal::Unavailable)
    }
}

fn hash(password: &str) -> String {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).expect("the operating system gives random numbers");
    let hash: PasswordHash = Argon2::default()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .expect("the default parameters and a salt of 16 bytes are valid");
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
        let somebody = hash("Correct-horse-1");
        let cost = |hash: &str| {
            let hash = PasswordHash::new(hash).unwrap();
            let lengths = (hash.salt.unwrap().len(), hash.hash.unwrap().as_bytes().len());
            (hash.algorithm, hash.version, hash.params, lengths)
        };
        assert_eq!(cost(NOBODY), cost(&somebody));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_storm_gets_what_nobody_else_wants_and_a_single_one_its_share() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // After the name, which may hold anything, the policy is the 39th field; 5 is SCHED_IDLE.
            stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
        };
        let passwords = Passwords::new(1);
        let (finish, finishes) = mpsc::channel::<()>();
        let first = passwords.clone();
        let first = tokio::spawn(async move { first.run(move || finishes.recv().unwrap()).await });
        let mut all: tokio::task::JoinSet<_> = (0..STORM + 1)
            .map(|_| {
                let passwords = passwords.clone();
                async move { passwords.run(policy).await.unwrap() }
            })
            .collect();
        // All of them wait for the first.
        while passwords.waiting() < STORM + 2 {
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
        let passwords = Passwords::new(1);
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
