//! Programs that agents consist of. Owns: whoever stops or drops one, or dies, ends everything that it started.

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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_millis(400);
/// How much later than that a keeper has ended it.
#[cfg(target_os = "linux")]
const SUPERVISOR_MARGIN: Duration = Duration::from_millis(500);

/// Whether this binary can be its own keeper; a test's binary cannot.
static SUPERVISOR_ENABLED: AtomicBool = AtomicBool::new(false);

/// Says that this process was started from a binary that becomes a keeper when it is run as `keep`.
pub fn enable_supervisor() {
    SUPERVISOR_ENABLED.store(cfg!(target_os = "linux"), Ordering::Relaxed);
}

/// What to start, and where.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Added to the environment of this process, of which it gets the rest but what is meant for Parlor.
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: Option<PathBuf>,
}

/// A program and whatever it started, with its three pipes.
#[derive(Debug)]
pub struct RunningProgram {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    child: Child,
    group: Option<Pid>,
    #[cfg(target_os = "linux")]
    supervisor_pipe: Option<SupervisorPipe>,
}

/// What ties a keeper to this process: when the writing end is gone, it ends the program.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct SupervisorPipe {
    /// Open for as long as the keeper may want to open it for itself, which nobody tells.
    _reading: OwnedFd,
    writing: OwnedFd,
}

impl Program {
    pub fn start(&self) -> io::Result<RunningProgram> {
        self.start_on(None)
    }

    /// With a terminal in the place of its output and its errors; gives the other end.
    #[cfg(target_os = "linux")]
    pub fn start_in_terminal(&self, columns: u16, rows: u16) -> io::Result<(RunningProgram, OwnedFd)> {
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        let size = rustix::termios::Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&ours, size)?;
        Ok((self.start_on(Some(theirs))?, ours))
    }

    fn start_on(&self, terminal: Option<OwnedFd>) -> io::Result<RunningProgram> {
        self.look_for()?;
        #[cfg(target_os = "linux")]
        let (mut command, supervisor_pipe) = self.command(terminal.is_some())?;
        #[cfg(not(target_os = "linux"))]
        let mut command = self.bare();
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
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
        // A keeper ends when its work is done, and not before.
        #[cfg(target_os = "linux")]
        let group = group.filter(|_| supervisor_pipe.is_none());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(RunningProgram {
            stdin,
            stdout,
            stderr,
            child,
            group,
            #[cfg(target_os = "linux")]
            supervisor_pipe,
        })
    }

    fn bare(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        command
    }

    #[cfg(target_os = "linux")]
    fn command(&self, terminal: bool) -> io::Result<(Command, Option<SupervisorPipe>)> {
        use std::os::fd::AsRawFd;
        // A terminal of its own takes a process between, to become the leader of a session.
        if !SUPERVISOR_ENABLED.load(Ordering::Relaxed) {
            if terminal {
                return Err(io::Error::other("only a kept program can have a terminal"));
            }
            return Ok((self.bare(), None));
        }
        let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(supervisor::SUPERVISE).arg(std::process::id().to_string());
        command.arg(reading.as_raw_fd().to_string()).arg(rustix::fs::fstat(&reading)?.st_ino.to_string());
        command.arg(if terminal { supervisor::TTY } else { supervisor::NO_TTY });
        command.arg(&self.program).args(&self.arguments);
        Ok((command, Some(SupervisorPipe { _reading: reading, writing })))
    }

    /// Says what is missing before anything is started: a keeper could only say it later.
    fn look_for(&self) -> io::Result<()> {
        if let Some(directory) = self.directory.as_deref().filter(|directory| !directory.is_dir()) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the directory {} is missing", directory.display()),
            ));
        }
        self.found().map(drop)
    }

    /// Where the program is.
    pub fn found(&self) -> io::Result<PathBuf> {
        let name = Path::new(&self.program);
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, format!("{} is not installed", name.display()));
        if name.components().count() > 1 {
            let place = self.directory.as_deref().unwrap_or(Path::new("")).join(name);
            return match place.is_file() {
                true if runs(&place) => Ok(place),
                true => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("{} may not be run", place.display()),
                )),
                false => Err(missing()),
            };
        }
        let path = self.environment.get(OsStr::new("PATH")).cloned().or_else(|| env::var_os("PATH"));
        let places = path.iter().flat_map(env::split_paths).map(|directory| directory.join(name));
        let mut places = places.filter(|place| !self.program.is_empty() && place.is_file() && runs(place));
        places.next().ok_or_else(missing)
    }
}

/// What this process is told, passwords and keys among it, is nothing to an agent.
fn is_ours(variable: &OsStr) -> bool {
    variable.as_encoded_bytes().starts_with(b"PARLOR_")
}

fn runs(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

impl RunningProgram {
    /// Until it ended by itself; what it started and left behind is ended then too.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.signal(Signal::KILL);
        status
    }

    /// Asks it to end, and a moment later ends it. Nothing of it is left afterwards.
    pub async fn stop(mut self) {
        self.stdin = None;
        #[cfg(target_os = "linux")]
        if let Some(supervisor_pipe) = &self.supervisor_pipe {
            let _ = rustix::io::write(&supervisor_pipe.writing, &[supervisor::STOP]);
            if timeout(GRACE + SUPERVISOR_MARGIN, self.child.wait()).await.is_err() {
                self.supervisor_pipe = None;
            }
            let _ = self.child.wait().await;
            return;
        }
        self.signal(Signal::TERM);
        let _ = timeout(GRACE, self.child.wait()).await;
        self.signal(Signal::KILL);
        let _ = self.child.wait().await;
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
    }
}
