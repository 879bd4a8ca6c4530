//! Programs that agents consist of. Owns: whoever stops or drops one ends everything that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_millis(400);

/// What to start, and where.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Added to the environment of this process.
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: Option<PathBuf>,
}

/// A program and whatever it started, with its three pipes.
#[derive(Debug)]
pub struct Running {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    child: Child,
    group: Option<Pid>,
}

impl Program {
    pub fn start(&self) -> io::Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(&self.environment).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Running { stdin, stdout, stderr, child, group })
    }
}

impl Running {
    /// Until it ended by itself; what it started and left behind is ended then too.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.signal(Signal::KILL);
        status
    }

    /// Asks it to end, and a moment later ends it. Nothing of it is left afterwards.
    pub async fn stop(mut self) {
        self.stdin = None;
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

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
