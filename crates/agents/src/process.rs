//! Starts and stops the programs that agents consist of.
//!
//! Owns: when a program ends, is stopped or dropped, or when this process dies, everything that the program
//! started ends too. On Linux the process supervisor guarantees this; elsewhere a process group is killed.
//! [`killed_programs_ended`] awaits the programs that were dropped.

#[cfg(target_os = "linux")]
use crate::supervisor;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Time between SIGTERM and SIGKILL when a program is stopped.
const STOP_GRACE: Duration = Duration::from_millis(400);
/// Maximum time to wait for the end of a killed program. A program in uninterruptible I/O is then left to the
/// kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Additional time, after `STOP_GRACE`, for the process supervisor to kill the whole process tree.
#[cfg(target_os = "linux")]
const SUPERVISOR_MARGIN: Duration = Duration::from_millis(500);

/// Whether this binary can be run as its own process supervisor; a test binary cannot.
static SUPERVISOR_ENABLED: AtomicBool = AtomicBool::new(false);

/// Tasks that await dropped programs. One set for the process, because a dropped future cannot return its
/// program to the gateway that owns it.
static KILLED_PROGRAMS: LazyLock<TaskTracker> = LazyLock::new(|| {
    let tasks = TaskTracker::new();
    // Tasks can still be added; without this, `wait` would never return.
    tasks.close();
    tasks
});

/// Waits until all programs that were killed because they were dropped have ended.
pub async fn killed_programs_ended() {
    KILLED_PROGRAMS.wait().await;
}

/// Enables the process supervisor for all programs started from now on (Linux only).
///
/// Call this only in a binary that passes its arguments to `supervisor::run` when it is run as `keep`.
pub fn enable_supervisor() {
    SUPERVISOR_ENABLED.store(cfg!(target_os = "linux"), Ordering::Relaxed);
}

/// A program with its arguments, environment and working directory, ready to be started.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Variables added to the inherited environment. `PARLOR_*` variables are not inherited.
    pub environment: BTreeMap<OsString, OsString>,
    /// Names of the inherited variables; `None` for all.
    pub inherited: Option<&'static [&'static str]>,
    pub directory: Option<PathBuf>,
}

/// A started program with its three pipes. Dropping it kills the program and everything that it started.
#[derive(Debug)]
pub struct RunningProgram {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    /// Taken when this value is dropped.
    child: Option<Child>,
    group: Option<Pid>,
    #[cfg(target_os = "linux")]
    supervisor_pipe: Option<SupervisorPipe>,
}

/// Pipe from this process to a process supervisor, which kills the program when the write end is closed.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct SupervisorPipe {
    /// Kept open because the supervisor opens it through `/proc` at an unknown time after its start.
    _reading: OwnedFd,
    writing: OwnedFd,
}

impl Program {
    pub fn start(&self) -> io::Result<RunningProgram> {
        self.start_on(None)
    }

