//! The process supervisor: a process between a gateway and one agent program, this binary run as `parlor
//! keep`.
//!
//! Owns: when the program, the gateway or the supervisor ends, every descendant of the program is killed.
//! The supervisor is a separate process, so it survives a killed gateway and can still clean up. It uses
//! Linux child subreapers to find all descendants; on other systems programs run in a process group without
//! a supervisor.

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setrlimit, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Hidden command that runs the binary as a process supervisor.
pub const SUPERVISE: &str = "keep";
/// Argument after `SUPERVISE` that makes the helper process replace itself with the agent program.
const EXEC: &str = "become";
/// Argument for a program whose stdout and stderr are a terminal; [`NO_TTY`] is the opposite.
pub const TTY: &str = "tty";
pub const NO_TTY: &str = "no-tty";
/// Time between SIGTERM and SIGKILL when the gateway stops the program.
const STOP_GRACE: Duration = Duration::from_millis(400);
/// Interval between two scans of the process table while descendants are being killed.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum time to retry killing descendants. A process in uninterruptible I/O is then left to the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Exit code for a program that cannot be started; shells use the same one.
const CANNOT_EXECUTE: u8 = 127;

/// Byte that the gateway writes to the pipe to stop the program. End of file means that the gateway is gone.
pub const STOP: u8 = b's';

/// Runs the hidden command with the arguments after `keep`.
///
/// `PARENT PIPE INODE TTY PROGRAM…` supervises the program; `become TTY PROGRAM…` replaces this process
/// with it.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let first = arguments.next().unwrap_or_default();
    let done = match first == EXEC {
        true => become_program(arguments),
        false => supervise(&first, arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(CANNOT_EXECUTE)
    })
}

/// Replaces this process with the program, after setting up the death signal, session and terminal that the
/// program inherits. A separate process for this avoids `unsafe` code between fork and exec.
fn become_program(mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if arguments.next().is_some_and(|tty| tty == TTY) {
        setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdout())?;
    }
    let program = arguments.next().unwrap_or_default();
    let error = Command::new(&program).args(arguments).exec();
    Err(io::Error::new(error.kind(), format!("{}: {error}", program.display())))
}

enum SupervisorEvent {
    /// The program exited with this status.
    Ended(WaitStatus),
    Stop,
    /// The gateway closed the pipe: it dropped the program or died.
    Gone,
}

fn supervise(parent: &OsStr, mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let (pipe, inode) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    // The pipe is opened through /proc instead of being inherited, so the gateway has the only write end and
    // this side sees end of file when the gateway dies.
    let pipe = File::open(format!("/proc/{}/fd/{}", parent.display(), pipe.display()))?;
    if pipe.metadata()?.ino().to_string() != *inode.to_string_lossy() {
        return Err(io::Error::other("the gateway has already closed the pipe for this program"));
    }
    set_child_subreaper(Some(getpid()))?;
    let arguments: Vec<OsString> = arguments.collect();
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUPERVISE).arg(EXEC).args(&arguments);
    // A process group leader cannot call setsid, which a program with a terminal needs.
    if arguments.first().is_some_and(|tty| tty != TTY) {
        command.process_group(0);
    }
    let program = command.spawn()?;
    let program = Pid::from_child(&program);
    let null = open("/dev/null", OFlags::RDWR, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;

    let (sender, events) = channel();
    let pipe_sender = sender.clone();
    thread::Builder::new().spawn(move || read_pipe(pipe, &pipe_sender))?;
    thread::Builder::new().spawn(move || reap(program, &sender))?;
    let mut status = match events.recv() {
        Ok(SupervisorEvent::Ended(status)) => Some(status),
        Ok(SupervisorEvent::Stop) => {
            signal_all(Signal::TERM);
            match events.recv_timeout(STOP_GRACE) {
                Ok(SupervisorEvent::Ended(status)) => Some(status),
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
            }
        }
        Ok(SupervisorEvent::Gone) | Err(_) => None,
    };
    let until = Instant::now() + KILL_TIMEOUT;
    while kill_all() && Instant::now() < until {
        thread::sleep(PROCESS_POLL_INTERVAL);
    }
    while let (None, Ok(event)) = (&status, events.recv_timeout(STOP_GRACE)) {
        if let SupervisorEvent::Ended(ended) = event {
            status = Some(ended);
        }
    }
    Ok(exit_like(status))
}

fn read_pipe(mut pipe: File, events: &Sender<SupervisorEvent>) {
    let mut byte = [0];
    while matches!(pipe.read(&mut byte), Ok(1)) {
        if byte[0] == STOP && events.send(SupervisorEvent::Stop).is_err() {
            return;
        }
    }
    let _ = events.send(SupervisorEvent::Gone);
}

/// Reaps exited descendants, including orphans that the subreaper inherited, and reports the program's own
/// exit.
fn reap(program: Pid, events: &Sender<SupervisorEvent>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == program => {
                if events.send(SupervisorEvent::Ended(status)).is_err() {
                    return;
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // No children are left, and none can appear: the program has ended too.
            Err(_) => return,
        }
    }
}

/// Exits with the program's exit code or dies from the same signal, so that the gateway sees how the
/// program ended.
fn exit_like(status: Option<WaitStatus>) -> ExitCode {
    let status = status.map(|status| (status.exit_status(), status.terminating_signal()));
    match status {
        Some((Some(code), _)) => ExitCode::from(code as u8),
        Some((None, Some(signal))) => {
            let no_core_dump = Rlimit { current: Some(0), maximum: Some(0) };
            let _ = setrlimit(Resource::Core, no_core_dump);
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(getpid(), signal);
            }
            ExitCode::FAILURE
        }
        _ => {
            let _ = kill_process(getpid(), Signal::KILL);
            ExitCode::FAILURE
        }
    }
}

fn signal_all(signal: Signal) {
    for pid in descendants() {
        let _ = kill_process(pid, signal);
    }
}

/// Kills all descendants and returns whether there were any. All of them are stopped first, so that none
/// can start another process while the others are killed.
fn kill_all() -> bool {
    let left = descendants();
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &left {
            let _ = kill_process(*pid, signal);
        }
    }
    !left.is_empty()
}

/// All living descendants of this process.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if let Some((parent, lives)) = parent(&stat) {
            children.entry(parent).or_default().push((id, lives));
        }
    }
    let mut found = Vec::new();
    let mut pending = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = pending.pop() {
        for (id, lives) in children.remove(&parent).unwrap_or_default() {
            pending.push(id);
            found.extend(Pid::from_raw(id).filter(|_| lives));
        }
    }
    found
}

/// Reads the parent's id from `/proc/ID/stat`, and whether the process is alive. The process name comes
/// before both and may contain any characters, so parsing starts after its last parenthesis.
fn parent(stat: &[u8]) -> Option<(i32, bool)> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    Some((fields.next()?.parse().ok()?, !matches!(state, "Z" | "X")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_any_characters_is_parsed() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0"), Some((7, true)));
        assert_eq!(parent(b"12 (a) R 1 (b)) Z 9 1"), Some((9, false)));
        assert_eq!(parent(b"12 (\xff\n) D 3 1"), Some((3, true)));
        assert_eq!(parent(b"12"), None);
    }
}
