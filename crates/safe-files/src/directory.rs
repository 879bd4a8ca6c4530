//! An opened directory, and the files and directories below it.

use crate::{explained, names, open_beneath, open_regular, replace_file};
use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OPEN: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// A directory, opened once. Clones share the descriptor, so that they stay in the same directory when it is renamed.
#[derive(Clone, Debug)]
pub struct Directory {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
}

/// Kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    SymbolicLink,
    /// A FIFO, a socket or a device.
    Other,
}

impl Directory {
    /// Opens a directory by a path of the operator, which may contain symbolic links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let descriptor = sys::open(path, OPEN, Mode::empty())
            .map_err(|error| explained(error, format_args!("cannot open {}", path.display())))?;
        Ok(Self { descriptor: Arc::new(descriptor), path: path.to_owned() })
    }

    /// Path of the directory for messages and programs. It is never opened again.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Returns whether the directory was deleted, with everything in it.
    pub fn is_removed(&self) -> bool {
        sys::fstat(&*self.descriptor).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Returns whether both are the same directory.
    pub fn is_same(&self, other: &Self) -> bool {
        let id =
            |directory: &Self| sys::fstat(&*directory.descriptor).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        id(self).is_some_and(|own| id(other) == Some(own))
    }

    /// Opens a directory in this one; `None` if it does not exist. `name` has one component.
    pub fn below(&self, name: &str) -> io::Result<Option<Self>> {
        check_component(name)?;
        let path = self.path.join(name);
        match open_beneath(self.descriptor(), name, OPEN, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Self { descriptor: Arc::new(descriptor), path })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is not used: it is no directory, or a symbolic link", path.display()),
            )),
            Err(error) => Err(explained(error, format_args!("cannot open {}", path.display()))),
        }
    }

    /// Opens a directory in this one and creates it if it does not exist.
    pub fn create_below(&self, name: &str) -> io::Result<Self> {
        if let Some(found) = self.below(name)? {
            return Ok(found);
        }
        match sys::mkdirat(self.descriptor(), name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => {
                let path = self.path.join(name);
                return Err(explained(error, format_args!("cannot create {}", path.display())));
            }
        }
        self.below(name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the kind of a directory entry; `None` if the directory has no entry with this name.
    pub fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        match sys::statat(self.descriptor(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::SymbolicLink,
                _ => Kind::Other,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the names in the directory, sorted. More than `limit` are an error.
    pub fn names(&self, limit: usize) -> io::Result<Vec<String>> {
        // A descriptor of its own, because reading moves the position of the descriptor.
        let own = open_beneath(self.descriptor(), ".", OPEN, Mode::empty())?;
        // `.` and `..` are read too.
        let mut names = names(own.as_fd(), limit + 3)?;
        if names.len() > limit {
            let path = self.path.display();
            return Err(io::Error::other(format!("{path} has more than {limit} entries")));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a regular file with one link.
    pub fn open_file(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        check_component(name)?;
        open_regular(self.descriptor(), name, flags, mode)
    }

    /// Reads a file of at most `max_bytes`; `None` if it does not exist.
    pub fn read(&self, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open_file(name, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut content)?;
        if content.len() as u64 > max_bytes {
            let message = format!("{name} is not used: it is larger than {max_bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(Some(content))
    }

    /// Replaces a file atomically and durably. The caller is the only one that writes files here through this type.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        check_component(name)?;
        replace_file(self.descriptor(), name, &format!(".{name}.tmp"), content, None)?;
        sys::fsync(&*self.descriptor).map_err(io::Error::from)
    }

    /// Appends whole lines with one `write`, creating the file if it does not exist. If the file does not end with a line
    /// feed, because a write was cut off, the same `write` adds one before the lines. The lines are not synced.
    pub fn append(&self, name: &str, lines: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let mut file = self.open_file(name, flags, Mode::from_raw_mode(0o644))?;
        let size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_exact_at(&mut last, size - 1)?;
        }
        match last {
            [b'\n'] => file.write_all(lines),
            _ => file.write_all(&[b"\n", lines].concat()),
        }
    }

    /// Moves a name to another directory. An existing name there is an error.
    pub fn rename(&self, name: &str, to: &Self, new_name: &str) -> io::Result<()> {
        check_component(name)?;
        check_component(new_name)?;
        if to.kind(new_name)?.is_some() {
            let message = format!("{} exists", to.path.join(new_name).display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        sys::renameat(self.descriptor(), name, to.descriptor(), new_name)?;
        Ok(())
    }

    /// Locks a file in the directory, which is created if it does not exist. `None` if another process holds the lock. The
    /// lock lasts as long as the file is open.
    pub fn lock(&self, name: &str) -> io::Result<Option<File>> {
        let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o644))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Rejects names that lead out of the directory.
fn check_component(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        let message = format!("{name:?} is not the name of a file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, Directory) {
        let directory = tempfile::tempdir().unwrap();
        let opened = Directory::open(directory.path()).unwrap();
        (directory, opened)
    }

    #[test]
    fn symbolic_links_and_hard_links_are_not_used() {
        let (path, root) = root();
        fs::write(path.path().join("secret"), "x").unwrap();
        fs::create_dir(path.path().join("real")).unwrap();
        symlink("secret", path.path().join("link")).unwrap();
        symlink("real", path.path().join("folder")).unwrap();
        fs::hard_link(path.path().join("secret"), path.path().join("other")).unwrap();
        for (name, reason) in [("link", "symbolic link"), ("other", "hard link"), ("real", "directory")] {
            let error = root.read(name, 10).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let error = root.below("folder").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(root.kind("folder").unwrap(), Some(Kind::SymbolicLink));
    }

    #[test]
    fn names_lead_to_nothing_outside_the_directory() {
        let (_path, root) = root();
        for name in ["", ".", "..", "a/b", "../x", "/etc/passwd"] {
            assert!(root.read(name, 10).is_err(), "{name}");
            assert!(root.below(name).is_err(), "{name}");
            assert!(root.create_below(name).is_err(), "{name}");
            assert!(root.replace(name, b"x").is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let (path, root) = root();
        fs::write(path.path().join("a"), "12345").unwrap();
        assert_eq!(root.read("a", 5).unwrap().unwrap(), b"12345");
        assert_eq!(root.read("a", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(root.read("b", 4).unwrap(), None);
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_before_the_next_one() {
        let (path, root) = root();
        root.append("log", b"1\n").unwrap();
        fs::write(path.path().join("log"), "1\n2").unwrap();
        root.append("log", b"3\n").unwrap();
        assert_eq!(fs::read_to_string(path.path().join("log")).unwrap(), "1\n2\n3\n");
    }

    #[test]
    fn one_process_holds_a_lock_and_an_existing_name_is_not_replaced_by_a_move() {
        let (path, root) = root();
        let held = root.lock("lock").unwrap();
        assert!(held.is_some());
        assert!(root.lock("lock").unwrap().is_none());
        drop(held);
        assert!(root.lock("lock").unwrap().is_some());
        fs::write(path.path().join("a"), "1").unwrap();
        fs::write(path.path().join("b"), "2").unwrap();
        assert_eq!(root.rename("a", &root, "b").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        root.rename("a", &root, "c").unwrap();
        assert_eq!(root.names(10).unwrap(), ["b", "c", "lock"]);
        assert!(root.names(2).unwrap_err().to_string().contains("more than 2 entries"));
    }
}
