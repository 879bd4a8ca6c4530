//! Safe access to files in directories that other programs write to.
//!
//! Owns: every opening of such a file. Another program may put anything in the place of a name at any time, so a path is
//! opened component by component relative to a directory descriptor and without following symbolic links, and only regular
//! files with one link are used. Never: knows what the files contain.

mod directory;
mod replace;

pub use directory::{Directory, Kind};
pub use replace::replace_file;

use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens a regular file with one link in `directory`. `name` has one component. `flags` may contain `CREATE`.
pub fn open_regular(directory: BorrowedFd<'_>, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
    // NONBLOCK: opening a FIFO without a writer would wait for one.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let refuse = |reason: &str| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not used: it is {reason}"))
    };
    // Opening a device can have effects, so its type is examined first. The file may be exchanged in between:
    // the type is examined again below.
    if let Ok(stat) = sys::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        check(&stat).map_err(refuse)?;
    }
    let file = open_beneath(directory, name, flags, mode).map_err(|error| match error {
        Errno::LOOP => refuse("a symbolic link"),
        Errno::ISDIR => refuse("a directory"),
        Errno::NXIO => refuse("a FIFO, a socket or a device"),
        _ => explained(error, format_args!("cannot open {name}")),
    })?;
    check(&sys::fstat(&file)?).map_err(refuse)?;
    Ok(File::from(file))
}

/// Returns the reason for which a file is not used.
fn check(stat: &Stat) -> Result<(), &'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => Err("a hard link: the file has other names"),
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err("a symbolic link"),
        FileType::Directory => Err("a directory"),
        _ => Err("a FIFO, a socket or a device"),
    }
}

/// Lists at most `limit` names in a directory. Names that are not UTF-8 are left out.
pub fn names(directory: BorrowedFd<'_>, limit: usize) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)?.take(limit) {
        match entry?.file_name().to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(name) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

/// Opens one path component in `directory` without following a symbolic link.
pub fn open_beneath(
    directory: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // A concurrent rename makes the kernel give up with AGAIN.
        for _ in 0..16 {
            match sys::openat2(directory, name, flags, mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Kernels before 5.6 lack openat2, and some sandboxes answer PERM. One component with
                // NOFOLLOW is as safe.
                Err(Errno::NOSYS | Errno::PERM) => break,
                opened => return opened,
            }
        }
    }
    sys::openat(directory, name, flags, mode)
}

/// An error of the operating system with the action that failed.
pub fn explained(error: impl Into<io::Error>, context: std::fmt::Arguments<'_>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
