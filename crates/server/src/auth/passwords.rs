//! Password hashing: argon2id, on threads of its own, a few at a time, behind everything else.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use parlor_model::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// How many may wait for a free place; more are turned away, so that a flood of sign-ins cannot pile up.
const WAITING: usize = 64;

/// How much these threads stand back: whoever talks goes before those who come in, however many they are.
const NICENESS: i32 = 10;
/// How long they wait for more to do. Longer than the allocator keeps what was freed: when one ends, it is given back.
const REST: Duration = Duration::from_secs(2);
/// What a password is compared with when there is no such account: the answer takes as long. No password fits.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGF0IGFsbCEhIQ$bm9ib2R5IGhhcyB0aGlzIHBhc3N3b3JkLCBldmVyLi4";

#[derive(Clone)]
pub struct Passwords {
    threads: Arc<Threads>,
    queue: Arc<Semaphore>,
}

/// Each hash takes a core and 19 MiB for a moment; a thread that has nothing to do for a while ends, and what
/// it used goes back to the system.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        // The last owner may be a task, which must not wait for threads.
        self.0.take().expect("taken here only").shutdown_background();
    }
}

impl Passwords {
    pub fn new(jobs: usize) -> std::io::Result<Self> {
        let mut threads = Builder::new_current_thread();
        threads.max_blocking_threads(jobs.max(1)).thread_keep_alive(REST).thread_name("parlor-password");
        // On Linux of this thread alone. Where it is not to be had, the work is done all the same.
        threads.on_thread_start(|| {
            let _ = rustix::process::nice(NICENESS);
        });
        Ok(Self {
            threads: Arc::new(Threads(Some(threads.build()?))),
            queue: Arc::new(Semaphore::new(WAITING)),
        })
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
        // The work keeps its place to its end: whoever asked may hang up, and the core is busy still.
        let work = move || {
            let _held = waiting;
            work()
        };
        let threads = self.threads.0.as_ref().expect("there until dropped");
        threads.spawn_blocking(work).await.map_err(|_| Refusal::Unavailable)
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

    #[tokio::test]
    async fn who_hangs_up_does_not_free_the_place_of_the_work() {
        let passwords = Passwords::new(1).unwrap();
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
