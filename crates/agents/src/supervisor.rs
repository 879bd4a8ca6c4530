//! The process between a gateway and a program of an agent: this same binary, run as `parlor keep`.
//!
//! Owns: nothing that the program starts outlives it, the gateway or the keeper, whatever either of them does to
//! the others. It has no thread of the gateway and none of its memory, so it is still there when the gateway was
//! killed. Only Linux lets a process be told of all its descendants; elsewhere a program is a process group.

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

/// The hidden commands under which the binary becomes a keeper, and then the program.
pub const SUPERVISE: &str = "keep";
const EXEC: &str = "become";
/// Whether its input, output and errors are a terminal.
pub const TTY: &str = "tty";
pub const NO_TTY: &str = "no-tty";
/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_millis(400);
/// Between two looks at the process table.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// A process that the system cannot end, because it waits for a disk, is left to the system.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// What a shell says of a program that cannot be run.
const NOT_RUN: u8 = 127;

/// What the gateway says to a keeper; when it says nothing more, it is gone.
pub const STOP: u8 = b's';

/// `keep PARENT PIPE INODE TTY PROGRAM…`, and what it makes of itself.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let first = arguments.next().unwrap_or_default();
    let done = match first == EXEC {
        true => become_program(arguments),
        false => supervise(&first, arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(NOT_RUN)
    })
}

/// Takes the place of this process. What a program inherits can be arranged before it begins, without `unsafe`.
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
    /// The program ended so.
    Ended(WaitStatus),
    Stop,
    /// The gateway wants it gone, or is gone itself.
    Gone,
}

fn supervise(parent: &OsStr, mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let (pipe, inode) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    // A pipe that was never inherited has no other end but the gateway's.
    let pipe = File::open(format!("/proc/{}/fd/{}", parent.display(), pipe.display()))?;
    if pipe.metadata()?.ino().to_string() != *inode.to_string_lossy() {
        return Err(io::Error::other("it was called off"));
    }
    set_child_subreaper(Some(getpid()))?;
    let arguments: Vec<OsString> = arguments.collect();
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUPERVISE).arg(EXEC).args(&arguments);
    // Whoever leads a group cannot begin a session.
    if arguments.first().is_some_and(|tty| tty != TTY) {
        command.process_group(0);
    }
    let program = command.spawn()?;
    let program = Pid::from_child(&program);
    let nothing = open("/dev/null", OFlags::RDWR, Mode::empty())?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;

    let (tell, news) = channel();
    let told = tell.clone();
    thread::Builder::new().spawn(move || listen(pipe, &told))?;
    thread::Builder::new().spawn(move || reap(program, &tell))?;
    let mut status = match news.recv() {
        Ok(SupervisorEvent::Ended(status)) => Some(status),
        Ok(SupervisorEvent::Stop) => {
            signal_all(Signal::TERM);
            match news.recv_timeout(GRACE) {
                Ok(SupervisorEvent::Ended(status)) => Some(status),
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
            }
        }
        Ok(SupervisorEvent::Gone) | Err(_) => None,
    };
    let until = Instant::now() + KILL_TIMEOUT;
    while end_all() && Instant::now() < until {
        thread::sleep(PROCESS_POLL_INTERVAL);
    }
    while let (None, Ok(told)) = (&status, news.recv_timeout(GRACE)) {
        if let SupervisorEvent::Ended(ended) = told {
            status = Some(ended);
        }
    }
    Ok(as_it_ended(status))
}

fn listen(mut pipe: File, tell: &Sender<SupervisorEvent>) {
    let mut byte = [0];
    while matches!(pipe.read(&mut byte), Ok(1)) {
        if byte[0] == STOP && tell.send(SupervisorEvent::Stop).is_err() {
            return;
        }
    }
    let _ = tell.send(SupervisorEvent::Gone);
}

/// Takes in every descendant that ended: those whose own parent is gone are this process's too.
fn reap(program: Pid, tell: &Sender<SupervisorEvent>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == program => {
                if tell.send(SupervisorEvent::Ended(status)).is_err() {
                    return;
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // There are none now; there will be none, since the program is gone.
            Err(_) => return,
        }
    }
}

/// Ends as the program did, so that whoever waits for this process learns how.
fn as_it_ended(status: Option<WaitStatus>) -> ExitCode {
    let status = status.map(|status| (status.exit_status(), status.terminating_signal()));
    match status {
        Some((Some(code), _)) => ExitCode::from(code as u8),
        Some((None, Some(signal))) => {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            let _ = setrlimit(Resource::Core, none);
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

/// Says whether there was anything left to end. What is stopped cannot start others while the list is made anew.
fn end_all() -> bool {
    let left = descendants();
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &left {
            let _ = kill_process(*pid, signal);
        }
    }
    !left.is_empty()
}

/// Everything below this process that still lives.
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
    let mut look = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = look.pop() {
        for (id, lives) in children.remove(&parent).unwrap_or_default() {
            look.push(id);
            found.extend(Pid::from_raw(id).filter(|_| lives));
        }
    }
    found
}

/// The parent in `/proc/ID/stat`, and whether the process lives; its name, before that, may contain anything.
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
    fn a_name_with_anything_in_it_hides_no_process() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0"), Some((7, true)));
        assert_eq!(parent(b"12 (a) R 1 (b)) Z 9 1"), Some((9, false)));
        assert_eq!(parent(b"12 (\xff\n) D 3 1"), Some((3, true)));
        assert_eq!(parent(b"12"), None);
    }
}