    /// Starts the program with a pseudo-terminal as stdout and stderr, and returns the controlling end of it.
    #[cfg(target_os = "linux")]
    pub fn start_in_terminal(&self, columns: u16, rows: u16) -> io::Result<(RunningProgram, OwnedFd)> {
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let terminal = ioctl_tiocgptpeer(&controller, flags)?;
        let size = rustix::termios::Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&controller, size)?;
        Ok((self.start_on(Some(terminal))?, controller))
    }

    fn start_on(&self, terminal: Option<OwnedFd>) -> io::Result<RunningProgram> {
        self.check()?;
        #[cfg(target_os = "linux")]
        let (mut command, supervisor_pipe) = self.command(terminal.is_some())?;
        #[cfg(not(target_os = "linux"))]
        let mut command = self.unsupervised();
        match self.inherited {
            Some(names) => {
                command.env_clear();
                command.envs(names.iter().filter_map(|name| Some((name, env::var_os(name)?))));
            }
            None => {
                for (name, _) in env::vars_os().filter(|(name, _)| is_parlor_variable(name)) {
                    command.env_remove(name);
                }
            }
        }
        command.envs(&self.environment).process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped());
        match terminal {
            Some(terminal) => command.stdout(terminal.try_clone()?).stderr(terminal),
            None => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
        };
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // A supervisor must not be killed with its group: it exits by itself once the process tree is dead.
        #[cfg(target_os = "linux")]
        let group = group.filter(|_| supervisor_pipe.is_none());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(RunningProgram {
            stdin,
            stdout,
            stderr,
            child: Some(child),
            group,
            #[cfg(target_os = "linux")]
            supervisor_pipe,
        })
    }

    fn unsupervised(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        command
    }

    #[cfg(target_os = "linux")]
    fn command(&self, terminal: bool) -> io::Result<(Command, Option<SupervisorPipe>)> {
        use std::os::fd::AsRawFd;
        // A controlling terminal needs a session leader, which only the supervisor's helper process provides.
        if !SUPERVISOR_ENABLED.load(Ordering::Relaxed) {
            if terminal {
                return Err(io::Error::other(
                    "a terminal needs the process supervisor, which this binary does not provide",
                ));
            }
            return Ok((self.unsupervised(), None));
        }
        let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(supervisor::SUPERVISE).arg(std::process::id().to_string());
        command.arg(reading.as_raw_fd().to_string()).arg(rustix::fs::fstat(&reading)?.st_ino.to_string());
        command.arg(if terminal { supervisor::TTY } else { supervisor::NO_TTY });
        command.arg(&self.program).args(&self.arguments);
        Ok((command, Some(SupervisorPipe { _reading: reading, writing })))
    }

    /// Checks the directory and the program before the start: a supervisor would report them missing only
    /// later.
    fn check(&self) -> io::Result<()> {
        if let Some(directory) = self.directory.as_deref().filter(|directory| !directory.is_dir()) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the directory {} is missing", directory.display()),
            ));
        }
        self.locate().map(drop)
    }

    /// Resolves the path of the program, through `PATH` if it is a bare name.
    pub fn locate(&self) -> io::Result<PathBuf> {
        let name = Path::new(&self.program);
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, format!("{} is not installed", name.display()));
        if name.components().count() > 1 {
            let path = self.directory.as_deref().unwrap_or(Path::new("")).join(name);
            return match path.is_file() {
                true if is_executable(&path) => Ok(path),
                true => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("{} is not executable", path.display()),
                )),
                false => Err(missing()),
            };
        }
        let path = self.environment.get(OsStr::new("PATH")).cloned().or_else(|| env::var_os("PATH"));
        let candidates = path.iter().flat_map(env::split_paths).map(|directory| directory.join(name));
        let mut candidates =
            candidates.filter(|path| !self.program.is_empty() && path.is_file() && is_executable(path));
        candidates.next().ok_or_else(missing)
    }
}

/// Whether a variable configures Parlor. Agents must not see these: they can hold passwords and keys.
fn is_parlor_variable(variable: &OsStr) -> bool {
    variable.as_encoded_bytes().starts_with(b"PARLOR_")
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

impl RunningProgram {
    /// Waits until the program exits by itself, then kills everything that it left running.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = wait(&mut self.child).await;
        self.signal(Signal::KILL);
        status
    }

    /// Sends SIGTERM, kills the program after a grace period, and returns when its whole process tree is
    /// dead, at the latest after `KILL_TIMEOUT`.
    pub async fn stop(mut self) {
        self.stdin = None;
        #[cfg(target_os = "linux")]
        if let Some(supervisor_pipe) = &self.supervisor_pipe {
            let _ = rustix::io::write(&supervisor_pipe.writing, &[supervisor::STOP]);
            if timeout(STOP_GRACE + SUPERVISOR_MARGIN, wait(&mut self.child)).await.is_err() {
                self.supervisor_pipe = None;
                wait_for_killed(&mut self.child).await;
            }
            return;
        }
        self.signal(Signal::TERM);
        let _ = timeout(STOP_GRACE, wait(&mut self.child)).await;
        self.signal(Signal::KILL);
        wait_for_killed(&mut self.child).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        #[cfg(target_os = "linux")]
        drop(self.supervisor_pipe.take());
        // A program that was awaited has no id any more.
        let running = self.child.take().filter(|child| child.id().is_some());
        // Without a runtime, the program is killed but not awaited.
        if running.is_some() && Handle::try_current().is_ok() {
            let mut running = running;
            KILLED_PROGRAMS.spawn(async move { wait_for_killed(&mut running).await });
        }
    }
}

async fn wait(child: &mut Option<Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

async fn wait_for_killed(child: &mut Option<Child>) {
    if timeout(KILL_TIMEOUT, wait(child)).await.is_err() {
        tracing::warn!("a killed program has not ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_program_has_ended_after_the_wait_for_killed_programs() {
        let arguments = vec!["600".into()];
        let running = Program { program: "sleep".into(), arguments, ..Program::default() }.start().unwrap();
        let process = running.child.as_ref().and_then(Child::id).unwrap();
        let process = PathBuf::from(format!("/proc/{process}"));
        assert!(process.exists());
        drop(running);
        killed_programs_ended().await;
        assert!(!process.exists());
    }
}
